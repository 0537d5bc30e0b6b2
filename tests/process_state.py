"""The state of a process that tests change and the next ones inherit: the log, the handlers of
signals, and the rounding of decimals, which ccxt sets.
"""

from __future__ import annotations

import decimal
import logging
import signal
import threading
from typing import Final

from soliton.cli import logs
from soliton.node.log_settings import LogSettings

OURS: Final = "soliton"
TESTS: Final = "tests"
WAIT_SECONDS: Final = 60.0
HANDLERS: Final = {
    each: signal.getsignal(each) for each in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)
}


def restore() -> None:
    """Reset it to what it was when the process began, so that the order of test files is free."""
    logging.disable(logging.NOTSET)
    known = logging.root.manager.loggerDict.values()
    for logger in (logging.root, *(each for each in known if isinstance(each, logging.Logger))):
        logger.setLevel(logging.WARNING if logger is logging.root else logging.NOTSET)
        # pytest's own handlers stay.
        logger.handlers = [each for each in logger.handlers if not is_ours(each)]
        logger.filters = []
        logger.disabled, logger.propagate = False, True
    # What the last command line said about the log, which overrides settings.
    logs._state.chosen, logs._state.settings = logs.Chosen(), LogSettings()
    for number, handler in HANDLERS.items():
        signal.signal(number, handler)
    decimal.setcontext(decimal.DefaultContext.copy())


def running() -> list[str]:
    """Names of threads that tests have started and not ended. Such a thread may connect to a port
    again when another test listens there, which then fails by its exception.
    """
    ours = [
        each for each in threading.enumerate() if _package(getattr(each, "_target", None)) == TESTS
    ]
    for each in ours:
        each.join(WAIT_SECONDS)
    return [each.name for each in ours if each.is_alive()]


def is_ours(handler: logging.Handler) -> bool:
    return _package(type(handler)) == OURS


def _package(value: object) -> str:
    return str(getattr(value, "__module__", None)).partition(".")[0]
