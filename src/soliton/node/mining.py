"""Scheduling of blocks: by proof of stake, on demand for transactions, or at intervals.

What lives here: the loops. What does not: making the block (``miner``), appending it (``node``).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from typing import Final

from soliton.chain.addresses import from_public_key
from soliton.chain.blocks import MAX_TRANSACTIONS, Block
from soliton.chain.features import Feature
from soliton.crypto.keys import KeyPair
from soliton.errors import SolitonError
from soliton.ledger import headers
from soliton.ledger.errors import BlockRejected, UnknownFeatures
from soliton.node import key_blocks, remote_mining
from soliton.node.chain_writer import ChainWriter
from soliton.node.events import BlockAppended, NodeEvent, PoolAccepted, RolledBack
from soliton.node.miner import CannotMine, Slot, header_of, next_slot
from soliton.node.node import Node
from soliton.node.remote_keys import (
    AccountKey,
    RemoteKey,
    SignedBefore,
    SignerUnavailable,
    SigningRefused,
)
from soliton.storage.errors import StorageProblem

_log = logging.getLogger(__name__)

LEAST_GAP_SECONDS: Final = 0.005
"""Transactions that arrive within this time after a block share the next one."""
BUSY_GAP_SECONDS: Final = 0.03
"""The same after a block of several transactions, to make fewer blocks under load."""
FEW_TRANSACTIONS: Final = 5
MOST_TOGETHER: Final = 2_000
"""Transactions of a block made on demand. Appending a block halts the node for some 15 ms for each
thousand, and the next block follows at once.
"""
RETRY_SECONDS: Final = 1.0
_INTERVAL_SETTING: Final = "miner.interval-after-last-block-then-generation-is-allowed"


async def mine_on_demand(node: Node, account: KeyPair, heartbeat: float = 0) -> None:
    """Make a block whenever the pool has transactions, forever; and an empty one when there were
    none for ``heartbeat`` seconds, unless that is 0, for clients that wait for confirmations.
    """
    arrived = asyncio.Event()

    def notice(event: NodeEvent) -> None:
        # A rollback puts transactions back.
        if isinstance(event, PoolAccepted | RolledBack):
            arrived.set()

    node.events.subscribe(notice)
    try:
        await _mine_when(arrived, node, account, heartbeat)
    finally:
        node.events.unsubscribe(notice)


async def _mine_when(
    arrived: asyncio.Event, node: Node, account: KeyPair, heartbeat: float
) -> None:
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


def _yes() -> bool:
    return True


async def mine_by_schedule(
    node: Node, may_mine: Callable[[], bool] = _yes, has_quorum: Callable[[], bool] = _yes
) -> None:
    """Make blocks in the slots of the mining accounts, until the node stops.

    If NG is active, key blocks are empty and microblocks follow until the next slot. No block is
    made on top of an old block, since the network may be ahead, nor while ``may_mine`` returns
    false. Without a quorum of peers it waits and checks again.
    """
    settings = node.settings.miner
    logged = False
    offset, of_block, own = 0, -1, b""
    moved = asyncio.Event()

    def notice(event: NodeEvent) -> None:
        if isinstance(event, BlockAppended | RolledBack):
            moved.set()

    node.events.subscribe(notice)
    while True:
        moved.clear()
        if not has_quorum():
            await asyncio.sleep(max(LEAST_GAP_SECONDS, settings.no_quorum_delay_ms / 1_000))
            continue
        stale = is_stale(node)
        if stale and not logged:
            _log.warning("no mining: the last block is older than %s allows", _INTERVAL_SETTING)
        logged = stale
        if not stale:
            if may_mine():
                node.committer.follow()
            await _prove_turns(node)
        slot = None if stale or not may_mine() else next_turn(node)
        if slot is None:
            await asyncio.sleep(RETRY_SECONDS)
            continue
        top = node.chain.last_block.id
        if of_block != node.chain.height:
            offset, of_block = node.clock() + settings.least_offset_ms, node.chain.height
        due = max(slot.earliest, offset)
        while (wait := (due - node.clock()) / 1000) > 0:
            pause = min(wait, max(LEAST_GAP_SECONDS, settings.micro_block_interval_ms / 1000))
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await moved.wait()
            if not (may_mine() and has_quorum()):
                break
            if due > node.clock() and len(node.pool):
                await _extend(node, own)
            if node.chain.last_block.id != top:
                break
        else:
            try:
                header = header_of(node.chain, slot, max(slot.earliest, node.clock()))
                check_base_target(node, node.chain, header.base_target)
            except BaseTargetReached:
                return
            micro = node.chain.rules.at(node.chain.height).ng
            made = await _mine(node, slot.account, empty=micro, scheduled=True)
            own = node.chain.last_block.id if made else own
            # Pause also after a success: private chains may have no delay at all.
            await asyncio.sleep(LEAST_GAP_SECONDS if made else RETRY_SECONDS)


def is_stale(node: Node) -> bool:
    """Whether the last block is too old to build on, by the settings."""
    age = node.clock() - node.chain.last_block.header.timestamp
    return node.chain.height > 1 and age > node.settings.miner.interval_after_last_block_ms


def mining_account(node: Node, generator: bytes) -> AccountKey | None:
    """Return the mining account with this public key."""
    if named := node.settings.miner.accounts:
        return next((each for each in named if each.public_key == generator), None)
    return node.wallet.key(from_public_key(generator, node.network.chain_id))


class BaseTargetReached(BlockRejected):
    """A block has the base target at which the settings stop the node."""


def check_base_target(node: Node, chain: ChainWriter, base_target: int) -> None:
    """Stop the node if the next block of a chain would have the base target of the settings, and
    raise ``BaseTargetReached``.

    A high base target, at which blocks are easy to make, is that of a fork with few miners.
    """
    most = node.settings.synchronization.max_base_target
    # As in the reference: before Fair PoS base targets are not comparable.
    if most is None or base_target < most or not chain.rules.at(chain.height).has(Feature.FAIR_POS):
        return
    _log.error(
        "the node stops: base target %d has reached synchronization.max-base-target = %d; it may "
        "follow a chain that few miners are on", base_target, most,
    )  # fmt: skip
    node.request_stop()
    raise BaseTargetReached(chain.height + 1, f"its base target {base_target} is {most} or more")


def next_turn(node: Node) -> Slot | None:
    """Return the earliest slot of the mining accounts.

    A light node has none until blocks contain state hashes, which prove its state. Nor has a node
    that is too old for the next block.
    """
    chain = node.chain
    try:
        headers.check_features(chain)
    except UnknownFeatures:
        return None
    if node.settings.light and not chain.rules.at(chain.height + 1).state_hash_required:
        return None
    slots = []
    for account in node.mining_accounts():
        try:
            slots.append(next_slot(node.chain, account))
        except CannotMine:
            continue
    return min(slots, key=lambda slot: slot.earliest, default=None)


async def _prove_turns(node: Node) -> None:
    for account in node.mining_accounts():
        if isinstance(account, RemoteKey):
            await remote_mining.prove_turn(node, account)


async def _extend(node: Node, own: bytes) -> None:
    """Add a microblock to the last block, if this node has made it: the first form is ``own``.

    Another node may have the same accounts, and extend its block itself. The signer of a remote key
    signs one microblock for each form, whoever asks.
    """
    account = mining_account(node, node.chain.last_block.header.generator)
    if account is None or not (isinstance(account, RemoteKey) or node.chain.knows_liquid(own)):
        return
    try:
        if isinstance(account, RemoteKey):
            await remote_mining.mine_microblock(node, account)
        else:
            await node.mine_micro_in_steps(account)
    except StorageProblem:
        # The node logs it, and when it retries.
        return
    except SignedBefore as error:
        # The next key block is not affected.
        _log.info("no microblock: %s", error)
    except (SigningRefused, SignerUnavailable) as error:
        assert isinstance(account, RemoteKey)
        account.log_problem(str(error))
    except SolitonError as error:
        _log.error("cannot make a microblock: %s", error)


async def mine_in_rhythm(node: Node, account: KeyPair, seconds: float) -> None:
    """Make a block every so many seconds, forever."""
    loop = asyncio.get_running_loop()
    due = loop.time() + seconds
    while True:
        await asyncio.sleep(max(0.0, due - loop.time()))
        await _mine(node, account)
        due = max(due + seconds, loop.time())


async def _mine(
    node: Node,
    account: AccountKey,
    *,
    empty: bool = False,
    most: int = MAX_TRANSACTIONS,
    level: int = logging.INFO,
    scheduled: bool = False,
) -> bool:
    try:
        if isinstance(account, RemoteKey):
            block = await _mine_remotely(node, account, empty=empty, most=most)
        elif scheduled and empty:
            block = key_blocks.mine_key_block(node, account)
            node.settle_in_turns()
        else:
            block = await node.mine_in_steps(account, empty=empty, most=most)
    except StorageProblem:
        # As above.
        return False
    except (SigningRefused, SignerUnavailable) as error:
        assert isinstance(account, RemoteKey)
        account.log_problem(str(error))
        return False
    except SolitonError as error:
        _log.error("cannot make a block: %s", error)
        return False
    _log.log(level, "block %d with %d transactions", node.chain.height, len(block.transactions))
    return True


async def _mine_remotely(node: Node, account: RemoteKey, *, empty: bool, most: int) -> Block:
    if empty:
        block = await remote_mining.mine_key_block(node, account)
        node.settle_in_turns()
        return block
    return await remote_mining.mine(node, account, empty=False, most=most)
