"""The errors of the data service, with the reference's messages."""

from __future__ import annotations

from soliton.errors import EnvironmentProblem, InputError
from soliton.web.parameters import MAX_SHOWN_CHARS


class BadRequest(InputError):
    """Status 400: a message, and further members."""

    def __init__(self, message: str, **more: object) -> None:
        super().__init__(message)
        self.meta = {"message": message, **more}


class WrongValue(BadRequest):
    """A parameter that cannot be read. Beside the reference's message, which may lack them, the
    members have its name, its value (shortened; ``None`` if it is missing), and what is allowed.
    """

    def __init__(
        self, message: str, name: str, value: str | None, allowed: str, **more: object
    ) -> None:
        if value is not None and len(value) > MAX_SHOWN_CHARS:
            value = f"{value[:MAX_SHOWN_CHARS]}…"
        super().__init__(message, name=name, value=value, allowed=allowed, **more)


class NotFound(InputError):
    """Status 404."""


class QueryTimeout(EnvironmentProblem):
    """Status 504: the database took too long."""


class DatabaseAway(EnvironmentProblem):
    """Status 500: the database is unreachable, or rejects the query."""
