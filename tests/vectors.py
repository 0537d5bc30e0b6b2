"""Inputs with expected outputs that come from outside this repository, and the count of what ran.

What lives here: where that material is, the loader of its vector files, and the record that is
printed at the end of a test run. What does not: any check; each area has a runner of its own.

The material is large and not ours, so it is not in the repository: it is looked for in the
directory that the environment variable ``SOLITON_SHARED`` names, else in ``../shared`` beside the
repository. Tests that need it are skipped, by name, where it is missing.
"""

from __future__ import annotations

import gzip
import json
import os
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pytest

REPOSITORY = Path(__file__).resolve().parent.parent
SHARED_VARIABLE = "SOLITON_SHARED"


class Report:
    """Per vector file: how many ran, and how many did not, for which reasons."""

    def __init__(self) -> None:
        self._ran: Counter[str] = Counter()
        self._skipped: dict[str, Counter[str]] = {}
        self._compared: dict[str, tuple[int, int, str]] = {}

    def compared(self, name: str, equal: int, total: int, but: str = "") -> None:
        """Note that of `total` recorded answers `equal` came out the same, `but` for something."""
        self._compared[name] = equal, total, but

    def comparisons(self) -> list[tuple[str, int, int, str]]:
        """One row for each name: how many were equal, of how many, and what was not compared."""
        return [(name, *found) for name, found in sorted(self._compared.items())]

    def ran(self, name: str, count: int) -> None:
        """Note that `count` vectors of a file were run (and passed, or the test says otherwise)."""
        self._ran[_base_name(name)] += count

    def skipped(self, name: str, count: int, reason: str) -> None:
        """Note that `count` vectors of a file were left out, and why."""
        self._skipped.setdefault(_base_name(name), Counter())[reason] += count

    def take(self) -> dict[str, Any]:
        """Everything noted so far, as plain values that can go to another process."""
        return {
            "ran": dict(self._ran),
            "skipped": {name: dict(reasons) for name, reasons in self._skipped.items()},
            "compared": {name: list(row) for name, row in self._compared.items()},
        }

    def add(self, noted: dict[str, Any]) -> None:
        """Add what another process has noted."""
        self._ran.update(noted["ran"])
        for name, reasons in noted["skipped"].items():
            self._skipped.setdefault(name, Counter()).update(reasons)
        for name, row in noted["compared"].items():
            self.compared(name, *row)

    def rows(self) -> list[tuple[str, int, int, str]]:
        """One row per file: name, how many ran, how many were skipped, and the reasons."""
        rows = []
        for name in sorted({*self._ran, *self._skipped}):
            reasons = self._skipped.get(name, Counter())
            told = "; ".join(f"{reason} ({count})" for reason, count in sorted(reasons.items()))
            rows.append((name, self._ran[name], sum(reasons.values()), told))
        return rows


report = Report()


def shared_root() -> Path:
    """The directory where the material would be; whether it is there is another question."""
    named = os.environ.get(SHARED_VARIABLE)
    return Path(named) if named else REPOSITORY.parent / "shared"


def load_vectors(name: str) -> list[dict[str, Any]]:
    """All vectors of a file, named with or without suffix; skips the caller where it is missing.

    Callable inside a test and at the top of a test module (for parametrisation). The list is
    shared between callers: read it, do not change it.
    """
    vectors: list[dict[str, Any]] = load_document(name)["vectors"]
    return vectors


def load_document(name: str) -> dict[str, Any]:
    """A file of vectors that has several parts; skips and is shared as ``load_vectors``."""
    path = _find(name)
    if path is None:
        reason = f"vector file {_base_name(name)} is not in {shared_root() / 'vectors'}"
        report.skipped(name, 0, f"missing; {SHARED_VARIABLE} may name its place")
        pytest.skip(reason, allow_module_level=True)
    return _document(path)


def _find(name: str) -> Path | None:
    base = shared_root() / "vectors" / _base_name(name)
    for suffix in (".json", ".json.gz"):
        path = base.with_name(base.name + suffix)
        if path.is_file():
            return path
    return None


@cache
def _document(path: Path) -> dict[str, Any]:
    raw = path.read_bytes()
    document: dict[str, Any] = json.loads(gzip.decompress(raw) if path.suffix == ".gz" else raw)
    return document


def _base_name(name: str) -> str:
    return name.removesuffix(".gz").removesuffix(".json")
