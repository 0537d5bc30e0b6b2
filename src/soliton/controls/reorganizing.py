"""Reorganisation on request: the last blocks are replaced by as many others.

What lives here: making them on a branch, and returning the old transactions to the pool.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from soliton.chain.transactions.model import AnyTransaction
from soliton.controls.errors import ControlRefused
from soliton.crypto import base58
from soliton.crypto.keys import KeyPair
from soliton.node import miner
from soliton.node.chain_writer import ChainWriter
from soliton.node.node import Node
from soliton.steps import run_steps

MAX_REORG: Final = 1_000
"""The limit on replaced blocks; the network itself never rolls back more than 100."""


class Reorganized(msgspec.Struct, frozen=True, rename="camel"):
    """A reorganisation: the lowest replaced height, the ids of old and new blocks, and the ids of
    transactions that returned to the pool.
    """

    height: int
    removed: list[str]
    added: list[str]
    waiting: list[str]


def reorganize(
    node: Node,
    account: KeyPair,
    depth: int,
    chosen: Sequence[Sequence[AnyTransaction]],
    *,
    keep: bool,
) -> Reorganized:
    """See ``Controls.reorganize``."""
    chain = node.chain
    most = min(MAX_REORG, chain.height - 1)
    if not 1 <= depth <= most:
        raise ControlRefused(f"a reorganisation of {depth} blocks: 1 to {most} are possible")
    if chain.height - depth < chain.voted_height:
        raise ControlRefused(
            f"a reorganisation of {depth} blocks: that at {chain.voted_height} is final, so "
            f"{chain.height - chain.voted_height} are possible; with a longer --generation-period, "
            "or with --until 1.5, blocks are not final so soon"
        )
    if len(chosen) > depth:
        raise ControlRefused(f"transactions for {len(chosen)} blocks of {depth}")
    base = chain.height - depth
    branch = chain.branch(base)
    for number in range(depth):
        before = chain.meta(base + number + 1).timestamp
        transactions = chosen[number] if number < len(chosen) else ()
        # Another timestamp, so that the id differs even if the content does not.
        _append(branch, account, transactions, max(node.clock(), before + 1))
    with node.writing():
        removed = chain.adopt(branch, base)
    mined = tuple(each for transactions in chosen for each in transactions)
    ids = {each.id for each in mined}
    orphans = [each for block in reversed(removed) for each in block.transactions]
    returned = [each for each in orphans if keep and each.id not in ids]
    node.follow_chain(mined, returned=returned)
    node.pool.settle()
    return Reorganized(
        base + 1,
        [base58.encode(block.id) for block in reversed(removed)],
        [base58.encode(chain.meta(at).id) for at in range(base + 1, chain.height + 1)],
        [base58.encode(each.id) for each in returned if each.id in node.pool],
    )


def _append(
    branch: ChainWriter, account: KeyPair, transactions: Sequence[AnyTransaction], time: int
) -> None:
    slot = miner.next_slot(branch, account)
    trials = miner.NoTrials({each.id for each in transactions})
    forged = run_steps(miner.forging(branch, slot, transactions, time, trials=trials))
    for name, reason in forged.invalid.items():
        raise ControlRefused(
            f"transaction {base58.encode(name)} does not apply at {branch.height + 1}: {reason}"
        )
    if len(forged.block.transactions) < len(transactions):
        raise ControlRefused(f"the transactions for {branch.height + 1} do not fit into one block")
    assert forged.progress is not None, "a private chain has NG from its start"
    branch.append_own(forged.block, forged.progress)
