"""The operator's stream: executions and cancellations of all accounts.

Messages are numbered by the offset of the last command they include. A client that reconnects sends
the last offset it has seen, and receives the events since.

What lives here: accumulating events, and the messages. What does not: the operator's key (``hub``).

Source: wavesplatform/matcher
``dex/src/main/scala/com/wavesplatform/dex/api/ws/actors/WsInternalBroadcastActor.scala``,
``entities/WsFullOrder.scala``. The reference serves this stream without authentication.
"""

from __future__ import annotations

from collections import deque
from itertools import takewhile
from typing import Any, Final

from soliton.chain.addresses import address_text
from soliton.crypto import base58
from soliton.matcher.errors import NodeUnavailable
from soliton.matcher.records import describe
from soliton.matcher.service import Matcher
from soliton.matcher.websocket.addresses import Decimals
from soliton.matcher.websocket.connection import Connection
from soliton.matcher.websocket.messages import encode
from soliton.matcher.websocket.numbers import amount_text, price_text
from soliton.matching.events import (
    Event,
    ExecutionCorrected,
    OrderCanceled,
    OrderExecuted,
)
from soliton.matching.model import ActiveOrder, OrderStatus
from soliton.matching.pairs import asset_text

MAX_REMEMBERED: Final = 10_000
"""The number of events buffered for reconnecting clients, and sent after one interval."""

_Reported = OrderExecuted | OrderCanceled | ExecutionCorrected


class InternalFeed:
    """The subscribers of the operator's stream."""

    def __init__(self, core: Matcher, decimals: Decimals) -> None:
        self._core = core
        self._decimals = decimals
        self._connections: set[Connection] = set()
        self._events: deque[tuple[int, _Reported]] = deque(maxlen=MAX_REMEMBERED)
        self._sent_to = core.engine.last_offset

    async def add(self, connection: Connection, resume: int | None) -> None:
        """Add a subscriber, and send it the events since the offset ``resume``."""
        await self.flush()
        missed = [] if resume is None else self._since(resume)
        if missed:
            connection.push(await self._message(missed))
        self._connections.add(connection)

    def remove(self, connection: Connection) -> None:
        """Remove a subscriber."""
        self._connections.discard(connection)

    def on_event(self, offset: int, event: Event) -> None:
        """Buffer executions, cancellations and corrections."""
        if isinstance(event, OrderExecuted | OrderCanceled | ExecutionCorrected):
            self._events.append((offset, event))

    async def flush(self) -> None:
        """Send the events since the last time, the newest first. Raises ``MatcherError``, and
        ``NodeUnavailable``; then the events are sent the next time.
        """
        before, events = self._sent_to, self._since(self._sent_to)
        self._sent_to = self._core.engine.last_offset
        if events and self._connections:
            try:
                message = await self._message(events)
            except NodeUnavailable:
                self._sent_to = before
                raise
            for connection in list(self._connections):
                connection.push(message)

    def _since(self, offset: int) -> list[tuple[int, _Reported]]:
        return list(takewhile(lambda entry: entry[0] > offset, reversed(self._events)))

    async def _message(self, events: list[tuple[int, _Reported]]) -> bytes:
        orders = []
        for _, event in events:
            if isinstance(event, OrderExecuted):
                orders.append(await self._full(event.maker, event, event.maker_fee))
                orders.append(await self._full(event.taker, event, event.taker_fee))
            elif isinstance(event, ExecutionCorrected):
                orders.append(await self._full(event.maker, event, 0))
                orders.append(await self._full(event.taker, event, 0))
            else:
                orders.append(await self._full(event.order, event, 0))
        offset, newest = events[0]
        return encode({"T": "osu", "_": newest.timestamp, "N": offset, "o": orders})

    async def _full(self, order: ActiveOrder, event: _Reported, fee: int) -> dict[str, Any]:
        cancelled = isinstance(event, OrderCanceled)
        info = describe(order, OrderStatus.CANCELLED if cancelled else order.status)
        amount = await self._decimals.of(info.pair.amount_asset)
        price = await self._decimals.of(info.pair.price_asset)
        fee_decimals = await self._decimals.of(info.fee_asset)
        body: dict[str, Any] = {
            "i": base58.encode(info.id),
            "o": address_text(info.owner),
            "t": info.timestamp,
            "A": asset_text(info.pair.amount_asset),
            "P": asset_text(info.pair.price_asset),
            "S": info.side.name.lower(),
            "T": "market" if info.is_market else "limit",
            "p": price_text(info.price, amount, price),
            "a": amount_text(info.amount, amount),
            "f": amount_text(info.fee, fee_decimals),
            "F": asset_text(info.fee_asset),
            "s": info.status.value,
            "q": amount_text(info.filled, amount),
            "Q": amount_text(info.filled_fee, fee_decimals),
            "r": price_text(info.average_price, amount, price),
            "Z": event.timestamp,
        }
        if isinstance(event, OrderExecuted):
            body |= {
                "c": amount_text(event.amount, amount),
                "h": amount_text(fee, fee_decimals),
                "e": price_text(event.price, amount, price),
                "E": price_text(info.executed_price_assets, amount, price),
            }
        return body
