"""The controls of a private chain.

A control call runs on the event loop between two blocks and is atomic. Listeners of the node
receive its effects as the same events that peers would cause.

What lives here: the calls. What does not: the clock and the mining modes (``clock``, ``mining``),
files (``dump``), reverting the state (``soliton.storage.timeline``), edits
(``soliton.ledger.editing``).
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Final, Protocol

import msgspec

from soliton.chain.addresses import Address, address_text
from soliton.chain.blocks import Block
from soliton.chain.transactions.model import AnyTransaction
from soliton.controls.clock import ClockState, DevClock
from soliton.controls.errors import ControlRefused
from soliton.controls.mining import INSTANT, Mining, MiningMode, checked_mode
from soliton.controls.moving import reset
from soliton.controls.reorganizing import Reorganized, reorganize
from soliton.controls.snapshots import BY_HAND, Snapshots, Taken
from soliton.crypto import base58
from soliton.crypto.keys import KeyPair
from soliton.errors import InputError
from soliton.ledger.edits import Edit
from soliton.node import miner
from soliton.node.chain_writer import ChainWriter
from soliton.node.events import BlockAppended, NodeEvent
from soliton.node.node import Node
from soliton.steps import Steps, run_steps
from soliton.storage.retrying import disable_retry

MAX_BLOCKS: Final = 1_000_000
"""The limit on blocks of one call, which takes some minutes."""
MAX_PROVEN: Final = 100
"""If a call makes more blocks, the empty ones have no valid proof of stake."""
MAX_INTERVAL_MS: Final = 365 * 86_400_000
MAX_IMPERSONATED: Final = 1_000
COMMITTING_BLOCKS: Final = 20
"""The chain's account commits to generation in so many last blocks of a period: clients of a chain
that is shorter see none of its commitments.
"""
_BATCH: Final = 100
"""Blocks of one write to the store: some ten milliseconds."""


class Maker(Protocol):
    """A market maker, which trades while ``is_on``."""

    is_on: bool


class Origin(msgspec.Struct, frozen=True):
    """The node that a chain was forked from, and the last common block."""

    url: str
    height: int
    block: str


class ChainState(msgspec.Struct, frozen=True, rename="camel"):
    """The state of a private chain. ``instance`` changes with each start and ``resets`` with each
    reset, so that clients can invalidate caches. ``fork`` is the origin of a fork;
    ``market_maker`` tells whether the market maker is on (``None``: there is none).
    """

    instance: str
    resets: int
    height: int
    time: int
    clock: ClockState
    mining: MiningMode
    impersonated: list[str]
    snapshots: list[Taken]
    changed_by_hand: int | None
    matcher: str | None
    """The URL of the devnet's matcher."""
    fork: Origin | None
    market_maker: bool | None


class Controls:
    """The controls of one node, which mines with ``account``."""

    def __init__(
        self,
        node: Node,
        account: KeyPair,
        clock: DevClock,
        *,
        mode: MiningMode = INSTANT,
        prepare: Callable[[], None] = lambda: None,
        origin: Origin | None = None,
    ) -> None:
        """``prepare`` fills the chain after a reset, above the genesis block or the ``origin``."""
        self.node, self.account, self.clock = node, account, clock
        self.mining = Mining(node, account, mode)
        self.origin = origin
        self.maker: Maker | None = None
        self.instance = secrets.token_hex(8)
        self.resets = 0
        self.matcher: str | None = None
        self.pages: frozenset[str] = frozenset()
        """Origins of pages, besides those of this machine, that may call the controls."""
        self.log: Callable[[str], None] = lambda _sentence: None
        """Called with a sentence about each control call."""
        self._prepare = prepare
        self.snapshots = Snapshots(node, clock, self.mining)
        node.events.subscribe(self._notice)
        node.committer.accounts = lambda: [account]
        node.committer.last_blocks = COMMITTING_BLOCKS

    @property
    def chain(self) -> ChainWriter:
        """The node's chain."""
        return self.node.chain

    def _notice(self, event: NodeEvent) -> None:
        if isinstance(event, BlockAppended):
            self.clock.block_made(event.block.header.timestamp)

    def _allow_clients(self) -> None:
        """Accept the timestamps of clients, which use the system's clock."""
        self.chain.allow_drift(self.clock.drift)

    def state(self) -> ChainState:
        """The state of the chain and of its controls."""
        chain = self.chain
        return ChainState(
            instance=self.instance,
            resets=self.resets,
            height=chain.height,
            time=self.clock(),
            clock=self.clock.state,
            mining=self.mining.mode,
            impersonated=sorted(map(address_text, chain.waived)),
            snapshots=self.snapshots.all(),
            changed_by_hand=chain.store.first_by_hand(),
            matcher=self.matcher,
            fork=self.origin,
            market_maker=None if self.maker is None else self.maker.is_on,
        )

    # --- blocks -----------------------------------------------------------------------------------

    def set_mining(self, mode: str, seconds: float = 0) -> MiningMode:
        """Set the mining mode; raises ``ControlRefused``."""
        self.mining.change(checked_mode(mode, seconds))
        self.log(f"mining is {mode}" + (f", {seconds:g} s" if seconds else ""))
        return self.mining.mode

    def mining_steps(self, count: int = 1, interval_ms: int = 0) -> Steps[None]:
        """Mine blocks, in steps. The first block takes the pool. With an interval the timestamps
        are that far apart, and the first one is not in the past. Raises ``ControlRefused``.
        """
        if not 1 <= count <= MAX_BLOCKS:
            raise ControlRefused(f"{count} blocks: 1 to {MAX_BLOCKS} are allowed")
        if not 0 <= interval_ms <= MAX_INTERVAL_MS:
            raise ControlRefused(f"an interval of {interval_ms} ms: 0 to {MAX_INTERVAL_MS}")
        with self.mining.paused():
            proven = count if count <= MAX_PROVEN else 1
            for least in [self.clock(), *[0] * (proven - 1)]:
                self._let_pass(interval_ms, least)
                self.node.mine(self.account)
                yield
            yield from self._mine_unproven(count - proven, interval_ms)
        self._allow_clients()
        self.log(f"{count} blocks were mined by hand" if count > 1 else "a block was mined by hand")

    def mine(self, count: int = 1, interval_ms: int = 0) -> Block:
        """Mine blocks without steps; return the last one."""
        run_steps(self.mining_steps(count, interval_ms))
        return self.chain.last_block

    def _let_pass(self, interval_ms: int, least: int) -> None:
        if interval_ms and self.clock.state.next_block is None:
            last = self.chain.last_block.header
            self.clock.set_next_block(max(last.timestamp + interval_ms, least))

    def _mine_unproven(self, count: int, interval_ms: int) -> Steps[None]:
        node, chain = self.node, self.chain
        while count > 0:
            node.committer.follow()
            content = node.committer.waiting()
            batch = min(_BATCH, count, 1 if content else node.committer.blocks_until_due())
            forged_ones: list[miner.Forged] = []
            with node.writing():
                while len(forged_ones) < batch:
                    slot = miner.unproven_slot(chain, self.account)
                    time = slot.earliest + interval_ms if interval_ms else self.clock()
                    forged = run_steps(miner.forging(chain, slot, content, time))
                    assert forged.progress is not None, "a private chain has NG from its start"
                    chain.put(forged.block, forged.progress)
                    forged_ones.append(forged)
                chain.flush()
            count -= batch
            node.follow_chain(forged_ones[0].block.transactions, forged_ones[0].invalid)
            yield
        node.pool.settle()

    # --- time -------------------------------------------------------------------------------------

    def travel(self, milliseconds: int) -> int:
        """Move the clock forward, which affects blocks from the next one on; return the time."""
        self.clock.travel(milliseconds)
        return self._time_changed()

    def set_time(self, time: int) -> int:
        """Set the time (ms), not before the last block's; raises ``ControlRefused``."""
        self._check_time(time)
        self.clock.set(time)
        return self._time_changed()

    def freeze(self, *, frozen: bool = True) -> int:
        """Stop the clock, or start it again; return the time."""
        (self.clock.freeze if frozen else self.clock.unfreeze)()
        return self._time_changed()

    def set_next_block_time(self, time: int) -> int:
        """Set the time of the next block (ms); the clock continues from it."""
        self._check_time(time)
        self.clock.set_next_block(time)
        return self._time_changed()

    def _check_time(self, time: int) -> None:
        last = self.chain.last_block.header.timestamp
        if time < last:
            raise ControlRefused(f"{time} is before the last block, which is of {last}")

    def _time_changed(self) -> int:
        self._allow_clients()
        now = self.clock()
        self.log(f"the clock says {now}")
        return now

    # --- snapshots --------------------------------------------------------------------------------

    def snapshot(self) -> int:
        """Take a snapshot of the chain, its pool, clock and mining mode; return its unique number.

        Raises ``ControlRefused`` when there are too many.
        """
        number = self.snapshots.take()
        self.log(f"snapshot {number:#x} at height {self.chain.height}")
        return number

    def revert(self, number: int) -> bool:
        """Revert to a snapshot, also to one on a branch that was left; ``False`` if it is unknown.
        Raises ``ControlRefused`` if the store has evicted it, and ``StorageProblem``.
        """
        if not self.snapshots.revert(number):
            return False
        self._allow_clients()
        self.log(f"reverted to snapshot {number:#x}, height {self.chain.height}")
        return True

    # --- another history --------------------------------------------------------------------------

    def reorganize(
        self, depth: int, chosen: Sequence[Sequence[AnyTransaction]] = (), *, keep: bool = True
    ) -> Reorganized:
        """Replace the last blocks by as many others, with other ids and the ``chosen`` transactions
        for each. With ``keep`` the transactions of the old blocks return to the pool.

        Raises ``ControlRefused``, which leaves the chain unchanged.
        """
        with self.mining.paused():
            done = reorganize(self.node, self.account, depth, chosen, keep=keep)
        self.log(f"{depth} blocks were replaced from height {done.height} on")
        return done

    def reset(self) -> None:
        """Reset the chain to the genesis block and ``prepare`` it again. Deletes snapshots, and
        resets the clock to the system's.
        """
        node = self.node
        self.snapshots.pause()
        with self.mining.paused():
            self.snapshots.clear()
            self.clock.state = ClockState()
            self.chain.waived = frozenset()
            self._allow_clients()
            with node.writing():
                reset(self.chain)
            dropped = [each.id for each in node.pool.transactions()]
            node.follow_chain(dropped=dict.fromkeys(dropped, BY_HAND))
            node.pool.settle()
            self.resets += 1
            self._prepare()
        self.snapshots.restore()
        self.log("the chain was reset")

    # --- state ------------------------------------------------------------------------------------

    def edit(self, edits: Sequence[Edit]) -> Block:
        """Edit the state in a block of its own, without transactions.

        Raises ``EditRejected`` or an error of the rules, which leaves the chain unchanged.
        """
        if not edits:
            raise ControlRefused("no change is given")
        with self.mining.paused():
            block = self._edited_block(tuple(edits))
        for each in edits:
            self.log(f"by hand: {msgspec.json.encode(each).decode()}")
        return block

    def _edited_block(self, edits: tuple[Edit, ...]) -> Block:
        node, chain = self.node, self.chain
        node.disk.check()
        slot = miner.next_slot(chain, self.account)
        votes = miner.votes(node.settings, chain)
        forged = run_steps(miner.forging(chain, slot, (), self.clock(), *votes, edits=edits))
        assert forged.progress is not None, "a private chain has NG from its start"
        with node.writing():
            applied = chain.append_own(forged.block, forged.progress)
            chain.flush()
        disable_retry()
        node.follow_chain(changes=applied.changes)
        node.pool.settle()
        return forged.block

    def impersonate(self, address: Address) -> None:
        """Accept transactions of an account without proofs."""
        waived = self.chain.waived | {address}
        if len(waived) > MAX_IMPERSONATED:
            raise ControlRefused(f"more than {MAX_IMPERSONATED} accounts at once")
        self.chain.waived = waived
        self.log(f"{address_text(address)} is impersonated")

    def stop_impersonating(self, address: Address) -> bool:
        """Require an account's proofs again, also in the pool; False if they were required."""
        known = address in self.chain.waived
        self.chain.waived = self.chain.waived - {address}
        if known:
            unconfirmed = self.node.pool.transactions()
            self.drop()
            _broadcast_again(self, unconfirmed)
        return known

    def drop(self, ids: Collection[bytes] | None = None) -> list[bytes]:
        """Remove transactions, by default all, from the pool; return the ids of those removed."""
        node = self.node
        unconfirmed = [each.id for each in node.pool.transactions()]
        dropped = unconfirmed if ids is None else [each for each in unconfirmed if each in ids]
        node.follow_chain(dropped=dict.fromkeys(dropped, BY_HAND), changes={})
        node.pool.settle()
        return dropped

    def loaded(
        self,
        clock: ClockState,
        mode: MiningMode,
        waived: frozenset[Address],
        unconfirmed: Iterable[AnyTransaction],
    ) -> None:
        """Restore everything around a chain that was loaded from a file."""
        node = self.node
        self.chain.waived = waived
        dropped = [each.id for each in node.pool.transactions()]
        node.follow_chain(dropped=dict.fromkeys(dropped, BY_HAND))
        self.clock.state = clock
        self._allow_clients()
        self.mining.change(mode)
        _broadcast_again(self, unconfirmed)
        self.snapshots.restore()
        self.log(f"a state was loaded, height {self.chain.height}")

    def switch_maker(self, *, is_on: bool) -> None:
        """Switch the market maker; its orders stay. Raises ``ControlRefused`` if there is none."""
        if self.maker is None:
            raise ControlRefused("there is no market maker here: --scenario dex has one")
        self.maker.is_on = is_on
        self.log(f"the market maker {'works' if is_on else 'rests'}")

    # --- without an event loop --------------------------------------------------------------------

    def mine_if_instant(self) -> None:
        """Mine the pool in instant mode, unless the mining task runs."""
        if self.mining.is_running or self.mining.mode.mode != "instant":
            return
        while len(self.node.pool):
            before = len(self.node.pool)
            self.node.mine(self.account)
            if len(self.node.pool) >= before:
                raise ControlRefused("the transactions in the pool do not go into a block")


def _broadcast_again(controls: Controls, transactions: Iterable[AnyTransaction]) -> None:
    for each in transactions:
        try:
            controls.node.broadcast(each)
        except InputError as error:
            controls.log(f"not in the pool any more: {base58.encode(each.id)}: {error}")
    controls.node.pool.settle()
