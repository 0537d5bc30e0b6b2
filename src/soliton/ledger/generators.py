"""The generators of a period: who has committed to it, and who of them may make the next block.

With deterministic finality an account commits to a period in the period before, with a key for
endorsements and a deposit. Generators have indexes in the order of their transactions. The set of a
block are those who have the balance to generate on its parent, and no conflicting endorsement in an
earlier block of the period. If it is empty, everybody may generate as before.

What lives here: sets, commitments, deposits and their return. What does not: endorsements and what
they make final (``finality``), the transaction (``rules.commit_to_generation``).

Sources: wavesplatform/Waves ``node/src/main/scala/com/wavesplatform/state/appender/package.scala``
(``findBlockAndGetGenerators``), ``state/Blockchain.scala`` (``generationDeposit``) and
``state/diffs/BlockDiffer.scala`` (``calculatePenalties``).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final

import msgspec

from soliton.chain.addresses import Address, from_public_key
from soliton.chain.finalization import GENERATION_DEPOSIT
from soliton.consensus.generation import GenerationPeriod
from soliton.ledger.state import (
    COMMITMENTS,
    CONFLICTS,
    DEPOSITS,
    GENERATORS,
    Commitment,
    Overlay,
    State,
)

_COUNT: Final = b""


class Committed(msgspec.Struct, frozen=True, gc=False):
    """A generator that has committed to a period; ``conflict_height`` is that of the block with its
    conflicting endorsement, 0 if there is none.
    """

    address: Address
    endorser_key: bytes
    transaction_id: bytes
    conflict_height: int


class Member(msgspec.Struct, frozen=True, gc=False):
    """A generator of a block, with its index and its generating balance in wavelets."""

    index: int
    address: Address
    endorser_key: bytes
    balance: int


class GeneratorSet(msgspec.Struct, frozen=True):
    """The generators of a block: who has ``committed`` to its period, in the order of their
    indexes, and the ``members``, who may generate and endorse.
    """

    period: GenerationPeriod
    committed: tuple[Committed, ...] = ()
    members: tuple[Member, ...] = ()

    def allows(self, address: Address) -> bool:
        """Whether an account may generate the block."""
        return not self.members or any(address == each.address for each in self.members)

    def without(self, indexes: frozenset[int]) -> GeneratorSet:
        """Return the set without the members that have these indexes."""
        left = tuple(each for each in self.members if each.index not in indexes)
        return msgspec.structs.replace(self, members=left)


def count_committed(state: State, period: GenerationPeriod) -> int:
    """Return how many generators have committed to a period."""
    return state.get(GENERATORS, (period.start, _COUNT))


def committed_to(
    state: State, period: GenerationPeriod, chain_id: int, height: int | None = None
) -> tuple[Committed, ...]:
    """Return the generators that have committed to a period, in the order of their indexes, with
    the conflicts up to a height (default: all).
    """
    found = tuple(
        committed_at(state, period, index, chain_id)
        for index in range(count_committed(state, period))
    )
    if height is None or all(each.conflict_height <= height for each in found):
        return found
    return tuple(
        each if each.conflict_height <= height else msgspec.structs.replace(each, conflict_height=0)
        for each in found
    )


def with_conflicts(
    committed: tuple[Committed, ...], indexes: Collection[int], height: int
) -> tuple[Committed, ...]:
    """Return those who have committed to a period, with the conflicts that the block at a height
    shows.
    """
    if not indexes:
        return committed
    return tuple(
        msgspec.structs.replace(each, conflict_height=height) if index in indexes else each
        for index, each in enumerate(committed)
    )


def committed_at(state: State, period: GenerationPeriod, index: int, chain_id: int) -> Committed:
    """Return the generator with an index below their number."""
    commitment = state.get(COMMITMENTS, (period.start, index))
    assert commitment is not None, "indexes have no gaps"
    return Committed(
        from_public_key(commitment.public_key, chain_id),
        commitment.endorser_key,
        commitment.transaction_id,
        state.get(CONFLICTS, (period.start, index)),
    )


def index_of(state: State, period: GenerationPeriod, name: bytes) -> int | None:
    """Return the index of the generator with this address or key for endorsements."""
    number = state.get(GENERATORS, (period.start, name))
    return number - 1 if number else None


def has_committed(state: State, period: GenerationPeriod, name: bytes) -> bool:
    """Whether the generator with this address or key for endorsements has committed."""
    return bool(state.get(GENERATORS, (period.start, name)))


def first_taken(
    state: State, period: GenerationPeriod, address: Address, endorser_key: bytes
) -> bytes | None:
    """Return the address or the key if one of them has committed to a period, that of the smaller
    index if both have, and the address if they are of one generator.
    """
    found = [(index_of(state, period, name), name) for name in (address, endorser_key)]
    taken = [(index, name) for index, name in found if index is not None]
    return min(taken, key=lambda each: each[0])[1] if taken else None


def commit(
    overlay: Overlay, period: GenerationPeriod, address: Address, commitment: Commitment
) -> None:
    """Add a generator to those of a period, and lock its deposit."""
    index = count_committed(overlay, period)
    overlay.put(COMMITMENTS, (period.start, index), commitment)
    for name in (address, commitment.endorser_key, _COUNT):
        overlay.put(GENERATORS, (period.start, name), index + 1)
    overlay.put(DEPOSITS, address, overlay.get(DEPOSITS, address) + GENERATION_DEPOSIT)


def add_conflicts(
    overlay: Overlay, period: GenerationPeriod, indexes: Iterable[int], height: int
) -> None:
    """Record that the block at a height shows conflicting endorsements of generators."""
    for index in indexes:
        overlay.put(CONFLICTS, (period.start, index), height)


def unlock(overlay: Overlay, addresses: Iterable[Address]) -> None:
    """End one deposit of each account."""
    for address in addresses:
        overlay.put(DEPOSITS, address, overlay.get(DEPOSITS, address) - GENERATION_DEPOSIT)


def ended_deposits(state: State, period: GenerationPeriod, chain_id: int) -> tuple[Address, ...]:
    """Return the accounts whose deposit for a period ends with it: those without a conflict. The
    deposit of others has ended in the block after their conflict.
    """
    committed = committed_to(state, period, chain_id)
    return tuple(each.address for each in committed if not each.conflict_height)
