"""Hints: where people get lost, the answer says what they may have meant."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from soliton.api.app import build_app
from soliton.chain.addresses import address_text, from_public_key, from_public_key_hash
from soliton.chain.transactions import codec
from soliton.chain.transactions.transfer import TYPE as TRANSFER_TYPE
from soliton.chain.transactions.transfer import Transfer
from soliton.crypto import base58
from soliton.node.settings import api_key_hash_text, load_settings
from tests.api.chain import OTHER, OTHER_ADDRESS, RICH, PrivateChain, context_of, make_node
from tests.api.client import KEY, call

HERE = "'R' (82)"
MAINNET = address_text(from_public_key(OTHER.public_key, ord("W")))
PUBLIC_KEY = base58.encode(OTHER.public_key)
COIN = base58.encode(bytes(32))
NOBODY = address_text(from_public_key_hash(bytes(20), ord("R")))


@pytest.mark.parametrize(
    ("target", "hint"),
    [
        (f"/addresses/balance/{MAINNET}",
         f"this address is of the chain 'W' (87), this node is of {HERE}"),
        (f"/addresses/balance/{PUBLIC_KEY}",
         f"this is as long as a public key: the address of that key is {OTHER_ADDRESS}"),
        (f"/addresses/balance/{OTHER_ADDRESS[:-1]}3",
         "the checksum is wrong: a character was mistyped or left out"),
        ("/addresses/balance/alias:R:merry",
         "this is an alias: /alias/by-alias/merry tells its address"),
        ("/addresses/balance/0x" + "00" * 20,
         f"this is an address of Ethereum: here it is {NOBODY}"),
        (f"/assets/details/{COIN}",
         "the chain's own coin has no asset id: ask /addresses/balance/{address}"),
        ("/assets/details/WAVES",
         "the chain's own coin has no asset id: ask /addresses/balance/{address}"),
        (f"/assets/balance/{OTHER_ADDRESS}/WAVES",
         "the chain's own coin has no asset id: ask /addresses/balance/{address}"),
    ],
)  # fmt: skip
async def test_what_was_meant(chain: PrivateChain, target: str, hint: str) -> None:
    answer: Any = (await chain.get(target)).json()
    assert answer["hint"] == hint
    assert list(answer)[-1] == "hint" and set(answer) <= {"error", "message", "hint"}


@pytest.mark.parametrize(
    "target",
    ["/addresses/balance/x", f"/assets/details/{PUBLIC_KEY}", "/assets/details/0",
     f"/transactions/info/{COIN}", f"/blocks/{COIN}", "/blocks/at/9"],
)  # fmt: skip
async def test_where_nothing_can_be_guessed(chain: PrivateChain, target: str) -> None:
    answer = await chain.get(target)
    assert answer.status in (400, 404) and b"hint" not in answer.body


async def test_ids_of_other_things(chain: PrivateChain) -> None:
    name = base58.encode(chain.send(chain.transfer()).id)

    async def hint(target: str) -> object:
        answer: Any = (await chain.get(target)).json()
        return answer["hint"]

    waits = "it waits for a block: ask /transactions/unconfirmed/info/{id}"
    assert await hint(f"/transactions/info/{name}") == waits
    chain.mine()
    block = base58.encode(chain.node.chain.last_block.id)
    assert await hint(f"/transactions/unconfirmed/info/{name}") == (
        "it is in a block: ask /transactions/info/{id}"
    )
    assert (
        await hint(f"/transactions/info/{block}") == "this is the id of a block: ask /blocks/{id}"
    )
    for target in (f"/blocks/{name}", f"/blocks/height/{name}", f"/blocks/headers/{name}"):
        assert await hint(target) == "this is the id of a transaction: ask /transactions/info/{id}"


async def test_a_transaction_of_another_chain(chain: PrivateChain) -> None:
    to = from_public_key(RICH.public_key, ord("W"))
    payload = Transfer(to, None, 1, b"")
    sent = codec.to_json(chain.sign(TRANSFER_TYPE, payload, 3, chain_id=ord("W")))
    answer: Any = (await chain.post("/transactions/broadcast", sent)).json()
    assert answer["error"] == 404
    assert answer["hint"].startswith(f"it was made for the chain 'W' (87), this node is of {HERE}")


async def test_the_hash_in_place_of_the_key(tmp_path: Path, chain: PrivateChain) -> None:
    overrides = {"rest-api.api-key-hash": api_key_hash_text(KEY)}
    settings = load_settings(None, "devnet", data_dir=tmp_path / "other", overrides=overrides)
    node = make_node(settings, chain)
    api = node.settings.rest_api
    context = replace(
        context_of(node), check_api_key=api.check_api_key, is_api_key_hash=api.is_key_hash
    )
    app = build_app(context)
    for key, hinted in ((api_key_hash_text(KEY), True), ("wrong", False), ("", False)):
        answer = await call(app, "GET /wallet/seed", headers={"x-api-key": key})
        assert answer.status == 403
        assert (b"this is the hash of the API key" in answer.body) is hinted
    assert (await call(app, "GET /wallet/seed", headers={"x-api-key": KEY})).status == 200
    node.close()


@pytest.mark.parametrize(
    ("line", "headers", "body", "status", "expected"),
    [
        ("GET /transactions/broadcast", {}, b"", 404,
         {b"allow": b"POST", b"x-hint": b"this path wants POST"}),
        ("GET /transactions/calculateFee", {}, b"", 405,
         {b"allow": b"POST", b"x-hint": b"this path wants POST"}),
        ("POST /blocks/height", {}, b"", 404,
         {b"allow": b"GET", b"x-hint": b"this path wants GET"}),
        ("POST /transactions/broadcast", {}, b"{}", 404,
         {b"x-hint": b"send the body with the header Content-Type: application/json"}),
        ("POST /transactions/broadcast", {"content-type": "application/json"}, b"", 404,
         {b"x-hint": b"this wants a body"}),
        ("GET /addresses/seq/1/b", {}, b"", 404,
         {b"x-hint": b"a parameter of the path or the query is malformed or missing"}),
        ("GET /blocks/last", {"accept": "text/html"}, b"", 404,
         {b"x-hint": b"the header Accept excludes application/json"}),
        ("GET /nowhere", {}, b"", 404, {}),
    ],
)  # fmt: skip
async def test_where_the_answer_is_a_sentence(
    chain: PrivateChain,
    line: str,
    headers: dict[str, str],
    body: bytes,
    status: int,
    expected: dict[bytes, bytes],
) -> None:
    answer = await call(chain.app, line, body, headers)
    assert answer.status == status
    found = {name: answer.headers[name] for name in (b"allow", b"x-hint") if name in answer.headers}
    assert found == expected
