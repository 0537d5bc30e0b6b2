"""Snapshots: recorded ones, round trips, damaged bytes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from soliton.chain import protobuf, snapshots
from soliton.chain.errors import AddressError, FormatError
from soliton.chain.proto import block_pb2, transaction_state_snapshot_pb2
from soliton.chain.snapshots import BlockSnapshot, Snapshot, Status
from soliton.errors import SolitonError
from tests.chain.strategies import addresses_of, data_entries, digests, longs, unicode_texts
from tests.vectors import load_vectors, report

T, L = ord("T"), ord("L")
Message = transaction_state_snapshot_pb2.TransactionStateSnapshot

addresses = addresses_of(T)
assets = st.none() | digests
texts = unicode_texts().map(str.encode)
numbers = st.integers(-(2**31), 2**31 - 1)


def many(kind: type[Any], *values: SearchStrategy[Any]) -> SearchStrategy[Any]:
    return st.lists(st.builds(kind, *values), max_size=3).map(tuple)


snapshot_values: SearchStrategy[Snapshot] = st.builds(
    Snapshot,
    balances=many(snapshots.Balance, addresses, assets, longs),
    lease_balances=many(snapshots.LeaseBalance, addresses, longs, longs),
    new_leases=many(snapshots.NewLease, digests, digests, addresses, longs),
    cancelled_leases=st.lists(digests, max_size=3).map(tuple),
    new_assets=many(snapshots.NewAsset, digests, digests, numbers, st.booleans()),
    asset_volumes=many(
        snapshots.AssetVolume, digests, st.booleans(), st.integers(-(2**255), 2**255 - 1)
    ),
    asset_names=many(snapshots.AssetName, digests, texts, texts),
    asset_script=st.none() | st.builds(snapshots.AssetScript, digests, st.binary(max_size=9)),
    alias=st.none() | st.builds(snapshots.NewAlias, addresses, unicode_texts()),
    order_fills=many(snapshots.OrderFill, digests, longs, longs),
    account_script=st.none()
    | st.builds(snapshots.AccountScript, digests, st.binary(max_size=9), longs),
    account_data=many(
        snapshots.AccountData, addresses, st.lists(data_entries(), max_size=3).map(tuple)
    ),
    sponsorships=many(snapshots.Sponsorship, digests, longs),
    status=st.sampled_from(Status),
    generation_commitment=st.none()
    | st.builds(snapshots.GenerationCommitment, digests, st.binary(max_size=48)),
)


def test_snapshots_of_the_reference_node() -> None:
    vectors = load_vectors("snapshot_hash_scala")
    for vector in vectors:
        data = bytes.fromhex(vector["snapshot_pb"])
        assert snapshots.encode(snapshots.decode(data, T)) == data
    report.ran("snapshot_hash_scala", len(vectors))


def test_snapshots_of_blocks_of_the_go_node() -> None:
    seen = 0
    for vector in load_vectors("blocks_private_chains"):
        data = bytes.fromhex(vector["block_snapshot_pb_hex"])
        block = snapshots.decode_block(data, L)
        assert snapshots.encode_block(block) == data
        seen += len(block.snapshots)
    assert seen


@given(snapshot_values)
def test_round_trip(snapshot: Snapshot) -> None:
    assert snapshots.decode(snapshots.encode(snapshot), T) == snapshot


@given(digests, st.lists(snapshot_values, max_size=2).map(tuple))
def test_blocks_round_trip(block_id: bytes, content: tuple[Snapshot, ...]) -> None:
    block = BlockSnapshot(block_id, content)
    assert snapshots.decode_block(snapshots.encode_block(block), T) == block
    assert snapshots.decode_microblock(snapshots.encode_microblock(block), T) == block


@given(snapshot_values, st.data())
def test_damaged_bytes(snapshot: Snapshot, draw: st.DataObject) -> None:
    data = bytearray(snapshots.encode(snapshot) or b"\x72\0")
    data[draw.draw(st.integers(0, len(data) - 1))] ^= 1 << draw.draw(st.integers(0, 7))
    try:
        read = snapshots.decode(bytes(data), T)
    except SolitonError:
        return
    assert snapshots.decode(snapshots.encode(read), T) == read


@given(st.binary(max_size=200))
def test_random_bytes(data: bytes) -> None:
    for decode in (snapshots.decode, snapshots.decode_block, snapshots.decode_microblock):
        try:
            decode(data, T)
        except SolitonError:
            continue


@pytest.mark.parametrize(
    ("quantity", "expected"),
    [(0, "00"), (127, "7f"), (128, "0080"), (-1, "ff"), (-128, "80"), (-129, "ff7f")],
)
def test_volumes_are_as_short_as_possible(quantity: int, expected: str) -> None:
    assert snapshots.volume_bytes(quantity).hex() == expected


@pytest.mark.parametrize(
    ("message", "error"),
    [
        (Message(balances=[Message.Balance(address=bytes(26))]), AddressError),
        (Message(cancelled_leases=[Message.CancelledLease(lease_id=bytes(31))]), FormatError),
        (Message(asset_volumes=[Message.AssetVolume(asset_id=bytes(32))]), FormatError),
        (
            Message(asset_volumes=[Message.AssetVolume(asset_id=bytes(32), volume=bytes(33))]),
            FormatError,
        ),
        (Message(account_scripts=Message.AccountScript()), FormatError),
        (Message(aliases=Message.Alias(alias="somebody")), AddressError),
        (Message(transaction_status=9), FormatError),  # type: ignore[arg-type]
    ],
)
def test_refusals(message: Message, error: type[SolitonError]) -> None:
    with pytest.raises(error):
        snapshots.decode(protobuf.serialize(message), T)


def test_too_large() -> None:
    with pytest.raises(FormatError, match="more than"):
        snapshots.decode(bytes(snapshots.MAX_SNAPSHOT_BYTES + 1), T)


@given(digests, st.lists(snapshot_values, max_size=4).map(tuple))
def test_read_one_by_one_they_are_the_same(block_id: bytes, told: tuple[Snapshot, ...]) -> None:
    data = snapshots.encode_block(BlockSnapshot(block_id, told))
    unread = snapshots.LazySnapshots(data, T)
    assert (unread.block_id, tuple(unread), len(unread)) == (block_id, told, len(told))


def test_members_that_are_unknown_are_passed_over() -> None:
    data = snapshots.encode_block(BlockSnapshot(b"\1" * 32, (Snapshot(),)))
    others = b"\x1a\x01x" + b"\x20\x07" + b"\x29" + bytes(8) + b"\x35" + bytes(4)
    assert len(snapshots.LazySnapshots(others + data + others, T)) == 1


@pytest.mark.parametrize(
    ("behind", "reason"),
    [
        # Read into messages these would take more than a gigabyte.
        (b"\x12\x00" * 8_000_000, "more than 65535 transactions"),
        (protobuf.delimited(2, b"\x0a\x00" * 8_000_000), "16000000 bytes"),
        (protobuf.delimited(2, b"abc")[:-1], "too few are left"),
        (b"\x13", "no member"),
        (b"\x12", "nothing left"),
        (bytes(17_000_000), "17000034 bytes"),
    ],
)
def test_bombs_are_refused_before_they_are_read(behind: bytes, reason: str) -> None:
    with pytest.raises(FormatError, match=reason):
        snapshots.LazySnapshots(protobuf.delimited(1, bytes(32)) + behind, T)


@pytest.mark.parametrize("length", [0, 127, 128, 16_383, 16_384, 2_097_152])
def test_a_field_with_bytes_is_that_of_the_library(length: int) -> None:
    data = bytes(length)
    known = block_pb2.Block(signature=data).SerializeToString()
    # The library leaves out what is empty.
    assert protobuf.delimited(2, data) == (known or b"\x12\0")
