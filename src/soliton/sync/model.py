"""What happens to the machines, and what they want done.

What lives here: events, actions, and what the machines know of the chain. What does not: the
machines.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec

from soliton.wire.errors import Verdict
from soliton.wire.messages import Message
from soliton.wire.versions import Version

PeerId = int
"""A connection, from its handshake to its end: the next one of the same node has another number."""


# --- events ---------------------------------------------------------------------------------------


class Joined(msgspec.Struct, frozen=True):
    """A peer has come, and both handshakes are through."""

    peer: PeerId
    version: Version


class Left(msgspec.Struct, frozen=True):
    """A connection is over."""

    peer: PeerId


class Heard(msgspec.Struct, frozen=True):
    """A peer has said something."""

    peer: PeerId
    message: Message


class ChainMoved(msgspec.Struct, frozen=True):
    """The own chain has another last block, or that has grown or shrunk."""


class Tick(msgspec.Struct, frozen=True):
    """Time has passed."""


# --- actions --------------------------------------------------------------------------------------


class Send(msgspec.Struct, frozen=True):
    """Say something to one peer."""

    peer: PeerId
    message: Message


class Broadcast(msgspec.Struct, frozen=True):
    """Say something to all peers but some."""

    message: Message
    but: frozenset[PeerId] = frozenset()


class Blame(msgspec.Struct, frozen=True):
    """A peer did wrong: ``verdict`` says what becomes of it."""

    peer: PeerId
    reason: str
    verdict: Verdict = Verdict.BLACKLIST


class NothingNew(msgspec.Struct, frozen=True):
    """A peer says that its chain is better than ours, and names no block that we do not have: its
    score is forgotten until it is repeated, and others are asked.
    """

    peer: PeerId


Action = Send | Broadcast | Blame | NothingNew
"""What every machine may want. Some have actions of their own besides."""


# --- the chain ------------------------------------------------------------------------------------


class History(Protocol):
    """What the machines ask about the own chain; each answer is that of the moment."""

    def score(self) -> int:
        """The score of the chain, its last block included."""

    def last_ids(self, count: int) -> Sequence[bytes]:
        """The ids of the last blocks, the newest first; of the last one as far as it has grown."""

    def knows(self, block_id: bytes) -> bool:
        """Whether a block is in the chain; any id that the last block had counts."""

    def last_id(self) -> bytes:
        """The id of the last block as far as it has grown."""
