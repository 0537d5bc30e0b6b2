"""The server side of one connection, sans-I/O: bytes in, calls out, bytes to write.

The caller passes the current time with each chunk of input. The machine holds no socket. Calls from
the application take effect immediately; bytes to send are in ``out``. Stream errors end the stream,
connection errors the connection.

What lives here: received frames. What does not: the ends of streams (``lives``), send windows
(``sending``), header blocks (``blocks``), timeouts (``connection``).

Source: RFC 9113.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

from soliton.web.http2 import frames
from soliton.web.http2.blocks import Blocks
from soliton.web.http2.floods import Fault, Floods
from soliton.web.http2.frames import (
    ACK,
    DATA,
    END_HEADERS,
    END_STREAM,
    FRAME_BYTES,
    HEAD,
    HEAD_BYTES,
    HEADERS,
    LONG,
    PADDED,
    PREFACE,
    PROTOCOL_ERROR,
    SETTING,
    STREAM_MASK,
    USUAL_WINDOW,
    WITH_PRIORITY,
    frame,
)
from soliton.web.http2.hpack import TABLE_BYTES
from soliton.web.http2.limits import (
    CONNECTION_WINDOW,
    HEADER_LIST_BYTES,
    STREAM_WINDOW,
    Http2Limits,
)
from soliton.web.http2.lives import Lives
from soliton.web.http2.requests import Head
from soliton.web.http2.sending import Outgoing
from soliton.web.http2.streams import Stream

_PRIORITY_BYTES: Final = 5


class Handler(Protocol):
    """The handler of a connection's requests."""

    def on_request(self, stream: Stream, head: Head, *, ended: bool) -> None:
        """Handle the head of a request; ``ended`` if it has no data."""

    def on_data(self, stream: Stream, data: bytes, *, ended: bool) -> None:
        """Handle data of a request."""

    def on_closed(self, stream: Stream) -> None:
        """Handle the end of a stream, by either side."""

    def on_sent(self, stream: Stream) -> None:
        """All pending data of a stream is sent."""


class _Nobody:
    """The handler of a connection that has ended."""

    def on_request(self, stream: Stream, head: Head, *, ended: bool) -> None:
        """Do nothing."""

    def on_data(self, stream: Stream, data: bytes, *, ended: bool) -> None:
        """Do nothing."""

    def on_closed(self, stream: Stream) -> None:
        """Do nothing."""

    def on_sent(self, stream: Stream) -> None:
        """Do nothing."""


NOBODY: Final[Handler] = _Nobody()


class Machine:
    """One connection."""

    def __init__(self, handler: Handler, limits: Http2Limits, wake: Callable[[], None]) -> None:
        """``wake`` is called when there are new bytes to write."""
        self._handler = handler
        self._most_streams = limits.streams
        self._floods = Floods(limits.ping_seconds)
        self.lives = Lives(handler.on_closed, self._floods)
        self.out = self.lives.out = Outgoing(wake, handler.on_sent, self.lives.finished)
        self.streams = self.lives.open
        self.is_over = False
        """True once the connection is dead; later input is ignored."""
        self.is_leaving = False
        """Whether new streams are refused."""
        self.has_begun = False
        """Whether the client's SETTINGS were received."""
        self._blocks = Blocks()
        # The last stream, and the last one that was not ignored: GOAWAY never names a later one.
        self._last = self._accepted = 0
        self._room = CONNECTION_WINDOW
        self._rest = bytearray()
        self._needed = 0
        self._preface = PREFACE

    def start(self, now: float) -> None:
        """Send the server's SETTINGS and enlarge the connection window."""
        self._floods.tick(now, 0)
        self.lives.idle_since = now
        wanted = (
            (frames.MAX_CONCURRENT_STREAMS, self._most_streams),
            (frames.INITIAL_WINDOW_SIZE, STREAM_WINDOW),
            (frames.MAX_HEADER_LIST_SIZE, HEADER_LIST_BYTES),
        )
        self.out.put(frames.settings(wanted))
        self.out.put(frames.window_update(0, CONNECTION_WINDOW - USUAL_WINDOW))

    def end(self) -> None:
        """End all streams after the client has disconnected, and forget the connection: a machine
        and a connection that refer to each other would wait for a search for cycles.
        """
        self.is_over = True
        self.lives.drop_all()
        self.lives.forget()
        self.out.forget()
        self._handler = NOBODY

    # --- for the application ----------------------------------------------------------------------

    def take_more(self, stream: Stream) -> None:
        """Release a held stream: the application has taken its data."""
        stream.is_held = False
        if not stream.is_closed:
            self._let_more_come(stream)

    def leave(self, code: int = frames.NO_ERROR, words: bytes = b"") -> None:
        """Send GOAWAY: refuse new streams, and let open ones finish."""
        if not self.is_leaving:
            self.is_leaving = True
            self.out.put(frames.go_away(self._accepted, code, words))

    # --- input ------------------------------------------------------------------------------------

    def receive(self, data: bytes, now: float) -> None:
        """Process input at a time in seconds."""
        if self.is_over:
            return
        self._floods.tick(now, self.out.total)
        if self._rest:
            self._rest += data
            if len(self._rest) < self._needed:
                return
            data = bytes(self._rest)
            self._rest.clear()
        try:
            at = self._take_preface(data) if self._preface else 0
            if not self._preface:
                at = self._take_frames(data, at)
        except Fault as fault:
            self.is_over = True
            self.is_leaving = False
            self.leave(fault.code, fault.words)
            return
        if at < len(data):
            self._rest += data[at:]

    def _take_preface(self, data: bytes) -> int:
        part = data[: len(self._preface)]
        if not self._preface.startswith(part):
            raise Fault(PROTOCOL_ERROR, b"no preface of HTTP/2")
        self._preface = self._preface[len(part) :]
        return len(part)

    def _take_frames(self, data: bytes, at: int) -> int:
        """Process complete frames; return the offset of the next one."""
        end, unpack = len(data), HEAD.unpack_from
        while end - at >= HEAD_BYTES:
            high, low, kind, flags, number = unpack(data, at)
            start = at + HEAD_BYTES
            stop = start + (high << 8 | low)
            if stop - start > FRAME_BYTES:
                raise Fault(frames.FRAME_SIZE_ERROR, b"a frame is too long")
            if stop > end:
                self._needed = stop - at
                return at
            at = stop
            number &= STREAM_MASK
            if not self.has_begun or self._blocks.is_open:
                self._take_in_order(kind, flags, number, data[start:stop])
            elif kind == DATA:
                self._data(flags, number, data[start:stop])
            elif kind == HEADERS:
                self._headers(flags, number, data[start:stop])
            else:
                self._other(kind, flags, number, data[start:stop])
        self._needed = HEAD_BYTES
        return at

    def _take_in_order(self, kind: int, flags: int, number: int, body: bytes) -> None:
        """Process a frame where only one kind is allowed."""
        if not self.has_begun:
            if kind != frames.SETTINGS or flags & ACK:
                raise Fault(PROTOCOL_ERROR, b"settings come first")
            self.has_begun = True
            self._settings(flags, number, body)
            return
        if kind != frames.CONTINUATION or number != self._blocks.number:
            raise Fault(PROTOCOL_ERROR, b"a header block goes on")
        if self._blocks.add(body, is_last=bool(flags & END_HEADERS)):
            self._head(self._blocks.flags, number, self._blocks.take())

    def _headers(self, flags: int, number: int, body: bytes) -> None:
        if not number & 1:
            raise Fault(PROTOCOL_ERROR, b"no stream of clients has this number")
        if flags & (PADDED | WITH_PRIORITY):
            skipped = _PRIORITY_BYTES if flags & WITH_PRIORITY else 0
            body = _without_padding(flags, body, skipped)
        if flags & END_HEADERS:
            self._head(flags, number, body)
        else:
            self._blocks.begin(flags, number, body)

    def _head(self, flags: int, number: int, block: bytes) -> None:
        head = self._blocks.read(block)
        stream = self.streams.get(number)
        if stream is not None or number <= self._last:
            self._late_head(stream, flags, number, head)
            return
        self._last = number
        if self.is_leaving:
            self.lives.ignore(number)
            return
        self._accepted = number
        if head.is_bad or len(self.streams) >= self._most_streams:
            self.lives.refuse(number, PROTOCOL_ERROR if head.is_bad else frames.REFUSED_STREAM)
            return
        stream = Stream(number, self.out.initial_window, STREAM_WINDOW)
        self.streams[number] = stream
        stream.left = head.length
        ended = bool(flags & END_STREAM)
        if ended and not self._ends(stream):
            return
        self._handler.on_request(stream, head, ended=ended)

    def _late_head(self, stream: Stream | None, flags: int, number: int, head: Head) -> None:
        """Process another header block of a stream: trailers."""
        if stream is None:
            self.lives.late(number, is_new=True)
            return
        if stream.client_is_done:
            self.lives.end_faulty(stream, frames.STREAM_CLOSED)
        elif not flags & END_STREAM or head.is_bad_behind:
            self.lives.end_faulty(stream, PROTOCOL_ERROR)
        elif self._ends(stream):
            self._handler.on_data(stream, b"", ended=True)

    def _data(self, flags: int, number: int, body: bytes) -> None:
        length = len(body)
        self._room -= length
        if self._room < CONNECTION_WINDOW // 2:
            if self._room < 0:
                raise Fault(frames.FLOW_CONTROL_ERROR, b"more than the connection's window")
            self.out.put(frames.window_update(0, CONNECTION_WINDOW - self._room))
            self._room = CONNECTION_WINDOW
        body = _without_padding(flags, body, 0) if flags & PADDED else body
        if not body and not flags & END_STREAM:
            self._floods.empty()
        stream = self.streams.get(number)
        if stream is None:
            if not number & 1 or number > self._last:
                raise Fault(PROTOCOL_ERROR, b"data without a request")
            self.lives.late(number, is_new=False)
            return
        if stream.client_is_done:
            self.lives.end_faulty(stream, frames.STREAM_CLOSED)
            return
        stream.room -= length
        if stream.room < 0:
            self.lives.end_faulty(stream, frames.FLOW_CONTROL_ERROR)
            return
        if stream.left is not None:
            stream.left -= len(body)
        if flags & END_STREAM:
            if self._ends(stream):
                self._handler.on_data(stream, body, ended=True)
            return
        self._handler.on_data(stream, body, ended=False)
        if not stream.is_held and not stream.is_closed:
            self._let_more_come(stream)

    def _other(self, kind: int, flags: int, number: int, body: bytes) -> None:
        match kind:
            case frames.WINDOW_UPDATE:
                self._window_update(number, body)
            case frames.RST_STREAM:
                self._rst_stream(number, body)
            case frames.SETTINGS:
                self._settings(flags, number, body)
            case frames.PING:
                self._ping(flags, number, body)
            case frames.PRIORITY:
                self._floods.empty()
                _check(number != 0)
                _check(len(body) == _PRIORITY_BYTES, frames.FRAME_SIZE_ERROR)
            case frames.GOAWAY:
                self._floods.empty()  # Its streams go on.
                _check(number == 0)
                _check(len(body) >= 2 * LONG.size, frames.FRAME_SIZE_ERROR)
            case frames.PUSH_PROMISE | frames.CONTINUATION:
                raise Fault(PROTOCOL_ERROR, b"a frame that may not be here")
            case _:
                self._floods.empty()

    def _window_update(self, number: int, body: bytes) -> None:
        _check(len(body) == LONG.size, frames.FRAME_SIZE_ERROR)
        self._floods.update(self.out.total)
        count = LONG.unpack(body)[0] & STREAM_MASK
        if number == 0:
            _check(count > 0)
            _check(self.out.widen_all(count), frames.FLOW_CONTROL_ERROR)
            return
        stream = self.streams.get(number)
        if stream is None:
            _check(bool(number & 1) and number <= self._last)
        elif count == 0:
            self.lives.end_faulty(stream, PROTOCOL_ERROR)
        elif not self.out.widen(stream, count):
            self.lives.end_faulty(stream, frames.FLOW_CONTROL_ERROR)

    def _rst_stream(self, number: int, body: bytes) -> None:
        _check(len(body) == LONG.size, frames.FRAME_SIZE_ERROR)
        _check(bool(number & 1) and number <= self._last)
        self._floods.reset()
        stream = self.streams.get(number)
        if stream is not None:
            self.lives.leave(stream)

    def _settings(self, flags: int, number: int, body: bytes) -> None:
        _check(number == 0)
        self._floods.settings()
        if flags & ACK:
            _check(not body, frames.FRAME_SIZE_ERROR)
            return
        window, table = _wanted(body, self.out.initial_window)
        if table < TABLE_BYTES:
            self.out.shrink_table()
        self.out.put(_SETTINGS_ACK)
        more, self.out.initial_window = window - self.out.initial_window, window
        for stream in list(self.streams.values()) if more else ():
            _check(self.out.widen(stream, more), frames.FLOW_CONTROL_ERROR)

    def _ping(self, flags: int, number: int, body: bytes) -> None:
        _check(number == 0)
        _check(len(body) == 8, frames.FRAME_SIZE_ERROR)
        if flags & ACK:
            self._floods.empty()
            return
        forgives, self.out.has_sent = self.out.has_sent, False
        self._floods.ping(forgives=forgives)
        self.out.put(frame(frames.PING, ACK, 0, body))

    def _let_more_come(self, stream: Stream) -> None:
        """Enlarge a stream's window when half of it is used."""
        if stream.room < STREAM_WINDOW // 2 and not stream.client_is_done:
            self.out.put(frames.window_update(stream.number, STREAM_WINDOW - stream.room))
            stream.room = STREAM_WINDOW

    def _ends(self, stream: Stream) -> bool:
        """End the request; return whether its length is as announced."""
        stream.client_is_done = True
        if stream.left:
            self.lives.end_faulty(stream, PROTOCOL_ERROR)
            return False
        return True


def _wanted(body: bytes, window: int) -> tuple[int, int]:
    """Return the initial window and the smallest header table size of a SETTINGS frame; raises
    ``Fault`` for invalid ones.
    """
    _check(len(body) % SETTING.size == 0, frames.FRAME_SIZE_ERROR)
    table = TABLE_BYTES
    for name, value in SETTING.iter_unpack(body):
        if name == frames.INITIAL_WINDOW_SIZE:
            _check(value <= frames.MAX_WINDOW, frames.FLOW_CONTROL_ERROR)
            window = value
        elif name == frames.HEADER_TABLE_SIZE:
            table = min(table, value)
        elif name == frames.ENABLE_PUSH:
            _check(value <= 1)
        elif name == frames.MAX_FRAME_SIZE:
            _check(FRAME_BYTES <= value <= frames.LARGEST_FRAME_BYTES)
    return window, table


_SETTINGS_ACK: Final = frame(frames.SETTINGS, ACK, 0)


def _check(holds: bool, code: int = PROTOCOL_ERROR) -> None:
    if not holds:
        raise Fault(code)


def _without_padding(flags: int, body: bytes, skipped: int) -> bytes:
    """Return a body without its padding and prefix."""
    padding = 0
    if flags & PADDED:
        _check(bool(body), frames.FRAME_SIZE_ERROR)
        padding = body[0]
        skipped += 1
    if skipped > len(body):
        raise Fault(frames.FRAME_SIZE_ERROR)
    _check(padding <= len(body) - skipped)
    return body[skipped : len(body) - padding]
