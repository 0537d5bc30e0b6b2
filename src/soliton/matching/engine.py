"""The engine: all order books, driven by the commands of a journal.

The engine is deterministic: the same commands with the same offsets, timestamps and settings give
the same events and the same books. It raises for no command that ``commands.decode`` returns.

What lives here: the books, and what each command does. What does not: whether a command is allowed
(``validation``), and the transport of commands and events (``soliton.matcher``).

Source: wavesplatform/matcher
``dex/src/main/scala/com/wavesplatform/dex/actors/orderbook/OrderBookActor.scala``.
"""

from __future__ import annotations

from typing import Final

from soliton.matching import snapshots
from soliton.matching.book import OrderBook
from soliton.matching.commands import (
    CancelAllOrders,
    CancelOrder,
    CancelSource,
    Command,
    CorrectExecution,
    DeleteOrderBook,
    PlaceMarketOrder,
    PlaceOrder,
)
from soliton.matching.corrections import correct
from soliton.matching.events import BookDeleted, CancelReason, Event, OrderCancelFailed
from soliton.matching.model import ActiveOrder, limit_order, market_order
from soliton.matching.pairs import Asset, AssetPair
from soliton.matching.rules import MatchingSettings

NOTHING_APPLIED: Final = -1
"""The offset of an engine that has applied no command."""

_REASONS: Final = {
    CancelSource.NOT_TRACKED: CancelReason.NOT_TRACKED,
    CancelSource.REQUEST: CancelReason.REQUEST_EXECUTED,
    CancelSource.EXPIRATION: CancelReason.EXPIRED,
    CancelSource.BALANCE_TRACKING: CancelReason.INSUFFICIENT_BALANCE,
}


class Engine:
    """All order books. One caller applies commands in the order of their offsets."""

    __slots__ = ("_books", "_homes", "last_offset", "last_timestamp", "settings")

    def __init__(self, settings: MatchingSettings) -> None:
        self.settings = settings
        self.last_offset = NOTHING_APPLIED
        self.last_timestamp = 0
        # Keyed by a tuple, which spares making an ``AssetPair`` for every command.
        self._books: dict[tuple[Asset, Asset], OrderBook] = {}
        self._homes: dict[bytes, OrderBook] = {}

    def apply(self, offset: int, timestamp: int, command: Command) -> list[Event]:
        """Apply a command and return its events in order; timestamps are in milliseconds.

        A command at or before ``last_offset`` was applied already and does nothing, so that a
        journal can be replayed from before a snapshot. An order already in its book does nothing
        either.
        """
        if offset <= self.last_offset:
            return []
        self.last_offset = offset
        self.last_timestamp = timestamp
        match command:
            case PlaceOrder():
                active = limit_order(
                    command.order, command.percent_min_fee, command.percent_const_min_fee
                )
                return self._place(active, offset, timestamp)
            case CancelOrder():
                return self._cancel(command, timestamp)
            case PlaceMarketOrder(order=order, available_for_spending=available):
                active = market_order(
                    *(order, available, command.percent_min_fee, command.percent_const_min_fee),
                    whole_units=command.whole_units,
                )
                return self._place(active, offset, timestamp)
            case CancelAllOrders(pair=pair):
                book = self.book(pair)
                if book is None:
                    return []
                return book.cancel_all(CancelReason.REQUEST_EXECUTED, timestamp)
            case DeleteOrderBook(pair=pair):
                return self._delete(pair, timestamp)
            case CorrectExecution():
                return self._correct(command, offset, timestamp)

    def skip(self, offset: int, timestamp: int) -> None:
        """Advance past a command that is not applied."""
        if offset > self.last_offset:
            self.last_offset = offset
            self.last_timestamp = timestamp

    def _place(self, active: ActiveOrder, offset: int, timestamp: int) -> list[Event]:
        order = active.order
        key = (order.amount_asset, order.price_asset)
        book = self._books.get(key)
        if book is None:
            book = self._books[key] = OrderBook(AssetPair(*key), timestamp)
            book.homes = self._homes
        elif order.id in book.index:
            return []
        terms = book.terms
        if terms is None or offset >= terms.until:
            terms = book.terms = self.settings.terms_at(book.pair, offset)
        return book.add(active, timestamp, terms, offset)

    def _cancel(self, command: CancelOrder, timestamp: int) -> list[Event]:
        pair = command.pair
        book = self._books.get((pair.amount_asset, pair.price_asset))
        if book is not None:
            canceled = book.cancel(command.order_id, _REASONS[command.source], timestamp)
            if canceled is not None:
                return [canceled]
        return [OrderCancelFailed(command.order_id, command.owner, timestamp)]

    def _delete(self, pair: AssetPair, timestamp: int) -> list[Event]:
        book = self._books.pop((pair.amount_asset, pair.price_asset), None)
        if book is None:
            return []
        events = book.cancel_all(CancelReason.ORDER_BOOK_DELETED, timestamp)
        events.append(BookDeleted(pair, timestamp))
        return events

    def _correct(self, command: CorrectExecution, offset: int, timestamp: int) -> list[Event]:
        events, returning = correct(command, self.book(command.pair), timestamp)
        for active in returning:
            events += self._place(active, offset, timestamp)
        return events

    # --- reading ----------------------------------------------------------------------------------

    def book(self, pair: AssetPair) -> OrderBook | None:
        """The book of a pair (read only), or None if nothing was ever placed."""
        return self._books.get((pair.amount_asset, pair.price_asset))

    def order(self, order_id: bytes) -> ActiveOrder | None:
        """A resting order, in whatever book it is, or None."""
        book = self._homes.get(order_id)
        return None if book is None else book.get(order_id)

    def books(self) -> list[OrderBook]:
        """All books (read only), in the order of creation."""
        return list(self._books.values())

    def tick_size(self, pair: AssetPair, amount_decimals: int, price_decimals: int) -> int:
        """The normalised tick size for the next order of a pair."""
        offset = self.last_offset + 1
        return self.settings.order_tick_size(pair, offset, amount_decimals, price_decimals)

    # --- snapshots --------------------------------------------------------------------------------

    def snapshot(self) -> bytes:
        """The engine's whole state as bytes, without the settings."""
        return snapshots.write(self.last_offset, self.last_timestamp, self.books())

    def begin_snapshot(self) -> snapshots.Writing:
        """The same snapshot, written in slices between further commands."""
        return snapshots.Writing(self.last_offset, self.last_timestamp, self.books())

    def restore(self, data: bytes) -> None:
        """Restore the state that ``snapshot`` wrote; raises ``SnapshotError`` and changes nothing
        if the bytes are not a snapshot.
        """
        offset, timestamp, books = snapshots.read(data)
        self.last_offset, self.last_timestamp = offset, timestamp
        self._books = {(book.pair.amount_asset, book.pair.price_asset): book for book in books}
        self._homes = {}
        for book in books:
            self._homes.update(book.homes)
            book.homes = self._homes
