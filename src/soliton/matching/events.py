"""What the engine answers: events, in the order in which things happened.

An order's state in an event is the one after the event.

What lives here: the events and the reasons of cancellations. What does not: who is told
(``soliton.matcher``).

Source: wavesplatform/matcher
``dex/src/main/scala/com/wavesplatform/dex/model/MatcherModel.scala``.
"""

from __future__ import annotations

from enum import Enum

import msgspec

from soliton.chain.addresses import Address
from soliton.chain.orders import PRICE_CONSTANT, Side
from soliton.matching.model import ActiveOrder, OrderStatus
from soliton.matching.pairs import Asset, AssetPair


class CancelReason(Enum):
    """Why an order left its book, or never came into it."""

    NOT_TRACKED = "NotTracked"
    REQUEST_EXECUTED = "RequestExecuted"
    ORDER_BOOK_DELETED = "OrderBookDeleted"
    EXPIRED = "Expired"
    BECAME_UNMATCHABLE = "BecameUnmatchable"
    BECAME_INVALID = "BecameInvalid"
    INSUFFICIENT_BALANCE = "InsufficientBalance"


class OrderAdded(msgspec.Struct, frozen=True, gc=False):
    """An order came to the book. Executions and a cancellation of it may follow at once."""

    order: ActiveOrder
    timestamp: int


class OrderExecuted(msgspec.Struct, frozen=True, gc=False):
    """Two orders met at the maker's price.

    ``taker`` and ``maker`` are as they stand afterwards; ``taker_is_done`` and ``maker_is_done``
    tell which of them is filled (with or without dust), so that what is reserved for it is free.
    ``offset`` is the command's; ``timestamp`` (milliseconds) is that of the exchange transaction.
    """

    taker: ActiveOrder
    maker: ActiveOrder
    amount: int
    price: int
    taker_fee: int
    maker_fee: int
    taker_is_done: bool
    maker_is_done: bool
    timestamp: int
    offset: int

    @property
    def price_volume(self) -> int:
        """What was paid in the price asset."""
        return self.amount * self.price // PRICE_CONSTANT

    @property
    def buyer(self) -> ActiveOrder:
        """The buying order, after it."""
        return self.taker if self.taker.order.side is Side.BUY else self.maker

    @property
    def seller(self) -> ActiveOrder:
        """The selling order, after it."""
        return self.maker if self.taker.order.side is Side.BUY else self.taker

    @property
    def buy_fee(self) -> int:
        """The fee of the buyer."""
        return self.taker_fee if self.taker.order.side is Side.BUY else self.maker_fee

    @property
    def sell_fee(self) -> int:
        """The fee of the seller."""
        return self.maker_fee if self.taker.order.side is Side.BUY else self.taker_fee

    def taker_spending(self) -> dict[Asset, int]:
        """What the taker gave, its fee with it, by asset."""
        return self._spending(self.taker, self.taker_fee)

    def maker_spending(self) -> dict[Asset, int]:
        """What the maker gave, its fee with it, by asset."""
        return self._spending(self.maker, self.maker_fee)

    def _spending(self, order: ActiveOrder, fee: int) -> dict[Asset, int]:
        volume = self.price_volume if order.order.side is Side.BUY else self.amount
        spent = {order.spent_asset: volume}
        fee_asset = order.order.matcher_fee_asset
        spent[fee_asset] = spent.get(fee_asset, 0) + fee
        return spent


class OrderCanceled(msgspec.Struct, frozen=True, gc=False):
    """An order is out, with what remained of it."""

    order: ActiveOrder
    reason: CancelReason
    timestamp: int

    @property
    def status(self) -> OrderStatus:
        """What it counts as. The rest of an order that could not be matched any further is no
        cancellation to its owner if part of it was filled, or if it was a market order.
        """
        unmatchable = self.reason is CancelReason.BECAME_UNMATCHABLE
        if unmatchable and (self.order.filled_amount > 0 or self.order.is_market):
            return OrderStatus.FILLED
        return OrderStatus.CANCELLED


class OrderCancelFailed(msgspec.Struct, frozen=True, gc=False):
    """An order that was to be cancelled is not in the book."""

    order_id: bytes
    owner: Address | None
    timestamp: int


class BookDeleted(msgspec.Struct, frozen=True, gc=False):
    """A book is gone; the cancellations of its orders came before."""

    pair: AssetPair
    timestamp: int


Event = OrderAdded | OrderExecuted | OrderCanceled | OrderCancelFailed | BookDeleted
