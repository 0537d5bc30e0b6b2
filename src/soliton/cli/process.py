"""A process that serves: its event loop, its limits, and the signals that end it.

What lives here: what every program of ours asks of Python and the system. What does not: what the
programs do (``run``, ``matcher_run``, ``workers``).
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import resource
import signal
import sys
import threading
from collections.abc import Callable, Coroutine
from typing import Final

COLLECTOR_THRESHOLDS: Final = (10_000, 2, 50)
"""Containers made and not freed before the search for cycles looks at these, how many such rounds
before it looks at what they left too, and how many of those before it looks at all that has been
made since the start. A microsecond for each is little on a busy machine, and everything waits.
"""
OLDEST: Final = 2
"""The generation of the collector that is all there is."""
WHOLE_SEARCHES: Final = 256
"""After so many searches of it, one goes through what has stayed from the first of them on."""
SWITCH_SECONDS: Final = 0.0002
"""How long a thread that has heard of the disk waits for an event loop that does not rest. With the
usual 5 ms a matcher's journal is 8 % slower; with a tenth of this, threads take too many turns.
"""
STACK_BYTES: Final = 16 * 1024 * 1024
"""Of each thread. Some systems give threads very little, and recursion has one limit for all of
them (``soliton.ride.evaluator``).
"""
OPEN_FILES: Final = 8_192
"""Several times what all connections that may be open take. Many systems give a program 1,024
unless it asks for more: then clients that rest would leave none for the program's own files.
"""
_STOP_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)


def run_program(main: Callable[[], Coroutine[None, None, None]]) -> None:
    """Run a coroutine function to its end in a fast event loop."""
    import uvloop

    # What a request makes is freed by counting references: looking for cycles as often as the
    # default does costs a busy program a fifth of its time.
    end_start()
    gc.set_threshold(*COLLECTOR_THRESHOLDS)
    gc.callbacks.append(_Survivors())
    sys.setswitchinterval(SWITCH_SECONDS)
    threading.stack_size(STACK_BYTES)
    _ask_for_open_files()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main())


class _Survivors:
    """A callback of the collector: what a search of everything has left is not gone through again.

    That is what a program keeps, mostly: caches that fill up to their limits. With them a search
    takes 80 ms, while everything waits; without them it takes as long as the program has made new
    things to keep since. What stops being used all the same and is a cycle, of which there is next
    to nothing, waits for the search that goes through all.
    """

    def __init__(self) -> None:
        self._searches = 0

    def __call__(self, phase: str, told: dict[str, int]) -> None:
        if told["generation"] < OLDEST:
            return
        if phase == "stop":
            gc.freeze()
            return
        self._searches += 1
        if self._searches % WHOLE_SEARCHES == 0:
            gc.unfreeze()


def end_start() -> None:
    """What the start has made stays: the search for cycles need never look at it."""
    gc.freeze()


def _ask_for_open_files() -> None:
    given, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = OPEN_FILES if most == resource.RLIM_INFINITY else min(OPEN_FILES, most)
    if given != resource.RLIM_INFINITY and given < wanted:
        # A system that refuses leaves us what there is.
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, most))


def call_on_signals(stop: Callable[[], None]) -> None:
    """Let Ctrl-C and a polite kill end the program."""
    loop = asyncio.get_running_loop()
    for number in _STOP_SIGNALS:
        loop.add_signal_handler(number, stop)
