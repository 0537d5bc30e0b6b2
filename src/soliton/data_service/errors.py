"""The errors of the data service, with the reference's messages."""

from __future__ import annotations

from soliton.errors import EnvironmentProblem, InputError


class BadRequest(InputError):
    """Status 400: a message, and further members."""

    def __init__(self, message: str, **more: object) -> None:
        super().__init__(message)
        self.meta = {"message": message, **more}


class NotFound(InputError):
    """Status 404."""


class QueryTimeout(EnvironmentProblem):
    """Status 504: the database took too long."""


class DatabaseAway(EnvironmentProblem):
    """Status 500: the database is unreachable, or rejects the query."""
