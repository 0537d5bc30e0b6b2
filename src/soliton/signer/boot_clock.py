"""The time that windows are measured in: milliseconds that only go on while this machine does.

It follows the system's clock since boot, which nobody sets, and goes on where the journal left it.
While the machine was off, or its boot cannot be told from another, no time has passed: a window
then forgets later than it could, never earlier.

What lives here: the clock. What does not: the wall clock, which audit lines and orders have.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

_BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")
_CLOCK: Final = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def boot_ms() -> int:
    """Milliseconds since boot, sleep included where the system counts it."""
    return time.clock_gettime_ns(_CLOCK) // 1_000_000


def boot_id() -> str:
    """What names this boot; empty where the system has no name for it."""
    try:
        return _BOOT_ID.read_text(encoding="ascii").strip()[:64]
    except (OSError, UnicodeDecodeError):
        return ""


class BootClock:
    """The time of windows."""

    def __init__(
        self, since_boot: Callable[[], int] = boot_ms, boot: Callable[[], str] = boot_id
    ) -> None:
        self._since_boot = since_boot
        self.boot = boot()
        self._offset = 0
        self._last = 0
        self.resume(0, 0, "", 0)

    def resume(self, last: int, start: int, start_boot: str, start_since_boot: int) -> None:
        """Go on after ``last``: ``start`` is the time of a start of ours, that of the boot
        ``start_boot`` so many milliseconds since it.
        """
        now = self._since_boot()
        self._last = last
        if self.boot and self.boot == start_boot:
            self._offset = start - start_since_boot
            # A machine that was taken back to an earlier moment goes on from what was written.
            if now + self._offset >= last:
                return
        self._offset = last - now

    def now(self) -> int:
        """The time in milliseconds; it never goes back."""
        self._last = max(self._last, self._since_boot() + self._offset)
        return self._last

    def since_boot(self) -> int:
        """Milliseconds since boot, of this moment's ``now``."""
        return self.now() - self._offset
