"""A chain made by the reference node: its blocks are decoded, without any state.

What a node answers about them is in ``test_recorded_state``.
"""

from __future__ import annotations

import json
from pathlib import Path

from soliton.chain import blocks
from soliton.chain.transactions import codec
from soliton.crypto import base58
from tests.node import recorded
from tests.vectors import report

BLOCKS = 81


def test_blocks_without_state(shared: Path) -> None:
    """Header, signature, id and transactions of every block after the genesis block."""
    golden = shared / "golden" / "waves-r"
    answers = recorded.load(golden / "blocks.json.gz")[1:]
    records = list(recorded.records(golden / "blocks-2-82.bin"))
    for data, expected in zip(records, answers, strict=True):
        block = blocks.decode(data, ord("R"))
        header, signature = blocks.decode_header(data, ord("R"))
        assert (header, signature) == (block.header, block.signature)
        assert base58.encode(block.id) == expected["id"]
        assert len(block.data) == expected["blocksize"]
        for transaction, shown in zip(block.transactions, expected["transactions"], strict=True):
            ours = json.loads(json.dumps(codec.to_json(transaction)))
            assert {**ours, "applicationStatus": shown["applicationStatus"]} == shown
    assert len(records) == BLOCKS
    report.ran("golden waves-r decoded blocks", len(records))
