"""Key blocks: blocks without transactions, on the last form that is old enough.

What has just been added to the last block may not have reached others, so that the next block does
not stand on it: it goes back to the pool.

What lives here: making one, and putting one on the chain. What does not: when (``mining``), blocks
with transactions (``Node.mine``), keys that a signer holds (``held_mining``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from soliton.chain.blocks import Block
from soliton.chain.transactions.model import AnyTransaction
from soliton.errors import SolitonError
from soliton.ledger.apply import AppliedBlock
from soliton.ledger.state import Changes
from soliton.node import miner
from soliton.node.chain_writer import ChainWriter
from soliton.node.held_keys import AccountKey
from soliton.node.miner import Forged
from soliton.node.node import Node
from soliton.steps import run_steps

_ABSENT: Final = object()
LATEST_TURN_MS: Final = 60_000
"""The block of a turn that is over bears the turn's time, as long as that is not longer ago."""


def mine_key_block(node: Node, account: AccountKey) -> Block:
    """Make the next block with this account, whose turn has come, and put it on the chain; raises
    as ``Node.mine``.
    """

    def put() -> tuple[Block, AppliedBlock]:
        forged = _forged(node, node.chain, account)
        assert forged.progress is not None, "NG is active"
        return forged.block, node.chain.append_own(forged.block, forged.progress)

    return _put(node, _settled_form(node), put)


def put_key_block(node: Node, block: Block) -> Block:
    """Put such a block, which was signed elsewhere, on the chain; raises as ``Node.mine``."""
    return _put(node, block.header.reference, lambda: (block, node.chain.append(block)))


def draft_key_block(node: Node, account: AccountKey) -> Forged:
    """Such a block as it would be now; the chain stays as it is. Raises ``CannotMine``."""
    chain, form = node.chain, _settled_form(node)
    shorter = None if form == chain.last_block.id else chain.liquid_form(form)
    if shorter is not None:
        chain = chain.branch(chain.height - 1)
        chain.append(shorter, verify_signatures=False)
    return _forged(node, chain, account)


def _settled_form(node: Node) -> bytes:
    return node.forms.settled(node.chain, node.settings.miner.min_micro_block_age_ms)


def _forged(node: Node, chain: ChainWriter, account: AccountKey) -> Forged:
    node.disk.check()
    slot, votes = miner.next_slot(chain, account), miner.votes(node.settings, chain)
    late = node.clock() - LATEST_TURN_MS
    return run_steps(miner.forging(chain, slot, (), late, *votes))


def _put(node: Node, form: bytes, put: Callable[[], tuple[Block, AppliedBlock]]) -> Block:
    taken: tuple[AnyTransaction, ...] = ()
    longer = node.chain.liquid_changes() or {}
    try:
        with node.writing(), node.chain.shortened(form) as taken:
            shorter = node.chain.liquid_changes() or {}
            block, applied = put()
            node.chain.flush()
    except SolitonError:
        node.return_to_pool(taken)
        raise
    changes = applied.changes
    if taken:
        changes = _with_what_was_cut_off(node.chain, longer, shorter, changes)
    node.follow_chain((), None, taken, changes)
    return block


def _with_what_was_cut_off(
    chain: ChainWriter, longer: Changes, shorter: Changes, applied: Changes
) -> Changes:
    """What the block has changed (``applied``), and what the state is now of all that only the
    longer form of the one below had changed.
    """
    found = {table: dict(written) for table, written in applied.items()}
    for table, written in longer.items():
        before = shorter.get(table, {})
        for key, value in written.items():
            if before.get(key, _ABSENT) is not value:
                found.setdefault(table, {})[key] = chain.state.get(table, key)
    return found
