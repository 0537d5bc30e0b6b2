"""Doubles as text, as Java writes them."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from soliton.matcher.websocket.numbers import amount_text, double_text, price_text
from soliton.matching.arithmetic import denormalize_amount, denormalize_price

TABLE = """
0               0.0
1               1.0
-1              -1.0
0.1             0.1
100             100.0
0.001           0.001
0.00099999      9.9999E-4
0.00000001      1.0E-8
9999999         9999999.0
9999999.5       9999999.5
10000000        1.0E7
123456789       1.23456789E8
-12345678.9     -1.23456789E7
1e18            1.0E18
99999999999.99999999  1.0E11
0.30000000000000004   0.30000000000000004
"""


@pytest.mark.parametrize("line", TABLE.strip().splitlines())
def test_table(line: str) -> None:
    number, text = line.split()
    assert double_text(Decimal(number)) == text


@given(st.decimals(-(10**17), 10**17, places=8))
def test_the_text_is_the_same_double(number: Decimal) -> None:
    assert float(double_text(number)) == float(number)


@given(st.integers(0, 2**63 - 1), st.integers(0, 8), st.integers(0, 8))
def test_quotients_are_those_of_exact_decimals(units: int, amount: int, price: int) -> None:
    assert amount_text(units, amount) == double_text(denormalize_amount(units, amount))
    exact = denormalize_price(units, amount, price)
    assert price_text(units, amount, price) == double_text(exact)


def test_units() -> None:
    assert amount_text(1, 8) == "1.0E-8"
    assert amount_text(123_456, 2) == "1234.56"
    assert price_text(238, 8, 2) == "2.38"
    assert price_text(10**8, 8, 8) == "1.0"
