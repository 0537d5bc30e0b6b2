"""Errors of the export: what the operator has to look at."""

from __future__ import annotations

from soliton.errors import EnvironmentProblem, InputError, InvariantBroken


class DatabaseAway(EnvironmentProblem):
    """The database does not answer, is full, or cannot be written for now: it is tried again."""


class DatabaseProblem(EnvironmentProblem):
    """The database refuses what trying again will not change."""


class SourceAway(EnvironmentProblem):
    """The chain cannot be read for now: it is tried again."""


class WrongSchema(InputError):
    """The database has another version of the schema than this program writes."""


class WrongChain(InputError):
    """The database holds another chain, or something else."""


class AnotherExport(EnvironmentProblem):
    """Another process writes to the same database."""


class Unexportable(InvariantBroken):
    """A transaction that has no row in the tables."""


class Difference(EnvironmentProblem):
    """The database does not hold what the chain does."""
