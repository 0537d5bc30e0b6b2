"""One connection: its transport, and the budgets of its peer.

Unwritten bytes, unanswered requests, and the time of the event loop have limits. Reading from a
peer that exceeds one pauses; other peers are not affected.

What lives here: backpressure. What does not: the meaning of the bytes (``core``).
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import time
from collections import deque
from typing import Final, Protocol, cast

from soliton.steps import Steps
from soliton.sync.model import PeerId
from soliton.wire.handshake import PeerAddress
from soliton.wire.messages import Message

_log = logging.getLogger(__name__)

WRITE_HIGH: Final = 1024 * 1024
"""Unread bytes above which no more requests of the peer are answered."""
WRITE_LIMIT: Final = 32 * 1024 * 1024
"""Unread bytes above which the connection is closed."""
MAX_REQUESTS: Final = 400
"""Unanswered requests of one peer above which reading from it pauses."""
DEBT_SECONDS: Final = 0.05
"""How far one peer may exceed its share of the loop's time before it has to pause."""
SHARE: Final = 0.25
"""The share of the loop's time that one peer may use."""
SLICE_SECONDS: Final = 0.005
"""The length of a time slice for requests."""


class Owner(Protocol):
    """The owner of the connections."""

    def opened(self, link: PeerSocket, address: PeerAddress, *, inbound: bool) -> None:
        """Handle a new connection: set its ``peer``, or abort it."""

    def received(self, link: PeerSocket, data: bytes) -> None:
        """Handle bytes of a peer."""

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
        self._debt = 0.0
        self._measured = time.monotonic()
        self._resting = False

    @property
    def name(self) -> str:
        """The peer's address."""
        return str(self._address)

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
        self._owner.opened(self, self._address, inbound=self._inbound)

    def connection_lost(self, _error: Exception | None) -> None:
        """Drop the unanswered requests."""
        self._requests.clear()
        self._answering = None
        if self.peer:
            self._owner.closed(self)

    def data_received(self, data: bytes) -> None:
        """Pass bytes to the owner, and charge its time to the peer."""
        if not self.peer:
            return
        since = time.perf_counter()
        self._owner.received(self, data)
        self.charge(time.perf_counter() - since)

    # --- budgets ----------------------------------------------------------------------------------

    def charge(self, seconds: float) -> None:
        """Charge time to the peer; above its share, pause it until the debt is paid."""
        now = time.monotonic()
        self._debt = max(0.0, self._debt - SHARE * (now - self._measured)) + seconds
        self._measured = now
        if self._debt > DEBT_SECONDS and not self._resting:
            self._resting = True
            self._hold()
            asyncio.get_running_loop().call_later(self._debt / SHARE, self._rested)

    def _rested(self) -> None:
        self._resting = False
        self._hold()
        self._serve_soon()

    def _hold(self) -> None:
        """Pause or resume reading, by the budgets."""
        if self.transport.is_closing():
            return
        if self._resting or len(self._requests) >= MAX_REQUESTS:
            self.transport.pause_reading()
        else:
            self.transport.resume_reading()

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
        if waits and not (self._serving or self._blocked or self._resting):
            self._serving = True
            asyncio.get_running_loop().call_soon(self._serve)

    def _serve(self) -> None:
        self._serving = False
        since = time.perf_counter()
        while (self._answering or self._requests) and not self._blocked:
            if self._answering is None:
                self._answering = self._owner.answer(self.peer, self._requests.popleft())
            try:
                next(self._answering)
            except StopIteration as end:
                self._answering = None
                if end.value is not None:
                    self.transport.write(end.value)
            if time.perf_counter() - since > SLICE_SECONDS:
                break
        self.charge(time.perf_counter() - since)
        self._hold()
        self._serve_soon()
