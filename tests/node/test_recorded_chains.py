"""Whole chains that other nodes recorded, block by block: every state hash must come out."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from soliton.chain import blocks
from soliton.chain.blocks import Block
from soliton.ledger.errors import TransactionInBlockRejected
from soliton.ledger.hashes import SECTIONS
from soliton.ledger.scripts import ScriptsNotSupported
from soliton.node.chain import Chain
from soliton.storage.store import Store
from tests.node import recorded
from tests.node.recorded import JsonObject, OnlyTrue, Remembered
from tests.vectors import report


def check_hashes(chain: Chain, height: int, expected: JsonObject) -> None:
    found = chain.state_hash(height)
    sections = {name: value.hex() for name, value in zip(SECTIONS, found.sections, strict=True)}
    assert sections == {name: expected[name] for name in SECTIONS}, height
    assert found.total.hex() == expected["stateHash"], height


def appended(chain: Chain, block: Block) -> bool:
    """Whether the block is on the chain now; nothing but a script may keep it away."""
    try:
        chain.append(block)
    except TransactionInBlockRejected as error:
        if not isinstance(error.cause, ScriptsNotSupported):
            raise
        return False
    return True


def replay_go(shared: Path, directory: Path, name: str) -> tuple[Chain, int]:
    """Append blocks until one is refused for its scripts; the chain, and how many there were."""
    folder = shared / "golden" / name
    network = recorded.go_network(folder)
    chain = Chain(network, Store(directory, network.name, durable=False), OnlyTrue())
    rows = recorded.lines(folder / "heights.jsonl.gz")
    for row in rows:
        if row["height"] > 1:
            block = blocks.decode(bytes.fromhex(row["block_hex"]), network.chain_id)
            if not appended(chain, block):
                break
        check_hashes(chain, row["height"], row["state_hash"])
    report.ran(f"golden/{name}", chain.height)
    return chain, len(rows)


def test_chain_without_features(shared: Path, tmp_path: Path) -> None:
    chain, rows = replay_go(shared, tmp_path, "waves-go-c")
    assert chain.height == rows
    chain.store.close()


def test_chain_with_features_1_to_14(shared: Path, tmp_path: Path) -> None:
    chain, rows = replay_go(shared, tmp_path, "waves-go-b")
    # A transaction of block 4 calls a dApp.
    assert chain.height == 3
    report.skipped("golden/waves-go-b", rows - chain.height, "needs scripts to be run")
    chain.store.close()


@pytest.mark.parametrize("remember", [False, True])
def test_chain_with_all_features(shared: Path, tmp_path: Path, remember: bool) -> None:
    folder = shared / "golden" / "waves-r"
    network = recorded.configured_network(folder / "network.conf")
    store = Store(tmp_path, network.name, durable=False)
    chain = Chain(network, store, Remembered(folder, network.chain_id)) if remember else None
    chain = chain or Chain(network, store)
    expected = {row["height"]: row for row in recorded.load(folder / "statehash.json.gz")}
    statuses: Counter[int] = Counter()
    for data in recorded.records(folder / "blocks-2-82.bin"):
        if not appended(chain, blocks.decode(data, network.chain_id)):
            break
        check_hashes(chain, chain.height, expected[chain.height])
        for transaction in chain.last_block.transactions:
            found = chain.transaction(transaction.id)
            assert found is not None
            statuses[found.status] += 1
    # The first script is that of an asset which block 15 issues.
    assert chain.height == (82 if remember else 14)
    if remember:
        report.ran("golden/waves-r", chain.height)
        assert statuses[1] > 0
    store.close()
