"""One connection: its transport, and the budgets of whoever is at its other end.

Bytes that wait to be written, questions that wait for their answer, and the time of the event loop
have limits. Who exceeds one is not read from for a while; nobody else waits for that.

What lives here: backpressure. What does not: what the bytes mean (``core``).
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
"""Bytes that wait for a peer to read them before no more of its questions are answered."""
WRITE_LIMIT: Final = 32 * 1024 * 1024
"""Who lets more than this wait does not read: its connection is closed."""
MAX_QUESTIONS: Final = 400
"""Questions of one peer that wait for their answers; it is not read from above that."""
DEBT_SECONDS: Final = 0.05
"""How much more of the loop's time than its share one peer may use before it has to pause."""
SHARE: Final = 0.25
"""Of the loop's time, how much one peer may use."""
SLICE_SECONDS: Final = 0.005
"""How long questions or transactions are worked on before others get their turn."""


class Owner(Protocol):
    """What a connection tells, and whom it asks."""

    def opened(self, link: PeerSocket, address: PeerAddress, *, inbound: bool) -> None:
        """A connection is there; it gets its ``peer`` now, or is aborted."""

    def received(self, link: PeerSocket, data: bytes) -> None:
        """A peer's next bytes."""

    def closed(self, link: PeerSocket) -> None:
        """A connection has ended."""

    def answer(self, peer: PeerId, question: Message) -> Steps[bytes | None]:
        """The bytes that answer a question, if there is an answer; made in steps."""


class PeerSocket(asyncio.Protocol):
    """One connection: its transport, its budgets, and the questions that wait."""

    def __init__(self, owner: Owner, address: PeerAddress | None) -> None:
        """``address`` is whom we dialled."""
        self._owner = owner
        self._address = address
        self._inbound = address is None
        self.peer: PeerId = 0
        self.transport: asyncio.Transport
        self._questions: deque[Message] = deque()
        self._answering: Steps[bytes | None] | None = None
        self._blocked = False
        self._serving = False
        self._debt = 0.0
        self._measured = time.monotonic()
        self._resting = False

    @property
    def name(self) -> str:
        """Where the peer is."""
        return str(self._address)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The connection is there."""
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
        """The connection has ended."""
        self._questions.clear()
        self._answering = None
        if self.peer:
            self._owner.closed(self)

    def data_received(self, data: bytes) -> None:
        """The peer's next bytes."""
        if not self.peer:
            return
        since = time.perf_counter()
        self._owner.received(self, data)
        self._charge(time.perf_counter() - since)

    # --- budgets ----------------------------------------------------------------------------------

    def _charge(self, seconds: float) -> None:
        """Who uses more than his share of the time rests until that is even."""
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
        """Read from the peer, or not, as its budgets are."""
        if self.transport.is_closing():
            return
        if self._resting or len(self._questions) >= MAX_QUESTIONS:
            self.transport.pause_reading()
        else:
            self.transport.resume_reading()

    def write(self, data: bytes) -> None:
        """Send bytes; a peer that does not read them is let go."""
        if self.transport.get_write_buffer_size() > WRITE_LIMIT:
            _log.info("peer %s does not read what it is sent", self.name)
            self.transport.abort()
            return
        self.transport.write(data)

    # --- questions --------------------------------------------------------------------------------

    def ask(self, question: Message) -> None:
        """Answer a question when its turn comes."""
        self._questions.append(question)
        if len(self._questions) >= MAX_QUESTIONS:
            self._hold()
        self._serve_soon()

    def pause_writing(self) -> None:
        """Enough waits for the peer to read it."""
        self._blocked = True

    def resume_writing(self) -> None:
        """The peer has read."""
        self._blocked = False
        self._serve_soon()

    def _serve_soon(self) -> None:
        if self.transport.is_closing():
            return
        waits = self._answering is not None or bool(self._questions)
        if waits and not (self._serving or self._blocked or self._resting):
            self._serving = True
            asyncio.get_running_loop().call_soon(self._serve)

    def _serve(self) -> None:
        self._serving = False
        since = time.perf_counter()
        while (self._answering or self._questions) and not self._blocked:
            if self._answering is None:
                self._answering = self._owner.answer(self.peer, self._questions.popleft())
            try:
                next(self._answering)
            except StopIteration as end:
                self._answering = None
                if end.value is not None:
                    self.transport.write(end.value)
            if time.perf_counter() - since > SLICE_SECONDS:
                break
        self._charge(time.perf_counter() - since)
        self._hold()
        self._serve_soon()
