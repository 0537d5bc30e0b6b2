"""What the data service refuses, in the words of the reference."""

from __future__ import annotations

from soliton.errors import EnvironmentProblem, InputError


class BadRequest(InputError):
    """Status 400: one message, with members that say more."""

    def __init__(self, message: str, **more: object) -> None:
        super().__init__(message)
        self.meta = {"message": message, **more}


class NotFound(InputError):
    """Status 404."""


class QueryTimeout(EnvironmentProblem):
    """Status 504: the database took too long."""


class DatabaseAway(EnvironmentProblem):
    """Status 500: the database does not answer, or refuses."""
