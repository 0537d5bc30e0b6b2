"""Errors of the peer protocol: what is wrong with a peer's bytes, and what follows for the peer."""

from __future__ import annotations

from enum import Enum

from soliton.errors import InputError


class Verdict(Enum):
    """What becomes of a peer that broke a rule."""

    CLOSE = "close"
    """Its connection is closed."""
    SUSPEND = "suspend"
    """And its address is not dialled for a while."""
    BLACKLIST = "blacklist"
    """And its address is refused for a while."""


class PeerFault(InputError):
    """A peer broke the protocol. ``verdict`` says what becomes of it."""

    def __init__(self, reason: str, verdict: Verdict = Verdict.BLACKLIST) -> None:
        super().__init__(reason)
        self.reason = reason
        self.verdict = verdict


class CannotSend(InputError):
    """A message has no form that this peer would read: its version is too old, or the message is
    longer than the protocol allows.
    """
