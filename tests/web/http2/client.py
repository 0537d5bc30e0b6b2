"""A client's side of HTTP/2 for tests: frames by hand, header blocks by the library ``hpack``."""

from __future__ import annotations

from typing import NamedTuple

import hpack

from soliton.web.http2.limits import Http2Limits
from soliton.web.http2.machine import Machine
from soliton.web.http2.requests import Head
from soliton.web.http2.streams import Stream

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH_PROMISE = range(6)
PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = range(6, 10)
END_STREAM, ACK, END_HEADERS, PADDED, WITH_PRIORITY = 1, 1, 4, 8, 32
REQUEST = ((":method", "POST"), (":scheme", "http"), (":path", "/a"), (":authority", "here"))


class Frame(NamedTuple):
    """A frame."""

    kind: int
    flags: int
    stream: int
    body: bytes


def frame(kind: int, flags: int = 0, stream: int = 0, body: bytes = b"") -> bytes:
    """Its bytes."""
    return len(body).to_bytes(3, "big") + bytes((kind, flags)) + stream.to_bytes(4, "big") + body


def settings(*pairs: tuple[int, int]) -> bytes:
    """What a client wants."""
    body = b"".join(name.to_bytes(2, "big") + value.to_bytes(4, "big") for name, value in pairs)
    return frame(SETTINGS, 0, 0, body)


def number(value: int) -> bytes:
    """Four bytes."""
    return value.to_bytes(4, "big")


def request(stream: int, *, ended: bool = False, more: tuple[tuple[str, str], ...] = ()) -> bytes:
    """The head of a request, in a block that needs no table."""
    block = b"".join(
        b"\x00" + b"".join(bytes((len(each),)) + each.encode() for each in header)
        for header in (*REQUEST, *more)
    )
    return frame(HEADERS, END_HEADERS | (END_STREAM if ended else 0), stream, block)


def frames_in(data: bytes) -> list[Frame]:
    """The frames that bytes hold, all of them whole."""
    found, at = [], 0
    while at < len(data):
        end = at + 9 + int.from_bytes(data[at : at + 3], "big")
        assert end <= len(data)
        stream = int.from_bytes(data[at + 5 : at + 9], "big")
        found.append(Frame(data[at + 3], data[at + 4], stream, data[at + 9 : end]))
        at = end
    return found


class Recorder:
    """A handler that notes what it is told; with ``answers`` it answers each request that ends."""

    def __init__(self, answers: bytes | None = None) -> None:
        self.told: list[tuple[object, ...]] = []
        self.machine: Machine
        self.streams: dict[int, Stream] = {}
        self.bodies: dict[int, bytes] = {}
        self._answers = answers

    def on_request(self, stream: Stream, head: Head, *, ended: bool) -> None:
        self.told.append(("request", stream.number, head.path, tuple(head.fields), ended))
        self.streams[stream.number] = stream
        self.bodies[stream.number] = b""
        self._ends(stream, ended)

    def on_data(self, stream: Stream, data: bytes, *, ended: bool) -> None:
        self.bodies[stream.number] += data
        if ended:
            self.told.append(("body", stream.number, self.bodies[stream.number]))
        self._ends(stream, ended)

    def _ends(self, stream: Stream, ended: bool) -> None:
        if ended and self._answers is not None:
            self.machine.out.answer(stream, b"\x88", self._answers, b"\x88")

    def on_sent(self, stream: Stream) -> None:
        self.told.append(("sent", stream.number))

    def on_closed(self, stream: Stream) -> None:
        self.told.append(("closed", stream.number))


class Wire:
    """A machine, and what it has sent."""

    def __init__(
        self,
        answers: bytes | None = None,
        limits: Http2Limits | None = None,
        *,
        begins: bool = True,
    ) -> None:
        self.handler = Recorder(answers)
        self.machine = self.handler.machine = Machine(
            self.handler, limits or Http2Limits(), lambda: None
        )
        self.now = 0.0
        self.decoder = hpack.Decoder()
        self.machine.start(self.now)
        if begins:
            self.feed(PREFACE + settings())
            self.sent()

    @property
    def told(self) -> list[tuple[object, ...]]:
        """What the handler was told."""
        return self.handler.told

    def feed(self, *parts: bytes) -> Wire:
        """Send bytes."""
        for each in parts:
            self.machine.receive(each, self.now)
        return self

    def sent(self) -> list[Frame]:
        """The frames that the machine has sent since the last time."""
        return frames_in(self.machine.out.take())

    def codes(self, kind: int) -> list[int]:
        """The codes of the frames of a kind that have been sent (RST_STREAM, GOAWAY)."""
        at = 4 if kind == GOAWAY else 0
        return [
            int.from_bytes(each.body[at : at + 4], "big")
            for each in self.sent()
            if each.kind == kind
        ]
