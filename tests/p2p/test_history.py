"""What light peers are told of blocks."""

from __future__ import annotations

from pathlib import Path

from soliton.chain import snapshots
from soliton.p2p.history import NodeHistory
from soliton.wire import messages
from soliton.wire.versions import ANNOUNCED
from tests.p2p.world import Peer, make, network

VERSION = ANNOUNCED["waves"]


def ask(peer: Peer, block_id: bytes) -> tuple[int | None, int | None]:
    """Of how many transactions of the block and of the microblock with this id the peer tells."""
    told = NodeHistory(peer.node.chain)
    whole = told.answer(messages.GetBlockSnapshot(block_id), VERSION)
    part = told.answer(messages.GetMicroblockSnapshot(block_id), VERSION)
    chain_id = peer.node.network.chain_id
    counts: list[int | None] = [None, None]
    if whole is not None:
        assert isinstance(whole, messages.BlockSnapshot)
        decoded = snapshots.decode_block(whole.data, chain_id)
        assert decoded.block_id == block_id
        counts[0] = len(decoded.snapshots)
    if part is not None:
        assert isinstance(part, messages.MicroblockSnapshot)
        decoded = snapshots.decode_microblock(part.data, chain_id)
        assert decoded.block_id == block_id
        counts[1] = len(decoded.snapshots)
    return counts[0], counts[1]


def test_snapshots_of_the_last_block_in_each_form_and_of_stored_ones(tmp_path: Path) -> None:
    peer = make(tmp_path, 0, network())
    chain = peer.node.chain
    try:
        peer.mine(peer.transfer(1), peer.transfer(2))
        key, whole = chain.liquid_ids()
        assert ask(peer, key) == (0, None)
        assert ask(peer, whole) == (2, 2)
        peer.mine(peer.transfer(3))
        assert ask(peer, whole) == (2, None)
        assert ask(peer, bytes(32)) == (None, None)
        assert ask(peer, chain.meta(1).id) == (4, None)
        before = NodeHistory(chain).answer(messages.GetBlockSnapshot(whole), VERSION)
        for _ in range(120):
            peer.mine()
        # Later ones do not change what is told of it.
        assert NodeHistory(chain).answer(messages.GetBlockSnapshot(whole), VERSION) == before
    finally:
        peer.node.close()
