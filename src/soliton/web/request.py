"""A request as handlers see it, with lazily parsed parts.

What lives here: the request of all services, query and form parsing. What does not: choosing the
handler (``routing``), and parsing HTTP (``http1``).
"""

from __future__ import annotations

import codecs
from typing import Final
from urllib.parse import unquote

from soliton.errors import InvariantBroken, SolitonError

FORM_URLENCODED: Final = b"application/x-www-form-urlencoded"
MAX_FIELDS: Final = 5_000
"""Fields of a query or form: five times the default limit of any list."""
_UTF_16: Final = "utf-16"
_CODECS: Final = {
    b"utf-8": "utf-8",
    b"utf8": "utf-8",
    b"us-ascii": "ascii",
    b"ascii": "ascii",
    b"iso-8859-1": "latin-1",
    b"latin1": "latin-1",
    b"utf-16": _UTF_16,
    b"utf-16be": "utf-16-be",
    b"utf-16le": "utf-16-le",
}
"""The charsets that akka-http has names for, which decode in linear time. Python has many more:
some are quadratic, and it caches each requested name.
"""


class RejectionError(SolitonError):
    """The route does not accept the request: the next one is tried, and finally 404 is sent."""


class TooManyFieldsError(SolitonError):
    """A query or form has more than ``MAX_FIELDS``."""


class Request:
    """One request: head, body, and the converted parameters of its route.

    ``path`` is the raw path, decoded as Latin-1; names of headers are in lower case; ``host`` is
    the address of the client, from its connection or a trusted proxy (``proxies``).
    """

    __slots__ = (
        "_query",
        "arguments",
        "began",
        "body",
        "headers",
        "host",
        "is_websocket",
        "keep_alive",
        "method",
        "path",
        "peer",
        "query_string",
        "route",
    )

    def __init__(
        self,
        method: str,
        path: str,
        query_string: bytes = b"",
        headers: dict[bytes, bytes] | None = None,
        body: bytes = b"",
        host: str = "",
    ) -> None:
        self.method = method
        self.path = path
        self.query_string = query_string
        self.headers = {} if headers is None else headers
        self.body = body
        self.host = host
        self.peer = ""
        """The client's identity from the system or TLS (``web.peers``); empty if unknown."""
        self.arguments: dict[str, object] = {}
        self.keep_alive = True
        """Whether the connection stays open after the answer."""
        self.is_websocket = False
        """Whether it requests a WebSocket."""
        self.route = 0
        """The number of its route in ``Traffic``; 0 if none has been found."""
        self.began = 0.0
        """When its answer was begun, on the clock ``perf_counter``."""
        self._query: dict[str, list[str]] | None = None

    @property
    def query(self) -> dict[str, list[str]]:
        """All query parameters, each with its values in order."""
        if self._query is None:
            self._query = parse_query(self.query_string)
        return self._query

    def text(self, name: str) -> str:
        """Return a declared string parameter."""
        value = self.arguments[name]
        if isinstance(value, str):
            return value
        raise InvariantBroken(f"parameter {name} is no text")

    def integer(self, name: str) -> int:
        """Return a declared integer parameter."""
        value = self.arguments[name]
        if isinstance(value, int):
            return value
        raise InvariantBroken(f"parameter {name} is no number")

    def flag(self, name: str) -> bool:
        """Return a declared boolean parameter; false if it is missing."""
        return self.arguments.get(name) is True

    def optional_text(self, name: str) -> str | None:
        """Return a declared string parameter of the query, if given."""
        return self.text(name) if self.arguments.get(name) is not None else None

    def optional_integer(self, name: str) -> int | None:
        """Return a declared integer parameter of the query, if given."""
        return self.integer(name) if self.arguments.get(name) is not None else None

    def header(self, name: str) -> str | None:
        """Return a header as text."""
        value = self.headers.get(name.lower().encode("ascii"))
        return None if value is None else header_text(value)

    def content_type(self) -> bytes:
        """Return the media type of the body in lower case, without parameters."""
        return self.headers.get(b"content-type", b"").partition(b";")[0].strip().lower()

    def body_text(self) -> str:
        """Return the body as text in its charset; invalid bytes become U+FFFD.

        Raises ``RejectionError`` for an unknown charset.
        """
        charset = _charset(self.headers.get(b"content-type", b""))
        codec = _CODECS.get(charset)
        if codec is None:
            raise RejectionError("unknown charset")
        if codec == _UTF_16 and not self.body.startswith(
            (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
        ):
            codec = "utf-16-be"
        return self.body.decode(codec, errors="replace")


def header_text(value: bytes) -> str:
    """Decode a header as UTF-8, or else as Latin-1."""
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        return value.decode("latin-1")


def parse_query(query: bytes) -> dict[str, list[str]]:
    """Parse a query or form; raises ``RejectionError`` if it is not UTF-8, and
    ``TooManyFieldsError``.
    """
    values: dict[str, list[str]] = {}
    fields = 0
    if not query:
        return values
    try:
        text = query.decode("utf-8")
        escaped = "%" in text or "+" in text
        for pair in text.split("&"):
            if not pair:
                continue
            fields += 1
            if fields > MAX_FIELDS:
                raise TooManyFieldsError
            name, _, value = pair.partition("=")
            if escaped:
                name, value = _unescape(name), _unescape(value)
            values.setdefault(name, []).append(value)
    except UnicodeDecodeError as error:
        raise RejectionError("query is not UTF-8") from error
    return values


def _unescape(text: str) -> str:
    return unquote(text.replace("+", " "), errors="strict")


def _charset(content_type: bytes) -> bytes:
    for parameter in content_type.split(b";")[1:]:
        name, _, value = parameter.partition(b"=")
        if name.strip().lower() == b"charset":
            return value.strip().strip(b'"').lower()
    return b"utf-8"
