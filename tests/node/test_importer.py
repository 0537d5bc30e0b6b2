"""Import of block files: mainnet's own, and files that are cut, damaged, foreign or forged.

Whatever is wrong with a block: those before it are kept, and the error names height and offset.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from soliton.chain import blocks, networks
from soliton.chain.blocks import MAX_BLOCK_BYTES, Block
from soliton.chain.networks import Network
from soliton.chain.transactions import codec
from soliton.consensus import pos
from soliton.crypto import base58
from soliton.ledger.state import WAVES
from soliton.node import importer
from soliton.node.chain_writer import ChainWriter
from soliton.node.importer import ImportProblem, import_blocks
from soliton.parallel import bulk_verifier
from tests.ledger.test_mainnet import recorded_hashes
from tests.node.chains import (
    DEVNET,
    RICH,
    address_of,
    mine,
    old_network,
    open_chain,
    payment,
    person,
    record,
    transfer,
)
from tests.vectors import load_vectors, report

HEIGHT = 9
LEGACY = old_network()


@pytest.fixture(params=["legacy", "protobuf"])
def network(request: pytest.FixtureRequest) -> Network:
    return LEGACY if request.param == "legacy" else DEVNET


@pytest.fixture
def source(network: Network, tmp_path: Path) -> Iterator[ChainWriter]:
    """A chain to take files from: nine blocks, two transactions in each but the first."""
    chain = open_chain(tmp_path / "source", network)
    ann, bob = person("ann"), person("bob")
    for number in range(2, HEIGHT + 1):
        if network is LEGACY:
            batch = [payment(chain, RICH, to, number * 10**6) for to in (ann, bob)]
        else:
            batch = [transfer(chain, RICH, to, number * 10**6, version=2) for to in (ann, bob)]
        mine(chain, batch)
    yield chain
    chain.store.close()


@pytest.fixture
def target(network: Network, tmp_path: Path) -> Iterator[ChainWriter]:
    chain = open_chain(tmp_path / "target", network)
    yield chain
    chain.store.close()


def block_list(chain: ChainWriter, first: int = 2) -> list[Block]:
    return [chain.block_at(height) for height in range(first, chain.height + 1)]


def file_of(items: list[Block]) -> bytes:
    return b"".join(map(record, items))


def offset_of(items: list[Block], height: int) -> int:
    return len(file_of(items[: height - 2]))


def run(chain: ChainWriter, data: bytes, to_height: int | None = None) -> int:
    return import_blocks(chain, io.BytesIO(data), to_height)


def same(one: ChainWriter, other: ChainWriter, height: int) -> None:
    """Both have the same block and the same state up to a height."""
    assert one.meta(height) == other.meta(height)
    assert one.state_hash(height) == other.state_hash(height)


def check_refused(
    target: ChainWriter, source: ChainWriter, data: bytes, height: int, offset: int, words: str
) -> None:
    """The file is refused at this place, and what came before it is on disk."""
    with pytest.raises(ImportProblem) as caught:
        run(target, data)
    assert (caught.value.height, caught.value.offset) == (height, offset)
    assert words in caught.value.reason
    assert target.height == height - 1
    target.store.discard_pending()
    assert target.store.height == height - 1
    same(target, source, height - 1)


def test_whole_file(source: ChainWriter, target: ChainWriter) -> None:
    heights: list[int] = []
    added = import_blocks(target, io.BytesIO(file_of(block_list(source))), None, heights.append)
    assert (added, target.height, heights) == (HEIGHT - 1, HEIGHT, [HEIGHT])
    for height in range(1, HEIGHT + 1):
        same(target, source, height)
    for name in ("ann", "bob"):
        account = address_of(person(name))
        assert target.balance(account) == source.balance(account) > 0


def test_file_with_the_first_block(source: ChainWriter, target: ChainWriter) -> None:
    assert run(target, file_of(block_list(source, first=1))) == HEIGHT - 1
    same(target, source, HEIGHT)


def test_nothing_twice(source: ChainWriter, target: ChainWriter) -> None:
    data = file_of(block_list(source))
    assert run(target, data) == HEIGHT - 1
    assert run(target, data) == 0
    assert run(target, b"") == 0


def test_to_height_and_resume(source: ChainWriter, target: ChainWriter) -> None:
    data = file_of(block_list(source))
    assert run(target, data, 5) == 4
    same(target, source, 5)
    assert run(target, data, 5) == 0
    assert run(target, data, 3) == 0
    assert run(target, data) == HEIGHT - 5
    same(target, source, HEIGHT)


def test_file_that_begins_in_the_middle(source: ChainWriter, target: ChainWriter) -> None:
    items = block_list(source)
    assert run(target, file_of(items[:3])) == 3
    assert run(target, file_of(items[2:])) == HEIGHT - 4
    same(target, source, HEIGHT)


def test_file_that_begins_too_late(source: ChainWriter, target: ChainWriter) -> None:
    check_refused(target, source, file_of(block_list(source)[2:]), 2, 0, "parent of the file's fir")


def test_small_batches(
    source: ChainWriter, target: ChainWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importer, "BATCH_BLOCKS", 3)
    heights: list[int] = []
    import_blocks(target, io.BytesIO(file_of(block_list(source))), None, heights.append)
    assert heights == [4, 7, 9]
    same(target, source, HEIGHT)


def test_batches_bounded_by_bytes(
    source: ChainWriter, target: ChainWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importer, "BATCH_BYTES", 1)
    heights: list[int] = []
    import_blocks(target, io.BytesIO(file_of(block_list(source))), None, heights.append)
    assert heights == list(range(2, HEIGHT + 1))


@pytest.mark.parametrize("batch_blocks", [1, 2, 1_000])
@pytest.mark.parametrize("height", [2, 5, HEIGHT])
def test_cut_files(
    source: ChainWriter,
    target: ChainWriter,
    height: int,
    batch_blocks: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(importer, "BATCH_BLOCKS", batch_blocks)
    items = block_list(source)
    data, offset = file_of(items), offset_of(items, height)
    length = len(items[height - 2].data)
    for keep, words in (
        (1, "the file ends after 1 bytes of a length"),
        (3, "the file ends after 3 bytes of a length"),
        (4, f"the file ends after 0 of {length} bytes"),
        (5, f"the file ends after 1 of {length} bytes"),
        (4 + length - 1, f"the file ends after {length - 1} of {length} bytes"),
    ):
        check_refused(target, source, data[: offset + keep], height, offset, words)
    # Cut between two records, it is simply a shorter file.
    assert run(target, data[:offset]) == 0
    assert run(target, data) == HEIGHT - height + 1


@pytest.mark.parametrize("length", [0, MAX_BLOCK_BYTES + 1, 2**32 - 1])
def test_impossible_lengths(source: ChainWriter, target: ChainWriter, length: int) -> None:
    items = block_list(source)
    offset = offset_of(items, 6)
    data = file_of(items[:4]) + length.to_bytes(4, "big") + bytes(100)
    check_refused(target, source, data, 6, offset, f"a record of {length} bytes is no block")


@pytest.mark.parametrize("height", [2, 6, HEIGHT])
def test_any_flipped_byte(source: ChainWriter, target: ChainWriter, height: int) -> None:
    items = block_list(source)
    offset, block = offset_of(items, height), items[height - 2]
    # Every seventh byte is enough, and still meets every field.
    for place in range(0, len(block.data), 7):
        data = bytearray(file_of(items))
        data[offset + 4 + place] ^= 0x55
        with pytest.raises(ImportProblem) as caught:
            run(target, bytes(data))
        assert (caught.value.height, caught.value.offset) == (height, offset), place
        assert target.height == height - 1
    same(target, source, height - 1)
    assert run(target, file_of(items)) == HEIGHT - height + 1


def resigned(block: Block, signature: bytes | None = None) -> Block:
    """The block with changed content, signed again by its generator (or with this signature)."""
    header = block.header
    if header.version >= blocks.PROTOBUF_VERSION:
        root = blocks.transactions_root(block.transactions)
        header = msgspec.structs.replace(header, transactions_root=root)
    if signature is not None:
        return blocks.assemble(header, block.transactions, signature)
    return blocks.sign(header, block.transactions, RICH.private_key)


@pytest.mark.parametrize("height", [2, 5, HEIGHT])
def test_wrong_signature_of_a_block(source: ChainWriter, target: ChainWriter, height: int) -> None:
    items = block_list(source)
    wrong = items[height - 2].signature
    wrong = wrong[:-1] + bytes((wrong[-1] ^ 1,))
    items[height - 2] = resigned(items[height - 2], wrong)
    offset = offset_of(items, height)
    check_refused(target, source, file_of(items), height, offset, "invalid signature")


@pytest.mark.parametrize("height", [2, 5, HEIGHT])
def test_wrong_signature_of_a_transaction(
    source: ChainWriter, target: ChainWriter, height: int
) -> None:
    """The block is signed as it is: only the transaction's own signature tells."""
    items = block_list(source)
    block = items[height - 2]
    first, second = block.transactions
    proof = second.proofs[0]
    forged = codec.with_proofs(second, (proof[:-1] + bytes((proof[-1] ^ 1,)),))
    items[height - 2] = resigned(msgspec.structs.replace(block, transactions=(first, forged)))
    offset = offset_of(items, height)
    check_refused(target, source, file_of(items), height, offset, "invalid signature")


def test_wrong_signature_that_a_process_beside_finds(
    source: ChainWriter, target: ChainWriter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk_verifier, "MIN_SIGNATURES", 2)
    monkeypatch.setattr(bulk_verifier, "GROUP", 2)
    monkeypatch.setattr(bulk_verifier, "cores", lambda: 2)
    test_wrong_signature_of_a_transaction(source, target, 5)
    assert run(target, file_of(block_list(source))) == HEIGHT - 4
    same(target, source, HEIGHT)


def test_first_problem_wins(source: ChainWriter, target: ChainWriter) -> None:
    """A bad signature below a block that cannot be read: the lower one is named."""
    items = block_list(source)
    items[3] = resigned(items[3], bytes(64))
    data = file_of(items[:6]) + (3).to_bytes(4, "big") + b"\2ab"
    check_refused(target, source, data, 5, offset_of(items, 5), "invalid signature")


def test_refused_block_before_a_wrong_signature(source: ChainWriter, target: ChainWriter) -> None:
    items = block_list(source)
    items[5] = resigned(items[5], bytes(64))
    data = file_of(items[:2] + items[3:])
    check_refused(target, source, data, 4, offset_of(items, 4), "reference is not the last block")


def test_blocks_of_another_network(source: ChainWriter, tmp_path: Path) -> None:
    other = open_chain(tmp_path / "other", networks.load("waves-mainnet"))
    try:
        for first in (1, 2):
            with pytest.raises(ImportProblem) as caught:
                run(other, file_of(block_list(source, first)))
            assert (caught.value.height, caught.value.offset, other.height) == (2, 0, 1)
    finally:
        other.store.close()


def test_mainnet(shared: Path, tmp_path: Path) -> None:
    """10,000 blocks with everything checked; back to 5,000, and again to the same hashes."""
    network = networks.load("waves-mainnet")
    path = shared / "data" / "waves-mainnet-blocks-2-10000.bin"
    chain = open_chain(tmp_path, network)
    with path.open("rb") as file:
        assert import_blocks(chain, file) == 9_999
    for row in recorded_hashes(shared):
        height = int(row["height"])
        meta, state_hash = chain.meta(height), chain.state_hash(height)
        assert base58.encode(meta.id) == row["block_id"]
        assert state_hash.total.hex() == row["state_hash"]
        assert state_hash.sections[0].hex() == row["waves_balance_hash"]
        assert meta.snapshot_hash.hex() == row["snapshot_state_hash"]
    for vector in load_vectors("block_score"):
        score = int.from_bytes(chain.meta(vector["height"]).score, "big")
        if vector["height"] > 1:
            assert score == int(vector["score"])
    before = [chain.meta(height) for height in range(1, chain.height + 1)]
    balances = list(chain.store.scan(b"W", b"W"))
    assert sum(int.from_bytes(raw, "big") for _, raw in balances) == 10**16
    chain.rollback(5_000)
    assert chain.height == 5_000
    assert base58.encode(chain.last_block.id) == recorded_hashes(shared)[-1]["block_id"]
    with path.open("rb") as file:
        assert import_blocks(chain, file) == 5_000
    assert [chain.meta(height) for height in range(1, chain.height + 1)] == before
    assert list(chain.store.scan(b"W", b"W")) == balances
    assert chain.store.get(WAVES, address_of(RICH, network)) == 0
    assert pos.block_score(chain.last_block.header.base_target) > 0
    chain.store.close()
    report.ran("mainnet state hashes, imported", 5_000)
