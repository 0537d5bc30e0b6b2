"""Logs that do not repeat themselves."""

from __future__ import annotations

import logging

from soliton.matcher.log_throttle import QUIET_SECONDS, LogThrottle, throttled


def record(words: str, *arguments: object, level: int = logging.WARNING) -> logging.LogRecord:
    return logging.LogRecord("a name", level, "a file", 1, words, arguments, None)


def test_the_same_words_are_said_once_in_a_while() -> None:
    now = [0.0]
    throttle = LogThrottle(lambda: now[0])
    assert [throttle.filter(record("no broker at %s", n)) for n in range(4)] == [True] + [False] * 3
    assert throttle.filter(record("another thing"))
    assert throttle.filter(record("no broker at %s", 1, level=logging.ERROR))
    now[0] = QUIET_SECONDS
    last = record("no broker at %s", 5)
    assert throttle.filter(last)
    assert last.getMessage() == "no broker at 5 (and 3 times before)"
    now[0] = 2 * QUIET_SECONDS
    again = record("no broker at %s", 6)
    assert throttle.filter(again) and again.getMessage() == "no broker at 6"


def test_a_logger_is_damped_once() -> None:
    logger = throttled(throttled(logging.getLogger("soliton.tests.damping")))
    assert len(logger.filters) == 1
