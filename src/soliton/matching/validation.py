"""Checks of an order that need neither its account nor its signature, in the reference's order, so
that the same error is reported first.

1. ``check_pair``: whether the pair is traded here;
2. ``check_order``: form, settings, time, tick, deviations, activated versions, fees with scripts,
   decimals and restrictions.

What lives here: these checks. What does not: the rules on an order alone (``validity``), the
records they read (``placement``), the later checks (``account_checks``).

Sources: wavesplatform/matcher
``dex/src/main/scala/com/wavesplatform/dex/model/{ValidationStages,OrderValidator}.scala`` and
``AssetPairBuilder.scala``.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Final

import msgspec

from soliton.chain.addresses import ETHEREUM_KEY_BITS, from_public_key
from soliton.chain.features import DESCRIPTIONS, Feature
from soliton.chain.orders import MAX_AMOUNT, Order, Side, fault
from soliton.chain.values import MAX_I64
from soliton.crypto import base58
from soliton.matching import errors
from soliton.matching.arithmetic import (
    EXACT,
    correct_by_tick,
    decimal_text,
    fixed_price,
    normalize_amount,
    normalize_price,
    power_of_ten,
    round_half_up,
)
from soliton.matching.errors import ErrorKind, MatcherError
from soliton.matching.fees import DynamicFee, OrderFee, PercentFee, mode_of
from soliton.matching.minimum_fees import (
    fee_assets,
    minimum_fee,
    offer_of,
    percent_of,
    script_fees,
)
from soliton.matching.pairs import (
    Asset,
    AssetPair,
    asset_text,
    is_correctly_ordered,
    pair_of,
)
from soliton.matching.placement import (
    Assets,
    Deviations,
    PlacementContext,
    PlacementSettings,
    amount_param,
    description,
    price_param,
)
from soliton.matching.validity import form_fault, order_fault, wallet_fault

MIN_EXPIRATION_MS: Final = 60_000
"""The minimum time until an order expires."""
VERSION_FEATURES: Final = {
    2: Feature.SMART_ACCOUNT_TRADING,
    3: Feature.ORDER_V3,
    4: Feature.RIDE_V6,
}
"""The feature that must be active for orders of a version; version 1 needs none."""
_FIRST_PROTOBUF_VERSION: Final = 4
_FIXED_PRICE_VERSION: Final = 3
_HUNDRED: Final = Decimal(100)


class AcceptedFees(msgspec.Struct, frozen=True):
    """The percent fees stored with an order, if its pair is charged by percentage."""

    percent_min_fee: int | None
    percent_const_min_fee: int | None


_NO_PERCENTS: Final = AcceptedFees(None, None)

# --- pairs ----------------------------------------------------------------------------------------


def check_pair(pair: AssetPair, settings: PlacementSettings, assets: Assets | None) -> None:
    """Raises ``MatcherError`` if a pair is not traded here. Without ``assets`` neither names nor
    existence are checked.
    """
    if pair in settings.allowed_pairs:
        return
    if settings.white_list_only:
        raise MatcherError(errors.ASSET_PAIR_IS_DENIED, assetPair=pair)
    if pair.amount_asset == pair.price_asset:
        raise MatcherError(errors.ASSET_PAIR_SAME_ASSETS, assetId=asset_text(pair.amount_asset))
    if not is_correctly_ordered(pair, settings.price_assets):
        raise MatcherError(errors.ORDER_ASSET_PAIR_REVERSED, assetPair=pair)
    check_asset(pair.price_asset, settings, assets, errors.PRICE_ASSET_BLACKLISTED)
    check_asset(pair.amount_asset, settings, assets, errors.AMOUNT_ASSET_BLACKLISTED)


def is_allowed(pair: AssetPair, settings: PlacementSettings) -> bool:
    """Whether the settings allow a pair, names of assets aside."""
    try:
        check_pair(pair, settings, None)
    except MatcherError:
        return False
    return True


def check_asset(
    asset: Asset,
    settings: PlacementSettings,
    assets: Assets | None,
    kind: ErrorKind = errors.ASSET_BLACKLISTED,
) -> None:
    """Raises ``MatcherError`` of the given kind if the asset's id or name is blacklisted."""
    if asset is None:
        return
    name = "" if assets is None else description(asset, assets).name
    if asset in settings.blacklisted_assets or any(
        pattern.search(name) for pattern in settings.blacklisted_names if assets is not None
    ):
        raise MatcherError(kind, assetId=asset_text(asset))


# --- the order ------------------------------------------------------------------------------------


def check_order(order: Order, context: PlacementContext) -> AcceptedFees:
    """Check everything but the signature and the account's balance; raises ``MatcherError``."""
    pair = pair_of(order)
    amount_decimals = description(pair.amount_asset, context.assets).decimals
    price_decimals = description(pair.price_asset, context.assets).decimals
    description(order.matcher_fee_asset, context.assets)
    fee = context.matching.order_fee_at(context.last_offset + 1)
    _check_executable(order, amount_decimals, price_decimals)
    _check_settings(order, context)
    fees = _check_fee(order, pair, fee, context)
    _check_time(order, context.now)
    _check_tick(order, pair, context, amount_decimals, price_decimals)
    if context.settings.deviations is not None:
        _check_deviations(order, pair, fee, context.settings.deviations, context)
    _check_version(order, context.features)
    _check_settleable(order, context)
    if isinstance(mode_of(fee, pair), DynamicFee):
        extra = script_fees(pair, context.assets, context.matcher_is_scripted)
        if extra:  # otherwise it was checked above
            _check_least_fee(order, fee, context, extra)
    _check_decimals(order, amount_decimals, price_decimals)
    if context.settings.restrictions:
        _check_restrictions(order, pair, context)
    return fees


def _check_executable(order: Order, amount_decimals: int, price_decimals: int) -> None:
    fault = wallet_fault(order) or form_fault(order)
    if fault is not None:
        raise invalid_signature(order, f"Ethereum signature is invalid: {fault}")
    if fixed_price(order.price, amount_decimals, price_decimals) > MAX_I64:
        details = "Price is not convertible to fixed decimals format"
        raise MatcherError(errors.ORDER_COMMON_VALIDATION_FAILED, details=details)
    if not order.sender_public_key:
        raise invalid_signature(order, "Ethereum signature is invalid")


def invalid_signature(order: Order, details: str) -> MatcherError:
    """The error for an order's signature."""
    return MatcherError(errors.ORDER_INVALID_SIGNATURE, id=base58.encode(order.id), details=details)


def _check_settings(order: Order, context: PlacementContext) -> None:
    settings = context.settings
    if order.matcher_public_key != settings.matcher_public_key:
        raise MatcherError(
            errors.UNEXPECTED_MATCHER_PUBLIC_KEY,
            required=base58.encode(settings.matcher_public_key),
            given=base58.encode(order.matcher_public_key),
        )
    address = from_public_key(order.sender_public_key, order.chain_id)
    if address in settings.blacklisted_addresses:
        raise MatcherError(errors.ADDRESS_IS_BLACKLISTED, address=base58.encode(address))
    if order.version not in settings.allowed_versions:
        raise MatcherError(
            errors.ORDER_VERSION_DENIED,
            version=order.version,
            allowedOrderVersions=tuple(sorted(settings.allowed_versions)),
        )
    fee_asset = order.matcher_fee_asset
    if fee_asset is not None and fee_asset in settings.blacklisted_assets:
        raise MatcherError(errors.FEE_ASSET_BLACKLISTED, assetId=asset_text(fee_asset))


def _check_fee(
    order: Order, pair: AssetPair, fee: OrderFee, context: PlacementContext
) -> AcceptedFees:
    required = fee_assets(fee, pair, order.side)
    if order.matcher_fee_asset not in required:
        raise MatcherError(
            errors.UNEXPECTED_FEE_ASSET,
            required=tuple(map(asset_text, required)),
            given=asset_text(order.matcher_fee_asset),
        )
    if (
        order.version >= _FIRST_PROTOBUF_VERSION
        and context.last_offset < context.matching.order_v4_start_offset
    ):
        raise MatcherError(errors.UNSUPPORTED_ORDER_VERSION, version=order.version)
    least, const = _check_least_fee(order, fee, context)
    if isinstance(mode_of(fee, pair), PercentFee):
        return AcceptedFees(least, const)
    return _NO_PERCENTS


def _check_least_fee(
    order: Order, fee: OrderFee, context: PlacementContext, extra: int = 0
) -> tuple[int, int | None]:
    least = minimum_fee(offer_of(order), fee, context.assets, context.rates, extra)
    if order.matcher_fee < least.fee:
        asset = order.matcher_fee_asset
        raise MatcherError(
            errors.FEE_NOT_ENOUGH,
            required=amount_param(least.fee, asset, context.assets),
            given=amount_param(order.matcher_fee, asset, context.assets),
        )
    return least.fee, least.percent_const_fee


def _check_time(order: Order, now: int) -> None:
    if order.expiration <= now + MIN_EXPIRATION_MS:
        raise MatcherError(
            errors.WRONG_EXPIRATION,
            currentTimestamp=now,
            minExpirationOffset=MIN_EXPIRATION_MS,
            minExpiration=now + MIN_EXPIRATION_MS,
            given=order.expiration,
        )
    fault = order_fault(order, now)
    if fault is not None:
        raise MatcherError(errors.ORDER_COMMON_VALIDATION_FAILED, details=fault)


def _check_tick(
    order: Order,
    pair: AssetPair,
    context: PlacementContext,
    amount_decimals: int,
    price_decimals: int,
) -> None:
    tick_size = context.matching.order_tick_size(
        pair, context.last_offset + 1, amount_decimals, price_decimals
    )
    if order.side is Side.BUY and correct_by_tick(order.price, order.side, tick_size) <= 0:
        raise MatcherError(
            errors.ORDER_INVALID_PRICE_LEVEL,
            price=price_param(order.price, pair, context.assets),
            tickSize=price_param(tick_size, pair, context.assets),
        )


def _check_version(order: Order, features: frozenset[int]) -> None:
    if order.version == 1:
        return
    feature = VERSION_FEATURES.get(order.version)
    if feature is None:
        raise MatcherError(errors.UNSUPPORTED_ORDER_VERSION, version=order.version)
    if feature not in features:
        raise MatcherError(
            errors.ORDER_VERSION_UNSUPPORTED,
            version=order.version,
            featureName=DESCRIPTIONS[feature],
        )


def _check_settleable(order: Order, context: PlacementContext) -> None:
    """The chain's rules on what the reference matcher does not look at. An order that no block may
    hold would cost those their orders who are matched with it.
    """
    features = context.features
    _check_exchange_price(order, context)
    if order.attachment is not None:
        details = fault(order, context.now)
        if details is None and Feature.LIGHT_NODE not in features:
            details = "Attachment field for orders is not supported yet"
        if details is not None:
            raise MatcherError(errors.ORDER_COMMON_VALIDATION_FAILED, details=details)
    if (
        order.eip712_signature is not None
        and Feature.CONSENSUS_IMPROVEMENTS not in features
        and int.from_bytes(order.sender_public_key, "big").bit_length() < ETHEREUM_KEY_BITS
    ):
        raise invalid_signature(order, "Invalid public key for Ethereum orders")


def _check_exchange_price(order: Order, context: PlacementContext) -> None:
    """An order rests at its own price, and an exchange at that price must be possible. Source:
    wavesplatform/Waves
    ``node/src/main/scala/com/wavesplatform/transaction/validation/impl/ExchangeTxValidator.scala``.
    """
    assets = context.assets
    decimals = assets[order.amount_asset].decimals, assets[order.price_asset].decimals
    # The price of version 3; orders outlive the change to it.
    highest = fixed_price(order.price, *decimals)
    version = context.matching.exchange_version_at(context.last_offset + 1)
    if version < _FIXED_PRICE_VERSION or Feature.BLOCK_V5 not in context.features:
        highest = max(highest, order.price)
    if highest > MAX_AMOUNT:
        details = f"the price of an exchange would be {highest}, more than {MAX_AMOUNT}"
        raise MatcherError(errors.ORDER_COMMON_VALIDATION_FAILED, details=details)


def _check_decimals(order: Order, amount_decimals: int, price_decimals: int) -> None:
    insignificant = max(0, price_decimals - amount_decimals)
    if order.price % power_of_ten(insignificant):
        raise MatcherError(
            errors.PRICE_LAST_DECIMALS_MUST_BE_ZERO, insignificantDecimals=insignificant
        )


# --- deviations and restrictions ------------------------------------------------------------------


def _check_deviations(
    order: Order,
    pair: AssetPair,
    fee: OrderFee,
    deviations: Deviations,
    context: PlacementContext,
) -> None:
    market = context.market
    bid = None if market is None else market.best_bid
    ask = None if market is None else market.best_ask
    buys = order.side is Side.BUY
    below, above = deviations.max_price_profit, deviations.max_price_loss
    if not buys:
        below, above = above, below
    low = None if bid is None else _scaled(bid.price, _HUNDRED - below)
    high = None if ask is None else _scaled(ask.price, _HUNDRED + above)
    if (low is not None and order.price < low) or (high is not None and order.price > high):
        raise MatcherError(
            errors.DEVIANT_ORDER_PRICE,
            form=0 if buys else 1,
            price=price_param(order.price, pair, context.assets),
            bestBidPercent=decimal_text(_HUNDRED - below),
            bestAskPercent=decimal_text(_HUNDRED + above),
        )
    mode = fee if isinstance(fee, PercentFee) else None
    counter = ask if buys else bid
    if mode is None or counter is None:
        return
    share = _HUNDRED - deviations.max_fee_deviation
    least_share = EXACT.divide(EXACT.multiply(mode.min_fee, share), _HUNDRED)
    if order.matcher_fee < percent_of(offer_of(order), mode, counter.price, least_share):
        given = amount_param(order.matcher_fee, order.matcher_fee_asset, context.assets)
        percent = decimal_text(share)
        if buys:
            raise MatcherError(
                errors.DEVIANT_ORDER_MATCHER_FEE, matcherFee=given, bestAskFeePercent=percent
            )
        raise MatcherError(
            errors.DEVIANT_ORDER_MATCHER_FEE, form=1, matcherFee=given, bestBidFeePercent=percent
        )


def _scaled(price: int, percent: Decimal) -> int:
    return round_half_up(EXACT.divide(EXACT.multiply(Decimal(price), percent), _HUNDRED))


def _check_restrictions(order: Order, pair: AssetPair, context: PlacementContext) -> None:
    restrictions = context.settings.restrictions.get(pair)
    if restrictions is None:
        return
    amount_decimals = description(pair.amount_asset, context.assets).decimals
    price_decimals = description(pair.price_asset, context.assets).decimals

    def amount_units(value: Decimal) -> int:
        return normalize_amount(value, amount_decimals)

    def price_units(value: Decimal) -> int:
        return normalize_price(value, amount_decimals, price_decimals)

    bounds = (restrictions.min_amount, restrictions.max_amount, restrictions.step_amount)
    if not _fits(order.amount, *map(amount_units, bounds)):
        raise MatcherError(
            errors.ORDER_INVALID_AMOUNT,
            amount=amount_param(order.amount, pair.amount_asset, context.assets),
            max=decimal_text(bounds[1]),
            min=decimal_text(bounds[0]),
            step=decimal_text(bounds[2]),
        )
    bounds = (restrictions.min_price, restrictions.max_price, restrictions.step_price)
    if not _fits(order.price, *map(price_units, bounds)):
        raise MatcherError(
            errors.ORDER_INVALID_PRICE,
            price=price_param(order.price, pair, context.assets),
            max=decimal_text(bounds[1]),
            min=decimal_text(bounds[0]),
            step=decimal_text(bounds[2]),
        )


def _fits(value: int, least: int, most: int, step: int) -> bool:
    return least <= value <= most and value % max(step, 1) == 0
