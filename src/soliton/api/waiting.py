"""Requests that wait: for a transaction to be in a block, for the chain to reach a height.

What lives here: who waits for what, and waking them when the node tells that it may have happened.
What does not: looking whether it has (the handlers in ``rest.waiting``).
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
"""Requests that wait at the same time; each holds a connection."""


class Waiting:
    """The requests that wait, by what they wait for: the id of a transaction, or a height."""

    __slots__ = ("_by_thing", "_heard", "count")

    def __init__(self) -> None:
        self.count = 0
        self._by_thing: dict[Hashable, set[asyncio.Future[str | None]]] = {}
        self._heard: NodeEvents | None = None

    async def wait(self, events: NodeEvents, thing: bytes | int, seconds: float) -> str | None:
        """Return when a transaction, or a block at a height, may be there, or after a time.

        The answer is why a transaction has fallen out of the pool, if it has. Raises ``ApiError``
        when too many wait already.
        """
        if self.count >= MAX_WAITING:
            raise TOO_MANY_WAITING.error()
        if self._heard is not events:
            self._heard = events
            events.subscribe(self._notice)
        future: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()
        waiting = self._by_thing.setdefault(thing, set())
        waiting.add(future)
        self.count += 1
        try:
            async with asyncio.timeout(seconds):
                return await future
        except TimeoutError:
            return None
        finally:
            self.count -= 1
            waiting.discard(future)
            if not waiting:
                self._by_thing.pop(thing, None)

    def _notice(self, event: NodeEvent) -> None:
        if not self._by_thing:
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
                # Who counts on a block looks again; transactions come and go one by one.
                heights = [thing for thing in self._by_thing if isinstance(thing, int)]
                self._wake(heights, None)
            case Stopping():
                self._wake(tuple(self._by_thing), None)

    def _wake(self, things: Iterable[Hashable], reason: str | None) -> None:
        for thing in things:
            # A new set: who looks and waits again does not wait on the one that is being woken.
            for future in self._by_thing.pop(thing, ()):
                if not future.done():
                    future.set_result(reason)
