"""Routes under `/eth`: JSON-RPC as Ethereum's clients speak it, and the interfaces of dApps."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from soliton.api import ethereum_rpc
from soliton.chain.addresses import from_public_key_hash, public_key_hash
from soliton.chain.ethereum_encoding import selector, write_word
from soliton.chain.transactions import ethereum
from soliton.chain.transactions.issue import TYPE as ISSUE_TYPE
from soliton.chain.transactions.issue import Issue
from soliton.chain.transactions.model import AnyTransaction
from soliton.chain.transactions.set_script import TYPE as SET_SCRIPT_TYPE
from soliton.chain.transactions.set_script import SetScript
from soliton.chain.transactions.transfer import TYPE as TRANSFER_TYPE
from soliton.chain.transactions.transfer import Transfer
from soliton.chain.values import AssetId
from soliton.crypto import base58, secp256k1
from soliton.crypto.hashes import keccak256
from soliton.node.node import Node
from soliton.ride.compiler import compile_source
from tests.api.chain import OTHER, PrivateChain, address_of
from tests.api.client import call

WALLET = keccak256(b"wallet")
OWNER = keccak256(secp256k1.public_key(WALLET))[-20:]
FRIEND = bytes(range(20))
COIN = 100_000_000
WEI = 10_000_000_000
INVOKE_FEE = 500_000
DAPP = """
{-# STDLIB_VERSION 6 #-}
{-# CONTENT_TYPE DAPP #-}
{-# SCRIPT_TYPE ACCOUNT #-}

@Callable(i)
func keep(key: String, numbers: List[Int], flag: Boolean, bytes: ByteVector) =
  [IntegerEntry(key, numbers[0]), BinaryEntry("caller", i.caller.bytes)]
"""


def hexed(data: bytes) -> str:
    return "0x" + data.hex()


async def ask(chain: PrivateChain, method: str, *params: object) -> Any:
    request = {"jsonrpc": "2.0", "id": 7, "method": method, "params": list(params)}
    answer = await chain.post("/eth", request)
    assert answer.status == 200
    found: Any = answer.json()
    assert (found["id"], found["jsonrpc"]) == (7, "2.0") and len(found) == 3
    return found


async def result(chain: PrivateChain, method: str, *params: object) -> Any:
    found = await ask(chain, method, *params)
    assert "error" not in found, found
    return found["result"]


async def error(chain: PrivateChain, method: str, *params: object) -> Any:
    return (await ask(chain, method, *params))["error"]


def give(chain: PrivateChain, amount: int, asset_id: AssetId | None = None) -> None:
    owner = from_public_key_hash(OWNER, ord("R"))
    chain.send(chain.sign(TRANSFER_TYPE, Transfer(owner, asset_id, amount, b""), 3))
    chain.mine()


def signed(chain: PrivateChain, **given: Any) -> AnyTransaction:
    values: dict[str, Any] = {"fee": 100_000, "to": FRIEND, "timestamp": chain.tick()} | given
    return ethereum.sign(WALLET, chain_id=ord("R"), **values)


def issued(chain: PrivateChain) -> AssetId:
    payload = Issue(b"Gold", b"heavy", 1_000, 2, True, None)
    asset_id = AssetId(chain.send(chain.sign(ISSUE_TYPE, payload, 3, fee=COIN)).id)
    chain.mine()
    return asset_id


def set_script(chain: PrivateChain) -> None:
    script = compile_source(DAPP).script.source
    fee = 100 * COIN // 100
    chain.send(chain.transfer(amount=10 * COIN))
    chain.mine()
    chain.send(chain.sign(SET_SCRIPT_TYPE, SetScript(script), 2, fee=fee, keys=OTHER))
    chain.mine()


async def test_the_chain(chain: PrivateChain) -> None:
    for method in ("eth_chainId", "net_version"):
        assert await result(chain, method) == hex(ord("R"))
    assert await result(chain, "eth_blockNumber") == "0x1"
    assert await result(chain, "eth_gasPrice") == "0x2540be400"
    assert await result(chain, "eth_getTransactionCount", hexed(OWNER)) == hex(chain.now)
    assert await result(chain, "web3_clientVersion") == chain.node.agent
    assert await result(chain, "eth_syncing") is False
    for method in ("eth_accounts", "eth_getLogs"):
        assert await result(chain, method) == []


async def test_a_transfer_of_coins(chain: PrivateChain) -> None:
    give(chain, 3 * COIN)
    assert await result(chain, "eth_getBalance", hexed(OWNER), "latest") == hex(3 * COIN * WEI)
    sent = signed(chain, value=COIN * WEI)
    name, raw = hexed(sent.id), hexed(sent.payload.encoded)
    assert await result(chain, "eth_getTransactionByHash", name) is None
    assert await result(chain, "eth_sendRawTransaction", raw) == name
    # Sending it twice is no error, as on the other routes.
    assert await result(chain, "eth_sendRawTransaction", raw) == name
    assert await result(chain, "eth_getTransactionReceipt", name) is None
    waiting = await result(chain, "eth_getTransactionByHash", name)
    assert waiting["blockHash"] is None and waiting["from"] == hexed(OWNER)
    chain.mine()
    assert await result(chain, "eth_getBalance", hexed(FRIEND)) == hex(COIN * WEI)

    found = await result(chain, "eth_getTransactionByHash", name)
    block = chain.node.chain.meta(3).id
    place = {"blockHash": hexed(block), "blockNumber": "0x3", "transactionIndex": "0x0"}
    assert found == waiting | place
    assert found["value"] == hex(COIN * WEI) and found["raw"] == raw and found["input"] == "0x"
    assert int(found["nonce"], 16) == sent.timestamp
    assert int(found["v"], 16) == 2 * ord("R") + 35 + int(found["standardV"], 16)
    receipt = await result(chain, "eth_getTransactionReceipt", name)
    assert {key: receipt[key] for key in place} == place
    assert (receipt["from"], receipt["to"]) == (hexed(OWNER), hexed(FRIEND))
    assert (receipt["status"], receipt["gasUsed"]) == ("0x1", hex(100_000))
    assert (receipt["logs"], receipt["contractAddress"]) == ([], None)
    again = await error(chain, "eth_sendRawTransaction", raw)
    assert again["code"] == ethereum_rpc.REJECTED and again["data"]["error"] == 112
    for each in ("eth_getTransactionByHash", "eth_getTransactionReceipt"):
        other = chain.node.chain.block_at(2).transactions[0].id
        assert await result(chain, each, hexed(other)) is None
        assert await result(chain, each, "0x" + "00" * 32) is None


async def test_blocks(chain: PrivateChain) -> None:
    give(chain, 3 * COIN)
    sent = chain.send(signed(chain, value=COIN * WEI))
    chain.send(chain.transfer())
    chain.mine()
    found = await result(chain, "eth_getBlockByNumber", "0x3", False)
    assert found == await result(chain, "eth_getBlockByNumber", "latest")
    meta = chain.node.chain.meta(3)
    assert (found["number"], found["hash"]) == ("0x3", hexed(meta.id))
    assert int(found["timestamp"], 16) == meta.timestamp // 1000
    assert found["transactions"] == [hexed(sent.id)]
    # Without this member clients send transactions of the only type that there is.
    assert "baseFeePerGas" not in found
    whole = await result(chain, "eth_getBlockByNumber", "0x3", True)
    shown = await result(chain, "eth_getTransactionByHash", hexed(sent.id))
    assert whole == found | {"transactions": [shown]}
    by_hash = await result(chain, "eth_getBlockByHash", found["hash"], False)
    assert by_hash == found | {"baseFeePerGas": "0x0"}
    before = await result(chain, "eth_getBlockByHash", found["parentHash"])
    assert before["number"] == "0x2"
    first = await result(chain, "eth_getBlockByNumber", "earliest")
    assert first["number"] == "0x1" and len(first["hash"]) == 2 + 64
    assert await result(chain, "eth_getBlockByNumber", "pending") == {"number": None}
    for each in ("0x4", "0x0", "0xffffffffffffffff"):
        assert await result(chain, "eth_getBlockByNumber", each) is None
    assert await result(chain, "eth_getBlockByHash", "0x" + "00" * 32) is None
    for wrong in ("newest", "", "0x", 3, None):
        told = await error(chain, "eth_getBlockByNumber", wrong)
        assert told["code"] == ethereum_rpc.INVALID_PARAMS


async def test_tokens(chain: PrivateChain) -> None:
    asset_id = issued(chain)
    give(chain, COIN)
    give(chain, 100, asset_id)
    token = hexed(asset_id[:20])
    assert await result(chain, "eth_getCode", token) == "0xff"

    async def told(signature: str, arguments: bytes = b"", of: str = token) -> bytes:
        data = hexed(keccak256(signature.encode())[:4] + arguments)
        answers = [
            await result(chain, "eth_call", {"to": of, name: data}, "latest")
            for name in ("data", "input")
        ]
        assert answers[0] == answers[1]
        return bytes.fromhex(answers[0][2:])

    def text(value: bytes) -> bytes:
        return (
            write_word(32) + write_word(len(value)) + value.ljust(-(-len(value) // 32) * 32, b"\0")
        )

    for signature in ("name()", "symbol()"):
        assert await told(signature) == text(b"Gold")
        assert await told(signature, of=hexed(FRIEND)) == text(b"")
    assert await told("decimals()") == write_word(2)
    assert await told("totalSupply()") == write_word(1_000)
    assert await told("supportsInterface(bytes4)", write_word(1)) == write_word(0)
    assert await told("allowance(address,address)") == b""
    owner = write_word(int.from_bytes(OWNER, "big"))
    assert await told("balanceOf(address)", owner) == write_word(100)
    assert await told("balanceOf(address)", owner, hexed(FRIEND)) == write_word(0)
    wrong = {"to": token, "data": "0x70a08231"}
    assert (await error(chain, "eth_call", wrong))["code"] == ethereum_rpc.INVALID_PARAMS

    friend = write_word(int.from_bytes(FRIEND, "big"))
    data = ethereum.TRANSFER_SELECTOR + friend + write_word(30)
    asked = {"from": hexed(OWNER), "to": token, "data": hexed(data)}
    assert await result(chain, "eth_estimateGas", asked) == hex(100_000)
    sent = signed(chain, to=asset_id[:20], data=data)
    await result(chain, "eth_sendRawTransaction", hexed(sent.payload.encoded))
    chain.mine()
    assert await told("balanceOf(address)", owner) == write_word(70)
    assert await told("balanceOf(address)", friend) == write_word(30)
    receipt = await result(chain, "eth_getTransactionReceipt", hexed(sent.id))
    assert (receipt["status"], receipt["to"]) == ("0x1", token)


async def test_calls_of_dapps(chain: PrivateChain) -> None:
    set_script(chain)
    give(chain, COIN)
    address = address_of(OTHER, chain)
    dapp = hexed(public_key_hash(address))
    assert await result(chain, "eth_getCode", dapp) == "0xff"
    assert await result(chain, "eth_getCode", hexed(OWNER)) == "0x"
    abi: Any = (await chain.get(f"/eth/abi/{base58.encode(address)}")).json()
    types = ["string", "int64[]", "bool", "bytes"]
    (function,) = abi
    assert function["name"] == "keep" and function["type"] == "function"
    assert [each["name"] for each in function["inputs"]] == [
        "key",
        "numbers",
        "flag",
        "bytes",
        "payments",
    ]
    assert [each["type"] for each in function["inputs"]] == [*types, "tuple[]"]
    assert [each["type"] for each in function["inputs"][-1]["components"]] == ["bytes32", "int64"]

    words = [160, 224, 1, 288, 352, 1, int.from_bytes(b"k".ljust(32, b"\0"), "big"), 1, 42, 1]
    words += [int.from_bytes(b"b".ljust(32, b"\0"), "big"), 0]
    data = selector("keep", types) + b"".join(map(write_word, words))
    gas = await result(chain, "eth_estimateGas", {"to": dapp, "data": hexed(data), "value": "0x0"})
    assert gas == hex(INVOKE_FEE)
    sent = signed(chain, to=public_key_hash(address), data=data, fee=INVOKE_FEE)
    await result(chain, "eth_sendRawTransaction", hexed(sent.payload.encoded))
    chain.mine()
    receipt = await result(chain, "eth_getTransactionReceipt", hexed(sent.id))
    assert receipt["status"] == "0x1"
    entry: Any = (await chain.get(f"/addresses/data/{base58.encode(address)}/k")).json()
    assert entry == {"key": "k", "type": "integer", "value": 42}


async def test_interfaces_of_what_is_no_dapp(chain: PrivateChain) -> None:
    nobody = await chain.get(f"/eth/abi/{base58.encode(address_of(OTHER, chain))}")
    assert (nobody.status, nobody.body) == (200, b"")
    wrong: Any = (await chain.get("/eth/abi/3M")).json()
    assert wrong["error"] == 102


async def test_refusals(chain: PrivateChain) -> None:
    give(chain, COIN)
    for changes, code, words in (
        ({"value": COIN * WEI}, 112, "negative waves balance"),
        ({"value": WEI, "fee": 1}, 112, "does not exceed minimal value"),
        ({"value": 0}, 199, "Transaction cancellation is not supported"),
        ({"value": WEI, "timestamp": chain.now - 10**8}, 303, "in the past"),
        ({"data": b"call", "fee": INVOKE_FEE}, 112, "No script at address"),
    ):
        raw = hexed(signed(chain, **changes).payload.encoded)
        told = await error(chain, "eth_sendRawTransaction", raw)
        assert (told["code"], told["data"]["error"]) == (ethereum_rpc.REJECTED, code), told
        assert words in told["message"] + str(told["data"]), told
    # A transaction of type 2, as wallets send where there is a base fee.
    told = await error(chain, "eth_sendRawTransaction", "0x02f86f01")
    assert told["data"]["error"] == 199 and "type 0" in told["message"]
    assert "legacy" in told["data"]["hint"]
    other = ethereum.sign(WALLET, chain_id=87, timestamp=1, fee=1, to=FRIEND, value=WEI)
    told = await error(chain, "eth_sendRawTransaction", hexed(other.payload.encoded))
    assert told["data"]["error"] == 404
    malformed: tuple[object, ...] = ("0xzz", 7, {}, None)
    for wrong in malformed:
        told = await error(chain, "eth_sendRawTransaction", wrong)
        assert told["code"] == ethereum_rpc.INVALID_PARAMS
    assert (await error(chain, "eth_sendRawTransaction"))["code"] == ethereum_rpc.INVALID_PARAMS
    for asked in ({}, {"value": "0x0"}, {"to": "0x00"}, {"to": 1}, {"value": "0x" + "f" * 65}):
        assert (await error(chain, "eth_estimateGas", asked))["code"] in (
            ethereum_rpc.INVALID_PARAMS,
            ethereum_rpc.REJECTED,
        )
    assert (await error(chain, "eth_getBalance", "0x00"))["code"] == ethereum_rpc.INVALID_PARAMS
    assert len(chain.node.pool) == 0


@pytest.mark.parametrize(
    ("body", "code", "name"),
    [
        (b"{", ethereum_rpc.PARSE_ERROR, None),
        (b'"eth_chainId"', ethereum_rpc.INVALID_REQUEST, None),
        (b"[]", ethereum_rpc.INVALID_REQUEST, None),
        (b"[" + b"1," * 100 + b"1]", ethereum_rpc.INVALID_REQUEST, None),
        (b'{"id":"a"}', ethereum_rpc.INVALID_REQUEST, "a"),
        (b'{"id":3,"method":7}', ethereum_rpc.INVALID_REQUEST, 3),
        (b'{"id":3,"method":"eth_mine"}', ethereum_rpc.METHOD_NOT_FOUND, 3),
        (b'{"id":3,"method":"eth_getBalance","params":{}}', ethereum_rpc.INVALID_PARAMS, 3),
    ],
)
async def test_bad_requests(chain: PrivateChain, body: bytes, code: int, name: object) -> None:
    answer: Any = (await chain.post("/eth", body)).json()
    assert (answer["error"]["code"], answer["id"], answer["jsonrpc"]) == (code, name, "2.0")


async def test_batches(chain: PrivateChain) -> None:
    body = [
        {"id": 1, "method": "eth_chainId"},
        3,
        {"id": 2, "method": "eth_mine"},
        {"id": "x", "method": "eth_blockNumber", "params": []},
    ]
    answers: Any = (await chain.post("/eth/", body)).json()
    assert [each["id"] for each in answers] == [1, None, 2, "x"]
    assert answers[0]["result"] == "0x52" and answers[3]["result"] == "0x1"
    assert [each["error"]["code"] for each in answers[1:3]] == [
        ethereum_rpc.INVALID_REQUEST,
        ethereum_rpc.METHOD_NOT_FOUND,
    ]


async def test_other_requests_are_none_of_it(chain: PrivateChain) -> None:
    assert (await chain.get("/eth")).status == 404
    assert (await call(chain.app, "POST /eth", b'{"method":"eth_chainId"}')).status == 404


async def test_older_generations_have_none_of_it(oldest: PrivateChain) -> None:
    assert (await oldest.post("/eth", {"method": "eth_chainId"})).status == 404


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    made = PrivateChain(tmp_path_factory.mktemp("node"))
    yield made.node
    made.node.close()


HEXADECIMAL = st.binary(max_size=140).map(hexed) | st.integers(0, 2**300).map(hex)
WORDS = st.sampled_from(("latest", "pending", "earliest", "0x", "0xf", "", "to", "data", "value"))
PLAIN = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9)
CALLS = st.fixed_dictionaries(
    {},
    optional={
        "to": HEXADECIMAL | PLAIN,
        "from": HEXADECIMAL,
        "value": HEXADECIMAL | PLAIN,
        "data": st.binary(max_size=80).map(lambda more: hexed(ethereum.TRANSFER_SELECTOR + more))
        | HEXADECIMAL
        | PLAIN,
        "input": HEXADECIMAL,
    },
)
ARGUMENTS = st.recursive(
    HEXADECIMAL | WORDS | PLAIN | CALLS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=6,
)


@given(st.sampled_from(sorted(ethereum_rpc.METHODS)), st.lists(ARGUMENTS, max_size=3) | ARGUMENTS)
def test_no_argument_is_too_strange(node: Node, method: str, params: object) -> None:
    try:
        body = json.dumps({"id": 1, "method": method, "params": params}, allow_nan=False).encode()
    except ValueError:
        return
    found = asyncio.run(ethereum_rpc.answer(body, node))
    assert isinstance(found, dict) and msgspec.json.encode(found)
    assert ("result" in found) != ("error" in found)
