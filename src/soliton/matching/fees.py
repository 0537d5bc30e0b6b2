"""The matcher's fees: the fee modes, and the fees of an execution.

What lives here: the modes as data, and the fees of executions. What does not: which mode is in
force (``rules``), and the minimum fee of an order (``minimum_fees``).

Sources: wavesplatform/matcher ``dex/src/main/scala/com/wavesplatform/dex/model/Fee.scala`` and
``settings/OrderFeeSettings.scala``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from decimal import Decimal
from enum import Enum
from functools import lru_cache
from itertools import permutations
from typing import Final

import msgspec

from soliton.chain.orders import PRICE_CONSTANT, Side
from soliton.matching.arithmetic import EXACT, multiply_up, partial_fee
from soliton.matching.model import ActiveOrder
from soliton.matching.pairs import (
    Asset,
    AssetPair,
    received_asset,
    spent_asset,
)

FeeFunction = Callable[[ActiveOrder, ActiveOrder, int], tuple[int, int]]
"""``(taker, maker, executed amount) -> (taker's fee, maker's fee)``; orders before execution."""

_SCALED_FEES: Final = 4_096
"""The size of the caches of scaled fees: offered fees repeat."""
_FIRST_VERSION_WITH_LEAST_FEE: Final = 3
_LEAST_FEE: Final = 1


class AssetType(Enum):
    """The asset that a percentage is computed on and paid in."""

    AMOUNT = "amount"
    PRICE = "price"
    RECEIVING = "receiving"
    SPENDING = "spending"


class DynamicFee(msgspec.Struct, frozen=True):
    """Base fees in units of the native coin. An order offers the greater one; makers and takers pay
    their share of it. ``zero_fee_accounts`` are public keys that pay nothing.
    """

    base_maker_fee: int
    base_taker_fee: int
    zero_fee_accounts: frozenset[bytes] = frozenset()

    @property
    def base_fee(self) -> int:
        """The minimum fee of an order."""
        return max(self.base_maker_fee, self.base_taker_fee)


class FixedFee(msgspec.Struct, frozen=True):
    """At least ``min_fee`` units of one asset, for any order."""

    asset: Asset
    min_fee: int


class PercentFee(msgspec.Struct, frozen=True):
    """``min_fee`` percent of the amount that ``asset_type`` selects, but at least the value of
    ``min_fee_in_waves`` units of the native coin.
    """

    asset_type: AssetType
    min_fee: Decimal
    min_fee_in_waves: int

    def fee_asset(self, pair: AssetPair, side: Side) -> Asset:
        """The asset the percentage is paid in."""
        match self.asset_type:
            case AssetType.AMOUNT:
                return pair.amount_asset
            case AssetType.PRICE:
                return pair.price_asset
            case AssetType.RECEIVING:
                return received_asset(pair, side)
            case AssetType.SPENDING:
                return spent_asset(pair, side)


SimpleFee = DynamicFee | FixedFee | PercentFee


class Discount(msgspec.Struct, frozen=True):
    """Fees paid in ``asset`` are ``value`` percent cheaper."""

    asset: Asset
    value: Decimal

    @property
    def factor(self) -> Decimal:
        """The factor for a fee."""
        return 1 - EXACT.divide(self.value, Decimal(100))


class CompositeFee(msgspec.Struct, frozen=True):
    """A mode for each pair, and a default."""

    default: SimpleFee
    custom: Mapping[AssetPair, SimpleFee] = msgspec.field(default_factory=dict)
    discount: Discount | None = None
    zero_fee_accounts: frozenset[bytes] = frozenset()


OrderFee = SimpleFee | CompositeFee


def custom_pairs(
    assets: Collection[Asset], mode: SimpleFee, is_traded: Callable[[AssetPair], bool]
) -> dict[AssetPair, SimpleFee]:
    """One mode for all pairs of some assets that are traded, for ``CompositeFee.custom``."""
    pairs = (AssetPair(*both) for both in permutations(assets, 2))
    return {pair: mode for pair in pairs if is_traded(pair)}


def mode_of(fee: OrderFee, pair: AssetPair) -> SimpleFee:
    """The fee mode of a pair."""
    return fee.custom.get(pair, fee.default) if isinstance(fee, CompositeFee) else fee


def zero_fee_accounts(fee: OrderFee, pair: AssetPair) -> frozenset[bytes]:
    """The public keys that pay nothing in a pair."""
    accounts = fee.zero_fee_accounts if isinstance(fee, CompositeFee) else frozenset()
    mode = mode_of(fee, pair)
    return accounts | mode.zero_fee_accounts if isinstance(mode, DynamicFee) else accounts


def fee_function(fee: OrderFee, pair: AssetPair, without_fee: frozenset[bytes]) -> FeeFunction:
    """The fee function of a pair; ``without_fee`` are public keys that pay nothing in any mode."""
    match mode_of(fee, pair):
        case PercentFee(asset_type=asset_type):
            charge = _percent_function(asset_type)
        case DynamicFee() as dynamic if dynamic.base_maker_fee != dynamic.base_taker_fee:
            charge = _scaled_function(dynamic)
        case _:
            charge = _own_fees
    exempt = without_fee | zero_fee_accounts(fee, pair)
    return _with_exemptions(charge, exempt) if exempt else charge


def _with_exemptions(charge: FeeFunction, exempt: frozenset[bytes]) -> FeeFunction:
    def with_exemptions(taker: ActiveOrder, maker: ActiveOrder, amount: int) -> tuple[int, int]:
        taker_fee, maker_fee = charge(taker, maker, amount)
        return (
            0 if taker.order.sender_public_key in exempt else taker_fee,
            0 if maker.order.sender_public_key in exempt else maker_fee,
        )

    return with_exemptions


def _own_fees(taker: ActiveOrder, maker: ActiveOrder, amount: int) -> tuple[int, int]:
    return (
        _absolute(taker, taker.order.matcher_fee, amount),
        _absolute(maker, maker.order.matcher_fee, amount),
    )


def _absolute(active: ActiveOrder, fee: int, amount: int) -> int:
    order = active.order
    part = partial_fee(fee, order.amount, amount)
    if part:
        return part
    # Later versions pay at least one unit at their first execution, however small it is.
    first = order.version >= _FIRST_VERSION_WITH_LEAST_FEE and active.amount == order.amount
    return _LEAST_FEE if first else 0


def _scaled_function(fee: DynamicFee) -> FeeFunction:
    base = Decimal(fee.base_fee)

    @lru_cache(_SCALED_FEES)
    def taker_share(offered: int) -> int:
        return multiply_up(offered, EXACT.divide(Decimal(fee.base_taker_fee), base))

    @lru_cache(_SCALED_FEES)
    def maker_share(offered: int) -> int:
        return multiply_up(offered, EXACT.divide(Decimal(fee.base_maker_fee), base))

    def scaled(taker: ActiveOrder, maker: ActiveOrder, amount: int) -> tuple[int, int]:
        return (
            _absolute(taker, taker_share(taker.order.matcher_fee), amount),
            _absolute(maker, maker_share(maker.order.matcher_fee), amount),
        )

    return scaled


def _percent_function(asset_type: AssetType) -> FeeFunction:
    def percent(taker: ActiveOrder, maker: ActiveOrder, amount: int) -> tuple[int, int]:
        price = maker.order.price
        taker_fee = _percent_base(taker)
        if asset_type is AssetType.SPENDING and taker.order.side is Side.BUY:
            factor = EXACT.divide(Decimal(price), Decimal(taker.order.price))
            taker_fee = multiply_up(taker_fee, factor)
        return (
            _percent_share(taker, taker_fee, amount, price, asset_type),
            _percent_share(maker, _percent_base(maker), amount, price, asset_type),
        )

    return percent


def _percent_base(active: ActiveOrder) -> int:
    least = active.percent_min_fee
    return active.order.matcher_fee if least is None else least


def _percent_share(
    active: ActiveOrder, fee: int, amount: int, price: int, asset_type: AssetType
) -> int:
    const = active.percent_const_min_fee
    side = active.order.side
    return partial_fee(
        fee if const is None else max(const, fee),
        charged_amount(asset_type, side, active.order.amount, price),
        charged_amount(asset_type, side, amount, price),
    )


def charged_amount(asset_type: AssetType, side: Side, amount: int, price: int) -> int | Decimal:
    """The amount that a percentage is computed on, for an amount at a price; not rounded if it is
    in the price asset.
    """
    in_price_asset = asset_type is AssetType.PRICE or (
        asset_type is (AssetType.SPENDING if side is Side.BUY else AssetType.RECEIVING)
    )
    if not in_price_asset:
        return amount
    return EXACT.divide(EXACT.multiply(Decimal(amount), Decimal(price)), Decimal(PRICE_CONSTANT))
