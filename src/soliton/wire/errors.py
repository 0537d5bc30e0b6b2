"""Errors of the peer protocol: what is wrong with a peer's bytes, and the sanction for the peer."""

from __future__ import annotations

from enum import Enum

from soliton.errors import InputError


class Verdict(Enum):
    """The sanction for a peer that violated a rule."""

    CLOSE = "close"
    """Close the connection."""
    SUSPEND = "suspend"
    """Also do not dial the address for a while."""
    BLACKLIST = "blacklist"
    """Also refuse connections from the address for a while."""


class PeerFault(InputError):
    """A peer violated the protocol; ``verdict`` is the sanction."""

    def __init__(self, reason: str, verdict: Verdict = Verdict.BLACKLIST) -> None:
        super().__init__(reason)
        self.reason = reason
        self.verdict = verdict


class CannotSend(InputError):
    """A message cannot be sent: the peer's version is too old, or the message is longer than the
    protocol allows.
    """
