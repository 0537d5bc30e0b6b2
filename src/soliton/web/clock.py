"""The time of day, for the services that run beside a node (which has a clock of its own).

What lives here: reading the clock. What does not: who uses it; the core packages are told the time.
"""

from __future__ import annotations

import time


def wall_clock() -> int:
    """Milliseconds since 1970."""
    return time.time_ns() // 1_000_000
