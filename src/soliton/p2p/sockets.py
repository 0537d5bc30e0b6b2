"""One connection: its transport, and the budgets of its peer.

Unwritten bytes, unanswered requests, and the time of the event loop have limits. Reading from a
peer that exceeds one pauses; other peers are not affected. Received bytes are processed in turns,
and the time is charged to the owner of the address, which may have other connections or come back.

What lives here: backpressure. What does not: the meaning of the bytes (``core``).
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import time
from collections import deque
from collections.abc import Hashable
from typing import Final, Protocol, cast

from soliton.owners import owner_of
from soliton.steps import Steps
from soliton.storage.errors import NotKept
from soliton.sync.model import PeerId
from soliton.turns import PIECE_BYTES, Debts, Intake, Rounds
from soliton.wire.handshake import PeerAddress
from soliton.wire.messages import Message

_log = logging.getLogger(__name__)

WRITE_HIGH: Final = 1024 * 1024
"""Unread bytes above which no more requests of the peer are answered."""
WRITE_LIMIT: Final = 32 * 1024 * 1024
"""Unread bytes above which the connection is closed."""
MAX_REQUESTS: Final = 400
"""Unanswered requests of one peer above which reading from it pauses."""
LONG_PIECE_BYTES: Final = 64 * 1024
"""Of one incomplete message, processed in one go: it is only copied."""


class Owner(Protocol):
    """The owner of the connections."""

    rounds: Rounds
    debts: Debts

    def opened(self, link: PeerSocket, address: PeerAddress, *, inbound: bool) -> None:
        """Handle a new connection: set its ``peer``, or abort it."""

    def received(self, link: PeerSocket, data: bytes) -> None:
        """Handle bytes of a peer."""

    def missing(self, peer: PeerId) -> int:
        """Return how many bytes the message still lacks that is being received."""

    def closed(self, link: PeerSocket) -> None:
        """Handle a closed connection."""

    def answer(self, peer: PeerId, request: Message) -> Steps[bytes | None]:
        """Make the bytes that answer a request, if there is an answer, in steps."""


class PeerSocket(asyncio.Protocol):
    """One connection: its transport, its budgets, and its unanswered requests."""

    def __init__(self, owner: Owner, address: PeerAddress | None) -> None:
        """``address`` is the dialled one, ``None`` for an inbound connection."""
        self._owner = owner
        self._address = address
        self._inbound = address is None
        self.peer: PeerId = 0
        self.transport: asyncio.Transport
        self._requests: deque[Message] = deque()
        self._answering: Steps[bytes | None] | None = None
        self._blocked = False
        self._serving = False
        self._intake = Intake(owner.rounds, owner.debts, self._receive, self._serve_soon)

    @property
    def name(self) -> str:
        """The peer's address."""
        return str(self._address)

    @property
    def owner(self) -> Hashable:
        """Who pays for the time of the connection."""
        return None if self._address is None else owner_of(self._address.ip)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Register the connection."""
        self.transport = cast("asyncio.Transport", transport)
        self.transport.set_write_buffer_limits(high=WRITE_HIGH)
        if self._address is None:
            peer = transport.get_extra_info("peername")
            if not peer:
                self.transport.abort()
                return
            ip = ipaddress.ip_address(str(peer[0]).partition("%")[0])
            mapped = ip.ipv4_mapped if isinstance(ip, ipaddress.IPv6Address) else None
            self._address = PeerAddress(mapped or ip, int(peer[1]))
        since = time.perf_counter()
        self._intake.begin(self.transport, owner_of(self._address.ip))
        self._owner.opened(self, self._address, inbound=self._inbound)
        self._intake.charge(time.perf_counter() - since)

    def connection_lost(self, _error: Exception | None) -> None:
        """Drop the unanswered requests."""
        self._intake.close()
        self._requests.clear()
        self._answering = None
        if self.peer:
            self._owner.closed(self)

    def data_received(self, data: bytes) -> None:
        """Pass bytes to the owner, at once or in later turns."""
        if self.peer:
            self._intake.receive(data)

    def _receive(self, data: bytes) -> None:
        self._owner.received(self, data)
        missing = self._owner.missing(self.peer)
        self._intake.piece_bytes = max(PIECE_BYTES, min(missing, LONG_PIECE_BYTES))

    # --- budgets ----------------------------------------------------------------------------------

    def charge(self, seconds: float) -> None:
        """Charge time that was used on the peer's behalf; above its share, pause it."""
        self._intake.charge(seconds)

    def _hold(self) -> None:
        """Stop reading while too many requests wait."""
        if len(self._requests) >= MAX_REQUESTS:
            self._intake.hold()
        else:
            self._intake.release()

    def write(self, data: bytes) -> None:
        """Send bytes; close the connection if the peer does not read them."""
        if self.transport.get_write_buffer_size() > WRITE_LIMIT:
            _log.info("peer %s does not read what it is sent", self.name)
            self.transport.abort()
            return
        self.transport.write(data)

    # --- requests ---------------------------------------------------------------------------------

    def enqueue(self, request: Message) -> None:
        """Queue a request."""
        self._requests.append(request)
        if len(self._requests) >= MAX_REQUESTS:
            self._hold()
        self._serve_soon()

    def pause_writing(self) -> None:
        """The write buffer is full."""
        self._blocked = True

    def resume_writing(self) -> None:
        """The write buffer has been drained."""
        self._blocked = False
        self._serve_soon()

    def _serve_soon(self) -> None:
        if self.transport.is_closing():
            return
        waits = self._answering is not None or bool(self._requests)
        if waits and not (self._serving or self._blocked or self._intake.is_resting):
            self._serving = True
            self._owner.rounds.join(self._serve)

    def _serve(self) -> None:
        self._serving = False
        if self.transport.is_closing() or self._intake.is_resting:
            return
        since = time.perf_counter()
        while (self._answering or self._requests) and not self._blocked:
            if self._answering is None:
                self._answering = self._owner.answer(self.peer, self._requests.popleft())
            try:
                next(self._answering)
            except NotKept as problem:
                _log.info("peer %s needs another node: %s", self.name, problem)
                self.transport.close()
                return
            except StopIteration as end:
                self._answering = None
                if end.value is not None:
                    self.transport.write(end.value)
            if time.perf_counter() >= self._owner.rounds.ends_at:
                break
        self.charge(time.perf_counter() - since)
        self._hold()
        self._serve_soon()
