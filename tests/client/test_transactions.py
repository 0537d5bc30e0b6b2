"""Transactions and orders of the library against those that others have recorded."""

from __future__ import annotations

import json
from decimal import Decimal, localcontext
from typing import Any

import pytest

from soliton import Account, Asset, Order, Transaction
from soliton.client.amounts import text
from soliton.crypto import base58
from soliton.errors import InputError
from tests.client.rebuilding import TYPES, remade
from tests.vectors import load_vectors, report

ALICE = Account.from_seed("soliton devnet account 1", "R")
BOB = Account.from_seed("soliton devnet account 2", "R")
USD = Asset("DG2xFkPdDwKUoBkzGAhQtLpSGzfXLiCYPEzeKH2Ad24p", 6)
PAY_IN_ASSETS = (4, 16, 17)
STAMP = 1_700_000_000_000


def recorded() -> list[tuple[str, dict[str, Any]]]:
    """What nodes and the JavaScript library made, as JSON with its id; the accepted ones alone."""
    rows = [("tx_private_chain", each) for each in load_vectors("tx_private_chain")]
    rows += [("tx_js_protobuf", each) for each in load_vectors("tx_js_protobuf")]
    rows += [("tx_scala_bytes_json", each) for each in load_vectors("tx_scala_bytes_json")]
    return [
        (name, each)
        for name, each in rows
        if each.get("json") and each.get("id") and each["type"] in TYPES
    ]


def _chain_id(vector: dict[str, Any]) -> int:
    scheme = vector.get("scheme")
    fields: dict[str, Any] = vector["json"]
    return ord(scheme) if scheme else int(fields.get("chainId") or ord("T"))


def test_accounts_make_what_others_made() -> None:
    """Every type and version: the same fields, handed to an account, have the same id."""
    count: dict[str, int] = {}
    seen: set[tuple[int, int]] = set()
    for name, vector in recorded():
        fields, chain_id = dict(vector["json"]), _chain_id(vector)
        if name == "tx_js_protobuf" and fields.get("description"):
            # Its source is a literal of JavaScript.
            fields["description"] = fields["description"].replace("\\n", "\n")
        if fields.get("feeAssetId") and fields["type"] not in PAY_IN_ASSETS:
            continue  # only a library writes this: nodes do not read it
        try:
            made = remade(fields, chain_id)
        except InputError:
            # A form that breaks a rule is not for an account to make.
            assert vector.get("broadcast_status") != 200, fields
            continue
        assert made.id == vector["id"], fields
        if vector.get("body_bytes"):
            assert made.body.hex() == vector["body_bytes"], fields
        count[name] = count.get(name, 0) + 1
        seen.add((made.type, made.version))
    for name, number in count.items():
        report.ran(name, number)
    assert {number for number, _ in seen} == TYPES
    assert len(seen) >= 25 and sum(count.values()) > 150, (seen, count)


def test_forms_are_read_and_written() -> None:
    """JSON, bytes and messages of a recorded chain, each made of the other."""
    vectors = [each for each in load_vectors("tx_private_chain") if each.get("binary")]
    for vector in vectors:
        chain_id = ord(vector["scheme"])
        of_bytes = Transaction.from_bytes(bytes.fromhex(vector["binary"]), chain_id)
        assert of_bytes.to_bytes().hex() == vector["binary"]
        assert of_bytes.id == vector["id"]
        if vector.get("protobuf_signed"):
            data = bytes.fromhex(vector["protobuf_signed"])
            assert of_bytes.to_protobuf() == data
            of_message = Transaction.from_protobuf(data, chain_id)
            assert of_message == of_bytes
            assert Transaction.from_bytes(data, chain_id) == of_bytes
        if vector["type"] in TYPES:
            text = json.dumps(vector["json"])
            assert Transaction.from_json(text, chain_id) == of_bytes
    assert len(vectors) > 60
    report.ran("tx_private_chain", len(vectors))


def test_an_alias_of_the_first_version_is_told_from_a_message() -> None:
    """Both begin with the same byte."""
    alias = ALICE.alias("some-name", version=1, timestamp=STAMP)
    assert alias.to_bytes()[0] == 10 and alias.to_protobuf()[0] == 10
    assert Transaction.from_bytes(alias.to_bytes(), "R") == alias
    assert Transaction.from_bytes(alias.to_protobuf(), "R") == alias


def test_orders_of_others_are_read_and_written() -> None:
    vectors = [
        each
        for each in load_vectors("orders")
        if each.get("json") and each.get("id") and not each.get("error")
    ]
    made = 0
    for vector in vectors:
        chain_id = ord(vector["scheme"])
        order = Order.from_json(vector["json"], chain_id)
        assert order.id == vector["id"]
        if vector["version"] < 4 and vector.get("binary"):
            data = bytes.fromhex(vector["binary"])
            assert order.to_bytes() == data
            assert Order.from_bytes(data, vector["version"], chain_id) == order
        if vector.get("protobuf_signed"):
            data = bytes.fromhex(vector["protobuf_signed"])
            assert order.to_protobuf() == data
            assert Order.from_bytes(data, 4, chain_id).id == order.id
        inner = order.inner
        if inner.eip712_signature is None and inner.amount_asset != inner.price_asset:
            again = Account.from_public_key(order.sender_public_key, chain_id).order(
                order.side,
                order.amount,
                order.amount_asset,
                order.price,
                order.price_asset,
                matcher=order.matcher_public_key,
                matcher_fee=inner.matcher_fee,
                matcher_fee_asset=base58.encode(inner.matcher_fee_asset or b""),
                price_mode={1: "fixedDecimals", 2: "assetDecimals"}.get(inner.price_mode),
                attachment=inner.attachment,
                timestamp=order.timestamp,
                expiration=order.expiration,
                version=order.version,
            )
            assert again.id == order.id
            made += 1
    assert len(vectors) >= 8 and made >= 8, (len(vectors), made)
    report.ran("orders", len(vectors))


def test_a_decimal_price_follows_the_decimals_of_both_assets() -> None:
    """As the matcher's page has it: 10 to the power of 8 + price asset - amount asset."""
    waves = ALICE.buy("1", None, "12.34", USD, matcher=BOB.public_key)
    assert waves.amount == 100_000_000 and waves.price == 12_340_000
    fixed = ALICE.buy("1", None, "12.34", USD, matcher=BOB.public_key, version=4)
    assert fixed.price == 1_234_000_000
    assert ALICE.sell(5, USD, 7, None, matcher=BOB.public_key).side == "sell"


def test_amounts_have_all_their_digits_whatever_the_callers_context() -> None:
    with localcontext(prec=4):
        assert ALICE.transfer(BOB, "12345.6789").data.amount == 1_234_567_890_000
        assert ALICE.transfer(BOB, Decimal("0.12345678")).data.amount == 12_345_678
        assert ALICE.buy(1, None, "12345.678901", USD, matcher=BOB.public_key).price == 12345678901
        assert text(1_234_567_890_001) == "12345.67890001"


def test_several_sign() -> None:
    shared = Account.from_public_key(ALICE.public_key, "R")
    draft = shared.transfer(BOB, 5, fee=500_000)
    assert not draft.is_signed and not shared.can_sign
    signed = draft.signed_by(BOB, 2).signed_by(ALICE, 0)
    assert [bool(proof) for proof in signed.proofs] == [True, False, True]
    assert signed.id == draft.id
    with pytest.raises(InputError):
        signed.signed_by(BOB, 8)
    with pytest.raises(InputError, match="private key"):
        draft.signed_by(shared)


def test_two_that_say_the_same_are_two() -> None:
    assert len({ALICE.transfer(BOB, 1).id for _ in range(500)}) == 500


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: ALICE.transfer("nobody", 1),
        lambda: ALICE.transfer(BOB, 0),
        lambda: ALICE.transfer(BOB, "0.123456789"),
        lambda: ALICE.transfer(BOB, "1e400"),
        lambda: ALICE.transfer(BOB, "NaN"),
        lambda: ALICE.transfer(BOB, "1.00000000000000000000000000000001"),
        lambda: ALICE.transfer(BOB, "1e-2000000"),
        lambda: ALICE.transfer(BOB, 1.5),  # type: ignore[arg-type]
        lambda: ALICE.buy(1, None, "much", USD, matcher=BOB.public_key),
        lambda: ALICE.buy(1, None, 0.5, USD, matcher=BOB.public_key),  # type: ignore[arg-type]
        lambda: ALICE.transfer(BOB, "1", "DG2xFkPdDwKUoBkzGAhQtLpSGzfXLiCYPEzeKH2Ad24p"),
        lambda: ALICE.transfer(BOB, 1, "not an id"),
        lambda: ALICE.transfer(BOB, 2**63),
        lambda: ALICE.transfer(BOB.on("W"), 1),
        lambda: ALICE.transfer(BOB, 1, attachment="\ud800"),
        lambda: ALICE.issue("\ud800old", 1),
        lambda: ALICE.issue("Gold", 1, description="\ud800"),
        lambda: ALICE.data({"key": "\ud800"}),
        lambda: ALICE.data({"\ud800": 1}),
        lambda: ALICE.invoke(BOB, "f", "\ud800"),
        lambda: ALICE.invoke(BOB, "\ud800"),
        lambda: ALICE.burn(None, 1),
        lambda: ALICE.set_script("no base64!"),
        lambda: ALICE.alias("x"),
        lambda: ALICE.invoke(BOB, "f", [[]] * 3, 1.5),  # type: ignore[arg-type]
        lambda: ALICE.transfer(BOB, 1, version=9, attachment=bytes(5_000)),
        lambda: ALICE.data({"": 1}),
        lambda: ALICE.data({"a": 1.5}),  # type: ignore[dict-item]
        lambda: ALICE.order("hold", 1, None, 1, None, matcher=BOB.public_key),
        lambda: Account.from_private_key("abc", "R"),
        lambda: Account.from_public_key("abc", "R"),
        lambda: Account.from_seed("a", "RR"),
        lambda: Account.from_seed("a", 256),
        lambda: Transaction.from_json("[]", "R"),
        lambda: Transaction.from_json("{", "R"),
        lambda: Transaction.from_json("[" * 100_000, "R"),
        lambda: Transaction.from_json({"type": 4}, "R"),
        lambda: Transaction.from_bytes(b"", "R"),
        lambda: Transaction.from_bytes(b"\x0a\xff\xff", "R"),
        lambda: Order.from_json({}, "R"),
        lambda: Order.from_bytes(b"", 3, "R"),
        lambda: Order.from_protobuf(b"\xff", "R"),
    ],
)
def test_what_cannot_be_is_refused(wrong: Any) -> None:
    with pytest.raises(InputError):
        wrong()


def test_a_list_that_holds_itself_is_refused() -> None:
    endless: list[Any] = []
    endless.append(endless)
    with pytest.raises(InputError):
        ALICE.invoke(BOB, "f", endless)
