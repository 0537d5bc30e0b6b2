"""Coverage of lines and branches of dApps by tests.

While coverage is measured, all runs use the observable evaluator, which is slower and has the same
complexities.

What lives here: observing runs, merging the results of processes, and the report. What does not:
the units of coverage (``units``), and the hooks (``plugin``).
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
"""Line, column, kind and text of a unit, and whether it was reached."""
Rows: TypeAlias = dict[str, list[Row]]
"""Rows by file."""

NEVER: Final = "no test has deployed it"
_ALL: Final = 100.0


class Coverage:
    """The coverage of deployed files, from their deployment on."""

    def __init__(self) -> None:
        self._observer = _Watcher()
        self._deployed: dict[bytes, tuple[Path, SourceText, Script]] = {}
        observe_all_runs(self._observer)

    def deployed(self, path: Path, text: SourceText, script: Script) -> None:
        """Register the script of a file."""
        self._deployed[script.source] = path.resolve(), text, script

    def close(self) -> None:
        """Stop observing."""
        observe_all_runs(None)

    def rows(self) -> Rows:
        """The results, in a form that can be sent to another process."""
        found: dict[str, dict[Unit, bool]] = {}
        for path, text, script in self._deployed.values():
            seen = self._observer.seen.get(script.source, Seen())
            places = map_known_source(script, text.text, text.libraries)
            assert places is not None, "the script was compiled from this text"
            for unit, is_reached in units(script, places, seen):
                file = str(path.parent / unit.file if unit.file else path)
                _add(found.setdefault(file, {}), msgspec.structs.replace(unit, file=""), is_reached)
        return {file: [_row(*each) for each in known.items()] for file, known in found.items()}


def merged(others: Iterable[Rows], rows: Rows) -> Rows:
    """The merged results of several processes."""
    found: dict[str, dict[Unit, bool]] = {}
    for each in (*others, rows):
        for file, of_file in each.items():
            for row in of_file:
                _add(found.setdefault(file, {}), Unit("", *row[:4]), row[4])
    return {file: [_row(*each) for each in known.items()] for file, known in found.items()}


def _add(known: dict[Unit, bool], unit: Unit, is_reached: bool) -> None:
    known[unit] = known.get(unit, False) or is_reached


def _row(unit: Unit, is_reached: bool) -> Row:
    return unit.line, unit.column, unit.kind, unit.text, is_reached


class _Watcher(Observer):
    """Records which expressions are entered, and the values of boolean ones."""

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
                seen.values.add((number, value))

    def failed(self, words: str) -> None:
        """Ignored."""

    def denied(self, run: ObservedRun) -> None:
        """Ignored."""


class Report:
    """The coverage of all processes. Files that no test deploys count too, if they are in the
    directory of a deployed one.
    """

    def __init__(self, rows: Rows, base: Path) -> None:
        self._base = base
        self._units = {
            file: sorted((Unit("", *row[:4]), row[4]) for row in found)
            for file, found in rows.items()
        }
        for directory in sorted({Path(file).parent for file in rows}):
            for path in sorted(directory.glob("*.ride")):
                if str(path) not in self._units:
                    self._units[str(path)] = list(_unreached(path))

    @property
    def percent(self) -> float:
        """The percentage of reached lines and branches."""
        return _percent([each for found in self._units.values() for each in found])

    def table(self) -> Iterator[str]:
        """Lines for a terminal: figures of each file, then the units that were not reached."""
        names = {file: self._name(file) for file in sorted(self._units)}
        width = max((len(name) for name in names.values()), default=0)
        yield f"{'':{width}}  lines  missed  branches  missed   cover"
        for file, name in names.items():
            yield f"{name:{width}}  {_figures(self._units[file])}"
        if len(names) > 1:
            total = [each for found in self._units.values() for each in found]
            yield f"{'all':{width}}  {_figures(total)}"
        for file, name in names.items():
            for unit, is_reached in self._units[file]:
                if not is_reached:
                    yield f"{name}:{unit.line}:{unit.column}: {_missing(unit)}"

    def _name(self, file: str) -> str:
        path = Path(file)
        return str(path.relative_to(self._base)) if path.is_relative_to(self._base) else file


def _unreached(path: Path) -> Iterator[tuple[Unit, bool]]:
    """The units of a file that no test has deployed."""
    try:
        text = source_of(path)
        script = compiled_of(text).script
    except RideError:
        # A library is not a script by itself.
        yield Unit("", 1, 1, LINE, NEVER), False
        return
    found = map_known_source(script, text.text, text.libraries)
    assert found is not None, "the script was compiled from this text"
    for unit, _ in units(script, found, Seen()):
        if not unit.file:
            yield unit, False


def _missing(unit: Unit) -> str:
    if unit.text == NEVER:
        return NEVER
    return f"never {'taken' if unit.kind == BRANCH else 'run'}: {unit.text}"


def _figures(found: Iterable[tuple[Unit, bool]]) -> str:
    rows = list(found)
    lines = [is_reached for unit, is_reached in rows if unit.kind == LINE]
    arms = [is_reached for unit, is_reached in rows if unit.kind == BRANCH]
    counts = f"{len(lines):5}  {lines.count(False):6}  {len(arms):8}  {arms.count(False):6}"
    return f"{counts}  {_percent(rows):5.1f}%"


def _percent(found: Iterable[tuple[Unit, bool]]) -> float:
    reached = [is_reached for _, is_reached in found]
    return _ALL * sum(reached) / len(reached) if reached else _ALL
