"""How quick a disk is: whether it is worth a thread to wait for it.

The way to a thread and back costs the event loop more than a quick disk takes to confirm a write,
and makes every command later. A slow disk has to be waited for in a thread, so that the loop goes
on; so has one that was quick and is not any more, after a few writes that held the loop up. A
single write says little: another process may have been in its way.

What lives here: the judgement. What does not: writing (``embedded``).
"""

from __future__ import annotations

from typing import Final

QUICK_SECONDS: Final = 0.000_3
"""What a write may take: about what the way to a thread and back costs."""
SLOW_WRITES: Final = 8
"""So many in a row that took longer are a slow disk."""
STALL_SECONDS: Final = 0.05
"""A single write that took longer is one, too."""
FIRST_PAUSE_SECONDS: Final = 1.0
LAST_PAUSE_SECONDS: Final = 60.0
"""How long a disk counts as slow; twice as long each time that it still is."""


class Pace:
    """What is known about a disk. Times are in seconds, on a clock that never goes back."""

    __slots__ = ("_pause", "_slow_until", "_slow_writes")

    def __init__(self) -> None:
        """Nothing is known yet: it may be quick."""
        self._slow_writes = 0
        self._pause = FIRST_PAUSE_SECONDS
        self._slow_until = float("-inf")

    def is_quick(self, now: float) -> bool:
        """Whether to wait for the next write where one is."""
        return now >= self._slow_until

    def note(self, started: float, ended: float) -> None:
        """A write was waited for."""
        took = ended - started
        self._slow_writes = self._slow_writes + 1 if took > QUICK_SECONDS else 0
        if self._slow_writes >= SLOW_WRITES or took > STALL_SECONDS:
            self._slow_writes = 0
            self._slow_until = ended + self._pause
            self._pause = min(2 * self._pause, LAST_PAUSE_SECONDS)
        elif started > self._slow_until + self._pause:
            self._pause = FIRST_PAUSE_SECONDS
