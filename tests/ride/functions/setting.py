"""Contexts for calls of functions."""

from __future__ import annotations

from soliton.ride.environment import CallContext, Switches
from tests.ride.static_environment import StaticEnvironment

BEFORE = Switches(code_points=False, new_pow_precision=False)


def context_of(version: int, switches: Switches | None = None) -> CallContext:
    """A run of a script of a version, on a chain with nothing on it."""
    environment = StaticEnvironment()
    return CallContext(environment, version, Switches() if switches is None else switches)
