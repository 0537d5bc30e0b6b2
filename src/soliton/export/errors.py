"""Errors of the export, which an operator has to look at."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

from soliton.errors import EnvironmentProblem, InputError


class DatabaseAway(EnvironmentProblem):
    """The database is unreachable, full, or cannot be written at present: the export retries."""


class DatabaseProblem(EnvironmentProblem):
    """The database rejects something that a retry would not change."""


class SourceAway(EnvironmentProblem):
    """The chain cannot be read at present: the export retries."""


class WrongSchema(InputError):
    """The database's schema version is not the one that this program writes."""


class WrongChain(InputError):
    """The database holds another chain, or is not an export."""


class FinalBlockGone(EnvironmentProblem):
    """A block that was exported as final is not on the chain: final blocks are never taken back."""


class AnotherExport(EnvironmentProblem):
    """Another process writes to the same database."""


class Difference(EnvironmentProblem):
    """The database differs from the chain."""


@contextlib.contextmanager
def system_errors(path: Path) -> Iterator[None]:
    """Raise ``DatabaseAway`` for ``OSError``."""
    try:
        yield
    except OSError as error:
        raise DatabaseAway(f"{path}: {error.strerror or error}") from error
