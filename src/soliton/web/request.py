"""A request as handlers see it, with its lazily read parts.

What lives here: the request of all services, query and form parsing. What does not: choosing the
handler (``routing``), and reading it from a connection (``http1``).
"""

from __future__ import annotations

import codecs
from typing import Final
from urllib.parse import unquote

from soliton.errors import InvariantBroken, SolitonError

FORM_URLENCODED: Final = b"application/x-www-form-urlencoded"
MAX_FIELDS: Final = 5_000
"""Of a query or form: five times as many as any list may have by default."""
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
"""The charsets that akka-http has names for, which take no longer than a body is. Python knows many
more: some are quadratic, and it keeps each name that it was ever asked for.
"""


class RejectionError(SolitonError):
    """The route cannot take the request: the next one may, and after the last comes the 404."""


class TooManyFieldsError(SolitonError):
    """A query or form has more than ``MAX_FIELDS``."""


class Request:
    """One request: head, body, and the converted parameters of its route.

    ``path`` is as it was sent, its bytes taken for Latin-1; names of headers are in lower case;
    ``host`` is the address of the client.
    """

    __slots__ = (
        "_query",
        "arguments",
        "body",
        "headers",
        "host",
        "is_websocket",
        "keep_alive",
        "method",
        "path",
        "peer",
        "query_string",
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
        """Who the system or TLS says the client is, as ``web.peers`` writes it; empty for nobody
        known.
        """
        self.arguments: dict[str, object] = {}
        self.keep_alive = True
        """Whether the client may use the connection again."""
        self.is_websocket = False
        """Whether it asks for a WebSocket."""
        self._query: dict[str, list[str]] | None = None

    @property
    def query(self) -> dict[str, list[str]]:
        """All query parameters, each with its values in order."""
        if self._query is None:
            self._query = parse_query(self.query_string)
        return self._query

    def text(self, name: str) -> str:
        """A declared parameter that is a string."""
        value = self.arguments[name]
        if isinstance(value, str):
            return value
        raise InvariantBroken(f"parameter {name} is no text")

    def integer(self, name: str) -> int:
        """A declared parameter that is a number."""
        value = self.arguments[name]
        if isinstance(value, int):
            return value
        raise InvariantBroken(f"parameter {name} is no number")

    def flag(self, name: str) -> bool:
        """A declared parameter that is true or false; absent means false."""
        return self.arguments.get(name) is True

    def optional_text(self, name: str) -> str | None:
        """A declared query parameter that is a string, if it was given."""
        return self.text(name) if self.arguments.get(name) is not None else None

    def optional_integer(self, name: str) -> int | None:
        """A declared query parameter that is a number, if it was given."""
        return self.integer(name) if self.arguments.get(name) is not None else None

    def header(self, name: str) -> str | None:
        """A header as text."""
        value = self.headers.get(name.lower().encode("ascii"))
        return None if value is None else header_text(value)

    def content_type(self) -> bytes:
        """The media type of the body in lower case, without its parameters."""
        return self.headers.get(b"content-type", b"").partition(b";")[0].strip().lower()

    def body_text(self) -> str:
        """The body as text, in the charset it names; bytes that are none become U+FFFD.

        Raises ``RejectionError`` for any other charset than those above.
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
    """A header's bytes as text: UTF-8, or Latin-1 where they are not."""
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        return value.decode("latin-1")


def parse_query(query: bytes) -> dict[str, list[str]]:
    """The pairs of a query or form; raises ``RejectionError`` for one that is not UTF-8, and
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
