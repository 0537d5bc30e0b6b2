"""Options of ``soliton data-service`` that are refused."""

from __future__ import annotations

import pytest

from tests.cli.here import run_here


@pytest.mark.parametrize("value", ["NaN", "sNaN", "Infinity", "-1", "much"])
def test_an_amount_is_a_number_that_can_be(value: str) -> None:
    # Each volume compares with NaN as if it were enough, or none is.
    ended = run_here("data-service", "--rate-threshold", value)
    assert ended.returncode != 0
    assert f"--rate-threshold: '{value}' is not an amount" in ended.stderr
