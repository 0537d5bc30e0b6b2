"""Whole chains that other nodes recorded, block by block: every state hash must come out."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from soliton.chain import blocks
from soliton.chain.blocks import Block
from soliton.chain.networks import Network
from soliton.ledger.errors import TransactionInBlockRejected
from soliton.ledger.hashes import SECTIONS
from soliton.ledger.scripts import ScriptsNotSupported
from soliton.node.chain import Chain
from soliton.storage.store import Store
from tests.node import recorded
from tests.node.recorded import JsonObject, OnlyTrue, Remembered
from tests.vectors import load_vectors, report


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


def replay_go(directory: Path, network: Network, rows: list[JsonObject], name: str) -> Chain:
    """Append blocks until one is refused for its scripts."""
    chain = Chain(network, Store(directory, network.name, durable=False), OnlyTrue())
    for row in rows:
        if row["height"] > 1:
            block = blocks.decode(bytes.fromhex(row["block_hex"]), network.chain_id)
            if not appended(chain, block):
                break
        check_hashes(chain, row["height"], row["state_hash"])
    report.ran(name, chain.height)
    if chain.height < len(rows):
        report.skipped(name, len(rows) - chain.height, "needs scripts to be run")
    chain.store.close()
    return chain


def replay_folder(shared: Path, directory: Path, name: str) -> Chain:
    folder = shared / "golden" / name
    network = recorded.go_network(name, recorded.go_settings(folder))
    rows = recorded.lines(folder / "heights.jsonl.gz")
    return replay_go(directory, network, rows, f"golden/{name}")


def test_chain_without_features(shared: Path, tmp_path: Path) -> None:
    assert replay_folder(shared, tmp_path, "waves-go-c").height == 12


def test_chain_with_features_1_to_14(shared: Path, tmp_path: Path) -> None:
    # A transaction of block 4 calls a dApp.
    assert replay_folder(shared, tmp_path, "waves-go-b").height == 3


def test_protobuf_blocks_of_another_node(shared: Path, tmp_path: Path) -> None:
    name = "blocks_private_chains"
    rows = [row for row in load_vectors(name) if row["chain"] == "A"]
    settings = recorded.go_settings(shared / "golden" / "waves-go-b")
    settings |= {"genesis": rows[0]["block"], "preactivated_features": list(range(1, 24))}
    chain = replay_go(tmp_path, recorded.go_network("A", settings), rows, name)
    # Here, too, a dApp is called in block 4.
    assert chain.height == 3


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
