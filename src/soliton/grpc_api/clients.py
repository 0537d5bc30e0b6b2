"""Limits on what each client may use: concurrent calls in all serving processes, and the time to
read the response.

A call whose client does not read holds memory, and a stream of the chain holds a snapshot of the
store, whose pages cannot be reused meanwhile. So a request has a deadline, and a response that is
not read in time ends its call. When memory or snapshots run short, the calls that have waited
longest are ended.

What lives here: counting calls, finding those that wait, ending them. What does not: responses
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
"""Time limit for the request of a call to arrive."""
MAX_RECEIVING: Final = 4_096
"""Limit on the calls of a process whose request is incomplete."""
MAX_RECEIVING_BYTES: Final = 256 * 1024 * 1024
"""Limit on the bytes of incomplete requests."""
MAX_REQUESTS_BYTES: Final = 128 * 1024 * 1024
"""Limit on the memory of long requests in progress."""
LONG_REQUEST_BYTES: Final = 16 * 1024
MAX_UNREAD_BYTES: Final = 512 * 1024 * 1024
"""Limit on the bytes of a process that wait for their clients to read."""
MIN_WAIT_SECONDS: Final = 1.0
"""A call that has waited for less is not ended for the sake of others."""
PACE_BYTES: Final = 64 * 1024
"""The bytes of a stream that holds a snapshot which its client has to read in the time limit; other
streams have to read at all.
"""

_TOO_MANY: Final = "too many {} of one address at a time: at most {}"
_NOT_RECEIVED: Final = "the request has not come in time"
_NOT_READ: Final = "the answer is not read"
_NO_ROOM_FOR_REQUESTS: Final = "others need the room of long requests"
_NO_ROOM: Final = "others need the room of what is not read"
_NO_SNAPSHOT: Final = "others need the moment of the chain, and the answer is not read"

Task = asyncio.Task[Any]


class CallState:
    """Base of a call: the resources that it holds."""

    __slots__ = (
        "_passed",
        "_slow_seconds",
        "clients",
        "counted",
        "holds_snapshot",
        "is_receiving",
        "received_bytes",
        "request_bytes",
        "size",
        "task",
        "waiting_since",
    )

    def __init__(self, clients: Clients) -> None:
        self.clients = clients
        self.is_receiving = True
        self.received_bytes = 0
        """The bytes of its request received so far."""
        self.request_bytes = 0
        """The memory of its request, if that is long and the call takes time."""
        self.holds_snapshot = False
        """Whether it holds a snapshot of the store until it ends."""
        self.waiting_since: float | None = clients.clock()
        """The time since which it waits for its client, ``None`` if it does not."""
        self.size = 0
        """The bytes that the client has to read."""
        self.counted: tuple[ClientCounts, str | None] | None = None
        self.task: Task | None = None
        """The task that produces the response, if there is one."""
        self._passed = 0
        self._slow_seconds = 0.0

    def abort(self, text: str) -> None:
        """End the call and release its resources."""
        raise AssertionError(text)

    def wait_for_client(self, size: int) -> None:
        """Note that the client has to read ``size`` bytes before the call goes on."""
        clients = self.clients
        self.waiting_since, self.size = clients.clock(), size
        clients.add_unread(size, self)

    def resume(self) -> None:
        """Note that the call does not wait for its client any more."""
        size, self.size = self.size, 0
        if self.received_bytes:
            self.clients.add_received(-self.received_bytes, self)
        if self.holds_snapshot and size:
            self._slow_seconds = self.seconds()
        self.is_receiving, self.waiting_since = False, None
        if size:
            self.clients.add_unread(-size, self)

    def add_sent(self, size: int) -> None:
        """Note that bytes were sent."""
        if self.holds_snapshot:
            self._passed += size
            if self._passed >= PACE_BYTES:
                self._passed, self._slow_seconds = 0, 0.0

    def seconds(self) -> float:
        """Return the seconds that it has waited since its client read something, or enough."""
        since = self.waiting_since
        return 0.0 if since is None else self._slow_seconds + self.clients.clock() - since


class Clients:
    """The calls of all clients of a process, counted together with those of other processes through
    ``counters``. Use from one event loop.
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
        self._calls: dict[CallState, None] = {}
        """The calls, in the order of their arrival."""
        self._receiving = 0
        self._receiving_bytes = 0
        self._request_bytes = 0
        self._unread = 0

    def add(self, call: CallState) -> None:
        """Note that a call has begun, whose request is to follow."""
        self._calls[call] = None
        self._receiving += 1
        if self._receiving > MAX_RECEIVING:
            self._drop_oldest()

    def add_received(self, size: int, call: CallState) -> None:
        """Note that more bytes of its request are buffered, or fewer."""
        call.received_bytes += size
        self._receiving_bytes += size
        if size > 0 and self._receiving_bytes > MAX_RECEIVING_BYTES:
            self._drop_oldest()

    def request_received(self, call: CallState) -> None:
        """Note that the request of a call is complete."""
        if call.is_receiving:
            self._receiving -= 1
            call.resume()

    def hold_request(self, size: int, call: CallState) -> None:
        """Note that a call takes time, whose long request has so many bytes of memory."""
        call.request_bytes = size
        self._request_bytes += size
        if self._request_bytes > MAX_REQUESTS_BYTES:
            for each in [each for each in self._calls if each.request_bytes and each is not call]:
                each.abort(_NO_ROOM_FOR_REQUESTS)
                if self._request_bytes <= MAX_REQUESTS_BYTES:
                    return

    def _drop_oldest(self) -> None:
        # The oldest calls first.
        for call in [each for each in self._calls if each.is_receiving or each.received_bytes]:
            if self._receiving <= MAX_RECEIVING and self._receiving_bytes <= MAX_RECEIVING_BYTES:
                return
            call.abort(_NOT_RECEIVED)

    def remove(self, call: CallState) -> None:
        """Note that a call has ended."""
        if call not in self._calls:
            return
        del self._calls[call]
        if call.is_receiving:
            self._receiving -= 1
        self._request_bytes -= call.request_bytes
        call.resume()
        if call.counted is not None:
            counts, client = call.counted
            counts.add(client, -1)

    def count(self, call: CallState, client: str, *, stream: bool) -> None:
        """Count a call until it ends; raises ``Refused`` if its client has too many."""
        limits = self.limits
        counts = self._streams if stream else self._requests
        known = client if client != LOCAL or limits.local_clients else None
        # Counted first, compared then: two processes cannot both take the last place.
        counts.add(known)
        if known is not None:
            most = limits.streams_per_client if stream else limits.requests_per_client
            if counts.of(known) > most:
                counts.add(known, -1)
                text = _TOO_MANY.format("streams" if stream else "requests", most)
                raise Refused(Code.RESOURCE_EXHAUSTED, text)
        call.counted = counts, known

    def abort_idle(self) -> int:
        """End the calls whose clients were idle for too long; return their number."""
        seconds = self.limits.read_ms / 1_000
        ended = 0
        for call in list(self._calls):
            if call.seconds() > (REQUEST_SECONDS if call.is_receiving else seconds):
                call.abort(_NOT_RECEIVED if call.is_receiving else _NOT_READ)
                ended += 1
        return ended

    def add_unread(self, size: int, call: CallState) -> None:
        """Note that more bytes, or fewer, wait for the client of a call."""
        self._unread += size
        if size > 0 and self._unread > MAX_UNREAD_BYTES:
            waiting = [each for each in self._calls if each.size and each is not call]
            for each in sorted(waiting, key=CallState.seconds, reverse=True):
                each.abort(_NO_ROOM)
                if self._unread <= MAX_UNREAD_BYTES:
                    return

    def abort_waiting(self, tasks: Collection[Task]) -> bool:
        """End those of the calls with these ``tasks`` that wait for their clients for some time;
        return whether there were any.
        """
        waiting = [
            call
            for call in self._calls
            if call.task in tasks and not call.is_receiving and call.seconds() >= MIN_WAIT_SECONDS
        ]
        for call in waiting:
            call.abort(_NO_SNAPSHOT)
        return bool(waiting)
