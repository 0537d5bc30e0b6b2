"""The minimum fee of an order.

What lives here: the accepted fee assets, and the minimum in each. What does not: the fee modes and
the fees of executions (``fees``).

Source: wavesplatform/matcher
``dex/src/main/scala/com/wavesplatform/dex/model/OrderValidator.scala`` and
``ExchangeTransactionCreator.scala``.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Final

import msgspec

from soliton.chain.orders import Order, Side
from soliton.matching.arithmetic import EXACT, round_up
from soliton.matching.fees import (
    CompositeFee,
    Discount,
    DynamicFee,
    FixedFee,
    OrderFee,
    PercentFee,
    charged_amount,
    mode_of,
)
from soliton.matching.pairs import Asset, AssetPair, pair_of
from soliton.matching.placement import Assets, description
from soliton.matching.rates import Rates, in_units

SCRIPT_FEE: Final = 400_000
"""The extra fee for each script in an exchange, in units of the native coin."""


class Offer(msgspec.Struct, frozen=True):
    """The fields of an order that its fee depends on."""

    pair: AssetPair
    side: Side
    amount: int
    price: int
    fee_asset: Asset


class MinimumFee(msgspec.Struct, frozen=True):
    """The minimum fee; for percent fees also the part that does not depend on the amount."""

    fee: int
    percent_const_fee: int | None = None


def offer_of(order: Order) -> Offer:
    """The fields of an order that its fee depends on."""
    return Offer(pair_of(order), order.side, order.amount, order.price, order.matcher_fee_asset)


def fee_assets(fee: OrderFee, pair: AssetPair, side: Side) -> tuple[Asset, ...]:
    """The accepted fee assets: the usual one, then the discounted one."""
    mode = mode_of(fee, pair)
    if isinstance(mode, FixedFee):
        return (mode.asset,)
    usual = mode.fee_asset(pair, side) if isinstance(mode, PercentFee) else None
    discount = discount_of(fee)
    if discount is None or discount.asset == usual:
        return (usual,)
    return (usual, discount.asset)


def script_fees(pair: AssetPair, assets: Assets, matcher_is_scripted: bool) -> int:
    """The extra fee for the scripts of the matcher's account and of a pair's assets."""
    amount_asset = description(pair.amount_asset, assets)
    price_asset = description(pair.price_asset, assets)
    return SCRIPT_FEE * (matcher_is_scripted + amount_asset.scripted + price_asset.scripted)


def minimum_fee(
    offer: Offer, fee: OrderFee, assets: Assets, rates: Rates, extra: int = 0
) -> MinimumFee:
    """The minimum fee of an order, in units of its fee asset. ``extra`` is the fee for scripts in
    units of the native coin, which only dynamic fees cover. Raises ``MatcherError`` for an asset
    without a rate.
    """
    discount, mode = discount_of(fee), mode_of(fee, offer.pair)
    if discount is None and offer.fee_asset is None and isinstance(mode, DynamicFee):
        # The usual case: nothing to convert.
        return MinimumFee(mode.base_fee + extra)
    factor = Decimal(1)
    if discount is not None and discount.asset == offer.fee_asset:
        factor = discount.factor
    match mode:
        case FixedFee(min_fee=least):
            return MinimumFee(least)
        case DynamicFee() as dynamic:
            base = EXACT.add(EXACT.multiply(factor, Decimal(dynamic.base_fee)), Decimal(extra))
            return MinimumFee(round_up(_by_rate(base, offer.fee_asset, assets, rates)))
        case PercentFee() as percent:
            const = _by_rate(Decimal(percent.min_fee_in_waves), offer.fee_asset, assets, rates)
            share = _percent_in_fee_asset(offer, percent, assets, rates)
            const, share = EXACT.multiply(factor, const), EXACT.multiply(factor, share)
            return MinimumFee(round_up(max(share, const)), round_up(const))


def percent_of(offer: Offer, percent: PercentFee, price: int, share: Decimal) -> Decimal:
    """A percentage ``share`` of the charged amount, for an order at a price."""
    charged = charged_amount(percent.asset_type, offer.side, offer.amount, price)
    return EXACT.divide(EXACT.multiply(Decimal(charged), share), Decimal(100))


def discount_of(fee: OrderFee) -> Discount | None:
    """The discount in force, if any."""
    return fee.discount if isinstance(fee, CompositeFee) else None


def _by_rate(native: Decimal, asset: Asset, assets: Assets, rates: Rates) -> Decimal:
    if asset is None:
        return native
    return EXACT.multiply(native, _rate_in_units(rates.least(asset), asset, assets))


def _percent_in_fee_asset(
    offer: Offer, percent: PercentFee, assets: Assets, rates: Rates
) -> Decimal:
    share = percent_of(offer, percent, offer.price, percent.min_fee)
    own = percent.fee_asset(offer.pair, offer.side)
    if own == offer.fee_asset:
        return share
    own_rate = _rate_in_units(rates.most(own), own, assets)
    paid_rate = _rate_in_units(rates.least(offer.fee_asset), offer.fee_asset, assets)
    return EXACT.divide(EXACT.multiply(share, paid_rate), own_rate)


def _rate_in_units(rate: Decimal, asset: Asset, assets: Assets) -> Decimal:
    return in_units(rate, description(asset, assets).decimals)
