"""One description of each question, for blocking and for awaiting callers.

What a method does is a generator: it yields requests (and pauses), is sent their answers, and
returns its result. Whoever runs it may block (``soliton.client.node``) or await
(``soliton.client.async_node``); here is neither input nor output.

What lives here: requests, answers, and the one rule about trying again. What does not: connections
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
    NodeBroken,
    NodeRefused,
    NodeTimeout,
    NodeUnreachable,
    refusal,
)
from soliton.client.transaction import Clock

T = TypeVar("T")

BUSY: Final = frozenset((429, 503))
"""The server does not want the request now, and has not done it."""
UNREADABLE: Final = (msgspec.DecodeError, RecursionError, UnicodeDecodeError)
"""What reading JSON raises where the text is none, however it is broken."""
MAX_PAUSE: Final = 10.0
"""A server that wants a longer pause is not waited for."""
FIRST_PAUSE: Final = 0.1


class Request(msgspec.Struct, frozen=True, gc=False):
    """What is sent. One that is not ``repeatable`` is not sent again when its answer is lost.
    ``seconds`` is how long its answer may take, if that is not the usual time.
    """

    method: str
    path: str
    body: bytes = b""
    headers: tuple[tuple[str, str], ...] = ()
    repeatable: bool = True
    seconds: float | None = None


class Pause(msgspec.Struct, frozen=True, gc=False):
    """Nothing, for some seconds."""

    seconds: float


class Answer(msgspec.Struct, frozen=True, gc=False):
    """What comes back; names of headers are in lower case."""

    status: int
    body: bytes
    headers: Mapping[bytes, bytes] = {}


Steps = Generator[Request | Pause, Answer, T]
"""What yields requests, is sent answers, and returns a value."""
Pages = Callable[[Any], Steps[tuple[Sequence[T], Any]]]
"""Gives the page at a mark (``None``: the first one), and the mark of the next one, if any."""


class Core:
    """What questions need to know about whom they go to."""

    __slots__ = ("api_key", "chain_id", "clock", "clock_offset", "is_soliton", "now", "retries")

    def __init__(
        self, *, api_key: str | None = None, retries: int = 3, chain_id: int | None = None
    ) -> None:
        self.api_key = api_key
        self.retries = retries
        self.chain_id = chain_id
        self.is_soliton: bool | None = None
        self.clock_offset = 0
        self.clock = Clock()
        self.now: Callable[[], float] = time.monotonic


JSON: Final = (("Content-Type", "application/json"),)
TEXT: Final = (("Content-Type", "text/plain"),)


def key_headers(core: Core) -> tuple[tuple[str, str], ...]:
    """The API key, for routes that some nodes answer to their operators only."""
    return () if core.api_key is None else (("X-API-Key", core.api_key),)


def call(core: Core, request: Request) -> Steps[Answer]:
    """The answer to a request, whatever its status.

    Tried again, with growing pauses: what never got there, what the server is too busy for, and
    what may be repeated when its answer is lost. Nothing else is.
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
            if answer.status not in BUSY or last:
                return answer
            wanted = retry_after(answer)
            if wanted > MAX_PAUSE:
                return answer
            pause = max(pause, wanted)
        yield Pause(pause)
        pause = min(2 * pause, MAX_PAUSE)
    raise AssertionError("the last attempt returns or raises")


def retry_after(answer: Answer) -> float:
    """For how many seconds a busy server wants to be left in peace, as far as it says so."""
    try:
        return max(0.0, float(answer.headers.get(b"retry-after", b"0")))
    except ValueError:
        return 0.0


def ask(core: Core, request: Request, kind: type[T]) -> Steps[T]:
    """The answer to a request as a value of this type; raises ``NodeRefused`` for any other."""
    answer = yield from call(core, request)
    return decoded(answer, kind)


def get(core: Core, path: str, kind: type[T]) -> Steps[T]:
    """``ask`` for a path."""
    return ask(core, Request("GET", path), kind)


def post(core: Core, path: str, value: object, kind: type[T]) -> Steps[T]:
    """``ask`` with a JSON value; for questions, which may be repeated."""
    return ask(core, Request("POST", path, msgspec.json.encode(value), JSON), kind)


def decoded(answer: Answer, kind: type[T]) -> T:
    """The value in an answer; raises ``NodeRefused`` or ``NodeBroken``."""
    if not 200 <= answer.status < 300:
        raise refused(answer)
    try:
        value: T = _decoder(cast("Any", kind)).decode(answer.body)
    except msgspec.ValidationError as error:
        old = _old_refusal(answer)
        if old is not None:
            raise old from None
        raise NodeBroken(f"no answer of a node: {error}") from error
    except UNREADABLE as error:
        raise NodeBroken(f"no answer of a node: {error}") from error
    return value


def refused(answer: Answer) -> NodeRefused:
    """The error that an answer means."""
    try:
        value = msgspec.json.decode(answer.body)
    except UNREADABLE:
        value = None
    hint = answer.headers.get(b"x-hint")
    text = answer.body.decode(errors="replace")
    told = None if hint is None else hint.decode("latin-1")
    return refusal(answer.status, value, text, told)


def _old_refusal(answer: Answer) -> NodeRefused | None:
    """The oldest generation of nodes refuses some questions with status 200."""
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
    """A value as a part of a path."""
    return quote(str(value), safe="")


def query(**values: object) -> str:
    """Members of a query, lists several times, without those that are ``None``."""
    pairs = [
        f"{name}={quote(_text(item), safe='')}"
        for name, value in values.items()
        if value is not None
        for item in (value if isinstance(value, list | tuple) else (value,))
    ]
    return "?" + "&".join(pairs) if pairs else ""


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
