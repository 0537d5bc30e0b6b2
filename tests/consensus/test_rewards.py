"""Block rewards: recorded shares, votes, and the heights at which they count."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from soliton.chain import networks
from soliton.chain.networks import Functionality, Rewards
from soliton.consensus import rewards
from tests.vectors import load_vectors, report

SETTINGS = Functionality(
    feature_check_blocks_period=1,
    blocks_for_feature_activation=1,
    double_features_periods_after_height=0,
)


def test_vectors() -> None:
    vectors = load_vectors("block_rewards")
    for vector in vectors:
        dao, xtn = vector["reward_addresses"]
        assert vector["reward_addresses_after_21"] == [dao]
        activations = {int(k): v for k, v in vector["feature_activation_heights"].items()}
        settings = msgspec.structs.replace(
            SETTINGS,
            dao_address=dao,
            xtn_buyback_address=xtn,
            xtn_buyback_reward_period=vector["min_xtn_buyback_period"],
            block_reward_boost_period=vector["boost_period"],
        )
        shares = rewards.shares(vector["height"], vector["reward"], activations, settings)
        found = {vector["generator"]: shares.miner, dao: shares.dao, xtn: shares.xtn_buyback}
        told = {row["address"]: row["amount"] for row in vector["rewards"]}
        assert {address: amount for address, amount in found.items() if amount} == {
            address: amount for address, amount in told.items() if amount
        }
    report.ran("block_rewards", len(vectors))


@given(st.integers(0, 10**12), st.integers(1, 10_000), st.booleans(), st.booleans())
def test_nothing_is_lost_in_the_split(reward: int, height: int, dao: bool, xtn: bool) -> None:
    settings = msgspec.structs.replace(
        SETTINGS,
        dao_address="dao" if dao else None,
        xtn_buyback_address="xtn" if xtn else None,
        xtn_buyback_reward_period=500,
        block_reward_boost_period=1_000,
    )
    activations = {14: 1, 19: 1_000, 20: 2_000, 21: 3_000, 23: 4_000}
    shares = rewards.shares(height, reward, activations, settings)
    factor = rewards.reward_multiplier(height, activations, settings)
    assert shares.miner + shares.dao + shares.xtn_buyback == reward * factor
    assert min(shares.miner, shares.dao, shares.xtn_buyback) >= 0
    assert factor == (10 if 4_000 <= height < 5_000 else 1)


COIN = 10**8
ADJUSTED = """
reward | miner | dao | xtn
2000000000 | 800000000 | 1000000000 | 200000000
2100000000 | 900000000 | 1000000000 | 200000000
1999999999 | 800000005 | 999999995 | 199999999
1400000000 | 800000000 | 500000000 | 100000000
800000006 | 800000000 | 5 | 1
800000005 | 800000005 | 0 | 0
800000000 | 800000000 | 0 | 0
600000000 | 600000000 | 0 | 0
0 | 0 | 0 | 0
"""


VOTES = Rewards(initial=600, min_increment=50, voting_interval=3)
TABLE = """
current | votes      | next
600     |            | 600
600     | 700        | 600
600     | 700 700    | 650
600     | 700 500    | 600
600     | 500 500    | 550
600     | 500 500 700 | 550
600     | -1 -1 -1   | 600
600     | -1 700 700 | 650
600     | 600 600 600 | 600
600     | 0 0        | 550
30      | 0 0        | 0
0       | 0 0 0      | 0
0       | 5 5        | 50
"""


def rows_of(table: str) -> list[list[str]]:
    lines = table.strip().splitlines()[1:]
    return [[cell.strip() for cell in line.split("|")] for line in lines]


@pytest.mark.parametrize("row", rows_of(ADJUSTED))
@pytest.mark.parametrize("ceased", [False, True])
def test_the_adjusted_distribution(row: list[str], ceased: bool) -> None:
    """wavesplatform/Waves ``BlockRewardCalculator.scala`` and wavesplatform/gowaves
    ``pkg/state/rewards_calculator.go``: ten coins for the DAO, two for the buy-back, eight for the
    miner at twenty; below that five parts and one of what is above eight, divided before it is
    multiplied.
    """
    reward, miner, dao, xtn = map(int, row)
    settings = msgspec.structs.replace(
        SETTINGS,
        dao_address="dao",
        xtn_buyback_address="xtn",
        xtn_buyback_reward_period=10,
        block_reward_boost_period=1_000,
    )
    # The boost of feature 23 ends with it.
    activations = {14: 1, 19: 100, 20: 200, 23: 400, 26: 500} | ({21: 300} if ceased else {})
    expected = rewards.Shares(miner + xtn, dao, 0) if ceased else rewards.Shares(miner, dao, xtn)
    assert rewards.shares(500, reward, activations, settings) == expected
    assert rewards.reward_multiplier(500, activations, settings) == 1
    assert rewards.reward_multiplier(499, activations, settings) == 10
    before = rewards.shares(499, reward, activations, settings)
    assert before.dao == 10 * max(0, min(reward, 6 * COIN) - 2 * COIN) // 2


@pytest.mark.parametrize(("current", "votes", "following"), rows_of(TABLE))
def test_votes(current: str, votes: str, following: str) -> None:
    found = rewards.next_reward(int(current), map(int, votes.split()), VOTES)
    assert found == int(following)


def test_voting_heights_of_mainnet() -> None:
    settings = networks.load("waves-mainnet").rewards
    start = 1_740_000
    activations = {14: start}
    assert rewards.voting_heights(start, {}, settings) is None
    assert rewards.voting_heights(start - 1, activations, settings) is None
    assert rewards.voting_heights(start, activations, settings) is None
    heights = rewards.voting_heights(start + 99_999, activations, settings)
    assert heights == range(start + 90_000, start + 100_000)
    assert rewards.voting_heights(start + 100_000, activations, settings) is None
    # From feature 20 on a term is half as long; the parent's height decides.
    activations[20] = start + 120_000
    assert rewards.voting_heights(start + 149_999, activations, settings) is not None
    assert rewards.voting_heights(start + 149_999, {14: start}, settings) is None


def test_terms() -> None:
    settings = networks.load("waves-mainnet").rewards
    assert rewards.term_at(10, {}, settings) == 100_000
    assert rewards.term_at(10, {20: 11}, settings) == 100_000
    assert rewards.term_at(11, {20: 11}, settings) == 50_000
