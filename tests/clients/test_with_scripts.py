"""waves-transactions: types of transactions that have to do with scripts, and all that the library
has of its own to speak with a node. Types without scripts are in `test_every_type`.
"""

from __future__ import annotations

import json
from typing import Any, Final

import pytest

from soliton.chain.json_kinds import encode_base64
from soliton.crypto import base58
from soliton.crypto.keys import key_pair
from soliton.ride.compiler import compile_source
from tests.clients.scripts import NEEDS_NODE, run_script
from tests.e2e.programs import devnet

HEAD: Final = "{-# STDLIB_VERSION 6 #-}\n"
DAPP: Final = (
    HEAD
    + """{-# CONTENT_TYPE DAPP #-}
{-# SCRIPT_TYPE ACCOUNT #-}
@Callable(i)
func keep(n: Int, s: String, b: Boolean, v: ByteVector, l: List[Int]) = [
  IntegerEntry("n", n), StringEntry("s", s), BooleanEntry("b", b), BinaryEntry("v", v),
  IntegerEntry("l", l[0]), IntegerEntry("paid", i.payments[0].amount + i.payments[1].amount)
]
@Callable(i)
func default() = [StringEntry("default", "called")]
@Callable(i)
func fail() = throw("no, thanks")
"""
)
VERIFIER: Final = (
    HEAD
    + """{-# CONTENT_TYPE EXPRESSION #-}
{-# SCRIPT_TYPE ACCOUNT #-}
sigVerify(tx.bodyBytes, tx.proofs[0], tx.senderPublicKey) &&
  sigVerify(tx.bodyBytes, tx.proofs[1], base58'KEY')
"""
)
ASSET: Final = (
    HEAD
    + """{-# CONTENT_TYPE EXPRESSION #-}
{-# SCRIPT_TYPE ASSET #-}
match tx {
  case t: TransferTransaction => t.amount == 1
  case _ => true
}
"""
)
TYPES: Final = {
    "dapp 1": 13,
    "dapp 2": 13,
    "smart asset 2": 3,
    "smart asset 3": 3,
    "asset script 1": 15,
    "asset script 2": 15,
    "call 1": 16,
    "call 2": 16,
    "default call 1": 16,
    "default call 2": 16,
    "smart transfer": 4,
    "verifier": 13,
    "two signatures": 4,
    "made and signed": 4,
    "data": 12,
}

pytestmark = NEEDS_NODE


def scripts() -> dict[str, str]:
    """The scripts that the program sets, in base64."""
    second = base58.encode(key_pair("soliton devnet account 1").public_key)
    sources = {"dapp": DAPP, "verifier": VERIFIER.replace("KEY", second), "asset": ASSET}
    return {
        name: encode_base64(compile_source(source).script.source)
        for name, source in sources.items()
    }


@pytest.fixture(scope="module")
def told() -> Any:
    with devnet() as program:
        return run_script("with_scripts.js", program.node_url, json.dumps(scripts()))


def test_no_call_of_a_node_is_left_out(told: Any) -> None:
    assert set(told["calls"]["all"]) == set(told["calls"]["called"])
    assert len(told["calls"]["all"]) > 10


@pytest.mark.parametrize(("name", "type_id"), TYPES.items())
def test_a_transaction(told: Any, name: str, type_id: int) -> None:
    sent, info = told[name]["sent"], told[name]["info"]
    assert (info["type"], info["id"]) == (type_id, sent["id"])
    assert info["applicationStatus"] == "succeeded"
    # Old versions do not carry the byte of the network; an empty payment or call is filled in.
    for key in set(sent) - {"chainId", "call", "payment"}:
        assert info[key] == sent[key], key


@pytest.mark.parametrize("version", [1, 2])
def test_a_call(told: Any, version: int) -> None:
    info = told[f"call {version}"]["info"]
    changes = {entry["key"]: entry["value"] for entry in info["stateChanges"]["data"]}
    assert changes == {
        "n": version,
        "s": "text",
        "b": True,
        "v": "base64:AQI=",
        "l": 5,
        "paid": 5,
    }
    assert info["version"] == version and info["spentComplexity"] > 0
    default = told[f"default call {version}"]["info"]
    assert default["call"] == {"function": "default", "args": []}
    assert default["stateChanges"]["data"][0]["value"] == "called"


def test_verifiers(told: Any) -> None:
    assert len(told["two signatures"]["info"]["proofs"]) == 2
    assert told["one signature"]["error"] == 307
    assert told["made"] == {"verified": True, "bytes": told["made"]["bytes"], "same": True}
    assert told["failing call"]["error"] == 306
    assert "no, thanks" in told["failing call"]["message"]


def test_reading(told: Any) -> None:
    read = told["read"]
    assert read["last"] == told["made and signed"]["sent"]["id"]
    assert read["balance"] == int(read["details"]["regular"])
    # Two payments and a transfer are gone.
    assert int(read["asset"]) == 100 - 2 - 2 - 1
    assert {key: entry["value"] for key, entry in read["data"].items()} == {
        "first": 1,
        "second": "two",
    }
    assert list(read["matching"]) == ["first"]
    assert (read["entry"]["value"], read["none"]) == ("two", None)
    assert read["script"]["callableComplexities"].keys() == {"keep", "default", "fail"}
    functions = read["meta"]["meta"]["callableFuncTypes"]
    assert [each["type"] for each in functions["keep"]] == [
        "Int",
        "String",
        "Boolean",
        "ByteVector",
        "List[Int]",
    ]
    assert read["rewards"] == read["at"]
    assert told["waited"] == [read["last"], read["height"], read["height"]]
