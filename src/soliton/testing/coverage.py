"""Which lines and branches of dApps the tests have reached.

While this is measured every run takes the evaluator that can be watched: what it costs on the chain
is the same, and it takes longer.

What lives here: watching runs, adding up over processes, and the report. What does not: what counts
(``units``), and when (``plugin``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, TypeAlias

import msgspec

from soliton.ride.errors import RideError
from soliton.ride.evaluator import observe_all_runs
from soliton.ride.evaluator_machine import MachineScope
from soliton.ride.expressions import Expression
from soliton.ride.faults import SourceText
from soliton.ride.observation import ObservedRun, Observer
from soliton.ride.script import Script
from soliton.ride.source_map import map_known_source
from soliton.ride.values import Value
from soliton.testing.dapps import compiled_of, source_of
from soliton.testing.units import BRANCH, LINE, Seen, Unit, units

Row: TypeAlias = tuple[int, int, str, str, bool]
"""Line, column, kind and words of a unit, and whether it was reached."""
Rows: TypeAlias = dict[str, list[Row]]
"""By file."""

NEVER: Final = "no test has deployed it"
_ALL: Final = 100.0


class Coverage:
    """Of the files that are deployed, what is reached from then on."""

    def __init__(self) -> None:
        self._observer = _Watcher()
        self._deployed: dict[bytes, tuple[Path, SourceText, Script]] = {}
        observe_all_runs(self._observer)

    def deployed(self, path: Path, text: SourceText, script: Script) -> None:
        """A script of a file is deployed."""
        self._deployed[script.source] = path.resolve(), text, script

    def close(self) -> None:
        """Watch no more."""
        observe_all_runs(None)

    def rows(self) -> Rows:
        """All that is known, in a form that goes from process to process."""
        found: dict[str, dict[Unit, bool]] = {}
        for path, text, script in self._deployed.values():
            seen = self._observer.seen.get(script.source, Seen())
            places = map_known_source(script, text.text, text.libraries)
            assert places is not None, "it was compiled of this text"
            for unit, is_reached in units(script, places, seen):
                file = str(path.parent / unit.file if unit.file else path)
                _add(found.setdefault(file, {}), msgspec.structs.replace(unit, file=""), is_reached)
        return {file: [_row(*each) for each in known.items()] for file, known in found.items()}


def merged(others: Iterable[Rows], rows: Rows) -> Rows:
    """What several processes know, as one."""
    found: dict[str, dict[Unit, bool]] = {}
    for each in (*others, rows):
        for file, told in each.items():
            for line, column, kind, words, is_reached in told:
                _add(found.setdefault(file, {}), Unit("", line, column, kind, words), is_reached)
    return {file: [_row(*each) for each in known.items()] for file, known in found.items()}


def _add(known: dict[Unit, bool], unit: Unit, is_reached: bool) -> None:
    known[unit] = known.get(unit, False) or is_reached


def _row(unit: Unit, is_reached: bool) -> Row:
    return unit.line, unit.column, unit.kind, unit.words, is_reached


class _Watcher(Observer):
    """Notes which expressions are entered, and what those said that are yes or no."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: dict[bytes, Seen] = {}

    def note(
        self, run: ObservedRun, expression: Expression, scope: MachineScope, value: Value | None
    ) -> None:
        """As ``Observer.note``."""
        del scope
        number = run.numbering.of(expression)
        if number is not None:
            seen = self.seen.setdefault(run.script.source, Seen())
            seen.entered.add(number)
            if isinstance(value, bool):
                seen.said.add((number, value))

    def failed(self, words: str) -> None:
        """As ``Observer.failed``: nobody asks."""

    def denied(self, run: ObservedRun) -> None:
        """As ``Observer.denied``: nobody asks."""


class Report:
    """What the runs of all processes came to. Files beside those that were deployed count, too."""

    def __init__(self, rows: Rows, base: Path) -> None:
        self._base = base
        self._units = {
            file: sorted((Unit("", *row[:4]), row[4]) for row in found)
            for file, found in rows.items()
        }
        for directory in sorted({Path(file).parent for file in rows}):
            for path in sorted(directory.glob("*.ride")):
                if str(path) not in self._units:
                    self._units[str(path)] = list(_nothing_of(path))

    @property
    def percent(self) -> float:
        """How much is reached, of all lines and arms."""
        return _percent([each for found in self._units.values() for each in found])

    def table(self) -> Iterator[str]:
        """Lines for a terminal: each file, then what is missing."""
        names = {file: self._name(file) for file in sorted(self._units)}
        width = max((len(name) for name in names.values()), default=0)
        yield f"{'':{width}}  lines  missed  branches  missed   cover"
        for file, name in names.items():
            yield f"{name:{width}}  {_figures(self._units[file])}"
        if len(names) > 1:
            together = [each for found in self._units.values() for each in found]
            yield f"{'all':{width}}  {_figures(together)}"
        for file, name in names.items():
            for unit, is_reached in self._units[file]:
                if not is_reached:
                    yield f"{name}:{unit.line}:{unit.column}: {_missing(unit)}"

    def _name(self, file: str) -> str:
        path = Path(file)
        return str(path.relative_to(self._base)) if path.is_relative_to(self._base) else file


def _nothing_of(path: Path) -> Iterator[tuple[Unit, bool]]:
    """A file that nobody has deployed: all of it is missing."""
    try:
        text = source_of(path)
        script = compiled_of(text).script
    except RideError:
        # A library alone is no script.
        yield Unit("", 1, 1, LINE, NEVER), False
        return
    found = map_known_source(script, text.text, text.libraries)
    assert found is not None, "it was compiled of this text"
    for unit, _ in units(script, found, Seen()):
        if not unit.file:
            yield unit, False


def _missing(unit: Unit) -> str:
    if unit.words == NEVER:
        return NEVER
    return f"never {'taken' if unit.kind == BRANCH else 'run'}: {unit.words}"


def _figures(found: Iterable[tuple[Unit, bool]]) -> str:
    rows = list(found)
    lines = [is_reached for unit, is_reached in rows if unit.kind == LINE]
    arms = [is_reached for unit, is_reached in rows if unit.kind == BRANCH]
    counts = f"{len(lines):5}  {lines.count(False):6}  {len(arms):8}  {arms.count(False):6}"
    return f"{counts}  {_percent(rows):5.1f}%"


def _percent(found: Iterable[tuple[Unit, bool]]) -> float:
    reached = [is_reached for _, is_reached in found]
    return _ALL * sum(reached) / len(reached) if reached else _ALL
