"""The stream of one order book: its full state, then the changed levels.

Every message has the offset ``N`` of the last command it includes. A client that reconnects
subscribes with the last offset it has seen, and receives the changes since, if they are still
buffered, otherwise the full state.

What lives here: the subscribers of a book and their messages. What does not: the book, and limits
on subscriptions (``subscriptions``).

Sources: wavesplatform/matcher
``dex/src/main/scala/com/wavesplatform/dex/api/ws/state/WsOrderBookState.scala``,
``protocol/WsOrderBookChanges.scala``; the numbers are ours.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from decimal import Decimal
from typing import Any, Final

from soliton.matcher.service import Matcher
from soliton.matcher.websocket.connection import MAX_WAITING, Connection
from soliton.matcher.websocket.messages import encode, next_update_id, numbered
from soliton.matcher.websocket.numbers import amount_text, double_text, price_text
from soliton.matching.book import LastTrade, LevelTotal, OrderBook
from soliton.matching.pairs import AssetPair

MAX_REMEMBERED: Final = 256
"""The number of changes of a book that are buffered for reconnecting clients."""
MAX_AT_ONCE: Final = MAX_WAITING // 2
"""The maximum number of buffered changes sent to a client; beyond it, the full state is shorter."""


class BookFeed:
    """The subscribers of one pair."""

    def __init__(
        self, core: Matcher, pair: AssetPair, amount_decimals: int, price_decimals: int
    ) -> None:
        self._core = core
        self._pair = pair
        self._amount_decimals = amount_decimals
        self._price_decimals = price_decimals
        self._updates: dict[Connection, int] = {}
        self._book: OrderBook | None = None
        self._trade: LastTrade | None = None
        self._tick_size = core.engine.tick_size(pair, amount_decimals, price_decimals)
        self._recent: deque[tuple[int, int, bytes]] = deque(maxlen=MAX_REMEMBERED)
        self._sent_to = core.engine.last_offset
        self._cached_snapshot: bytes | None = None
        self._watch()

    def __len__(self) -> int:
        return len(self._updates)

    def add(self, connection: Connection, resume: int | None) -> None:
        """Add a subscriber, and send it the full state, or the changes since ``resume``."""
        self.flush()
        missed = None if resume is None else self._since(resume)
        if missed is None:
            self._updates[connection] = 0
            connection.push(numbered(0, self._encoded_snapshot()))
            return
        update_id = 0
        for body in missed:
            update_id = next_update_id(update_id)
            connection.push(numbered(update_id, body))
        self._updates[connection] = update_id

    def remove(self, connection: Connection) -> None:
        """Remove a subscriber."""
        self._updates.pop(connection, None)

    def close(self) -> None:
        """Stop tracking changes, after the last subscriber has left."""
        if self._book is not None:
            self._book.bids.changed = self._book.asks.changed = None
            self._book = None

    def flush(self) -> None:
        """Send the changes since the last time."""
        book = self._core.engine.book(self._pair)
        if book is not self._book:
            self._change_book()
            return
        if book is None:
            return
        bids, asks = book.bids.take_changes(), book.asks.take_changes()
        trade = book.last_trade if book.last_trade is not self._trade else None
        tick_size = self._core.engine.tick_size(
            self._pair, self._amount_decimals, self._price_decimals
        )
        if not bids and not asks and trade is None and tick_size == self._tick_size:
            return
        body = self._body(book.changed_at, bids, asks, trade)
        if tick_size != self._tick_size:
            body["s"] = {"m": {"t": self._price(tick_size)}}
        self._trade, self._tick_size = book.last_trade, tick_size
        self._send(body)

    def _send(self, body: dict[str, Any]) -> None:
        self._cached_snapshot = None
        encoded = encode(body)
        before, self._sent_to = self._sent_to, self._core.engine.last_offset
        self._recent.append((before, self._sent_to, encoded))
        for connection, update_id in self._updates.items():
            self._updates[connection] = update_id = next_update_id(update_id)
            connection.push(numbered(update_id, encoded))

    def _since(self, offset: int) -> list[bytes] | None:
        """The changes after an offset, or ``None`` if some are no longer buffered, or if there are
        too many.
        """
        if offset > self._sent_to:
            return None
        oldest = self._recent[0][0] if self._recent else self._sent_to
        if offset < oldest:
            return None
        missed = [body for _, last, body in self._recent if last > offset]
        return missed if len(missed) <= MAX_AT_ONCE else None

    def _change_book(self) -> None:
        """Switch to another book object, after a deletion, the first order, or a recovery. For
        subscribers it is a change: the old levels are removed, the new ones added.
        """
        before = _empty_levels(self._book)
        self._watch()
        book = self._book
        after = ([], []) if book is None else book.depth(len(book))
        bids, asks = (
            removed | {level.price: level for level in levels}
            for removed, levels in zip(before, after, strict=True)
        )
        self._send(
            self._body(
                self._core.now() if book is None else book.changed_at,
                [bids[price] for price in sorted(bids, reverse=True)],
                [asks[price] for price in sorted(asks)],
                None if book is None else book.last_trade,
            )
        )

    def _watch(self) -> None:
        self._book = self._core.engine.book(self._pair)
        if self._book is not None:
            self._book.bids.take_changes()
            self._book.asks.take_changes()
            self._trade = self._book.last_trade

    def _encoded_snapshot(self) -> bytes:
        """The full state, encoded once for all new subscribers until the next change."""
        if self._cached_snapshot is None:
            self._cached_snapshot = encode(self._snapshot())
        return self._cached_snapshot

    def _snapshot(self) -> dict[str, Any]:
        book = self._book
        if book is None:
            body = self._body(self._core.now(), (), (), None)
        else:
            bids, asks = book.depth(len(book))
            body = self._body(book.changed_at, bids, asks, book.last_trade)
        settings: dict[str, Any] = {"m": {"t": self._price(self._tick_size)}}
        limits = self._core.placement.restrictions.get(self._pair)
        if limits is not None:
            settings["r"] = {
                "a": _texts(limits.min_amount, limits.step_amount, limits.max_amount),
                "p": _texts(limits.min_price, limits.step_price, limits.max_price),
            }
        return {**body, "s": settings}

    def _body(
        self,
        timestamp: int,
        bids: Iterable[LevelTotal],
        asks: Iterable[LevelTotal],
        trade: LastTrade | None,
    ) -> dict[str, Any]:
        body: dict[str, Any] = {
            "T": "ob",
            "_": timestamp,
            "S": self._pair.key,
            "N": self._core.engine.last_offset,
        }
        if levels := self._levels(asks):
            body["a"] = levels
        if levels := self._levels(bids):
            body["b"] = levels
        if trade is not None:
            body["t"] = [
                self._price(trade.price),
                self._amount(trade.amount),
                trade.side.name.lower(),
            ]
        return body

    def _levels(self, levels: Iterable[LevelTotal]) -> list[tuple[str, str]]:
        return [(self._price(level.price), self._amount(level.amount)) for level in levels]

    def _price(self, units: int) -> str:
        return price_text(units, self._amount_decimals, self._price_decimals)

    def _amount(self, units: int) -> str:
        return amount_text(units, self._amount_decimals)


def _empty_levels(book: OrderBook | None) -> tuple[dict[int, LevelTotal], dict[int, LevelTotal]]:
    """Removals of all bids and asks that a book has, or had at the last flush."""
    if book is None:
        return {}, {}
    bids, asks = book.bids.take_changes(), book.asks.take_changes()
    now_bids, now_asks = book.depth(len(book))
    return (
        {level.price: LevelTotal(level.price, 0) for level in (*bids, *now_bids)},
        {level.price: LevelTotal(level.price, 0) for level in (*asks, *now_asks)},
    )


def _texts(*values: Decimal) -> list[str]:
    return [double_text(value) for value in values]
