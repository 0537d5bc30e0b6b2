"""The error of a control call."""

from __future__ import annotations

from soliton.errors import InputError


class ControlRefused(InputError):
    """A control call is not possible; the message says why and what is allowed."""


def refused(error: Exception, what: str) -> ControlRefused:
    """An error of the chain as a ``ControlRefused`` with the prefix ``what``."""
    return error if isinstance(error, ControlRefused) else ControlRefused(f"{what}: {error}")
