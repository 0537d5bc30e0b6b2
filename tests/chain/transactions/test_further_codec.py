"""Transactions of the further types in every version: round trips of all forms, damaged bytes."""

from __future__ import annotations

import json

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from soliton.chain.errors import FormatError
from soliton.chain.function_calls import (
    MAX_LIST_DEPTH,
    Argument,
    FunctionCall,
    call_bytes,
    call_json,
    read_call,
    read_call_json,
)
from soliton.chain.transactions import codec, json_reader
from soliton.chain.transactions.model import AnyTransaction
from soliton.errors import SolitonError
from tests.chain.strategies import has_legacy_form
from tests.chain.transactions.further import (
    calls,
    ethereum_transactions,
    further_transactions,
)
from tests.chain.transactions.test_codec import refuses_or_reads

T = ord("T")
HEADS = [
    bytes((type_id,)) + tail for type_id in (3, 5, 6, 7, 8, 9, 10, 11) for tail in (b"", b"\1")
] + [
    bytes((0, type_id, version)) + tail
    for type_id in range(3, 20)
    for version in (1, 2)
    for tail in (b"", bytes((type_id, version)), bytes((type_id, version, T)))
]


@given(further_transactions() | ethereum_transactions())
def test_bytes_round_trip(transaction: AnyTransaction) -> None:
    data = codec.encode(transaction)
    decode = codec.decode_legacy if has_legacy_form(transaction) else codec.decode_protobuf
    assert decode(data, transaction.chain_id) == transaction


@given(further_transactions() | ethereum_transactions())
def test_protobuf_round_trip(transaction: AnyTransaction) -> None:
    data = codec.encode_protobuf(transaction)
    assert codec.decode_protobuf(data, transaction.chain_id) == transaction
    assert codec.decode_trusted(data, transaction.chain_id) == transaction


@given(further_transactions(kinds=(3, 5, 6, 8, 9, 10, 11, 13, 14, 15, 16, 17, 19)))
def test_json_round_trip(transaction: AnyTransaction) -> None:
    printed = json.loads(json.dumps(codec.to_json(transaction), ensure_ascii=False))
    try:
        codec.validate(transaction)
    except SolitonError as error:
        with pytest.raises(type(error)):
            json_reader.read_signed(printed, transaction.chain_id)
    else:
        assert json_reader.read_signed(printed, transaction.chain_id) == transaction


@given(further_transactions(kinds=(7,)))
def test_json_of_exchanges_round_trip(transaction: AnyTransaction) -> None:
    """Random orders do not match; read without the rules they are the same all the same."""
    assume(all(order.sender_public_key for order in transaction.payload.orders))
    printed = json.loads(json.dumps(codec.to_json(transaction)))
    request = json_reader.read_request(printed, transaction.chain_id)
    assert request.payload == transaction.payload


@given(st.sampled_from(HEADS), st.binary())
def test_random_bytes_after_a_right_beginning(head: bytes, data: bytes) -> None:
    refuses_or_reads(head + data)


@given(
    further_transactions() | ethereum_transactions(),
    st.booleans(),
    st.data(),
)
def test_damaged_bytes(transaction: AnyTransaction, protobuf: bool, draw: st.DataObject) -> None:
    data = codec.encode_protobuf(transaction) if protobuf else codec.encode(transaction)
    at = draw.draw(st.integers(0, len(data) - 1))
    match draw.draw(st.sampled_from(["cut", "flip", "longer", "long length"])):
        case "cut":
            data = data[:at]
        case "flip":
            bit = 1 << draw.draw(st.integers(0, 7))
            data = data[:at] + bytes((data[at] ^ bit,)) + data[at + 1 :]
        case "longer":
            data += draw.draw(st.binary(min_size=1, max_size=20))
        case "long length":
            data = data[:at] + b"\x7f\xff\xff\xff\xff\xff\xff\xff" + data[at + 8 :]
    refuses_or_reads(data, transaction.chain_id)


@given(further_transactions().filter(has_legacy_form))
def test_every_cut_is_refused(transaction: AnyTransaction) -> None:
    data = codec.encode(transaction)
    for end in range(len(data)):
        with pytest.raises(SolitonError):
            codec.decode_legacy(data[:end], transaction.chain_id)
    with pytest.raises(FormatError):
        codec.decode_legacy(data + b"\0", transaction.chain_id)


# --- calls ----------------------------------------------------------------------------------------


@given(calls(depth=3))
def test_calls_round_trip(call: FunctionCall) -> None:
    data = call_bytes(call)
    assert read_call(b"before" + data + b"after", 6) == (call, 6 + len(data))


@given(calls(depth=1))
def test_calls_round_trip_in_json(call: FunctionCall) -> None:
    printed = json.loads(json.dumps(call_json(call)))
    if "unsupported" not in json.dumps(printed):
        assert read_call_json(printed, T) == call


def test_no_call_is_the_default_call() -> None:
    assert call_bytes(None) == b"\0"
    assert call_json(None) == {"function": "default", "args": []}
    assert read_call_json({"function": "default"}, T) is None
    assert read_call_json({"function": "default", "args": []}, T) is None


def nested(depth: int) -> Argument:
    return (nested(depth - 1),) if depth else 1


def test_lists_are_as_deep_as_they_may_be() -> None:
    deepest = FunctionCall("f", (nested(MAX_LIST_DEPTH),))
    data = call_bytes(deepest)
    assert read_call(data, 0) == (deepest, len(data))
    with pytest.raises(FormatError, match="deep"):
        call_bytes(FunctionCall("f", (nested(MAX_LIST_DEPTH + 1),)))
    head = call_bytes(FunctionCall("f"))[:-4] + (1).to_bytes(4, "big")
    with pytest.raises(FormatError):
        read_call(head + b"\x0b\0\0\0\1" * 100_000, 0)
    assert call_json(deepest)["args"] == [
        {"type": "list", "value": [{"type": "list", "value": "unsupported"}]}
    ]


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\2",
        b"\1\x09\0\0\0",
        b"\1\x05\1",
        b"\1\x09\1\xff\xff\xff\xff",
        b"\1\x09\1\x7f\xff\xff\xff",
        b"\1\x09\1\0\0\0\1f\xff\xff\xff\xff",
        b"\1\x09\1\0\0\0\1f\x7f\xff\xff\xff",
        b"\1\x09\1\0\0\0\1\xff\0\0\0\0",
        b"\1\x09\1\0\0\0\1f\0\0\0\1\x05",
        b"\1\x09\1\0\0\0\1f\0\0\0\1\x02\0\0\0\1\xff",
        b"\1\x09\1\0\0\0\1f\0\0\0\1\x01\xff\xff\xff\xff",
        b"\1\x09\1\0\0\0\1f\0\0\0\1\x0b\x7f\xff\xff\xff",
    ],
)
def test_calls_that_are_none(data: bytes) -> None:
    with pytest.raises(FormatError):
        read_call(data, 0)
