"""A serving process: its event loop, its limits, and the signals that end it.

What lives here: how every program of ours configures Python and the system. What does not: the
programs (``run``, ``matcher_run``, ``workers``).
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import os
import resource
import signal
import sys
import threading
from collections.abc import Callable, Coroutine
from typing import Final

from soliton.cli.secrecy import keep_secrets
from soliton.cli.service_manager import READY, STOPPING, notify, start_watchdog

COLLECTOR_THRESHOLDS: Final = (10_000, 2, 50)
"""The garbage collector's thresholds: containers allocated and not freed before a collection of
generation 0, such collections before one of generation 1, and those before one of generation 2.
A collection takes about a microsecond for each container, and everything waits for it.
"""
OLDEST: Final = 2
"""The collector's generation of all containers."""
COUNTED_SEARCHES: Final = 16
"""Once in so many collections of it, the survivors of earlier ones are counted."""
MOST_GROWTH: Final = 4
"""They are included again when they are more than so many times as many as the last time."""
SWITCH_SECONDS: Final = 0.0002
"""The interpreter's switch interval: how long a thread that has finished its input or output waits
for a busy event loop. With the default of 5 ms a matcher's journal is 8 % slower; with a tenth of
this value, threads switch too often.
"""
STACK_BYTES: Final = 16 * 1024 * 1024
"""The stack of each thread. Some systems give threads very little, and the recursion limit is one
for all of them (``soliton.ride.evaluator``).
"""
OPEN_FILES: Final = 8_192
"""Limit on open files, several times what the limits on connections allow. The default of many
systems is 1,024: idle clients would leave none for the program's own files.
"""
FEW_FILES: Final = 1_024
"""A lower limit, which the process cannot raise, is reported."""
_STOP_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

_log = logging.getLogger(__name__)


def run_program(main: Callable[[], Coroutine[None, None, None]]) -> None:
    """Run a coroutine function to its end, in an event loop of uvloop."""
    import uvloop

    keep_secrets()
    # Reference counting frees what a request allocates; the default thresholds would cost a busy
    # program a fifth of its time.
    end_start()
    gc.set_threshold(*COLLECTOR_THRESHOLDS)
    gc.callbacks.append(_Survivors())
    sys.setswitchinterval(SWITCH_SECONDS)
    threading.stack_size(STACK_BYTES)
    _raise_file_limit()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main())


class _Survivors:
    """A callback of the collector that excludes the survivors of a full collection from later ones.

    These are mostly what a program keeps: caches that fill up to their limits. With them a full
    collection takes 80 ms and more, during which everything waits; without them its time depends on
    the new containers only. Cycles among the survivors, of which there are few, wait for the
    collection that includes them again: none does while the survivors do not grow in number.
    """

    def __init__(self) -> None:
        self._searches = 0
        self._included = gc.get_freeze_count()
        self._is_whole = False

    def __call__(self, phase: str, info: dict[str, int]) -> None:
        if info["generation"] < OLDEST:
            return
        if phase == "stop":
            gc.freeze()
            if self._is_whole:
                self._included, self._is_whole = gc.get_freeze_count(), False
            return
        self._searches += 1
        if self._searches % COUNTED_SEARCHES:
            return
        if gc.get_freeze_count() > MOST_GROWTH * self._included:
            self._is_whole = True
            gc.unfreeze()


def end_start() -> None:
    """Exclude what the start has allocated, and keeps, from garbage collection."""
    gc.freeze()


def end_start_of_service() -> None:
    """The same in a service that accepts requests from now on, as systemd learns."""
    end_start()
    notify(READY)
    start_watchdog()


def _raise_file_limit() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = OPEN_FILES if hard == resource.RLIM_INFINITY else min(OPEN_FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < limit:
        # If the system refuses, the present limit has to do.
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
    found = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if resource.RLIM_INFINITY != found < FEW_FILES:
        _log.warning(
            "this process may open %d files only, for connections, the store and its log together: "
            "raise the limit (ulimit -n, LimitNOFILE of systemd) to %d",
            *(found, OPEN_FILES),
        )


def call_on_signals(stop: Callable[[], None]) -> None:
    """Call ``stop`` on SIGINT, SIGTERM and SIGHUP, unless the last is ignored as under nohup."""

    def begin_stop() -> None:
        notify(STOPPING)
        stop()

    loop = asyncio.get_running_loop()
    for number in _STOP_SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            loop.add_signal_handler(number, begin_stop)


def end_with_parent() -> None:
    """Send this process SIGTERM once its parent ends: its standard input is the parent's pipe."""

    def wait() -> None:
        os.read(sys.stdin.fileno(), 1)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=wait, daemon=True).start()
