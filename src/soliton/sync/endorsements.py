"""Collecting endorsements: which ones count in a voting round, which are relayed, what the miner
publishes.

A round begins with each key block, and is about its parent. An endorsement is *valid* if it names
the same final block as this node, and *conflicting* if it names another one at a height where this
node has a block; conflicts cost their sender its deposit. Both are verified before they count or
are relayed, since a false conflict in a block makes the block invalid.

A verification takes more than a millisecond, and strangers cause it. So each source (the owner of
an address) has a number of verifications per round that may yield nothing, and a number that may
wait; what is beyond is dropped unread. Nobody is punished: in the reference an endorsement never
ends a connection.

What lives here: the machine, without I/O and without a clock. What does not: the rounds and our own
endorsements (``soliton.node.endorser``), the verification (``soliton.p2p``), the check of published
votings (``soliton.ledger.finality``).

Sources: wavesplatform/Waves ``node/src/main/scala/com/wavesplatform/state/``
``{EndorsementStorage,EndorsementFilter,BlockEndorser}.scala``.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from enum import Enum
from typing import Final

import msgspec

from soliton.chain.finalization import (
    BlockEndorsement,
    FinalizationVoting,
    message_of,
)
from soliton.crypto import bls
from soliton.crypto.curve25519 import SignedMessage
from soliton.crypto.signatures import bls_claim
from soliton.sync.model import PeerId

MAX_WAITING_OF_PEER: Final = 32
"""Endorsements of one source that may wait for verification at a time."""
MAX_WASTED_OF_PEER: Final = 64
"""Verifications that a source may cause in a round without anything new."""
MAX_EARLY: Final = 1_024
"""Endorsements kept for the next round, since peers may have its key block before us. Beyond these
the oldest of the source with the most gives way.
"""
MAX_EARLY_OF_PEER: Final = 32
MAX_EARLY_ROUNDS: Final = 2
"""For so many rounds they are kept: nothing in them is verified before their round."""


class Endorser(msgspec.Struct, frozen=True, gc=False):
    """A committed generator: its key for endorsements and its generating balance in wavelets, 0 if
    that is too small to endorse.
    """

    key: bytes
    balance: int


class VotingRound(msgspec.Struct, frozen=True):
    """What is voted on: the parent of the last key block.

    ``finalized_id`` is our final block, at ``finalized_height``. ``endorsers`` have all committed
    generators, in the order of their indexes; ``conflicting`` are the indexes of those whose
    conflict is in the chain. ``miner`` is the index of the key block's generator, ``None`` if it
    has not committed; ``is_own`` if this node has made it. ``id_at`` returns the id of our block at
    a height below the key block.
    """

    endorsed_id: bytes
    finalized_id: bytes
    finalized_height: int
    endorsers: tuple[Endorser, ...]
    conflicting: frozenset[int]
    miner: int | None
    is_own: bool
    max_endorsers: int
    id_at: Callable[[int], bytes | None]

    def is_same(self, other: VotingRound | None) -> bool:
        """Whether endorsements of the other round count in this one."""
        return (
            other is not None
            and self.endorsed_id == other.endorsed_id
            and self.finalized_id == other.finalized_id
            and self.finalized_height == other.finalized_height
        )


class CheckEndorsement(msgspec.Struct, frozen=True):
    """Verify the signature of an endorsement (``claim``); report with ``checked``."""

    source: Hashable
    endorsement: BlockEndorsement
    claim: SignedMessage
    round_number: int


class RelayEndorsement(msgspec.Struct, frozen=True):
    """Send an endorsement to all peers except some."""

    endorsement: BlockEndorsement
    but: frozenset[PeerId] = frozenset()


class _Early(msgspec.Struct, frozen=True, gc=False):
    """Who has sent an endorsement before its round, and the last round that it is kept for."""

    peer: PeerId
    source: Hashable
    until: int


class _Kind(Enum):
    VALID = "valid"
    CONFLICT = "conflict"
    EARLY = "early"
    USELESS = "useless"


class Endorsements:
    """The endorsements of the present round."""

    def __init__(self) -> None:
        self._round: VotingRound | None = None
        self._number = 0
        self._valid: dict[int, BlockEndorsement] = {}
        self._conflicts: dict[int, BlockEndorsement] = {}
        self._waiting: dict[BlockEndorsement, set[PeerId]] = {}
        self._waiting_of: dict[Hashable, int] = {}
        self._wasted: dict[Hashable, int] = {}
        self._early: dict[BlockEndorsement, _Early] = {}
        self._early_of: dict[Hashable, dict[BlockEndorsement, None]] = {}
        self.dropped = 0
        """Endorsements that were beyond the limits of a peer."""

    @property
    def round(self) -> VotingRound | None:
        """The present round, ``None`` if nobody has committed to this period."""
        return self._round

    @property
    def count(self) -> int:
        """The number of valid endorsements of the round."""
        return len(self._valid)

    @property
    def possible(self) -> int:
        """The number of generators that may endorse in the round: all but that of the key block,
        and those that are too poor or conflict in the chain.
        """
        now = self._round
        if now is None:
            return 0
        return sum(
            1
            for index, each in enumerate(now.endorsers)
            if each.balance and index != now.miner and index not in now.conflicting
        )

    @property
    def conflicting(self) -> frozenset[int]:
        """The indexes of the generators whose conflicts this node has received in the round."""
        return frozenset(self._conflicts)

    def lacks(self, index: int) -> bool:
        """Whether a valid endorsement of a generator would be new, by its index."""
        now = self._round
        if now is None or index in (now.miner, *self._valid, *self._conflicts):
            return False
        return index not in now.conflicting

    # --- rounds -----------------------------------------------------------------------------------

    def begin(self, voting_round: VotingRound | None) -> list[CheckEndorsement]:
        """Begin a round; endorsements are kept if only its generators have changed, except those
        of its miner, which another block in the same place may have.
        """
        if voting_round is not None and voting_round.is_same(self._round):
            self._round = voting_round
            for index in voting_round.conflicting:
                self._valid.pop(index, None)
            if voting_round.miner is not None:
                self._valid.pop(voting_round.miner, None)
                self._conflicts.pop(voting_round.miner, None)
            return []
        self._round = voting_round
        self._number += 1
        self._valid.clear()
        self._conflicts.clear()
        self._waiting.clear()
        self._waiting_of.clear()
        self._wasted.clear()
        if voting_round is None:
            return []
        early = [each for each in self._early.items() if each[1].until >= self._number]
        self._early.clear()
        self._early_of.clear()
        return [
            action
            for endorsement, kept in early
            for action in self._receive(kept.peer, kept.source, endorsement, kept.until)
        ]

    def leave(self, peer: PeerId) -> None:
        """Forget a peer that has gone, except what it has sent."""
        for senders in self._waiting.values():
            senders.discard(peer)

    # --- endorsements -----------------------------------------------------------------------------

    def receive(
        self, peer: PeerId, source: Hashable, endorsement: BlockEndorsement
    ) -> list[CheckEndorsement]:
        """Handle an endorsement of a peer; ``source`` is whoever pays for it: the owner of its
        address.
        """
        return self._receive(peer, source, endorsement, self._number + MAX_EARLY_ROUNDS)

    def _receive(
        self, peer: PeerId, source: Hashable, endorsement: BlockEndorsement, until: int
    ) -> list[CheckEndorsement]:
        if endorsement in self._waiting:
            self._waiting[endorsement].add(peer)
            return []
        kind = self._kind(endorsement)
        if kind is _Kind.EARLY:
            self._keep_for_later(endorsement, _Early(peer, source, until))
        if kind not in (_Kind.VALID, _Kind.CONFLICT):
            return []
        if (
            self._waiting_of.get(source, 0) >= MAX_WAITING_OF_PEER
            or self._wasted.get(source, 0) >= MAX_WASTED_OF_PEER
        ):
            self.dropped += 1
            return []
        assert self._round is not None
        self._waiting[endorsement] = {peer}
        self._waiting_of[source] = self._waiting_of.get(source, 0) + 1
        key = self._round.endorsers[endorsement.endorser_index].key
        claim = bls_claim((key,), message_of(endorsement), endorsement.signature)
        return [CheckEndorsement(source, endorsement, claim, self._number)]

    def checked(self, check: CheckEndorsement, *, is_valid: bool) -> list[RelayEndorsement]:
        """Handle the result of a verification."""
        if check.round_number != self._number:
            return []
        source, endorsement = check.source, check.endorsement
        senders = self._waiting.pop(endorsement, set())
        self._waiting_of[source] -= 1
        if not (is_valid and self._add(endorsement)):
            self._wasted[source] = self._wasted.get(source, 0) + 1
            return []
        return self._relayed(endorsement, frozenset(senders))

    def add_own(self, endorsement: BlockEndorsement) -> list[RelayEndorsement]:
        """Add an endorsement that this node has signed, and send it to all peers."""
        if not self._add(endorsement):
            return []
        return [RelayEndorsement(endorsement)]

    def _relayed(
        self, endorsement: BlockEndorsement, but: frozenset[PeerId]
    ) -> list[RelayEndorsement]:
        # The generator of the key block publishes it; others carry it there.
        if self._round is None or self._round.is_own:
            return []
        return [RelayEndorsement(endorsement, but)]

    def _keep_for_later(self, endorsement: BlockEndorsement, early: _Early) -> None:
        if endorsement in self._early:
            return
        of_source = self._early_of.get(early.source, {})
        if len(of_source) >= MAX_EARLY_OF_PEER:
            self.dropped += 1
            return
        if len(self._early) >= MAX_EARLY:
            fullest = max(self._early_of.values(), key=len)
            self.dropped += 1
            if len(fullest) <= len(of_source) + 1:
                return
            oldest = next(iter(fullest))
            del fullest[oldest], self._early[oldest]
        self._early[endorsement] = early
        self._early_of.setdefault(early.source, {})[endorsement] = None

    def _kind(self, endorsement: BlockEndorsement) -> _Kind:
        """Return what an endorsement is, before its signature is verified."""
        now, index = self._round, endorsement.endorser_index
        if now is None or endorsement.finalized_height > now.finalized_height:
            return _Kind.EARLY
        if endorsement.finalized_height < 1 or not 0 <= index < len(now.endorsers):
            return _Kind.USELESS
        if index == now.miner or not now.endorsers[index].balance:
            return _Kind.USELESS
        if index in now.conflicting or index in self._conflicts:
            return _Kind.USELESS
        own = (
            now.finalized_id
            if endorsement.finalized_height == now.finalized_height
            else now.id_at(endorsement.finalized_height)
        )
        if own != endorsement.finalized_id:
            return _Kind.USELESS if own is None else _Kind.CONFLICT
        if endorsement.finalized_height < now.finalized_height:
            return _Kind.USELESS
        if endorsement.endorsed_id != now.endorsed_id:
            return _Kind.EARLY
        return _Kind.USELESS if index in self._valid else _Kind.VALID

    def _add(self, endorsement: BlockEndorsement) -> bool:
        """Add a verified endorsement; return whether it is new."""
        kind = self._kind(endorsement)
        if kind is _Kind.VALID:
            self._valid[endorsement.endorser_index] = endorsement
        elif kind is _Kind.CONFLICT:
            self._conflicts[endorsement.endorser_index] = endorsement
            self._valid.pop(endorsement.endorser_index, None)
        return kind in (_Kind.VALID, _Kind.CONFLICT)

    # --- mining -----------------------------------------------------------------------------------

    def voting(
        self, endorsed_id: bytes, published: FinalizationVoting | None
    ) -> FinalizationVoting | None:
        """Return the voting of the next microblock of the block whose parent is ``endorsed_id``.

        ``published`` is the voting of the block so far. There is none if it would change nothing:
        as in the reference, endorsements are published when they make the parent final, and
        conflicts at once. The endorsers with the largest balances are taken, as few as suffice.
        """
        now = self._round
        if now is None or now.endorsed_id != endorsed_id:
            return None
        known = () if published is None else published.conflicts
        old = {each.endorser_index for each in known}
        fresh = tuple(each for index, each in sorted(self._conflicts.items()) if index not in old)
        chosen = self._sufficient(now, {*old, *self._conflicts})
        if published is not None and published.endorser_indexes and not fresh:
            return None
        if not chosen and not fresh:
            return None
        aggregate = (
            bls.aggregate([self._valid[index].signature for index in chosen]) if chosen else None
        )
        return FinalizationVoting(chosen, now.finalized_height, aggregate, fresh)

    def _sufficient(self, now: VotingRound, conflicting: Iterable[int]) -> tuple[int, ...]:
        """Return the fewest endorsers whose balances, with the miner's, are two thirds of all."""
        out = now.conflicting.union(conflicting)
        counted = [
            0 if index in out else endorser.balance for index, endorser in enumerate(now.endorsers)
        ]
        total = sum(counted)
        endorsed = 0 if now.miner is None else counted[now.miner]
        chosen: list[int] = []
        richest = sorted(
            (index for index in self._valid if index not in out),
            key=lambda index: (-counted[index], index),
        )
        for index in richest[: now.max_endorsers]:
            chosen.append(index)
            endorsed += counted[index]
            if 3 * endorsed >= 2 * total:
                return tuple(sorted(chosen))
        return ()
