"""Requests and responses as handlers see them.

What lives here: the request with its lazily read parts, the kinds of response a handler may
return, query and form parsing. What does not: choosing the handler (``routes``), and talking ASGI
(``asgi``).
"""

from __future__ import annotations

import codecs
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import unquote, urlencode

import msgspec

from soliton.api.context import ApiContext
from soliton.api.errors import TOO_BIG_SEQUENCE_WITH_LIMIT, RejectionError
from soliton.api.fair_limits import FairLimits
from soliton.api.json_reader import ObjectReader, parse_object, wrong_texts
from soliton.errors import InvariantBroken
from soliton.web.clients import LOCAL
from soliton.web.types import Headers

TEXT_PLAIN = b"text/plain; charset=UTF-8"
APPLICATION_JSON = b"application/json"
FORM_URLENCODED = b"application/x-www-form-urlencoded"

MAX_FIELDS = 5_000
"""Of a query or form: five times as many as any list may have by default."""
_UTF_16 = "utf-16"
_CODECS = {
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


class Raw(msgspec.Struct, frozen=True, gc=False):
    """A response of ready bytes."""

    body: bytes
    content_type: bytes = TEXT_PLAIN
    status: int = 200
    headers: Headers = ()


@dataclass(frozen=True, slots=True)
class JsonStream:
    """A JSON array (or what ``prefix`` and ``suffix`` say) sent in chunks, item by item.

    An item that is ``msgspec.Raw`` is text in the form that the client wishes.
    """

    items: AsyncIterator[object]
    prefix: bytes = b"["
    suffix: bytes = b"]"
    headers: Headers = ()


@dataclass(frozen=True, slots=True)
class NumberStream:
    """A JSON object of numbers sent in chunks, member by member; all of them become strings for a
    client that wants large numbers so.
    """

    members: AsyncIterator[tuple[str, int]]


@dataclass(frozen=True, slots=True)
class RawStream:
    """Bytes sent as they come, until the iterator ends or the client goes away."""

    chunks: AsyncIterator[bytes]
    content_type: bytes = b"application/octet-stream"
    headers: Headers = ()


@dataclass(frozen=True, slots=True)
class Relayed:
    """The answer of another process, passed on as it comes."""

    status: int
    headers: Headers
    chunks: AsyncIterator[bytes]


class Soon(NamedTuple):
    """An answer after a short wait that needs no task: ``ask`` is called with what takes the
    verdict, and ``then`` with the verdict. It returns what handlers return when they have nothing
    to wait for, and raises ``ApiError``. ``seconds`` is what somebody works for it meanwhile.
    """

    ask: Callable[[Callable[[bool], None]], None]
    then: Callable[[bool], object]
    seconds: float


@dataclass(frozen=True, slots=True)
class Json:
    """A JSON response with another status than 200, or with headers of its own."""

    value: object
    status: int = 200
    headers: Headers = ()


def next_page(path: str, **query: str | None) -> Headers:
    """The header ``Link`` (RFC 8288) that leads to the next page of a list."""
    pairs = urlencode({name: value for name, value in query.items() if value is not None})
    return ((b"link", f'<{path}?{pairs}>; rel="next"'.encode()),)


def big_number(value: int) -> msgspec.Raw:
    """An integer beyond 64 bits (a block score) as a JSON number."""
    return msgspec.Raw(str(value).encode("ascii"))


class Request:
    """One request: converted parameters, headers, and the body if the route declares one.

    ``tag`` is the ``ETag`` of its answer, if that has one; ``client`` is who asks, as
    ``soliton.web.clients`` tells clients apart, and ``fair`` are the limits that clients have.
    """

    __slots__ = (
        "_json",
        "_query",
        "arguments",
        "body",
        "body_read",
        "client",
        "context",
        "fair",
        "headers",
        "method",
        "path",
        "query_string",
        "tag",
    )

    def __init__(
        self,
        context: ApiContext,
        method: str,
        headers: dict[bytes, bytes],
        query_string: bytes,
        path: str = "/",
    ) -> None:
        """``path`` is as it was sent, its bytes taken for Latin-1."""
        self.context = context
        self.method = method
        self.path = path
        self.headers = headers
        self.query_string = query_string
        self.arguments: dict[str, object] = {}
        self.body = b""
        self.body_read = False
        self.tag: bytes | None = None
        self.client = LOCAL
        self.fair: FairLimits | None = None
        self._query: dict[str, list[str]] | None = None
        self._json: dict[str, object] | None = None

    @property
    def query(self) -> dict[str, list[str]]:
        """All query parameters, each with its values in order."""
        if self._query is None:
            self._query = parse_query(self.query_string)
        return self._query

    def charge(self, seconds: float) -> None:
        """Put what others work for this request, in whatever thread or process, on its client's
        account.
        """
        if self.fair is not None:
            self.fair.charge(self.client, seconds)

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

        Any other charset than those below rejects the request.
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

    def json(self) -> dict[str, object]:
        """The body as a JSON object, or error 1."""
        if self._json is None:
            self._json = parse_object(self.body)
        return self._json

    def reader(self) -> ObjectReader:
        """The body as a JSON object whose members are taken out one by one."""
        return ObjectReader(self.json())

    def listed(self, name: str, json_name: str) -> list[str]:
        """A list sent as query (GET), as form, or as the member ``json_name`` of a JSON object.

        Malformed JSON rejects the route, as in the reference (``CustomDirectives.anyParam``).
        """
        if self.method == "GET":
            return self.query.get(name, [])
        if self.content_type() in (FORM_URLENCODED, b""):
            # Without a type there is no body either: a form with nothing in it.
            return parse_query(self.body).get(name, [])
        values = self.json().get(json_name)
        if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
            raise wrong_texts(json_name, values)
        return [value for value in values if isinstance(value, str)]


def header_text(value: bytes) -> str:
    """A header's bytes as text: UTF-8, or Latin-1 where they are not."""
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        return value.decode("latin-1")


def parse_query(query: bytes) -> dict[str, list[str]]:
    """The pairs of a query or form; a malformed escape rejects the request, and more than there may
    be are error 10.
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
                raise TOO_BIG_SEQUENCE_WITH_LIMIT.error(limit=MAX_FIELDS)
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
