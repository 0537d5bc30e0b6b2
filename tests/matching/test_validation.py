"""Every refusal of an order, by text tables: `changes | outcome`.

`changes` are keyword arguments of ``refusal`` in Python, against an order that is taken; the
outcome is ``ok``, or the kind of the error and the beginning of its message.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any

import msgspec
import pytest

from soliton.chain.addresses import from_public_key
from soliton.chain.orders import Side
from soliton.matcher.exchanges import NATIVE
from soliton.matching.book import LevelTotal, MarketStatus
from soliton.matching.errors import MatcherError
from soliton.matching.fees import (
    AssetType,
    CompositeFee,
    Discount,
    DynamicFee,
    FixedFee,
    OrderFee,
    PercentFee,
)
from soliton.matching.pairs import Asset, AssetPair, pair_of
from soliton.matching.placement import (
    AssetDescription,
    Deviations,
    PlacementContext,
    PlacementSettings,
    Restrictions,
)
from soliton.matching.rates import Rates
from soliton.matching.rules import MatchingSettings
from soliton.matching.validation import check_asset, check_order, check_pair
from tests.matching.makers import (
    AMOUNT_ASSET,
    CHAIN_ID,
    DAY_MS,
    FEE_ASSET,
    MATCHER,
    NOW,
    PAIR,
    PRICE_ASSET,
    account,
    make_order,
)

COIN = 10**8
ALICE = from_public_key(account("alice"), CHAIN_ID)
REVERSED = PAIR.reversed() if PAIR.amount_asset > PAIR.price_asset else PAIR  # type: ignore[operator]
SORTED = REVERSED.reversed()
"""Bytes decide where no price assets are listed: the greater asset is the amount asset."""


class Description(msgspec.Struct, frozen=True):
    """An asset of a test."""

    name: str
    decimals: int
    scripted: bool = False


ASSETS: dict[Asset, AssetDescription] = {
    None: NATIVE,
    AMOUNT_ASSET: Description("Amount", 8),
    PRICE_ASSET: Description("Price of something", 2),
    FEE_ASSET: Description("Fee", 4),
}


def refusal(
    *,
    fee_mode: OrderFee | None = None,
    offset: int = 10,
    v4_from: int = 0,
    ticks: tuple[tuple[int, int], ...] = (),
    features: tuple[int, ...] = (9, 10, 12, 17),
    matcher: bytes = MATCHER,
    matcher_is_scripted: bool = False,
    scripted: Asset = b"none",
    decimals: dict[Asset, int] | None = None,
    without: Asset = b"none",
    rates: dict[Asset, float] | None = None,
    market: tuple[int, int] | None = None,
    now: int = NOW,
    wallet: bytes | None = None,
    sender_key: bytes | None = None,
    settings: dict[str, Any] | None = None,
    side: Side = Side.BUY,
    amount: int = COIN,
    price: int = 200,
    **order: Any,
) -> str:
    """What comes of checking an order under these circumstances."""
    placed = make_order(side, amount, price, **order)
    if wallet is not None or sender_key is not None:
        placed = msgspec.structs.replace(
            placed, eip712_signature=wallet, sender_public_key=sender_key or b"\1" * 32
        )
    assets = {
        asset: Description(
            known.name,
            (decimals or {}).get(asset, known.decimals),
            scripted=asset == scripted,
        )
        for asset, known in ASSETS.items()
        if asset != without
    }
    context = PlacementContext(
        settings=PlacementSettings(matcher_public_key=matcher, **(settings or {})),
        matching=MatchingSettings(
            order_fees=((-1, fee_mode or DynamicFee(300_000, 300_000)),),
            tick_sizes={pair_of(placed): ticks},
            order_v4_start_offset=v4_from,
        ),
        last_offset=offset,
        now=now,
        assets=assets,
        rates=Rates(rates or {}),
        features=frozenset(features),
        matcher_is_scripted=matcher_is_scripted,
        market=market and _market(*market),
    )
    return outcome(lambda: check_order(placed, context))


def _market(bid: int, ask: int) -> MarketStatus:
    return MarketStatus(
        None, LevelTotal(bid, COIN) if bid else None, LevelTotal(ask, COIN) if ask else None
    )


def outcome(check: Any) -> str:
    """``ok``, or the kind and message of the refusal."""
    try:
        check()
    except MatcherError as error:
        return f"{error.kind.name} {error.message}"
    return "ok"


ORDERS = """
version=1 | ok
version=2 | ok
version=3 | ok
version=4 | ok
side=SELL | ok
without=AMOUNT_ASSET | AssetNotFound The asset
without=PRICE_ASSET | AssetNotFound The asset
without=FEE_ASSET, fee_asset=FEE_ASSET | AssetNotFound The asset
without=FEE_ASSET | ok
version=4, wallet=b"s" * 64 | OrderInvalidSignature The signature of order
version=3, wallet=b"s" * 65 | OrderInvalidSignature The signature of order
version=4, wallet=b"s" * 65, sender_key=b"k" * 64 | OrderInvalidSignature The signature of order
version=4, wallet=b"s" * 64 + b"\x1b", sender_key=b"k" * 64 | ok
decimals={PRICE_ASSET: 0}, price=2**63 - 1 | OrderCommonValidationFailed The order is invalid: Price
matcher=b"m" * 32 | UnexpectedMatcherPublicKey The required matcher public key for this DEX is 8NAD
settings={"blacklisted_addresses": {ALICE}} | AddressIsBlacklisted The account 3F
settings={"blacklisted_addresses": {ALICE}}, sender="bob" | ok
settings={"allowed_versions": (3, 1)}, version=2 | OrderVersionDenied The orders of version 2 are de
settings={"blacklisted_assets": {FEE_ASSET}}, fee_asset=FEE_ASSET | FeeAssetBlacklisted The fee asse
settings={"blacklisted_assets": {FEE_ASSET}} | ok
fee_asset=FEE_ASSET | UnexpectedFeeAsset Required one of the following fee asset: WAVES. But given
fee_mode=FixedFee(FEE_ASSET, 7), fee=7, fee_asset=FEE_ASSET | ok
fee_mode=FixedFee(FEE_ASSET, 7), fee=6, fee_asset=FEE_ASSET | FeeNotEnough Required 0.0007
fee_mode=FixedFee(FEE_ASSET, 7) | UnexpectedFeeAsset Required one of
version=4, v4_from=11 | UnsupportedOrderVersion The orders of version 4 is not supported. Supported
version=4, v4_from=10 | ok
fee=300000 | ok
fee=299999 | FeeNotEnough Required 0.003 WAVES as fee for this order, but given 0.00299999 WAVES
fee_mode=DynamicFee(300001, 5), fee=300000 | FeeNotEnough Required 0.00300001 WAVES
expiration=NOW + 60000 | WrongExpiration The expiration should be at least 1700000000000 + 60000 = 1
expiration=NOW + 60001 | ok
expiration=NOW + 30 * DAY | ok
expiration=NOW + 30 * DAY + 1 | OrderCommonValidationFailed The order is invalid: expiration should
timestamp=0 | OrderCommonValidationFailed The order is invalid: timestamp should be > 0
timestamp=NOW + 10**9 | ok
amount=0 | OrderCommonValidationFailed The order is invalid: amount should be > 0
amount=10**18 | OrderCommonValidationFailed The order is invalid: amount too large
amount=10**18 - 1, price=100 | ok
price=0 | OrderCommonValidationFailed The order is invalid: price should be > 0
price=-1 | OrderCommonValidationFailed The order is invalid: price should be > 0
amount=499999, price=200 | OrderCommonValidationFailed The order is invalid: SpendAmount should be >
amount=500000, price=200 | ok
amount=499999, price=200, side=SELL | OrderCommonValidationFailed The order is invalid: ReceiveAmoun
amount=10**17, price=2**63 // 10**9 + 1 | OrderCommonValidationFailed The order is invalid: SpendAmo
amount=10**17, price=2**63 // 10**9 + 1, side=SELL | OrderCommonValidationFailed The order is invali
amount=10**8, price=2**63 - 1, pair=TO_NATIVE | OrderCommonValidationFailed The order is invalid: Sp
amount=10**8, price=2**63 - 300001, pair=TO_NATIVE | OrderCommonValidationFailed The order is invali
amount=10**8, price=2**63 - 1, pair=TO_NATIVE, side=SELL | OrderCommonValidationFailed The order is
pair=SAME | OrderCommonValidationFailed The order is invalid: Invalid AssetPair
fee=10**18 | OrderCommonValidationFailed The order is invalid: matcherFee too large
fee=0, fee_mode=FixedFee(None, 0) | OrderCommonValidationFailed The order is invalid: matcherFee sho
ticks=((0, 201),) | OrderInvalidPriceLevel The buy order's price 2 does not meet matcher's requireme
ticks=((0, 200),) | ok
ticks=((0, 201),), side=SELL | ok
ticks=((0, 1), (11, 201)) | OrderInvalidPriceLevel The buy
ticks=((0, 1), (12, 201)) | ok
version=2, features=() | OrderVersionUnsupported The order of version 2 isn't yet supported, see the
version=3, features=(10,) | OrderVersionUnsupported The order of version 3 isn't yet supported, see
version=4, features=(10, 12) | OrderVersionUnsupported The order of version 4 isn't
version=1, features=() | ok
matcher_is_scripted=True, fee=699999 | FeeNotEnough Required 0.007 WAVES as fee for this order
matcher_is_scripted=True, fee=700000 | ok
scripted=AMOUNT_ASSET, fee=699999 | FeeNotEnough Required 0.007 WAVES
scripted=PRICE_ASSET, matcher_is_scripted=True, fee=1099999 | FeeNotEnough Required 0.011 WAVES
scripted=FEE_ASSET | ok
fee_mode=FixedFee(None, 5), matcher_is_scripted=True, fee=5 | ok
decimals={AMOUNT_ASSET: 2, PRICE_ASSET: 8}, price=1000001 | PriceLastDecimalsMustBeZero Invalid pric
decimals={AMOUNT_ASSET: 2, PRICE_ASSET: 8}, price=1000000 | ok
"""

PERCENTS = """
**PERCENT, fee=2000 | ok
**PERCENT, fee=1999 | FeeNotEnough Required 20
"""

DEVIATIONS = """
market=(200, 220), price=150 | ok
market=(200, 220), price=149 | DeviantOrderPrice The buy order's price 1.49 is out of deviation boun
market=(200, 220), price=242 | ok
market=(200, 220), price=243 | DeviantOrderPrice The buy order's price 2.43
market=(0, 220), price=1 | ok
market=(200, 0), price=10000 | ok
price=10000 | ok
market=(200, 220), price=180, side=SELL | ok
market=(200, 220), price=179, side=SELL | DeviantOrderPrice The sell order's price 1.79 is out of de
market=(200, 220), price=275, side=SELL | ok
market=(200, 220), price=276, side=SELL | DeviantOrderPrice The sell order's price 2.76
market=(201, 0), price=151 | ok
market=(201, 0), price=150 | DeviantOrderPrice The buy
"""

RESTRICTED = """
amount=2 * COIN, price=150 | ok
amount=2 * COIN - COIN // 2, price=150 | OrderInvalidAmount The order's amount 1.5
amount=1 * COIN, price=150 | OrderInvalidAmount The order's amount 1 534D
amount=10 * COIN, price=150 | ok
amount=10 * COIN + COIN // 2, price=150 | OrderInvalidAmount The order's amount 10.5
amount=2 * COIN + 1, price=150 | OrderInvalidAmount The order's amount 2.00000001
amount=2 * COIN, price=99 | OrderInvalidPrice The order's price 0.99 does not meet matcher's require
amount=2 * COIN, price=110 | OrderInvalidPrice The order's price 1.1 does
amount=2 * COIN, price=325 | OrderInvalidPrice The order's price 3.25
amount=2 * COIN, price=300 | ok
"""

FIRST = """
without=AMOUNT_ASSET, matcher=b"m" * 32 | AssetNotFound
matcher=b"m" * 32, settings={"allowed_versions": (1,)}, fee=1 | UnexpectedMatcherPublicKey
settings={"allowed_versions": (1,), "blacklisted_addresses": {ALICE}} | AddressIsBlacklisted
settings={"allowed_versions": (1,)}, fee_asset=FEE_ASSET | OrderVersionDenied
fee_asset=FEE_ASSET, version=4, v4_from=99 | UnexpectedFeeAsset
version=4, v4_from=99, fee=1 | UnsupportedOrderVersion
fee=1, expiration=NOW | FeeNotEnough
expiration=NOW, amount=0 | WrongExpiration
amount=0, features=() | OrderCommonValidationFailed
ticks=((0, 1000),), features=() | OrderInvalidPriceLevel
features=(), side=SELL, decimals={AMOUNT_ASSET: 0, PRICE_ASSET: 8} | OrderVersionUnsupported
matcher_is_scripted=True, side=SELL, decimals={AMOUNT_ASSET: 0, PRICE_ASSET: 8} | FeeNotEnough
decimals={AMOUNT_ASSET: 0, PRICE_ASSET: 8}, features=() | OrderInvalidPriceLevel
"""

PERCENT = {
    "fee_mode": PercentFee(AssetType.PRICE, Decimal(10), 1),
    "amount": 100 * COIN,
    "fee_asset": PRICE_ASSET,
    "rates": {PRICE_ASSET: 1.0},
}
NAMES = {
    **{name: value for name, value in globals().items() if name.isupper()},
    "BUY": Side.BUY,
    "SELL": Side.SELL,
    "DAY": DAY_MS,
    "D": Decimal,
    "PRICE": AssetType.PRICE,
    "TO_NATIVE": AssetPair(AMOUNT_ASSET, None),
    "SAME": AssetPair(AMOUNT_ASSET, AMOUNT_ASSET),
    **{kind.__name__: kind for kind in (DynamicFee, FixedFee, PercentFee)},
}


def _rows(table: str) -> list[str]:
    return table.strip().splitlines()


def _check(row: str, **more: Any) -> None:
    changes, _, expected = (cell.strip() for cell in row.partition("|"))
    given = eval(f"dict({changes})", dict(NAMES))
    found = refusal(**more, **given)
    assert found == "ok" if expected == "ok" else found.startswith(expected), found


@pytest.mark.parametrize("row", _rows(ORDERS + PERCENTS))
def test_orders(row: str) -> None:
    _check(row)


@pytest.mark.parametrize("row", _rows(FIRST))
def test_the_first_fault_is_told(row: str) -> None:
    _check(row)


@pytest.mark.parametrize("row", _rows(DEVIATIONS))
def test_deviations_of_prices(row: str) -> None:
    _check(row, settings={"deviations": Deviations(Decimal(25), Decimal(10), Decimal(50))})


@pytest.mark.parametrize("row", _rows(RESTRICTED))
def test_restrictions(row: str) -> None:
    limits = Restrictions(*map(Decimal, ("0.5", "2", "10", "0.25", "1", "3")))
    _check(row, settings={"restrictions": {PAIR: limits}})


@pytest.mark.parametrize(
    ("side", "market", "fee", "expected"),
    [
        # 10 % of a price volume of 2.20 at the best ask, less the half: 0.11.
        (Side.BUY, (200, 220), 22, "ok"),
        (Side.BUY, (200, 4_000), 22, "ok"),
        (Side.BUY, (200, 4_400), 22, "ok"),
        (
            Side.BUY,
            (200, 4_500),
            22,
            "DeviantOrderMatcherFee The buy order's matcher fee 0.22 ",
        ),
        (Side.BUY, (4_500, 0), 22, "ok"),
        (
            Side.SELL,
            (4_500, 4_600),
            22,
            "DeviantOrderMatcherFee The sell order's matcher fee 0.22 ",
        ),
        (Side.SELL, (0, 4_500), 22, "ok"),
    ],
)
def test_deviations_of_fees(side: Side, market: tuple[int, int], fee: int, expected: str) -> None:
    wide = Deviations(Decimal(10**6), Decimal(10**6), Decimal(90))
    found = refusal(
        settings={"deviations": wide},
        fee_mode=PercentFee(AssetType.PRICE, Decimal(5), 1),
        rates={PRICE_ASSET: 0.5},
        fee_asset=PRICE_ASSET,
        fee=fee,
        side=side,
        market=market,
    )
    assert found.startswith(expected), found


PAIRS = """
{} | SORTED | ok
{} | REVERSED | OrderAssetPairReversed The
{} | SAME | AssetPairSameAssets The amount and price assets must be different, but they are
{} | AssetPair(FEE_ASSET, None) | ok
{} | AssetPair(None, FEE_ASSET) | OrderAssetPairReversed The WAVES-
{"price_assets": (FEE_ASSET,)} | AssetPair(None, FEE_ASSET) | ok
{"price_assets": (FEE_ASSET,)} | AssetPair(FEE_ASSET, None) | OrderAssetPairReversed
{"price_assets": (FEE_ASSET, None)} | AssetPair(None, FEE_ASSET) | ok
{"price_assets": (None, FEE_ASSET)} | AssetPair(None, FEE_ASSET) | OrderAssetPairReversed
{"white_list_only": True} | SORTED | AssetPairIsDenied Trading is denied for the
{"white_list_only": True, "allowed_pairs": {SORTED}} | SORTED | ok
{"allowed_pairs": {REVERSED}} | REVERSED | ok
{"allowed_pairs": {SORTED}, "blacklisted_assets": {AMOUNT_ASSET, PRICE_ASSET}} | SORTED | ok
{"blacklisted_assets": {AMOUNT_ASSET, PRICE_ASSET}} | SORTED | PriceAssetBlacklisted The price asset
{"blacklisted_assets": {SORTED.amount_asset}} | SORTED | AmountAssetBlacklisted The amount asset
{"blacklisted_names": (re.compile("of some"),)} | AssetPair(PRICE_ASSET, None) | AmountAssetBlacklis
{"blacklisted_names": (re.compile("^of some"),)} | AssetPair(PRICE_ASSET, None) | ok
{"blacklisted_names": (re.compile("WAVES"),)} | AssetPair(PRICE_ASSET, None) | ok
{} | AssetPair(b"u" * 32, None) | AssetNotFound The asset
"""


@pytest.mark.parametrize("row", _rows(PAIRS))
def test_pairs(row: str) -> None:
    given, pair, expected = (cell.strip() for cell in row.split(" | "))
    names = {**NAMES, "AssetPair": AssetPair, "re": re, "REVERSED": REVERSED, "SORTED": SORTED}
    settings = PlacementSettings(MATCHER, **eval(given, dict(names)))
    found = outcome(lambda: check_pair(eval(pair, dict(names)), settings, ASSETS))
    assert found == "ok" if expected == "ok" else found.startswith(expected), found


def test_pairs_by_their_ids_alone() -> None:
    settings = PlacementSettings(
        MATCHER, blacklisted_assets=frozenset((FEE_ASSET,)), blacklisted_names=(re.compile(""),)
    )
    check_pair(AssetPair(b"u" * 32, None), settings, None)
    assert outcome(lambda: check_asset(FEE_ASSET, settings, None)).startswith("AssetBlacklisted")
    check_asset(None, settings, ASSETS)


def test_percent_fees_are_stored_with_the_order() -> None:
    order = make_order(Side.BUY, 100 * COIN, 200, fee=2_000, fee_asset=PRICE_ASSET)
    percent = PercentFee(AssetType.PRICE, Decimal(10), 10**6)
    context = PlacementContext(
        settings=PlacementSettings(MATCHER),
        matching=MatchingSettings(order_fees=((-1, CompositeFee(percent)),)),
        last_offset=0,
        now=NOW,
        assets=ASSETS,
        rates=Rates({PRICE_ASSET: 10.0}),
        features=frozenset((12,)),
    )
    fees = check_order(order, context)
    # A hundredth of a coin is worth a tenth of a price asset: 10 units.
    assert (fees.percent_min_fee, fees.percent_const_min_fee) == (2_000, 10)
    dynamic = msgspec.structs.replace(context, matching=MatchingSettings())
    fees = check_order(make_order(Side.BUY, COIN, 200), dynamic)
    assert (fees.percent_min_fee, fees.percent_const_min_fee) == (None, None)


def test_discounts_count() -> None:
    fee = CompositeFee(DynamicFee(300_000, 300_000), discount=Discount(FEE_ASSET, Decimal(25)))
    # 0.00225 coins at 2 for a coin are 45 units; rates of the last two are both good.
    paid: dict[str, Any] = {"fee_mode": fee, "fee_asset": FEE_ASSET, "rates": {FEE_ASSET: 2.0}}
    assert refusal(fee=45, **paid) == "ok"
    assert refusal(fee=44, **paid).startswith("FeeNotEnough Required 0.0045")
    assert refusal(fee=45, fee_mode=fee, fee_asset=FEE_ASSET).startswith("RateNotFound The rate")


@pytest.mark.parametrize(
    ("decimals", "price", "v4_from", "features", "is_taken"),
    [
        # Eight decimals for none: the price of an exchange of version 3 is 10**8 times as high.
        ((8, 0), 10**10, 0, (9, 10, 12, 15, 17), True),
        ((8, 0), 10**10 + 1, 0, (9, 10, 12, 15, 17), False),
        ((8, 0), 2 * 10**10, 0, (9, 10, 12, 15, 17), False),
        ((8, 8), 10**18, 0, (9, 10, 12, 15, 17), True),
        ((8, 8), 10**18 + 1, 0, (9, 10, 12, 15, 17), False),
        # None for eight: it is lower, but version 2 has the order's own price.
        ((0, 8), 2 * 10**18, 0, (9, 10, 12, 15, 17), True),
        ((0, 8), 2 * 10**18, 10**9, (9, 10, 12, 15, 17), False),
        ((0, 8), 2 * 10**18, 0, (9, 10, 12), False),
    ],
)
@pytest.mark.parametrize("side", [Side.BUY, Side.SELL])
def test_a_price_that_no_exchange_can_have_is_refused(
    side: Side,
    decimals: tuple[int, int],
    price: int,
    v4_from: int,
    features: tuple[int, ...],
    is_taken: bool,
) -> None:
    found = refusal(
        side=side,
        amount=4 if price >= 10**18 else 10**4,
        price=price,
        v4_from=v4_from,
        features=features,
        decimals={AMOUNT_ASSET: decimals[0], PRICE_ASSET: decimals[1]},
    )
    assert ("the price of an exchange would be" in found) is not is_taken, found
