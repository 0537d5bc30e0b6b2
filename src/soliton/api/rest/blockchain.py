"""Routes ``/activation/status`` and ``/blockchain/rewards``: votes on features and the reward.

Sources: wavesplatform/Waves ``node/src/main/scala/com/wavesplatform/features/api/
ActivationApiRoute.scala``, ``api/http/RewardApiRoute.scala`` and ``settings/
BlockchainSettings.scala`` (``RewardsSettings``).
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from typing import Final

import msgspec

from soliton.api import errors
from soliton.api.http import Request
from soliton.api.lookup import node_of
from soliton.api.route_table import row, table
from soliton.chain.features import DESCRIPTIONS, IMPLEMENTED, Feature
from soliton.consensus import rewards
from soliton.ledger.rules_at import voting_window
from soliton.node.blockchain import Blockchain
from soliton.node.node import Node

_VOTING, _APPROVED, _ACTIVATED = "VOTING", "APPROVED", "ACTIVATED"
_PAGE: Final = 200
"""Headers read before yielding to the event loop."""


class FeatureStatus(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """The status of a feature; heights and counts only if they apply."""

    id: int
    description: str
    blockchain_status: str
    node_status: str
    activation_height: int | None = None
    supporting_blocks: int | None = None


class ActivationStatus(msgspec.Struct, frozen=True, rename="camel"):
    """The current vote on features."""

    height: int
    voting_interval: int
    voting_threshold: int
    next_check: int
    features: list[FeatureStatus]


class RewardVotes(msgspec.Struct, frozen=True):
    """The numbers of votes for a higher and for a lower reward."""

    increase: int
    decrease: int


class RewardStatus(msgspec.Struct, frozen=True, rename="camel"):
    """The block reward in wavelets, and the vote on it."""

    height: int
    total_waves_amount: int
    current_reward: int
    min_increment: int
    term: int
    next_check: int
    voting_interval_start: int
    voting_interval: int
    voting_threshold: int
    votes: RewardVotes
    dao_address: str | None
    xtn_buyback_address: str | None


async def activation_status(request: Request) -> ActivationStatus:
    """The current vote on features."""
    node = node_of(request)
    chain, settings = node.chain, node.network.functionality
    height = chain.height
    window = voting_window(settings, height)
    doubling = window // settings.feature_check_blocks_period
    start = (height - 1) // window * window + 1
    activations = chain.rules.activations()
    undecided = [item for item in Feature if activations.get(item, height + 1) > height]
    votes = await _votes(chain, range(start, height + 1)) if undecided else Counter[int]()
    preset = settings.pre_activated_features
    numbers = sorted({*Feature, *(each for each in activations if each not in preset), *votes})
    return ActivationStatus(
        height=height,
        voting_interval=window,
        voting_threshold=settings.blocks_for_feature_activation * doubling,
        next_check=start + window - 1,
        features=[_feature(node, number, height, votes) for number in numbers],
    )


async def _votes(chain: Blockchain, heights: range) -> Counter[int]:
    votes: Counter[int] = Counter()
    for height in heights:
        with contextlib.suppress(KeyError):
            # A rollback may remove blocks meanwhile.
            votes.update(set(chain.feature_votes(height)))
        if height % _PAGE == 0:
            await asyncio.sleep(0)
    return votes


def _feature(node: Node, number: int, height: int, votes: Counter[int]) -> FeatureStatus:
    start = node.chain.rules.activations().get(number)
    # Features that the network activates by itself have no vote and are never approved.
    preset = number in node.network.functionality.pre_activated_features
    if start is not None and start <= height:
        status = _ACTIVATED
    else:
        status = _VOTING if start is None or preset else _APPROVED
    known = number in IMPLEMENTED
    voted = status != _ACTIVATED and not preset and number in node.settings.features.supported
    return FeatureStatus(
        id=number,
        description=DESCRIPTIONS.get(number, "Unknown feature"),
        blockchain_status=status,
        node_status=("VOTED" if voted else "IMPLEMENTED") if known else "NOT_IMPLEMENTED",
        activation_height=start,
        supporting_blocks=votes[number] if status == _VOTING else None,
    )


async def current_reward(request: Request) -> RewardStatus:
    """The current block reward."""
    node = node_of(request)
    return await _reward(node, node.chain.height)


async def reward_at(request: Request) -> RewardStatus:
    """The block reward at a height."""
    return await _reward(node_of(request), request.integer("height"))


async def _reward(node: Node, height: int) -> RewardStatus:
    chain, settings = node.chain, node.network.rewards
    functionality = node.network.functionality
    if height > chain.height:
        raise errors.invalid_request(f"Invalid height: {height}")
    activations = chain.rules.activations()
    start = activations.get(Feature.BLOCK_REWARD)
    if start is None or start > height:
        raise errors.invalid_request("Block reward feature is not activated yet")
    meta = chain.meta(height) if height > 0 else None
    is_unpaid = height == 1 and chain.rules.at(1).has(Feature.CONSENSUS_IMPROVEMENTS)
    if meta is None or is_unpaid:
        raise errors.invalid_request(f"No information about rewards at height = {height}")
    term = rewards.term_at(height, activations, settings)
    # The last height of the current term.
    next_check = start + -(-(height - start + 1) // term) * term - 1
    interval_start = next_check - settings.voting_interval + 1
    increase = decrease = 0
    for voter in range(max(1, interval_start), height + 1):
        vote = chain.meta(voter).reward_vote
        increase += vote > meta.reward
        decrease += 0 <= vote < meta.reward
        if voter % _PAGE == 0:
            await asyncio.sleep(0)
    return RewardStatus(
        height=height,
        total_waves_amount=meta.total_waves,
        current_reward=meta.reward * rewards.reward_multiplier(height, activations, functionality),
        min_increment=settings.min_increment,
        term=term,
        next_check=next_check,
        voting_interval_start=interval_start,
        voting_interval=settings.voting_interval,
        voting_threshold=settings.voting_interval // 2 + 1,
        votes=RewardVotes(increase, decrease),
        dao_address=functionality.dao_address,
        xtn_buyback_address=functionality.xtn_buyback_address,
    )


_ACTIVATION_EXAMPLE: Final = {
    "height": 84,
    "votingInterval": 5,
    "votingThreshold": 5,
    "nextCheck": 85,
    "features": [
        {
            "id": 2,
            "description": "NG Protocol",
            "blockchainStatus": "ACTIVATED",
            "nodeStatus": "IMPLEMENTED",
            "activationHeight": 0,
        }
    ],
}
_REWARD_EXAMPLE: Final = {
    "height": 4,
    "totalWavesAmount": 10000017500000000,
    "currentReward": 5500000000,
    "minIncrement": 50000000,
    "term": 3,
    "nextCheck": 6,
    "votingIntervalStart": 4,
    "votingInterval": 3,
    "votingThreshold": 2,
    "votes": {"increase": 1, "decrease": 0},
    "daoAddress": None,
    "xtnBuybackAddress": None,
}

ROUTES: Final = table("rewards", """
height.of | natural | Height | 4
""",
    row("GET /activation/status tag=activation", activation_status, "The current vote on features",
        ActivationStatus,
        _ACTIVATION_EXAMPLE),
    row("GET /blockchain/rewards[/]", current_reward, "The block reward, and the vote on it",
        RewardStatus, _REWARD_EXAMPLE, "CUSTOM_VALIDATION_ERROR"),
    row("GET /blockchain/rewards/{height.of}", reward_at,
        "The block reward at a height, and the vote on it", RewardStatus, _REWARD_EXAMPLE,
        "CUSTOM_VALIDATION_ERROR"),
    reads="state",
)  # fmt: skip
