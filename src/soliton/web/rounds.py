"""Rounds: how connections that bring many requests at once share each round of the event loop.

A packet may hold thousands of requests. If each such connection had some of them answered in every
round, everybody else would wait for all of these connections together.

What lives here: their queue. What does not: parsing and answering (``connection``).
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable

SLICE_SECONDS = 0.002
"""What all of them together take of a round, about, and what one packet does that has just come."""

SMALL_PIECE_BYTES = 256
"""Parsed in one go of what has waited and is no body: a few requests, each with its turn."""
_MOST_AT_ONCE = 16
"""So many requests of one connection are answered before others have their turn, or fewer."""


class Slice:
    """What one connection may have answered before others have their turn."""

    __slots__ = ("_ends_at", "answered")

    def __init__(self) -> None:
        self.begin(0.0)

    def begin(self, ends_at: float) -> None:
        """A new one, until then."""
        self.answered = 0
        self._ends_at = ends_at

    def has_time(self) -> bool:
        """Whether one more request may be answered: one may always."""
        if not self.answered:
            return True
        return self.answered < _MOST_AT_ONCE and time.perf_counter() < self._ends_at


class Rounds:
    """Those that go on when it is their turn; ``ends_at`` is when the turns of this round end, in
    the seconds of ``time.perf_counter``.
    """

    __slots__ = ("_is_set", "_short", "_waiting", "ends_at")

    def __init__(self) -> None:
        self._waiting: deque[Callable[[], None]] = deque()
        self._short: deque[Callable[[], None]] = deque()
        self._is_set = False
        self.ends_at = 0.0

    def join(self, go_on: Callable[[], None], *, is_short: bool = False) -> None:
        """Go on in one of the next rounds, in the order of asking. Those that are short take turns
        with the others, and so need not wait for all of them.
        """
        (self._short if is_short else self._waiting).append(go_on)
        self._set()

    def end(self) -> None:
        """Nobody else in this round: what has been begun takes its time in the next one."""
        self.ends_at = 0.0

    def _set(self) -> None:
        if (self._waiting or self._short) and not self._is_set:
            self._is_set = True
            asyncio.get_running_loop().call_soon(self._next)

    def _next(self) -> None:
        self.ends_at = time.perf_counter() + SLICE_SECONDS
        try:
            while self._waiting or self._short:
                if self._short:
                    self._short.popleft()()
                if self._waiting:
                    self._waiting.popleft()()
                if time.perf_counter() >= self.ends_at:
                    break
        finally:
            self._is_set = False
            self._set()
