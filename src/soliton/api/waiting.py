"""Long-polling requests: they wait for a transaction to be in a block, or for a height.

What lives here: the waiting requests by what they wait for, and waking them on events of the node.
What does not: checking whether the condition holds (the handlers in ``rest.waiting``).
"""

from __future__ import annotations

import asyncio
from collections.abc import Hashable, Iterable
from typing import Final

from soliton.api.errors import TOO_MANY_WAITING
from soliton.node.events import (
    BlockAppended,
    BlockExtended,
    Departure,
    NodeEvent,
    NodeEvents,
    PoolDropped,
    RolledBack,
    Stopping,
)

MAX_WAITING: Final = 1_000
"""The limit on waiting requests; each holds a connection."""


class Waiting:
    """The waiting requests by key: the id of a transaction, or a height."""

    __slots__ = ("_events", "_waiters", "count")

    def __init__(self) -> None:
        self.count = 0
        self._waiters: dict[Hashable, set[asyncio.Future[str | None]]] = {}
        self._events: NodeEvents | None = None

    async def wait(self, events: NodeEvents, key: bytes | int, seconds: float) -> str | None:
        """Return when the transaction or the height may be there, or after ``seconds``.

        Returns why the pool dropped the transaction, if it did. Raises ``ApiError`` when too many
        requests wait already.
        """
        if self.count >= MAX_WAITING:
            raise TOO_MANY_WAITING.error()
        if self._events is not events:
            self._events = events
            events.subscribe(self._notice)
        future: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()
        waiters = self._waiters.setdefault(key, set())
        waiters.add(future)
        self.count += 1
        try:
            async with asyncio.timeout(seconds):
                return await future
        except TimeoutError:
            return None
        finally:
            self.count -= 1
            waiters.discard(future)
            if not waiters and self._waiters.get(key) is waiters:
                del self._waiters[key]

    def _notice(self, event: NodeEvent) -> None:
        if not self._waiters:
            return
        match event:
            case BlockAppended(height=height, block=block):
                self._wake((transaction.id for transaction in block.transactions), None)
                self._wake((height,), None)
            case BlockExtended(block=block, added=added):
                self._wake((item.id for item in block.transactions[-added:]), None)
            case PoolDropped(transaction=transaction, departure=Departure.INVALID, reason=reason):
                self._wake((transaction.id,), reason)
            case RolledBack():
                # Requests for a height check again; transactions have events of their own.
                self._wake([key for key in self._waiters if isinstance(key, int)], None)
            case Stopping():
                self._wake(tuple(self._waiters), None)

    def _wake(self, keys: Iterable[Hashable], reason: str | None) -> None:
        for key in keys:
            # Popped, so that a request that checks and waits again gets a new set.
            for future in self._waiters.pop(key, ()):
                if not future.done():
                    future.set_result(reason)
