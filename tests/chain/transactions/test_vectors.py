"""Transactions recorded elsewhere: bytes, ids, JSON and signatures must come out the same.

One runner per file. Vectors that record something else than a transaction are skipped by name.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from msgspec import UNSET

from soliton.chain.transactions import codec, json_reader
from soliton.chain.transactions.model import AnyTransaction
from soliton.chain.transactions.table import type_by_id
from soliton.crypto import base58
from soliton.crypto.curve25519 import verify
from soliton.crypto.hashes import blake2b256
from soliton.errors import SolitonError
from tests.vectors import load_vectors, report

Vector = dict[str, Any]

EMPTY_SCRIPT = "base64:"
QUIRKS: list[tuple[str, Callable[[Vector], bool]]] = [
    ("no JSON recorded", lambda v: "json" not in v and "binary" not in v),
    (
        "a line break was recorded as a backslash and a letter",
        lambda v: "\\n" in v.get("json", {}).get("description", ""),
    ),
    ("the JSON holds a placeholder", lambda v: "$" in json.dumps(v.get("json"))),
    (
        "the Go node's JSON holds no script where it means an empty one",
        lambda v: v.get("json", {}).get("script") == EMPTY_SCRIPT and "body_hash" in v,
    ),
    (
        "the Go node's JSON leaves the call of the default function out",
        lambda v: v["type"] == 16 and "body_hash" in v and v["json"]["call"] is None,
    ),
    (
        "prices of an exchange are compared by the ledger",
        lambda v: "invalid price: tx.Price" in str(v.get("error")),
    ),
]
"""What is left out, and how it is recognised."""


def supported(name: str) -> Iterator[Vector]:
    """The vectors of a file without quirks; how many there are of both goes to the report."""
    ran = 0
    for vector in load_vectors(name):
        reasons = [reason for reason, applies in QUIRKS if applies(vector)]
        if reasons:
            report.skipped(name, 1, reasons[0])
        else:
            ran += 1
            yield vector
    report.ran(name, ran)


def unsigned(obj: Vector, chain_id: int) -> AnyTransaction:
    """The transaction that a JSON object describes, of any type, also one that no client sends."""
    kind = type_by_id(obj["type"])
    values = {}
    for field in kind.fields:
        if obj.get(field.key) is not None or field.default is UNSET:
            values[field.attribute] = field.kind.json.read(obj.get(field.key), chain_id)
        else:
            values[field.attribute] = field.default
    key = obj.get("senderPublicKey")
    asset = obj.get("feeAssetId")
    return codec.build(
        kind,
        kind.payload(**values),
        version=obj["version"],
        chain_id=chain_id,
        sender_public_key=b"" if key is None else base58.decode(key),
        fee=obj.get("fee", 0),
        fee_asset_id=None if asset is None else base58.decode(asset),
        timestamp=obj.get("timestamp", 0),
        proofs=tuple(map(base58.decode, obj.get("proofs", [obj.get("signature", "")]))),
    )


def home(obj: Vector, scheme: str) -> int:
    """The chain id of the recipient: some tests of the Go node use mainnet's under another id."""
    transfers = obj.get("transfers") or [{}]
    recipient = obj.get("recipient", transfers[0].get("recipient"))
    if recipient is None:
        return ord(scheme)
    if recipient.startswith("alias:"):
        return ord(recipient[6])
    return base58.decode(recipient)[1]


def check_legacy(vector: Vector, chain_id: int) -> AnyTransaction:
    """Bytes to transaction and back, with id, signed bytes and signature."""
    data = bytes.fromhex(vector["binary"])
    transaction = codec.decode_legacy(data, chain_id)
    assert transaction.type_id == vector["type"]
    assert codec.encode(transaction) == data
    expected = vector.get("id", vector["json"].get("id"))
    if expected is not None:
        assert base58.encode(transaction.id) == expected
    if "body_bytes" in vector:
        assert transaction.body.hex() == vector["body_bytes"]
    check_signature(vector, transaction)
    return transaction


def check_signature(vector: Vector, transaction: AnyTransaction) -> None:
    valid = vector.get("signature_valid")
    if valid is not None:
        signer = vector.get("verify_pk")
        key = transaction.sender_public_key if signer is None else base58.decode(signer)
        assert verify(key, transaction.body, transaction.proofs[0]) is valid


def check_json(transaction: AnyTransaction) -> None:
    """What is printed can be read again, when it is valid and of a kind that clients send."""
    printed = json.loads(json.dumps(codec.to_json(transaction)))
    assert printed["id"] == base58.encode(transaction.id)
    if type_by_id(transaction.type_id).versioned and is_valid(transaction):
        assert json_reader.read_signed(printed, transaction.chain_id) == transaction


def is_valid(transaction: AnyTransaction) -> bool:
    try:
        codec.validate(transaction)
    except SolitonError:
        return False
    return True


def check_protobuf(vector: Vector, chain_id: int) -> AnyTransaction:
    data = bytes.fromhex(vector["protobuf_signed"])
    transaction = codec.decode_protobuf(data, chain_id)
    assert codec.encode_protobuf(transaction) == data
    assert base58.encode(transaction.id) == vector["id"]
    if not vector.get("binary"):
        assert codec.encode(transaction) == data
        assert transaction.body.hex() == vector["protobuf_unsigned"]
    check_signature(vector, transaction)
    return transaction


def test_payments_of_mainnet() -> None:
    for vector in supported("tx_mainnet_payment"):
        if "binary" in vector:
            transaction = check_legacy(vector, ord("W"))
        else:
            transaction = unsigned(vector["json"], ord("W"))
            assert base58.encode(transaction.id) == vector["id"]
            assert codec.to_json(transaction)["signature"] == vector["json"]["signature"]
        for key in ("recipient", "amount", "timestamp"):
            assert codec.to_json(transaction)[key] == vector["json"][key]
        codec.validate(transaction)


@pytest.mark.parametrize("name", ["tx_gowaves_tests", "tx_private_chain"])
def test_transactions_of_the_go_node(name: str) -> None:
    for vector in supported(name):
        chain_id, recipient_chain = ord(vector["scheme"]), home(vector["json"], vector["scheme"])
        seen = []
        if vector.get("binary"):
            seen.append(check_legacy(vector, recipient_chain))
        if recipient_chain != chain_id:
            # Protobuf holds only 20 bytes of an address: it comes out with the id of the scheme.
            report.skipped(name, 0, "protobuf form: the recipient is of another chain")
        elif vector.get("protobuf_signed"):
            seen.append(check_protobuf(vector, chain_id))
        assert seen
        for transaction in seen:
            assert transaction == seen[0]
            check_json(transaction)
        if type_by_id(vector["type"]).versioned and is_valid(seen[0]):
            obj = {**vector["json"], "chainId": recipient_chain}
            assert json_reader.read_signed(obj, recipient_chain) == seen[0]


def test_bytes_and_json_of_the_reference_node() -> None:
    for vector in supported("tx_scala_bytes_json"):
        transaction = check_legacy(vector, ord("T"))
        assert codec.to_json(transaction) == vector["json"]
        check_json(transaction)


def test_json_of_the_reference_node() -> None:
    for vector in supported("tx_scala_json"):
        transaction = json_reader.read_signed(vector["json"], ord("T"))
        assert base58.encode(transaction.id) == vector["id"]
        assert codec.to_json(transaction) == vector["json"]


def longs(value: Any, key: str = "") -> Any:
    """Longs that the JavaScript library writes as strings, as numbers: a node takes only those."""
    if isinstance(value, dict):
        integer = value.get("type") == "integer"
        return {k: longs(v, "amount" if integer and k == "value" else k) for k, v in value.items()}
    if isinstance(value, list):
        return [longs(item) for item in value]
    if isinstance(value, str) and key in ("amount", "fee", "timestamp", "quantity"):
        return int(value)
    return value


def test_protobuf_of_the_javascript_library() -> None:
    valid = 0
    for vector in supported("tx_js_protobuf"):
        obj = longs(vector["json"])
        transaction = unsigned(obj, obj["chainId"])
        assert transaction.body.hex() == vector["protobuf_unsigned"]
        assert base58.encode(transaction.id) == vector["id"]
        signed = codec.decode_protobuf(codec.encode_protobuf(transaction), obj["chainId"])
        assert signed == transaction
        # Some of these show only how values are written: an amount of zero is no transfer.
        # A node does not read the asset of a fee where a type pays in the coin alone.
        readable = type_by_id(vector["type"]).fee_in_asset or obj.get("feeAssetId") is None
        if is_valid(transaction) and readable:
            assert json_reader.read_signed(obj, obj["chainId"]) == transaction
            valid += 1
    assert valid >= 10


def test_longs_as_strings_are_refused() -> None:
    refused = 0
    for vector in load_vectors("tx_js_protobuf"):
        if longs(vector["json"]) != vector["json"]:
            with pytest.raises(SolitonError):
                json_reader.read_signed(vector["json"], vector["json"]["chainId"])
            refused += 1
    assert refused >= 2


def test_transactions_of_real_networks() -> None:
    for vector in supported("tx_real_network"):
        transaction = unsigned(vector["json"], home(vector["json"], vector["scheme"]))
        assert transaction.body.hex() == vector["body_bytes"]
        assert base58.encode(blake2b256(transaction.body)) == vector["body_hash"]
        if type_by_id(vector["type"]).make_id is None:
            assert base58.encode(transaction.id) == vector["body_hash"]
        if "signature" in vector:
            signature = base58.decode(vector["signature"])
            assert verify(base58.decode(vector["public"]), transaction.body, signature)


def accepted(obj: Vector, chain_id: int) -> bool:
    try:
        return is_valid(unsigned(obj, chain_id))
    except SolitonError:
        return False


def test_rules_without_state() -> None:
    for vector in supported("tx_validation"):
        chain_id = ord(vector["scheme"])
        assert accepted(vector["json"], chain_id) is vector["ok"], vector
