"""A client of HTTP/2 that writes whatever frames it is told to, and holds each frame of the server
against the rules. It shares no code with the server.

Sources: RFC 9113, RFC 7541, and ``doc/PROTOCOL-HTTP2.md`` of gRPC.
"""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final, Self

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, PRIORITY, RESET, SETTINGS, PROMISE, PING, AWAY, WINDOW, MORE = range(10)
ACK, END_STREAM, END_HEADERS, PADDED, WITH_PRIORITY = 1, 1, 4, 8, 32
NO_ERROR, PROTOCOL_ERROR, INTERNAL_ERROR, FLOW_CONTROL_ERROR = range(4)
STREAM_CLOSED, FRAME_SIZE_ERROR, REFUSED_STREAM, CANCEL, COMPRESSION_ERROR = 5, 6, 7, 8, 9
CALM = 11
TABLE_SIZE, PUSH, STREAMS, INITIAL_WINDOW, FRAME_SIZE = 1, 2, 3, 4, 5
USUAL_TABLE = 4_096
USUAL_WINDOW = 65_535
USUAL_FRAME = 16_384
LARGEST_WINDOW = 2**31 - 1
SECONDS = 20.0
HEIGHT = "/waves.node.grpc.BlocksApi/GetCurrentHeight"
OWN = (("content-type", "application/grpc"), ("te", "trailers"))

Pairs = Iterable[tuple[str, str]]

_STATUSES = {8: "200", 9: "204", 10: "206", 11: "304", 12: "400", 13: "404", 14: "500"}
_NAMES = {8: ":status", 22: "allow", 28: "content-length", 31: "content-type"}
"""Of the static table, what answers to calls may have."""


def frame(kind: int, flags: int, stream: int, body: bytes = b"") -> bytes:
    """A frame, right or wrong."""
    return struct.pack(">I", len(body))[1:] + struct.pack(">BBI", kind, flags, stream) + body


def number(value: int, bits: int, first: int = 0) -> bytes:
    """An integer of HPACK in so many bits of its first byte."""
    most = (1 << bits) - 1
    if value < most:
        return bytes((first | value,))
    made, value = bytearray((first | most,)), value - most
    while value > 0x7F:
        made.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes((*made, value))


def text(value: str | bytes) -> bytes:
    """A string of HPACK that is not compressed."""
    data = value if isinstance(value, bytes) else value.encode()
    return number(len(data), 7) + data


def literal(name: str | bytes, value: str | bytes, first: int = 0) -> bytes:
    """A header that enters no table (or does, with ``first`` 0x40)."""
    return bytes((first,)) + text(name) + text(value)


def block(pairs: Pairs) -> bytes:
    """Headers, each as a literal."""
    return b"".join(literal(*each) for each in pairs)


def pseudo(path: str = HEIGHT) -> tuple[tuple[str, str], ...]:
    """What each request begins with."""
    return (
        (":method", "POST"),
        (":scheme", "http"),
        (":path", path),
        (":authority", "here"),
    )


def head(path: str = HEIGHT, more: Pairs = ()) -> bytes:
    """The header block of a call."""
    return block((*pseudo(path), *OWN, *more))


def message(data: bytes = b"") -> bytes:
    """A message of gRPC."""
    return b"\0" + struct.pack(">I", len(data)) + data


HEIGHT_BYTES: Final = message(b"\x08\x02")
"""The height of the chain behind the door."""


def whole(stream: int, path: str = HEIGHT, data: bytes = b"", more: Pairs = ()) -> bytes:
    """The frames of a call that is all right."""
    return opened(stream, path, more) + frame(DATA, END_STREAM, stream, message(data))


def opened(stream: int, path: str = HEIGHT, more: Pairs = ()) -> bytes:
    """A call whose request is to come."""
    return frame(HEADERS, END_HEADERS, stream, head(path, more))


def headers(data: bytes, stream: int = 1, flags: int = END_STREAM | END_HEADERS) -> bytes:
    """A header block in one frame."""
    return frame(HEADERS, flags, stream, data)


def settings(*pairs: tuple[int, int]) -> bytes:
    """Settings of the client."""
    return frame(SETTINGS, 0, 0, b"".join(struct.pack(">HI", *each) for each in pairs))


def update(stream: int, count: int) -> bytes:
    """So many bytes more."""
    return frame(WINDOW, 0, stream, struct.pack(">I", count))


@dataclass
class Answer:
    """What came on a stream."""

    headers: dict[str, str] = field(default_factory=dict)
    trailers: dict[str, str] = field(default_factory=dict)
    data: bytearray = field(default_factory=bytearray)
    ended: bool = False
    reset: int | None = None

    @property
    def is_over(self) -> bool:
        """Whether nothing more comes."""
        return self.ended or self.reset is not None

    @property
    def status(self) -> str | None:
        """That of gRPC."""
        return self.trailers.get("grpc-status", self.headers.get("grpc-status"))


class Picky:
    """A connection."""

    def __init__(
        self, port: int, *pairs: tuple[int, int], first: bytes | None = None, buffer: int = 0
    ) -> None:
        """Begins with these settings, or in another way; ``buffer`` is how much the system takes of
        what the server sends.
        """
        self.plug = socket.socket()
        if buffer:
            self.plug.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
        self.plug.settimeout(SECONDS)
        self.plug.connect(("127.0.0.1", port))
        self.plug.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.answers: dict[int, Answer] = {}
        self.gone: int | None = None
        """Why the server goes."""
        self.text = b""
        self.is_closed = False
        self.pongs: list[bytes] = []
        self.acknowledged = 0
        self.said: dict[int, int] = {}
        """The server's settings."""
        self.widens = True
        """Whether more may come whenever something has."""
        self._rest = bytearray()
        self._asked: list[tuple[tuple[int, int], ...]] = []
        self._window = USUAL_WINDOW
        self._windows: dict[int, int] = {}
        self._initial = USUAL_WINDOW
        self._table = self._most_table = USUAL_TABLE
        self._shrinks = False
        self._open: tuple[int, int, bytearray] | None = None
        if first is None:
            self._asked.append(pairs)
            self.send(PREFACE + settings(*pairs))
        else:
            self.send(first)

    # --- what goes --------------------------------------------------------------------------------

    def send(self, *frames: bytes) -> bool:
        """Send bytes: whether the server still takes them."""
        try:
            self.plug.sendall(b"".join(frames))
        except (BrokenPipeError, ConnectionResetError):
            return False
        return True

    def want(self, *pairs: tuple[int, int]) -> None:
        """Send settings, which hold from when the server says so."""
        self._asked.append(pairs)
        self.send(settings(*pairs))

    def widen(self, stream: int, count: int) -> None:
        """Let more come on a stream, or (0) on the connection."""
        if stream:
            self._windows[stream] = self._windows.get(stream, self._initial) + count
        else:
            self._window += count
        self.send(update(stream, count))

    def leave(self, stream: int) -> None:
        """Want no more of a stream; what is on its way still comes."""
        self.send(frame(RESET, 0, stream, struct.pack(">I", CANCEL)))

    def close(self) -> None:
        """Hang up."""
        self.plug.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # --- what comes -------------------------------------------------------------------------------

    def on(self, stream: int) -> Answer:
        """What came on a stream."""
        return self.answers.setdefault(stream, Answer())

    def read(self, until: Callable[[], bool], seconds: float = SECONDS) -> bool:
        """Read until it is so, or the server has closed: whether it is so."""
        end = time.monotonic() + seconds
        while not until() and not self.is_closed:
            left = end - time.monotonic()
            if left <= 0:
                break
            self.plug.settimeout(left)
            try:
                data = self.plug.recv(1 << 16)
            except TimeoutError:
                break
            except ConnectionResetError:
                data = b""
            finally:
                self.plug.settimeout(SECONDS)
            if not data:
                self.is_closed = True
            self._rest += data
            self._take_frames()
        return until()

    def answer(self, stream: int) -> Answer:
        """All that comes on a stream."""
        assert self.read(lambda: self.on(stream).is_over), f"{self.gone} {self.text!r}"
        return self.on(stream)

    def check(self, stream: int) -> None:
        """A call on a stream that has not been used is answered."""
        self.send(whole(stream))
        answer = self.answer(stream)
        assert (bytes(answer.data), answer.status, answer.reset) == (HEIGHT_BYTES, "0", None)

    def end(self) -> int | None:
        """Wait for the end of the connection; the error that the server named."""
        assert self.read(lambda: self.is_closed), "the connection stays"
        return self.gone

    def settle(self) -> None:
        """Wait until the server has looked at all that was sent. Pings may not come that often."""
        count = self.acknowledged + len(self._asked) + 1
        self.want()
        assert self.read(lambda: self.acknowledged >= count), f"{self.gone} {self.text!r}"

    def _take_frames(self) -> None:
        rest = self._rest
        while len(rest) >= 9:
            length = int.from_bytes(rest[:3], "big")
            assert length <= USUAL_FRAME, "the client takes no longer frame"
            if len(rest) < 9 + length:
                return
            kind, flags, stream = struct.unpack(">BBI", rest[3:9])
            body = bytes(rest[9 : 9 + length])
            del rest[: 9 + length]
            self._take(kind, flags, stream, body)

    def _take(self, kind: int, flags: int, stream: int, body: bytes) -> None:
        if self._open is not None:
            assert kind == MORE and stream == self._open[0], "a header block goes on"
        match kind:
            case 0:
                self._take_data(flags, stream, body)
            case 1 | 9:
                self._take_head(kind, flags, stream, body)
            case 3:
                self._take_reset(self.on(stream), int.from_bytes(body, "big"), len(body))
            case 4:
                self._take_settings(flags, stream, body)
            case 6:
                assert stream == 0 and len(body) == 8
                if flags & ACK:
                    self.pongs.append(body)
                else:
                    self.send(frame(PING, ACK, 0, body))
            case 7:
                assert stream == 0
                self.gone, self.text = int.from_bytes(body[4:8], "big"), body[8:]
            case 8:
                assert len(body) == 4 and int.from_bytes(body, "big") > 0
            case _:
                raise AssertionError(f"a server sends no frame of kind {kind}")

    def _take_reset(self, answer: Answer, code: int, length: int) -> None:
        assert length == 4 and answer.reset is None
        if answer.ended:
            # The rest of the request is not wanted (RFC 9113, section 8.1).
            assert code == NO_ERROR
        else:
            answer.reset = code

    def _take_data(self, flags: int, stream: int, body: bytes) -> None:
        answer = self.on(stream)
        self._window -= len(body)
        assert stream & 1 and answer.headers and not answer.is_over
        self._windows[stream] = self._windows.get(stream, self._initial) - len(body)
        assert self._window >= 0, "more than the connection's window"
        if body:
            assert self._windows[stream] >= 0, "more than the stream's window"
        answer.data += body
        answer.ended = bool(flags & END_STREAM)
        if self.widens and body:
            self.widen(0, len(body))
            if not answer.ended:
                self.widen(stream, len(body))

    def _take_head(self, kind: int, flags: int, stream: int, body: bytes) -> None:
        answer = self.on(stream)
        assert stream & 1 and not answer.is_over
        if kind == HEADERS:
            assert not flags & (PADDED | WITH_PRIORITY)
            self._open = (stream, flags, bytearray())
        assert self._open is not None, "nothing goes on"
        _, first, data = self._open
        data += body
        if not flags & END_HEADERS:
            return
        self._open = None
        headers = self._decoded(bytes(data))
        answer.ended = bool(first & END_STREAM)
        if answer.headers:
            assert answer.ended and not any(each.startswith(":") for each in headers)
            answer.trailers = headers
        else:
            assert next(iter(headers)) == ":status"
            answer.headers = headers

    def _take_settings(self, flags: int, stream: int, body: bytes) -> None:
        assert stream == 0
        if not flags & ACK:
            assert len(body) % 6 == 0
            self.said.update(struct.iter_unpack(">HI", body))
            self.send(frame(SETTINGS, ACK, 0))
            return
        assert not body
        self.acknowledged += 1
        # What a test has sent by itself holds as it says.
        for name, value in self._asked.pop(0) if self._asked else ():
            if name == INITIAL_WINDOW:
                for each in self._windows:
                    self._windows[each] += value - self._initial
                self._initial = value
            if name == TABLE_SIZE:
                self._most_table = value
                self._shrinks = self._shrinks or value < self._table

    # --- header blocks ----------------------------------------------------------------------------

    def _decoded(self, data: bytes) -> dict[str, str]:
        """A block of a server that makes no use of tables, and compresses nothing."""
        found: dict[str, str] = {}
        at = 0
        while at < len(data):
            if data[at] & 0xE0 == 0x20:
                size, at = _number(data, at, 5)
                assert not found and size <= self._most_table
                self._shrinks, self._table = False, size
                continue
            assert not self._shrinks, "the table has become smaller: RFC 7541, section 4.2"
            if data[at] & 0x80:
                index, at = _number(data, at, 7)
                name, value = _NAMES[8], _STATUSES[index]
            else:
                assert data[at] & 0xF0 in (0x00, 0x10), "it would enter the table"
                index, at = _number(data, at, 4)
                name, at = (_NAMES[index], at) if index else _text(data, at)
                value, at = _text(data, at)
            assert name == name.lower() and name not in found
            found[name] = value
        return found


def _number(data: bytes, at: int, bits: int) -> tuple[int, int]:
    most = (1 << bits) - 1
    value, shift = data[at] & most, 0
    at += 1
    while value >= most and (shift == 0 or data[at - 1] & 0x80):
        value += (data[at] & 0x7F) << shift
        shift += 7
        at += 1
    return value, at


def _text(data: bytes, at: int) -> tuple[str, int]:
    assert not data[at] & 0x80, "it is compressed"
    length, at = _number(data, at, 7)
    assert at + length <= len(data)
    return data[at : at + length].decode("ascii"), at + length
