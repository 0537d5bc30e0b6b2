"""Challenging blocks, against a block with a wrong state hash.

A challenging block has the same transactions, the same parent, an earlier time, and the signed
header of the wrong block, which proves that the other generator signed it. That generator is banned
for a while. The challenger mines with the balance of both, and gets reward and fees.

What lives here: choosing the account, and making the block. What does not: when to challenge
(``soliton.p2p``), the check of challenges (``soliton.ledger.apply``).

Source: wavesplatform/Waves ``node/src/main/scala/com/wavesplatform/mining/BlockChallenger.scala``.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from soliton.chain import blocks
from soliton.chain.addresses import from_public_key
from soliton.chain.blocks import Block, ChallengedHeader
from soliton.crypto.keys import KeyPair
from soliton.errors import InputError
from soliton.ledger.apply import BlockInProgress
from soliton.ledger.environment import next_environment
from soliton.node.chain_writer import ChainWriter
from soliton.node.miner import CannotMine, Slot, header_of, next_slot
from soliton.steps import Steps


class CannotChallenge(InputError):
    """No account may make an earlier block in place of the wrong one."""


def challenging(
    chain: ChainWriter,
    wrong: Block,
    accounts: Iterable[KeyPair],
    reward_vote: int = blocks.NO_REWARD_VOTE,
    feature_votes: tuple[int, ...] = (),
) -> Steps[Block]:
    """Make the block that challenges a wrong one on top of the chain, in steps between which the
    chain must not change.

    Appending it shows whether only the state hash was wrong. Raises ``CannotChallenge``.
    """
    theirs = wrong.header
    slot = _best_slot(chain, theirs.generator, accounts)
    if slot is None:
        raise CannotChallenge("no account of ours may mine there")
    if slot.earliest >= theirs.timestamp:
        raise CannotChallenge(
            f"{slot.earliest}, the earliest time of a block of ours, is not before that of the"
            f" wrong block, {theirs.timestamp}"
        )
    header = msgspec.structs.replace(
        header_of(chain, slot, slot.earliest),
        reward_vote=reward_vote,
        feature_votes=feature_votes,
        transactions_root=theirs.transactions_root,
        challenged=ChallengedHeader(
            base_target=theirs.base_target,
            generation_signature=theirs.generation_signature,
            feature_votes=theirs.feature_votes,
            timestamp=theirs.timestamp,
            generator=theirs.generator,
            reward_vote=theirs.reward_vote,
            state_hash=theirs.state_hash,
            header_signature=wrong.signature,
            finalization_voting=theirs.finalization_voting,
        ),
    )
    progress = BlockInProgress(chain.state, next_environment(chain, header, slot.hit_source))
    progress.begin()
    yield from progress.adding(wrong.transactions, verify_signatures=True, elide=True)
    header = msgspec.structs.replace(header, state_hash=progress.snapshot_hash)
    assert isinstance(slot.account, KeyPair), "of the accounts that were given"
    return blocks.sign(header, wrong.transactions, slot.account.private_key)


def _best_slot(chain: ChainWriter, generator: bytes, accounts: Iterable[KeyPair]) -> Slot | None:
    """Return the earliest slot that one of the accounts has against this generator."""
    against = from_public_key(generator, chain.network.chain_id)
    slots = []
    for account in accounts:
        if account.public_key == generator:
            continue
        try:
            slots.append(next_slot(chain, account, against))
        except CannotMine:
            continue
    return min(slots, key=lambda slot: slot.earliest, default=None)
