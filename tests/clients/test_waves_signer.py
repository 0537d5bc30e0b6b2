"""@waves/signer with @waves/provider-seed: what web applications sign and send with.

The script beside this module calls every method that has to do with a node; here is what has to
come of it.
"""

from __future__ import annotations

import json
from typing import Any, Final

import pytest

from soliton.chain.json_kinds import encode_base64
from soliton.ride.compiler import compile_source
from tests.clients.scripts import HERE, NEEDS_NODE, run_script
from tests.e2e.programs import devnet

COIN: Final = 10**8
WITHOUT_NODE: Final = {
    "constructor",
    "on",
    "once",
    "off",
    "signMessage",
    "signTypedData",
    "signOrder",
}
"""Events and signatures of the provider alone, which this one has not got."""
TYPES: Final = {
    "issue": 3,
    "issue of a smart asset": 3,
    "transfer": 4,
    "transfer of an asset": 4,
    "reissue": 5,
    "burn": 6,
    "exchange": 7,
    "lease": 8,
    "cancel lease": 9,
    "alias": 10,
    "mass transfer": 11,
    "data": 12,
    "set script": 13,
    "sponsorship": 14,
    "set asset script": 15,
    "invoke": 16,
}
DAPP: Final = """{-# STDLIB_VERSION 6 #-}
{-# CONTENT_TYPE DAPP #-}
{-# SCRIPT_TYPE ACCOUNT #-}
@Callable(i)
func keep(n: Int) = [IntegerEntry("kept", n + n)]
"""
ASSET: Final = """{-# STDLIB_VERSION 6 #-}
{-# CONTENT_TYPE EXPRESSION #-}
{-# SCRIPT_TYPE ASSET #-}
true
"""
OWN_MEMBERS: Final = {"height", "applicationStatus", "spentComplexity", "stateChanges", "lease"}

pytestmark = [
    *NEEDS_NODE,
    pytest.mark.skipif(
        not (HERE / "node_modules" / "@waves" / "signer").is_dir(),
        reason="@waves/signer is not in tests/clients/node_modules (`make clients` installs it)",
    ),
]


@pytest.fixture(scope="module")
def told() -> Any:
    scripts = {
        name: encode_base64(compile_source(source).script.source)
        for name, source in (("dapp", DAPP), ("asset", ASSET))
    }
    with devnet() as program:
        return run_script("waves_signer.js", program.node_url, json.dumps(scripts))


def test_no_method_is_left_out(told: Any) -> None:
    methods = told["methods"]
    assert set(methods["all"]) - set(methods["called"]) == WITHOUT_NODE


def test_it_finds_the_network_and_the_account(told: Any) -> None:
    assert told["network byte"] == ord("R")
    assert told["user"]["address"] == "3MBzcYzh6HRD77nLgQ65u8b1zrizPHcG9x2"


def as_numbers(value: Any) -> Any:
    """The library turns large numbers into strings, which nodes do only when asked to."""
    if isinstance(value, dict):
        return {key: as_numbers(item) for key, item in value.items()}
    return int(value) if isinstance(value, str) and value.isdecimal() else value


@pytest.mark.parametrize(("name", "type_id"), TYPES.items())
def test_a_transaction(told: Any, name: str, type_id: int) -> None:
    sent, info = told[name]["sent"], told[name]["info"]
    assert sent["type"] == type_id and sent["sender"] == told["user"]["address"]
    added = {"status"} if name == "lease" else set()
    assert {key: info[key] for key in info.keys() - OWN_MEMBERS - added} == {
        key: as_numbers(sent[key]) for key in sent.keys() - OWN_MEMBERS
    }
    assert info["applicationStatus"] == "succeeded" and info["height"] > 1


def test_what_came_of_them(told: Any) -> None:
    assert told["lease"]["info"]["status"] == "active"
    assert told["cancel lease"]["info"]["lease"]["status"] == "canceled"
    changes = told["invoke"]["info"]["stateChanges"]
    assert changes["data"] == [{"key": "kept", "type": "integer", "value": 42}]
    assert [each["type"] for each in told["batch"]] == [4, 12]
    later = told["signed, then sent"]
    assert later["info"]["id"] == later["signed"]
    assert told["left"] == ["batch", "bytes", "flag", "kept", "n", "text"]


def test_balances(told: Any) -> None:
    coins, *assets = told["balance"]
    assert (coins["assetId"], coins["assetName"]) == ("WAVES", "Waves")
    assert 10**14 - 4 * COIN < int(coins["amount"]) < 10**14
    held = {each["assetName"]: each for each in assets}
    gold = held["Gold"]
    # Made, given away, made, burned, sold.
    assert int(gold["amount"]) == 1000 - 40 + 7 - 3 - 10
    assert (gold["decimals"], gold["sponsorship"], gold["isMyAsset"]) == (2, 2, True)
    assert (held["Smart"]["isSmart"], gold["isSmart"]) == (True, False)
    assert told["sponsored"] == [gold]


def test_a_refusal(told: Any) -> None:
    assert told["refused"]["error"] == 112
    assert "negative waves balance" in told["refused"]["message"]
