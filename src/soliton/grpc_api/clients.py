"""What one client may take: calls under way in all processes that serve, and how long it may leave
what it is sent.

A call that its client does not read holds memory, and a stream of the chain a moment of the store,
whose pages cannot be used again before. So a write that has waited too long ends its call.

What lives here: counting calls, finding those that wait. What does not: answering (``server``),
queues of subscribers (``updates``, ``pool_events``).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, Protocol
from urllib.parse import unquote

from soliton.grpc_api.errors import Code, Refused
from soliton.node.grpc_settings import GrpcLimits
from soliton.web.clients import LOCAL, client_key
from soliton.web.shared_counters import IDLE, LONG, SharedCounters

_TOO_MANY: Final = "too many {} of one address at a time: at most {}"
_NOT_READ: Final = "nothing was read for {} seconds"


class Peer(Protocol):
    """A call that tells who makes it."""

    def peer(self) -> str:
        """As ``ipv4:127.0.0.1:4711``."""


class Call:
    """A call under way."""

    __slots__ = ("_clients", "is_given_up", "task", "writes_since")

    def __init__(self, clients: Clients) -> None:
        self._clients = clients
        self.task = asyncio.current_task()
        self.writes_since: float | None = None
        self.is_given_up = False

    @contextmanager
    def writing(self) -> Iterator[None]:
        """While the client is to read; raises ``Refused`` when it has not for too long."""
        self.writes_since = self._clients.clock()
        try:
            yield
        except asyncio.CancelledError:
            if not self.is_given_up:
                raise
            words = _NOT_READ.format(self._clients.limits.read_ms // 1_000)
            raise Refused(Code.RESOURCE_EXHAUSTED, words) from None
        finally:
            self.writes_since = None


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
        self._calls: set[Call] = set()

    @contextmanager
    def call(self, context: Peer, *, stream: bool) -> Iterator[Call]:
        """A call as long as it lasts; raises ``Refused`` for one too many of its client."""
        limits = self.limits
        most = limits.streams_per_client if stream else limits.requests_per_client
        counts = self._streams if stream else self._requests
        key = client_key(address_of(context.peer()))
        client = key if key != LOCAL or limits.local_clients else None
        if client is not None and counts.of(client) >= most:
            words = _TOO_MANY.format("streams" if stream else "requests", most)
            raise Refused(Code.RESOURCE_EXHAUSTED, words)
        counts.add(client)
        call = Call(self)
        self._calls.add(call)
        try:
            yield call
        finally:
            self._calls.discard(call)
            counts.add(client, -1)

    def give_up(self) -> None:
        """End the calls whose clients have read nothing for too long."""
        until = self.clock() - self.limits.read_ms / 1_000
        for call in list(self._calls):
            since = call.writes_since
            if since is not None and since < until and call.task is not None:
                call.is_given_up = True
                call.task.cancel()


def address_of(peer: str) -> str:
    """The address in what the library calls a peer: without its kind and port."""
    _, _, rest = peer.partition(":")
    address, _, _ = rest.rpartition(":")
    return unquote(address).strip("[]") or peer
