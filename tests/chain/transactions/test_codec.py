"""Transactions in every version: round trips of all forms, and bytes that are no transaction."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from soliton.chain.addresses import from_public_key
from soliton.chain.errors import FormatError, UnsupportedTransaction, WrongChainId
from soliton.chain.transactions import codec, json_reader
from soliton.chain.transactions.model import AnyTransaction
from soliton.chain.transactions.table import type_by_id
from soliton.chain.transactions.transfer import Transfer
from soliton.chain.values import entry_bytes, read_entry
from soliton.crypto import keys
from soliton.crypto.curve25519 import verify
from soliton.errors import SolitonError
from tests.chain.strategies import data_entries, has_legacy_form, transactions

T = ord("T")


@given(transactions())
def test_bytes_round_trip(transaction: AnyTransaction) -> None:
    data = codec.encode(transaction)
    decode = codec.decode_legacy if has_legacy_form(transaction) else codec.decode_protobuf
    assert decode(data, transaction.chain_id) == transaction


@given(transactions())
def test_protobuf_round_trip(transaction: AnyTransaction) -> None:
    data = codec.encode_protobuf(transaction)
    assert codec.decode_protobuf(data, transaction.chain_id) == transaction
    assert codec.decode_trusted(data, transaction.chain_id) == transaction


def test_only_own_bytes_are_taken_as_they_are() -> None:
    """Fields of a message can come in any order: who signed such bytes has not signed ours."""
    made = codec.build(
        type_by_id(4),
        Transfer(from_public_key(bytes(32), T), None, 1, b""),
        version=3,
        chain_id=T,
        sender_public_key=bytes(32),
        fee=1,
        timestamp=1,
        proofs=(b"proof",),
    )
    # The chain id, field 1, moves from the beginning of the message to its end.
    tag_and_chain_id, rest = made.body[:2], made.body[2:]
    assert tag_and_chain_id == bytes((8, T))
    own = codec.encode_protobuf(made)
    foreign = own.replace(made.body, rest + tag_and_chain_id)
    assert foreign != own
    assert codec.decode_protobuf(foreign, T) == made


@given(transactions(kinds=(4, 12)))
def test_json_round_trip(transaction: AnyTransaction) -> None:
    printed = json.dumps(codec.to_json(transaction), ensure_ascii=False)
    assert json_reader.read_signed(json.loads(printed), transaction.chain_id) == transaction


@given(data_entries(deletions=False))
def test_entry_round_trip(entry: object) -> None:
    data = entry_bytes(entry)  # type: ignore[arg-type]
    assert read_entry(b"before" + data + b"after", 6) == (entry, 6 + len(data))


@given(transactions(kinds=(2, 4, 12)))
def test_signature_is_over_the_body(transaction: AnyTransaction) -> None:
    pair = keys.key_pair("somebody")
    signed = codec.sign(transaction, pair.private_key)
    assert verify(pair.public_key, transaction.body, signed.proofs[0])
    assert signed.body == transaction.body


def refuses_or_reads(data: bytes, chain_id: int = T) -> None:
    """Either a typed refusal, or a transaction that is written exactly as it was read."""
    try:
        transaction = codec.decode_legacy(data, chain_id)
    except SolitonError:
        pass
    else:
        assert codec.encode(transaction) == data
        codec.to_json(transaction)
        codec.encode_protobuf(transaction)
    try:
        transaction = codec.decode_protobuf(data, chain_id)
    except SolitonError:
        return
    again = codec.encode_protobuf(transaction)
    assert codec.encode_protobuf(codec.decode_protobuf(again, chain_id)) == again


@given(st.binary(max_size=300))
def test_random_bytes(data: bytes) -> None:
    refuses_or_reads(data)


@given(st.sampled_from([b"\1", b"\2", b"\4", b"\0\4\1", b"\0\4\2", b"\0\x0c\1"]), st.binary())
def test_random_bytes_after_a_right_beginning(head: bytes, data: bytes) -> None:
    refuses_or_reads(head + data)


@given(transactions(), st.booleans(), st.data())
def test_damaged_bytes(transaction: AnyTransaction, protobuf: bool, draw: st.DataObject) -> None:
    data = codec.encode_protobuf(transaction) if protobuf else codec.encode(transaction)
    match draw.draw(st.sampled_from(["cut", "flip", "longer", "twice"])):
        case "cut":
            data = data[: draw.draw(st.integers(0, len(data) - 1))]
        case "flip":
            at = draw.draw(st.integers(0, 8 * len(data) - 1))
            data = data[: at // 8] + bytes((data[at // 8] ^ 1 << at % 8,)) + data[at // 8 + 1 :]
        case "longer":
            data += draw.draw(st.binary(min_size=1, max_size=20))
        case "twice":
            data += data
    refuses_or_reads(data, transaction.chain_id)


@given(transactions().filter(has_legacy_form))
def test_every_cut_is_refused(transaction: AnyTransaction) -> None:
    data = codec.encode(transaction)
    for end in range(len(data)):
        with pytest.raises(SolitonError):
            codec.decode_legacy(data[:end], transaction.chain_id)
    with pytest.raises(FormatError):
        codec.decode_legacy(data + b"\0", transaction.chain_id)


@pytest.mark.parametrize("type_id", [0, 20, 99, 255])
def test_types_without_a_row(type_id: int) -> None:
    for data in (bytes((type_id,)) + bytes(200), bytes((0, type_id)) + bytes(200)):
        with pytest.raises(UnsupportedTransaction):
            codec.decode_legacy(data, T)


def test_a_leading_zero_belongs_to_the_later_versions_only() -> None:
    """`00 04 01 …` is no transfer of version 1: its signature would begin with a type byte."""
    kind = type_by_id(4)
    payload = json_reader.read_request(
        {"type": 4, "fee": 1, "amount": 1, "recipient": "alias:T:somebody"}, T
    ).payload
    for first in (0, 4):
        made = codec.build(
            kind,
            payload,
            version=1,
            chain_id=T,
            sender_public_key=bytes(32),
            fee=1,
            timestamp=1,
            proofs=(b"\4\1" + bytes(62),),
        )
        data = bytes((first,)) + codec.encode(made)[1:]
        if first == 4:
            assert codec.decode_legacy(data, T) == made
        else:
            with pytest.raises(SolitonError):
                codec.decode_legacy(data, T)


def test_recipients_in_bytes_are_real_addresses_and_aliases() -> None:
    """A wrong checksum or a name that cannot be is refused in bytes as it is in JSON."""
    request = {"type": 4, "version": 2, "fee": 1, "amount": 1, "recipient": "alias:T:somebody"}
    request["senderPublicKey"] = "11111111111111111111111111111111"
    data = codec.encode(json_reader.read_signed(request, T))
    with pytest.raises(SolitonError, match="Alias should contain only"):
        codec.decode_legacy(data.replace(b"somebody", b"SOMEBODY"), T)
    request["recipient"] = "3MzrGSzM8FhSJzgJtUzpCdxVEX4hpH5Mz3Z"
    transaction = json_reader.read_signed(request, T)
    recipient = transaction.payload.recipient
    broken = codec.encode(transaction).replace(recipient, recipient[:-1] + b"\0")
    with pytest.raises(SolitonError, match="Bad address checksum"):
        codec.decode_legacy(broken, T)


@given(transactions(kinds=(4, 12)))
def test_protobuf_of_another_chain(transaction: AnyTransaction) -> None:
    other = transaction.chain_id ^ 1
    with pytest.raises(WrongChainId):
        codec.decode_protobuf(codec.encode_protobuf(transaction), other)


@given(transactions(chain_id=T, kinds=(4, 12)), st.integers(0, 300))
def test_versions_without_a_form(transaction: AnyTransaction, version: int) -> None:
    kind = type_by_id(transaction.type_id)
    if version in kind.binary or codec.is_protobuf(kind, version) or version < 1:
        return
    with pytest.raises(UnsupportedTransaction):
        codec.build(
            kind,
            transaction.payload,
            version=version,
            chain_id=T,
            sender_public_key=bytes(32),
            fee=1,
            timestamp=1,
        )
