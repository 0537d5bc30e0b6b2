"""Fees: what executions cost, the least that is offered, rates and discounts, by tables."""

from __future__ import annotations

from decimal import Decimal

import pytest

from soliton.chain.orders import Side
from soliton.matching.errors import MatcherError
from soliton.matching.fees import (
    AssetType,
    CompositeFee,
    Discount,
    DynamicFee,
    FixedFee,
    OrderFee,
    PercentFee,
    custom_pairs,
    fee_function,
    mode_of,
    zero_fee_accounts,
)
from soliton.matching.minimum_fees import Offer, fee_assets, minimum_fee, script_fees
from soliton.matching.model import limit_order
from soliton.matching.pairs import Asset, AssetPair, is_correctly_ordered
from soliton.matching.rates import Rates
from tests.matching.makers import AMOUNT_ASSET, FEE_ASSET, PAIR, PRICE_ASSET, account, make_order
from tests.matching.test_validation import ASSETS, Description

COIN = 10**8
OTHER_PAIR = AssetPair(FEE_ASSET, None)
DYNAMIC = DynamicFee(300_000, 300_000)
UNEQUAL = DynamicFee(100_000, 300_000)
FIXED = FixedFee(FEE_ASSET, 50)


def percent(kind: str, share: str = "10", least: int = 1) -> PercentFee:
    """Percents of one kind of amount."""
    return PercentFee(AssetType(kind), Decimal(share), least)


# A taker buys 4 at up to 300, a maker sells 8 at 200; they exchange 2 (which are worth 400, of the
# taker's 800 and the maker's 1,600 at that price). Both offer 1,000; 800 and 600 are stored.
EXECUTIONS: list[tuple[OrderFee, int, int]] = [
    (DYNAMIC, 500, 250),
    (FIXED, 500, 250),
    (UNEQUAL, 500, 83),
    (DynamicFee(300_000, 100_000), 167, 250),
    (percent("amount"), 400, 150),
    (percent("price"), 400, 150),
    # Of a taker who buys and pays by what he spends: 800 at 300 are 534 at 200.
    (percent("spending"), 267, 150),
    (percent("receiving"), 400, 150),
    (CompositeFee(DYNAMIC, {PAIR: percent("amount")}), 400, 150),
    (CompositeFee(percent("amount"), {OTHER_PAIR: DYNAMIC}), 400, 150),
    (CompositeFee(DYNAMIC, zero_fee_accounts=frozenset((account("taker"),))), 0, 250),
    (DynamicFee(300_000, 300_000, frozenset((account("maker"),))), 500, 0),
]


@pytest.mark.parametrize(("fee", "taker_fee", "maker_fee"), EXECUTIONS)
def test_executions(fee: OrderFee, taker_fee: int, maker_fee: int) -> None:
    taker = limit_order(make_order(Side.BUY, 4 * COIN, 300, fee=1_000, sender="taker"), 800)
    maker = limit_order(make_order(Side.SELL, 8 * COIN, 200, fee=1_000, sender="maker"), 600)
    charge = fee_function(fee, PAIR, frozenset())
    assert charge(taker, maker, 2 * COIN) == (taker_fee, maker_fee)
    free = fee_function(fee, PAIR, frozenset((account("taker"), account("maker"))))
    assert free(taker, maker, 2 * COIN) == (0, 0)


def test_percents_of_a_taker_who_sells() -> None:
    taker = limit_order(make_order(Side.SELL, 4 * COIN, 200, fee=1_000), 800, 900)
    maker = limit_order(make_order(Side.BUY, 8 * COIN, 300, fee=1_000))
    charge = fee_function(percent("spending"), PAIR, frozenset())
    # The constant part is the greater one; a maker without stored fees pays of what it offered.
    assert charge(taker, maker, 2 * COIN) == (450, 250)


# mode | side | the assets
FEE_ASSETS: list[tuple[OrderFee, Side, tuple[Asset, ...]]] = [
    (DYNAMIC, Side.BUY, (None,)),
    (FIXED, Side.BUY, (FEE_ASSET,)),
    (percent("amount"), Side.BUY, (AMOUNT_ASSET,)),
    (percent("price"), Side.BUY, (PRICE_ASSET,)),
    (percent("spending"), Side.BUY, (PRICE_ASSET,)),
    (percent("spending"), Side.SELL, (AMOUNT_ASSET,)),
    (percent("receiving"), Side.BUY, (AMOUNT_ASSET,)),
    (percent("receiving"), Side.SELL, (PRICE_ASSET,)),
    (CompositeFee(DYNAMIC, discount=Discount(FEE_ASSET, Decimal(1))), Side.BUY, (None, FEE_ASSET)),
    (CompositeFee(FIXED, discount=Discount(None, Decimal(1))), Side.BUY, (FEE_ASSET,)),
    (CompositeFee(DYNAMIC, discount=Discount(None, Decimal(1))), Side.BUY, (None,)),
    (
        CompositeFee(percent("price"), discount=Discount(FEE_ASSET, Decimal(1))),
        Side.BUY,
        (PRICE_ASSET, FEE_ASSET),
    ),
]


@pytest.mark.parametrize(("fee", "side", "assets"), FEE_ASSETS)
def test_assets_of_fees(fee: OrderFee, side: Side, assets: tuple[Asset, ...]) -> None:
    assert fee_assets(fee, PAIR, side) == assets


HALF = Discount(FEE_ASSET, Decimal(50))
# The order buys 5 at 2.00, so that 10.00 are spent. The fee asset has 4 decimals and a rate of 3,
# the price asset 2 and a rate of 0.5.
LEAST: list[tuple[OrderFee, Asset, int, int, int | None]] = [
    (DYNAMIC, None, 0, 300_000, None),
    (UNEQUAL, None, 0, 300_000, None),
    (DYNAMIC, None, 400_000, 700_000, None),
    (FIXED, FEE_ASSET, 400_000, 50, None),
    (CompositeFee(DYNAMIC, discount=HALF), None, 0, 300_000, None),
    # 0.0015 coins at 3 are 0.0045.
    (CompositeFee(DYNAMIC, discount=HALF), FEE_ASSET, 0, 45, None),
    # Scripts are not cheaper: 0.0055 coins.
    (CompositeFee(DYNAMIC, discount=HALF), FEE_ASSET, 400_000, 165, None),
    (CompositeFee(DynamicFee(1, 1), discount=HALF), FEE_ASSET, 0, 1, None),
    (percent("price"), PRICE_ASSET, 0, 100, 1),
    (percent("spending"), PRICE_ASSET, 0, 100, 1),
    (percent("price", "0.01"), PRICE_ASSET, 0, 1, 1),
    (percent("price", "10.05"), PRICE_ASSET, 0, 101, 1),
    # 4 coins are worth 2.00.
    (percent("price", "10", 4 * COIN), PRICE_ASSET, 0, 200, 200),
    (percent("price", "10", 4 * COIN), PRICE_ASSET, 400_000, 200, 200),
    # 1.00 is worth 2 coins, which are worth 6, less the half.
    (CompositeFee(percent("price"), discount=HALF), FEE_ASSET, 0, 30_000, 1),
    (CompositeFee(percent("price", "1", COIN), discount=HALF), FEE_ASSET, 0, 15_000, 15_000),
]


@pytest.mark.parametrize(("fee", "asset", "extra", "least", "const"), LEAST)
def test_least_fees(fee: OrderFee, asset: Asset, extra: int, least: int, const: int | None) -> None:
    rates = Rates({FEE_ASSET: 3.0, PRICE_ASSET: 0.5})
    found = minimum_fee(Offer(PAIR, Side.BUY, 5 * COIN, 200, asset), fee, ASSETS, rates, extra)
    assert (found.fee, found.percent_const_fee) == (least, const)


def test_percents_of_amounts() -> None:
    rates = Rates({AMOUNT_ASSET: 1.0})
    offer = Offer(PAIR, Side.SELL, 5 * COIN + 1, 200, AMOUNT_ASSET)
    for kind in ("amount", "spending"):
        assert minimum_fee(offer, percent(kind), ASSETS, rates).fee == COIN // 2 + 1


def test_fees_of_scripts() -> None:
    assets = {**ASSETS, AMOUNT_ASSET: Description("", 8, scripted=True)}
    assert script_fees(PAIR, ASSETS, matcher_is_scripted=False) == 0
    assert script_fees(PAIR, ASSETS, matcher_is_scripted=True) == 400_000
    assert script_fees(PAIR, assets, matcher_is_scripted=True) == 800_000


def test_modes_of_pairs() -> None:
    chosen = custom_pairs(
        (None, AMOUNT_ASSET, FEE_ASSET),
        FIXED,
        lambda pair: is_correctly_ordered(pair, (FEE_ASSET,)),
    )
    assert set(chosen) == {
        AssetPair(None, FEE_ASSET),
        AssetPair(AMOUNT_ASSET, FEE_ASSET),
        AssetPair(AMOUNT_ASSET, None),
    }
    fee = CompositeFee(DYNAMIC, {**chosen, AssetPair(AMOUNT_ASSET, None): UNEQUAL})
    assert mode_of(fee, AssetPair(None, FEE_ASSET)) is FIXED
    assert mode_of(fee, AssetPair(AMOUNT_ASSET, None)) is UNEQUAL
    assert mode_of(fee, PAIR) is DYNAMIC
    assert mode_of(FIXED, PAIR) is FIXED


def test_accounts_without_fees() -> None:
    inner = DynamicFee(1, 1, frozenset((b"a",)))
    outer = CompositeFee(inner, {OTHER_PAIR: FIXED}, zero_fee_accounts=frozenset((b"b",)))
    assert zero_fee_accounts(outer, PAIR) == {b"a", b"b"}
    assert zero_fee_accounts(outer, OTHER_PAIR) == {b"b"}
    assert zero_fee_accounts(inner, PAIR) == {b"a"}
    assert zero_fee_accounts(FIXED, PAIR) == frozenset()


# --- rates ----------------------------------------------------------------------------------------


def last_two(rates: Rates, asset: Asset) -> tuple[float, float]:
    """The lesser and the greater."""
    return float(rates.least(asset)), float(rates.most(asset))


def test_rates_keep_their_last_two_values() -> None:
    rates = Rates({FEE_ASSET: 5.0})
    assert rates.latest() == {None: 1.0, FEE_ASSET: 5.0}
    assert last_two(rates, FEE_ASSET) == (5.0, 5.0)
    assert rates.put(FEE_ASSET, 2.0) == 5.0
    assert last_two(rates, FEE_ASSET) == (2.0, 5.0)
    assert rates.put(FEE_ASSET, 3.5) == 2.0
    assert last_two(rates, FEE_ASSET) == (2.0, 3.5)
    assert rates.put(PRICE_ASSET, 1e-7) is None
    assert rates.least(PRICE_ASSET) == Decimal("1E-7")
    assert rates.latest() == {None: 1.0, FEE_ASSET: 3.5, PRICE_ASSET: 1e-7}
    assert rates.delete(FEE_ASSET) == 3.5
    assert last_two(rates, None) == (1.0, 1.0)


@pytest.mark.parametrize(
    ("asset", "rate", "code"),
    [
        (None, 2.0, 20_971_531),
        (FEE_ASSET, 0.0, 20_971_535),
        (FEE_ASSET, -1.0, 20_971_535),
        (FEE_ASSET, float("inf"), 20_971_535),
        (FEE_ASSET, float("nan"), 20_971_535),
    ],
)
def test_rates_that_cannot_be(asset: Asset, rate: float, code: int) -> None:
    with pytest.raises(MatcherError) as caught:
        Rates().put(asset, rate)
    assert caught.value.code == code


def test_rates_that_are_not_known() -> None:
    rates = Rates()
    for ask in (rates.delete, rates.least, rates.most):
        with pytest.raises(MatcherError) as caught:
            ask(FEE_ASSET)
        assert caught.value.code == 20_971_529
    with pytest.raises(MatcherError) as caught:
        rates.delete(None)
    assert caught.value.message == "The rate for WAVES cannot be changed"
