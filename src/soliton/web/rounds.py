"""Fair scheduling of connections with many pipelined requests in each turn of the event loop.

A packet may contain thousands of requests. If each such connection were served in every turn, all
others would wait for all of these connections together.

What lives here: their queue. What does not: parsing and answering (``connection``).
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable

SLICE_SECONDS = 0.002
"""The time slice of all of them together in a turn, and of a newly received packet."""

SMALL_PIECE_BYTES = 256
"""Queued bytes, except of bodies, that are parsed at once: a few requests."""
_MOST_AT_ONCE = 16
"""Requests of one connection that are answered in one time slice, at most."""


class Slice:
    """The time slice of one connection."""

    __slots__ = ("_ends_at", "answered")

    def __init__(self) -> None:
        self.begin(0.0)

    def begin(self, ends_at: float) -> None:
        """Begin a new time slice."""
        self.answered = 0
        self._ends_at = ends_at

    def has_time(self) -> bool:
        """Whether one more request may be answered; the first one always may."""
        if not self.answered:
            return True
        return self.answered < _MOST_AT_ONCE and time.perf_counter() < self._ends_at


class Rounds:
    """The queue of waiting connections; ``ends_at`` is the end of the present time slice, in
    seconds of ``time.perf_counter``.
    """

    __slots__ = ("_is_set", "_short", "_waiting", "ends_at")

    def __init__(self) -> None:
        self._waiting: deque[Callable[[], None]] = deque()
        self._short: deque[Callable[[], None]] = deque()
        self._is_set = False
        self.ends_at = 0.0

    def join(self, go_on: Callable[[], None], *, is_short: bool = False) -> None:
        """Queue a callback for one of the next turns. Short ones alternate with the others, so that
        they need not wait for all of them.
        """
        (self._short if is_short else self._waiting).append(go_on)
        self._set()

    def end(self) -> None:
        """End this time slice: serve no other connection in this turn."""
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
