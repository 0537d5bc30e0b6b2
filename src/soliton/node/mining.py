"""When a private chain makes its blocks: at once when there are transactions, or in a rhythm.

What lives here: the waiting. What does not: the block (``miner``), the schedule of public networks.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from soliton.crypto.keys import KeyPair
from soliton.errors import SolitonError
from soliton.node.node import Node

_log = logging.getLogger(__name__)

LEAST_GAP_SECONDS: Final = 0.005
"""Transactions that come within this time after a block share the next one."""
RETRY_SECONDS: Final = 1.0


async def mine_on_demand(node: Node, account: KeyPair) -> None:
    """Make a block whenever the pool has transactions, for ever."""
    arrived = asyncio.Event()
    node.on_transaction = arrived.set
    while True:
        await arrived.wait()
        arrived.clear()
        if len(node.pool) and not _mine(node, account):
            await asyncio.sleep(RETRY_SECONDS)
            arrived.set()
        await asyncio.sleep(LEAST_GAP_SECONDS)
        if len(node.pool):
            # More than one block can hold.
            arrived.set()


async def mine_in_rhythm(node: Node, account: KeyPair, seconds: float) -> None:
    """Make a block every so many seconds, for ever."""
    loop = asyncio.get_running_loop()
    due = loop.time() + seconds
    while True:
        await asyncio.sleep(max(0.0, due - loop.time()))
        _mine(node, account)
        due = max(due + seconds, loop.time())


def _mine(node: Node, account: KeyPair) -> bool:
    try:
        block = node.mine(account)
    except SolitonError as error:
        _log.error("cannot make a block: %s", error)
        return False
    _log.debug("block %d with %d transactions", node.chain.height, len(block.transactions))
    return True
