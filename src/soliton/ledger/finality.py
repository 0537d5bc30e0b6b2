"""Votings of blocks, and what they make final.

A block votes on its parent: with the balance of its generator, and of the generators whose
endorsements it or its microblocks contain. With two thirds of the balance of all its generators the
parent is final.

What lives here: the check of a voting, and its outcome. What does not: the generators of a block
(``generators``), its storage (``metas``), collecting endorsements (``soliton.node``).

Sources: wavesplatform/Waves ``node/src/main/scala/com/wavesplatform/state/appender/package.scala``
(``validateFinalizationVoting``), ``state/FinalizationState.scala`` and
``block/FinalizationVoting.scala``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Final

from soliton.chain.addresses import Address, address_text, from_public_key
from soliton.chain.blocks import BlockHeader
from soliton.chain.finalization import (
    BlockEndorsement,
    FinalizationVoting,
    endorsement_message,
    message_of,
)
from soliton.crypto import base58
from soliton.crypto.curve25519 import SignedMessage
from soliton.crypto.signatures import bls_claim
from soliton.ledger.errors import BlockRejected
from soliton.ledger.generators import GeneratorSet

GENESIS_HEIGHT: Final = 1

BlockIdAt = Callable[[int], bytes | None]
"""Returns the id of the block at a height, below that of the voting block."""


def check_voting(
    header: BlockHeader,
    height: int,
    generators: GeneratorSet | None,
    id_at: BlockIdAt,
    max_endorsers: int,
) -> list[SignedMessage]:
    """Check the voting of a block at a height, with all of its microblocks so far.

    ``generators`` are those of the block, without those whose conflicts earlier forms of it have
    shown; ``None`` before deterministic finality. Returns the signatures that the caller verifies.
    Raises ``BlockRejected``.
    """
    voting = header.finalization_voting
    if voting is None:
        return []
    try:
        return _check(voting, header, height, generators, id_at, max_endorsers)
    except _Refused as refusal:
        raise BlockRejected(height, str(refusal)) from None


class _Refused(Exception):
    """A voting is invalid."""


def _check(
    voting: FinalizationVoting,
    header: BlockHeader,
    height: int,
    generators: GeneratorSet | None,
    id_at: BlockIdAt,
    max_endorsers: int,
) -> list[SignedMessage]:
    indexes, conflicts = voting.endorser_indexes, voting.conflicts
    _require(
        generators is not None,
        "Finalization voting is not allowed before Deterministic Finality feature activation",
    )
    assert generators is not None
    _require(header.challenged is None, "Finalization voting is not allowed in challenging block")
    _require(
        voting.finalized_height >= GENESIS_HEIGHT,
        f"Finalized block height is less than {GENESIS_HEIGHT}",
    )
    _require(voting.finalized_height < height - 1, "Voting for finalized block")
    _require(
        bool(indexes or conflicts),
        "Finalization voting contains neither valid nor conflicting endorsements",
    )
    _require(len(indexes) <= max_endorsers, "Too many valid endorsements")
    _require(len(set(indexes)) == len(indexes), "Duplicate valid endorser indexes")
    conflicting = {each.endorser_index for each in conflicts}
    _require(len(conflicting) == len(conflicts), "Duplicate conflicting endorser indexes")
    committed = generators.committed
    for index in indexes:
        _require(
            0 <= index < len(committed),
            f"Invalid endorser index: {index}, expected < {len(committed)}",
        )
    members = {each.index for each in generators.members}
    for index in indexes:
        _require(index in members, f"Valid endorsement sender {index} has insufficient balance")
    miner = from_public_key(header.generator, header.chain_id)
    endorsers = {committed[index].address for index in indexes}
    _require(miner not in endorsers, "Miner can't endorse its own block")
    claims = [
        _check_conflict(each, voting, height, generators, endorsers, miner, id_at)
        for each in conflicts
    ]
    if voting.aggregate is None:
        _require(
            not indexes,
            "No endorsements are included, but aggregated endorsement signature is non-empty",
        )
        return claims
    _require(
        bool(indexes), "Endorsements are included, but aggregated endorsement signature is empty"
    )
    finalized_id = id_at(voting.finalized_height)
    assert finalized_id is not None, "heights below the block exist"
    message = endorsement_message(finalized_id, voting.finalized_height, header.reference)
    keys = [committed[index].endorser_key for index in indexes]
    return [bls_claim(keys, message, voting.aggregate), *claims]


def _check_conflict(
    endorsement: BlockEndorsement,
    voting: FinalizationVoting,
    height: int,
    generators: GeneratorSet,
    endorsers: Collection[Address],
    miner: Address,
    id_at: BlockIdAt,
) -> SignedMessage:
    """Check a conflicting endorsement; the reference asks for no balance of its sender."""
    index, final = endorsement.endorser_index, endorsement.finalized_height
    _require(0 <= index < len(generators.committed), f"Invalid conflicting endorser index {index}")
    sender = generators.committed[index]
    _require(
        not 0 < sender.conflict_height < height,
        "Second conflicting endorsement from one generator",
    )
    _require(sender.address != miner, "Conflicting endorsement from miner is not allowed")
    _require(
        sender.address not in endorsers,
        "Block contains both conflicting and valid endorsement from "
        f"{address_text(sender.address)}",
    )
    _require(
        final <= voting.finalized_height,
        f"Finalized height {final} is higher than expected {voting.finalized_height}",
    )
    own = id_at(final) if final >= GENESIS_HEIGHT else None
    _require(own is not None, f"Can't find block at {final}")
    _require(
        endorsement.finalized_id != own,
        f"Contains expected finalized block: {base58.encode(endorsement.finalized_id)}",
    )
    return bls_claim((sender.endorser_key,), message_of(endorsement), endorsement.signature)


def _require(condition: bool, words: str) -> None:
    if not condition:
        raise _Refused(words)


def conflicting_indexes(voting: FinalizationVoting | None) -> frozenset[int]:
    """Return the indexes of the generators whose conflicts a voting shows."""
    conflicts = () if voting is None else voting.conflicts
    return frozenset(each.endorser_index for each in conflicts)


def is_final(
    generators: GeneratorSet, generator: Address, voting: FinalizationVoting | None
) -> bool:
    """Whether a block makes its parent final.

    ``generators`` are those of the block without conflicting ones. The balance of its own generator
    counts without an endorsement.
    """
    endorsed = frozenset() if voting is None else frozenset(voting.endorser_indexes)
    total = sum(each.balance for each in generators.members)
    for_it = sum(
        each.balance
        for each in generators.members
        if each.index in endorsed or each.address == generator
    )
    return bool(generators.members) and 3 * for_it >= 2 * total
