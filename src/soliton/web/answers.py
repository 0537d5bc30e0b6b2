"""The interface of a service, and its kinds of answers.

What lives here: the contract between a service and its server, and the union of answers. What does
not: encoding answers (``http1``), requests (``request``), routes (``routing``).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias, TypeVar

import msgspec

from soliton.web.cors import Cors
from soliton.web.request import Request
from soliton.web.traffic import Traffic
from soliton.web.types import HandedOver, Headers, WhenLost

if TYPE_CHECKING:
    import asyncio

    from soliton.web.limits import ServerLimits
    from soliton.web.websocket import WebSocket

TEXT_PLAIN: Final = b"text/plain; charset=UTF-8"
APPLICATION_JSON: Final = b"application/json"

R = TypeVar("R", bound=Request)


class Whole(msgspec.Struct, frozen=True, gc=False):
    """A complete answer. Content type and length precede its other headers; with an empty content
    type, ``headers`` are all of them.
    """

    body: bytes
    content_type: bytes = TEXT_PLAIN
    status: int = 200
    headers: Headers = ()


class Stream(msgspec.Struct, frozen=True):
    """A streamed answer, until the iterator ends or the client disconnects."""

    chunks: AsyncIterator[bytes]
    headers: Headers
    """All headers; without a content length the body is sent with chunked encoding."""
    status: int = 200
    endless: bool = False
    """Whether it mostly waits for events."""


class Deferred(msgspec.Struct, frozen=True):
    """An answer from a callback, without a task: ``ask`` is called once with a callback for the
    outcome, which it may call at once or later, and ``then`` makes the answer from the outcome.

    With ``lets_next_begin``, ``then`` returns a ``Whole``, and pipelined requests of the client are
    begun meanwhile. Answers are sent in order nevertheless.
    """

    ask: Callable[[Callable[[Any], None]], None]
    then: Callable[[Any], Any]
    lets_next_begin: bool = False


class Awaited(msgspec.Struct, frozen=True):
    """An answer from a coroutine, which is cancelled when the client disconnects if it
    ``ends_with_client``. ``Upgrade`` is for requests that are ``is_websocket``.
    """

    work: Coroutine[Any, Any, Whole | Stream | Upgrade]
    ends_with_client: bool = False


class Upgrade(msgspec.Struct, frozen=True):
    """The connection becomes a WebSocket, which ``run`` serves until its end."""

    run: Callable[[WebSocket], Coroutine[Any, Any, None]]


class HandOver(msgspec.Struct, frozen=True):
    """Another owner takes over the connection. ``take`` receives the transport, the bytes sent from
    this request on, the server's limits, and a callback to call with the owner at the end.
    """

    take: Callable[[asyncio.Transport, bytes, ServerLimits, WhenLost], HandedOver]


Answer: TypeAlias = Whole | Stream | Deferred | Awaited | Upgrade | HandOver


class Unread(Enum):
    """Why a request is refused before its body has been read."""

    TOO_LONG = "too long"
    TOO_SLOW = "too slow"


class BodyLimits(msgspec.Struct, frozen=True):
    """The limits of a body's size and of its arrival time."""

    max_bytes: int
    seconds: float = 20.0


class Service(Protocol[R]):
    """A service, as its server calls it. No method may raise."""

    cors: Cors
    """The CORS headers, for the requests that the server refuses itself."""
    body_limits: BodyLimits
    request_class: type[R]
    traffic: Traffic
    """Counts requests and answers. The service sets the route of each request."""

    def respond(self, request: R) -> Answer:
        """Return the answer to a complete request. ``Upgrade`` and ``HandOver`` are for those that
        are ``is_websocket``.
        """

    def refuse(self, request: R, reason: Unread) -> Whole:
        """Return the answer to a request whose body is not read."""
