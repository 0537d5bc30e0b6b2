"""What one client may take: calls under way in all processes that serve, and how long it may leave
what it is sent.

A call that its client does not read holds memory, and a stream of the chain a moment of the store,
whose pages cannot be used again before. So a request has to come in time, and what waits too long
to be read ends its call. Where memory or moments run short those end that have waited longest.

What lives here: counting calls, finding those that wait, ending them. What does not: answering
(``calls``), queues of subscribers (``updates``, ``pool_events``).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection
from typing import Any, Final

from soliton.grpc_api.errors import Code, Refused
from soliton.node.grpc_settings import GrpcLimits
from soliton.web.clients import LOCAL
from soliton.web.shared_counters import IDLE, LONG, ClientCounts, SharedCounters

REQUEST_SECONDS: Final = 30.0
"""How long the request of a call may take to come, once the call is there."""
MAX_COMING: Final = 4_096
"""Calls of a process whose requests are still to come."""
MAX_COMING_BYTES: Final = 256 * 1024 * 1024
"""Of what has come of these requests."""
MAX_UNREAD_BYTES: Final = 512 * 1024 * 1024
"""Of all messages of a process together that wait for their clients."""
PRESSED_SECONDS: Final = 1.0
"""Who has waited for less is no hindrance to others."""
PACE_BYTES: Final = 64 * 1024
"""So much has to be read of a stream that holds a moment of the store, in the time in which others
have to be read at all.
"""

_TOO_MANY: Final = "too many {} of one address at a time: at most {}"
_NOT_COME: Final = "the request has not come in time"
_NOT_READ: Final = "the answer is not read"
_NO_ROOM: Final = "others need the room of what is not read"
_NO_MOMENT: Final = "others need the moment of the chain, and the answer is not read"

Task = asyncio.Task[Any]


class Held:
    """What a call holds while it is under way: a base of calls."""

    __slots__ = (
        "_passed",
        "_slow_seconds",
        "clients",
        "coming",
        "counted",
        "holds_moment",
        "is_coming",
        "size",
        "task",
        "waits_since",
    )

    def __init__(self, clients: Clients) -> None:
        self.clients = clients
        self.is_coming = True
        self.coming = 0
        """The bytes of its request that are there."""
        self.holds_moment = False
        """Whether it is of one moment of the store, however long it takes."""
        self.waits_since: float | None = clients.clock()
        """When it began to wait for its client."""
        self.size = 0
        """The bytes that wait for it."""
        self.counted: tuple[ClientCounts, str | None] | None = None
        self.task: Task | None = None
        """What answers it, where that takes time."""
        self._passed = 0
        self._slow_seconds = 0.0

    def give_up(self, words: str) -> None:
        """End it, and let go of all that it holds."""
        raise AssertionError(words)

    def waits(self, size: int) -> None:
        """The client is to read so many bytes first."""
        clients = self.clients
        self.waits_since, self.size = clients.clock(), size
        clients.hold(size, self)

    def goes_on(self) -> None:
        """It does not wait for its client any more."""
        size, self.size = self.size, 0
        if self.coming:
            self.clients.comes(-self.coming, self)
        if self.holds_moment and size:
            self._slow_seconds = self.seconds()
        self.is_coming, self.waits_since = False, None
        if size:
            self.clients.hold(-size, self)

    def passed(self, size: int) -> None:
        """So many bytes were sent."""
        if self.holds_moment:
            self._passed += size
            if self._passed >= PACE_BYTES:
                self._passed, self._slow_seconds = 0, 0.0

    def seconds(self) -> float:
        """How long it has waited since something was read, or enough."""
        since = self.waits_since
        return 0.0 if since is None else self._slow_seconds + self.clients.clock() - since


class Clients:
    """The calls of all clients of a process, counted with those of others that share ``counters``.
    Use from one event loop.
    """

    def __init__(
        self,
        limits: GrpcLimits,
        counters: SharedCounters | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.limits = limits
        self.clock = clock
        self.counters = counters or SharedCounters()
        self._streams = self.counters.counts(LONG)
        self._requests = self.counters.counts(IDLE)
        self._calls: dict[Held, None] = {}
        """In the order in which they came."""
        self._coming = 0
        self._coming_bytes = 0
        self._unread = 0

    def arrived(self, call: Held) -> None:
        """A call has begun, and its request is to come."""
        self._calls[call] = None
        self._coming += 1
        if self._coming > MAX_COMING:
            self._let_come()

    def comes(self, size: int, call: Held) -> None:
        """So many bytes more of its request are there, or less."""
        call.coming += size
        self._coming_bytes += size
        if size > 0 and self._coming_bytes > MAX_COMING_BYTES:
            self._let_come()

    def is_there(self, call: Held) -> None:
        """The request of a call is."""
        if call.is_coming:
            self._coming -= 1
            call.goes_on()

    def _let_come(self) -> None:
        # The first ones have waited longest.
        for call in [each for each in self._calls if each.is_coming or each.coming]:
            if self._coming <= MAX_COMING and self._coming_bytes <= MAX_COMING_BYTES:
                return
            call.give_up(_NOT_COME)

    def over(self, call: Held) -> None:
        """A call has ended."""
        if call not in self._calls:
            return
        del self._calls[call]
        if call.is_coming:
            self._coming -= 1
        call.goes_on()
        if call.counted is not None:
            counts, client = call.counted
            counts.add(client, -1)

    def count(self, call: Held, client: str, *, stream: bool) -> None:
        """Count a call until it has ended; raises ``Refused`` for one too many of a client."""
        limits = self.limits
        counts = self._streams if stream else self._requests
        known = client if client != LOCAL or limits.local_clients else None
        if known is not None:
            most = limits.streams_per_client if stream else limits.requests_per_client
            if counts.of(known) >= most:
                words = _TOO_MANY.format("streams" if stream else "requests", most)
                raise Refused(Code.RESOURCE_EXHAUSTED, words)
        counts.add(known)
        call.counted = counts, known

    def give_up(self) -> int:
        """End the calls whose clients have sent or read nothing for too long: how many."""
        seconds = self.limits.read_ms / 1_000
        ended = 0
        for call in list(self._calls):
            if call.seconds() > (REQUEST_SECONDS if call.is_coming else seconds):
                call.give_up(_NOT_COME if call.is_coming else _NOT_READ)
                ended += 1
        return ended

    def hold(self, size: int, call: Held) -> None:
        """So many bytes more, or less, wait for the client of a call."""
        self._unread += size
        if size > 0 and self._unread > MAX_UNREAD_BYTES:
            waiting = [each for each in self._calls if each.size and each is not call]
            for each in sorted(waiting, key=Held.seconds, reverse=True):
                each.give_up(_NO_ROOM)
                if self._unread <= MAX_UNREAD_BYTES:
                    return

    def let_go(self, tasks: Collection[Task]) -> bool:
        """End those calls of these that wait for their clients, and not only for a moment: whether
        there are any.
        """
        waiting = [
            call
            for call in self._calls
            if call.task in tasks and not call.is_coming and call.seconds() >= PRESSED_SECONDS
        ]
        for call in waiting:
            call.give_up(_NO_MOMENT)
        return bool(waiting)
