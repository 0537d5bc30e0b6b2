"""Concurrent answers of one connection (HTTP pipelining), which are sent in order.

What lives here: their queue and its limits. What does not: making answers (``connection``), and
which may be made concurrently (``answers.Deferred``).
"""

from __future__ import annotations

from collections import deque
from typing import Final, Generic, TypeVar

from soliton.web.answers import Answer
from soliton.web.request import Request

R = TypeVar("R", bound=Request)

MAX_BESIDE: Final = 64
"""How many answers of one connection are made concurrently."""
MAX_BODY_BYTES: Final = 256 * 1024
"""The total size of their bodies above which no further request is started."""


class Place(Generic[R]):
    """A request in the queue, and its answer once it is ready."""

    __slots__ = ("answer", "request")

    def __init__(self, request: R, answer: Answer | None) -> None:
        self.request = request
        self.answer = answer


class InOrder(Generic[R]):
    """The queue."""

    __slots__ = ("_body_bytes", "_places")

    def __init__(self) -> None:
        self._places: deque[Place[R]] = deque()
        self._body_bytes = 0

    def __bool__(self) -> bool:
        return bool(self._places)

    @property
    def is_full(self) -> bool:
        """Whether no further request may be started."""
        return len(self._places) >= MAX_BESIDE or self._body_bytes >= MAX_BODY_BYTES

    @property
    def last(self) -> R | None:
        """The last request."""
        return self._places[-1].request if self._places else None

    def join(self, request: R, answer: Answer | None = None) -> Place[R]:
        """Append a request."""
        place = Place(request, answer)
        self._places.append(place)
        self._body_bytes += len(request.body)
        return place

    def next_ready(self) -> tuple[R, Answer] | None:
        """Remove and return the first request and its answer, if that is ready."""
        if not self._places or (answer := self._places[0].answer) is None:
            return None
        request = self._places.popleft().request
        self._body_bytes -= len(request.body)
        return request, answer
