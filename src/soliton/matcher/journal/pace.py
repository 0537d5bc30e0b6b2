"""Measuring the disk: whether to sync on the event loop or in a thread.

A thread switch costs more time than a fast disk takes to sync a write, and delays every command. A
slow disk must be awaited in a thread, so that the event loop is not blocked; so must a fast disk
that becomes slow, after a few writes that blocked the loop. A single slow write is no evidence:
another process may have caused it.

What lives here: the decision. What does not: writing (``embedded``).
"""

from __future__ import annotations

from typing import Final

QUICK_SECONDS: Final = 0.000_3
"""The limit for a fast write: about the cost of a thread switch."""
SLOW_WRITES: Final = 8
"""After so many consecutive slower writes the disk counts as slow."""
STALL_SECONDS: Final = 0.05
"""After a single write slower than this the disk counts as slow."""
FIRST_PAUSE_SECONDS: Final = 1.0
LAST_PAUSE_SECONDS: Final = 60.0
"""How long the disk counts as slow, doubling from the first to the last while it stays slow."""


class Pace:
    """The measured speed of a disk. Times are in seconds, on a monotonic clock."""

    __slots__ = ("_pause", "_slow_until", "_slow_writes")

    def __init__(self) -> None:
        self._slow_writes = 0
        self._pause = FIRST_PAUSE_SECONDS
        self._slow_until = float("-inf")

    def is_quick(self, now: float) -> bool:
        """Whether to do the next write on the event loop."""
        return now >= self._slow_until

    def note(self, started: float, ended: float) -> None:
        """Record the duration of a write on the event loop."""
        duration = ended - started
        self._slow_writes = self._slow_writes + 1 if duration > QUICK_SECONDS else 0
        if self._slow_writes >= SLOW_WRITES or duration > STALL_SECONDS:
            self._slow_writes = 0
            self._slow_until = ended + self._pause
            self._pause = min(2 * self._pause, LAST_PAUSE_SECONDS)
        elif started > self._slow_until + self._pause:
            self._pause = FIRST_PAUSE_SECONDS
