"""What a private chain does when it is told to.

A control call is carried out at once, on the event loop, between two blocks: nobody sees half of
it. Listeners of the node are notified of what it did, as of anything that peers could do.

What lives here: the calls. What does not: the clock and when blocks are made (``clock``,
``mining``), files (``dump``), how state goes back (``soliton.storage.timeline``), what edits do
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
from soliton.controls.moving import begin_anew
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
"""Blocks of one call: some minutes."""
MAX_PROVEN: Final = 100
"""More empty blocks than that are made without proofs of their generator's turn."""
MAX_INTERVAL_MS: Final = 365 * 86_400_000
MAX_IMPERSONATED: Final = 1_000
_BATCH: Final = 100
"""Blocks that are written together: some ten milliseconds."""


class Maker(Protocol):
    """What trades by itself on a private chain's markets, while ``is_on``."""

    is_on: bool


class Origin(msgspec.Struct, frozen=True):
    """What a chain was forked from: the node, and its last block that counts."""

    url: str
    height: int
    block: str


class ChainState(msgspec.Struct, frozen=True, rename="camel"):
    """Where a private chain stands. ``instance`` changes with each start, ``resets`` with each
    reset: whoever keeps what it has read compares them. ``fork`` is what it was forked from,
    ``market_maker`` whether there is one that works (``None``: there is none).
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
    """The address of the matcher beside the node."""
    fork: Origin | None
    market_maker: bool | None


class Controls:
    """The controls of one node, which makes its blocks with ``account``."""

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
        """``prepare`` is what happens on top of a new genesis block, or of a fork's ``origin``."""
        self.node, self.account, self.clock = node, account, clock
        self.mining = Mining(node, account, mode)
        self.origin = origin
        self.maker: Maker | None = None
        self.instance = secrets.token_hex(8)
        self.resets = 0
        self.matcher: str | None = None
        self.log: Callable[[str], None] = lambda _sentence: None
        """Is told what was done by hand, in a sentence."""
        self._prepare = prepare
        self.snapshots = Snapshots(node, clock, self.mining)
        node.events.subscribe(self._notice)

    @property
    def chain(self) -> ChainWriter:
        """The chain that obeys."""
        return self.node.chain

    def _notice(self, event: NodeEvent) -> None:
        if isinstance(event, BlockAppended):
            self.clock.block_made(event.block.header.timestamp)

    def _allow_clients(self) -> None:
        """Clients send transactions by their own clocks."""
        self.chain.allow_drift(self.clock.drift)

    def state(self) -> ChainState:
        """Where the chain stands."""
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
        """Make blocks in another way; raises ``ControlRefused``."""
        self.mining.change(checked_mode(mode, seconds))
        self.log(f"mining is {mode}" + (f", {seconds:g} s" if seconds else ""))
        return self.mining.mode

    def mining_steps(self, count: int = 1, interval_ms: int = 0) -> Steps[None]:
        """Make so many blocks, in steps; the first takes the pool. With an interval each comes so
        much later, the first one not in the past. Raises ``ControlRefused``.
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
        """The same at once; the last block."""
        run_steps(self.mining_steps(count, interval_ms))
        return self.chain.last_block

    def _let_pass(self, interval_ms: int, least: int) -> None:
        if interval_ms and self.clock.state.next_block is None:
            last = self.chain.last_block.header
            self.clock.set_next_block(max(last.timestamp + interval_ms, least))

    def _mine_unproven(self, count: int, interval_ms: int) -> Steps[None]:
        node, chain = self.node, self.chain
        while count > 0:
            with node.writing():
                for _ in range(min(_BATCH, count)):
                    slot = miner.unproven_slot(chain, self.account)
                    time = slot.earliest + interval_ms if interval_ms else self.clock()
                    forged = run_steps(miner.forging(chain, slot, (), time))
                    assert forged.progress is not None, "a private chain has NG from its start"
                    chain.put(forged.block, forged.progress)
                chain.flush()
            count -= _BATCH
            node.follow_chain()
            yield
        node.pool.settle()

    # --- time -------------------------------------------------------------------------------------

    def travel(self, milliseconds: int) -> int:
        """Let so much time pass at once: the time now. It shows in blocks from the next one on."""
        self.clock.travel(milliseconds)
        return self._time_changed()

    def set_time(self, time: int) -> int:
        """Let it be this time (ms), not before the last block's; raises ``ControlRefused``."""
        self._check_time(time)
        self.clock.set(time)
        return self._time_changed()

    def freeze(self, *, frozen: bool = True) -> int:
        """Let the clock stand still, or go on."""
        (self.clock.freeze if frozen else self.clock.go_on)()
        return self._time_changed()

    def set_next_block_time(self, time: int) -> int:
        """Let the next block have this time (ms), and time go on from there."""
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
        """Remember all of the chain, its pool, clock and mining: an id that no other snapshot gets.

        Raises ``ControlRefused`` when there are too many.
        """
        number = self.snapshots.take()
        self.log(f"snapshot {number:#x} at height {self.chain.height}")
        return number

    def revert(self, number: int) -> bool:
        """Be again as at a snapshot, as often as wanted, and forward again to one on a branch that
        was left; ``False`` for one that nobody knows. Raises ``ControlRefused`` for one that had to
        be forgotten, and ``StorageProblem``.
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
        """Replace the last blocks by as many others, with other ids, which hold what is ``chosen``
        for each. What was in the old ones waits again, unless it is not to be kept.

        Raises ``ControlRefused``; the chain is as it was then.
        """
        with self.mining.paused():
            done = reorganize(self.node, self.account, depth, chosen, keep=keep)
        self.log(f"{depth} blocks were replaced from height {done.height} on")
        return done

    def reset(self) -> None:
        """Begin anew: the genesis block, and what was prepared on it. Snapshots are forgotten, and
        the clock is the machine's again.
        """
        node = self.node
        self.snapshots.rest()
        with self.mining.paused():
            self.snapshots.clear()
            self.clock.state = ClockState()
            self.chain.waived = frozenset()
            self._allow_clients()
            with node.writing():
                begin_anew(self.chain)
            gone = [each.id for each in node.pool.transactions()]
            node.follow_chain(unminable=dict.fromkeys(gone, BY_HAND))
            node.pool.settle()
            self.resets += 1
            self._prepare()
        self.snapshots.leave()
        self.log("the chain begins anew")

    # --- state ------------------------------------------------------------------------------------

    def edit(self, edits: Sequence[Edit]) -> Block:
        """Change the state by hand, with a block of its own at once, which holds nothing else.

        Raises ``EditRejected`` or what the rules say: nothing has changed then.
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
        """Ask for no proofs of an account from now on."""
        waived = self.chain.waived | {address}
        if len(waived) > MAX_IMPERSONATED:
            raise ControlRefused(f"more than {MAX_IMPERSONATED} accounts at once")
        self.chain.waived = waived
        self.log(f"{address_text(address)} is impersonated")

    def stop_impersonating(self, address: Address) -> bool:
        """Ask for its proofs again, of what waits too: whether they were not asked for."""
        known = address in self.chain.waived
        self.chain.waived = self.chain.waived - {address}
        if known:
            waiting = self.node.pool.transactions()
            self.drop()
            _broadcast_again(self, waiting)
        return known

    def drop(self, ids: Collection[bytes] | None = None) -> list[bytes]:
        """Take transactions out of the pool, all of them if none are named: which there were."""
        node = self.node
        waiting = [each.id for each in node.pool.transactions()]
        gone = waiting if ids is None else [each for each in waiting if each in ids]
        node.follow_chain(unminable=dict.fromkeys(gone, BY_HAND), changes={})
        node.pool.settle()
        return gone

    def loaded(
        self,
        clock: ClockState,
        mode: MiningMode,
        waived: frozenset[Address],
        waiting: Iterable[AnyTransaction],
    ) -> None:
        """The chain has become another one, with this around it."""
        node = self.node
        self.chain.waived = waived
        gone = [each.id for each in node.pool.transactions()]
        node.follow_chain(unminable=dict.fromkeys(gone, BY_HAND))
        self.clock.state = clock
        self._allow_clients()
        self.mining.change(mode)
        _broadcast_again(self, waiting)
        self.snapshots.leave()
        self.log(f"a state was loaded, height {self.chain.height}")

    def switch_maker(self, *, is_on: bool) -> None:
        """Let the market maker work, or rest; what is in the books stays there. Raises
        ``ControlRefused`` where there is none.
        """
        if self.maker is None:
            raise ControlRefused("there is no market maker here: --scenario dex has one")
        self.maker.is_on = is_on
        self.log(f"the market maker {'works' if is_on else 'rests'}")

    # --- for whoever runs without an event loop ---------------------------------------------------

    def mine_if_instant(self) -> None:
        """Make a block of the pool if blocks come at once, and nobody else makes them."""
        if self.mining.is_running or self.mining.mode.mode != "instant":
            return
        while len(self.node.pool):
            before = len(self.node.pool)
            self.node.mine(self.account)
            if len(self.node.pool) >= before:
                raise ControlRefused("the transactions in the pool do not go into a block")


def _broadcast_again(controls: Controls, waiting: Iterable[AnyTransaction]) -> None:
    for each in waiting:
        try:
            controls.node.broadcast(each)
        except InputError as error:
            controls.log(f"not in the pool any more: {base58.encode(each.id)}: {error}")
    controls.node.pool.settle()
