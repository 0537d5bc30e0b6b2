"""Routes under /debug, /activation and /blockchain."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from soliton.api.rest import debug
from soliton.chain.features import IMPLEMENTED
from soliton.ledger.environment import BlockMeta
from soliton.node import miner
from soliton.node.blockchain import Blockchain
from soliton.node.state_hash_json import state_hash_json
from tests.api.chain import AMOUNT, OTHER, OTHER_ADDRESS, RICH_ADDRESS, WITH_KEY, PrivateChain
from tests.api.client import call


async def test_state_hashes(chain: PrivateChain) -> None:
    assert (await chain.get("/debug/stateHash/last")).status == 404
    chain.mine()
    chain.mine()
    found: Any = (await chain.get("/debug/stateHash/2")).json()
    assert found == state_hash_json(chain.node.chain, 2)
    assert found["height"] == 2 and found["version"] == "1.6.6"
    assert (await chain.get("/debug/stateHash/last")).json() == found
    assert (await chain.get("/debug/stateHash/4")).status == 404
    assert (await chain.get("/debug/stateHash/0")).status == 404


async def test_state_hashes_that_are_not_kept(chain: PrivateChain) -> None:
    settings = chain.node.settings
    chain.node.settings = msgspec.structs.replace(
        settings, db=msgspec.structs.replace(settings.db, store_state_hashes=False)
    )
    assert (await chain.get("/debug/stateHash/1")).status == 404


async def test_nothing_else_is_said_without_the_key(chain: PrivateChain) -> None:
    for path in ("/debug/stateHash/abc", "/debug/none"):
        assert (await chain.get(path)).status == 403
        assert (await call(chain.app, f"GET {path}", headers=WITH_KEY)).status == 404


@pytest.mark.parametrize("page", [1, 1_000])
async def test_the_history_of_a_balance(
    chain: PrivateChain, monkeypatch: pytest.MonkeyPatch, page: int
) -> None:
    monkeypatch.setattr(debug, "_PAGE", page)
    target = f"/debug/balances/history/{OTHER_ADDRESS}"
    assert (await chain.get(target)).json() == []
    chain.send(chain.transfer())
    chain.mine()
    chain.mine()
    chain.send(chain.transfer())
    chain.mine()
    chain.send(chain.transfer(keys=OTHER, to=RICH_ADDRESS, amount=1))
    chain.mine()
    assert (await chain.get(target)).json() == [
        {"height": 5, "balance": 2 * AMOUNT - 1 - 100_000},
        {"height": 4, "balance": 2 * AMOUNT},
        {"height": 2, "balance": AMOUNT},
    ]


async def test_features(oldest: PrivateChain) -> None:
    found: Any = (await oldest.get("/activation/status")).json()
    features = {item["id"]: item for item in found["features"]}
    assert found["height"] == 1 and found["nextCheck"] == found["votingInterval"]
    assert features[2]["blockchainStatus"] == "ACTIVATED"
    assert features[15] == {
        "id": 15,
        "description": "Ride V4, VRF, Protobuf, Failed transactions",
        "blockchainStatus": "VOTING",
        "nodeStatus": "IMPLEMENTED",
        "supportingBlocks": 0,
    }


async def test_how_far_features_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Decided by votes, by the network for later, not at all; known to this node or not."""
    monkeypatch.setattr(miner, "IMPLEMENTED", IMPLEMENTED | {900})
    decided = dict.fromkeys(range(1, 16), 0)
    functionality = {
        "feature_check_blocks_period": 4,
        "blocks_for_feature_activation": 3,
        "pre_activated_features": decided | {16: 50, 18: 60},
    }
    chain = PrivateChain(tmp_path, functionality=functionality, supported=(15, 16, 17, 900))

    async def seen() -> dict[int, list[object]]:
        found: Any = (await chain.get("/activation/status")).json()
        assert (found["votingInterval"], found["votingThreshold"]) == (4, 3)
        names = ("blockchainStatus", "nodeStatus", "activationHeight", "supportingBlocks")
        return {item["id"]: [item.get(name) for name in names] for item in found["features"]}

    chain.mine()
    first = await seen()
    assert first[15] == ["ACTIVATED", "IMPLEMENTED", 0, None]
    assert first[16] == ["VOTING", "IMPLEMENTED", 50, 0]
    assert first[17] == ["VOTING", "VOTED", None, 1]
    assert first[18] == ["VOTING", "IMPLEMENTED", 60, 0]
    assert first[900] == ["VOTING", "NOT_IMPLEMENTED", None, 1]
    chain.mine()
    chain.mine()
    approved = await seen()
    assert chain.node.chain.height == 4
    assert approved[17] == ["APPROVED", "VOTED", 8, None]
    assert approved[900] == ["APPROVED", "NOT_IMPLEMENTED", 8, None]
    assert approved[16] == ["VOTING", "IMPLEMENTED", 50, 0]
    chain.node.close()


REWARD_ERRORS = [
    ("/blockchain/rewards/1", "No information about rewards at height = 1"),
    ("/blockchain/rewards/9", "Invalid height: 9"),
    ("/blockchain/rewards/0", "Block reward feature is not activated yet"),
]


@pytest.mark.parametrize(("target", "message"), REWARD_ERRORS)
async def test_rewards_that_are_unknown(chain: PrivateChain, target: str, message: str) -> None:
    answer = await chain.get(target)
    assert (answer.status, answer.json()) == (400, {"error": 199, "message": message})


async def test_a_reward_that_votes_took_away(
    chain: PrivateChain, monkeypatch: pytest.MonkeyPatch
) -> None:
    chain.mine()
    usual = Blockchain.meta

    def unpaid(self: Blockchain, height: int) -> BlockMeta:
        return msgspec.structs.replace(usual(self, height), reward=0)

    monkeypatch.setattr(Blockchain, "meta", unpaid)
    found: Any = (await chain.get("/blockchain/rewards/2")).json()
    assert (found["height"], found["currentReward"]) == (2, 0)


async def test_a_network_without_rewards(oldest: PrivateChain) -> None:
    answer = await oldest.get("/blockchain/rewards")
    message = "Block reward feature is not activated yet"
    assert answer.json() == {"error": 199, "message": message}
