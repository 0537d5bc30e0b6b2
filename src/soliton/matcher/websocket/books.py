"""The stream of one order book: its full state, then the levels that changed.

Every message has the number ``N`` of the last command that it knows of. Who was away for a while
subscribes with the last number seen, and gets what came since as long as it is remembered, else the
full state.

What lives here: subscribers of a book and what they are sent. What does not: the book, and limits
on subscriptions (``hub``).

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
"""Changes of a book that are kept for those who come back."""
MAX_AT_ONCE: Final = MAX_WAITING // 2
"""So many are sent to one of them; who has missed more gets the full state, which is shorter."""


class BookFeed:
    """Everybody who watches one pair."""

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
        self._tick_size = core.engine.tick_size(pair)
        self._remembered: deque[tuple[int, int, bytes]] = deque(maxlen=MAX_REMEMBERED)
        self._sent_to = core.engine.last_offset
        self._kept_snapshot: bytes | None = None
        self._watch()

    def __len__(self) -> int:
        return len(self._updates)

    def add(self, connection: Connection, resume: int | None) -> None:
        """Send a newcomer the state, or what came after the number that was seen last."""
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
        """Forget a subscriber."""
        self._updates.pop(connection, None)

    def close(self) -> None:
        """Nobody watches any more: the book need not remember its changes."""
        if self._book is not None:
            self._book.bids.changed = self._book.asks.changed = None
            self._book = None

    def flush(self) -> None:
        """Send what changed since the last time."""
        book = self._core.engine.book(self._pair)
        if book is not self._book:
            self._change_book()
            return
        if book is None:
            return
        bids, asks = book.bids.take_changes(), book.asks.take_changes()
        trade = book.last_trade if book.last_trade is not self._trade else None
        tick_size = self._core.engine.tick_size(self._pair)
        if not bids and not asks and trade is None and tick_size == self._tick_size:
            return
        body = self._body(book.changed_at, bids, asks, trade)
        if tick_size != self._tick_size:
            body["s"] = {"m": {"t": self._price(tick_size)}}
        self._trade, self._tick_size = book.last_trade, tick_size
        self._send(body)

    def _send(self, body: dict[str, Any]) -> None:
        self._kept_snapshot = None
        encoded = encode(body)
        before, self._sent_to = self._sent_to, self._core.engine.last_offset
        self._remembered.append((before, self._sent_to, encoded))
        for connection, update_id in self._updates.items():
            self._updates[connection] = update_id = next_update_id(update_id)
            connection.push(numbered(update_id, encoded))

    def _since(self, number: int) -> list[bytes] | None:
        """The changes after a number, or ``None`` where some of them are forgotten or they are
        too many.
        """
        if number > self._sent_to:
            return None
        oldest = self._remembered[0][0] if self._remembered else self._sent_to
        if number < oldest:
            return None
        missed = [body for _, last, body in self._remembered if last > number]
        return missed if len(missed) <= MAX_AT_ONCE else None

    def _change_book(self) -> None:
        """The book is another one: deleted, made by its first order, or read anew. To subscribers
        that is one change more: what the one had is gone, what the other has is there.
        """
        before = _empty_levels(self._book)
        self._watch()
        book = self._book
        after = ([], []) if book is None else book.depth(len(book))
        bids, asks = (
            gone | {level.price: level for level in levels}
            for gone, levels in zip(before, after, strict=True)
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
        """The full state; a book of thousands of levels is written once for all who come."""
        if self._kept_snapshot is None:
            self._kept_snapshot = encode(self._snapshot())
        return self._kept_snapshot

    def _snapshot(self) -> dict[str, Any]:
        book = self._book
        if book is None:
            body = self._body(self._core.now(), (), (), None)
        else:
            bids, asks = book.depth(len(book))
            body = self._body(book.changed_at, bids, asks, book.last_trade)
        settings: dict[str, Any] = {"m": {"t": self._price(self._tick_size)}}
        found = self._core.placement.restrictions.get(self._pair)
        if found is not None:
            settings["r"] = {
                "a": _texts(found.min_amount, found.step_amount, found.max_amount),
                "p": _texts(found.min_price, found.step_price, found.max_price),
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
    """All bids and asks that a book has, or had when it was looked at last, as gone."""
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
