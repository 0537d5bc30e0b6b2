"""Jobs of the machines for the chain and the pool, executed one after the other.

Work is done in short steps; the owner (an event loop, or the simulator) schedules each next one
through ``call_soon``.

What lives here: the order of jobs, the consequences of an outcome for the peer, and announcing the
node's own blocks. What does not: applying (``receiving``), connections (``service``).
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from functools import partial
from typing import Final

import msgspec

from soliton.chain import blocks, microblocks
from soliton.chain.blocks import Block
from soliton.chain.finalization import FinalizationVoting
from soliton.node.challenger import CannotChallenge
from soliton.node.events import BlockAppended, BlockExtended, NodeEvent, PoolAccepted, RolledBack
from soliton.node.miner import microblock_of
from soliton.node.mining import mining_account
from soliton.node.node import Node
from soliton.node.peering import FaultyFork
from soliton.node.remote_keys import RemoteKey
from soliton.p2p.checks import EndorsementChecks, TransactionChecks
from soliton.p2p.core import ApplyBlock, Core, Effect, Job
from soliton.p2p.history import NodeHistory, block_message
from soliton.p2p.rate import RateCounter
from soliton.p2p.receiving import REFUSED, Outcome, Receiver, Verdict, Work
from soliton.sync.endorsements import CheckEndorsement
from soliton.sync.extensions import ApplyExtension, BlockReceived
from soliton.sync.microblocks import ApplyMicroblock
from soliton.sync.model import PeerId
from soliton.sync.relay import CheckTransaction
from soliton.wire import messages
from soliton.wire.errors import Verdict as PeerVerdict
from soliton.wire.messages import Message

_log = logging.getLogger(__name__)

MAX_JOBS: Final = 16
"""Length of the queue of unsolicited blocks; more are dropped."""
MAX_RUNS: Final = 3
"""Jobs that have begun: a block of a stranger may take seconds, and fail then."""
LONG_SECONDS: Final = 0.25
"""After so long another job may begin beside one."""
MAX_FAULTY_FORKS: Final = 400
EARLY_MS: Final = 5_000
"""How early a block may be to be kept until its time, since miners' clocks differ. Earlier ones are
dropped.
"""
CLOCK_WARNING_MS: Final = 600_000
"""The least time between two warnings of blocks that come too early."""
STEP_SECONDS: Final = 0.01
"""The length of a time slice; a single step may take longer."""


def own_microblock(
    block: Block,
    reference: bytes,
    added: int,
    private_key: bytes,
    signature: bytes = b"",
    voting: FinalizationVoting | None = None,
) -> Message:
    """Return the message with the microblock that extends the form with the id ``reference`` to
    this block by ``added`` transactions and its own ``voting``, with this ``signature`` or signed
    with ``private_key``.
    """
    micro = microblock_of(block, reference, added, signature, voting)
    if not signature:
        micro = microblocks.sign(micro, private_key)
    modern = block.header.version >= blocks.PROTOBUF_VERSION
    record = messages.ProtobufMicroblock if modern else messages.LegacyMicroblock
    return record(microblocks.encode(micro))


class _Run(msgspec.Struct, eq=False):
    """A job that has begun: its peer, the block that it applies, its work, and the time (s) that it
    has used. It ``waits`` for another process.
    """

    peer: PeerId
    job: ApplyExtension | ApplyMicroblock | ApplyBlock
    work: Work[None]
    used: float = 0.0
    waits: bool = False

    def applies(self, block_id: bytes) -> bool:
        """Whether it applies a block."""
        match self.job:
            case ApplyExtension(ids=ids):
                return block_id in ids
            case ApplyBlock(received=received):
                return received.block_id == block_id
            case _:
                return False


class Jobs:
    """Executes the machines' jobs, and passes the outcomes back."""

    def __init__(
        self,
        node: Node,
        core: Core,
        history: NodeHistory,
        receiver: Receiver,
        now: Callable[[], int],
        carry_out: Callable[[Iterable[Effect]], None],
        name: Callable[[PeerId], str],
        call_soon: Callable[[Callable[[], None]], object],
        on_done: Callable[[Future[None], Callable[[], None]], object],
        charge: Callable[[PeerId, float], None],
        timer: Callable[[], float] = time.perf_counter,
    ) -> None:
        """``now`` is the clock of the machines; ``name`` returns a peer's name for logs;
        ``call_soon`` schedules a call in a later turn of the event loop, ``on_done`` when a future
        is done. ``charge`` makes a peer pay for the time (s) of work that has failed. ``timer`` (s)
        measures steps.
        """
        self._node = node
        self._core = core
        self._history = history
        self.receiver = receiver
        self._now = now
        self._carry_out = carry_out
        self._name = name
        self._call_soon = call_soon
        self._on_done = on_done
        self._charge = charge
        self._timer = timer
        self._max_rollback = node.settings.synchronization.loader.max_rollback
        self._jobs: deque[ApplyExtension | ApplyMicroblock | ApplyBlock] = deque()
        self._runs: deque[_Run] = deque()
        self._run: _Run | None = None
        self._began = 0.0
        self._is_planned = False
        self._exclusive = 0
        self._warn_again_at = 0
        self._checks = TransactionChecks(node, core, now, carry_out, call_soon, timer)
        self._endorsements = EndorsementChecks(
            core, now, carry_out, call_soon, on_done, alone=receiver.is_alone
        )
        self._foreign = False
        self._stopped = False
        self._moved = False
        self.faulty_forks: dict[str, FaultyFork] = {}
        self.forks: dict[int, int] = {}
        self.blocks = RateCounter()

    def add(self, job: Job) -> None:
        """Queue a job."""
        if isinstance(job, CheckTransaction):
            self._checks.add(job)
        elif isinstance(job, CheckEndorsement):
            self._endorsements.add(job)
        elif not isinstance(job, ApplyBlock) or len(self._jobs) < MAX_JOBS:
            self._jobs.append(job)
            self._plan()

    @property
    def waiting(self) -> int:
        """The number of queued jobs."""
        return len(self._jobs) + self._checks.waiting + self._endorsements.waiting

    @property
    def is_working(self) -> bool:
        """Whether a job for the chain is running or queued."""
        return bool(self._runs or self._jobs)

    # --- the chain --------------------------------------------------------------------------------

    def on_event(self, event: NodeEvent) -> None:
        """Handle an event of the node: announce its own blocks and transactions to peers."""
        match event:
            case PoolAccepted(transaction=transaction):
                if not (self._foreign or self._checks.is_checking):
                    self._carry_out(self._core.accepted(transaction.id, self._now()))
            case BlockAppended(block=block):
                if not self._foreign:
                    self._carry_out(self._core.announce(block_message(block), self._now()))
                self._chain_moved()
            case BlockExtended():
                if not self._foreign:
                    self._announce_own(event)
                self._chain_moved()
            case RolledBack():
                self._chain_moved()
            case _:
                pass

    def _chain_moved(self) -> None:
        if not self._moved:
            self._moved = True
            self._call_soon(self.notify_chain_moved)

    def notify_chain_moved(self) -> None:
        """Notify the machines that the chain has changed."""
        self._moved = False
        self.set_ready()
        self._carry_out(self._core.chain_moved(self._now()))
        self._endorse()

    def _endorse(self) -> None:
        """Endorse the last block's parent, and send that to peers."""
        endorser = self._node.endorser
        endorser.follow()
        for check in endorser.take_checks():
            self._endorsements.add(check)
        self._carry_out(self._core.endorsed(endorser.take_outgoing(), self._now()))

    def set_ready(self) -> None:
        """Accept peers' transactions if the chain is nearly up to date."""
        age = self._node.clock() - self._node.chain.last_block.header.timestamp
        self._core.set_ready(age < self._node.settings.miner.interval_after_last_block_ms)

    def _announce_own(self, event: BlockExtended) -> None:
        """Announce a microblock that was made here."""
        block, added, signature = event.block, event.added, event.micro_signature
        generator = block.header.generator
        chain_id = self._node.network.chain_id
        pair, forms = mining_account(self._node, generator), self._node.chain.liquid_ids()
        if pair is None or len(forms) < 2:
            return
        reference = forms[-2]
        if isinstance(pair, RemoteKey):
            message = own_microblock(block, reference, added, b"", signature, event.voting)
            announced = pair.announcements.get(block.id, b"")
            inv = messages.MicroblockInv(generator, block.id, reference, announced)
        else:
            message = own_microblock(
                block, reference, added, pair.private_key, signature, event.voting
            )
            inv = messages.announce(pair.private_key, generator, block.id, reference, chain_id)
        self._history.keep_microblock(block.id, message)
        self._carry_out(self._core.announce(inv, self._now()))

    def stop(self) -> None:
        """Stop, and drop the current job, which has not changed the chain."""
        self._stopped = True
        self.receiver.close()
        self._checks.close()
        self._endorsements.close()

    def _plan(self) -> None:
        if not self._is_planned:
            self._is_planned = True
            self._call_soon(self._step)

    def _step(self) -> None:
        """Continue a job for a time slice; those that have begun take turns."""
        self._is_planned = False
        if self._stopped:
            return
        self._began = self._timer()
        run = self._next_run()
        if run is None:
            return
        self._run = run
        while run in self._runs and not run.waits:
            wanted = self._resume(run)
            if wanted is not None and not wanted.done():
                run.waits = True
                self._on_done(wanted, partial(self._go_on, run))
            elif self._timer() - self._began > STEP_SECONDS:
                break
        run.used += self._timer() - self._began
        self._run = None
        if len(self._runs) > 1:
            self._runs.rotate(-1)
        if self._jobs or any(not each.waits for each in self._runs):
            self._plan()

    def _go_on(self, run: _Run) -> None:
        run.waits = False
        self._plan()

    def _next_run(self) -> _Run | None:
        """Return the next run. Jobs begin one after the other; but while others take long, a later
        one may begin, unless it needs their blocks.
        """
        begins = len(self._runs) < MAX_RUNS and not (self._runs and self._exclusive)
        if self._jobs and begins and all(each.used > LONG_SECONDS for each in self._runs):
            job = next((each for each in self._jobs if not self._is_needed(each)), None)
            if job is not None:
                self._jobs.remove(job)
                self._runs.appendleft(_Run(_peer_of(job), job, self._begin(job, self._began)))
                return self._runs[0]
        run = next((each for each in self._runs if not each.waits), None)
        if run is not None:
            # Those before it wait.
            self._runs.remove(run)
            self._runs.appendleft(run)
        return run

    def _is_needed(self, job: ApplyExtension | ApplyMicroblock | ApplyBlock) -> bool:
        """Whether a block that has begun has to be applied before this job."""
        match job:
            case ApplyExtension(blocks=found):
                reference = found[0].reference
            case ApplyBlock(received=received):
                reference = received.reference
            case _:
                return False
        return any(each.applies(reference) for each in self._runs)

    def _begin(
        self, job: ApplyExtension | ApplyMicroblock | ApplyBlock, since: float
    ) -> Work[None]:
        match job:
            case ApplyExtension():
                data = [each.message.data for each in job.blocks]
                return self._extension(job, data, since)
            case ApplyBlock():
                return self._block(job)
            case ApplyMicroblock():
                return self._microblock(job)

    def _resume(self, run: _Run) -> Future[None] | None:
        # Events between the steps are not caused by peers.
        self._foreign = True
        try:
            return next(run.work)
        except StopIteration:
            self._runs.remove(run)
            return None
        finally:
            self._foreign = False

    def _persistently(self, work: Callable[[], Work[Outcome]]) -> Work[Outcome]:
        """Do work, and once more, without other jobs, if our chain has moved meanwhile."""
        outcome = yield from work()
        if outcome.verdict is not Verdict.MOVED:
            return outcome
        self._exclusive += 1
        try:
            return (yield from work())
        finally:
            self._exclusive -= 1

    def _make_pay(self, peer: PeerId) -> None:
        """Charge a peer for the present job, which has failed, and distrust its score."""
        run = self._run
        assert run is not None, "a job is running"
        self._charge(peer, run.used + self._timer() - self._began)
        self._carry_out(self._core.distrust(peer, self._now()))

    def _extension(self, job: ApplyExtension, data: list[bytes], since: float) -> Work[None]:
        snapshots = [each.message.data for each in job.snapshots]
        outcome = yield from self._persistently(
            lambda: self.receiver.extension(data, self._max_rollback, snapshots, job.base)
        )
        took = self._timer() - since
        name = self._name(job.peer)
        now = self._now()
        self.notify_chain_moved()
        applied = outcome.verdict is Verdict.APPLIED
        if applied:
            count = len(job.blocks)
            self.blocks.add(count, now)
            level = logging.INFO if count > 1 or outcome.depth else logging.DEBUG
            _log.log(
                level, "height %d: %d blocks of %s in %.1f s%s",
                outcome.height, count, name, took,
                f", {outcome.depth} of ours were given up" if outcome.depth else "",
            )  # fmt: skip
            if outcome.depth:
                self.forks[outcome.depth] = self.forks.get(outcome.depth, 0) + 1
            self.faulty_forks.pop(name, None)
        elif self._defer(job, outcome):
            return
        elif outcome.verdict in REFUSED:
            self._fork_alarm(name, outcome)
            if outcome.block_id:
                self._core.remember_invalid(outcome.block_id, now)
            self._make_pay(job.peer)
            self._carry_out(self._core.blame(job.peer, outcome.reason, now))
        elif outcome.verdict in (Verdict.NOT_OURS, Verdict.EARLY):
            _log.info("blocks of %s are not taken: %s", name, outcome.reason)
            self._carry_out(self._core.blame(job.peer, outcome.reason, now, PeerVerdict.SUSPEND))
        elif outcome.verdict is not Verdict.MOVED:
            # Its chain is no better: wait until it sends its score again.
            self._carry_out(self._core.distrust(job.peer, now))
        self._carry_out(self._core.extension_applied(job.peer, failed=not applied, now=now))

    def _fork_alarm(self, name: str, outcome: Outcome) -> None:
        _log.warning(
            "FORK: peer %s says it has a better chain, but its block %d is refused: %s",
            name, outcome.height, outcome.reason,
        )  # fmt: skip
        if len(self.faulty_forks) >= MAX_FAULTY_FORKS:
            del self.faulty_forks[next(iter(self.faulty_forks))]
        self.faulty_forks[name] = FaultyFork(
            name, outcome.height, outcome.block_id, outcome.reason, self._node.clock()
        )

    def _block(self, job: ApplyBlock) -> Work[None]:
        received = job.received
        outcome = yield from self._persistently(lambda: self.receiver.block(received.message.data))
        now = self._now()
        if self._defer(job, outcome):
            return
        match outcome.verdict:
            case Verdict.APPLIED:
                self.blocks.add(1, now)
                _log.info("block %d of peer %s", outcome.height, self._name(received.peer))
                block = self._node.chain.last_block
                if not block.transactions or block.header.challenged is not None:
                    but = frozenset((received.peer,))
                    self._carry_out(self._core.announce(block_message(block), now, but))
            case Verdict.BAD_SIGNATURE:
                self._carry_out(self._core.blame(received.peer, outcome.reason, now))
            case Verdict.INVALID:
                _log.info("a block of %s is refused: %s", self._name(received.peer), outcome.reason)
                self._remember(outcome)
                self._make_pay(received.peer)
            case Verdict.WRONG_STATE_HASH:
                _log.info("a block of %s is refused: %s", self._name(received.peer), outcome.reason)
                self._remember(outcome)
                self._make_pay(received.peer)
                self._carry_out(self._core.blame(received.peer, outcome.reason, now))
                wrong = blocks.decode(received.message.data, self._node.network.chain_id)
                yield from self._challenge(received.peer, wrong)
            case _:
                _log.debug("a block of %s: %s", self._name(received.peer), outcome.reason)

    def _remember(self, outcome: Outcome) -> None:
        if outcome.block_id:
            self._core.remember_invalid(outcome.block_id, self._now())

    def _defer(self, job: ApplyBlock | ApplyExtension, outcome: Outcome) -> bool:
        """Schedule a retry of a job for an early block, or after a write failure; return whether
        that was the case.
        """
        match outcome.verdict:
            case Verdict.EARLY:
                wait = outcome.due - self._node.clock()
                self._warn_of_clocks(job, wait)
                if wait > EARLY_MS:
                    return False
            case Verdict.NOT_WRITTEN:
                wait = int(self._node.disk.pause * 1_000)
            case _:
                return False
        self._carry_out(self._core.defer(job, self._now() + max(1, wait)))
        return True

    def _warn_of_clocks(self, job: ApplyBlock | ApplyExtension, early: int) -> None:
        """Log now and then that a block is of the future: a clock is wrong, perhaps ours."""
        now = self._now()
        if early > 0 and now >= self._warn_again_at:
            self._warn_again_at = now + CLOCK_WARNING_MS
            _log.warning(
                "a block of %s comes %d ms too early: its clock or ours is wrong",
                self._name(_peer_of(job)), early,
            )  # fmt: skip

    def _challenge(self, peer: PeerId, wrong: Block) -> Work[None]:
        """Challenge a peer's block with a wrong state hash, if possible."""
        if wrong.header.challenged is not None:
            return
        try:
            block = yield from self.receiver.challenge(wrong)
        except CannotChallenge as error:
            _log.info("no challenge of block %s: %s", wrong.id.hex(), error)
            return
        _log.warning("block %s is challenged with %s", wrong.id.hex(), block.id.hex())
        received = BlockReceived(peer, block.id, block.header.reference, block_message(block))
        yield from self._block(ApplyBlock(received))

    def _microblock(self, job: ApplyMicroblock) -> Work[None]:
        received, snapshot = job.microblock, job.snapshot
        last = self._node.chain.last_block
        micro, outcome = yield from self.receiver.microblock(
            received.message.data, None if snapshot is None else snapshot.message.data
        )
        now = self._now()
        applied = outcome.verdict is Verdict.APPLIED
        if applied:
            self._history.keep_microblock(self._history.last_id(), received.message)
        elif outcome.verdict in (*REFUSED, Verdict.BAD_SIGNATURE):
            _log.info(
                "a microblock of %s is refused: %s", self._name(received.peer), outcome.reason
            )
            self._make_pay(received.peer)
            if outcome.verdict is not Verdict.INVALID:
                is_wrong_snapshot = (
                    snapshot is not None and outcome.verdict is Verdict.WRONG_STATE_HASH
                )
                culprit = (
                    snapshot.peer if snapshot is not None and is_wrong_snapshot else received.peer
                )
                self._carry_out(self._core.blame(culprit, outcome.reason, now))
        self._carry_out(
            self._core.microblock_applied(received.total_id, failed=not applied, now=now)
        )
        if outcome.verdict is Verdict.WRONG_STATE_HASH and micro is not None:
            added, state_hash = micro.transactions, micro.state_hash
            wrong = blocks.extended(
                last, added, state_hash, micro.total_signature, voting=micro.finalization_voting
            )
            yield from self._challenge(received.peer, wrong)


def _peer_of(job: ApplyExtension | ApplyMicroblock | ApplyBlock) -> PeerId:
    match job:
        case ApplyExtension(peer=peer):
            return peer
        case ApplyBlock(received=received):
            return received.peer
        case ApplyMicroblock(microblock=received):
            return received.peer
