"""Sliding windows: what was spent in the last hour, day or week.

What lives here: the counters; the caller passes the time. What does not: which windows a rule has
(``policy``), persistence (``state``), and the clock.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

SLICES: Final = 64
"""A window sums amounts in so many slices of its length. A slice is dropped when all of it is too
old: never too early, and late by a sixty-fourth of the length at most.
"""


class Charge(NamedTuple):
    """An amount charged to a window: the counter's name, the window's length in milliseconds, and
    the amount.
    """

    counter: str
    length_ms: int
    amount: int


class _Counter:
    __slots__ = ("slice_ms", "slices", "total")

    def __init__(self, slice_ms: int) -> None:
        self.slice_ms = slice_ms
        self.total = 0
        self.slices: deque[list[int]] = deque()

    def forget(self, now: int, length_ms: int) -> None:
        """Drop slices older than the window."""
        while self.slices and now >= (self.slices[0][0] + 1) * self.slice_ms + length_ms:
            self.total -= self.slices.popleft()[1]

    def add(self, now: int, amount: int) -> None:
        index = now // self.slice_ms
        if self.slices and self.slices[-1][0] >= index:
            self.slices[-1][1] += amount
        else:
            self.slices.append([index, amount])
        self.total += amount

    def take_back(self, charged_at: int, amount: int) -> None:
        # From its own slice: subtracted from a later one, it would lower that total for too long.
        index = charged_at // self.slice_ms
        for each in reversed(self.slices):
            if each[0] == index:
                each[1] -= amount
                self.total -= amount
                return


class Windows:
    """All counters. Times are monotonic milliseconds."""

    def __init__(self) -> None:
        self._counters: dict[tuple[str, int], _Counter] = {}

    def spent(self, counter: str, length_ms: int, now: int) -> int:
        """Return what counts at this time."""
        found = self._counters.get((counter, length_ms))
        if found is None:
            return 0
        found.forget(now, length_ms)
        return found.total

    def charge(self, charges: Iterable[Charge], now: int) -> None:
        """Add amounts."""
        for counter, length_ms, amount in charges:
            found = self._counters.get((counter, length_ms))
            if found is None:
                found = self._counters[counter, length_ms] = _Counter(_slice_of(length_ms))
            found.forget(now, length_ms)
            found.add(now, amount)

    def take_back(self, charges: Iterable[Charge], charged_at: int) -> None:
        """Subtract what was charged at that time."""
        for counter, length_ms, amount in charges:
            found = self._counters.get((counter, length_ms))
            if found is not None:
                found.take_back(charged_at, amount)

    def kept(self, now: int) -> Iterator[tuple[str, int, list[list[int]]]]:
        """Yield what still counts, for a checkpoint: counter, length, and amounts by slice."""
        for (counter, length_ms), found in list(self._counters.items()):
            found.forget(now, length_ms)
            if found.slices:
                yield counter, length_ms, [list(each) for each in found.slices]
            else:
                del self._counters[counter, length_ms]

    def restore(self, kept: Iterable[tuple[str, int, list[list[int]]]]) -> None:
        """Restore the counters of a checkpoint."""
        self._counters.clear()
        for counter, length_ms, slices in kept:
            found = self._counters[counter, length_ms] = _Counter(_slice_of(length_ms))
            found.slices.extend(list(each) for each in slices)
            found.total = sum(amount for _, amount in slices)


def _slice_of(length_ms: int) -> int:
    return max(1, -(-length_ms // SLICES))
