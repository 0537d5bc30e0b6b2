"""When blocks are made: as proof of stake decides, at once for each transaction, or in a rhythm.

What lives here: the waiting. What does not: making the block (``miner``), putting it on the chain
(``node``).
"""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from soliton.chain.addresses import from_public_key
from soliton.chain.blocks import MAX_TRANSACTIONS
from soliton.crypto.keys import KeyPair
from soliton.errors import SolitonError
from soliton.node.events import NodeEvent, PoolAccepted, RolledBack
from soliton.node.miner import CannotMine, Slot, next_slot
from soliton.node.node import Node
from soliton.storage.errors import StorageProblem

_log = logging.getLogger(__name__)

LEAST_GAP_SECONDS: Final = 0.005
"""Transactions that come within this time after a block share the next one."""
BUSY_GAP_SECONDS: Final = 0.03
"""The same after a block that several have shared: under load, blocks cost more than they bring."""
FEW_TRANSACTIONS: Final = 5
MOST_TOGETHER: Final = 2_000
"""Transactions of a block that is made at once. The next one follows at once as well, and putting
a block on the chain halts the node for some 15 ms for each thousand.
"""
RETRY_SECONDS: Final = 1.0
_INTERVAL_SETTING: Final = "miner.interval-after-last-block-then-generation-is-allowed"


async def mine_on_demand(node: Node, account: KeyPair, heartbeat: float = 0) -> None:
    """Make a block whenever the pool has transactions, for ever; and an empty one when there were
    none for ``heartbeat`` seconds, unless that is 0: who waits for confirmations waits for blocks.
    """
    arrived = asyncio.Event()

    def notice(event: NodeEvent) -> None:
        # A rollback puts transactions back.
        if isinstance(event, PoolAccepted | RolledBack):
            arrived.set()

    node.events.subscribe(notice)
    if len(node.pool):
        arrived.set()
    while True:
        try:
            async with asyncio.timeout(heartbeat or None):
                await arrived.wait()
        except TimeoutError:
            await _mine(node, account, level=logging.DEBUG)
            continue
        arrived.clear()
        if len(node.pool) and not await _mine(node, account, most=MOST_TOGETHER):
            await asyncio.sleep(RETRY_SECONDS)
            arrived.set()
        busy = len(node.chain.last_block.transactions) > FEW_TRANSACTIONS
        await asyncio.sleep(BUSY_GAP_SECONDS if busy else LEAST_GAP_SECONDS)
        if len(node.pool):
            # More than one block can hold.
            arrived.set()


async def mine_by_schedule(node: Node) -> None:
    """Make blocks as proof of stake lets the wallet's accounts, for ever.

    Where NG is active a key block is empty and microblocks follow until the next turn. On top of an
    old block nothing is made: the network may be further.
    """
    told = False
    while True:
        stale = _is_stale(node)
        if stale and not told:
            _log.warning("no mining: the last block is older than %s allows", _INTERVAL_SETTING)
        told = stale
        slot = None if stale else _next_slot(node)
        if slot is None:
            await asyncio.sleep(RETRY_SECONDS)
            continue
        top = node.chain.last_block.id
        while (wait := (slot.earliest - node.clock()) / 1000) > 0:
            await asyncio.sleep(min(wait, node.settings.miner.micro_block_interval_ms / 1000))
            if slot.earliest > node.clock() and len(node.pool):
                await _extend(node)
            if node.chain.last_block.id != top:
                break
        else:
            micro = node.chain.rules.at(node.chain.height).ng
            made = await _mine(node, slot.account, empty=micro)
            # A pause also after a success: private chains may have no delay at all.
            await asyncio.sleep(LEAST_GAP_SECONDS if made else RETRY_SECONDS)


def _is_stale(node: Node) -> bool:
    """Whether the last block is so old that the settings forbid to build on it."""
    age = node.clock() - node.chain.last_block.header.timestamp
    return node.chain.height > 1 and age > node.settings.miner.interval_after_last_block_ms


def _next_slot(node: Node) -> Slot | None:
    """The first turn that one of the wallet's accounts has."""
    slots = []
    for address in node.wallet.accounts(node.network.chain_id):
        account = node.wallet.private_key(address)
        if account is None:
            continue
        try:
            slots.append(next_slot(node.chain, account))
        except CannotMine:
            continue
    return min(slots, key=lambda slot: slot.earliest, default=None)


async def _extend(node: Node) -> None:
    generator = node.chain.last_block.header.generator
    account = node.wallet.private_key(from_public_key(generator, node.network.chain_id))
    if account is None:
        return
    try:
        await node.mine_micro_in_steps(account)
    except StorageProblem:
        # The node says so, and when it is tried again.
        return
    except SolitonError as error:
        _log.error("cannot make a microblock: %s", error)


async def mine_in_rhythm(node: Node, account: KeyPair, seconds: float) -> None:
    """Make a block every so many seconds, for ever."""
    loop = asyncio.get_running_loop()
    due = loop.time() + seconds
    while True:
        await asyncio.sleep(max(0.0, due - loop.time()))
        await _mine(node, account)
        due = max(due + seconds, loop.time())


async def _mine(
    node: Node,
    account: KeyPair,
    *,
    empty: bool = False,
    most: int = MAX_TRANSACTIONS,
    level: int = logging.INFO,
) -> bool:
    try:
        block = await node.mine_in_steps(account, empty=empty, most=most)
    except StorageProblem:
        # As above.
        return False
    except SolitonError as error:
        _log.error("cannot make a block: %s", error)
        return False
    _log.log(level, "block %d with %d transactions", node.chain.height, len(block.transactions))
    return True
