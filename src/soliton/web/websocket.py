"""WebSocket connections: messages of a client, and the frames that carry them.

What waits for a client is limited in bytes and in time: what an application sends waits until the
client has taken what came before, and answers to pings, which wait for nothing, fill a buffer that
ends the connection. One message of a client at a time is read; the next has to wait until the
application takes it.

What lives here: the handshake, frames (on ``websockets``), the connection's end. What does not: the
request before it (``connection``), and what is said.

Source: RFC 6455.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
from collections.abc import Callable
from typing import Final

from websockets.frames import Frame, Opcode
from websockets.protocol import OPEN, SERVER, Protocol

from soliton.web.limits import ServerLimits
from soliton.web.request import Request
from soliton.web.types import WhenLost

MAX_UNREAD_BYTES: Final = 4 * 1024 * 1024
"""What waits for a client that does not read; above the longest single message."""
CLOSE_SECONDS: Final = 10.0
"""How long a client may take to answer that the connection ends."""
GOING_AWAY: Final = 1012
NOT_TEXT: Final = 1007
_GUID: Final = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_KEY_BYTES: Final = 16
_VERSION: Final = b"13"


class WebSocketClosed(ConnectionError):
    """The connection is at its end."""


def accept_key(request: Request) -> bytes | None:
    """What a request for a WebSocket is answered with; ``None`` if it is not as it has to be."""
    key = request.headers.get(b"sec-websocket-key", b"")
    try:
        is_key = len(base64.b64decode(key, validate=True)) == _KEY_BYTES
    except binascii.Error:
        is_key = False
    if not is_key or request.headers.get(b"sec-websocket-version") != _VERSION:
        return None
    return base64.b64encode(hashlib.sha1(key + _GUID, usedforsecurity=False).digest())


def handshake_bytes(key: bytes, date: bytes) -> bytes:
    """The answer that makes the connection a WebSocket; ``date`` is the line of that header."""
    return (
        b"HTTP/1.1 101 Switching Protocols\r\n%supgrade: websocket\r\nconnection: Upgrade\r\n"
        b"sec-websocket-accept: %s\r\n\r\n" % (date, key)
    )


class WebSocket(asyncio.Protocol):
    """One connection; ``when_lost`` is called at its end."""

    def __init__(
        self, transport: asyncio.Transport, limits: ServerLimits, when_lost: WhenLost
    ) -> None:
        self._transport = transport
        self._when_lost = when_lost
        self._write_seconds = limits.write_seconds
        # Applications ping in their own words; compression would cost each message more than it
        # saves on messages this short.
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
        """One on the transport of a request that has been answered."""
        made = cls(transport, limits, when_lost)
        transport.set_protocol(made)
        return made

    # --- for the application ----------------------------------------------------------------------

    async def receive(self) -> str | bytes:
        """The next message; raises ``WebSocketClosed``."""
        self._transport.resume_reading()
        message = await self._messages.get()
        if message is None:
            self._messages.put_nowait(None)
            raise WebSocketClosed
        return message

    async def send(self, data: bytes, *, is_text: bool = True) -> None:
        """Send a message, as soon as the client has taken what came before; raises
        ``WebSocketClosed``.
        """
        await self._writable.wait()
        if self._is_closing:
            raise WebSocketClosed
        if is_text:
            self._frames.send_text(data)
        else:
            self._frames.send_binary(data)
        self._flush()

    def close(self, code: int = 1000, reason: str = "") -> None:
        """Say that this is the end; the client has a moment to agree."""
        if not self._is_closing:
            self._is_closing = True
            self._frames.send_close(code, reason)
            self._flush()
            self._messages.put_nowait(None)
            self._transport.resume_reading()
            self._give_time(CLOSE_SECONDS, self._transport.close)

    def finish(self) -> None:
        """The application has nothing more to say; unless it said so itself, nobody waits."""
        if not self._is_closing:
            self.close()
            self._transport.close()

    def shutdown(self) -> None:
        """The server stops."""
        if not self._is_closing:
            self.close(GOING_AWAY)
        self._transport.close()

    def abort(self) -> None:
        """Go without a word."""
        self._transport.abort()

    # --- for the event loop -----------------------------------------------------------------------

    def data_received(self, data: bytes) -> None:
        """Bytes of frames."""
        frames = self._frames
        frames.receive_data(data)
        for frame in frames.events_received():
            assert isinstance(frame, Frame)
            if frame.opcode in (Opcode.TEXT, Opcode.BINARY, Opcode.CONT):
                self._add(frame)
        self._flush()
        if self._transport.get_write_buffer_size() > MAX_UNREAD_BYTES:
            self._transport.abort()
        elif frames.eof_sent:
            self._end()

    def _add(self, frame: Frame) -> None:
        """A part of a message, or the whole."""
        if frame.opcode is not Opcode.CONT:
            self._parts, self._is_text = [], frame.opcode is Opcode.TEXT
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
        """Nothing more comes of the client that means anything."""
        self._is_closing = True
        self._messages.put_nowait(None)
        self._transport.close()

    def eof_received(self) -> None:
        """The client says no more; the transport closes."""

    def pause_writing(self) -> None:
        """The client is slower than what comes for it."""
        self._writable.clear()
        self._give_time(self._write_seconds, self._transport.abort)

    def resume_writing(self) -> None:
        """It has caught up."""
        self._writable.set()
        self._stop_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        """The end."""
        del exc
        self._is_closing = True
        self._stop_timer()
        self._writable.set()
        self._messages.put_nowait(None)
        # It knows the machine that knows it: the search for cycles has better to do.
        self._frames.parser.close()
        self._when_lost(self)

    def _give_time(self, seconds: float, end: Callable[[], None]) -> None:
        self._stop_timer()
        self._timer = asyncio.get_running_loop().call_later(seconds, end)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
