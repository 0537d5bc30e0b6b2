"""Making the metadata of a block that has been applied.

What does not live here: its form on disk (``soliton.storage.layout``).
"""

from __future__ import annotations

import msgspec

from soliton.chain.blocks import Block
from soliton.chain.finalization import GENERATION_DEPOSIT
from soliton.consensus import pos
from soliton.ledger.apply import AppliedBlock
from soliton.ledger.environment import BlockEnvironment, BlockMeta
from soliton.ledger.hashes import EMPTY_HASH, NO_SECTIONS, StateHash


def meta_of(block: Block, applied: AppliedBlock, environment: BlockEnvironment) -> BlockMeta:
    """Return the metadata of a block."""
    header, below, reward = block.header, environment.parent, environment.reward
    score = pos.block_score(header.base_target)
    score += 0 if below is None else int.from_bytes(below.score, "big")
    # Python makes a dictionary for a call with more than 15 keywords, which takes longer.
    return BlockMeta(
        block.id,
        header.timestamp,
        hit_source=environment.hit_source,
        score=score.to_bytes((score.bit_length() + 7) // 8, "big"),
        carry=applied.carry,
        reward=reward.voted,
        reward_vote=header.reward_vote,
        feature_votes=header.feature_votes,
        total_fee=applied.total_fee,
        total_waves=(
            reward.minted
            + applied.minted
            - GENERATION_DEPOSIT * len(environment.penalties)
            + (0 if below is None else below.total_waves)
        ),
        generator=header.generator,
        size=len(block.data),
        transaction_count=len(block.transactions),
        snapshot_hash=applied.snapshot_hash,
        state_hash=applied.state_hash.total,
        sections=_sections(applied.state_hash),
        finalized_height=applied.finalized_height,
    )


def grown_meta(meta: BlockMeta, total: Block, applied: AppliedBlock) -> BlockMeta:
    """Return the metadata of a block that has grown, from that of its shorter version."""
    return msgspec.structs.replace(
        meta,
        id=total.id,
        carry=applied.carry,
        total_fee=applied.total_fee,
        size=len(total.data),
        transaction_count=len(total.transactions),
        snapshot_hash=applied.snapshot_hash,
        state_hash=applied.state_hash.total,
        sections=_sections(applied.state_hash),
        finalized_height=applied.finalized_height,
    )


def _sections(state_hash: StateHash) -> dict[int, bytes]:
    """Return the section hashes other than the empty one."""
    if state_hash.sections is NO_SECTIONS:
        return {}
    return {index: value for index, value in enumerate(state_hash.sections) if value != EMPTY_HASH}
