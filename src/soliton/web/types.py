"""The vocabulary of ASGI, as types.

Source: the ASGI specification, ``asgi.readthedocs.io``.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, MutableMapping
from typing import Any, NamedTuple, Protocol, runtime_checkable

Message = MutableMapping[str, object]
Scope = MutableMapping[str, object]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Headers = tuple[tuple[bytes, bytes], ...]
AsgiApplication = Callable[[Scope, Receive, Send], Awaitable[None]]


class WholeAnswer(NamedTuple):
    """An answer that is all there; its headers say how long the body is."""

    status: int
    headers: Headers
    body: bytes


LaterAnswer = Coroutine[Any, Any, WholeAnswer]


class SoonAnswer:
    """An answer that waits for something short, without a task of its own.

    ``begin`` is called once, with what is to be called with the answer, then or later.
    """

    __slots__ = ("begin",)

    def __init__(self, begin: Callable[[Callable[[WholeAnswer], None]], None]) -> None:
        self.begin = begin


@runtime_checkable
class QuickApplication(Protocol):
    """An ASGI application that can answer most requests without waiting for anything.

    The server asks it directly for requests that arrived in one piece: no task, no messages.
    """

    def answer_at_once(
        self,
        method: str,
        path: bytes,
        query: bytes,
        headers: dict[bytes, bytes],
        body: bytes,
        host: str,
    ) -> WholeAnswer | SoonAnswer | LaterAnswer | AsgiApplication:
        """The answer; where it takes time what gives it later; or, for an answer that comes in
        pieces, an application for this one request, which is not told the body again.

        Names of headers are in lower case; ``host`` is the address of the client. Neither this nor
        what gives the answer later raises anything.
        """
