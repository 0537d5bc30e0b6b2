"""zbs-transactions, the library of the networks with the oldest generation of the interface, on a
chain of theirs: its transactions, its fees, its calls of a node.
"""

from __future__ import annotations

import json
from typing import Any, Final

import pytest

from soliton.chain.json_kinds import encode_base64
from soliton.ride.compiler import compile_source
from tests.clients.generations import chain_of
from tests.clients.scripts import HERE, NEEDS_NODE, run_script

FUNDS: Final = 10**14
DAPP: Final = """{-# STDLIB_VERSION 3 #-}
{-# CONTENT_TYPE DAPP #-}
{-# SCRIPT_TYPE ACCOUNT #-}
@Callable(i)
func keep(n: Int) = WriteSet([DataEntry("kept", n + n)])
"""
ASSET: Final = """{-# STDLIB_VERSION 3 #-}
{-# CONTENT_TYPE EXPRESSION #-}
{-# SCRIPT_TYPE ASSET #-}
true
"""
OF_THE_MATCHER: Final = {"cancelOrder", "submitOrder", "cancelSubmittedOrder"}
FEES: Final = {
    "issue": (3, 50_000_000_000),
    "smart issue": (3, 50_000_000_000),
    "transfer": (4, 5_000_000),
    "transfer of an asset": (4, 5_000_000),
    "reissue": (5, 20_000_000_000),
    "burn": (6, 500_000_000),
    "lease": (8, 500_000_000),
    "cancel lease": (9, 100_000_000),
    "alias": (10, 1_000_000_000),
    "mass transfer": (11, 10_000_000),
    "data": (12, 3_000_000),
    "sponsorship": (14, 5_000_000_000),
    "set asset script": (15, 1_000_000_000),
    "set script": (13, 1_000_000_000),
    "exchange": (7, 20_000_000),
    "signed": (4, 5_000_000),
}
"""Type and fee of each transaction; all fees but that of the exchange are the library's own."""
MEMBERS_OF_NODES: Final = {"chainId", "order1", "order2", "lease", "id", "data"}
"""Written in another way by one of the two, or not at all."""

pytestmark = [
    *NEEDS_NODE,
    pytest.mark.skipif(
        not (HERE / "node_modules" / "@0bsnetwork").is_dir(),
        reason="zbs-transactions is not in tests/clients/node_modules (`make clients` installs it)",
    ),
]


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Any:
    scripts = {
        name: encode_base64(compile_source(source).script.source)
        for name, source in (("dapp", DAPP), ("asset", ASSET))
    }
    with chain_of("zbs", tmp_path_factory.mktemp("zbs")) as program:
        return run_script("zbs.js", program.node_url, json.dumps(scripts))


def test_no_call_is_left_out(told: Any) -> None:
    calls = told["calls"]
    assert set(calls["all"]) - set(calls["called"]) == OF_THE_MATCHER


@pytest.mark.parametrize(("name", "wanted"), FEES.items())
def test_a_transaction(told: Any, name: str, wanted: tuple[int, int]) -> None:
    sent, answer, info = (told[name][key] for key in ("sent", "answer", "info"))
    assert (sent["type"], sent["fee"]) == wanted
    if name == "burn":
        assert info["amount"] == sent.pop("quantity")
    for key in set(sent) - MEMBERS_OF_NODES:
        assert answer[key] == info[key] == sent[key], key
    assert info["height"] > 1 and info["sender"] == answer["sender"]
    # The oldest generation says nothing of what came of a transaction.
    assert "applicationStatus" not in info
    assert (info["id"] == sent["id"]) is (name != "alias")
    assert told[name]["valid"] is True and told[name]["bytes"] > 0


def test_data(told: Any) -> None:
    sent, info = told["data"]["sent"]["data"], told["data"]["info"]["data"]
    assert [sorted(entry.items()) for entry in info] == [sorted(entry.items()) for entry in sent]
    assert (told["after"]["integer"], told["after"]["text"]) == (42, "grüße")
    assert told["before"] == {"balance": FUNDS, "none": None}


def test_an_exchange(told: Any) -> None:
    assert told["orders"] == [True, True]
    for order in ("order1", "order2"):
        sent, info = told["exchange"]["sent"][order], told["exchange"]["info"][order]
        assert {key: info[key] for key in sent} == sent


def test_leases(told: Any) -> None:
    lease = told["lease"]
    assert lease["answer"]["id"] == lease["sent"]["id"]
    assert told["cancel lease"]["info"]["lease"]["id"] == lease["sent"]["id"]
    assert told["cancel lease"]["info"]["chainId"] == ord("R")


def test_the_balance_after_all(told: Any) -> None:
    fees = sum(fee for name, (_, fee) in FEES.items() if name != "set script")
    sent = 5 + 1 + 2 + 6
    # The other account paid for ten of the assets, and its fee to the account as the matcher.
    earned = 10**7 + 300_000
    assert told["after"]["balance"] == FUNDS - fees - sent + earned


def test_refusals(told: Any) -> None:
    assert "negative waves balance" in told["no funds"]["message"]
    assert "(1 in ZBS) does not exceed minimal value of 5000000 ZBS" in told["low fee"]["message"]
    assert told["invoke"]["message"] == "failed to parse json message"
