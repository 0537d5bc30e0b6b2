"""Feature 26 on a private chain: the reward that its activation sets, and who gets it."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

from tests.api.chain import OTHER_ADDRESS, RICH_ADDRESS, PrivateChain
from tests.node.chains import DEVNET

COIN = 10**8
ACTIVATION = 5


async def test_the_reward_begins_anew_once(tmp_path: Path) -> None:
    features = {**DEVNET.functionality.pre_activated_features, 23: 2, 26: ACTIVATION}
    private = PrivateChain(
        tmp_path,
        functionality={
            "pre_activated_features": features,
            "block_reward_boost_period": 100,
            "dao_address": OTHER_ADDRESS,
        },
    )

    async def answered(target: str) -> Any:
        return (await private.get(target)).json()

    try:
        while private.node.chain.height < ACTIVATION + 2:
            private.mine()
        totals = []
        for height in range(2, ACTIVATION + 3):
            told = await answered(f"/blockchain/rewards/{height}")
            header = await answered(f"/blocks/headers/at/{height}")
            # The boost of feature 23 ends with it.
            expected = 60 * COIN if height < ACTIVATION else 20 * COIN
            assert (told["currentReward"], header["reward"]) == (expected, expected)
            dao = 20 * COIN if height < ACTIVATION else 10 * COIN
            assert header["rewardShares"] == {RICH_ADDRESS: expected - dao, OTHER_ADDRESS: dao}
            totals.append(told["totalWavesAmount"])
        minted = [after - before for before, after in pairwise(totals)]
        assert minted == [60 * COIN] * 2 + [20 * COIN] * 3
        [found] = [
            each for each in (await answered("/activation/status"))["features"] if each["id"] == 26
        ]
        assert found["description"] == "Adjusted Block Reward Distribution"
        assert (found["blockchainStatus"], found["nodeStatus"]) == ("ACTIVATED", "IMPLEMENTED")
        assert private.node.chain.rules.at(private.node.chain.height + 1).unknown_features == ()
    finally:
        private.node.close()
