"""Routes under /node and /wallet."""

from __future__ import annotations

import pytest

from soliton.api.rest.node import iso_time
from soliton.crypto import base58
from tests.api.chain import SEED, WITH_KEY, PrivateChain
from tests.api.client import call


async def test_status(chain: PrivateChain) -> None:
    chain.mine()
    answer = await chain.get("/node/status")
    assert answer.json() == {
        "blockchainHeight": 2,
        "stateHeight": 2,
        "updatedTimestamp": chain.now,
        "updatedDate": "2026-11-20T11:33:17.441Z",
    }


@pytest.mark.parametrize(
    ("network", "version"),
    [("devnet", "Waves v1.6.6"), ("zbs-testnet", "Zbs v0.16.3"), ("tn-testnet", "TN v1.2.18")],
)
async def test_version_is_that_of_the_interface(
    network: str, version: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    chain = PrivateChain(tmp_path_factory.mktemp("node"), network)
    assert (await chain.get("/node/version")).json() == {"version": version}
    chain.node.close()


async def test_stop_needs_the_key(chain: PrivateChain) -> None:
    stopped = []
    chain.node.request_stop = lambda: stopped.append(True)  # type: ignore[method-assign]
    assert (await call(chain.app, "POST /node/stop")).status == 403
    assert stopped == []
    answer = await call(chain.app, "POST /node/stop", headers=WITH_KEY)
    assert (answer.status, answer.json(), stopped) == (200, {"stopped": True}, [True])


async def test_the_seed_of_the_wallet_needs_the_key(chain: PrivateChain) -> None:
    assert (await chain.get("/wallet/seed")).status == 403
    answer = await call(chain.app, "GET /wallet/seed", headers=WITH_KEY)
    assert answer.json() == {"seed": base58.encode(SEED.encode())}


@pytest.mark.parametrize(
    ("timestamp", "text"),
    [
        (0, "1970-01-01T00:00:00Z"),
        (1_566_817_216_027, "2019-08-26T11:00:16.027Z"),
        (1_566_817_216_000, "2019-08-26T11:00:16Z"),
        (1_566_817_216_100, "2019-08-26T11:00:16.100Z"),
    ],
)
def test_times_are_written_like_java_instants(timestamp: int, text: str) -> None:
    assert iso_time(timestamp) == text
