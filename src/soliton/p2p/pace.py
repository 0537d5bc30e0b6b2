"""How many of something come in a second, over the last moments.

What lives here: counting. What does not: what is counted (``jobs``).
"""

from __future__ import annotations

from collections import deque
from typing import Final

WINDOW_MS: Final = 30_000
"""What is longer ago does not count."""
MAX_MARKS: Final = 1_000
"""Times that are kept; those that come close together share one."""


class Pace:
    """A count with times (ms)."""

    __slots__ = ("_marks", "total")

    def __init__(self) -> None:
        self._marks: deque[tuple[int, int]] = deque(maxlen=MAX_MARKS)
        self.total = 0

    def add(self, count: int, now: int) -> None:
        """So many have come now."""
        self.total += count
        if self._marks and now - self._marks[-1][0] < WINDOW_MS // MAX_MARKS:
            at, before = self._marks.pop()
            self._marks.append((at, before + count))
        else:
            self._marks.append((now, count))

    def per_second(self, now: int) -> float:
        """How many have come in a second, on average."""
        while self._marks and now - self._marks[0][0] > WINDOW_MS:
            self._marks.popleft()
        return sum(count for _, count in self._marks) / (WINDOW_MS / 1_000)
