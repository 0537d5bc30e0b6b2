"""Errors and warnings of sources for a terminal: FILE:LINE:COL, message, an excerpt.

What lives here: formatting, and watching files. What does not: finding errors
(``soliton.ride.compiler.all_faults``, ``soliton.ride.lint``).
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from soliton.ride.compiler import Compiled, CompileError, compile_source
from soliton.ride.compiler.all_faults import MAX_FAULTS, Checked, check_source
from soliton.ride.lint import warnings

MAX_EXCERPT_CHARS: Final = 160
WATCH_SECONDS: Final = 0.3
MAX_WATCHED: Final = 5_000


def fault_lines(path: str, text: str, libraries: Mapping[str, str]) -> list[str]:
    """All errors of a source."""
    return list(_fault_lines(path, text, check_source(text, libraries), libraries))


def lint_lines(path: str, text: str, libraries: Mapping[str, str]) -> list[str]:
    """All errors of a source, or its warnings."""
    checked = check_source(text, libraries)
    found = list(_fault_lines(path, text, checked, libraries))
    compiled: Compiled | None = None
    if not checked.faults:
        try:
            compiled = compile_source(text, libraries=libraries)
        except CompileError as fault:
            # It is correct but too complex or too long.
            found.append(f"{path}: {fault}")
    for warning in warnings(checked, compiled):
        line, column, _ = checked.source.position(warning.start)
        found.append(f"{path}:{line}:{column}: {warning.message} [{warning.kind}]")
        found += excerpt(text, line, column)
    return found


def _fault_lines(
    path: str, text: str, checked: Checked, libraries: Mapping[str, str]
) -> Iterator[str]:
    directory = Path(path).parent
    for fault in checked.faults:
        advice = f" ({fault.advice})" if fault.advice else ""
        if fault.library is not None:
            name, line, column = fault.library
            yield f"{directory / name}:{line}:{column}: {fault.problem}{advice}"
            yield from excerpt(libraries.get(name, ""), line, column)
        elif fault.line:
            yield f"{path}:{fault.line}:{fault.column}: {fault.problem}{advice}"
            yield from excerpt(text, fault.line, fault.column)
        else:
            yield f"{path}: {fault.problem}{advice}"
    if len(checked.faults) >= MAX_FAULTS:
        yield f"{path}: more than {MAX_FAULTS} faults, the rest is omitted"


def excerpt(text: str, line: int, column: int) -> list[str]:
    """A line of a text, and below it a mark at the column."""
    lines = text.split("\n")
    if not 1 <= line <= len(lines):
        return []
    shown = lines[line - 1].rstrip("\r")
    start = max(0, column - MAX_EXCERPT_CHARS // 2)
    part = shown[start : start + MAX_EXCERPT_CHARS]
    before = "".join("\t" if char == "\t" else " " for char in part[: column - 1 - start])
    return [f"{line:5} | {part}", f"      | {before}^"]


def watched(
    paths: Callable[[], Iterable[Path]], refresh: Callable[[], object], rounds: int | None = None
) -> None:
    """Call ``refresh``, and again whenever a file has changed, ``rounds`` times or for ever."""
    seen: dict[Path, float] | None = None
    while rounds is None or rounds > 0:
        now = {path: _changed_at(path) for path in paths()}
        if now != seen:
            seen = now
            refresh()
            if rounds is not None:
                rounds -= 1
        else:
            time.sleep(WATCH_SECONDS)


def sources_below(directory: Path) -> list[Path]:
    """Scripts and tests in a directory and its subdirectories, except hidden ones."""
    found = []
    for place, names, files in os.walk(directory):
        names[:] = [name for name in names if name != "node_modules" and not name.startswith(".")]
        found += [Path(place, name) for name in files if name.endswith((".ride", ".py"))]
        if len(found) > MAX_WATCHED:
            break
    return found


def _changed_at(path: Path) -> float:
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0
