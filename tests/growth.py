"""How the time that something takes grows with the size of what it is given.

What lives here: the comparison. A machine that is busy makes both sides of it slow, and a run that
is disturbed is repeated; what is measured is the best of a few.
"""

from __future__ import annotations

import time
from collections.abc import Callable

FACTOR = 4
"""How much larger the second input is."""
MAX_GROWTH = 10.0
"""How much longer it may take: something quadratic would take 16 times as long."""
UNMEASURED_SECONDS = 0.05
"""Less than this says nothing."""
ROUNDS = 4


def growth(work: Callable[[str], object], make: Callable[[int], str], size: int) -> float:
    """How much longer work takes for ``FACTOR`` times as much; 0 where both are too short to tell.

    Seconds of this thread are counted, and not those that others have taken from it.
    """
    small, large = make(size), make(FACTOR * size)
    best = float("inf")
    for _ in range(ROUNDS):
        found = _seconds(work, large) / max(_seconds(work, small), UNMEASURED_SECONDS)
        best = min(best, found)
        if best <= MAX_GROWTH:
            break
    return best


def _seconds(work: Callable[[str], object], given: str) -> float:
    started = time.thread_time()
    work(given)
    return time.thread_time() - started
