"""A devnet told what to do by ethers.js, under the names that anvil and Hardhat gave the calls."""

from __future__ import annotations

from typing import Any, Final

import pytest

from tests.clients.scripts import HERE, NEEDS_NODE, run_script
from tests.e2e.programs import devnet

ETHER: Final = 10**18

pytestmark = [
    *NEEDS_NODE,
    pytest.mark.skipif(
        not (HERE / "node_modules" / "ethers").is_dir(),
        reason="ethers is not in tests/clients/node_modules (`make clients` installs it)",
    ),
]


@pytest.fixture(scope="module")
def told() -> Any:
    with devnet() as program:
        return run_script("control.js", program.node_url)


def test_blocks_come_when_they_are_asked_for(told: Any) -> None:
    assert told["automine"] is False
    start = told["start"]["height"]
    assert told["mined"][0] is None
    assert told["mined"][1]["height"] == told["added"]["height"] + 1_000
    assert told["mine"][0] == "0x0"
    assert told["mine"][1]["height"] == told["mined"][1]["height"] + 1
    # Each change by hand is a block.
    assert [each["height"] - start for each in (told["set"][1], told["hardhat"][1])] == [1, 2]


def test_balances_are_set_in_wei(told: Any) -> None:
    assert told["set"][0] is True
    assert told["set"][1]["balance"] == str(3 * ETHER)
    assert told["hardhat"][1]["balance"] == str(ETHER)
    assert told["added"]["balance"] == str(2 * ETHER)


def test_time_goes_as_it_is_told(told: Any) -> None:
    before = told["added"]["time"]
    assert told["mined"][1]["time"] - before == 60_000
    assert told["later"]["time"] - told["mine"][1]["time"] >= 3_600
    assert told["offset"] >= 3_600
    next_time, state = told["next"]
    assert state["time"] == next_time


def test_history_is_replaced_and_taken_off(told: Any) -> None:
    height = told["next"][1]["height"]
    assert told["reorganized"]["height"] == height
    assert told["rolled back"]["height"] == height - 2


def test_everything_is_reverted_loaded_and_reset(told: Any) -> None:
    first, again, unknown, state = told["reverted"]
    assert (first, again, unknown) == (True, True, False)
    assert state == told["start"]
    assert told["loaded"] == [True, told["rolled back"]]
    assert told["reset"][0] is True
    assert told["reset"][1]["height"] == 2
    assert told["reset"][1]["balance"] == "0"


def test_what_else_is_asked(told: Any) -> None:
    assert told["impersonated"] == [True, True]
    assert told["dropped"] == [None, False]
    assert told["pool"] == {"pending": "0x0", "queued": "0x0"}
    assert told["metadata"]["chainId"] == ord("R")
    assert len(told["metadata"]["instanceId"]) == 66
    assert len(told["metadata"]["snapshots"]) == 1


def test_refusals_say_why(told: Any) -> None:
    words = {
        "amount": "no number",
        "address": "20 bytes",
        "blocks": "are allowed",
        "past": "before the last block",
        "fork": "no fork",
        "unknown": "not available",
        "depth": "are possible",
        "state": "no state",
    }
    assert {name: words[name] in told["errors"][name] for name in words} == dict.fromkeys(
        words, True
    )
