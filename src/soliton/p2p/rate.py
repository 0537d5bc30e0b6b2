"""A counter with a rate per second over a recent window.

What lives here: counting. What does not: what is counted (``jobs``).
"""

from __future__ import annotations

from collections import deque
from typing import Final

WINDOW_MS: Final = 30_000
"""The window of the rate."""
MAX_MARKS: Final = 1_000
"""Times that are kept; close ones are merged."""


class RateCounter:
    """A count with a rate; times are in ms."""

    __slots__ = ("_marks", "total")

    def __init__(self) -> None:
        self._marks: deque[tuple[int, int]] = deque(maxlen=MAX_MARKS)
        self.total = 0

    def add(self, count: int, now: int) -> None:
        """Add to the count."""
        self.total += count
        if self._marks and now - self._marks[-1][0] < WINDOW_MS // MAX_MARKS:
            at, before = self._marks.pop()
            self._marks.append((at, before + count))
        else:
            self._marks.append((now, count))

    def per_second(self, now: int) -> float:
        """Return the average rate per second over the window."""
        while self._marks and now - self._marks[0][0] > WINDOW_MS:
            self._marks.popleft()
        return sum(count for _, count in self._marks) / (WINDOW_MS / 1_000)
