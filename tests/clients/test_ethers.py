"""ethers.js, the library that most programs for Ethereum use, over `/eth` of a devnet.

The script beside this module sends coins, tokens and calls as a user of the library would; here is
what has to come of it, on the side of Ethereum and on the side of the chain.
"""

from __future__ import annotations

from typing import Any, Final

import pytest

from soliton.chain.json_kinds import encode_base64
from soliton.ride.compiler import compile_source
from tests.clients.scripts import HERE, NEEDS_NODE, run_script
from tests.e2e.programs import call, devnet

COIN: Final = 10**8
WEI: Final = 10**18
FEE: Final = 100_000
CALL_FEE: Final = 500_000
PAID: Final = 7
SCRIPT: Final = """
{-# STDLIB_VERSION 6 #-}
{-# CONTENT_TYPE DAPP #-}
{-# SCRIPT_TYPE ACCOUNT #-}

@Callable(i)
func keep(key: String, numbers: List[Int], flag: Boolean, bytes: ByteVector) = [
  IntegerEntry(key, numbers[1]), BooleanEntry("flag", flag), BinaryEntry("bytes", bytes),
  IntegerEntry("paid", i.payments[0].amount), BinaryEntry("caller", i.caller.bytes)
]

@Callable(i)
func default() = [IntegerEntry("payments", size(i.payments))]
"""

pytestmark = [
    *NEEDS_NODE,
    pytest.mark.skipif(
        not (HERE / "node_modules" / "ethers").is_dir(),
        reason="ethers is not in tests/clients/node_modules (`make clients` installs it)",
    ),
]


@pytest.fixture(scope="module")
def told() -> Any:
    script = encode_base64(compile_source(SCRIPT).script.source)
    with devnet() as program:
        found = run_script("ethers.js", program.node_url, script)
        addresses = found["addresses"]
        url = program.node_url
        found["balance at the end"] = call(f"{url}/addresses/balance/{addresses['wallet']}").json()
        found["data"] = call(f"{url}/addresses/data/{addresses['dapp']}").json()
        for name in ("payment", "tokens sent", "call", "default call"):
            path = f"/transactions/info/{found[name]['id']}"
            found[name]["info"] = call(url + path).json()
        return found


def test_it_connects(told: Any) -> None:
    assert told["network"]["chainId"] == str(ord("R"))
    # Without fees per block the library sends transactions of the legacy type by itself.
    assert told["fees"]["gasPrice"] == str(10**10)
    assert told["fees"]["maxFeePerGas"] is told["fees"]["maxPriorityFeePerGas"] is None
    assert (told["empty"], told["funded"]) == ("0", str(10 * WEI))


@pytest.mark.parametrize(
    ("name", "fee"),
    [("payment", FEE), ("tokens sent", FEE), ("call", CALL_FEE), ("default call", CALL_FEE)],
)
def test_a_transaction_and_its_receipt(told: Any, name: str, fee: int) -> None:
    response, receipt, info = (told[name][key] for key in ("response", "receipt", "info"))
    assert response["hash"] == receipt["hash"] and response["type"] == 0
    assert (response["from"], response["to"]) == (receipt["from"], receipt["to"])
    assert receipt["status"] == 1 and receipt["logs"] == []
    assert response["gasLimit"] == receipt["gasUsed"] == str(fee)
    assert (receipt["blockNumber"], receipt["index"]) == (info["height"], 0)
    assert (info["type"], info["fee"], info["timestamp"]) == (18, fee, response["nonce"])
    assert info["sender"] == told["addresses"]["wallet"]
    assert info["applicationStatus"] == "succeeded"


def test_coins(told: Any) -> None:
    payload = told["payment"]["info"]["payload"]
    friend = told["addresses"]["friend"]
    assert payload == {
        "type": "transfer",
        "recipient": friend,
        "asset": None,
        "amount": 5 * COIN // 2,
    }
    assert told["after payment"] == str(5 * WEI // 2)
    left = 10 * COIN - 5 * COIN // 2 - 2 * FEE - 2 * CALL_FEE - PAID
    assert told["balance at the end"]["balance"] == left


def test_reading_back(told: Any) -> None:
    found, response = told["found"], told["payment"]["response"]
    later = {"blockNumber", "blockHash", "index"}
    assert {key: found[key] for key in set(response) - later} == {
        key: response[key] for key in set(response) - later
    }
    block = told["block"]
    assert (found["blockNumber"], found["blockHash"]) == (block["number"], block["hash"])
    assert block["hashes"] == [response["hash"]] and block["whole"] == [found]
    assert block["byHash"]["number"] == block["number"]
    assert block["miner"] == "3M4qwDomRabJKLZxuXhwfqLApQkU592nWxF"
    assert told["no block"] is None
    assert told["unknown transaction"] == [None, None]


def test_tokens(told: Any) -> None:
    assert told["token"] == {
        "name": "Gold",
        "symbol": "Gold",
        "decimals": "2",
        "supply": "5000",
        "balance": "700",
        "code": "0xff",
    }
    assert told["tokens"] == ["450", "250"]
    payload = told["tokens sent"]["info"]["payload"]
    assert (payload["recipient"], payload["amount"]) == (told["addresses"]["friend"], 250)


def test_calls(told: Any) -> None:
    entries = {entry["key"]: entry["value"] for entry in told["data"]}
    assert entries.pop("caller").startswith("base64:")
    assert entries == {
        "key": 4,
        "flag": True,
        "bytes": "base64:AQI=",
        "paid": PAID,
        "payments": 0,
    }
    payload = told["call"]["info"]["payload"]
    assert payload["payment"] == [{"amount": PAID, "assetId": None}]
    assert (payload["dApp"], payload["call"]["function"]) == (told["addresses"]["dapp"], "keep")
    assert told["default call"]["info"]["payload"]["call"] == {"function": "default", "args": []}


@pytest.mark.parametrize(
    ("name", "code", "words"),
    [
        ("too much", 112, "Accounts balance errors"),
        ("wrong call", 112, "Function not defined: 01020304"),
        ("type 2", 199, "Only transactions of type 0"),
    ],
)
def test_refusals(told: Any, name: str, code: int, words: str) -> None:
    error = told[name]["error"]
    assert error["code"] == -32000 and error["data"]["error"] == code
    assert words in error["message"] and words in told[name]["message"]


def test_other_errors(told: Any) -> None:
    assert told["nothing"]["code"] == "CALL_EXCEPTION"
    assert told["nothing"]["info"]["error"]["data"]["error"] == 199
    assert told["unknown method"]["error"]["code"] == -32601
    assert told["batches"] == [str(5 * WEI // 2)]
