"""The client side of HTTP/1.1, sans-I/O: requests to bytes, and bytes to events.

What lives here: encoding a request, and the machine that parses responses. What does not:
connections (``client``), and servers.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec
from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

from soliton.errors import EnvironmentProblem
from soliton.web.types import Headers

MAX_HEAD_BYTES: Final = 64 * 1024
"""Status line and headers of a response, including the rest of their last packet."""
WITHOUT_EFFECT: Final = frozenset(("GET", "HEAD", "OPTIONS"))
"""Safe methods: a request may be sent again when its response did not arrive."""
HOP_BY_HOP: Final = frozenset(
    (b"connection", b"date", b"keep-alive", b"transfer-encoding", b"upgrade")
)
"""Headers that concern one connection only, and the date, which every server writes itself."""
_FIRST_FINAL_STATUS: Final = 200
_HAS_HEAD: Final = -1
_FRAMING: Final = frozenset((b"content-length", b"transfer-encoding"))


class ProtocolError(EnvironmentProblem):
    """The response is invalid or was cut off."""


class Head(msgspec.Struct, frozen=True, gc=False):
    """The beginning of a response; names of headers are in lower case."""

    status: int
    headers: Headers


class Data(msgspec.Struct, frozen=True, gc=False):
    """A piece of the body."""

    data: bytes


class End(msgspec.Struct, frozen=True, gc=False):
    """The response is complete; ``keeps_alive`` says whether its connection takes another."""

    keeps_alive: bool


Event = Head | Data | End


class ResponseReader:
    """Reads the responses of one connection: each is a ``Head``, any number of ``Data``, an
    ``End``.
    """

    __slots__ = ("_events", "_has_body", "_head_bytes", "_headers", "_is_done", "_parser")

    def __init__(self) -> None:
        self._parser = HttpResponseParser(self)
        self._events: list[Event] = []
        self._headers: list[tuple[bytes, bytes]] = []
        self._head_bytes = 0
        self._has_body = self._is_done = True

    def expect(self, *, has_body: bool = True) -> None:
        """Expect another response; ``has_body`` is off for that to ``HEAD``, which has a content
        length but no body.
        """
        self._has_body = has_body
        self._is_done = False
        self._head_bytes = 0

    def receive(self, data: bytes) -> list[Event]:
        """Return the events in these bytes; raises ``ProtocolError``."""
        if self._head_bytes != _HAS_HEAD:
            self._head_bytes += len(data)
        try:
            self._parser.feed_data(data)
        except (HttpParserError, HttpParserUpgrade) as error:
            raise ProtocolError(str(error)) from error
        if self._head_bytes > MAX_HEAD_BYTES:
            raise ProtocolError(f"a head of more than {MAX_HEAD_BYTES} bytes")
        events, self._events = self._events, []
        return events

    def ends_here(self) -> bool:
        """Whether the end of the connection completes the response: its body has no length."""
        has_head = self._head_bytes == _HAS_HEAD
        return has_head and not any(name in _FRAMING for name, _ in self._headers)

    # --- called by the parser ---------------------------------------------------------------------

    def on_message_begin(self) -> None:
        """A response begins, or an interim one."""
        if self._is_done:
            raise ProtocolError("a response that nobody asked for")
        self._headers = []

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header."""
        self._headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        """The head is complete."""
        status = self._parser.get_status_code()
        if status < _FIRST_FINAL_STATUS:
            return
        self._head_bytes = _HAS_HEAD
        self._events.append(Head(status, tuple(self._headers)))
        if not self._has_body:
            self._is_done = True
            self._events.append(End(keeps_alive=False))

    def on_body(self, data: bytes) -> None:
        """Bytes of the body."""
        if not self._is_done:
            self._events.append(Data(data))

    def on_message_complete(self) -> None:
        """The response ends, unless it was an interim one."""
        if self._head_bytes == _HAS_HEAD and not self._is_done:
            self._is_done = True
            self._events.append(End(self._parser.should_keep_alive()))


def request_bytes(method: str, target: str, lines: bytes, body: bytes) -> bytes:
    """Encode a request with these ``header_lines``."""
    head = b"%b %b HTTP/1.1\r\n%b" % (method.encode("ascii"), target.encode("latin-1"), lines)
    if not body and method in WITHOUT_EFFECT:
        return head + b"\r\n"
    return b"%bcontent-length: %d\r\n\r\n%b" % (head, len(body), body)


def header_lines(headers: Iterable[tuple[bytes, bytes]]) -> bytes:
    """Encode headers."""
    return b"".join([b"%b: %b\r\n" % header for header in headers])


def end_to_end(headers: Iterable[tuple[bytes, bytes]]) -> Headers:
    """Return headers without those that concern one connection."""
    return tuple([header for header in headers if header[0] not in HOP_BY_HOP])
