"""The event loop of the simulation, in virtual time.

What lives here: the heap of events. What does not: the events (hosts, links, faults).
"""

from __future__ import annotations

import heapq
from collections.abc import Callable

import msgspec


class Timer(msgspec.Struct):
    """A scheduled call."""

    at: int
    call: Callable[[], None] | None

    def cancel(self) -> None:
        """Cancel the call."""
        self.call = None


class Loop:
    """Events in the order of their times, then in the order of scheduling."""

    def __init__(self, start: int) -> None:
        """``start`` is the time (ms since 1970) at which the simulation begins."""
        self.start = start
        self.now = start
        self.events = 0
        self._heap: list[tuple[int, int, Timer]] = []
        self._number = 0

    @property
    def seconds(self) -> float:
        """The elapsed virtual time."""
        return (self.now - self.start) / 1_000

    def at(self, time: int, call: Callable[[], None]) -> Timer:
        """Call something at a time (ms); if that has passed, now, after earlier events."""
        timer = Timer(max(time, self.now), call)
        self._number += 1
        heapq.heappush(self._heap, (timer.at, self._number, timer))
        return timer

    def after(self, delay: int, call: Callable[[], None]) -> Timer:
        """Call something after some ms."""
        return self.at(self.now + delay, call)

    def call_soon(self, call: Callable[[], None]) -> Timer:
        """Call something now, after earlier events."""
        return self.at(self.now, call)

    def run(self, until: int) -> None:
        """Run all events up to a time."""
        heap = self._heap
        while heap and heap[0][0] <= until:
            at, _, timer = heapq.heappop(heap)
            call = timer.call
            if call is not None:
                self.now = at
                self.events += 1
                call()
        self.now = max(self.now, until)
