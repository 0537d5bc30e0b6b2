"""Blocks of all versions: recorded ones, round trips, signatures, and bytes that are no block."""

from __future__ import annotations

import contextlib
import gzip
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from soliton.chain import blocks, protobuf
from soliton.chain.blocks import Block, BlockHeader, ChallengedHeader
from soliton.chain.errors import ChainError, FormatError, WrongChainId
from soliton.chain.proto import block_pb2, transaction_pb2
from soliton.chain.transactions import codec
from soliton.chain.transactions.table import ROWS
from soliton.crypto import base58, keys, merkle
from soliton.crypto.curve25519 import verify
from soliton.errors import SolitonError
from tests.chain.strategies import block_values, challenged_headers
from tests.vectors import load_vectors, report

W = ord("W")


def check_recorded(name: str, data: bytes, told: dict[str, Any], chain_id: int) -> None:
    """Decode a recorded block, or its header where a type is missing, and compare with its JSON."""
    if told["version"] == blocks.GENESIS_VERSION and data[73:77] == bytes(4):
        report.skipped(name, 1, "genesis of the Go node, written without a length of consensus")
        return
    header, signature = blocks.decode_header(data, chain_id)
    check_header(header, signature, told)
    # The Go node prints Ethereum transactions without a type.
    missing = {item.get("type", 18) for item in told.get("transactions", [])} - ROWS.keys()
    if missing:
        report.skipped(name, 1, "transactions of types that come later (header checked)")
        return
    block = blocks.decode(data, chain_id)
    assert block.data == data
    assert (block.header, block.signature) == (header, signature)
    assert base58.encode(block.id) == told["id"]
    assert blocks.signature_is_valid(block)
    assert len(block.transactions) == told["transactionCount"]
    again = blocks.assemble(header, block.transactions, signature)
    assert again == block
    if header.version == blocks.PROTOBUF_VERSION:
        assert blocks.transactions_root(block.transactions) == header.transactions_root
    check_spans(block)
    report.ran(name, 1)


def check_header(header: BlockHeader, signature: bytes, told: dict[str, Any]) -> None:
    assert header.version == told["version"]
    assert header.timestamp == told["timestamp"]
    assert base58.encode(header.reference) == told["reference"]
    assert base58.encode(signature) == told["signature"]
    assert base58.encode(header.generator) == told["generatorPublicKey"]
    consensus = told["nxt-consensus"]
    assert header.base_target == consensus["base-target"]
    assert base58.encode(header.generation_signature) == consensus["generation-signature"]
    if header.version >= blocks.REWARD_VERSION:
        assert header.reward_vote == told["desiredReward"]
    if header.version >= blocks.PROTOBUF_VERSION:
        assert base58.encode(header.transactions_root) == told["transactionsRoot"]


def check_spans(block: Block) -> None:
    """The pieces that are named are exactly the transactions."""
    spans = blocks.transaction_spans(block.data)
    legacy = block.header.version < blocks.PROTOBUF_VERSION
    decode = codec.decode_legacy if legacy else codec.decode_protobuf
    pieces = [block.data[offset : offset + length] for offset, length in spans]
    assert tuple(decode(piece, block.header.chain_id) for piece in pieces) == block.transactions


def test_blocks_of_private_chains() -> None:
    name = "blocks_private_chains"
    for vector in load_vectors(name):
        told = vector["block"] | {"id": vector["header"]["id"]}
        check_recorded(name, bytes.fromhex(vector["block_hex"]), told, ord("L"))


@pytest.mark.parametrize("chain", ["waves-go-b", "waves-go-c"])
def test_recorded_chains_of_the_go_node(shared: Path, chain: str) -> None:
    for line in gzip.decompress(
        (shared / "golden" / chain / "heights.jsonl.gz").read_bytes()
    ).splitlines():
        row = json.loads(line)
        told = row["block"] | {"id": row["header"]["id"]}
        check_recorded(f"golden {chain}", bytes.fromhex(row["block_hex"]), told, ord("L"))


def test_recorded_chain_of_the_reference_node(shared: Path) -> None:
    golden = shared / "golden" / "waves-r"
    told = {
        row["height"]: row
        for row in json.loads(gzip.decompress((golden / "blocks.json.gz").read_bytes()))
    }
    data, height = (golden / "blocks-2-82.bin").read_bytes(), 2
    while data:
        length = int.from_bytes(data[:4], "big")
        check_recorded("golden waves-r", data[4 : 4 + length], told[height], ord("R"))
        data, height = data[4 + length :], height + 1
    assert height == 83


@given(block_values())
def test_round_trip(block: Block) -> None:
    assert blocks.decode(block.data, block.header.chain_id) == block
    header, signature = blocks.decode_header(block.data, block.header.chain_id)
    assert (header, signature) == (block.header, block.signature)
    check_spans(block)


@given(block_values())
def test_id(block: Block) -> None:
    if block.header.version < blocks.PROTOBUF_VERSION:
        assert block.id == block.signature
        assert block.data == block.signed + block.signature
    else:
        assert block.signed == blocks.header_bytes(block.header)
        assert len(block.id) == 32


@given(block_values(version=5), challenged_headers())
def test_challenged_header_is_signed_as_it_was(block: Block, challenged: ChallengedHeader) -> None:
    """Two generators sign: the challenger the whole, the challenged one the header it made."""
    first, second = keys.key_pair("challenged"), keys.key_pair("challenger")
    made_by_first = msgspec.structs.replace(
        block.header,
        generator=first.public_key,
        challenged=None,
        timestamp=challenged.timestamp,
        base_target=challenged.base_target,
        generation_signature=challenged.generation_signature,
        feature_votes=challenged.feature_votes,
        reward_vote=challenged.reward_vote,
        state_hash=challenged.state_hash,
    )
    signature = blocks.sign(made_by_first, (), first.private_key).signature
    challenged = msgspec.structs.replace(
        challenged, generator=first.public_key, header_signature=signature
    )
    header = msgspec.structs.replace(
        block.header, generator=second.public_key, challenged=challenged
    )
    whole = blocks.sign(header, block.transactions, second.private_key)
    assert blocks.original_header(header, challenged) == made_by_first
    assert blocks.signature_is_valid(whole)
    assert len(blocks.signed_messages(whole)) == 2
    wrong = msgspec.structs.replace(challenged, header_signature=bytes(64))
    header = msgspec.structs.replace(header, challenged=wrong)
    assert not blocks.signature_is_valid(blocks.sign(header, (), second.private_key))


@given(block_values())
def test_signing(block: Block) -> None:
    pair = keys.key_pair("generator")
    header = msgspec.structs.replace(block.header, generator=pair.public_key, challenged=None)
    signed = blocks.sign(header, block.transactions, pair.private_key)
    assert blocks.signature_is_valid(signed)
    assert verify(pair.public_key, signed.signed, signed.signature)
    other = msgspec.structs.replace(signed, signature=bytes(64))
    assert not blocks.signature_is_valid(other)


@pytest.mark.parametrize("weak", [bytes(32), b"\1" + bytes(31)])
def test_weak_generators_never_sign(weak: bytes) -> None:
    header = BlockHeader(2, W, 0, bytes(64), 1, bytes(32), weak)
    block = blocks.assemble(header, (), bytes(64))
    assert blocks.has_weak_key(block)
    assert not blocks.signature_is_valid(block)


def refuses_or_reads(data: bytes, chain_id: int) -> None:
    with contextlib.suppress(ChainError):
        blocks.decode_header(data, chain_id)
    try:
        block = blocks.decode(data, chain_id)
    except ChainError:
        return
    if block.header.version < blocks.PROTOBUF_VERSION:
        assert block.data == data
    again = blocks.decode(block.data, chain_id)
    assert again == block
    check_spans(block)


@given(st.binary(max_size=400))
def test_random_bytes(data: bytes) -> None:
    refuses_or_reads(data, W)


@given(st.integers(0, 10), st.binary(max_size=400))
def test_random_bytes_after_a_right_beginning(version: int, data: bytes) -> None:
    refuses_or_reads(bytes((version,)) + bytes(72) + b"\0\0\0\x28" + bytes(40) + data, W)


@given(block_values(), st.data())
def test_damaged_bytes(block: Block, draw: st.DataObject) -> None:
    data = block.data
    match draw.draw(st.sampled_from(["cut", "flip", "longer", "twice", "chain"])):
        case "cut":
            data = data[: draw.draw(st.integers(0, len(data) - 1))]
        case "flip":
            at = draw.draw(st.integers(0, 8 * len(data) - 1))
            data = data[: at // 8] + bytes((data[at // 8] ^ 1 << at % 8,)) + data[at // 8 + 1 :]
        case "longer":
            data += draw.draw(st.binary(min_size=1, max_size=20))
        case "twice":
            data += data
        case "chain" if block.header.version >= blocks.PROTOBUF_VERSION:
            with pytest.raises(WrongChainId):
                blocks.decode(data, block.header.chain_id ^ 1)
    refuses_or_reads(data, block.header.chain_id)


@given(block_values(), st.binary(max_size=300))
def test_spans_of_random_bytes(block: Block, data: bytes) -> None:
    for hostile in (data, block.data[: len(block.data) // 2], b"\x0a" + data, b"\2" + data):
        try:
            blocks.transaction_spans(hostile)
        except FormatError:
            continue


def legacy(version: int, count: bytes, rest: bytes = b"") -> bytes:
    head = bytes((version,)) + bytes(72) + b"\0\0\0\x28" + bytes(40)
    return head + (len(count + rest)).to_bytes(4, "big") + count + rest


HOSTILE = """
bytes                                                   | words
b""                                                     | no block in 0 bytes
b"\\2"                                                  | a block header needs 121 bytes
bytes(121)                                              | no legacy block has version 0
b"\\5" + bytes(120)                                     | no legacy block has version 5
b"\\2" + bytes(120)                                     | consensus part of 0 bytes
legacy(2, b"\\0")                                       | 0 bytes at the end, 96 expected
legacy(2, b"\\0") + bytes(95)                           | 95 bytes at the end, 96 expected
legacy(2, b"\\0") + bytes(97)                           | 97 bytes at the end, 96 expected
legacy(2, b"\\1") + bytes(96)                           | 4 bytes expected at offset 1, 0 left
legacy(2, b"\\0", b"x") + bytes(96)                     | 1 bytes after the transactions
legacy(2, b"\\1", b"\\xff" * 4) + bytes(96)             | -1 bytes expected at offset 5
legacy(3, b"\\0\\1\\0\\0") + bytes(100)                 | 65536 transactions are more than 65535
legacy(3, bytes(4)) + b"\\0\\0\\0\\x41" + bytes(300)    | 65 feature votes
legacy(3, bytes(4)) + b"\\xff" * 4 + bytes(96)          | -1 feature votes
legacy(2, b"\\1", b"\\0\\0\\0\\3" + b"\\x63ab") + bytes(96) | Bad transaction type (99)
bytes(blocks.MAX_BLOCK_BYTES + 1)                       | 4194305 bytes are more than a block can
b"\\x0a\\xff"                                           | no Block:
b"\\x0a\\x02\\x08\\x57"                                 | reference of 0 bytes
b"\\x0a\\x02\\x08\\x54"                                 | Wrong chain-id. Expected - 87, provided -
"""


def hostile_cases() -> list[list[str]]:
    lines = HOSTILE.strip().splitlines()[1:]
    return [[cell.strip() for cell in line.split("|")] for line in lines]


@pytest.mark.parametrize(("expression", "words"), hostile_cases())
def test_hostile_bytes(expression: str, words: str) -> None:
    with pytest.raises(SolitonError) as caught:
        blocks.decode(eval(expression, {"legacy": legacy, "blocks": blocks}), W)
    assert str(caught.value).startswith(words)


def test_root_is_over_protobuf_bytes_whatever_the_version() -> None:
    assert blocks.transactions_root(()) == merkle.EMPTY_HASH


def _field(number: int, data: bytes) -> bytes:
    return protobuf.delimited(number, data)


def _message_parts() -> tuple[bytes, bytes, bytes, bytes]:
    """Header, signature and two transactions of a block, as members of its message."""
    header = block_pb2.Block.Header(chain_id=82, version=5, timestamp=7, generator=bytes(32))
    one = transaction_pb2.SignedTransaction(proofs=[b"1"])
    two = transaction_pb2.SignedTransaction(proofs=[b"2"])
    return (
        _field(1, header.SerializeToString(deterministic=True)),
        _field(2, b"s" * 64),
        _field(3, one.SerializeToString()),
        _field(3, two.SerializeToString()),
    )


def test_a_message_in_any_form_that_the_reference_reads_is_made_canonical() -> None:
    header, signature, one, two = _message_parts()
    usual = header + signature + one + two
    assert blocks.canonical(usual) is usual
    unknown = b"\xa2\x06\x02hi"
    rest = block_pb2.Block.Header(timestamp=7).SerializeToString()
    first = block_pb2.Block.Header(chain_id=82, version=5, timestamp=6, generator=bytes(32))
    forms = (
        signature + header + one + two,
        one + two + header + signature,
        one + header + two + signature,
        header + b"\x12\x01x" + signature + one + two,
        unknown + header + signature + one + unknown + two,
        # The tag of the header in two bytes.
        b"\x8a\x00" + header[1:] + signature + one + two,
        # Parts of a message are merged.
        _field(1, first.SerializeToString()) + _field(1, rest) + signature + one + two,
    )
    for form in forms:
        assert blocks.canonical(form) == usual


@pytest.mark.parametrize("group", [b"\xa3\x06\xa4\x06", b"\xa3\x06\x08\x01\xa4\x06"])
def test_unknown_groups_are_refused(group: bytes) -> None:
    header, signature, one, _ = _message_parts()
    with pytest.raises(FormatError, match="unknown groups"):
        blocks.canonical(header + signature + one + group)


@pytest.mark.parametrize("data", [b"", b"\x0a", b"\x05", b"\xff" * 20, b"\x0a\xff\x7f"])
def test_what_is_no_message_at_all(data: bytes) -> None:
    try:
        assert blocks.canonical(data) == data == b""
    except FormatError:
        assert data
