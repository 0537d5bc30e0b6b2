"""Moving a chain at once: to a moment of its store, to its beginning, or to another store.

Listeners receive events about the blocks that are removed and added.

What lives here: chain and store. What does not: pool, clock and mining (``control``).
"""

from __future__ import annotations

import msgspec

from soliton.chain.addresses import Address
from soliton.chain.blocks import Block
from soliton.ledger import headers
from soliton.ledger.apply import AppliedBlock, apply_block
from soliton.ledger.edits import ByHand
from soliton.ledger.environment import next_environment
from soliton.ledger.errors import BlockRejected
from soliton.node.chain_writer import ChainWriter
from soliton.node.events import BlockAppended, RolledBack
from soliton.storage.store import Store


def restore_moment(chain: ChainWriter, moment: int) -> None:
    """Revert to a moment of the store.

    Raises ``KeyError`` and ``StorageProblem``, which leave the chain unchanged.
    """
    chain.flush()
    top = chain.height
    first = chain.store.restore_moment(moment)
    chain.discard_pending()
    if first <= top:
        chain.on_change(RolledBack(first - 1, chain.block_at(first - 1)))
    for height in range(first, chain.height + 1):
        chain.on_change(BlockAppended(height, chain.block_at(height)))


def reset(chain: ChainWriter) -> None:
    """Reset the chain to the genesis block, or to the origin of a fork. Deletes all moments."""
    chain.store.wipe()
    chain.discard_pending()
    if chain.height == 0:
        chain.begin()
        chain.flush()
        chain.discard_pending()
    chain.on_change(RolledBack(chain.height, chain.last_block))


def replace_store(chain: ChainWriter, other: Store) -> None:
    """Atomically replace the store's content by that of another. Raises ``StorageProblem``."""
    chain.flush()
    chain.store.become(other)
    chain.discard_pending()
    chain.on_change(RolledBack(1, chain.block_at(1)))
    for height in range(2, chain.height + 1):
        chain.on_change(BlockAppended(height, chain.block_at(height)))


def append_recorded(chain: ChainWriter, block: Block, by_hand: ByHand) -> AppliedBlock:
    """Append a recorded block with edits. Its state hash is checked, signatures are not. Raises
    ``BlockRejected``.
    """
    if block.header.reference != chain.last_block.id:
        raise BlockRejected(chain.height + 1, "its reference is not the last block")
    source = by_hand.hit_source
    if by_hand.proven:
        source = headers.check_header(chain, block.header, block.id, None)
    environment = msgspec.structs.replace(
        next_environment(chain, block.header, source),
        edits=by_hand.edits,
        waived=frozenset(map(Address, by_hand.impersonated)),
        proven=by_hand.proven,
    )
    progress = apply_block(chain.state, block, environment, verify_signatures=False)
    return chain.put(block, progress)
