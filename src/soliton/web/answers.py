"""What a service is, and what it may answer.

What lives here: the contract between a service and the server that asks it, and the one union of
answers. What does not: how answers become bytes (``http1``), requests (``request``), routes
(``routing``).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias, TypeVar

import msgspec

from soliton.web.cors import Cors
from soliton.web.request import Request
from soliton.web.types import HandedOver, Headers, WhenLost

if TYPE_CHECKING:
    import asyncio

    from soliton.web.limits import ServerLimits
    from soliton.web.websocket import WebSocket

TEXT_PLAIN: Final = b"text/plain; charset=UTF-8"
APPLICATION_JSON: Final = b"application/json"

R = TypeVar("R", bound=Request)


class Whole(msgspec.Struct, frozen=True, gc=False):
    """An answer that is all there. Its type and length are said before its other headers; one
    without a type has all that is to be said in its headers.
    """

    body: bytes
    content_type: bytes = TEXT_PLAIN
    status: int = 200
    headers: Headers = ()


class Stream(msgspec.Struct, frozen=True):
    """Bytes sent as they come, until the iterator ends or the client goes away."""

    chunks: AsyncIterator[bytes]
    headers: Headers
    """All of them; without a length the body is sent in HTTP's chunks."""
    status: int = 200
    endless: bool = False
    """Most of its time it waits for something to happen."""


class Deferred(msgspec.Struct, frozen=True):
    """An answer after a short wait that needs no task: ``ask`` is called once with what takes the
    outcome, then or later, and ``then`` makes the answer of it.

    Where it ``lets_next_begin``, ``then`` makes a ``Whole``, and what its client has sent behind it
    is begun meanwhile. Answers leave in their order all the same.
    """

    ask: Callable[[Callable[[Any], None]], None]
    then: Callable[[Any], Any]
    lets_next_begin: bool = False


class Awaited(msgspec.Struct, frozen=True):
    """An answer that a coroutine gives, which is cancelled when the client goes if it
    ``ends_with_client``. ``Upgrade`` is for requests that are ``is_websocket``.
    """

    work: Coroutine[Any, Any, Whole | Stream | Upgrade]
    ends_with_client: bool = False


class Upgrade(msgspec.Struct, frozen=True):
    """The connection becomes a WebSocket, and ``run`` has it to its end."""

    run: Callable[[WebSocket], Coroutine[Any, Any, None]]


class HandOver(msgspec.Struct, frozen=True):
    """Something else gets the connection. ``take`` is given its transport, what the client has sent
    from this request on, the server's limits, and what it is to call with itself at the end.
    """

    take: Callable[[asyncio.Transport, bytes, ServerLimits, WhenLost], HandedOver]


Answer: TypeAlias = Whole | Stream | Deferred | Awaited | Upgrade | HandOver


class Unread(Enum):
    """Why a request is refused before its body has been read."""

    TOO_LONG = "too long"
    TOO_SLOW = "too slow"


class BodyLimits(msgspec.Struct, frozen=True):
    """How long a body may be, and how long it may take to arrive."""

    max_bytes: int
    seconds: float = 20.0


class Service(Protocol[R]):
    """What a server asks for answers. Nothing here raises anything."""

    cors: Cors
    """What pages of other origins may do; the server, which refuses some requests itself, then says
    the same.
    """
    body_limits: BodyLimits
    request_class: type[R]

    def respond(self, request: R) -> Answer:
        """The answer to a request, which is all there. ``Upgrade`` and ``HandOver`` are for those
        that are ``is_websocket``.
        """

    def refuse(self, request: R, reason: Unread) -> Whole:
        """The answer to a request whose body will not be read."""
