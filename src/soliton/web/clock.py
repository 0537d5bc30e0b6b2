"""The wall clock, for services without a node's clock.

What lives here: reading the clock. What does not: the core packages, which receive the time as an
argument.
"""

from __future__ import annotations

import time


def wall_clock() -> int:
    """Return milliseconds since 1970."""
    return time.time_ns() // 1_000_000
