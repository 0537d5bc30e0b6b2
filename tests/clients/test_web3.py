"""A devnet told what to do by web3.py over `/eth`, as by ethers.js (`test_control`)."""

from __future__ import annotations

from typing import Any, Final

import pytest

from soliton import EthereumAccount, Transaction
from soliton.crypto import base58
from tests.clients.scripts import HERE, run_client
from tests.e2e.programs import devnet

ETHER: Final = 10**18
FEE_IN_WEI: Final = 100_000 * 10**10
PYTHON: Final = HERE / "python" / ".venv" / "bin" / "python"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not list(PYTHON.parent.parent.glob("lib/*/site-packages/web3")),
        reason="web3 is not in tests/clients/python/.venv (`make clients` installs it)",
    ),
]


@pytest.fixture(scope="module")
def told() -> Any:
    with devnet() as program:
        script = HERE / "python" / "control.py"
        return run_client(str(PYTHON), str(script), program.node_url)


def test_it_connects(told: Any) -> None:
    connected, chain_id, version = told["connected"]
    assert (connected, chain_id) == (True, ord("R"))
    assert isinstance(version, str) and version


def test_blocks_and_balances_are_what_was_asked_for(told: Any) -> None:
    assert told["automine"] is False
    start = told["start"]["height"]
    (is_set, first), (_, second) = told["set"], told["hardhat"]
    assert is_set is True
    # Each change by hand is a block.
    assert [first["height"], second["height"]] == [start + 1, start + 2]
    assert [first["balance"], second["balance"]] == [3 * ETHER, ETHER]
    mined, one = told["mined"][1], told["mine"][1]
    assert (mined["height"], mined["time"] - second["time"]) == (start + 102, 100 * 60)
    assert (told["mine"][0], one["height"]) == ("0x0", start + 103)


def test_time_goes_as_it_is_told(told: Any) -> None:
    _, _, later = told["later"]
    assert later["time"] - told["mine"][1]["time"] >= 3_600
    moment, state = told["next"]
    assert state["time"] == moment


def test_everything_is_reverted_and_reset(told: Any) -> None:
    done, state = told["reverted"]
    assert done is True and state == told["start"]
    assert told["again"] == [True, False]
    assert told["impersonated"] == [True, True]
    assert told["reset"][0] is True
    assert told["reset"][1]["balance"] == 0 and told["reset"][1]["height"] == 2


def test_what_the_library_signs_is_mined(told: Any) -> None:
    status, received, left = told["paid"]
    assert (status, received) == (1, ETHER // 4)
    assert left == ETHER - ETHER // 4 - FEE_IN_WEI
    assert told["receipt"]["gasUsed"] == FEE_IN_WEI // 10**10
    assert told["metadata"]["chainId"] == ord("R")


def test_our_library_signs_the_same_bytes(told: Any) -> None:
    """What the library for Ethereum makes of a transfer and of calls is what ours makes."""
    account = EthereumAccount("0x" + "03" * 32, "R")
    signed = Transaction.from_json({"type": 18, "bytes": told["raw"]}, "R")
    assert signed.sender == account.address
    made = account.transfer(
        "0x" + "cd" * 20, ETHER // 4 // 10**10, fee=signed.fee, timestamp=signed.timestamp
    )
    assert made.to_json()["bytes"] == told["raw"] and made == signed
    calls = (
        account.invoke(
            account,
            "keep",
            "key",
            [3, -4],
            True,
            b"\1" * 33,
            -5,
            payments=[(7, None), (8, base58.encode(b"\2" * 32))],
        ),
        account.invoke(account, "lists", ["a", "", "x" * 40], [], types=("string[]", "int64[]")),
        account.invoke(account),
    )
    assert ["0x" + each.data.data.hex() for each in calls] == told["data"]


def test_refusals_say_why(told: Any) -> None:
    words = {
        "amount": "no number",
        "past": "before the last block",
        "unknown": "not available",
        "blocks": "are allowed",
    }
    assert {name: words[name] in told["errors"][name] for name in words} == dict.fromkeys(
        words, True
    ), told["errors"]
