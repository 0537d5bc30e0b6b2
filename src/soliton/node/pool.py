"""The pool of unconfirmed transactions (UTX).

Every transaction is checked against the chain *and* all earlier transactions of the pool, so that
the pool can become a block as it is. After each block the transactions that depend on changed state
are checked again (``pool_state`` knows which), and invalid ones are dropped. This is done in steps
(``settle``), since it may take long. Until it is done the pool may hold invalid transactions, and
its state may include their effects. Blocks do not depend on that: the miner applies each
transaction anew.

What lives here: adding, lookups, rechecking, limits. What does not: the time of a block
(``mining``), the rules of transactions (``soliton.ledger``).

Source: wavesplatform/Waves ``node/src/main/scala/com/wavesplatform/utx/UtxPoolImpl.scala``.
"""

from __future__ import annotations

import heapq
import logging
import math
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from enum import Enum
from functools import partial
from operator import is_not
from time import perf_counter
from typing import Any, Final

import msgspec

from soliton.chain.addresses import Address, from_public_key
from soliton.chain.blocks import Block
from soliton.chain.features import Feature
from soliton.chain.transactions.model import AnyTransaction
from soliton.crypto.curve25519 import SignedMessage
from soliton.errors import InputError
from soliton.ledger.context import Context
from soliton.ledger.environment import BlockEnvironment, pending_environment
from soliton.ledger.errors import AlreadyInState, LedgerError, TransactionRejected
from soliton.ledger.rules import rules_of
from soliton.ledger.rules_at import RuleBook
from soliton.ledger.scripts import FAIL_FREE_COMPLEXITY
from soliton.ledger.state import (
    ASSET_NAMES,
    ASSETS,
    LEASE_INFO,
    LEASE_STATES,
    Changes,
    Overlay,
    State,
    Status,
)
from soliton.ledger.traces import Traces
from soliton.ledger.transactions import Applied, apply_transaction, refuse_failure
from soliton.node.blockchain import Blockchain
from soliton.node.events import Departure, Moved, PoolAccepted, PoolDropped, PoolEvent
from soliton.node.pool_entries import (
    Effort,
    Expiries,
    PooledTransaction,
    RecheckQueue,
    ScriptsTooLong,
    has_script,
    has_scripted_signer,
    merged_moves,
    mining_rank,
    moved_by,
    only_receive,
    runs_scripts,
)
from soliton.node.pool_state import Name, PoolState, ReadRecorder
from soliton.steps import Steps, interruptible
from soliton.storage.errors import NotKept
from soliton.storage.retrying import without_retry

MAX_SCRIPTED: Final = 5_000
MAX_ESTIMATION_STEPS: Final = 500_000
"""The limit of estimating a new script here, some 0.3 s; the largest known dApps take a tenth. A
block may contain one that takes ten times as much, but a sender who is refused here pays no fee.
"""
MAX_MISSES: Final = 10
"""At so many heights a miner may find a transaction to be invalid that the pool takes for valid in
the next block; then it is dropped.
"""
MAX_VAIN_WORK: Final = 200_000
"""So much work of scripts (``apply.ScriptWork``) a transaction may take for blocks that do not get
it; then it is dropped. It is that of a hundred calls of the maximum complexity.
"""
MAX_RECHECK_WORK: Final = 200_000
"""So much work of scripts (``Effort.done``, of which a call of the maximum complexity has some
2,000) the rechecks of a transaction may take; then it is dropped. What reads the height, or entries
that others change, is rechecked after each block, for as long as it is valid.
"""
MAX_ATTEMPTS: Final = 4
"""A transaction is checked again if what it has read was changed by others while its scripts were
left, so often.
"""
_WITH_HEIGHTS: Final = frozenset((ASSETS, ASSET_NAMES, LEASE_INFO, LEASE_STATES))
"""Tables whose values contain the height of the block."""
_MANY_TIMES: Final = 1_024
_STEP_SECONDS: Final = 0.002
_STEP_SENDERS: Final = 2_048
"""Queueing so many senders takes about two milliseconds."""

_RECHECKED: Final = "Its scripts were run too often, since what they read goes on changing"
_log = logging.getLogger(__name__)


class Origin(Enum):
    """The source of a transaction.

    The scripts of a client's transaction are run completely, and it is refused when they fail, so
    that its sender does not pay for a failure. A peer has checked its transactions, and there are
    many of them: their scripts are run up to the complexity up to which failing is free.
    """

    CLIENT = "client"
    PEER = "peer"


class PoolFull(LedgerError):
    """The pool is at a limit; the transaction may be sent again later."""


class UtxPool:
    """Unconfirmed transactions in the order of their arrival."""

    __slots__ = (
        "_by_chain",
        "_by_height",
        "_by_place",
        "_by_sender",
        "_bytes",
        "_chain",
        "_checked_by",
        "_clock",
        "_dirty",
        "_first",
        "_last",
        "_max_bytes",
        "_max_count",
        "_max_scripted",
        "_next",
        "_notify",
        "_returning",
        "_scripted",
        "_state",
        "_times",
        "_transactions",
        "_unlimited",
        "_unproven",
        "_version",
        "_working",
    )

    def __init__(
        self,
        chain: Blockchain,
        clock: Callable[[], int],
        max_count: int,
        max_bytes: int,
        notify: Callable[[PoolEvent], None] = lambda _event: None,
        *,
        max_scripted: int = MAX_SCRIPTED,
        unlimited: bool = False,
    ) -> None:
        """``clock`` returns the time in ms. The limits are a count, a sum of signed bytes and a
        count of transactions that run scripts. ``notify`` is called for each transaction that is
        added or removed. ``unlimited`` runs the scripts of peers' transactions completely, too.
        """
        self._max_scripted, self._unlimited = max_scripted, unlimited
        self._chain, self._clock = chain, clock
        self._max_count, self._max_bytes = max_count, max_bytes
        self._notify = notify
        self._transactions: dict[bytes, PooledTransaction] = {}
        self._by_place: dict[int, PooledTransaction] = {}
        self._by_sender: dict[Address, dict[int, PooledTransaction]] = {}
        self._scripted: set[bytes] = set()
        self._unproven: set[bytes] = set()
        self._bytes = 0
        self._first = self._last = 0
        # Scripts may be left while they run, and the pool may change meanwhile.
        self._version = self._working = 0
        # To be rechecked after another block, and whenever the chain changes.
        self._by_height: set[int] = set()
        self._by_chain: set[int] = set()
        self._times = Expiries()
        self._dirty = RecheckQueue()
        self._returning: deque[tuple[int, AnyTransaction]] = deque()
        self._next: tuple[tuple[Block, RuleBook], BlockEnvironment] | None = None
        self._state = PoolState(chain.store)
        self._checked_by = self.environment()

    def __len__(self) -> int:
        return len(self._transactions)

    def __contains__(self, transaction_id: bytes) -> bool:
        return transaction_id in self._transactions

    @property
    def size(self) -> int:
        """The sum of the signed bytes of all transactions."""
        return self._bytes

    @property
    def is_full(self) -> bool:
        """Whether there is no room for another transaction."""
        return len(self._transactions) >= self._max_count or self._bytes >= self._max_bytes

    def get(self, transaction_id: bytes) -> AnyTransaction | None:
        """Return the pool's transaction with this id."""
        found = self._transactions.get(transaction_id)
        return None if found is None else found.transaction

    def transactions(self) -> list[AnyTransaction]:
        """Return all transactions, the oldest first."""
        return [each.transaction for each in self._transactions.values()]

    def sent_by(self, sender: Address) -> list[bytes]:
        """Return the ids of an account's transactions, the oldest first."""
        return [each.transaction.id for each in self._by_sender.get(sender, {}).values()]

    @property
    def unproven(self) -> Collection[bytes]:
        """The ids of transactions that an account's script has verified in place of a signature.

        Signatures have to be verified when they are applied to another state.
        """
        return self._unproven

    def moved(self, transaction_id: bytes) -> Moved:
        """Return the balances that a transaction changes, or has changed since it was added.
        Raises ``KeyError``.
        """
        return self._transactions[transaction_id].moved

    def steps_of(self, transaction_id: bytes) -> Iterator[tuple[Name, Any, Any]]:
        """Yield the entries that a transaction has written, each with its value before and after;
        for a balance, 0 and the change. Raises ``KeyError``.
        """
        pooled = self._transactions[transaction_id]
        for entry in pooled.entries:
            step = entry.step(pooled.place)
            if step is not None:
                yield (entry.table, entry.key), *step

    def mining_order(self, height: int) -> Steps[Iterator[AnyTransaction]]:
        """Return an iterator over the transactions in the order for a block at a height; those that
        leave the pool meanwhile are skipped, and those that were invalid there. In steps, since
        there may be many senders. Transactions returned by a rollback are readded first, since
        others may need them.

        Returned transactions come first, in their order on the chain: as in the reference, a key
        block that drops a microblock does not cost its transactions their turn
        (``utx/UtxPriorityPool.scala``). The others are ordered by fee per byte, then by arrival,
        but those of one account keep the order of arrival, since later ones may need earlier ones.
        """
        while self._returning:
            yield from interruptible(partial(self.settle, _STEP_SECONDS))
            yield
        queues: list[tuple[float, int, dict[int, PooledTransaction]]] = []
        for number, sent in enumerate(list(self._by_sender.values()), 1):
            if sent:
                first = next(iter(sent.values()))
                queues.append((mining_rank(first), first.place, sent))
            if number % _STEP_SENDERS == 0:
                yield
        heapq.heapify(queues)
        return self._in_order(queues, height)

    def _in_order(
        self, queues: list[tuple[float, int, dict[int, PooledTransaction]]], height: int
    ) -> Iterator[AnyTransaction]:
        pooled: dict[int, deque[PooledTransaction]] = {}
        while queues:
            _, _, sent = heapq.heappop(queues)
            # Transactions added while a block is made are left for the next one.
            queue = pooled.get(id(sent))
            if queue is None:
                queue = pooled[id(sent)] = deque(sent.values())
            one = queue.popleft() if queue else None
            if one is not None and self._by_place.get(one.place) is one and one.missed_at != height:
                yield one.transaction
            if queue:
                head = queue[0]
                heapq.heappush(queues, (mining_rank(head), head.place, sent))

    @property
    def scripted(self) -> Collection[bytes]:
        """The ids of transactions that run scripts."""
        return self._scripted

    def needs(self, transaction_id: bytes) -> int:
        """Return the complexity with which a transaction did not fit into a block, or 0."""
        pooled = self._transactions.get(transaction_id)
        return 0 if pooled is None else pooled.needs

    def charge(self, transaction_id: bytes, work: int, reason: str, needs: int = 0) -> None:
        """Count work for a block that did not take a transaction: it ``needs`` more complexity than
        the block had left, or was invalid. Drop the transaction after ``MAX_VAIN_WORK``.
        """
        pooled = self._transactions.get(transaction_id)
        if pooled is None:
            return
        pooled.vain += work
        pooled.needs = max(pooled.needs, needs)
        if not needs:
            pooled.failed += work
        if pooled.vain > MAX_VAIN_WORK:
            self._drop(pooled, ScriptsTooLong(f"Its scripts ran too long in vain: {reason}"))

    def miss(self, unminable: Mapping[bytes, str]) -> None:
        """Recheck what is invalid, with the reason, at the end of the last block, which stays as it
        is; like ``follow``.
        """
        for name, reason in self._missed(unminable):
            self._drop(self._transactions[name], LedgerError(reason))

    def state(self) -> State:
        """Return the state with the whole pool applied."""
        return self._state.latest

    def kept_state(self) -> Overlay:
        """Return a copy of the state, which later changes of the pool do not affect."""
        kept = Overlay(self._chain.store, self._chain.height + 1)
        kept.merge(self._state.latest)
        return kept

    def add(
        self,
        transaction: AnyTransaction,
        *,
        verify_signature: bool = True,
        verified: Collection[SignedMessage] = (),
        origin: Origin = Origin.CLIENT,
        traces: Traces | None = None,
    ) -> bool:
        """Check and add a transaction; return ``False`` if the pool has it already.

        ``verified`` signatures are not verified again. A transaction that would fail and pay its
        fee is refused. The steps of scripts are added to ``traces``. Raises ``PoolFull`` or what
        ``apply_transaction`` raises.
        """
        if transaction.id in self._transactions:
            return False
        accepted = self._admit(
            transaction,
            None,
            verify=verify_signature,
            verified=verified,
            origin=origin,
            traces=traces,
        )
        if accepted is not None:
            self._notify(accepted)
        return accepted is not None

    def _admit(
        self,
        transaction: AnyTransaction,
        place: int | None,
        *,
        verify: bool,
        verified: Collection[SignedMessage] = (),
        origin: Origin = Origin.PEER,
        traces: Traces | None = None,
    ) -> PoolAccepted | None:
        """Check and add a transaction at a place, or after all others; return ``None`` if the pool
        has got it meanwhile.
        """
        whole = self._unlimited or origin is Origin.CLIENT
        for left in reversed(range(MAX_ATTEMPTS)):
            self._check_room(transaction, place)
            version, ground = self._version, self._chain.last_block
            recorder = ReadRecorder(self._state, place, transaction.id)
            sent_by_script = has_script(transaction, transaction.sender_public_key, recorder)
            unproven = sent_by_script or has_scripted_signer(transaction, recorder)
            pooled = PooledTransaction(transaction, place or 0, unproven=unproven, whole=whole)
            pooled.scripted = runs_scripts(transaction, sent_by_script)
            if pooled.scripted and len(self._scripted) >= self._max_scripted:
                raise PoolFull("Transaction pool scripted txs size limit is reached")
            try:
                applied = self._apply(
                    pooled, recorder, self._effort(pooled), verify, verified, traces
                )
                refuse_failure(applied)
            except InputError:
                if not left or self._is_current(recorder, version):
                    raise
            else:
                is_current = self._is_current(recorder, version)
                if is_current or not left:
                    return self._admit_checked(
                        pooled,
                        recorder,
                        applied,
                        last=place is None,
                        stale=not is_current or self._chain.last_block is not ground,
                    )
            if traces is not None:
                traces.clear()
        raise AssertionError("the last attempt returns or raises")

    def _admit_checked(
        self,
        pooled: PooledTransaction,
        recorder: ReadRecorder,
        applied: Applied,
        *,
        last: bool,
        stale: bool,
    ) -> PoolAccepted | None:
        transaction = pooled.transaction
        if transaction.id in self._transactions:
            return None
        self._check_room(transaction, None if last else pooled.place)
        if last:
            self._last += 1
            pooled.place = self._last
        pooled.moved = moved_by(transaction, applied)
        self._keep(pooled)
        self._attach(pooled, recorder, applied, last=last)
        if stale:
            self._recheck((pooled.place,))
        return PoolAccepted(transaction, pooled.moved)

    def _is_current(self, recorder: ReadRecorder, version: int) -> bool:
        """Whether what a transaction has read is still the same."""
        return version == self._version or recorder.is_current()

    def _check_room(self, transaction: AnyTransaction, place: int | None) -> None:
        if len(self._transactions) >= self._max_count:
            limit = "size"
        elif self._bytes + len(transaction.body) > self._max_bytes:
            limit = "bytes size"
        else:
            return
        # A returned transaction displaces later ones (``_make_room``).
        if place is None or place > max(self._by_place, default=place):
            raise PoolFull(f"Transaction pool {limit} limit is reached")

    def _make_room(self) -> None:
        while len(self._transactions) > self._max_count or self._bytes > self._max_bytes:
            last = self._by_place[max(self._by_place)]
            self._drop(last, PoolFull("Transaction pool size limit is reached"))

    def _keep(self, pooled: PooledTransaction) -> None:
        self._version += 1
        transaction, place = pooled.transaction, pooled.place
        self._transactions[transaction.id] = pooled
        self._by_place[place] = pooled
        self._by_sender.setdefault(_sender(transaction), {})[place] = pooled
        self._bytes += len(transaction.body)
        self._state.latest.transaction_ids[transaction.id] = self._chain.height + 1
        self._times.add(pooled)
        if len(self._times) > 2 * len(self._by_place) + _MANY_TIMES:
            # Most of these have left the pool.
            self._times = Expiries(self._by_place.values())
        if pooled.unproven:
            self._unproven.add(transaction.id)
        if pooled.scripted:
            self._scripted.add(transaction.id)

    def _attach(
        self, pooled: PooledTransaction, recorder: ReadRecorder, applied: Applied, *, last: bool
    ) -> None:
        place, changes = pooled.place, applied.changes.changes
        pooled.entries = self._state.attach(
            place,
            recorder,
            changes,
            exactly=applied.status is not Status.SUCCEEDED,
            only_receive=only_receive(pooled.transaction, changes),
            last=last,
        )
        pooled.issued = len(changes.get(ASSETS, ()))
        if recorder.asked_chain:
            self._by_chain.add(place)
        if recorder.asked_blocks or not _WITH_HEIGHTS.isdisjoint(changes):
            self._by_height.add(place)

    def _apply(
        self,
        pooled: PooledTransaction,
        recorder: ReadRecorder,
        effort: Effort,
        verify: bool,
        verified: Collection[SignedMessage] = (),
        traces: Traces | None = None,
    ) -> Applied:
        transaction, environment = pooled.transaction, self.environment()
        fails = environment.rules.has(Feature.BLOCK_V5) and rules_of(transaction.type_id).may_fail
        context = Context(
            environment,
            limit=FAIL_FREE_COMPLEXITY if fails and not pooled.whole else None,
            watch=effort,
            traces=traces,
            witness=recorder,
        )
        at_once = verify and not verified
        try:
            applied = apply_transaction(transaction, recorder, context, verify_signature=at_once)
            if verify and any(message not in verified for message in context.unverified):
                applied = apply_transaction(transaction, recorder, context)
        except NotKept as error:
            # Its script asks for what this node has deleted: others may decide, and not this pool.
            raise TransactionRejected(str(error)) from error
        if self._chain.store.below is not None:
            # Fetching may fail, so do it before anything is recorded.
            self._state.find(applied.changes.changes)
        return applied

    def _effort(self, pooled: PooledTransaction) -> Effort:
        """Return the bound of one check of a transaction."""
        # Estimators before the third one take more steps for the same script.
        is_bounded = self.environment().rules.has(Feature.BLOCK_V5)
        sets_script = is_bounded and rules_of(pooled.transaction.type_id).pool.sets_script
        return Effort(MAX_ESTIMATION_STEPS if sets_script else None)

    def environment(self) -> BlockEnvironment:
        """Return the environment of the next block, made now; cached except for the time."""
        chain, now = self._chain, self._clock()
        ground = chain.last_block, chain.rules
        if self._next is None or any(map(is_not, self._next[0], ground)):
            self._next = ground, pending_environment(chain, now)
        return msgspec.structs.replace(self._next[1], timestamp=now, waived=chain.waived)

    # --- following the chain ----------------------------------------------------------------------

    def follow(
        self,
        mined: Iterable[bytes] = (),
        unminable: Mapping[bytes, str] | None = None,
        returned: Iterable[AnyTransaction] = (),
        changes: Changes | None = None,
        dropped: Mapping[bytes, str] | None = None,
    ) -> None:
        """Update the pool after a block or a rollback: drop what was mined, and determine what to
        recheck. What the miner found to be invalid (with the reason) is rechecked, too: in the next
        key block it may be valid, because of the height or the time. It is dropped when that has
        happened at some heights. What is ``dropped`` (with the reason) leaves the pool at once.

        Transactions ``returned`` from removed blocks are placed before the others, which may need
        them. Without the ``changes`` of the state everything is rechecked.
        """
        self._version += 1
        gone: list[tuple[bytes, Departure, str | None]]
        gone = [(name, Departure.MINED, None) for name in mined]
        gone += [(name, Departure.INVALID, why) for name, why in (dropped or {}).items()]
        gone += [(name, Departure.INVALID, why) for name, why in self._missed(unminable or {})]
        events, left = list[PoolEvent](), list[PooledTransaction]()
        for name, departure, reason in gone:
            pooled = self._transactions.get(name)
            if pooled is not None:
                if reason is not None:
                    _log.info("dropped %s from the pool: %s", name.hex(), reason)
                self._forget(pooled)
                left.append(pooled)
                events.append(PoolDropped(pooled.transaction, pooled.moved, departure, reason))
        self._state.detach((each.place, each.entries) for each in left)
        self._state.rebase(changes)
        self._check_block(everything=changes is None)
        back = list(returned)
        self._first -= len(back)
        self._returning.extendleft(reversed([*enumerate(back, self._first)]))
        for event in events:
            self._notify(event)

    def _missed(self, unminable: Mapping[bytes, str]) -> list[tuple[bytes, str]]:
        """Recheck what the miner found to be invalid, and return what is to be dropped at once."""
        height, gone = self._chain.height, list[tuple[bytes, str]]()
        for name, why in unminable.items():
            pooled = self._transactions.get(name)
            if pooled is None:
                continue
            pooled.misses += pooled.missed_at != height
            pooled.missed_at = height
            if pooled.misses > MAX_MISSES:
                gone.append((name, why))
            else:
                _log.debug("%s is not valid at height %d: %s", name.hex(), height, why)
                self._recheck((pooled.place,))
        return gone

    def _check_block(self, *, everything: bool) -> None:
        """Queue what depends on the block itself: its height, rules and time."""
        before, now = self._checked_by, self.environment()
        self._checked_by = now
        if now.height != before.height:
            ids = dict.fromkeys(self._transactions, now.height)
            self._state.latest.transaction_ids = ids
        if everything or now.rules is not before.rules:
            self._times = Expiries(self._by_place.values())
            self._recheck(self._by_place)
            return
        if now.last_block != before.last_block:
            self._recheck(self._by_height)
        self._recheck(self._by_chain)
        oldest = self._chain.last_block.header.timestamp - now.rules.max_time_back_ms
        self._recheck(self._times.pop_expired(oldest, now.timestamp))

    def _recheck(self, places: Iterable[int]) -> None:
        for place in places:
            pooled = self._by_place.get(place)
            if pooled is not None:
                self._dirty.add(place, scripted=pooled.scripted)

    def _forget(self, pooled: PooledTransaction) -> None:
        self._version += 1
        transaction, place = pooled.transaction, pooled.place
        name, sender = transaction.id, _sender(transaction)
        del self._transactions[name], self._by_place[place]
        sent = self._by_sender[sender]
        del sent[place]
        if not sent:
            del self._by_sender[sender]
        self._bytes -= len(transaction.body)
        self._state.latest.transaction_ids.pop(name, None)
        self._scripted.discard(name)
        self._unproven.discard(name)
        self._by_height.discard(place)
        self._by_chain.discard(place)
        self._dirty.discard(place)

    @property
    def is_settled(self) -> bool:
        """Whether everything is checked against the present chain."""
        queued = self._returning or self._dirty or self._working
        return not queued and self._state.is_settled

    def settle(self, seconds: float | None = None) -> bool:
        """Recheck the pool, for so long or completely; return whether it is complete. One
        transaction is not divided.
        """
        until = math.inf if seconds is None else perf_counter() + seconds
        with without_retry():
            while self._settle_one():
                if perf_counter() >= until:
                    return self.is_settled
        return True

    def _settle_one(self) -> bool:
        if self._returning:
            self._readd(self._returning[0])
            return True
        places = self._state.next_stale()
        if places is not None:
            self._recheck(places)
            return True
        place = self._dirty.next()
        if place is None:
            return False
        self._reapply(self._by_place[place])
        return True

    def _readd(self, back: tuple[int, AnyTransaction]) -> None:
        """Add the first returned transaction, which waits until that is decided: later ones may
        need it, and while its scripts are left somebody else may go on with them, the miner.
        """
        place, transaction = back
        accepted: PoolAccepted | None = None
        refused: InputError | None = None
        self._working += 1
        try:
            if transaction.id not in self._transactions:
                accepted = self._admit_again(transaction, place)
        except InputError as error:
            refused = error
        finally:
            self._working -= 1
        is_decided = back not in self._returning
        if not is_decided:
            self._returning.remove(back)
        if accepted is not None:
            self._recheck_counters(place)
            self._notify(accepted)
            self._make_room()
        elif refused is not None and not is_decided:
            _log.info("not back in the pool: %s: %s", transaction.id.hex(), refused)
            if not isinstance(refused, AlreadyInState):
                moved = Moved((), (), (_sender(transaction),))
                reason = str(refused)
                self._notify(PoolDropped(transaction, moved, Departure.INVALID, reason))
        if not (self._returning or is_decided):
            self._restore_order()

    def _admit_again(self, transaction: AnyTransaction, place: int) -> PoolAccepted | None:
        """Admit a returned transaction. Its scripts are run completely, since later ones may need
        what they do; if it would fail and pay, as far as those of a peer's.
        """
        # Verify its signature: the account's script may be gone.
        try:
            return self._admit(transaction, place, verify=True, origin=Origin.CLIENT)
        except InputError:
            return self._admit(transaction, place, verify=True)

    def _restore_order(self) -> None:
        """Move returned transactions before the others, which may need them."""
        in_order = [self._by_place[place] for place in sorted(self._by_place)]
        self._transactions = {each.transaction.id: each for each in in_order}
        self._by_sender = {}
        for each in in_order:
            self._by_sender.setdefault(_sender(each.transaction), {})[each.place] = each

    def _reapply(self, pooled: PooledTransaction) -> None:
        """Apply an accepted transaction again, on changed state."""
        transaction, place = pooled.transaction, pooled.place
        recorder = ReadRecorder(self._state, place, transaction.id)
        version, effort = self._version, self._effort(pooled)
        sent_by_script = has_script(transaction, transaction.sender_public_key, recorder)
        self._working += 1
        try:
            applied = self._apply(pooled, recorder, effort, verify=pooled.unproven)
        except InputError as error:
            if self._by_place.get(place) is not pooled:
                return
            is_over = pooled.rechecked + effort.done > MAX_RECHECK_WORK
            if not (is_over or self._is_current(recorder, version)):
                self._recheck((place,))
                return
            # An earlier transaction may be dropped yet, and leave what this one needs.
            if not self._dirty.postpone(place):
                self._drop(pooled, error)
            return
        except BaseException:
            self._recheck((place,))
            raise
        finally:
            self._working -= 1
            pooled.rechecked += effort.done
        if self._by_place.get(place) is not pooled:
            return
        if pooled.rechecked > MAX_RECHECK_WORK:
            self._drop(pooled, ScriptsTooLong(_RECHECKED))
            return
        if not self._is_current(recorder, version):
            self._recheck((place,))
        pooled.moved = merged_moves(pooled.moved, moved_by(transaction, applied))
        pooled.scripted = runs_scripts(transaction, sent_by_script)
        (self._scripted.add if pooled.scripted else self._scripted.discard)(transaction.id)
        for places in (self._by_height, self._by_chain):
            places.discard(place)
        self._state.detach(((place, pooled.entries),))
        issued = pooled.issued
        self._attach(pooled, recorder, applied, last=False)
        if pooled.issued != issued:
            self._recheck_counters(place)

    def _recheck_counters(self, place: int) -> None:
        """Queue later transactions that depend on the number of earlier entries."""
        self._recheck([other for other in self._by_chain if other > place])

    def _drop(self, pooled: PooledTransaction, error: InputError) -> None:
        transaction, place = pooled.transaction, pooled.place
        self._forget(pooled)
        self._state.detach(((place, pooled.entries),))
        self._recheck_counters(place)
        if isinstance(error, AlreadyInState):
            self._notify(PoolDropped(transaction, pooled.moved, Departure.MINED))
            return
        _log.info("dropped %s from the pool: %s", transaction.id.hex(), error)
        self._notify(PoolDropped(transaction, pooled.moved, Departure.INVALID, str(error)))


def _sender(transaction: AnyTransaction) -> Address:
    return from_public_key(transaction.sender_public_key, transaction.chain_id)
