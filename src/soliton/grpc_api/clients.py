"""What one client may take: calls under way by address, and how long it may leave what it is sent.

A call that its client does not read holds memory, and a stream of the chain a moment of the store,
whose pages cannot be used again before. So a write that has waited too long ends its call.

What lives here: counting calls, finding those that wait. What does not: answering (``server``),
queues of subscribers (``updates``, ``pool_events``).
"""

from __future__ import annotations

import asyncio
import ipaddress
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, Protocol
from urllib.parse import unquote

from soliton.grpc_api.errors import Code, Refused
from soliton.node.grpc_settings import GrpcLimits

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
    """The calls of all clients of a process. Use from one event loop."""

    def __init__(self, limits: GrpcLimits, clock: Callable[[], float] = time.monotonic) -> None:
        self.limits = limits
        self.clock = clock
        self._counts: Counter[tuple[str, bool]] = Counter()
        self._calls: set[Call] = set()

    @contextmanager
    def call(self, context: Peer, *, stream: bool) -> Iterator[Call]:
        """A call as long as it lasts; raises ``Refused`` for one too many of its client."""
        limits = self.limits
        most = limits.streams_per_client if stream else limits.requests_per_client
        address = address_of(context.peer())
        key = address, stream
        counts = limits.local_clients or not _is_local(address)
        if counts and self._counts[key] >= most:
            words = _TOO_MANY.format("streams" if stream else "requests", most)
            raise Refused(Code.RESOURCE_EXHAUSTED, words)
        self._counts[key] += 1
        call = Call(self)
        self._calls.add(call)
        try:
            yield call
        finally:
            self._calls.discard(call)
            self._counts[key] -= 1
            if not self._counts[key]:
                del self._counts[key]

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


def _is_local(address: str) -> bool:
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        # A socket of the file system, or something else on this machine.
        return True
    mapped = getattr(found, "ipv4_mapped", None)
    return found.is_loopback or (mapped is not None and mapped.is_loopback)
