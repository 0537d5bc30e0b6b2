"""Progress of an import: a bar on a terminal, plain lines elsewhere.

What lives here: displaying. What does not: counting the file's blocks beforehand (the bar follows
the bytes read).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

PLAIN_INTERVAL_SECONDS: Final = 2.0

Report = Callable[[int], None]


@contextmanager
def progress_reporter(
    path: Path, file: BinaryIO, first_height: int, to_height: int | None
) -> Iterator[Report]:
    """Yield a function to call with the height reached; it shows progress on standard error."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield _plain_lines(first_height)
        return
    by_height = to_height is not None
    total = to_height - first_height if to_height is not None else path.stat().st_size
    columns = (
        TextColumn("height {task.fields[height]}"),
        BarColumn(),
        TextColumn("{task.fields[rate]:.0f} blocks/s"),
        TimeRemainingColumn(),
    )
    started = time.monotonic()
    with Progress(*columns, console=console) as progress:
        task = progress.add_task("import", total=total, height=first_height, rate=0.0)

        def report(height: int) -> None:
            done = height - first_height
            rate = done / max(time.monotonic() - started, 1e-9)
            completed = done if by_height else file.tell()
            progress.update(task, completed=completed, height=height, rate=rate)

        yield report


def _plain_lines(first_height: int) -> Report:
    started = last = time.monotonic()

    def report(height: int) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last < PLAIN_INTERVAL_SECONDS:
            return
        last = now
        rate = (height - first_height) / (now - started)
        Console(stderr=True).print(f"height {height}, {rate:.0f} blocks/s", highlight=False)

    return report
