"""What is kept about a block besides its bytes, made when it has been applied.

What lives here: making the record. What does not: its form on disk (``soliton.storage.layout``),
when blocks are applied (``chain``).
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import msgspec

from soliton.chain.blocks import Block
from soliton.consensus import pos, rewards
from soliton.ledger.apply import AppliedBlock
from soliton.ledger.hashes import EMPTY_HASH, StateHash
from soliton.ledger.rules_at import votes_needed, voting_window
from soliton.storage.layout import BlockMeta

if TYPE_CHECKING:
    from soliton.node.chain import Chain


def meta_of(chain: Chain, block: Block, applied: AppliedBlock, hit_source: bytes) -> BlockMeta:
    """That of a block on top of the chain, before it is there."""
    height, header = applied.height, block.header
    below = chain.meta(height - 1) if height > 1 else None
    reward = chain.next_reward() if below is not None else 0
    minted = reward * rewards.reward_multiplier(
        height, chain.rules.activations(), chain.network.functionality
    )
    before = 0 if below is None else below.total_waves
    start = chain.network.genesis.initial_balance if below is None else 0
    score = pos.block_score(header.base_target)
    if below is not None:
        score += int.from_bytes(below.score, "big")
    return BlockMeta(
        id=block.id,
        timestamp=header.timestamp,
        hit_source=hit_source,
        score=score.to_bytes((score.bit_length() + 7) // 8, "big"),
        carry=applied.carry,
        reward=reward,
        reward_vote=header.reward_vote,
        feature_votes=header.feature_votes,
        total_fee=applied.total_fee,
        total_waves=before + minted + start,
        generator=header.generator,
        size=len(block.data),
        transaction_count=len(block.transactions),
        snapshot_hash=applied.snapshot_hash,
        state_hash=applied.state_hash.total,
        sections=_sections(applied.state_hash),
    )


def grown_meta(meta: BlockMeta, total: Block, applied: AppliedBlock) -> BlockMeta:
    """That of a block that has grown, from that of its shorter form."""
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
    )


def approved_features(chain: Chain, height: int, own_votes: tuple[int, ...]) -> list[int]:
    """The features that the votes up to the block at ``height`` approve; its own are given."""
    settings = chain.network.functionality
    window = voting_window(settings, height)
    if height % window != 0:
        return []
    votes = Counter(own_votes)
    for below in range(max(1, height - window + 1), height):
        votes.update(chain.meta(below).feature_votes)
    needed = votes_needed(settings, height)
    known = chain.rules.activations()
    return sorted(
        feature for feature, count in votes.items() if count >= needed and feature not in known
    )


def _sections(state_hash: StateHash) -> dict[int, bytes]:
    """The section hashes that are not the empty one."""
    return {index: value for index, value in enumerate(state_hash.sections) if value != EMPTY_HASH}
