"""The first blocks of mainnet on a state in memory: every recorded hash must come out."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from soliton.chain import blocks, networks
from soliton.chain.genesis import genesis_block
from soliton.crypto import base58
from soliton.ledger.apply import apply_block
from soliton.ledger.environment import BlockEnvironment
from soliton.ledger.rules_at import RuleBook
from soliton.ledger.state import WAVES
from tests.ledger.cases import parent_at
from tests.ledger.memory import MemoryState
from tests.vectors import report

RECORDED_HEIGHTS = 5_000


def records(path: Path) -> Iterator[bytes]:
    """The blocks of a file of `u32 length ‖ block` records."""
    data = path.read_bytes()
    offset = 0
    while offset < len(data):
        length = int.from_bytes(data[offset : offset + 4], "big")
        yield data[offset + 4 : offset + 4 + length]
        offset += 4 + length


def recorded_hashes(shared: Path) -> list[dict[str, str]]:
    lines = (shared / "data" / "waves-mainnet-statehash-1-5000.tsv").read_text().splitlines()
    names = lines[0].split("\t")
    return [dict(zip(names, line.split("\t"), strict=True)) for line in lines[1:]]


def test_hashes_of_every_height(shared: Path) -> None:
    network = networks.load("waves-mainnet")
    rules, state, parent = RuleBook(network), MemoryState(), None
    source = records(shared / "data" / "waves-mainnet-blocks-2-10000.bin")
    for height, row in enumerate(recorded_hashes(shared), 1):
        if parent is None:
            block = genesis_block(network)
        else:
            block = blocks.decode(next(source), network.chain_id)
        assert (str(height), base58.encode(block.id)) == (row["height"], row["block_id"])
        environment = BlockEnvironment(
            height,
            block.header.timestamp,
            rules.at(height),
            rules.at(height - 1),
            parent,
            block.header.generator,
        )
        applied = apply_block(state, block, environment, verify_signatures=False).finish()
        assert applied.state_hash.total.hex() == row["state_hash"], height
        assert applied.state_hash.sections[0].hex() == row["waves_balance_hash"], height
        assert applied.snapshot_hash.hex() == row["snapshot_state_hash"], height
        state.take(applied.changes)
        parent = parent_at(
            block.header.timestamp,
            snapshot_hash=applied.snapshot_hash,
            state_hash=applied.state_hash.total,
            carry=applied.carry,
        )
    assert sum(state.tables[WAVES].values()) == network.genesis.initial_balance
    report.ran("mainnet state hashes, in memory", RECORDED_HEIGHTS)
