"""WebSocket connections: messages and frames.

Unsent data is limited in bytes and in time: ``send`` waits until the client has read earlier
messages, and answers to pings, which do not wait, fill a buffer whose limit ends the connection.
Reading pauses after each message until the application takes it.

What lives here: the handshake, frames (with ``websockets``), closing. What does not: the request
(``connection``), and the messages.

Source: RFC 6455.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, cast

from soliton.web.limits import ServerLimits
from soliton.web.request import Request
from soliton.web.types import WhenLost

if TYPE_CHECKING:
    from websockets.frames import Frame

MAX_UNREAD_BYTES: Final = 4 * 1024 * 1024
"""Limit of unsent bytes; larger than the longest single message."""
CLOSE_SECONDS: Final = 10.0
"""The timeout of the closing handshake."""
GOING_AWAY: Final = 1012
NOT_TEXT: Final = 1007
_GUID: Final = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_KEY_BYTES: Final = 16
_CONTINUED: Final = 0
_TEXT: Final = 1
_BINARY: Final = 2
_VERSION: Final = b"13"


class WebSocketClosed(ConnectionError):
    """The connection is closed."""


def accept_key(request: Request) -> bytes | None:
    """Return the ``Sec-WebSocket-Accept`` value; ``None`` if the request is invalid."""
    key = request.headers.get(b"sec-websocket-key", b"")
    try:
        is_key = len(base64.b64decode(key, validate=True)) == _KEY_BYTES
    except binascii.Error:
        is_key = False
    if not is_key or request.headers.get(b"sec-websocket-version") != _VERSION:
        return None
    return base64.b64encode(hashlib.sha1(key + _GUID, usedforsecurity=False).digest())


def handshake_bytes(key: bytes, date: bytes) -> bytes:
    """Encode the response of the handshake; ``date`` is the ``Date`` header line."""
    return (
        b"HTTP/1.1 101 Switching Protocols\r\n%supgrade: websocket\r\nconnection: Upgrade\r\n"
        b"sec-websocket-accept: %s\r\n\r\n" % (date, key)
    )


class WebSocket(asyncio.Protocol):
    """One connection; ``when_lost`` is called at its end."""

    def __init__(
        self, transport: asyncio.Transport, limits: ServerLimits, when_lost: WhenLost
    ) -> None:
        # Most servers start without a client that needs it.
        from websockets.protocol import OPEN, SERVER, Protocol

        self._transport = transport
        self._when_lost = when_lost
        self._write_seconds = limits.write_seconds
        # Applications have their own pings. Compression would cost more than it saves on messages
        # this short.
        self._frames = Protocol(SERVER, state=OPEN, max_size=limits.websocket_message_bytes)
        self._parts: list[bytes] = []
        self._is_text = True
        self._messages: asyncio.Queue[str | bytes | None] = asyncio.Queue()
        self._is_closing = False
        self._writable = asyncio.Event()
        self._writable.set()
        self._timer: asyncio.TimerHandle | None = None

    @classmethod
    def on(
        cls,
        transport: asyncio.Transport,
        _sent: bytes,
        limits: ServerLimits,
        when_lost: WhenLost,
    ) -> WebSocket:
        """Take over the transport of a request that has been answered."""
        made = cls(transport, limits, when_lost)
        transport.set_protocol(made)
        return made

    # --- for the application ----------------------------------------------------------------------

    async def receive(self) -> str | bytes:
        """Return the next message; raises ``WebSocketClosed``."""
        self._transport.resume_reading()
        message = await self._messages.get()
        if message is None:
            self._messages.put_nowait(None)
            raise WebSocketClosed
        return message

    async def send(self, data: bytes, *, is_text: bool = True) -> None:
        """Send a message after the client has read earlier ones; raises ``WebSocketClosed``."""
        await self._writable.wait()
        if self._is_closing:
            raise WebSocketClosed
        if is_text:
            self._frames.send_text(data)
        else:
            self._frames.send_binary(data)
        self._flush()

    def close(self, code: int = 1000, reason: str = "") -> None:
        """Begin the closing handshake, with a timeout for the client."""
        if not self._is_closing:
            self._is_closing = True
            self._frames.send_close(code, reason)
            self._flush()
            self._messages.put_nowait(None)
            self._transport.resume_reading()
            self._give_time(CLOSE_SECONDS, self._transport.close)

    def finish(self) -> None:
        """Close the connection when the application's handler has returned."""
        if not self._is_closing:
            self.close()
            self._transport.close()

    def shutdown(self) -> None:
        """Close the connection, since the server stops."""
        if not self._is_closing:
            self.close(GOING_AWAY)
        self._transport.close()

    def abort(self) -> None:
        """Abort the connection."""
        self._transport.abort()

    # --- asyncio.Protocol -------------------------------------------------------------------------

    def data_received(self, data: bytes) -> None:
        """Parse frames, and queue messages."""
        frames = self._frames
        frames.receive_data(data)
        for frame in cast("list[Frame]", frames.events_received()):
            if frame.opcode in (_TEXT, _BINARY, _CONTINUED):
                self._add(frame)
        self._flush()
        if self._transport.get_write_buffer_size() > MAX_UNREAD_BYTES:
            self._transport.abort()
        elif frames.eof_sent:
            self._end()

    def _add(self, frame: Frame) -> None:
        """Add a frame of a message."""
        if frame.opcode != _CONTINUED:
            self._parts, self._is_text = [], frame.opcode == _TEXT
        self._parts.append(bytes(frame.data))
        if not frame.fin or self._is_closing:
            return
        data = b"".join(self._parts)
        self._parts = []
        try:
            self._messages.put_nowait(data.decode() if self._is_text else data)
        except UnicodeDecodeError:
            self._frames.fail(NOT_TEXT)
        self._transport.pause_reading()

    def _flush(self) -> None:
        data = b"".join(self._frames.data_to_send())
        if data and not self._transport.is_closing():
            self._transport.write(data)

    def _end(self) -> None:
        """Close, and ignore further input."""
        self._is_closing = True
        self._messages.put_nowait(None)
        self._transport.close()

    def eof_received(self) -> None:
        """The client has closed its side; the transport closes."""

    def pause_writing(self) -> None:
        """The write buffer is full: the client has to read within a timeout."""
        self._writable.clear()
        self._give_time(self._write_seconds, self._transport.abort)

    def resume_writing(self) -> None:
        """The write buffer is drained."""
        self._writable.set()
        self._stop_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        """Clean up, and wake up the application."""
        del exc
        self._is_closing = True
        self._stop_timer()
        self._writable.set()
        self._messages.put_nowait(None)
        # Break a reference cycle, to save the garbage collector work.
        self._frames.parser.close()
        self._when_lost(self)

    def _give_time(self, seconds: float, end: Callable[[], None]) -> None:
        self._stop_timer()
        self._timer = asyncio.get_running_loop().call_later(seconds, end)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
