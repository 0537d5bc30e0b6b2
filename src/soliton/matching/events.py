"""The engine's events, in the order in which they happened.

An order in an event has its state after the event.

What lives here: the events and the reasons for cancellations. What does not: who receives them
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
    """Why an order left its book, or never entered it."""

    NOT_TRACKED = "NotTracked"
    REQUEST_EXECUTED = "RequestExecuted"
    ORDER_BOOK_DELETED = "OrderBookDeleted"
    EXPIRED = "Expired"
    BECAME_UNMATCHABLE = "BecameUnmatchable"
    BECAME_INVALID = "BecameInvalid"
    INSUFFICIENT_BALANCE = "InsufficientBalance"
    NOT_SETTLED = "NotSettled"


class OrderAdded(msgspec.Struct, frozen=True, gc=False):
    """An order arrived at the book. Executions and its cancellation may follow immediately."""

    order: ActiveOrder
    timestamp: int


class OrderExecuted(msgspec.Struct, frozen=True, gc=False):
    """Two orders matched at the maker's price.

    ``taker`` and ``maker`` have their states after it. ``taker_is_done`` and ``maker_is_done`` are
    true for a filled order (with or without dust), whose reserve is released. ``offset`` is the
    command's; ``timestamp`` (milliseconds) is that of the exchange transaction.
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
        """The amount paid in the price asset."""
        return self.amount * self.price // PRICE_CONSTANT

    @property
    def buyer(self) -> ActiveOrder:
        """The buy order after the execution."""
        return self.taker if self.taker.order.side is Side.BUY else self.maker

    @property
    def seller(self) -> ActiveOrder:
        """The sell order after the execution."""
        return self.maker if self.taker.order.side is Side.BUY else self.taker

    @property
    def buy_fee(self) -> int:
        """The buyer's fee."""
        return self.taker_fee if self.taker.order.side is Side.BUY else self.maker_fee

    @property
    def sell_fee(self) -> int:
        """The seller's fee."""
        return self.maker_fee if self.taker.order.side is Side.BUY else self.taker_fee

    def taker_spending(self) -> dict[Asset, int]:
        """What the taker spent, including its fee, by asset."""
        return self._spending(self.taker, self.taker_fee)

    def maker_spending(self) -> dict[Asset, int]:
        """What the maker spent, including its fee, by asset."""
        return self._spending(self.maker, self.maker_fee)

    def _spending(self, order: ActiveOrder, fee: int) -> dict[Asset, int]:
        volume = self.price_volume if order.order.side is Side.BUY else self.amount
        spent = {order.spent_asset: volume}
        fee_asset = order.order.matcher_fee_asset
        spent[fee_asset] = spent.get(fee_asset, 0) + fee
        return spent


class OrderCanceled(msgspec.Struct, frozen=True, gc=False):
    """An order was cancelled; it has its remaining amounts."""

    order: ActiveOrder
    reason: CancelReason
    timestamp: int

    @property
    def status(self) -> OrderStatus:
        """The status reported to the owner. An order whose remainder became unmatchable is filled,
        not cancelled, if part of it was executed or it was a market order.
        """
        unmatchable = self.reason is CancelReason.BECAME_UNMATCHABLE
        if self.reason is CancelReason.NOT_SETTLED and self.order.is_market:
            # It never had a remainder that could wait.
            unmatchable = self.order.filled_amount > 0
        if unmatchable and (self.order.filled_amount > 0 or self.order.is_market):
            return OrderStatus.FILLED
        return OrderStatus.CANCELLED


class OrderCancelFailed(msgspec.Struct, frozen=True, gc=False):
    """An order to cancel was not in the book."""

    order_id: bytes
    owner: Address | None
    timestamp: int


class BookDeleted(msgspec.Struct, frozen=True, gc=False):
    """A book was deleted; the cancellations of its orders came before."""

    pair: AssetPair
    timestamp: int


class ExecutionCorrected(msgspec.Struct, frozen=True, gc=False):
    """An execution was taken back, or counts again (``stands``); see ``CorrectExecution``.

    ``taker`` and ``maker`` have their states after it. An order that is not in ``resting`` leaves
    its final state, if it had one: its ``OrderCanceled`` (with its new final state) or its
    ``OrderAdded`` (it returns to its book) follows.
    """

    taker: ActiveOrder
    maker: ActiveOrder
    resting: frozenset[bytes]
    execution_offset: int
    index: int
    amount: int
    price: int
    taker_fee: int
    maker_fee: int
    stands: bool
    timestamp: int


Event = (
    OrderAdded
    | OrderExecuted
    | OrderCanceled
    | OrderCancelFailed
    | BookDeleted
    | ExecutionCorrected
)
