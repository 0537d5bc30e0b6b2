"""One description of each request, for the blocking and the asyncio clients.

A method is written as a generator: it yields requests (and pauses), is sent the responses, and
returns its result. A blocking (``soliton.client.node``) or an asyncio client
(``soliton.client.async_node``) runs it; there is no input or output here.

What lives here: requests, responses, and the rule for retries. What does not: connections
(``transport``, ``async_transport``), and the routes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, TypeVar, cast
from urllib.parse import quote

import msgspec

from soliton.client.errors import (
    MAX_MESSAGE,
    NodeBroken,
    NodeRefused,
    NodeTimeout,
    NodeUnreachable,
    refusal,
)
from soliton.client.transaction import Clock

T = TypeVar("T")

BUSY: Final = frozenset((429, 503))
"""Statuses of a server, or of a proxy, that may answer later."""
UNREADABLE: Final = (msgspec.DecodeError, RecursionError, UnicodeDecodeError)
"""The exceptions of parsing text that is not JSON."""
MAX_PAUSE: Final = 10.0
"""A request is not retried if the server asks for a longer pause, in seconds."""
FIRST_PAUSE: Final = 0.1
_MAX_SECONDS_DIGITS: Final = 9
MAX_CLOCK_OFFSET: Final = 4 * 60 * 60.0
"""The default limit on following a node's clock, in seconds: twice what the network's rules let a
timestamp be away from a block's.
"""


class Request(msgspec.Struct, frozen=True, gc=False):
    """An HTTP request. If it is not ``repeatable`` it is not sent again when its response is lost.
    ``seconds`` is the time limit of its response, if that is not the default.
    """

    method: str
    path: str
    body: bytes = b""
    headers: tuple[tuple[str, str], ...] = ()
    repeatable: bool = True
    seconds: float | None = None


class Pause(msgspec.Struct, frozen=True, gc=False):
    """A pause between requests."""

    seconds: float


class Answer(msgspec.Struct, frozen=True, gc=False):
    """An HTTP response; header names are in lower case."""

    status: int
    body: bytes
    headers: Mapping[bytes, bytes] = {}


Steps = Generator[Request | Pause, Answer, T]
"""A generator that yields requests, is sent responses, and returns a value."""
Pages = Callable[[Any], Steps[tuple[Sequence[T], Any]]]
"""A function from a cursor (``None``: the first page) to a page and the next cursor, if any."""


class Core:
    """The state of a client that its requests depend on."""

    __slots__ = (
        *("api_key", "chain_id", "clock", "clock_offset", "is_soliton"),
        *("matcher_key", "max_clock_offset", "max_fee", "now", "retries"),
    )

    def __init__(
        self,
        *,
        api_key: str | None = None,
        retries: int = 3,
        chain_id: int | None = None,
        max_fee: int | None = None,
        max_clock_offset: float = MAX_CLOCK_OFFSET,
        matcher_key: str | None = None,
    ) -> None:
        self.api_key = api_key
        self.retries = retries
        self.chain_id = chain_id
        self.max_fee = max_fee
        self.max_clock_offset = int(max_clock_offset * 1_000)
        self.matcher_key = matcher_key
        self.is_soliton: bool | None = None
        self.clock_offset = 0
        self.clock = Clock()
        self.now: Callable[[], float] = time.monotonic


JSON: Final = (("Content-Type", "application/json"),)
TEXT: Final = (("Content-Type", "text/plain"),)


def key_headers(core: Core) -> tuple[tuple[str, str], ...]:
    """The API key header, for routes that some nodes restrict to their operators."""
    return () if core.api_key is None else (("X-API-Key", core.api_key),)


def call(core: Core, request: Request) -> Steps[Answer]:
    """Send a request and return the response, whatever its status.

    Retried with growing pauses: requests that never arrived, and repeatable ones whose response was
    lost or came from a busy server. Nothing else is.
    """
    pause = FIRST_PAUSE
    for attempt in range(core.retries + 1):
        last = attempt == core.retries
        try:
            answer = yield request
        except NodeUnreachable:
            if last:
                raise
        except (NodeTimeout, NodeBroken):
            if last or not request.repeatable:
                raise
        else:
            if answer.status not in BUSY or last or not request.repeatable:
                return answer
            delay = retry_after(answer)
            if delay > MAX_PAUSE:
                return answer
            pause = max(pause, delay)
        yield Pause(pause)
        pause = min(2 * pause, MAX_PAUSE)
    raise AssertionError("the last attempt returns or raises")


def retry_after(answer: Answer) -> float:
    """Return the seconds in a Retry-After header, 0 without one or for a date."""
    text = answer.headers.get(b"retry-after", b"")
    return float(text) if text.isdigit() and len(text) <= _MAX_SECONDS_DIGITS else 0.0


def ask(core: Core, request: Request, kind: type[T]) -> Steps[T]:
    """Send a request and decode the response; raises ``NodeRefused`` or ``NodeBroken``."""
    answer = yield from call(core, request)
    return decoded(answer, kind)


def get(core: Core, path: str, kind: type[T]) -> Steps[T]:
    """``ask`` with a GET of a path."""
    return ask(core, Request("GET", path), kind)


def post(core: Core, path: str, value: object, kind: type[T]) -> Steps[T]:
    """``ask`` with a POST of a JSON value; only for idempotent requests."""
    return ask(core, Request("POST", path, msgspec.json.encode(value), JSON), kind)


def decoded(answer: Answer, kind: type[T]) -> T:
    """Decode a response; raises ``NodeRefused`` or ``NodeBroken``."""
    if not 200 <= answer.status < 300:
        raise refused(answer)
    try:
        value: T = _decoder(cast("Any", kind)).decode(answer.body)
    except msgspec.ValidationError as error:
        old = _old_refusal(answer)
        if old is not None:
            raise old from None
        raise NodeBroken(f"invalid response from the node: {error}") from error
    except UNREADABLE as error:
        raise NodeBroken(f"invalid response from the node: {error}") from error
    return value


def check_same(what: str, found: object, asked: object) -> None:
    """Raise ``NodeBroken`` if a response is about another thing than was asked for."""
    if found != asked:
        raise NodeBroken(
            f"invalid response from the node: {what} {found}, not {asked}"[:MAX_MESSAGE]
        )


def refused(answer: Answer) -> NodeRefused:
    """Return the exception for a response."""
    try:
        value = msgspec.json.decode(answer.body)
    except UNREADABLE:
        value = None
    hint = answer.headers.get(b"x-hint")
    text = answer.body.decode(errors="replace")
    given = None if hint is None else hint.decode("latin-1")
    return refusal(answer.status, value, text, given)


def _old_refusal(answer: Answer) -> NodeRefused | None:
    """The refusal in a response with status 200, as the oldest generation of nodes sends it."""
    try:
        value = msgspec.json.decode(answer.body)
    except UNREADABLE:
        return None
    if isinstance(value, dict) and value.get("status") == "error":
        return refusal(404, None, str(value.get("details", "")))
    return None


@lru_cache(maxsize=256)
def _decoder(kind: Any) -> msgspec.json.Decoder[Any]:  # noqa: ANN401 - a type, also a generic one
    return msgspec.json.Decoder(kind)


def segment(value: object) -> str:
    """Quote a value as a segment of a path."""
    return quote(str(value), safe="")


def query(**values: object) -> str:
    """Return a query string; a list repeats its parameter, and ``None`` omits it."""
    pairs = [
        f"{name}={quote(_text(item), safe='')}"
        for name, value in values.items()
        if value is not None
        for item in (value if isinstance(value, list | tuple) else (value,))
    ]
    return "?" + "&".join(pairs) if pairs else ""


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
