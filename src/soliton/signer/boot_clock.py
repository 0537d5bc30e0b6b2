"""The clock of spending windows: monotonic milliseconds that advance only while the machine runs.

It follows the system's clock since boot, which nobody can set, and continues from the last line of
the journal. Time while the machine was off, or across boots that cannot be told apart, does not
count: a window then forgets later than it could, never earlier.

What lives here: the clock. What does not: the wall clock, which audit lines and orders use.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

_BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")
_CLOCK: Final = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def boot_ms() -> int:
    """Return milliseconds since boot, including sleep where the system counts it."""
    return time.clock_gettime_ns(_CLOCK) // 1_000_000


def boot_id() -> str:
    """Return the id of this boot; empty where the system has none."""
    try:
        return _BOOT_ID.read_text(encoding="ascii").strip()[:64]
    except (OSError, UnicodeDecodeError):
        return ""


class BootClock:
    """The clock of windows."""

    def __init__(
        self, since_boot: Callable[[], int] = boot_ms, boot: Callable[[], str] = boot_id
    ) -> None:
        self._since_boot = since_boot
        self.boot = boot()
        self._offset = 0
        self._last = 0
        self.resume(0, 0, "", 0)

    def resume(self, last: int, start: int, start_boot: str, start_since_boot: int) -> None:
        """Continue after ``last``. ``start`` is the time of an earlier start of the signer, which
        was ``start_since_boot`` milliseconds after the boot ``start_boot``.
        """
        now = self._since_boot()
        self._last = last
        if self.boot and self.boot == start_boot:
            self._offset = start - start_since_boot
            # A machine restored from a snapshot continues from the last line instead.
            if now + self._offset >= last:
                return
        self._offset = last - now

    def now(self) -> int:
        """Return the time in milliseconds; it never goes back."""
        self._last = max(self._last, self._since_boot() + self._offset)
        return self._last

    def since_boot(self) -> int:
        """Return the milliseconds since boot that correspond to ``now()``."""
        return self.now() - self._offset
