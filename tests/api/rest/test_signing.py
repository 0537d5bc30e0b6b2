"""/transactions/sign and /transactions/calculateFee."""

from __future__ import annotations

from typing import Any

import pytest

from soliton.chain.addresses import address_text, parse_address
from soliton.chain.transactions import json_reader
from soliton.crypto import base58
from soliton.crypto.curve25519 import verify
from tests.api.chain import (
    JSON,
    OTHER,
    OTHER_ADDRESS,
    RICH,
    RICH_ADDRESS,
    WITH_KEY,
    PrivateChain,
    address_of,
)
from tests.api.client import call

SIGN = "/transactions/sign"
TRANSFER = {
    "type": 4,
    "version": 2,
    "sender": RICH_ADDRESS,
    "recipient": OTHER_ADDRESS,
    "amount": 1,
    "fee": 100_000,
}
NO_KEY = {"error": 115, "message": "no private key for sender address in wallet"}


def error(code: int, message: str) -> dict[str, object]:
    return {"error": code, "message": message}


async def sign(chain: PrivateChain, body: object, path: str = SIGN) -> dict[str, Any]:
    answer = await chain.post(path, body, WITH_KEY)
    found = answer.json()
    assert isinstance(found, dict)
    return {"http": answer.status, **found}


async def test_signing_needs_the_key(chain: PrivateChain) -> None:
    for headers in ({}, {"x-api-key": "wrong"}):
        answer = await chain.post(SIGN, TRANSFER, headers)
        assert (answer.status, answer.plain()) == (403, error(2, "Provided API key is not correct"))
    assert (await chain.get(SIGN)).status == 403
    assert (await call(chain.app, f"GET {SIGN}", headers=WITH_KEY)).status == 405


@pytest.mark.parametrize("path", [SIGN, f"{SIGN}/"])
async def test_the_nodes_wallet_signs(chain: PrivateChain, path: str) -> None:
    ignored = {"proofs": ["1"], "signature": "2", "senderPublicKey": "0", "feeAsset": "x"}
    signed = await sign(chain, TRANSFER | ignored, path)
    assert signed.pop("http") == 200
    transaction = json_reader.read_signed(signed, ord("R"))
    assert transaction.sender_public_key == RICH.public_key
    assert len(transaction.proofs) == 1
    assert verify(RICH.public_key, transaction.body, transaction.proofs[0])
    assert signed["timestamp"] == chain.now and signed["version"] == 2
    assert len(chain.node.pool) == 0, "signing does not send"
    assert (await chain.post("/transactions/broadcast", signed)).status == 200


async def test_another_account_may_sign(chain: PrivateChain) -> None:
    other = (await call(chain.app, "POST /addresses", headers=WITH_KEY)).json()
    assert isinstance(other, dict)
    keys = chain.node.wallet.key(parse_address(other["address"], ord("R")))
    assert keys is not None
    signed = await sign(chain, TRANSFER, f"{SIGN}/{other['address']}")
    transaction = json_reader.read_signed(signed, ord("R"))
    assert signed["sender"] == RICH_ADDRESS
    assert verify(keys.public_key, transaction.body, transaction.proofs[0])
    refused = await sign(chain, TRANSFER, f"{SIGN}/{OTHER_ADDRESS}")
    assert NO_KEY.items() <= refused.items()
    wrong = await sign(chain, TRANSFER, f"{SIGN}/x")
    assert wrong == {"http": 400, **error(102, "invalid address")}


@pytest.mark.parametrize(
    ("left_out", "member", "value"), [("version", "version", 1), ("timestamp", "timestamp", None)]
)
async def test_defaults(chain: PrivateChain, left_out: str, member: str, value: int | None) -> None:
    body = {name: TRANSFER[name] for name in TRANSFER if name != left_out}
    signed = await sign(chain, body)
    assert signed[member] == (chain.now if value is None else value)


async def test_a_time_that_is_given_stays(chain: PrivateChain) -> None:
    assert (await sign(chain, TRANSFER | {"timestamp": 5}))["timestamp"] == 5


async def test_data_is_signed_too(chain: PrivateChain) -> None:
    entries = [{"key": "a", "type": "integer", "value": 1}]
    body = {"type": 12, "sender": RICH_ADDRESS, "data": entries, "fee": 100_000}
    signed = await sign(chain, body)
    assert (signed["http"], signed["version"], signed["data"]) == (200, 1, entries)


REFUSED: list[tuple[dict[str, Any], dict[str, object]]] = [
    ({"sender": OTHER_ADDRESS}, NO_KEY),
    ({"sender": "x"}, error(102, "invalid address")),
    ({"recipient": "x"}, error(102, "invalid address")),
    ({"amount": 0}, error(115, "non-positive amount: 0 of waves")),
    ({"fee": 0}, error(112, "insufficient fee")),
    ({"type": 2}, {"http": 501, **error(312, "transaction type not supported")}),
    ({"type": 99}, error(199, "Bad transaction type (99) and version (2)")),
    ({"version": 9}, error(199, "Bad transaction type (4) and version (9)")),
    ({"version": 0}, error(199, "Bad transaction type (4) and version (0)")),
]


@pytest.mark.parametrize(("changes", "expected"), REFUSED)
async def test_refused(
    chain: PrivateChain, changes: dict[str, Any], expected: dict[str, object]
) -> None:
    found = await sign(chain, TRANSFER | changes)
    assert ({"http": 400} | expected).items() <= found.items()


@pytest.mark.parametrize("member", ["type", "sender", "recipient", "amount", "fee"])
async def test_what_a_request_needs(chain: PrivateChain, member: str) -> None:
    body = {name: TRANSFER[name] for name in TRANSFER if name != member}
    found = await sign(chain, body)
    assert (found["http"], found["error"]) == (400, 1)
    assert found["validationErrors"] == {
        f"obj.{member}": [{"msg": ["error.path.missing"], "args": []}]
    }


async def test_the_oldest_generation(oldest: PrivateChain) -> None:
    own = address_text(address_of(RICH, oldest))
    recipient = address_text(address_of(OTHER, oldest))
    body = TRANSFER | {"sender": own, "recipient": recipient}
    signed = await sign(oldest, body)
    assert signed["http"] == 200 and signed["sender"] == own
    cases: list[tuple[dict[str, Any], dict[str, object]]] = [
        ({"type": 2}, error(199, "Bad transaction type (2) and version (2)")),
        ({"version": 3}, error(199, "Bad transaction type (4) and version (3)")),
        ({"amount": 0}, error(111, "negative amount: 0 of zbs")),
        ({"amount": "x"}, error(1, "failed to parse json message")),
        ({"sender": recipient}, NO_KEY),
    ]
    for changes, expected in cases:
        found = await sign(oldest, body | changes)
        assert (changes, expected.items() <= found.items()) == (changes, True), found
    refused = (await oldest.post("/transactions/broadcast", signed)).json()
    assert isinstance(refused, dict)
    assert refused["error"] == 112 and refused["tx"]["sender"] == own
    assert refused["message"].startswith("State check failed. Reason: ")


async def test_the_least_fee(chain: PrivateChain) -> None:
    key = base58.encode(RICH.public_key)
    cases: list[tuple[dict[str, Any], int, dict[str, object]]] = [
        ({}, 200, {"feeAssetId": None, "feeAmount": 100_000}),
        ({"type": 12, "data": [{"key": "k", "type": "string", "value": "x" * 2_000}]}, 200,
         {"feeAssetId": None, "feeAmount": 200_000}),
        ({"senderPublicKey": "0"}, 400, error(102, "invalid address")),
        ({"type": 1}, 400, error(199, "Unsupported transaction type: Genesis")),
        ({"type": 2}, 400, error(199, "Unsupported transaction type: Payment")),
        ({"type": 18}, 400, error(199, "Unsupported transaction type: Ethereum")),
        *(({"version": version}, 400, {
            **error(1, "failed to parse json message"), "cause": None,
            "validationErrors": {"obj": [{"msg": [words], "args": []}]},
        }) for version, words in (
            ("x", "Can't parse version"), (True, "error.expected.jsstring"))),
        ({"feeAssetId": "1" * 32}, 400, error(
            199, f"Asset {'1' * 32} does not exist, cannot be used to pay fees")),
    ]  # fmt: skip
    for changes, status, expected in cases:
        body = {"type": 4, "senderPublicKey": key, "recipient": OTHER_ADDRESS, "amount": 1}
        answer = await chain.post("/transactions/calculateFee", body | changes)
        assert (changes, answer.status, answer.json()) == (changes, status, expected)
    assert (await chain.get("/transactions/calculateFee")).status == 405
    no_key = await call(chain.app, "POST /transactions/calculateFee", b'{"type":4}', JSON)
    assert no_key.status == 400
