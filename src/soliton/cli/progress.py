"""Progress of long work with the time that is left: a bar on a terminal, plain lines elsewhere.

What lives here: displaying, for all commands. What does not: counting.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Final, Protocol

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn, TimeRemainingColumn
from rich.text import Text

PLAIN_INTERVAL_SECONDS: Final = 10.0
BYTES: Final = "bytes"
"""The unit that is shown in megabytes."""
_MEGABYTE: Final = 1_000_000
_MIN_SECONDS: Final = 1e-3


class Report(Protocol):
    """A function to call with what is done so far, of all, and a note on where the work is."""

    def __call__(self, done: int, note: str = "") -> None:
        """Show it."""


@contextmanager
def progress(label: str, total: int | None, unit: str) -> Iterator[Report]:
    """Show the progress of ``total`` units of work on standard error; ``None`` if it is unknown."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield _plain_lines(console, label, total, unit)
        return
    columns = (
        TextColumn("{task.description} {task.fields[note]}"),
        BarColumn(),
        _Amount(unit),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(label, total=total, note="")

        def report(done: int, note: str = "") -> None:
            bar.update(task, completed=done, note=note)

        yield report


class _Amount(ProgressColumn):
    """What is done of all, and how fast."""

    def __init__(self, unit: str) -> None:
        super().__init__()
        self._unit = unit

    def render(self, task: Task) -> Text:
        """Return the text of a moment."""
        total = None if task.total is None else int(task.total)
        return Text(_amount(int(task.completed), total, task.elapsed or 0.0, self._unit))


def _amount(done: int, total: int | None, seconds: float, unit: str) -> str:
    of_all = "" if total is None else f" of {_number(total, unit)}"
    name = "MB" if unit == BYTES else unit
    rate = _number(int(done / max(seconds, _MIN_SECONDS)), unit)
    return f"{_number(done, unit)}{of_all} {name}, {rate} {name}/s"


def _number(number: int, unit: str) -> str:
    return f"{number // _MEGABYTE:,}" if unit == BYTES else f"{number:,}"


def _plain_lines(console: Console, label: str, total: int | None, unit: str) -> Report:
    started = last = time.monotonic()

    def report(done: int, note: str = "") -> None:
        nonlocal last
        now = time.monotonic()
        if now - last < PLAIN_INTERVAL_SECONDS:
            return
        last = now
        passed = now - started
        left = "" if not total or not done else f", {time_left(done, total, passed)} left"
        line = f"{label}: {note and note + ', '}{_amount(done, total, passed, unit)}{left}"
        console.print(line, highlight=False, markup=False, soft_wrap=True)

    return report


def time_left(done: int, total: int, seconds: float) -> str:
    """Return the time that the rest takes at the speed so far, in hours, minutes and seconds."""
    left = int(max(0, total - done) * seconds / done)
    return f"{left // 3600}:{left % 3600 // 60:02}:{left % 60:02}"


def adding(report: Report) -> Callable[[int], None]:
    """Return a function to call with what is new."""
    done = 0

    def add(number: int) -> None:
        nonlocal done
        done += number
        report(done)

    return add


@contextmanager
def phases(label: str) -> Iterator[Callable[[str, int, int], None]]:
    """Show the progress of work that counts one unit after another: yields a function of the unit,
    what is done of it so far, and of how many.
    """
    with ExitStack() as stack:
        current: list[tuple[str, Report]] = []

        def report(unit: str, done: int, total: int) -> None:
            if not current or current[-1][0] != unit:
                stack.close()
                current.append((unit, stack.enter_context(progress(label, total, unit))))
            current[-1][1](done)

        yield report
