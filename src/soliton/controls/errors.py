"""What a control call is refused with."""

from __future__ import annotations

from soliton.errors import InputError


class ControlRefused(InputError):
    """A control call that cannot be carried out; the message says why, and what is allowed."""


def refused(error: Exception, what: str) -> ControlRefused:
    """An error of the chain as that of a control call, which ``what`` names."""
    return error if isinstance(error, ControlRefused) else ControlRefused(f"{what}: {error}")
