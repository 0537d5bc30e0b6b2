"""HTTP/1.1 sans-I/O: bytes of a connection in, requests out; answers in, bytes out.

What lives here: assembling requests with httptools within limits on heads and bodies, and encoding
answers, without sockets, clocks and tasks. What does not: when to read and answer (``connection``).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import Enum
from http import HTTPStatus
from typing import Final, Generic, TypeAlias, TypeVar

import httptools
from httptools import HttpParserError, HttpParserUpgrade, HttpRequestParser

from soliton.errors import InvariantBroken
from soliton.proxies import NO_PROXIES, TrustedProxies
from soliton.web.answers import Service, Stream, Unread, Whole
from soliton.web.header_rules import combined, is_authority, repeats_single
from soliton.web.request import Request
from soliton.web.types import Headers

R = TypeVar("R", bound=Request)

MAX_HEADERS: Final = 256
"""Headers of one request; browsers and proxies together send a tenth of that."""
MAX_LENGTH_DIGITS: Final = 18
"""A content length with more digits is always too large."""
CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"

_STATUS_LINES: Final = {
    status: b"HTTP/1.1 %d %s\r\n" % (status, phrase.encode("ascii"))
    for status, phrase in (
        dict.fromkeys(range(100, 600), "") | {status.value: status.phrase for status in HTTPStatus}
    ).items()
}
_OFFERS: Final = frozenset((b"upgrade", b"http2-settings"))
"""Headers of an offer of another protocol, and the tokens of ``Connection`` that name them."""
_CONNECTION: Final = b"connection"
_VERSIONS: Final = frozenset(("1.0", "1.1"))
_CLOSE: Final = b"connection: close\r\n"
_CHUNKED: Final = b"transfer-encoding: chunked\r\n"
_LENGTH: Final = b"content-length"
LAST_CHUNK: Final = b"0\r\n\r\n"
_WITHOUT_BODY: Final = frozenset((204, 304))


class State(Enum):
    """The parser's position in a request."""

    BETWEEN = "between requests"
    HEAD = "in a head"
    BODY = "in a body"
    UNREAD_BODY = "in a body that was refused"


class Invalid(Enum):
    """The bytes are no acceptable request; nothing after them is parsed."""

    REQUEST = 400, b"Invalid HTTP request received."
    NO_HOST = 400, b"The request has no Host header."
    BAD_HOST = 400, b"The Host header is no host with an optional port."
    TWICE = 400, b"A header that may occur only once is repeated."
    CODING = 501, b"The only supported transfer coding is chunked."
    VERSION = 505, b"The version of HTTP has to be 1.0 or 1.1."
    LONG_HEAD = 400, b"The request head is too long."
    LONG_FRAME = 400, b"The headers of a chunk, or behind the last one, are too long."

    def __init__(self, status: int, text: bytes) -> None:
        self.status = status
        self.text = text


class Refused(Generic[R]):
    """A request whose body is not read."""

    __slots__ = ("reason", "request")

    def __init__(self, request: R, reason: Unread) -> None:
        self.request = request
        self.reason = reason


class Continue:
    """The client waits for ``100 Continue`` before it sends the body."""


Event: TypeAlias = R | Refused[R] | Invalid | Continue


class RequestParser(Generic[R]):
    """Parses the requests of one connection; ``host`` is the address at its other end, which is
    that of its client or of a trusted proxy.
    """

    __slots__ = (
        "_body",
        "_events",
        "_fault",
        "_fed",
        "_fields",
        "_framing",
        "_head_limit",
        "_headers",
        "_host",
        "_length",
        "_make",
        "_max_body",
        "_parser",
        "_peer",
        "_proxies",
        "_request",
        "_url",
        "client",
        "state",
        "unparsed",
    )

    def __init__(
        self,
        service: Service[R],
        head_bytes: int,
        host: str,
        peer: str = "",
        proxies: TrustedProxies = NO_PROXIES,
    ) -> None:
        self._make = service.request_class
        self._max_body = service.body_limits.max_bytes
        self._head_limit = head_bytes
        self._host = host
        self._peer = peer
        self._proxies = proxies if proxies.trusts(host) else None
        self.client = host
        """The address of the client of the last request."""
        self._parser = HttpRequestParser(self)
        self.state = State.BETWEEN
        self.unparsed = b""
        """The bytes after a WebSocket request, which is the last event."""
        self._events: list[Event[R]] = []
        self._fault: Invalid | None = None
        """Why the request cannot be accepted, if the parser does not know."""
        self._fed = self._length = 0
        self._framing = 0
        """Bytes of a body's frame since its last data: the head of a chunk, or the trailers."""
        self._url = b""
        self._headers: list[tuple[bytes, bytes]] = []
        self._fields: dict[bytes, bytes] = {}
        self._body = bytearray()
        self._request: R | None = None

    def feed(self, data: bytes) -> Sequence[Event[R]]:
        """Return the events that these bytes complete, in order. ``Invalid`` is always the last."""
        events = self._events = []
        try:
            while data:
                self._fed = len(data)
                try:
                    self._parser.feed_data(data)
                    break
                except HttpParserUpgrade as upgrade:
                    data = self._upgraded(data[upgrade.args[0] :])
        except HttpParserError:
            events.append(self._fault or Invalid.REQUEST)
            return events
        if self.state is State.HEAD:
            self._length += self._fed
            if self._length > self._head_limit:
                events.append(Invalid.LONG_HEAD)
        elif self.state is not State.BETWEEN:
            self._framing += self._fed
            if self._framing > self._head_limit:
                events.append(Invalid.LONG_FRAME)
        return events

    @property
    def unfinished(self) -> R | None:
        """The request whose body is incomplete."""
        return self._request

    def close(self) -> None:
        """Break the reference cycle between the parser and this object; ``feed`` must not be called
        afterwards.
        """
        self._events = []
        del self._parser

    # --- called by the parser ---------------------------------------------------------------------

    def on_message_begin(self) -> None:
        """A request begins."""
        self.state = State.HEAD
        self._length = 0
        self._url = b""
        self._headers = []

    def on_url(self, url: bytes) -> None:
        """A part of the target."""
        self._url += url

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header."""
        # The parser removes white space before a value only.
        self._headers.append((name.lower(), value.rstrip(b" \t")))
        if len(self._headers) > MAX_HEADERS:
            # Stop at once, since each header costs more than its bytes.
            raise HttpParserError("too many headers")

    def on_headers_complete(self) -> None:
        """The head is complete."""
        if self._length + self._fed > self._head_limit:
            self._check_length()
        self._fields = combined(self._headers)
        self._fault = self._fault_of_head()
        if self._fault is not None:
            raise HttpParserError(self._fault.name)
        if self._parser.should_upgrade():
            # The parser stops here, and raises ``HttpParserUpgrade``.
            return
        request = self._request = self._take_request()
        self.state = State.BODY
        self._body = bytearray()
        self._length = self._framing = 0
        headers = request.headers
        declared = headers.get(_LENGTH)
        if declared is not None and (
            len(declared) > MAX_LENGTH_DIGITS or int(declared) > self._max_body
        ):
            self._refuse_body(request)
        elif b"expect" in headers and headers[b"expect"].lower() == b"100-continue":
            self._events.append(Continue())

    def on_body(self, body: bytes) -> None:
        """Bytes of a body."""
        self._framing = -self._fed
        if self._request is not None:
            self._body += body
            self._length += len(body)
            if self._length > self._max_body:
                self._refuse_body(self._request)

    def on_message_complete(self) -> None:
        """A request is complete."""
        if self._request is not None:
            self._request.body = bytes(self._body)
            self._body = bytearray()
            self._events.append(self._request)
            self._request = None
        if self.state is not State.HEAD:
            self.state = State.BETWEEN

    # ----------------------------------------------------------------------------------------------

    def _check_length(self) -> None:
        """Refuse a complete head that is too long."""
        length = len(self._url) + sum(len(name) + len(value) + 4 for name, value in self._headers)
        if length > self._head_limit:
            raise HttpParserError("the request head is too long")

    def _fault_of_head(self) -> Invalid | None:
        """Return what RFC 9112 forbids and the parser accepts."""
        fields, version = self._fields, self._parser.get_http_version()
        if version not in _VERSIONS:
            return Invalid.VERSION
        if len(fields) < len(self._headers) and repeats_single(self._headers):
            return Invalid.TWICE
        host = fields.get(b"host")
        if host is None:
            if version != "1.0":
                return Invalid.NO_HOST
        elif not is_authority(host):
            return Invalid.BAD_HOST
        coding = fields.get(b"transfer-encoding")
        return Invalid.CODING if coding is not None and coding.lower() != b"chunked" else None

    def _refuse_body(self, request: R) -> None:
        self.state = State.UNREAD_BODY
        self._request = None
        self._body = bytearray()
        self._events.append(Refused(request, Unread.TOO_LONG))

    def _take_request(self) -> R:
        url, parser = self._url, self._parser
        if url[:1] == b"/" and b"#" not in url and url.isascii():
            path, _, query = url.partition(b"?")
        else:
            parsed = httptools.parse_url(url)
            path, query = parsed.path or b"", parsed.query or b""
        if self._proxies is not None:
            self.client = self._proxies.client_of(self._host, self._fields)
        request = self._make(
            parser.get_method().decode("ascii"),
            path.decode("latin-1"),
            query,
            self._fields,
            b"",
            self.client,
        )
        request.peer = self._peer
        request.keep_alive = parser.should_keep_alive() and parser.get_http_version() != "1.0"
        return request

    def _upgraded(self, rest: bytes) -> bytes:
        """Handle a head with an ``Upgrade`` header, and return the bytes to parse next.

        The HTTP client of Java 11 and newer offers HTTP/2 with every first request; the parser
        would treat the body of such a request as the other protocol. So the request is parsed again
        without the offer.
        """
        method, version = self._parser.get_method(), self._parser.get_http_version()
        if method == b"CONNECT":
            raise HttpParserError("CONNECT")
        if method == b"GET" and version != "1.0" and self._offers_websocket(self._fields):
            request = self._take_request()
            request.is_websocket = True
            self._events.append(request)
            self.unparsed, rest = rest, b""
            self.state = State.BETWEEN
        else:
            lines = [b"%s %s HTTP/%s" % (method, self._url, version.encode("ascii"))]
            lines += [b"%s: %s" % item for item in _without_offer(self._fields)]
            rest = b"\r\n".join([*lines, b"\r\n"]) + rest
        self._parser = HttpRequestParser(self)
        return rest

    @staticmethod
    def _offers_websocket(headers: dict[bytes, bytes]) -> bool:
        is_one = headers.get(b"upgrade", b"").lower() == b"websocket"
        return is_one and _LENGTH not in headers and b"transfer-encoding" not in headers


def _without_offer(headers: dict[bytes, bytes]) -> Iterable[tuple[bytes, bytes]]:
    """Yield headers without an offer of another protocol."""
    for name, value in headers.items():
        if name == _CONNECTION:
            tokens = [token.strip() for token in value.split(b",")]
            yield name, b", ".join([token for token in tokens if token.lower() not in _OFFERS])
        elif name not in _OFFERS:
            yield name, value


def request_bytes(request: Request) -> bytes:
    """Encode a request without a body."""
    query = b"?" + request.query_string if request.query_string else b""
    lines = [
        b"%s %s%s HTTP/1.1"
        % (request.method.encode("ascii"), request.path.encode("latin-1"), query)
    ]
    headers = {b"host": b"", **request.headers}
    lines += [b"%s: %s" % header for header in headers.items()]
    return b"\r\n".join([*lines, b"\r\n"])


# --- answers --------------------------------------------------------------------------------------


def whole_bytes(answer: Whole, date: bytes, *, has_body: bool, keep_alive: bool) -> bytes:
    """Encode an answer; ``date`` is the ``Date`` header line."""
    body, content_type = answer.body, answer.content_type
    parts = [_STATUS_LINES[answer.status], date]
    if content_type:
        parts += (b"content-type: ", content_type, b"\r\ncontent-length: %d\r\n" % len(body))
    _add_headers(parts, answer.headers)
    parts.append(b"\r\n" if keep_alive else _CLOSE + b"\r\n")
    if has_body:
        parts.append(body)
    return b"".join(parts)


def stream_head(answer: Stream, date: bytes, *, chunked: bool, keep_alive: bool) -> bytes:
    """Encode the head of a streamed answer."""
    parts = [_STATUS_LINES[answer.status], date]
    _add_headers(parts, answer.headers)
    if chunked:
        parts.append(_CHUNKED)
    parts.append(b"\r\n" if keep_alive else _CLOSE + b"\r\n")
    return b"".join(parts)


def is_chunked(answer: Stream, request: Request) -> bool:
    """Whether a streamed answer uses chunked encoding."""
    if answer.status in _WITHOUT_BODY or request.method == "HEAD":
        return False
    return all(name != _LENGTH for name, _ in answer.headers)


def chunk_bytes(piece: bytes) -> bytes:
    """Encode a chunk, which must not be empty: that would be the end."""
    return b"%x\r\n%s\r\n" % (len(piece), piece)


def _add_headers(parts: list[bytes], headers: Headers) -> None:
    for name, value in headers:
        if b"\n" in value or b"\r" in value:
            raise InvariantBroken(f"a line break in the header {name!r}")
        parts += (name, b": ", value, b"\r\n")
