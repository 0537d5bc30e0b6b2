"""An order in the matcher: its remaining amounts and its status.

What lives here: ``ActiveOrder``, its derived amounts, and statuses. What does not: the signed order
itself (``soliton.chain.orders``) and whether it may be placed (``validation``).

Source: wavesplatform/matcher
``dex/src/main/scala/com/wavesplatform/dex/model/MatcherModel.scala``.
"""

from __future__ import annotations

from enum import Enum

import msgspec

from soliton.chain.addresses import Address, from_public_key
from soliton.chain.orders import PRICE_CONSTANT, Order, Side
from soliton.matching.arithmetic import can_go_on
from soliton.matching.pairs import Asset, AssetPair, pair_of


class OrderStatus(Enum):
    """The status of an order, by the name that clients see."""

    ACCEPTED = "Accepted"
    PARTIALLY_FILLED = "PartiallyFilled"
    FILLED = "Filled"
    CANCELLED = "Cancelled"
    NOT_FOUND = "NotFound"


class ActiveOrder(msgspec.Struct, frozen=True, gc=False):
    """An order and its remaining amounts.

    ``amount`` and ``fee`` are what remains of the order's amount and fee. ``price_nominator`` is
    the sum of executed amounts times their prices. ``available_for_spending`` is what a market
    order may still spend of the asset it sells; zero for a limit order. The percent fees are those
    in force when the order was placed, in units of the fee asset. A market order with
    ``whole_units`` sells no part of a limited amount for which it receives nothing; orders of older
    journals may.
    """

    order: Order
    is_market: bool
    amount: int
    fee: int
    price_nominator: int = 0
    available_for_spending: int = 0
    percent_min_fee: int | None = None
    percent_const_min_fee: int | None = None
    whole_units: bool = False

    @property
    def id(self) -> bytes:
        """The order's id."""
        return self.order.id

    @property
    def owner(self) -> Address:
        """The account that placed it."""
        return from_public_key(self.order.sender_public_key, self.order.chain_id)

    @property
    def pair(self) -> AssetPair:
        """The pair it trades."""
        return pair_of(self.order)

    @property
    def spent_asset(self) -> Asset:
        """The asset it spends."""
        order = self.order
        return order.price_asset if order.side is Side.BUY else order.amount_asset

    @property
    def filled_amount(self) -> int:
        """The executed amount, in the amount asset."""
        return self.order.amount - self.amount

    @property
    def filled_fee(self) -> int:
        """The part of the matcher's fee that was paid."""
        return self.order.matcher_fee - self.fee

    @property
    def average_price(self) -> int:
        """The mean price of its executions, weighted by amount, rounded down; 0 if none."""
        filled = self.filled_amount
        return self.price_nominator // filled if filled else 0

    @property
    def executed_price_assets(self) -> int:
        """The total of its executions in the price asset; the sum is rounded down once."""
        return self.price_nominator // PRICE_CONSTANT

    @property
    def can_go_on(self) -> bool:
        """Whether its remainder is more than dust."""
        return can_go_on(self.amount, self.order.price, self.order.price)

    @property
    def status(self) -> OrderStatus:
        """The status, unless the order has been cancelled."""
        if self.amount == self.order.amount:
            return OrderStatus.ACCEPTED
        return OrderStatus.PARTIALLY_FILLED if self.can_go_on else OrderStatus.FILLED

    def required_balance(self) -> dict[Asset, int]:
        """What it needs at its own price, by asset: the spent asset and the remaining fee."""
        order = self.order
        if order.side is Side.BUY:
            spent, volume = order.price_asset, self.amount * order.price // PRICE_CONSTANT
        else:
            spent, volume = order.amount_asset, self.amount
        if order.matcher_fee_asset == spent:
            return {spent: volume + self.fee}
        return {spent: volume, order.matcher_fee_asset: self.fee}

    def reservable_balance(self) -> dict[Asset, int]:
        """The amounts to reserve for it, by asset; for a market order, what it may spend."""
        required = self.required_balance()
        if self.is_market:
            spent = self.spent_asset
            if self.available_for_spending == 0:
                del required[spent]
            else:
                required[spent] = self.available_for_spending
        return required


def limit_order(
    order: Order, percent_min_fee: int | None = None, percent_const_min_fee: int | None = None
) -> ActiveOrder:
    """A limit order without executions."""
    return ActiveOrder(
        order, False, order.amount, order.matcher_fee, 0, 0, percent_min_fee, percent_const_min_fee
    )


def market_order(
    order: Order,
    available_for_spending: int,
    percent_min_fee: int | None = None,
    percent_const_min_fee: int | None = None,
    *,
    whole_units: bool = False,
) -> ActiveOrder:
    """A market order without executions."""
    return ActiveOrder(
        order,
        is_market=True,
        amount=order.amount,
        fee=order.matcher_fee,
        available_for_spending=available_for_spending,
        percent_min_fee=percent_min_fee,
        percent_const_min_fee=percent_const_min_fee,
        whole_units=whole_units,
    )
