"""WebSocket connections: messages and frames.

Unsent data is limited in bytes and in time: ``send`` waits until the client has read earlier
messages, and answers to pings, which do not wait, fill a buffer whose limit ends the connection.
Frames are processed in turns (``soliton.turns``), and not behind a message until the application
has taken it. Fragments of a message and control frames are limited in number: they may be empty.

What lives here: the handshake, messages, closing. What does not: frames (``websocket_frames``),
the request (``connection``), and the meaning of messages.

Source: RFC 6455.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Final, cast

from soliton.turns import Debts, Intake, Rounds
from soliton.web.limits import ServerLimits
from soliton.web.request import Request
from soliton.web.transports import end_writing
from soliton.web.types import WhenLost

if TYPE_CHECKING:
    from websockets.frames import Frame

MAX_UNREAD_BYTES: Final = 4 * 1024 * 1024
"""Limit of unsent bytes; larger than the longest single message."""
MAX_FRAGMENTS: Final = 1_024
"""Frames of one message, at most."""
CONTROL_FRAMES: Final = 100
"""Pings and pongs of a client at once, at most;"""
CONTROL_FRAMES_A_SECOND: Final = 20
"""and on average."""
CLOSE_SECONDS: Final = 10.0
"""The timeout of the closing handshake."""
CLOSE_BYTES: Final = 1024 * 1024
"""What is still read, and ignored, of a client that has broken the rules: closing a socket with
unread input would discard the frame that gives the reason.
"""
GOING_AWAY: Final = 1012
NOT_TEXT: Final = 1007
POLICY_VIOLATION: Final = 1008
TOO_BIG: Final = 1009
_GUID: Final = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_KEY_BYTES: Final = 16
_CONTINUED: Final = 0
_TEXT: Final = 1
_BINARY: Final = 2
_CLOSE: Final = 8
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
        self,
        transport: asyncio.Transport,
        limits: ServerLimits,
        when_lost: WhenLost,
        rounds: Rounds,
        debts: Debts,
        payer: Hashable = None,
    ) -> None:
        """``payer`` is charged for the client's frames; ``None`` is this connection alone."""
        # Most servers start without a client that needs it.
        from soliton.web.websocket_frames import ServerFrames

        self._transport = transport
        self._when_lost = when_lost
        self._write_seconds = limits.write_seconds
        # Applications have their own pings.
        self._frames = ServerFrames(limits.websocket_message_bytes)
        self._rounds = rounds
        self._intake = Intake(rounds, debts, self._work)
        self._loop = asyncio.get_running_loop()
        self._calm_at = 0.0
        """When the client's control frames are made up for, at the permitted pace."""
        self._parts: list[bytes] = []
        self._is_text = True
        self._messages: asyncio.Queue[str | bytes | None] = asyncio.Queue()
        self._is_closing = False
        self._ignored: int | None = None
        """Bytes of a client that has broken the rules, since then."""
        self._writable = asyncio.Event()
        self._writable.set()
        self._timer: asyncio.TimerHandle | None = None
        transport.set_protocol(self)
        self._intake.begin(transport, object() if payer is None else payer)

    # --- for the application ----------------------------------------------------------------------

    async def receive(self) -> str | bytes:
        """Return the next message; raises ``WebSocketClosed``.

        Messages that have arrived together are returned in different turns.
        """
        if self._messages.empty():
            self._intake.release()
        else:
            await self._rounds.turn()
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
            self._intake.release()
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
        """Process frames, at once or in a later turn."""
        if self._ignored is None:
            self._intake.receive(data)
            return
        self._ignored += len(data)
        if self._ignored > CLOSE_BYTES:
            self._transport.abort()

    def _work(self, data: bytes) -> None:
        """Parse frames, and queue messages."""
        frames = self._frames
        frames.receive_data(data)
        for frame in cast("list[Frame]", frames.events_received()):
            if frame.opcode in (_TEXT, _BINARY, _CONTINUED):
                self._add(frame)
            elif frame.opcode != _CLOSE and not self._is_calm():
                frames.fail(POLICY_VIOLATION, "too many control frames")
        self._flush()
        if self._transport.get_write_buffer_size() > MAX_UNREAD_BYTES:
            self._transport.abort()
        elif frames.eof_sent:
            self._end()

    def _is_calm(self) -> bool:
        """Count a control frame; return whether the client keeps to the permitted pace."""
        now = self._loop.time()
        self._calm_at = max(self._calm_at, now) + 1 / CONTROL_FRAMES_A_SECOND
        return self._calm_at - now <= CONTROL_FRAMES / CONTROL_FRAMES_A_SECOND

    def _add(self, frame: Frame) -> None:
        """Add a frame of a message."""
        if frame.opcode != _CONTINUED:
            self._parts, self._is_text = [], frame.opcode == _TEXT
        if len(self._parts) >= MAX_FRAGMENTS:
            self._frames.fail(TOO_BIG, f"a message of more than {MAX_FRAGMENTS} fragments")
            return
        self._parts.append(bytes(frame.data))
        if not frame.fin or self._is_closing:
            return
        data = b"".join(self._parts)
        self._parts = []
        try:
            self._messages.put_nowait(data.decode() if self._is_text else data)
        except UnicodeDecodeError:
            self._frames.fail(NOT_TEXT)
        self._intake.hold()
        # The application works on the message in this turn.
        self._rounds.end()

    def _flush(self) -> None:
        data = b"".join(self._frames.data_to_send())
        if data and not self._transport.is_closing():
            self._transport.write(data)

    def _end(self) -> None:
        """Close, and ignore further input."""
        self._is_closing = True
        self._intake.close()
        self._messages.put_nowait(None)
        transport = self._transport
        if self._frames.close_rcvd is not None or not transport.can_write_eof():
            transport.close()
        elif not transport.is_closing():
            self._ignored = 0
            end_writing(transport)
            transport.resume_reading()
            self._give_time(CLOSE_SECONDS, transport.abort)

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
        self._intake.close()
        self._stop_timer()
        self._writable.set()
        self._messages.put_nowait(None)
        # Break a reference cycle, to save the garbage collector work.
        self._frames.parser.close()
        self._when_lost(self)

    def _give_time(self, seconds: float, end: Callable[[], None]) -> None:
        self._stop_timer()
        self._timer = self._loop.call_later(seconds, end)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
