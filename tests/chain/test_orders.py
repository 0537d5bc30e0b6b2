"""Orders: recorded ones, wallets' signatures, round trips, damaged bytes.

Their rules are in the table of exchanges (``transactions/test_exchange``).
"""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from soliton.chain import orders, protobuf, typed_data
from soliton.chain.addresses import address_text, from_public_key
from soliton.chain.errors import FormatError, ValueRuleError
from soliton.chain.orders import Order
from soliton.chain.proto import order_pb2
from soliton.chain.transactions import json_reader
from soliton.crypto import base58, keys, secp256k1
from soliton.errors import SolitonError
from tests.chain.strategies import chain_ids
from tests.chain.transactions.cases import order as order_json
from tests.chain.transactions.further import order_values
from tests.vectors import load_vectors, report

T = ord("T")
any_order = chain_ids.flatmap(order_values)
binary_order = st.tuples(chain_ids, st.integers(1, 3)).flatmap(lambda pair: order_values(*pair))


def to_data(order: Order) -> bytes:
    return protobuf.serialize(orders.to_message(order))


def from_data(data: bytes, chain_id: int) -> Order:
    return orders.from_message(protobuf.parse(order_pb2.Order, data), chain_id)


# --- recorded -------------------------------------------------------------------------------------


def test_orders_of_the_go_node() -> None:
    vectors = load_vectors("orders")
    for vector in vectors:
        chain_id = ord(vector["scheme"])
        order = orders.from_json(vector["json"], chain_id)
        assert order.body.hex() == vector["body_bytes"]
        if "id" in vector["json"]:
            assert base58.encode(order.id) == vector["json"]["id"]
        if vector.get("protobuf_signed"):
            data = bytes.fromhex(vector["protobuf_signed"])
            assert from_data(data, chain_id) == order
            assert to_data(order) == data
        # A wallet's signature always has some signer: it counts whose it is said to be.
        claimed = base58.decode(vector["json"]["senderPublicKey"])
        valid = orders.signature_is_valid(order) and order.sender_public_key == claimed
        assert valid is vector["signature_valid"]
    report.ran("orders", len(vectors))


def test_orders_of_the_matchers_library(shared: Path) -> None:
    path = shared / "vectors" / "matcher-orders.json"
    document: dict[str, list[Any]] = json.loads(path.read_text())
    groups = [document["orders"], *(item["orders"] for item in document["transactions"])]
    recorded = [obj for group in groups for obj in group]
    for obj in recorded:
        order = orders.from_json(obj, base58.decode(obj["sender"])[1])
        assert base58.encode(order.id) == obj["id"]
        assert base58.encode(order.body) == obj["_body"]
        assert orders.signature_is_valid(order)
        expected = {key: value for key, value in obj.items() if key != "_body"}
        pair = {k: None if v == "WAVES" else v for k, v in obj["assetPair"].items()}
        assert orders.to_json(order) == {**expected, "assetPair": pair}
    exchanged = [obj for item in document["transactions"] for obj in item["txs"]]
    for obj in exchanged:
        transaction = json_reader.read_signed(obj, ord("D"))
        assert base58.encode(transaction.id) == obj["id"]
    report.ran("matcher-orders", len(recorded) + len(exchanged))


# --- wallets --------------------------------------------------------------------------------------

WALLET = bytes(range(1, 33))


def sold_by_a_wallet() -> dict[str, Any]:
    """JSON of an order with the signature of ``WALLET``."""
    obj = order_json("sell", version=4, proofs=[])
    r, s, recovery = secp256k1.sign(WALLET, typed_data.order_hash(orders.from_json(obj, T)))
    signature = r.to_bytes(32, "big") + s.to_bytes(32, "big") + bytes((27 + recovery,))
    del obj["senderPublicKey"]
    return {**obj, "eip712Signature": "0x" + signature.hex()}


def test_the_sender_is_recovered_from_a_wallets_signature() -> None:
    sold = sold_by_a_wallet()
    order = orders.from_json(sold, T)
    key = secp256k1.public_key(WALLET)
    assert order.sender_public_key == key
    printed = orders.to_json(order)
    assert printed["sender"] == address_text(from_public_key(key, T))
    assert (printed["signature"], printed["proofs"]) == ("", [])
    assert printed["eip712Signature"] == sold["eip712Signature"]


def test_numbers_of_64_bytes_mean_the_same() -> None:
    sold = sold_by_a_wallet()
    signature = bytes.fromhex(sold["eip712Signature"][2:])
    wide = bytes(32) + signature[:32] + bytes(32) + signature[32:]
    order = orders.from_json({**sold, "eip712Signature": "0x" + wide.hex()}, T)
    assert order.sender_public_key == secp256k1.public_key(WALLET)
    assert order.id != orders.from_json(sold, T).id


@pytest.mark.parametrize(
    ("v", "chain_id", "expected"),
    [(0, T, 0), (1, T, 1), (27, T, 0), (28, T, 1), (203, T, 0), (204, T, 1), (29, T, -174)],
)
def test_recovery_ids(v: int, chain_id: int, expected: int) -> None:
    assert orders.recovery_id(v, chain_id) == expected


@given(chain_ids.flatmap(lambda chain_id: order_values(chain_id, 4)))
def test_what_a_wallet_signs_names_it(order: Order) -> None:
    secret = bytes(31) + b"\7"
    r, s, recovery = secp256k1.sign(secret, typed_data.order_hash(order))
    for v in (recovery, 27 + recovery):
        signature = r.to_bytes(32, "big") + s.to_bytes(32, "big") + bytes((v,))
        signed = orders.build(msgspec.structs.replace(order, eip712_signature=signature))
        assert signed.sender_public_key == secp256k1.public_key(secret)
        assert orders.signature_is_valid(signed)


def test_the_longest_attachment_is_signed_in_base64() -> None:
    """The reference's text of 1,024 bytes. Expected value: web3j 4.9.8 (``hashStructuredData``)."""
    text = "base64:" + base64.b64encode(bytes(1_024)).decode()
    order = orders.from_json(order_json("sell", version=4, proofs=[], attachment=text), T)
    assert order.attachment == bytes(1_024)
    assert orders.to_json(order)["attachment"] == text
    expected = "d7c62d29247dfe0ffdb02263f6e98213c41917f467964c945bd1a10a922d85a6"
    assert typed_data.order_hash(order).hex() == expected
    shorter = msgspec.structs.replace(order, attachment=bytes(1_023))
    assert orders.to_json(shorter)["attachment"] == "1" * 1_023


@pytest.mark.parametrize("length", [0, 64, 66, 128, 130])
def test_signatures_of_other_lengths_have_no_signer(length: int) -> None:
    order = orders.from_json({**sold_by_a_wallet(), "eip712Signature": "0x" + "11" * length}, T)
    assert order.sender_public_key == b""
    assert not orders.signature_is_valid(order)


# --- round trips ----------------------------------------------------------------------------------


@given(any_order)
def test_messages_round_trip(order: Order) -> None:
    assert from_data(to_data(order), order.chain_id) == order


@given(any_order.filter(lambda order: order.sender_public_key != b""))
def test_json_round_trip(order: Order) -> None:
    printed = json.loads(json.dumps(orders.to_json(order)))
    assert orders.from_json(printed, order.chain_id) == order


@given(binary_order)
def test_bytes_round_trip(order: Order) -> None:
    data = orders.to_bytes(order)
    assert orders.from_bytes(order.version, data, order.chain_id) == order
    for end in range(len(data)):
        with pytest.raises(FormatError):
            orders.from_bytes(order.version, data[:end], order.chain_id)
    with pytest.raises(FormatError):
        orders.from_bytes(order.version, data + b"\0", order.chain_id)


@given(binary_order, st.data())
def test_damaged_bytes(order: Order, draw: st.DataObject) -> None:
    data = bytearray(orders.to_bytes(order))
    at = draw.draw(st.integers(0, len(data) - 1))
    data[at] ^= 1 << draw.draw(st.integers(0, 7))
    try:
        again = orders.from_bytes(order.version, bytes(data), order.chain_id)
    except SolitonError:
        return
    assert orders.to_bytes(again) == data


@given(st.binary(max_size=200))
def test_random_messages(data: bytes) -> None:
    try:
        order = from_data(data, T)
    except SolitonError:
        return
    assert from_data(to_data(order), T) == order


@given(any_order)
def test_signed_bytes_are_the_body(order: Order) -> None:
    pair = keys.key_pair("somebody")
    plain = msgspec.structs.replace(
        order, sender_public_key=pair.public_key, eip712_signature=None, proofs=()
    )
    signed = orders.sign(orders.build(plain), pair.private_key)
    assert orders.signature_is_valid(signed)
    assert signed.id == orders.build(plain).id
    assert not orders.signature_is_valid(plain)


# --- refusals -------------------------------------------------------------------------------------


def test_versions_without_a_binary_form() -> None:
    order = orders.from_json({**order_json("buy"), "version": 4}, T)
    with pytest.raises(FormatError, match="no binary form"):
        orders.to_bytes(order)
    with pytest.raises(FormatError, match="no binary form"):
        orders.from_bytes(4, bytes(300), T)
    with pytest.raises(FormatError, match="begin"):
        orders.from_bytes(2, b"\3" + bytes(300), T)


def test_version_1_holds_one_signature() -> None:
    obj = {**order_json("buy"), "version": 1}
    for proofs in ([], [base58.encode(bytes(63))], [base58.encode(bytes(64))] * 2):
        order = orders.from_json({**obj, "proofs": proofs}, T)
        with pytest.raises(FormatError, match="one signature"):
            orders.to_bytes(order)


def test_a_version_that_is_not_named_follows_from_the_proofs() -> None:
    obj = order_json("buy")
    del obj["version"]
    assert orders.from_json(obj, T).version == 1
    obj["proofs"] = []
    assert orders.from_json(obj, T).version == 2
    obj["signature"] = base58.encode(bytes(64))
    del obj["proofs"]
    assert orders.from_json(obj, T).version == 1


@pytest.mark.parametrize(
    "change",
    [
        lambda message: message.ClearField("sender_public_key"),
        lambda message: setattr(message, "version", 0),
        lambda message: setattr(message, "version", 128),
        lambda message: setattr(message, "order_side", 2),
        lambda message: setattr(message, "price_mode", 3),
        lambda message: setattr(message, "sender_public_key", bytes(31)),
        lambda message: setattr(message, "matcher_public_key", bytes(33)),
        lambda message: setattr(message.asset_pair, "price_asset_id", bytes(31)),
        lambda message: setattr(message.matcher_fee, "asset_id", bytes(33)),
    ],
)
def test_messages_that_are_refused(change: Any) -> None:
    message = orders.to_message(orders.from_json(order_json("buy"), T))
    orders.from_message(message, T)
    change(message)
    with pytest.raises(FormatError):
        orders.from_message(message, T)


def test_too_many_proofs_are_not_even_read() -> None:
    with pytest.raises(ValueRuleError, match="more than 127 proofs"):
        orders.from_json({**order_json("buy"), "proofs": [""] * 1_000}, T)
