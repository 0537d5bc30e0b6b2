"""node-api-js, the library that reads nodes for web applications: every call that it has.

The script beside this module makes the calls on a devnet and tells what came of them.
"""

from __future__ import annotations

import re
from typing import Any, Final

import pytest

from soliton.crypto import base58
from tests.clients.scripts import NEEDS_NODE, by_key, run_script
from tests.e2e.programs import API_KEY, devnet

RICH: Final = "3M4qwDomRabJKLZxuXhwfqLApQkU592nWxF"
FRIEND: Final = "3MMiWb5hjTXwst33rEaebQq8RnXZRFrTjuY"
FEE: Final = 100_000
WITHOUT_ROUTE: Final = (
    "tools.utils.",
    "tools.query",
    "tools.resolve",
    "tools.request",
    "tools.parse",
)
"""Helpers of the library that speak to no route of their own."""
NOT_FOUND: Final = (
    "The requested resource could not be found but may be available again in the future."
)

pytestmark = NEEDS_NODE


@pytest.fixture(scope="module")
def read() -> dict[str, Any]:
    """What the calls gave."""
    with devnet() as program:
        return run_script("node_api.js", program.node_url, API_KEY)


def test_no_call_is_left_out(read: dict[str, Any]) -> None:
    left_out = set(read["all calls"]) - set(read["calls made"])
    assert len(read["calls made"]) > 90
    assert {name for name in left_out if not name.startswith(WITHOUT_ROUTE)} == set()


def test_node_calls(read: dict[str, Any]) -> None:
    assert read["node status"]["blockchainHeight"] == read["height"]
    assert read["node status"]["stateHeight"] == read["height"]
    assert re.fullmatch(r"\S+ v\d+\.\d+\.\d+", read["node version"]["version"])
    assert read["hash"]["message"] == "waves-private-node"
    assert abs(read["time"]["system"] - read["time"]["NTP"]) < 1000
    assert len(base58.decode(read["seed"]["seed"], 64)) == 32


def test_block_calls(read: dict[str, Any]) -> None:
    last, height = read["last"], read["height"]
    assert last["height"] == height and last["transactionCount"] == len(last["transactions"]) == 1
    assert last["transactions"][0]["id"] == read["ids"]["paid"]
    assert read["block at"] == read["block by id"] == last == read["seq"][1]
    header = {key: value for key, value in last.items() if key not in ("fee", "transactions")}
    assert read["headers last"] == read["headers at"] == header == read["headers seq"][1]
    assert read["seq"][0]["id"] == last["reference"]
    assert read["height by id"] == {"height": height}
    assert read["genesis"]["height"] == 1 and read["genesis"]["transactions"][0]["type"] == 1


def test_address_calls(read: dict[str, Any]) -> None:
    account = "3MMw6bn4driqBo9CZHTJN5hHSSMEz2PMV27"
    left = str(10**14 - 2 * FEE - 7)
    assert read["balance"] == {"address": account, "confirmations": 0, "balance": left}
    assert read["confirmations"] == {"address": account, "confirmations": 1, "balance": left}
    assert read["effective"] == {"address": account, "confirmations": 0, "balance": left}
    details = read["details"]
    assert details["address"] == account
    assert {details[kind] for kind in ("regular", "available", "effective")} == {left}
    assert int(details["generating"]) <= int(left)
    assert read["validate"] == {"address": account, "valid": True}
    assert read["addresses"][0] == RICH
    assert read["public key"] == {"address": account}
    entries = {"api_a": ("integer", 1), "api_b": ("string", "x"), "c": ("boolean", True)}
    assert by_key(read["data"]) == entries
    assert list(by_key(read["data matches"])) == ["api_a", "api_b"]
    assert [entry["key"] for entry in read["data keys"]] == ["c", "api_a"]
    assert read["data key"] == {"key": "api_b", "type": "string", "value": "x"}


def test_transaction_calls(read: dict[str, Any]) -> None:
    paid, written = read["ids"]["paid"], read["ids"]["written"]
    assert read["info"]["id"] == paid
    assert [each["id"] for each in read["infos"]] == [paid, written]
    assert [each["id"] for each in read["by address"][:2]] == [paid, written]
    assert {each["type"] for each in read["by address"][2:]} == {1}
    assert [each["status"] for each in read["status"]["statuses"]] == ["in_blockchain"] * 2
    assert (read["unconfirmed"], read["unconfirmed size"]) == ([], {"size": 0})
    assert read["fee"] == {"feeAssetId": None, "feeAmount": FEE}
    assert read["fee of data"] == {"feeAssetId": None, "feeAmount": 2 * FEE}


def test_further_calls_of_accounts_and_blocks(read: dict[str, Any]) -> None:
    account, last = "3MMw6bn4driqBo9CZHTJN5hHSSMEz2PMV27", read["last"]
    assert [each["id"] for each in read["multiple balances"]] == [account, FRIEND]
    assert read["multiple balances"][0]["balance"] == read["balance"]["balance"]
    assert read["effective confirmations"] == read["confirmations"]
    assert read["addresses seq"] == [RICH]
    assert read["headers by id"] == read["headers last"]
    assert read["by generator"] == [last]
    assert read["delay"] == {"delay": last["timestamp"] - read["seq"][0]["timestamp"]}
    assert read["height by timestamp"] == {"height": last["height"]}
    assert read["waiting none"]["error"] == 311
    assert bytes(read["serialised"]["bytes"][:4]) == bytes((8, ord("R"), 18, 32))
    fast = read["hash fast"]
    assert fast["message"] == "waves-private-node" and fast["hash"] != read["hash"]["hash"]
    assert len(base58.decode(read["long seed"]["seed"], 200)) == 100


def test_calls_about_the_chain(read: dict[str, Any]) -> None:
    assert read["rewards"] == read["rewards at"]
    assert read["rewards"]["currentReward"] == 6 * 10**9
    activation = read["activation"]
    assert activation["height"] == read["height"]
    # A private chain begins without deterministic finality, which this version implements.
    statuses = {each["id"]: each["blockchainStatus"] for each in activation["features"]}
    assert {each for each, status in statuses.items() if status != "ACTIVATED"} <= {24, 25, 26}
    assert read["peers"] == [{"peers": []}, {"peers": []}, [], []]
    assert read["network"] == [ord("R"), "R"]


def test_calls_about_assets(read: dict[str, Any]) -> None:
    ids = read["asset ids"]
    owner, gold = ids["owner"], read["asset"]
    assert (gold["assetId"], gold["issuer"]) == (ids["gold"], owner)
    assert (gold["quantity"], gold["minSponsoredAssetFee"]) in ((1000, 3), ("1000", "3"))
    assert [each["assetId"] for each in read["assets"]] == [ids["gold"], ids["nft"]]
    assert read["assets"][0] == gold and read["id of wallets"] == ids["gold"]
    (held,) = read["asset balances"]["balances"]
    assert (held["assetId"], held["issueTransaction"]["id"]) == (ids["gold"], ids["gold"])
    assert int(held["balance"]) == int(read["asset balance"]["balance"]) == 960
    assert {each["assetId"] for each in read["nfts"]} == {ids["nft"], ids["drawing"]}
    assert [each for page in read["nft pages"] for each in page] == read["nfts"]
    items = {address: int(amount) for address, amount in read["distribution"]["items"].items()}
    assert items == {owner: 960, FRIEND: 40}
    assert read["sponsored"] == [{"assetId": ids["gold"], "wavesFee": FEE, "assetFee": "3"}]
    assert list(read["assets of a transaction"]) == [ids["gold"]]
    assert read["asset ids of a transaction"] == [ids["gold"]]
    assert read["transactions with assets"] == {"types": [12, 4], "assets": [ids["gold"]]}


def test_calls_about_aliases_and_leases(read: dict[str, Any]) -> None:
    ids = read["asset ids"]
    assert read["aliases"] == [{"address": ids["owner"]}, ["alias:R:node-api"]]
    active, known = read["leases"]
    assert active == known
    (lent,) = active
    assert (lent["id"], lent["sender"], lent["status"]) == (ids["lease"], ids["owner"], "active")


def test_calls_about_scripts(read: dict[str, Any]) -> None:
    compiled = read["compiled"]
    assert compiled["callableComplexities"] == {"keep": compiled["complexity"]}
    assert read["estimated"] == compiled | {"scriptText": ""}
    assert "func keep (n: Int)" in read["decompiled"]["script"]
    assert read["imported"]["complexity"] == 2
    assert read["script info"]["script"] == compiled["script"]
    assert read["script info meta"]["meta"]["callableFuncTypes"] == {
        "keep": [{"name": "n", "type": "Int"}]
    }
    assert read["evaluated"]["result"] == {"type": "Int", "value": 42}


def test_a_call_of_a_dapp(read: dict[str, Any]) -> None:
    sent = read["sent"]
    assert read["validated"]["valid"] and read["validated"]["id"] == sent["id"]
    assert read["sent again"]["error"] == 112
    assert read["waited"]["id"] == sent["id"]
    other = read["sent and waited for"]
    assert other["sent"] == other["found"]["id"]
    changes = read["state changes"]["stateChanges"]
    assert changes["data"] == [{"key": "n", "type": "integer", "value": 8}]
    assert read["watched"]["wanted"] in read["watched"]["seen"]


def test_calls_of_the_operator(read: dict[str, Any]) -> None:
    account = read["balance"]["address"]
    history = read["balance history"]
    assert history[0] == {"height": read["height"], "balance": read["balance"]["balance"]}
    assert read["info of node"]["stateHeight"] > read["height"]
    miner = read["miners"][0]
    assert miner["address"] == RICH
    assert read["state"][account] == read["state at"][account] == read["balance"]["balance"]
    assert read["state hash"]["blockId"] == read["last"]["id"]
    assert read["deleted"] == {"deleted": True}
    rolled_back = read["rolled back"]
    assert rolled_back["answer"] == {"BlockId": rolled_back["wanted"]}


@pytest.mark.parametrize("call", ["state changes of address", "ban", "wallet seed", "not deleted"])
def test_calls_without_the_key_that_they_need(read: dict[str, Any], call: str) -> None:
    assert read[call]["error"] == 2


@pytest.mark.parametrize(
    "call",
    ["sign with key", "script meta", "portfolio", "rolled back to", "config", "asset of wallets"],
)
def test_calls_of_routes_that_are_gone(read: dict[str, Any], call: str) -> None:
    """Routes of older generations, and two that the library asks for wrongly."""
    assert read[call] == {"text": NOT_FOUND}


def test_answers_that_the_library_cannot_read(read: dict[str, Any]) -> None:
    """They are as those of the reference node, which the library has the same trouble with."""
    assert read["first"]["error"] == 4002
    assert "JSON" in read["printed"]["message"]
