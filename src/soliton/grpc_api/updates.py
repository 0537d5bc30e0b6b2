"""``waves.events.grpc.BlockchainUpdatesApi``: what happens on the chain, from any height on.

A subscriber gets the blocks from the height that it names to the one below the last as they are
stored, then the last block as it was when the subscriber came, then what happens. What happens
meanwhile waits, for each subscriber in a queue of bounded length; the queues share the bytes.

What lives here: the calls, subscribers and their queues. What does not: what updates say
(``block_updates``), and where they come from (``following``).

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
from soliton.grpc_api.link import Asking
from soliton.grpc_api.past import Kept
from soliton.grpc_api.proto import blockchain_updates_pb2 as pb
from soliton.grpc_api.server import Metadata
from soliton.grpc_api.views import Views

SERVICE: Final = pb.DESCRIPTOR.services_by_name["BlockchainUpdatesApi"]

MAX_QUEUE: Final = 250
"""Events that may wait for a subscriber; then its stream ends, and it comes again."""
MAX_LONG_QUEUE: Final = 20_000
"""The same of subscribers that ask for more room."""
MAX_QUEUE_BYTES: Final = 64 * 1024 * 1024
"""Of the events that wait for a subscriber; what waits for several is there once."""
BATCH: Final = 20
"""Blocks of history that are made from one view before others get their turn."""
MAX_RANGE_BYTES: Final = 256 * 1024 * 1024
"""Of all updates of a range together; a message has no more than 2 GiB."""
MAX_RANGES_BYTES: Final = 512 * 1024 * 1024
"""Of all ranges together that are gathered; where they have more, the one ends that began first."""

QUEUE_HEADER: Final = "soliton-queue"
"""How many events may wait for this subscriber: up to ``MAX_LONG_QUEUE``."""
CATCH_UP_HEADER: Final = "soliton-catch-up"
"""With any value: events wait only when all of history was sent."""
AT_ONCE_HEADER: Final = "soliton-at-once"
"""With any value: a range is answered with what there is."""

_UPDATE_FIELD: Final = 1
_NO_ROOM: Final = "ranges that began later need the room: ask again, or for fewer updates"


class Ended(Exception):
    """A subscriber's stream ends, with no fault of anybody."""


class Subscriber:
    """What waits for one stream."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._waiting: deque[Event] = deque()
        self._bytes = 0
        self._more = asyncio.Event()
        self._over = False

    def push(self, event: Event) -> None:
        """Let an event wait; what takes back one that waits still makes both go."""
        if self._over:
            return
        last = self._waiting[-1] if self._waiting else None
        if last is not None and event.name == last.name and event.kind is _BACK.get(last.kind):
            self._bytes -= len(self._waiting.pop().data)
            return
        self._waiting.append(event)
        self._bytes += len(event.data)
        if len(self._waiting) > self._most or self._bytes > MAX_QUEUE_BYTES:
            self.end()
        self._more.set()

    def end(self) -> None:
        """Send no more than nothing: the stream ends."""
        self._over = True
        self._waiting.clear()
        self._bytes = 0
        self._more.set()

    async def next(self) -> Event:
        """The next event, when there is one; raises ``Ended``."""
        while not self._waiting:
            if self._over:
                raise Ended
            self._more.clear()
            await self._more.wait()
        event = self._waiting.popleft()
        self._bytes -= len(event.data)
        return event


class _Range:
    """What is gathered for one answer."""

    def __init__(self) -> None:
        self.found: list[bytes] = []
        self.size = 0
        self.is_over = False
        self.task = asyncio.current_task()

    def end(self) -> None:
        """Gather no more: others need the room."""
        self.is_over = True
        self.found.clear()
        if self.task is not None:
            self.task.cancel()


_BACK: Final = {Kind.BLOCK: Kind.BLOCK_BACK, Kind.MICRO: Kind.MICRO_BACK}


class Updates:
    """The service on one node."""

    def __init__(self, views: Views, node: Asking) -> None:
        self._views = views
        self._subscribers: set[Subscriber] = set()
        self._ranges: list[_Range] = []
        self._gathered = 0
        self.follower = Follower(views, node, self._hear)
        self.follower.listened = lambda: bool(self._subscribers)
        self.follower.begins_anew = self._end_all
        self._last: tuple[tuple[bytes, ...], list[Event]] = (), []

    async def _hear(self, event: Event) -> None:
        for each in self._subscribers:
            each.push(event)
        await asyncio.sleep(0)

    def _end_all(self) -> None:
        for each in self._subscribers:
            each.end()

    def methods(self) -> dict[str, object]:
        """The calls."""
        return {
            "GetBlockUpdate": self.get_block_update,
            "GetBlockUpdatesRange": self.get_block_updates_range,
            "Subscribe": self.subscribe,
        }

    async def get_block_update(self, request: pb.GetBlockUpdateRequest) -> bytes:
        """The block at a height, with all its microblocks."""
        async with self.follower.turn:
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
        """All updates of a range; as in the reference it waits until the range is over."""
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
            words = f"the updates have more than {MAX_RANGE_BYTES} bytes: ask for fewer"
            raise Refused(Code.RESOURCE_EXHAUSTED, words)
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
        """The updates from a height on, to another one or without end."""
        async for each in self._updates(request.from_height, request.to_height, metadata):
            yield delimited(_UPDATE_FIELD, each)

    async def _updates(self, first: int, last: int, metadata: Metadata) -> AsyncIterator[bytes]:
        if first < 1:
            raise invalid("requirement failed: fromHeight must be > 0")
        if last and first > last:
            raise invalid("requirement failed: fromHeight must not exceed toHeight")
        subscriber = Subscriber(_room(metadata))
        start, kept = first, Kept()
        if CATCH_UP_HEADER in metadata:
            while True:
                top = self.follower.place.height - 1
                self._check_start(first)
                if top < start + BATCH or (last and start > last):
                    break
                async for each in self._history(start, min(top, last or top), kept):
                    yield each
                start = min(top, last or top) + 1
        async with self.follower.turn:
            self._check_start(first)
            place = self.follower.place
            top = place.height - 1
            end = min(top, last or top)
            end_id = self.follower.chain.meta(end).id if end else b""
            liquid = self._liquid_events() if not last or last >= place.height else []
            self._subscribers.add(subscriber)
        try:
            async for each in self._history(start, end, kept):
                yield each
            if kept.block_id not in (b"", end_id):
                # What follows is behind another block than what was read.
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
        """The last block as it is, form by form."""
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

    async def _history(self, first: int, last: int, kept: Kept) -> AsyncIterator[bytes]:
        """The stored blocks, in batches with others in between; ``kept`` is of the one below."""
        for start in range(first, last + 1, BATCH):
            with self._views.open() as chain:
                before = kept.block_id
                if before and chain.height >= start and chain.meta(start - 1).id != before:
                    raise _moved(start)
                for height in range(start, min(last, start + BATCH - 1) + 1):
                    if height > chain.height:
                        raise _moved(height)
                    yield block_update(chain, height, kept)
                kept.block_id = chain.meta(min(last, start + BATCH - 1)).id


def _moved(height: int) -> Refused:
    return Refused(Code.UNKNOWN, f"Stored update of block {height} does not match target")


def _room(metadata: Metadata) -> int:
    text = metadata.get(QUEUE_HEADER, "")
    return min(int(text), MAX_LONG_QUEUE) if text.isdecimal() and len(text) < 9 else MAX_QUEUE
