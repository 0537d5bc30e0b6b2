"""When blocks are made: as proof of stake decides, at once for each transaction, or in a rhythm.

What lives here: the waiting. What does not: making the block (``miner``), putting it on the chain
(``node``).
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
from soliton.ledger.errors import BlockRejected
from soliton.node import held_mining, key_blocks
from soliton.node.chain_writer import ChainWriter
from soliton.node.events import BlockAppended, NodeEvent, PoolAccepted, RolledBack
from soliton.node.held_keys import (
    AccountKey,
    HeldKey,
    SignedBefore,
    SignerSilent,
    SigningRefused,
)
from soliton.node.miner import CannotMine, Slot, header_of, next_slot
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
    """Make blocks as proof of stake lets the accounts that mine, for ever.

    Where NG is active a key block is empty and microblocks follow until the next turn. On top of an
    old block nothing is made: the network may be further; nor while ``may_mine`` says no. Where
    there is no quorum of peers it is looked again after a while. It ends where the node stops.
    """
    settings = node.settings.miner
    told = False
    offset, of_block = 0, -1
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
        if stale and not told:
            _log.warning("no mining: the last block is older than %s allows", _INTERVAL_SETTING)
        told = stale
        if not stale:
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
            pause = min(wait, settings.micro_block_interval_ms / 1000)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await moved.wait()
            if not (may_mine() and has_quorum()):
                break
            if due > node.clock() and len(node.pool):
                await _extend(node)
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
            # A pause also after a success: private chains may have no delay at all.
            await asyncio.sleep(LEAST_GAP_SECONDS if made else RETRY_SECONDS)


def is_stale(node: Node) -> bool:
    """Whether the last block is so old that the settings forbid to build on it."""
    age = node.clock() - node.chain.last_block.header.timestamp
    return node.chain.height > 1 and age > node.settings.miner.interval_after_last_block_ms


def mining_accounts(node: Node) -> list[AccountKey]:
    """The accounts that mine: those of the wallet, or those that the settings name instead."""
    if named := node.settings.miner.accounts:
        return list(named)
    found = map(node.wallet.key, node.wallet.accounts(node.network.chain_id))
    return [account for account in found if account is not None]


def mining_account(node: Node, generator: bytes) -> AccountKey | None:
    """The account that mines with this public key."""
    if named := node.settings.miner.accounts:
        return next((each for each in named if each.public_key == generator), None)
    return node.wallet.key(from_public_key(generator, node.network.chain_id))


class BaseTargetReached(BlockRejected):
    """A block with the base target at which the settings want the node to stop."""


def check_base_target(node: Node, chain: ChainWriter, base_target: int) -> None:
    """Let the node stop where the block on top of a chain has the base target that the settings
    name, and raise ``BaseTargetReached``.

    Blocks that are easy to make are those of a chain that most miners have left.
    """
    most = node.settings.synchronization.max_base_target
    # As in the reference: before Fair PoS base targets were no measure.
    if most is None or base_target < most or not chain.rules.at(chain.height).has(Feature.FAIR_POS):
        return
    _log.error(
        "the node stops: base target %d has reached synchronization.max-base-target = %d; it may "
        "follow a chain that few miners are on", base_target, most,
    )  # fmt: skip
    node.request_stop()
    raise BaseTargetReached(chain.height + 1, f"its base target {base_target} is {most} or more")


def next_turn(node: Node) -> Slot | None:
    """The first turn that one of the accounts has that mine.

    A light node has none as long as nothing proves that its state is the others'.
    """
    chain = node.chain
    if node.settings.light and not chain.rules.at(chain.height + 1).state_hash_required:
        return None
    slots = []
    for account in mining_accounts(node):
        try:
            slots.append(next_slot(node.chain, account))
        except CannotMine:
            continue
    return min(slots, key=lambda slot: slot.earliest, default=None)


async def _prove_turns(node: Node) -> None:
    for account in mining_accounts(node):
        if isinstance(account, HeldKey):
            await held_mining.prove_turn(node, account)


async def _extend(node: Node) -> None:
    generator = node.chain.last_block.header.generator
    account = mining_account(node, generator)
    if account is None:
        return
    try:
        if isinstance(account, HeldKey):
            await held_mining.mine_microblock(node, account)
        else:
            await node.mine_micro_in_steps(account)
    except StorageProblem:
        # The node says so, and when it is tried again.
        return
    except SignedBefore as error:
        # The next block comes all the same.
        _log.info("no microblock: %s", error)
    except (SigningRefused, SignerSilent) as error:
        assert isinstance(account, HeldKey)
        account.tell(str(error))
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
    account: AccountKey,
    *,
    empty: bool = False,
    most: int = MAX_TRANSACTIONS,
    level: int = logging.INFO,
    scheduled: bool = False,
) -> bool:
    try:
        if isinstance(account, HeldKey):
            block = await _mine_elsewhere(node, account, empty=empty, most=most)
        elif scheduled and empty:
            block = key_blocks.mine_key_block(node, account)
            node.settle_in_turns()
        else:
            block = await node.mine_in_steps(account, empty=empty, most=most)
    except StorageProblem:
        # As above.
        return False
    except (SigningRefused, SignerSilent) as error:
        assert isinstance(account, HeldKey)
        account.tell(str(error))
        return False
    except SolitonError as error:
        _log.error("cannot make a block: %s", error)
        return False
    _log.log(level, "block %d with %d transactions", node.chain.height, len(block.transactions))
    return True


async def _mine_elsewhere(node: Node, account: HeldKey, *, empty: bool, most: int) -> Block:
    if empty:
        block = await held_mining.mine_key_block(node, account)
        node.settle_in_turns()
        return block
    return await held_mining.mine(node, account, empty=False, most=most)
