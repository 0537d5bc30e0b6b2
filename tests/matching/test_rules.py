"""Rules by offset, and pairs of assets."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from soliton.chain.errors import FormatError
from soliton.chain.orders import Side
from soliton.matching.fees import DynamicFee
from soliton.matching.pairs import (
    AssetPair,
    asset_text,
    pair_to_bytes,
    parse_asset,
    read_pair,
    received_asset,
    spent_asset,
)
from soliton.matching.rules import NEVER, MatchingSettings, normalized_tick_sizes
from tests.matching.makers import AMOUNT_ASSET, FEE_ASSET, PAIR, PRICE_ASSET, account

ONE, TWO, THREE = (DynamicFee(n, n) for n in (1, 2, 3))
SETTINGS = MatchingSettings(
    order_fees=((-1, ONE), (10, TWO), (30, THREE)),
    tick_sizes={PAIR: ((5, 7), (20, 9))},
    order_v4_start_offset=15,
    distinct_timestamps_start_offset=25,
    pass_execution_parameters_start_offset=40,
    lp_accounts=frozenset((account("pool"),)),
)


@pytest.mark.parametrize(
    ("offset", "fee", "tick", "distinct", "version", "until"),
    [
        (0, ONE, 1, False, 2, 5),
        (4, ONE, 1, False, 2, 5),
        (5, ONE, 7, False, 2, 10),
        (10, TWO, 7, False, 2, 20),
        (15, TWO, 7, False, 3, 20),
        (20, TWO, 9, False, 3, 25),
        (25, TWO, 9, True, 3, 30),
        (30, THREE, 9, True, 3, NEVER),
        (10**12, THREE, 9, True, 3, NEVER),
    ],
)
def test_what_is_in_force(
    offset: int, fee: DynamicFee, tick: int, distinct: bool, version: int, until: int
) -> None:
    terms = SETTINGS.terms_at(PAIR, offset)
    assert SETTINGS.order_fee_at(offset) is fee
    assert (terms.tick_size, terms.distinct_timestamps, terms.until) == (tick, distinct, until)
    assert SETTINGS.exchange_version_at(offset) == version


@given(st.integers(0, 60))
def test_terms_last_until_they_say(offset: int) -> None:
    terms = SETTINGS.terms_at(PAIR, offset)
    for later in range(offset, min(terms.until, 60)):
        same = SETTINGS.terms_at(PAIR, later)
        assert (same.tick_size, same.distinct_timestamps, same.until) == (
            terms.tick_size,
            terms.distinct_timestamps,
            terms.until,
        )
        assert SETTINGS.order_fee_at(later) is SETTINGS.order_fee_at(offset)


def test_defaults() -> None:
    settings = MatchingSettings()
    terms = settings.terms_at(PAIR, 10**15)
    assert (terms.tick_size, terms.distinct_timestamps, terms.until) == (1, False, NEVER)
    assert settings.order_fee_at(0) == DynamicFee(300_000, 300_000)
    assert settings.exchange_version_at(10**15) == 2


def test_accounts_whose_scripts_are_told() -> None:
    assert not SETTINGS.passes_parameters_at(40, account("pool"))
    assert SETTINGS.passes_parameters_at(41, account("pool"))
    assert not SETTINGS.passes_parameters_at(41, account("other"))


def test_tick_sizes_in_decimals() -> None:
    schedule = ((0, Decimal("0.1")), (9, Decimal("0.00000001")))
    assert normalized_tick_sizes(schedule, 8, 2) == ((0, 10), (9, 1))
    assert normalized_tick_sizes(schedule, 2, 8) == ((0, 10**13), (9, 10**6))


# --- pairs ----------------------------------------------------------------------------------------


def test_what_is_given_and_got() -> None:
    assert (spent_asset(PAIR, Side.BUY), received_asset(PAIR, Side.BUY)) == (
        PRICE_ASSET,
        AMOUNT_ASSET,
    )
    assert (spent_asset(PAIR, Side.SELL), received_asset(PAIR, Side.SELL)) == (
        AMOUNT_ASSET,
        PRICE_ASSET,
    )


def test_pairs_as_text() -> None:
    pair = AssetPair(FEE_ASSET, None)
    assert pair.key == asset_text(FEE_ASSET) + "-WAVES"
    assert pair.to_json() == {"amountAsset": asset_text(FEE_ASSET), "priceAsset": "WAVES"}
    assert pair.reversed() == AssetPair(None, FEE_ASSET)
    for asset in (None, FEE_ASSET, b"\0short"):
        assert parse_asset(asset_text(asset)) == asset


@pytest.mark.parametrize("text", ["", "0", "WAVES2O", "1" * 45])
def test_texts_that_are_no_asset(text: str) -> None:
    with pytest.raises(FormatError):
        parse_asset(text)


@pytest.mark.parametrize("pair", [PAIR, AssetPair(None, PRICE_ASSET), AssetPair(FEE_ASSET, None)])
def test_pairs_as_bytes(pair: AssetPair) -> None:
    data = b"head" + pair_to_bytes(pair)
    assert read_pair(data + b"tail", 4) == (pair, len(data))
    for end in range(4, len(data)):
        with pytest.raises(FormatError):
            read_pair(data[:end], 4)
