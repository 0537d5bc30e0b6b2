"""Blocks of a devnet with one generator become final."""

from __future__ import annotations

from typing import Any

import pytest

from soliton.controls.control import COMMITTING_BLOCKS
from soliton.devnet.features import DEFAULT_PERIOD
from tests.e2e.programs import call, devnet

pytestmark = pytest.mark.slow


def finality(url: str) -> dict[str, Any]:
    found: dict[str, Any] = call(f"{url}/blockchain/finality").json()
    return found


def mine(url: str, count: int) -> None:
    answer = call(f"{url}/devnet/mine?blocks={count}", {})
    assert answer.status == 200, answer.body


def test_one_generator_makes_its_blocks_final() -> None:
    with devnet() as program:
        url = program.node_url
        mine(url, DEFAULT_PERIOD - COMMITTING_BLOCKS - finality(url)["height"])
        # Commitments disturb no short chain.
        assert finality(url)["nextGenerators"] == []
        snapshot = call(f"{url}/devnet/snapshots", {}).json()["id"]
        for _ in range(2):
            mine(url, 10)
            assert len(finality(url)["nextGenerators"]) == 1
            mine(url, 1_000)
            now = finality(url)
            assert now["finalizedHeight"] == now["height"] - 2
            assert len(now["currentGenerators"]) == 1
            refused = call(f"{url}/devnet/reorg", {"depth": 5})
            assert refused.status == 400
            assert "--generation-period" in refused.json()["message"]
            # Where votes have made blocks final, a developer may revert all the same.
            assert call(f"{url}/devnet/snapshots/{snapshot}/revert", {}).status == 200
            assert finality(url)["height"] == DEFAULT_PERIOD - COMMITTING_BLOCKS


def test_periods_are_as_long_as_they_are_to_be() -> None:
    with devnet("--generation-period", 4) as program:
        url = program.node_url
        mine(url, 30)
        now = finality(url)
        start = now["currentGenerationPeriod"]["start"]
        assert (start % 4, now["currentGenerationPeriod"]["end"]) == (1, start + 3)
        assert now["finalizedHeight"] == now["height"] - 2
