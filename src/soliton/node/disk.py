"""Whether what the node makes can be written, and when it is tried again after it could not.

A full disk costs nothing that was there before: the block that could not be written has not
happened, its transactions wait in the pool, and everything else is answered. Only mining and
blocks of peers pause; it is tried again by itself, ever less often.

What lives here: noting it, saying it once in a while, the times of new attempts. What does not:
writing (``soliton.storage``), going back to what is stored (``chain``, ``node``).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Final

from soliton.storage.errors import StorageProblem

FIRST_PAUSE_SECONDS: Final = 0.5
LONGEST_PAUSE_SECONDS: Final = 8.0
"""After each attempt that fails the pause is twice as long, up to this."""
LOG_SECONDS: Final = 60.0
"""How often the log says that it is still so."""

_log = logging.getLogger(__name__)


class WritingPaused(StorageProblem):
    """Writing has failed, and it is too early to try again."""


class Disk:
    """What is known about writing of one node."""

    __slots__ = ("_clock", "_failures", "_next", "_told", "failures_total", "problem")

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """``clock`` gives seconds."""
        self._clock = clock
        self._failures = 0
        self._next = 0.0
        self._told = 0.0
        self.failures_total = 0
        self.problem: StorageProblem | None = None
        """Why the last attempt failed; ``None`` where it did not."""

    def check(self) -> None:
        """Raise ``WritingPaused`` where an attempt has failed a moment ago."""
        if self.problem is not None and self.pause > 0:
            raise WritingPaused(str(self.problem)) from self.problem

    @property
    def pause(self) -> float:
        """How long it is (s) until the next attempt."""
        return 0.0 if self.problem is None else max(0.0, self._next - self._clock())

    def failed(self, problem: StorageProblem) -> None:
        """An attempt has failed."""
        now = self._clock()
        pause = min(FIRST_PAUSE_SECONDS * 2**self._failures, LONGEST_PAUSE_SECONDS)
        self._failures = min(self._failures + 1, 16)
        self._next = now + pause
        self.failures_total += 1
        if self.problem is None or now - self._told >= LOG_SECONDS:
            self._told = now
            _log.error(
                "mining pauses until this is mended, and then goes on by itself: %s", problem
            )
        self.problem = problem

    def works(self) -> None:
        """An attempt has succeeded."""
        if self.problem is None:
            return
        self.problem = None
        self._failures = 0
        _log.info("the disk can be written again: mining goes on")
