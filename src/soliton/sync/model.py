"""Events and actions of the state machines, and their view of the chain.

What lives here: what more than one machine uses. What does not: the machines.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec

from soliton.wire.errors import Verdict
from soliton.wire.messages import Message
from soliton.wire.versions import Version

PeerId = int
"""The number of a connection; a later connection of the same node has another one."""


# --- events ---------------------------------------------------------------------------------------


class Joined(msgspec.Struct, frozen=True):
    """A peer has connected, and both handshakes are complete."""

    peer: PeerId
    version: Version


class Left(msgspec.Struct, frozen=True):
    """A connection has ended."""

    peer: PeerId


class Received(msgspec.Struct, frozen=True):
    """A message of a peer."""

    peer: PeerId
    message: Message


class ChainMoved(msgspec.Struct, frozen=True):
    """Our chain has another last block, or the last block has grown or shrunk."""


class Tick(msgspec.Struct, frozen=True):
    """Time has passed."""


# --- actions --------------------------------------------------------------------------------------


class Send(msgspec.Struct, frozen=True):
    """Send a message to one peer."""

    peer: PeerId
    message: Message


class Broadcast(msgspec.Struct, frozen=True):
    """Send a message to all peers except some."""

    message: Message
    but: frozenset[PeerId] = frozenset()


class Blame(msgspec.Struct, frozen=True):
    """A peer violated a rule; ``verdict`` is the sanction."""

    peer: PeerId
    reason: str
    verdict: Verdict = Verdict.BLACKLIST


class NothingNew(msgspec.Struct, frozen=True):
    """A peer claims a better chain than ours but names no block that we lack. Its score is ignored
    until it is repeated, and other peers are used.
    """

    peer: PeerId


class Slow(msgspec.Struct, frozen=True):
    """A peer delivers slowly, if at all. Others that have a better chain than ours are used while
    there are any.
    """

    peer: PeerId


Action = Send | Broadcast | Blame | NothingNew | Slow
"""Actions of every machine; some machines have additional ones."""


# --- the chain ------------------------------------------------------------------------------------


class History(Protocol):
    """Read access to our own chain in its current state."""

    def score(self) -> int:
        """Return the score of the chain, its last block included."""

    def last_ids(self, count: int) -> Sequence[bytes]:
        """Return the ids of the last blocks, newest first, as ``last_id`` does for the last one."""

    def ends_at_a_vote(self) -> bool:
        """Whether ``last_ids`` ends at a block that votes have made final, and not as far below as
        the network may roll back.
        """

    def knows(self, block_id: bytes) -> bool:
        """Whether a block is in the chain; earlier ids of the last block count as well."""

    def last_id(self) -> bytes:
        """Return the id of the last block with all its microblocks."""

    def generator(self) -> bytes:
        """Return the public key of the last block's generator."""
