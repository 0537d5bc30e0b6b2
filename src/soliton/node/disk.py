"""Write failures of the store, and the backoff until the next attempt.

A full disk loses nothing: a block that could not be written is reverted, its transactions stay in
the pool, and other requests are served. Only mining and blocks of peers pause, and are retried with
exponential backoff.

What lives here: recording failures, logging them once in a while, the time of the next attempt.
What does not: writing (``soliton.storage``), reverting (``chain_writer``, ``node``).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Final

from soliton.storage.errors import StorageProblem

FIRST_PAUSE_SECONDS: Final = 0.5
LONGEST_PAUSE_SECONDS: Final = 8.0
"""The pause doubles after each failed attempt, up to this."""
LOG_SECONDS: Final = 60.0
"""How often a persistent failure is logged."""

_log = logging.getLogger(__name__)


class WritingPaused(StorageProblem):
    """Writing has failed, and it is too early to retry."""


class Disk:
    """The state of one node's writes."""

    __slots__ = ("_clock", "_failures", "_logged", "_next", "failures_total", "problem")

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """``clock`` returns seconds."""
        self._clock = clock
        self._failures = 0
        self._next = 0.0
        self._logged = 0.0
        self.failures_total = 0
        self.problem: StorageProblem | None = None
        """The error of the last attempt; ``None`` if it succeeded."""

    def check(self) -> None:
        """Raise ``WritingPaused`` during the pause after a failed attempt."""
        if self.problem is not None and self.pause > 0:
            raise WritingPaused(str(self.problem)) from self.problem

    @property
    def pause(self) -> float:
        """Seconds until the next attempt."""
        return 0.0 if self.problem is None else max(0.0, self._next - self._clock())

    def failed(self, problem: StorageProblem) -> None:
        """Record a failed attempt."""
        now = self._clock()
        pause = min(FIRST_PAUSE_SECONDS * 2**self._failures, LONGEST_PAUSE_SECONDS)
        self._failures = min(self._failures + 1, 16)
        self._next = now + pause
        self.failures_total += 1
        if self.problem is None or now - self._logged >= LOG_SECONDS:
            self._logged = now
            _log.error(
                "mining pauses until this is mended, and then goes on by itself: %s", problem
            )
        self.problem = problem

    def works(self) -> None:
        """Record a successful attempt."""
        if self.problem is None:
            return
        self.problem = None
        self._failures = 0
        _log.info("the disk can be written again: mining goes on")
