"""The loop of an export: step after step, waiting for the chain, retrying after failures.

A database that is unreachable, full, or failing over is retried, and so is a node; the log reports
the beginning and the end of such a time. While another export to the same database runs, this one
waits, ready to take over.

What lives here: the loop. What does not: steps (``follower``), the command (``soliton.cli``).
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Callable, Iterator
from typing import Final

from soliton.export.errors import AnotherExport, DatabaseAway, SourceAway
from soliton.export.follower import Follower
from soliton.export.metrics import Progress
from soliton.export.sources import Source
from soliton.export.steps import Sink

WAIT_SECONDS: Final = 1.0
"""Longest wait for the source before checking whether to stop."""
RETRY_SECONDS: Final = (0.1, 0.5, 1.0, 2.0, 5.0)
REPORT_SECONDS: Final = 5.0
QUIET_SECONDS: Final = 10.0
"""A step that takes longer is reported: the destination may not be responding."""
_LOOK_SECONDS: Final = 0.5

_log = logging.getLogger(__name__)


class Export:
    """An export that runs until it is stopped."""

    def __init__(
        self,
        source: Source,
        open_sink: Callable[[], Sink],
        stopped: threading.Event,
        report: Callable[[str], None] = _log.info,
        *,
        once: bool = False,
        progress: Progress | None = None,
    ) -> None:
        """``open_sink`` is called again after failures; ``once`` ends the export when the sink has
        caught up with the chain. ``progress`` is for other threads to read.
        """
        self._source = source
        self._open = open_sink
        self._once = once
        self._stopped = stopped
        self._report = report
        self._failures = 0
        self._reported = ""
        self._next_report = 0.0
        self._synced = False
        self._progress = progress or Progress()
        self._ended = threading.Event()

    def run(self) -> None:
        """Follow the chain until stopped or, with ``once``, to its end."""
        watching = threading.Thread(target=self._watch, daemon=True)
        watching.start()
        try:
            self._run()
        finally:
            self._ended.set()
            watching.join()

    def _watch(self) -> None:
        """Report a step that takes long: after ``QUIET_SECONDS``, and after each doubling of it."""
        progress = self._progress
        step, limit = None, QUIET_SECONDS
        while not self._ended.wait(_LOOK_SECONDS):
            if progress.step_since != step:
                step, limit = progress.step_since, QUIET_SECONDS
            if progress.step_seconds > limit:
                self._report(
                    f"waiting: there is no answer for {limit:.0f} seconds, while {progress.doing}"
                )
                limit *= 2

    @contextlib.contextmanager
    def _stepping(self, doing: str) -> Iterator[None]:
        self._progress.doing = doing
        self._progress.step_since = time.monotonic()
        try:
            yield
        finally:
            self._progress.step_since = None

    def _run(self) -> None:
        while not self._stopped.is_set():
            sink = None
            try:
                with self._stepping("opening the destination"):
                    sink = self._open()
                self._failures = 0
                if self._follow(sink):
                    return
            except (DatabaseAway, AnotherExport, SourceAway) as error:
                self._wait_after(error)
            finally:
                if sink is not None:
                    sink.close()

    def _follow(self, sink: Sink) -> bool:
        """Write steps; return whether the export has reached its end."""
        follower = Follower(self._source, sink, self._progress)
        while not self._stopped.is_set():
            try:
                with self._stepping("reading the chain"):
                    moved = follower.step()
            except SourceAway as error:
                self._wait_after(error)
                continue
            self._report_progress(follower, moved=moved)
            if moved:
                continue
            with self._stepping("updating what depends on the clock"):
                sink.idle()
            if self._once:
                return True
            self._source.wait(WAIT_SECONDS)
        return False

    def _report_progress(self, follower: Follower, *, moved: bool) -> None:
        self._failures = 0
        self._progress.trouble = ""
        if self._reported:
            self._reported = ""
            self._report("resumed")
        now, top = time.monotonic(), follower.position.top
        at = 0 if top is None else top.height
        self._progress.height, self._progress.chain_height = at, follower.height
        if not moved and not self._synced:
            self._report(f"caught up with the chain: height {at}")
        elif moved and now >= self._next_report and at < follower.height:
            self._report(f"height {at} of {follower.height}")
            self._next_report = now + REPORT_SECONDS
        self._synced = self._synced or not moved

    def _wait_after(self, error: Exception) -> None:
        text = str(error)
        self._progress.trouble = text
        self._progress.failures += 1
        if text != self._reported and self._failures:
            self._report(f"waiting: {text}")
            self._reported = text
        seconds = RETRY_SECONDS[min(self._failures, len(RETRY_SECONDS) - 1)]
        self._failures += 1
        self._stopped.wait(seconds)
        # Release the snapshot of a store, which could not reuse its pages while the sink is away.
        with contextlib.suppress(SourceAway):
            self._source.refresh()
