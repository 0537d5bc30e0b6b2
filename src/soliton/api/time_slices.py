"""Time slices: how long answers are worked out without keeping short ones waiting.

Everything runs on one event loop. Whoever has more to do than a moment's work does it in slices and
takes a turn before each: there is one turn in each round of the loop, in the order of asking, so
that between two slices all short requests that have come in meanwhile are answered, however many
long ones there are.

What lives here: the queue. What does not: what is done in a turn.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from typing import Final

SLICE_SECONDS: Final = 0.002
"""What is done in one turn takes about so long, and the next piece of it not much longer."""


class TimeSlices:
    """One turn in each round of the event loop."""

    __slots__ = ("_is_taken", "_waiting")

    def __init__(self) -> None:
        self._is_taken = False
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def take(self) -> float:
        """Wait for a turn; when it ends, in the seconds of ``time.perf_counter``."""
        loop = asyncio.get_running_loop()
        if self._is_taken:
            turn = loop.create_future()
            self._waiting.append(turn)
            await turn
        else:
            self._is_taken = True
            loop.call_soon(self._next)
        return time.perf_counter() + SLICE_SECONDS

    def _next(self) -> None:
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                asyncio.get_running_loop().call_soon(self._next)
                return
        self._is_taken = False
