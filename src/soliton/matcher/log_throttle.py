"""Logs that say the same thing again and again, said less often.

While a broker or a node is away, libraries and ours tell so at every attempt. The first time is
news. What follows is counted, and told with the next line that comes through.

What lives here: a filter for loggers. What does not: where logs go.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Final

QUIET_SECONDS: Final = 30.0
"""How long the same words are not said again."""
MAX_MESSAGES: Final = 1_000
"""So many different ones are remembered; then all are forgotten."""


class LogThrottle(logging.Filter):
    """Lets a message through when the same one, whatever it was filled in with, has not come
    through for a while.
    """

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        """``monotonic`` gives seconds."""
        super().__init__()
        self._monotonic = monotonic
        self._told: dict[tuple[str, int, str], tuple[float, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether a record comes through."""
        key = (record.name, record.levelno, str(record.msg))
        now = self._monotonic()
        at, held_back = self._told.get(key, (float("-inf"), 0))
        if now - at < QUIET_SECONDS:
            self._told[key] = at, held_back + 1
            return False
        if len(self._told) >= MAX_MESSAGES:
            self._told.clear()
        self._told[key] = now, 0
        if held_back:
            record.msg = f"{record.getMessage()} (and {held_back} times before)"
            record.args = None
        return True


def throttle(prefix: str) -> None:
    """Throttle every logger with a name that begins so, once."""
    for name in list(logging.root.manager.loggerDict):
        if name.startswith(prefix):
            throttled(logging.getLogger(name))


def throttled(logger: logging.Logger) -> logging.Logger:
    """The same logger, which does not repeat itself."""
    if not any(isinstance(each, LogThrottle) for each in logger.filters):
        logger.addFilter(LogThrottle())
    return logger
