"""Key blocks: blocks without transactions, on the last form that is old enough.

The newest microblocks may not have reached other nodes, so a key block does not build on them:
their transactions return to the pool.

What lives here: making and appending one. What does not: scheduling (``mining``), blocks with
transactions (``Node.mine``), remote keys (``remote_mining``).
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
from soliton.node.miner import Forged
from soliton.node.node import Node
from soliton.node.remote_keys import AccountKey
from soliton.steps import run_steps

LATEST_TURN_MS: Final = 60_000
"""How far in the past the timestamp of a late block may be: otherwise it is that of its slot."""


def mine_key_block(node: Node, account: AccountKey) -> Block:
    """Make the next block with this account, whose slot has come, and append it; raises like
    ``Node.mine``.
    """

    def put() -> tuple[Block, AppliedBlock]:
        forged = _forged(node, node.chain, account)
        assert forged.progress is not None, "NG is active"
        return forged.block, node.chain.append_own(forged.block, forged.progress)

    return _put(node, _settled_form(node), put)


def put_key_block(node: Node, block: Block) -> Block:
    """Append a key block that was signed remotely; raises like ``Node.mine``."""
    return _put(node, block.header.reference, lambda: (block, node.chain.append(block)))


def draft_key_block(node: Node, account: AccountKey) -> Forged:
    """Make a key block without appending it; raises ``CannotMine``."""
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
    longer = node.chain.changes_above(form)
    try:
        with node.writing(), node.chain.shortened(form) as taken:
            block, applied = put()
            node.chain.flush()
    except SolitonError:
        node.return_to_pool(taken)
        raise
    changes = applied.changes
    if taken:
        changes = _with_removed(node.chain, longer, changes)
    node.follow_chain((), None, taken, changes)
    return block


def _with_removed(chain: ChainWriter, removed: list[Changes], applied: Changes) -> Changes:
    """Return the changes of the block (``applied``), plus the present values of all entries that
    the removed microblocks had changed.
    """
    found = {table: dict(written) for table, written in applied.items()}
    for changes in removed:
        for table, written in changes.items():
            for key in written:
                found.setdefault(table, {})[key] = chain.state.get(table, key)
    return found
