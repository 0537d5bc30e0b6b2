"""``db.max-rollback-depth``: how many blocks of a running node can be undone."""

from __future__ import annotations

from pathlib import Path

import pytest

from soliton.node.node import Node
from soliton.node.settings import load_settings
from soliton.node.wallet import Wallet
from soliton.storage.errors import RollbackTooDeep
from tests.node import forging
from tests.node.chains import RICH


@pytest.mark.parametrize(("depth", "lowest"), [(4, 5), (6, 3)])
def test_a_node_keeps_what_it_needs_to_undo_so_many_blocks_and_a_usual_number_at_least(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, depth: int, lowest: int
) -> None:
    monkeypatch.setattr("soliton.node.chain_writer.UNDO_DEPTH", 4)
    settings = load_settings(
        network="devnet", data_dir=tmp_path, overrides={"db.max-rollback-depth": depth}
    )
    node = Node(settings, Wallet.in_memory(b"nothing", ()), durable=False)
    try:
        while node.chain.height < 9:
            node.mine(RICH, empty=True)
        with pytest.raises(RollbackTooDeep):
            forging.roll_back(node, lowest - 1, keep=False)
        forging.roll_back(node, lowest, keep=False)
        assert node.chain.height == lowest
    finally:
        node.close()
