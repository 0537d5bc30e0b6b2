"""``waves.events.grpc.BlockchainUpdatesApi``: the updates of the chain, from any height on.

A subscriber receives the blocks from a height to the one below the last as they are stored, then
the last block as of the time of the call, then new events. Events that occur meanwhile wait in a
bounded queue for each subscriber; the queues share the bytes.

What lives here: the calls, subscribers and their queues. What does not: the content of updates
(``block_updates``), and their origin (``following``).
Source: wavesplatform/Waves ``grpc-server/src/main/scala/com/wavesplatform/events/api/grpc``.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from typing import Final

from soliton.chain.protobuf import delimited
from soliton.grpc_api.block_updates import BlockSteps, block_update, key_block_update, micro_update
from soliton.grpc_api.errors import Code, Refused, invalid
from soliton.grpc_api.following import Event, Follower, Kind
from soliton.grpc_api.link import NodeLink
from soliton.grpc_api.past import BalanceCache
from soliton.grpc_api.proto import blockchain_updates_pb2 as pb
from soliton.grpc_api.server import Metadata
from soliton.grpc_api.views import Views

SERVICE: Final = pb.DESCRIPTOR.services_by_name["BlockchainUpdatesApi"]

MAX_QUEUE: Final = 250
"""Limit on the events in a subscriber's queue; if it overflows, the stream ends."""
MAX_LONG_QUEUE: Final = 20_000
"""The highest limit that a subscriber can request."""
MAX_QUEUE_BYTES: Final = 64 * 1024 * 1024
"""Limit on the bytes in a subscriber's queue; queues share the events."""
BATCH: Final = 20
"""Stored blocks that are read from one snapshot before others get their turn."""
MAX_RANGE_BYTES: Final = 256 * 1024 * 1024
"""Limit on all updates of a range; a message can have 2 GiB."""
MAX_RANGES_BYTES: Final = 512 * 1024 * 1024
"""Limit on all ranges in progress; beyond it, the oldest one is ended."""

QUEUE_HEADER: Final = "soliton-queue"
"""Header with the length of the subscriber's queue, up to ``MAX_LONG_QUEUE``."""
CATCH_UP_HEADER: Final = "soliton-catch-up"
"""Header that delays the queue until all stored blocks were sent."""
AT_ONCE_HEADER: Final = "soliton-at-once"
"""Header to answer a range with the present blocks, without waiting for its end."""

_UPDATE_FIELD: Final = 1
_NO_ROOM: Final = "ranges that began later need the room: ask again, or for fewer updates"


class Ended(Exception):
    """A subscriber's stream has ended normally."""


class Subscriber:
    """The queue of one stream."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._waiting: deque[Event] = deque()
        self._bytes = 0
        self._more = asyncio.Event()
        self._over = False

    def push(self, event: Event) -> None:
        """Add an event; a rollback of the last event in the queue removes both."""
        if self._over:
            return
        last = self._waiting[-1] if self._waiting else None
        if (
            last is not None
            and event.name == last.name
            and event.kind is _ROLLBACK_OF.get(last.kind)
        ):
            self._bytes -= len(self._waiting.pop().data)
            return
        self._waiting.append(event)
        self._bytes += len(event.data)
        if len(self._waiting) > self._limit or self._bytes > MAX_QUEUE_BYTES:
            self.end()
        self._more.set()

    def end(self) -> None:
        """End the stream and drop the queue."""
        self._over = True
        self._waiting.clear()
        self._bytes = 0
        self._more.set()

    async def next(self) -> Event:
        """Wait for the next event; raises ``Ended``."""
        while not self._waiting:
            if self._over:
                raise Ended
            self._more.clear()
            await self._more.wait()
        event = self._waiting.popleft()
        self._bytes -= len(event.data)
        return event


class _Range:
    """The updates collected for one range."""

    def __init__(self) -> None:
        self.found: list[bytes] = []
        self.size = 0
        self.is_over = False
        self.task = asyncio.current_task()

    def end(self) -> None:
        """End the call to free memory."""
        self.is_over = True
        self.found.clear()
        if self.task is not None:
            self.task.cancel()


_ROLLBACK_OF: Final = {Kind.BLOCK: Kind.BLOCK_ROLLBACK, Kind.MICRO: Kind.MICRO_ROLLBACK}


class Updates:
    """The service on one node."""

    def __init__(self, views: Views, node: NodeLink) -> None:
        self._views = views
        self._subscribers: set[Subscriber] = set()
        self._ranges: list[_Range] = []
        self._gathered = 0
        self.follower = Follower(views, node, self._publish)
        self.follower.has_subscribers = lambda: bool(self._subscribers)
        self.follower.on_restart = self._end_all
        self._last: tuple[tuple[bytes, ...], list[Event]] = (), []

    async def _publish(self, event: Event) -> None:
        for each in self._subscribers:
            each.push(event)
        await asyncio.sleep(0)

    def _end_all(self) -> None:
        for each in self._subscribers:
            each.end()

    def methods(self) -> dict[str, object]:
        """Return the calls."""
        return {
            "GetBlockUpdate": self.get_block_update,
            "GetBlockUpdatesRange": self.get_block_updates_range,
            "Subscribe": self.subscribe,
        }

    async def get_block_update(self, request: pb.GetBlockUpdateRequest) -> bytes:
        """Return the block at a height, with all its microblocks."""
        async with self.follower.lock:
            chain, place = self.follower.chain, self.follower.place
            if not 1 <= request.height <= chain.height:
                raise Refused(Code.INTERNAL, "")
            forms = place.forms if request.height == place.height else ()
            return delimited(_UPDATE_FIELD, block_update(chain, request.height, None, forms))

    async def get_block_updates_range(
        self,
        request: pb.GetBlockUpdatesRangeRequest,
        metadata: Metadata,
    ) -> bytes:
        """Return all updates of a range; as in the reference, wait until its end is reached."""
        first, last = request.from_height, request.to_height
        if AT_ONCE_HEADER in metadata:
            last = min(last or self.follower.place.height, self.follower.place.height)
        gathered = _Range()
        self._ranges.append(gathered)
        try:
            async for each in self._updates(first, last, metadata):
                self._gather(gathered, delimited(_UPDATE_FIELD, each))
            return b"".join(gathered.found)
        except asyncio.CancelledError:
            if not gathered.is_over:
                raise
            raise Refused(Code.RESOURCE_EXHAUSTED, _NO_ROOM) from None
        except Refused as error:
            if error.code is Code.INVALID_ARGUMENT:
                raise Refused(Code.UNKNOWN, "Application error processing RPC") from error
            raise
        finally:
            self._leave(gathered)

    def _gather(self, gathered: _Range, update: bytes) -> None:
        gathered.found.append(update)
        gathered.size += len(update)
        self._gathered += len(update)
        if gathered.size > MAX_RANGE_BYTES:
            text = f"the updates have more than {MAX_RANGE_BYTES} bytes: ask for fewer"
            raise Refused(Code.RESOURCE_EXHAUSTED, text)
        while self._gathered > MAX_RANGES_BYTES:
            first = self._ranges[0]
            if first is gathered:
                raise Refused(Code.RESOURCE_EXHAUSTED, _NO_ROOM)
            self._leave(first)
            first.end()

    def _leave(self, gathered: _Range) -> None:
        if gathered in self._ranges:
            self._ranges.remove(gathered)
            self._gathered -= gathered.size

    async def subscribe(
        self, request: pb.SubscribeRequest, metadata: Metadata
    ) -> AsyncIterator[bytes]:
        """Stream the updates from a height on, to another height or without end."""
        async for each in self._updates(request.from_height, request.to_height, metadata):
            yield delimited(_UPDATE_FIELD, each)

    async def _updates(self, first: int, last: int, metadata: Metadata) -> AsyncIterator[bytes]:
        self._check_start(first)
        if first < 1:
            raise invalid("requirement failed: fromHeight must be > 0")
        if last and first > last:
            raise invalid("requirement failed: fromHeight must not exceed toHeight")
        subscriber = Subscriber(_room(metadata))
        start, cache = first, BalanceCache()
        if CATCH_UP_HEADER in metadata:
            while True:
                top = self.follower.place.height - 1
                self._check_start(first)
                if top < start + BATCH or (last and start > last):
                    break
                async for each in self._history(start, min(top, last or top), cache):
                    yield each
                start = min(top, last or top) + 1
        async with self.follower.lock:
            self._check_start(first)
            place = self.follower.place
            top = place.height - 1
            end = min(top, last or top)
            end_id = self.follower.chain.meta(end).id if end else b""
            liquid = self._liquid_events() if not last or last >= place.height else []
            self._subscribers.add(subscriber)
        try:
            async for each in self._history(start, end, cache):
                yield each
            if cache.block_id not in (b"", end_id):
                # The queued events follow another block than the last one sent.
                raise _moved(end)
            if last and last <= top:
                return
            for event in liquid:
                yield event.data
            if AT_ONCE_HEADER in metadata:
                return
            while True:
                event = await subscriber.next()
                if last and event.height > last:
                    return
                yield event.data
        except Ended:
            return
        finally:
            self._subscribers.discard(subscriber)

    def _check_start(self, first: int) -> None:
        if first > self.follower.place.height:
            raise invalid(
                "requirement failed: Requested start height exceeds current blockchain height"
            )

    def _liquid_events(self) -> list[Event]:
        """Return the forms of the last block as events."""
        chain, place = self.follower.chain, self.follower.place
        names = tuple(form.id for form in place.forms)
        if names == self._last[0]:
            return self._last[1]
        steps = BlockSteps(chain, place.height).read()
        data = key_block_update(steps, place.forms[0])
        found = [Event(Kind.BLOCK, place.height, names[0], data)]
        for before, form in zip(place.forms, place.forms[1:], strict=False):
            data = micro_update(steps, before, form)
            found.append(Event(Kind.MICRO, place.height, form.id, data))
        self._last = names, found
        return found

    async def _history(self, first: int, last: int, cache: BalanceCache) -> AsyncIterator[bytes]:
        """Yield stored blocks, in batches; ``cache`` caches the balances below the first."""
        for start in range(first, last + 1, BATCH):
            with self._views.open() as chain:
                before = cache.block_id
                if before and chain.height >= start and chain.meta(start - 1).id != before:
                    raise _moved(start)
                for height in range(start, min(last, start + BATCH - 1) + 1):
                    if height > chain.height:
                        raise _moved(height)
                    yield block_update(chain, height, cache)
                cache.block_id = chain.meta(min(last, start + BATCH - 1)).id


def _moved(height: int) -> Refused:
    return Refused(Code.UNKNOWN, f"Stored update of block {height} does not match target")


def _room(metadata: Metadata) -> int:
    text = metadata.get(QUEUE_HEADER, "")
    return (
        min(int(text), MAX_LONG_QUEUE)
        if text.isascii() and text.isdecimal() and len(text) < 9
        else MAX_QUEUE
    )
