"""Time slices: cooperative scheduling of long answers, so that short requests are not delayed.

Everything runs on one event loop. A long computation works in slices and waits for its turn before
each. Each iteration of the loop has one turn, in FIFO order, so that all short requests are served
between two slices, however many long ones there are.

What lives here: the queue. What does not: the work.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Iterable
from typing import Final, TypeVar

T = TypeVar("T")
R = TypeVar("R")

SLICE_SECONDS: Final = 0.002
"""The length of a slice."""


class TimeSlices:
    """Grants one turn in each iteration of the event loop."""

    __slots__ = ("_is_taken", "_waiting")

    def __init__(self) -> None:
        self._is_taken = False
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def take(self) -> float:
        """Wait for a turn. Return its end on the clock ``time.perf_counter``."""
        loop = asyncio.get_running_loop()
        if self._is_taken:
            turn = loop.create_future()
            self._waiting.append(turn)
            await turn
        else:
            self._is_taken = True
            loop.call_soon(self._next)
        return time.perf_counter() + SLICE_SECONDS

    async def map(self, function: Callable[[T], R], items: Iterable[T]) -> list[R]:
        """Call a function with each item, in slices."""
        results: list[R] = []
        end = 0.0
        for item in items:
            if time.perf_counter() > end:
                end = await self.take()
            results.append(function(item))
        return results

    def _next(self) -> None:
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                asyncio.get_running_loop().call_soon(self._next)
                return
        self._is_taken = False
