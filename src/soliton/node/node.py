"""The node: chain, pool and wallet, as its interfaces see them.

What lives here: accepting a transaction, making a block, rollback, stopping. What does not: HTTP
(``soliton.api``), rules, records on disk.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import partial
from typing import Final, TypeVar

from soliton.chain import microblocks
from soliton.chain.blocks import MAX_TRANSACTIONS, Block
from soliton.chain.transactions.model import AnyTransaction
from soliton.crypto.curve25519 import SignedMessage
from soliton.errors import SolitonError
from soliton.ledger import fees
from soliton.ledger.apply import AppliedBlock
from soliton.ledger.errors import BlockRejected
from soliton.ledger.fees import MinimumFee
from soliton.ledger.state import Changes
from soliton.ledger.traces import Traces
from soliton.node import miner
from soliton.node.chain_writer import ChainWriter, open_store
from soliton.node.committer import Committer
from soliton.node.counters import Counters
from soliton.node.disk import Disk
from soliton.node.endorsed import FILE_NAME, EndorsedBlocks
from soliton.node.endorser import BlockEndorser
from soliton.node.events import ChainEvent, NodeEvents, RolledBack, Stopping
from soliton.node.forms import Forms
from soliton.node.known_features import FeatureWatch
from soliton.node.miner import Forged
from soliton.node.network_time import NetworkClock
from soliton.node.peering import Peering, check_connected
from soliton.node.pool import Origin, UtxPool
from soliton.node.refusals import Refusals
from soliton.node.remote_keys import AccountKey, AnyWallet
from soliton.node.settings import Settings
from soliton.node.turns import Turn, Turns
from soliton.node.versions import agent
from soliton.steps import Steps, run_steps
from soliton.storage.below import Below
from soliton.storage.errors import StorageProblem
from soliton.storage.retrying import retry_until_read

STEP_SECONDS: Final = 0.002
"""The length of a step of making blocks, between which requests are served."""
SETTLING_SECONDS: Final = 0.001
"""The length of a step of rechecking the pool, unless one transaction takes longer."""
PAUSES: Final = 2
"""The pause after such a step, in lengths of the step."""

T = TypeVar("T")

_log = logging.getLogger(__name__)


def system_clock() -> int:
    """Return the time in ms."""
    return time.time_ns() // 1_000_000


class Node:
    """A running node on one chain."""

    def __init__(
        self,
        settings: Settings,
        wallet: AnyWallet,
        *,
        clock: Callable[[], int] = system_clock,
        durable: bool = True,
        writes: bool = True,
        below: Below | None = None,
    ) -> None:
        """Open the chain in the settings' data directory; ``durable``, ``below`` as in ``Store``.

        One process ``writes``; others follow it (``chain.follow``) and only read.
        """
        self.settings = settings
        self.network = settings.network
        self.wallet = wallet
        self.clock = clock
        self.writes = writes
        self.store = open_store(settings, durable=durable, writes=writes, below=below)
        self.events = NodeEvents()
        self.peering: Peering | None = None
        """The interface to its peers, while the network runs."""
        self.counters = Counters()
        self.events.subscribe(self.counters)
        self.forms = Forms(clock)
        self.events.subscribe(self.forms)
        self._changes: list[ChainEvent] = []
        self.refusals = Refusals()
        self.turns = Turns(at_once=below is not None)
        """The checks of transactions whose scripts take long."""
        try:
            self.chain = ChainWriter(settings.network, self.store)
        except BaseException:
            self.store.close()
            raise
        self.chain.max_rollback = settings.synchronization.loader.max_rollback
        self.disk = Disk()
        self.chain.on_change = self._changes.append
        limits = settings.utx
        self.pool = UtxPool(
            self.chain,
            clock,
            limits.max_size,
            limits.max_bytes_size,
            self.events.publish,
            max_scripted=limits.max_scripted_size,
            unlimited=limits.always_unlimited_execution,
        )
        endorsed = EndorsedBlocks(
            settings.directory / FILE_NAME if writes else None,
            settings.network.chain_id,
            is_new=self.chain.height == 1,
            syncs=durable,
        )
        self.endorser = BlockEndorser(self.chain, settings, self.mining_accounts, clock, endorsed)
        self.events.subscribe(self.endorser.on_event)
        self.committer = Committer(self)
        self.agent = agent(settings.network.family)
        self.started_at = clock()
        self._stop = asyncio.Event()
        stops = settings.features.auto_shutdown_on_unsupported_feature
        self.feature_watch = FeatureWatch(self.chain, self.request_stop if stops else None)
        self._settling: asyncio.Task[None] | None = None

    @property
    def clock_offset_ms(self) -> int:
        """How much the clock of the node is ahead of that of the machine."""
        return self.clock.offset_ms if isinstance(self.clock, NetworkClock) else 0

    def broadcast(
        self,
        transaction: AnyTransaction,
        traces: Traces | None = None,
        *,
        verified: Collection[SignedMessage] = (),
        origin: Origin = Origin.CLIENT,
    ) -> bool:
        """Check a transaction and add it to the pool; return ``False`` if it is already there.

        A transaction that would fail and pay its fee is refused; how far scripts are run depends
        on the ``origin``. Their steps are added to ``traces``; ``verified`` signatures are not
        verified again. Called in ``turns``, scripts are left while other work runs. Raises
        ``NotEnoughPeers`` and the errors of the pool and the ledger.
        """
        check_connected(self.peering, self.settings.rest_api.minimum_peers)
        with self.refusals.of(transaction):
            return self.pool.add(transaction, verified=verified, origin=origin, traces=traces)

    def mining_accounts(self) -> list[AccountKey]:
        """Return the mining accounts: those of the settings, or else those of the wallet."""
        if named := self.settings.miner.accounts:
            return list(named)
        found = map(self.wallet.key, self.wallet.accounts(self.network.chain_id))
        return [account for account in found if account is not None]

    def minimum_fee(self, transaction: AnyTransaction) -> MinimumFee:
        """Return the minimum fee of a transaction in the next block."""
        rules = self.chain.rules.at(self.chain.height + 1)
        return fees.minimum_fee(transaction, self.pool.state(), rules)

    def mine(self, account: AccountKey, *, empty: bool = False) -> Block:
        """Make the next block with this account and append it.

        It holds the transactions of the pool, or none (``empty``) if microblocks follow. Raises
        ``CannotMine``, ``BlockRejected`` when it is too early, or ``StorageProblem`` when it cannot
        be written; then nothing has changed.
        """
        block = self.put_forged(run_steps(self._forging(account, empty=empty)))
        self.pool.settle()
        return block

    async def mine_in_steps(
        self, account: AccountKey, *, empty: bool = False, most: int = MAX_TRANSACTIONS
    ) -> Block:
        """Do the same in steps, between which the event loop serves other work. The last step, of
        appending the block, takes time in proportion to its transactions, at most ``most``.

        Raises ``BlockRejected`` also when another block was appended meanwhile.
        """

        async def mined() -> tuple[Forged, AppliedBlock]:
            forged = await self._in_turns(self._forging(account, empty=empty, most=most))
            return forged, _put(self, forged)

        # The chain below a fork may have to be fetched.
        block = self._published(
            *await (mined() if self.store.below is None else retry_until_read(mined))
        )
        self.settle_in_turns()
        return block

    async def forged_in_steps(self, account: AccountKey, *, empty: bool, most: int) -> Forged:
        """Make a block without appending it."""
        return await self._in_turns(self._forging(account, empty=empty, most=most))

    def return_to_pool(self, taken: tuple[AnyTransaction, ...]) -> None:
        """Return microblocks' transactions to the pool after the block that removed them was
        refused, except those that the last block contains again.
        """
        if self._changes:
            still = {each.id for each in self.chain.last_block.transactions}
            self.follow_chain(returned=[each for each in taken if each.id not in still])

    async def _in_turns(self, steps: Steps[T]) -> T:
        """Run all steps, and yield to the event loop between them. Raises ``BlockRejected`` when
        the chain changes.
        """
        last = self.chain.last_block
        until = time.perf_counter() + STEP_SECONDS
        while True:
            try:
                next(steps)
            except StopIteration as end:
                result: T = end.value
                return result
            if time.perf_counter() < until:
                continue
            await asyncio.sleep(0)
            until = time.perf_counter() + STEP_SECONDS
            if self.chain.last_block is not last:
                steps.close()
                raise BlockRejected(self.chain.height, "another block came first")

    def _forging(
        self, account: AccountKey, *, empty: bool, most: int = MAX_TRANSACTIONS
    ) -> Steps[Forged]:
        self.disk.check()
        slot = miner.next_slot(self.chain, account)
        self.committer.follow()
        candidates: Iterable[AnyTransaction] = ()
        if not empty:
            candidates = yield from self.pool.mining_order(self.chain.height + 1)
        return (
            yield from miner.forging(
                self.chain,
                slot,
                candidates,
                self.clock(),
                *miner.votes(self.settings, self.chain),
                trials=self.pool,
                most=most,
            )
        )

    def put_forged(self, forged: Forged) -> Block:
        """Append a block that was made here; raises like ``mine``."""
        return self._published(forged, _put(self, forged))

    def _published(self, forged: Forged, applied: AppliedBlock) -> Block:
        self.follow_chain(forged.block.transactions, forged.invalid, changes=applied.changes)
        return forged.block

    async def mine_micro_in_steps(self, account: AccountKey) -> int:
        """Add transactions of the pool to the last block, which this account made, in steps; return
        their number. Raises ``BlockRejected`` when another block was appended meanwhile.
        """
        added = self.put_micro(await self._in_turns(self._forging_micro(account)))
        self.settle_in_turns()
        return added

    async def micro_forged_in_steps(self, account: AccountKey) -> Forged | None:
        """Make the extended last block without storing it; ``None`` if it would not change."""
        return await self._in_turns(self._forging_micro(account))

    def settle_in_turns(self) -> None:
        """Recheck the pool after a change of the chain, in the background. Raises nothing: the
        chain has changed, whatever becomes of the pool.
        """
        if self._settling is not None:
            return
        turn = self._settling_turn()
        if not (turn.is_done and self._is_settled_by(turn)):
            self._settling = asyncio.create_task(self._settle(turn))

    def _settling_turn(self) -> Turn[bool]:
        return self.turns.begin(partial(self.pool.settle, SETTLING_SECONDS), is_own=True)

    def _is_settled_by(self, turn: Turn[bool]) -> bool:
        """Whether a turn, which is done, was the last one: for good, or until the next change."""
        try:
            return turn.result()
        except SolitonError as error:
            _log.error("the pool does not follow the chain: %s", error)
            return True

    async def _settle(self, turn: Turn[bool]) -> None:
        pause = SETTLING_SECONDS
        try:
            while True:
                await turn.wait()
                if self._is_settled_by(turn):
                    return
                # Blocks and requests get most of the time.
                await asyncio.sleep(PAUSES * pause)
                since = time.perf_counter()
                turn = self._settling_turn()
                pause = time.perf_counter() - since
        finally:
            self._settling = None

    async def settled(self) -> None:
        """Wait until the pool is rechecked."""
        self.settle_in_turns()
        if self._settling is not None:
            await asyncio.wait((self._settling,))

    def _forging_micro(self, account: AccountKey) -> Steps[Forged | None]:
        self.disk.check()
        settings, pool = self.settings.miner, self.pool
        limit = min(microblocks.MAX_TRANSACTIONS, settings.max_transactions_in_micro_block)
        is_late = miner.late_after(self.clock, settings.micro_block_interval_ms)
        candidates = yield from pool.mining_order(self.chain.height)
        steps = miner.forging_micro(
            self.chain,
            account,
            candidates,
            limit,
            trials=pool,
            is_late=is_late,
            voting_of=self.endorser.voting,
        )
        return (yield from steps)

    def put_micro(self, forged: Forged | None) -> int:
        """Replace the last block by its longer form; return the number of added transactions."""
        if forged is None:
            return 0
        assert forged.progress is not None, "microblocks come with NG"
        added = forged.block.transactions[len(self.chain.last_block.transactions) :]
        with self.writing():
            self.chain.extend_own(
                forged.block, forged.progress, forged.micro_signature, forged.voting
            )
        self.follow_chain(added, forged.invalid, changes=self.chain.last_changes())
        return len(added)

    async def roll_back_in_steps(self, height: int, *, keep: bool) -> None:
        """Remove all blocks above a height; their transactions return to the pool if ``keep``.

        The pool is rechecked in steps. Raises ``RollbackTooDeep``, and ``StorageProblem`` when not
        all blocks could be removed.
        """
        try:
            self._roll_back(height, keep=keep)
        finally:
            await self.settled()

    def _roll_back(self, height: int, *, keep: bool) -> None:
        removed: list[Block] = []
        try:
            with self.writing():
                self.chain.rollback(height, removed.append if keep else None)
        finally:
            if self._changes:
                self.follow_chain(
                    returned=[each for block in reversed(removed) for each in block.transactions]
                )

    @contextlib.contextmanager
    def writing(self) -> Iterator[None]:
        """Run changes of the chain. If they cannot be written, record the failure and drop the
        events of what is not stored.
        """
        try:
            yield
        except StorageProblem as problem:
            self.disk.failed(problem)
            self._changes[:] = [event for event in self._changes if _is_stored(self.chain, event)]
            raise
        self.disk.works()

    def follow_chain(
        self,
        mined: tuple[AnyTransaction, ...] = (),
        unminable: Mapping[bytes, str] | None = None,
        returned: Iterable[AnyTransaction] = (),
        changes: Changes | None = None,
        dropped: Mapping[bytes, str] | None = None,
    ) -> None:
        """Publish the events of stored changes of the chain, and update the pool, but do not
        recheck it (``settled``).
        """
        for event in self._changes:
            self.events.publish(event)
        self._changes.clear()
        self.feature_watch.check()
        ids = (transaction.id for transaction in mined)
        self.pool.follow(ids, unminable, returned, changes, dropped)

    def request_stop(self) -> None:
        """Request the program to stop the node."""
        if not self._stop.is_set():
            self._stop.set()
            self.events.publish(Stopping())

    @property
    def is_stopping(self) -> bool:
        """Whether a stop was requested."""
        return self._stop.is_set()

    async def wait_for_stop(self) -> None:
        """Wait until a stop is requested."""
        await self._stop.wait()

    def close(self) -> None:
        """Write pending changes and close the store."""
        if self._settling is not None:
            self._settling.cancel()
        self.turns.close()
        self.store.close()
        _log.info("stopped at height %d", self.chain.height)


def _put(node: Node, forged: Forged) -> AppliedBlock:
    with node.writing():
        if forged.progress is None:
            applied = node.chain.append(forged.block, verify_signatures=False)
        else:
            applied = node.chain.append_own(forged.block, forged.progress)
        node.chain.flush()
    return applied


def _is_stored(chain: ChainWriter, event: ChainEvent) -> bool:
    if isinstance(event, RolledBack):
        return True
    at = event.height
    return at <= chain.height and chain.meta(at).id == event.block.id
