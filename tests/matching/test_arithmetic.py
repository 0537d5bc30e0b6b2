"""The integers of executions: tables, and the reference's formulas in exact fractions beside them.

Source of the formulas: wavesplatform/matcher ``dex/.../model/MatcherModel.scala``.
"""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from soliton.chain.orders import MAX_AMOUNT, Side
from soliton.matching import arithmetic
from soliton.matching.arithmetic import (
    can_go_on,
    correct_by_tick,
    corrected_amount,
    decimal_text,
    denormalize_amount,
    denormalize_price,
    fixed_price,
    market_limit,
    multiply_up,
    normalize_amount,
    normalize_price,
    partial_fee,
    price_volume,
    round_half_up,
)

COIN = 10**8
AMOUNTS = st.integers(1, MAX_AMOUNT - 1)
PRICES = st.integers(1, 2**63 - 1)


# amount, price, corrected amount, volume
CORRECTED = """
425532     238        420169     1
223345000  31887      223344937  71218
98333333   60         96666667   58
100000000  1000       100000000  1000
420168     238        0          0
420169     238        420169     1
1          100000000  1          1
1          99999999   0          0
1          9223372036854775807 1 92233720368
999999999999999999 1  999999999900000000 9999999999
"""


@pytest.mark.parametrize("row", CORRECTED.strip().splitlines())
def test_corrected_amounts(row: str) -> None:
    amount, price, corrected, volume = map(int, row.split())
    assert (corrected_amount(amount, price), price_volume(amount, price)) == (corrected, volume)


@given(AMOUNTS, PRICES)
def test_a_corrected_amount_is_the_least_of_the_same_worth(amount: int, price: int) -> None:
    corrected = corrected_amount(amount, price)
    units = math.floor(Fraction(amount) * price / COIN)
    assert corrected == math.ceil(Fraction(units) * COIN / price)
    assert 0 <= corrected <= amount
    assert price_volume(corrected, price) == units
    assert corrected == 0 or price_volume(corrected - 1, price) < units
    assert corrected_amount(corrected, price) == corrected


@given(AMOUNTS, AMOUNTS, PRICES)
def test_the_lesser_of_two_amounts_may_be_corrected_instead_of_both(
    first: int, second: int, price: int
) -> None:
    both = min(corrected_amount(first, price), corrected_amount(second, price))
    assert corrected_amount(min(first, second), price) == both


# amount, own price, counter price, can go on
REMAINDERS = """
1666666    60         60         no
1666667    60         60         yes
476190     1000       70         no
476190     1000       1000       yes
0          1000       1000       no
1          100000000  100000000  yes
1          100000000  99999999   no
1          99999999   100000000  no
999999999999999999  1 1 yes
1000000000000000000 1 1 no
-5         100000000  100000000  no
"""


@pytest.mark.parametrize("row", REMAINDERS.strip().splitlines())
def test_remainders(row: str) -> None:
    *numbers, expected = row.split()
    amount, own, counter = map(int, numbers)
    assert can_go_on(amount, own, counter) is (expected == "yes")


@given(AMOUNTS, PRICES, PRICES)
def test_remainders_by_the_words_of_the_rule(amount: int, own: int, counter: int) -> None:
    spent, received = price_volume(amount, own), corrected_amount(amount, own)
    by_words = amount >= math.ceil(Fraction(COIN, counter)) and spent > 0 and received > 0
    assert can_go_on(amount, own, counter) is by_words


# side, remaining amount, fee, available, price, fee in the spent asset, limit
LIMITS = """
buy   100000000  6         303        600        yes  50000000
buy   100000000  6         302        600        yes  49833334
buy   100000000  300000    150000000  300000000  no   50000000
buy   100000000  300000    150000001  300000000  no   50000000
buy   100000000  300000    0          300000000  no   0
sell  100000000  25000000  50000000   1          yes  40000000
sell  100000000  25000000  50000000   1          no   50000000
sell  3          1         2          1          yes  1
"""


@pytest.mark.parametrize("row", LIMITS.strip().splitlines())
def test_limits_of_market_orders(row: str) -> None:
    side, *numbers, spent, expected = row.split()
    amount, fee, available, price = map(int, numbers)
    limit = market_limit(
        Side[side.upper()],
        amount=amount,
        fee=fee,
        available=available,
        price=price,
        fee_is_spent=spent == "yes",
    )
    assert limit == int(expected)


@given(AMOUNTS, st.integers(1, 10**12), st.integers(0, 10**18), st.integers(1, 10**15))
def test_a_buyer_never_spends_more_than_he_may(
    amount: int, fee: int, available: int, price: int
) -> None:
    for fee_is_spent in (False, True):
        limit = market_limit(
            Side.BUY,
            amount=amount,
            fee=fee,
            available=available,
            price=price,
            fee_is_spent=fee_is_spent,
        )
        executed = min(limit, corrected_amount(amount, price))
        charged = partial_fee(fee, amount, executed) if fee_is_spent else 0
        assert price_volume(executed, price) + charged <= available


# fee, total, part, share
SHARES = """
300000 425532 420169 296219
300000 3100000000 420169 40
3 100 33 0
3 100 34 1
100 100 100 100
999999999999999999 999999999999999999 1 1
1000000000000000000 3 2 666666666666666666
"""


@pytest.mark.parametrize("row", SHARES.strip().splitlines())
def test_fees_in_proportion(row: str) -> None:
    fee, total, part, share = map(int, row.split())
    assert partial_fee(fee, total, part) == share


@given(st.integers(0, 10**15 - 1), AMOUNTS, st.data())
def test_fees_in_proportion_are_cut_down(fee: int, total: int, data: st.DataObject) -> None:
    part = data.draw(st.integers(0, total))
    expected = fee * part // total
    assert partial_fee(fee, total, part) == expected
    # With 34 digits the same comes out for all fees that anybody offers.
    assert partial_fee(fee, Decimal(total), Decimal(part)) == expected


def test_huge_fees_are_rounded_as_the_reference_rounds_them() -> None:
    fee, total, part = 999_999_999_999_999_999, 999_999_999_999_999_998, 999_999_999_999_999_997
    assert fee * part // total == 999_999_999_999_999_997
    quotient = arithmetic.EXACT.divide(
        arithmetic.EXACT.multiply(Decimal(fee), Decimal(part)), Decimal(total)
    )
    assert partial_fee(fee, total, part) == int(quotient) == 999_999_999_999_999_998


@pytest.mark.parametrize(
    ("fee", "factor", "product"),
    [(3, "0.5", 2), (4, "0.5", 2), (300_000, "0.3333333333333333333333333333333333", 100_000)],
)
def test_products_are_rounded_up(fee: int, factor: str, product: int) -> None:
    assert multiply_up(fee, Decimal(factor)) == product


@pytest.mark.parametrize(("value", "rounded"), [("2.5", 3), ("2.4", 2), ("-2.5", -3), ("3", 3)])
def test_halves(value: str, rounded: int) -> None:
    assert round_half_up(Decimal(value)) == rounded


@pytest.mark.parametrize(
    ("price", "side", "tick", "level"),
    [
        (105, Side.BUY, 10, 100),
        (105, Side.SELL, 10, 110),
        (100, Side.BUY, 10, 100),
        (100, Side.SELL, 10, 100),
        (9, Side.BUY, 10, 0),
        (9, Side.SELL, 10, 10),
        (7, Side.SELL, 1, 7),
    ],
)
def test_ticks(price: int, side: Side, tick: int, level: int) -> None:
    assert correct_by_tick(price, side, tick) == level


@pytest.mark.parametrize(
    ("price", "amount_decimals", "price_decimals", "fixed"),
    [
        (123_456, 8, 8, 123_456),
        (123_456, 2, 8, 0),
        (123_456_789, 2, 8, 123),
        (123_456, 8, 2, 123_456_000_000),
        (2**62, 8, 0, 2**62 * 10**8),
    ],
)
def test_fixed_prices(price: int, amount_decimals: int, price_decimals: int, fixed: int) -> None:
    assert fixed_price(price, amount_decimals, price_decimals) == fixed


def test_decimals() -> None:
    assert normalize_amount(Decimal("1.23456789"), 6) == 1_234_567
    assert normalize_price(Decimal("1.5"), 8, 2) == 150
    assert normalize_price(Decimal("0.00000001"), 2, 8) == 1_000_000
    assert denormalize_amount(300_000, 8) == Decimal("0.003")
    assert denormalize_price(150, 8, 2) == Decimal("1.5")


@given(st.integers(0, 2**63 - 1), st.integers(0, 8), st.integers(0, 8))
def test_decimals_round_trip(units: int, amount_decimals: int, price_decimals: int) -> None:
    amount = denormalize_amount(units, amount_decimals)
    assert normalize_amount(amount, amount_decimals) == units
    price = denormalize_price(units, amount_decimals, price_decimals)
    assert normalize_price(price, amount_decimals, price_decimals) == units


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("0", "0"),
        ("0.0", "0"),
        ("10", "10"),
        ("1E+3", "1000"),
        ("0.00300000", "0.003"),
        ("0.00000000000000001", "0"),
        ("1.00000000000000006", "1.0000000000000001"),
        ("-1.50", "-1.5"),
        ("1000000000", "1000000000"),
    ],
)
def test_decimal_text(value: str, text: str) -> None:
    assert decimal_text(Decimal(value)) == text
