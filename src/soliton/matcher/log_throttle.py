"""Throttling repeated log messages.

While a broker or a node is unreachable, our code and libraries log every attempt. The first message
is logged. Repetitions are counted, and the count is added to the next message that is logged.

What lives here: a filter for loggers. What does not: where logs go.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Final

QUIET_SECONDS: Final = 30.0
"""How long a message is suppressed after it was logged."""
MAX_MESSAGES: Final = 1_000
"""The maximum number of different messages remembered; then the table is cleared."""


class LogThrottle(logging.Filter):
    """Drops a message if one with the same format string was logged recently."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        """``monotonic`` returns seconds."""
        super().__init__()
        self._monotonic = monotonic
        self._logged: dict[tuple[str, int, str], tuple[float, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether to log a record."""
        key = (record.name, record.levelno, str(record.msg))
        now = self._monotonic()
        at, suppressed = self._logged.get(key, (float("-inf"), 0))
        if now - at < QUIET_SECONDS:
            self._logged[key] = at, suppressed + 1
            return False
        if len(self._logged) >= MAX_MESSAGES:
            self._logged.clear()
        self._logged[key] = now, 0
        if suppressed:
            record.msg = f"{record.getMessage()} (and {suppressed} times before)"
            record.args = None
        return True


def throttle(prefix: str) -> None:
    """Throttle every logger whose name starts with ``prefix``. Idempotent."""
    for name in list(logging.root.manager.loggerDict):
        if name.startswith(prefix):
            throttled(logging.getLogger(name))


def throttled(logger: logging.Logger) -> logging.Logger:
    """The same logger, throttled. Idempotent."""
    if not any(isinstance(each, LogThrottle) for each in logger.filters):
        logger.addFilter(LogThrottle())
    return logger
