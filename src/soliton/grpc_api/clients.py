"""What one client may take: calls under way in all processes that serve, and how long it may leave
what it is sent.

A call that its client does not read holds memory, and a stream of the chain a moment of the store,
whose pages cannot be used again before. So a request has to come in time, and what waits too long
to be read ends its call. Where memory or moments run short those end that have waited longest. They
end without words: a status would wait behind what is not read, and all of it stay.

What lives here: counting calls, finding those that wait, ending them. What does not: answering
(``server``), queues of subscribers (``updates``, ``pool_events``).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import Any, Final, Protocol
from urllib.parse import unquote

from soliton.grpc_api.errors import Code, Refused
from soliton.grpc_api.holders import holder_of
from soliton.node.grpc_settings import GrpcLimits
from soliton.web.clients import LOCAL, client_key
from soliton.web.shared_counters import IDLE, LONG, ClientCounts, SharedCounters

REQUEST_SECONDS: Final = 30.0
"""How long the request of a call may take to come, once the call is there."""
MAX_COMING: Final = 4_096
"""Calls of a process whose requests are still to come."""
MAX_UNREAD_BYTES: Final = 512 * 1024 * 1024
"""Of all messages of a process together that wait for their clients."""
PRESSED_SECONDS: Final = 1.0
"""Who has waited for less is no hindrance to others."""
PACE_BYTES: Final = 64 * 1024
"""So much has to be read of a stream that holds a moment of the store, in the time in which others
have to be read at all.
"""

_TOO_MANY: Final = "too many {} of one address at a time: at most {}"

Task = asyncio.Task[Any]


class Peer(Protocol):
    """A call that tells who makes it."""

    def peer(self) -> str:
        """As ``ipv4:127.0.0.1:4711``."""


class Call:
    """A call under way, from its first word until the library lets go of it."""

    __slots__ = (
        "_clients",
        "_passed",
        "_slow_seconds",
        "counted",
        "holds_moment",
        "is_coming",
        "size",
        "task",
        "waits_since",
    )

    def __init__(self, clients: Clients, task: Task) -> None:
        self.task = task
        self.is_coming = True
        self.holds_moment = False
        """Whether it is of one moment of the store, however long it takes."""
        self.waits_since: float | None = clients.clock()
        """When it began to wait for its client."""
        self.size = 0
        """The bytes that wait for it."""
        self.counted: tuple[ClientCounts, str | None] | None = None
        self._clients = clients
        self._passed = 0
        self._slow_seconds = 0.0

    @contextmanager
    def writing(self, size: int) -> Iterator[None]:
        """While the client is to read so many bytes."""
        self.waits_since, self.size = self._clients.clock(), size
        self._clients.hold(size, self)
        try:
            yield
            self._note_pace(size)
        finally:
            self.goes_on()

    def goes_on(self) -> None:
        """It does not wait for its client any more."""
        self.is_coming, self.waits_since = False, None
        size, self.size = self.size, 0
        self._clients.hold(-size, self)

    def _note_pace(self, size: int) -> None:
        self._passed += size
        self._slow_seconds = self.seconds()
        if self._passed >= PACE_BYTES or not self.holds_moment:
            self._passed, self._slow_seconds = 0, 0.0

    def seconds(self) -> float:
        """How long it has waited since something was read, or enough."""
        since = self.waits_since
        return 0.0 if since is None else self._slow_seconds + self._clients.clock() - since

    def reset(self) -> None:
        """End it while it waits, and let go of all that it holds."""
        self.goes_on()
        holder = holder_of(self.task)
        self.task.cancel()
        if holder is not None:
            holder.cancel()


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
        counters = counters or SharedCounters()
        # They are of gRPC's processes alone: a stream is the long answer here.
        self._streams, self._requests = counters.counts(LONG), counters.counts(IDLE)
        self._calls: dict[Task, Call] = {}
        self._unread = 0

    def arrived(self) -> Call:
        """The call that the task in hand answers, from now on if it was not known before."""
        task = asyncio.current_task()
        assert task is not None, "each call has a task"
        call = self._calls.get(task)
        if call is None:
            call = self._calls[task] = Call(self, task)
            # Who answers may be done long before the client has all of it.
            (holder_of(task) or task).add_done_callback(lambda _: self._over(task))
            if len(self._calls) > MAX_COMING:
                self._let_come()
        return call

    def _let_come(self) -> None:
        coming = [each for each in self._calls.values() if each.is_coming]
        # The first ones have waited longest.
        for call in coming[: max(0, len(coming) - MAX_COMING)]:
            call.reset()

    def _over(self, task: Task) -> None:
        call = self._calls.pop(task)
        call.goes_on()
        if call.counted is not None:
            counts, client = call.counted
            counts.add(client, -1)

    def call(self, context: Peer, *, stream: bool) -> Call:
        """A call whose request is there. It counts until it has ended; raises ``Refused`` for one
        too many of a client.
        """
        call = self.arrived()
        call.goes_on()
        limits = self.limits
        most = limits.streams_per_client if stream else limits.requests_per_client
        counts = self._streams if stream else self._requests
        key = client_key(address_of(context.peer()))
        client = key if key != LOCAL or limits.local_clients else None
        if client is not None and counts.of(client) >= most:
            words = _TOO_MANY.format("streams" if stream else "requests", most)
            raise Refused(Code.RESOURCE_EXHAUSTED, words)
        counts.add(client)
        call.counted = counts, client
        return call

    def give_up(self) -> int:
        """End the calls whose clients have sent or read nothing for too long: how many."""
        seconds = self.limits.read_ms / 1_000
        ended = 0
        for call in list(self._calls.values()):
            if call.seconds() > (REQUEST_SECONDS if call.is_coming else seconds):
                call.reset()
                ended += 1
        return ended

    def hold(self, size: int, call: Call) -> None:
        """So many bytes more, or less, wait for the client of a call."""
        self._unread += size
        if size > 0 and self._unread > MAX_UNREAD_BYTES:
            waiting = [each for each in self._calls.values() if each.size and each is not call]
            for each in sorted(waiting, key=Call.seconds, reverse=True):
                each.reset()
                if self._unread <= MAX_UNREAD_BYTES:
                    return

    def let_go(self, tasks: Collection[Task]) -> bool:
        """End those calls of these that wait for their clients, and not only for a moment: whether
        there are any.
        """
        calls = [self._calls[task] for task in tasks if task in self._calls]
        waiting = [call for call in calls if call.seconds() >= PRESSED_SECONDS]
        for call in waiting:
            call.reset()
        return bool(waiting)


def address_of(peer: str) -> str:
    """The address in what the library calls a peer: without its kind and port."""
    _, _, rest = peer.partition(":")
    address, _, _ = rest.rpartition(":")
    return unquote(address).strip("[]") or peer
