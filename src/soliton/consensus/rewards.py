"""Block rewards: how much a block mints, how votes change it, and who receives it.

Sources: wavesplatform/Waves
``node/src/main/scala/com/wavesplatform/state/BlockRewardCalculator.scala`` and
``BlockchainUpdaterImpl.scala`` (``computeNextReward``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from soliton.chain.features import Feature
from soliton.chain.networks.model import Functionality, Rewards

FULL_REWARD: Final = 600_000_000
MAX_ADDRESS_SHARE: Final = 200_000_000
GUARANTEED_MINER_REWARD: Final = 200_000_000
BOOST: Final = 10


class Shares(msgspec.Struct, frozen=True):
    """Wavelets for the miner, the DAO and the XTN buy-back."""

    miner: int
    dao: int
    xtn_buyback: int


def term_at(height: int, activations: Mapping[int, int], rewards: Rewards) -> int:
    """Return the length, in blocks, of the voting term at ``height``."""
    capped = activations.get(Feature.CAPPED_REWARDS)
    if capped is not None and height >= capped:
        return rewards.term_after_capped_reward
    return rewards.term


def voting_heights(
    parent_height: int, activations: Mapping[int, int], rewards: Rewards
) -> range | None:
    """Return the heights whose votes decide the reward of the next block, or ``None`` when no term
    ends at ``parent_height``.
    """
    start = activations.get(Feature.BLOCK_REWARD)
    if start is None:
        return None
    elapsed = parent_height + 1 - start
    if elapsed <= 0 or elapsed % term_at(parent_height, activations, rewards) != 0:
        return None
    return range(parent_height - rewards.voting_interval + 1, parent_height + 1)


def next_reward(current: int, votes: Iterable[int], rewards: Rewards) -> int:
    """Return the reward after a vote. Negative votes are ignored."""
    threshold = rewards.voting_interval // 2 + 1
    below = above = 0
    for vote in votes:
        if 0 <= vote < current:
            below += 1
        elif vote > current:
            above += 1
    if below >= threshold:
        return max(0, current - rewards.min_increment)
    if above >= threshold:
        return current + rewards.min_increment
    return current


def reward_multiplier(height: int, activations: Mapping[int, int], settings: Functionality) -> int:
    """Return 10 while the reward is boosted, 1 otherwise."""
    start = activations.get(Feature.BOOST_BLOCK_REWARD)
    if start is not None and start <= height < start + settings.block_reward_boost_period:
        return BOOST
    return 1


def shares(
    height: int, reward: int, activations: Mapping[int, int], settings: Functionality
) -> Shares:
    """Split the reward of the block at ``height``, including the boost."""
    factor = reward_multiplier(height, activations, settings)

    def active(feature: Feature) -> bool:
        return feature in activations and activations[feature] <= height

    if not active(Feature.BLOCK_REWARD_DISTRIBUTION):
        return Shares(reward * factor, 0, 0)
    if not active(Feature.CAPPED_REWARDS):
        part = reward // 3
    elif reward < GUARANTEED_MINER_REWARD:
        part = 0
    elif reward < FULL_REWARD:
        part = (reward - GUARANTEED_MINER_REWARD) // 2
    else:
        part = MAX_ADDRESS_SHARE
    ceased = (
        active(Feature.CEASE_XTN_BUYBACK)
        and height
        >= activations[Feature.BLOCK_REWARD_DISTRIBUTION] + settings.xtn_buyback_reward_period
    )
    dao = part if settings.dao_address is not None else 0
    xtn = part if settings.xtn_buyback_address is not None and not ceased else 0
    return Shares((reward - dao - xtn) * factor, dao * factor, xtn * factor)
