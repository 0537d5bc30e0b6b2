"""Microblocks: captured ones, round trips of both forms, damaged bytes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

from soliton.chain import microblocks
from soliton.chain.addresses import from_public_key
from soliton.chain.errors import FormatError
from soliton.chain.microblocks import Microblock
from soliton.chain.transactions import codec
from soliton.chain.transactions.table import type_by_id
from soliton.chain.transactions.transfer import Transfer
from soliton.crypto import keys
from soliton.errors import SolitonError
from tests.chain.strategies import digests, has_legacy_form, signatures, transactions
from tests.chain.transactions.further import further_transactions
from tests.vectors import load_vectors, report

T = ord("T")


@st.composite
def microblock_values(draw: DrawFn) -> Microblock:
    version = draw(st.sampled_from([3, 4, 5]))
    legacy = version < 5
    content = draw(
        st.lists(transactions(T, kinds=(4, 12)) | further_transactions(chain_id=T), max_size=4)
    )
    return microblocks.assemble(
        version=version,
        reference=draw(signatures if legacy else digests | signatures),
        total_signature=draw(signatures),
        generator=draw(digests),
        transactions=tuple(item for item in content if not legacy or has_legacy_form(item)),
        signature=draw(signatures),
        total_block_id=draw(digests),
        state_hash=None if legacy else draw(st.none() | digests),
    )


def test_captured_microblocks() -> None:
    name = "p2p_capture"
    for vector in load_vectors(name):
        if vector["name"] != "PBMicroBlock":
            continue
        data = bytes.fromhex(vector["payload"])
        chain_id = ord(vector["scheme"])
        microblock = microblocks.decode(data, chain_id)
        # That node sends older versions as messages as well.
        assert microblocks.encode_protobuf(microblock) == data
        assert microblocks.decode(microblocks.encode(microblock), chain_id) == microblock
        assert microblocks.signature_is_valid(microblock)
        report.ran(name, 1)


@given(microblock_values())
def test_round_trips(microblock: Microblock) -> None:
    data = microblocks.encode(microblock)
    assert microblocks.decode(data, T) == microblock
    assert microblocks.decode(microblocks.encode_protobuf(microblock), T) == microblock
    assert (data[0] == 0x0A) is (microblock.version == 5)


@given(microblock_values())
def test_signing(microblock: Microblock) -> None:
    pair = keys.key_pair("generator")
    made = microblocks.assemble(
        version=microblock.version,
        reference=microblock.reference,
        total_signature=microblock.total_signature,
        generator=pair.public_key,
        transactions=microblock.transactions,
        total_block_id=microblock.total_block_id,
        state_hash=microblock.state_hash,
    )
    assert not microblocks.signature_is_valid(made)
    signed = microblocks.sign(made, pair.private_key)
    assert microblocks.signature_is_valid(signed)
    assert microblocks.decode(microblocks.encode(signed), T) == signed


@given(microblock_values(), st.data())
def test_damaged_bytes(microblock: Microblock, draw: st.DataObject) -> None:
    data = microblocks.encode(microblock)
    at = draw.draw(st.integers(0, len(data) - 1))
    match draw.draw(st.sampled_from(["cut", "flip", "length"])):
        case "cut":
            data = data[:at]
        case "flip":
            data = (
                data[:at] + bytes((data[at] ^ 1 << draw.draw(st.integers(0, 7)),)) + data[at + 1 :]
            )
        case "length":
            data = data[:at] + b"\xff\xff\xff\xff" + data[at + 4 :]
    try:
        read = microblocks.decode(data, T)
    except SolitonError:
        return
    assert microblocks.decode(microblocks.encode(read), T) == read


@given(st.sampled_from([b"", b"\3", b"\4", b"\5", b"\x0a"]), st.binary(max_size=300))
def test_random_bytes(head: bytes, data: bytes) -> None:
    try:
        microblocks.decode(head + data, T)
    except SolitonError:
        return


def legacy(version: int = 4, count: int = 0, length: int | None = None, tail: bytes = b"") -> bytes:
    content = count.to_bytes(4, "big")
    size = len(content) if length is None else length
    head = bytes((version,)) + bytes(128) + (size & 0xFFFFFFFF).to_bytes(4, "big")
    return head + content + bytes(96) + tail


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "expected at offset 0"),
        (legacy(2), "no legacy microblock has version 2"),
        (legacy(5), "no legacy microblock has version 5"),
        (legacy(count=501), "501 transactions are more than 500"),
        (legacy(count=1), "expected at offset 4"),
        (legacy(length=-1), "-1 bytes expected"),
        (legacy(length=2**31 - 1), "bytes expected"),
        (legacy(tail=b"\0"), "1 bytes after the microblock"),
        (bytes(5_000_000), "are more than a block can have"),
    ],
)
def test_refusals(data: bytes, words: str) -> None:
    with pytest.raises(FormatError, match=words):
        microblocks.decode(data, T)


def test_messages_are_not_counted() -> None:
    """The reference node counts the transactions of a microblock only in binary form."""
    pair = keys.key_pair("generator")
    payload = Transfer(from_public_key(pair.public_key, T), None, 1, b"")
    transfer = codec.build(
        type_by_id(4),
        payload,
        version=3,
        chain_id=T,
        sender_public_key=pair.public_key,
        fee=1,
        fee_asset_id=None,
        timestamp=1,
    )
    made = microblocks.assemble(
        version=5,
        reference=bytes(32),
        total_signature=bytes(64),
        generator=pair.public_key,
        transactions=(transfer,) * 501,
        signature=bytes(64),
        total_block_id=bytes(32),
    )
    assert microblocks.decode(microblocks.encode(made), T) == made


def test_an_empty_legacy_microblock_is_well_formed() -> None:
    assert microblocks.decode(legacy(), T).transactions == ()
