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

BOOST: Final = 10


class Distribution(msgspec.Struct, frozen=True):
    """How a capped reward is shared, in wavelets. The miner gets ``guaranteed``. Of what is above
    it the DAO and the XTN buy-back get as many of ``parts`` equal parts as their numbers say, the
    miner the rest; from a reward of ``full`` on, they get their shares of that one.
    """

    full: int
    guaranteed: int
    dao_parts: int
    xtn_parts: int

    @property
    def parts(self) -> int:
        """The number of parts; a division drops what is less than a wavelet for each."""
        return self.dao_parts + self.xtn_parts


CAPPED: Final = Distribution(600_000_000, 200_000_000, 1, 1)
"""Two coins each: feature 20."""
ADJUSTED: Final = Distribution(2_000_000_000, 800_000_000, 5, 1)
"""Ten coins for the DAO, two for the XTN buy-back, eight for the miner: feature 26."""


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
    """Return 10 while the reward is boosted, 1 otherwise: feature 26 ends that."""
    adjusted = activations.get(Feature.ADJUSTED_REWARD_DISTRIBUTION)
    if adjusted is not None and adjusted <= height:
        return 1
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
    if active(Feature.CAPPED_REWARDS):
        rule = ADJUSTED if active(Feature.ADJUSTED_REWARD_DISTRIBUTION) else CAPPED
        part = max(0, min(reward, rule.full) - rule.guaranteed) // rule.parts
        dao, xtn = part * rule.dao_parts, part * rule.xtn_parts
    else:
        dao = xtn = reward // 3
    ceased = (
        active(Feature.CEASE_XTN_BUYBACK)
        and height
        >= activations[Feature.BLOCK_REWARD_DISTRIBUTION] + settings.xtn_buyback_reward_period
    )
    if settings.dao_address is None:
        dao = 0
    if settings.xtn_buyback_address is None or ceased:
        xtn = 0
    return Shares((reward - dao - xtn) * factor, dao * factor, xtn * factor)
