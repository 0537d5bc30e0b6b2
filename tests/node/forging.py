"""Blocks made in one go, where programs take steps; and what nodes do in steps, at once."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from unittest.mock import patch

from soliton.chain import blocks
from soliton.chain.transactions.model import AnyTransaction
from soliton.crypto.keys import KeyPair
from soliton.node import miner
from soliton.node.chain_writer import ChainWriter
from soliton.node.miner import Forged, NoTrials, Slot, forging, forging_micro
from soliton.node.node import Node
from soliton.steps import run_steps


def forge(
    chain: ChainWriter,
    slot: Slot,
    candidates: Iterable[AnyTransaction],
    now: int,
    reward_vote: int = blocks.NO_REWARD_VOTE,
    feature_votes: tuple[int, ...] = (),
    *,
    unproven: Collection[bytes] = (),
) -> Forged:
    steps = forging(
        chain, slot, candidates, now, reward_vote, feature_votes, trials=NoTrials(unproven)
    )
    return run_steps(steps)


def forge_micro(
    chain: ChainWriter,
    account: KeyPair,
    candidates: Iterable[AnyTransaction],
    max_count: int,
    *,
    unproven: Collection[bytes] = (),
) -> Forged | None:
    return run_steps(
        forging_micro(chain, account, candidates, max_count, trials=NoTrials(unproven))
    )


def mine_micro(node: Node, account: KeyPair) -> int:
    """A microblock of what is in the pool, however long that takes."""
    with patch.object(miner, "late_after", lambda *_: lambda: False):
        added = node.put_micro(run_steps(node._forging_micro(account)))
    node.pool.settle()
    return added


def roll_back(node: Node, height: int, *, keep: bool) -> None:
    try:
        node._roll_back(height, keep=keep)
    finally:
        node.pool.settle()
