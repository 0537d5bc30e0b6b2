"""The pool of unconfirmed transactions (UTX): what is valid now and waits for a block.

Every transaction is checked against the chain *and* everything that came before it in the pool, so
that the pool can become a block as it stands. After each block those whose grounds have changed are
checked again (``waiting_state`` knows whose); what no longer holds is dropped. This may take longer
than others want to wait: it is done piece by piece (``settle``). Until it is done the pool may hold
what no block takes, and its state may have what such a transaction would bring. Blocks do not rest
on that: whoever makes one applies each transaction anew.

What lives here: adding, looking up, re-checking, limits. What does not: choosing the time of a
block (``miner``), the rules of transactions (``soliton.ledger``).

Source: wavesplatform/Waves ``node/src/main/scala/com/wavesplatform/utx/UtxPoolImpl.scala``.
"""

from __future__ import annotations

import heapq
import logging
import math
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from enum import Enum
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
from soliton.ledger.errors import AlreadyInState, LedgerError
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
from soliton.node.waiting import (
    Patience,
    Places,
    Times,
    Waiting,
    asks_others,
    fee_rate,
    has_script,
    joined,
    moved_by,
    only_receive,
    runs_scripts,
)
from soliton.node.waiting_state import Name, Reading, WaitingState
from soliton.steps import Steps
from soliton.storage.errors import StorageProblem
from soliton.storage.retrying import without_retry

MAX_SCRIPTED: Final = 5_000
MAX_ESTIMATION_STEPS: Final = 500_000
"""What estimating a new script may take here, some 0.3 s; the largest dApps known take a tenth. A
block may bring one that takes ten times as much; but who is refused here has paid no fee for it.
"""
_WITH_HEIGHTS: Final = frozenset((ASSETS, ASSET_NAMES, LEASE_INFO, LEASE_STATES))
"""What is written there tells the height of the block."""
_MANY_TIMES: Final = 1_024
_STEP_SECONDS: Final = 0.002
_STEP_SENDERS: Final = 2_048
"""To look at their first transactions takes about two milliseconds."""

_log = logging.getLogger(__name__)


class Origin(Enum):
    """Whom a transaction comes from.

    What a client sends is run to its end, and refused when it fails: its sender would pay for
    nothing. What a peer sends has been accepted there, and there is too much of it: scripts by
    which it may fail are run up to the complexity up to which failing costs nothing.
    """

    CLIENT = "client"
    PEER = "peer"


class PoolFull(LedgerError):
    """The pool is at a limit; the transaction may come again later."""


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
        "_returning",
        "_scripted",
        "_state",
        "_tell",
        "_times",
        "_transactions",
        "_unlimited",
        "_unproven",
    )

    def __init__(
        self,
        chain: Blockchain,
        clock: Callable[[], int],
        max_count: int,
        max_bytes: int,
        tell: Callable[[PoolEvent], None] = lambda _event: None,
        *,
        max_scripted: int = MAX_SCRIPTED,
        unlimited: bool = False,
    ) -> None:
        """``clock`` gives the time in ms; the limits are a count, a sum of signed bytes and a count
        of those that run scripts; ``tell`` is called for each transaction that comes or goes.

        ``unlimited`` runs what peers send to its end, too.
        """
        self._max_scripted, self._unlimited = max_scripted, unlimited
        self._chain, self._clock = chain, clock
        self._max_count, self._max_bytes = max_count, max_bytes
        self._tell = tell
        self._transactions: dict[bytes, Waiting] = {}
        self._by_place: dict[int, Waiting] = {}
        self._by_sender: dict[Address, dict[int, Waiting]] = {}
        self._scripted: set[bytes] = set()
        self._unproven: set[bytes] = set()
        self._bytes = 0
        self._first = self._last = 0
        # To be looked at again when there is another block, and whenever the chain changes.
        self._by_height: set[int] = set()
        self._by_chain: set[int] = set()
        self._times = Times()
        self._dirty = Places()
        self._returning: deque[tuple[int, AnyTransaction]] = deque()
        self._next: tuple[tuple[Block, RuleBook], BlockEnvironment] | None = None
        self._state = WaitingState(chain.store)
        self._checked_by = self.environment()

    def __len__(self) -> int:
        return len(self._transactions)

    def __contains__(self, transaction_id: bytes) -> bool:
        return transaction_id in self._transactions

    @property
    def size(self) -> int:
        """Signed bytes of all transactions."""
        return self._bytes

    @property
    def is_full(self) -> bool:
        """Whether there is no room for another transaction."""
        return len(self._transactions) >= self._max_count or self._bytes >= self._max_bytes

    def get(self, transaction_id: bytes) -> AnyTransaction | None:
        """The pool's transaction with this id."""
        found = self._transactions.get(transaction_id)
        return None if found is None else found.transaction

    def transactions(self) -> list[AnyTransaction]:
        """All transactions, the oldest first."""
        return [each.transaction for each in self._transactions.values()]

    def sent_by(self, sender: Address) -> list[bytes]:
        """The ids of what an account has sent, the oldest first."""
        return [each.transaction.id for each in self._by_sender.get(sender, {}).values()]

    @property
    def unproven(self) -> Collection[bytes]:
        """The ids of those that came through an account's script in place of a signature.

        Whoever applies them to another state verifies what signatures are asked for there.
        """
        return self._unproven

    def moved(self, transaction_id: bytes) -> Moved:
        """What a transaction of the pool does to balances, or has done since it came: listeners
        hear of both ends. Raises ``KeyError`` for others.
        """
        return self._transactions[transaction_id].moved

    def steps_of(self, transaction_id: bytes) -> Iterator[tuple[Name, Any, Any]]:
        """What a transaction of the pool has written: each entry, its value before and after; of a
        balance 0 and by how much it changes. Raises ``KeyError`` for others.
        """
        waiting = self._transactions[transaction_id]
        for entry in waiting.entries:
            step = entry.step(waiting.place)
            if step is not None:
                yield (entry.table, entry.key), *step

    def mining_order(self) -> Steps[Iterator[AnyTransaction]]:
        """The transactions of the pool in the order in which a block takes them, those that leave
        it meanwhile left out. In steps: there may be many senders; what a rollback returns comes
        back first, as the rest may need it.

        Higher fees per byte first, those that came first among equal ones, but what one account has
        sent stays in the order of arrival: later transactions may need what earlier ones brought.
        """
        while self._returning:
            self.settle(_STEP_SECONDS)
            yield
        queues: list[tuple[float, int, dict[int, Waiting]]] = []
        for number, sent in enumerate(list(self._by_sender.values()), 1):
            if sent:
                first = next(iter(sent.values()))
                queues.append((-fee_rate(first.transaction), first.place, sent))
            if number % _STEP_SENDERS == 0:
                yield
        heapq.heapify(queues)
        return self._in_order(queues)

    def _in_order(
        self, queues: list[tuple[float, int, dict[int, Waiting]]]
    ) -> Iterator[AnyTransaction]:
        waiting: dict[int, deque[Waiting]] = {}
        while queues:
            _, _, sent = heapq.heappop(queues)
            # What comes while a block is made waits for the next one.
            queue = waiting.get(id(sent))
            if queue is None:
                queue = waiting[id(sent)] = deque(sent.values())
            one = queue.popleft() if queue else None
            if one is not None and self._by_place.get(one.place) is one:
                yield one.transaction
            if queue:
                head = queue[0]
                heapq.heappush(queues, (-fee_rate(head.transaction), head.place, sent))

    def state(self) -> State:
        """The state as if the whole pool were in the next block."""
        return self._state.latest

    def kept_state(self) -> Overlay:
        """The same as it is now, and stays whatever comes into the pool or leaves it."""
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
        """Check and keep a transaction; ``False`` when the pool has it already.

        What is ``verified`` is not verified again. One that is seen to fail at the cost of its fee
        is refused. What scripts do is added to ``traces``. Raises ``PoolFull`` or what
        ``apply_transaction`` raises.
        """
        if transaction.id in self._transactions:
            return False
        reading = Reading(self._state, None, transaction.id)
        self._last += 1
        accepted = self._admit(
            transaction,
            self._last,
            reading,
            verify=verify_signature,
            verified=verified,
            origin=origin,
            traces=traces,
        )
        self._tell(accepted)
        return True

    def _admit(
        self,
        transaction: AnyTransaction,
        place: int,
        reading: Reading,
        *,
        verify: bool,
        verified: Collection[SignedMessage] = (),
        origin: Origin = Origin.PEER,
        traces: Traces | None = None,
    ) -> PoolAccepted:
        self._check_room(transaction, place)
        sent_by_script = has_script(transaction, transaction.sender_public_key, reading)
        scripted = runs_scripts(transaction, sent_by_script)
        if scripted and len(self._scripted) >= self._max_scripted:
            raise PoolFull("Transaction pool scripted txs size limit is reached")
        waiting = Waiting(
            transaction,
            place,
            unproven=sent_by_script or asks_others(transaction, reading),
            whole=self._unlimited or origin is Origin.CLIENT,
        )
        applied = self._apply(waiting, reading, verify, verified, traces)
        refuse_failure(applied)
        waiting.moved = moved_by(transaction, applied)
        waiting.scripted = scripted
        self._keep(waiting)
        self._attach(waiting, reading, applied, last=place == self._last)
        return PoolAccepted(transaction, waiting.moved)

    def _check_room(self, transaction: AnyTransaction, place: int) -> None:
        size = self._bytes + len(transaction.body)
        full = len(self._transactions) >= self._max_count or size > self._max_bytes
        # What comes back takes the room of those behind it (``_make_room``).
        if full and (place == self._last or place > max(self._by_place, default=place)):
            raise PoolFull("Transaction pool size limit is reached")

    def _make_room(self) -> None:
        while len(self._transactions) > self._max_count or self._bytes > self._max_bytes:
            last = self._by_place[max(self._by_place)]
            self._drop(last, PoolFull("Transaction pool size limit is reached"))

    def _keep(self, waiting: Waiting) -> None:
        transaction, place = waiting.transaction, waiting.place
        self._transactions[transaction.id] = waiting
        self._by_place[place] = waiting
        self._by_sender.setdefault(_sender(transaction), {})[place] = waiting
        self._bytes += len(transaction.body)
        self._state.latest.transaction_ids[transaction.id] = self._chain.height + 1
        self._times.add(waiting)
        if len(self._times) > 2 * len(self._by_place) + _MANY_TIMES:
            # Most of these have gone.
            self._times = Times(self._by_place.values())
        if waiting.unproven:
            self._unproven.add(transaction.id)
        if waiting.scripted:
            self._scripted.add(transaction.id)

    def _attach(self, waiting: Waiting, reading: Reading, applied: Applied, *, last: bool) -> None:
        place, changes = waiting.place, applied.changes.changes
        waiting.entries = self._state.attach(
            place,
            reading,
            changes,
            exactly=applied.status is not Status.SUCCEEDED,
            only_receive=only_receive(waiting.transaction, changes),
            last=last,
        )
        waiting.issued = len(changes.get(ASSETS, ()))
        if reading.asked_chain:
            self._by_chain.add(place)
        if reading.asked_blocks or not _WITH_HEIGHTS.isdisjoint(changes):
            self._by_height.add(place)

    def _apply(
        self,
        waiting: Waiting,
        reading: Reading,
        verify: bool,
        verified: Collection[SignedMessage] = (),
        traces: Traces | None = None,
    ) -> Applied:
        transaction, environment = waiting.transaction, self.environment()
        version_5 = environment.rules.has(Feature.BLOCK_V5)
        of_type = rules_of(transaction.type_id)
        fails = version_5 and of_type.may_fail
        # Estimators before the third one take more steps for the same.
        sets_script = version_5 and of_type.pool.sets_script
        context = Context(
            environment,
            limit=FAIL_FREE_COMPLEXITY if fails and not waiting.whole else None,
            watch=Patience(MAX_ESTIMATION_STEPS) if sets_script else None,
            traces=traces,
            witness=reading,
        )
        at_once = verify and not verified
        applied = apply_transaction(transaction, reading, context, verify_signature=at_once)
        if verify and any(message not in verified for message in context.unverified):
            applied = apply_transaction(transaction, reading, context)
        if self._chain.store.below is not None:
            # That may fail, and nothing is noted yet.
            self._state.find(applied.changes.changes)
        return applied

    def environment(self) -> BlockEnvironment:
        """The block after the last one, made now; all but the time is the same until that comes."""
        chain, now = self._chain, self._clock()
        ground = chain.last_block, chain.rules
        if self._next is None or any(map(is_not, self._next[0], ground)):
            self._next = ground, pending_environment(chain, now)
        return msgspec.structs.replace(self._next[1], timestamp=now, waived=chain.waived)

    # --- following the chain ----------------------------------------------------------------------

    def refresh(
        self,
        mined: Iterable[bytes] = (),
        unminable: Mapping[bytes, str] | None = None,
        returned: Iterable[AnyTransaction] = (),
        changes: Changes | None = None,
    ) -> None:
        """Follow the chain (``follow``), and do all that is to be done then."""
        self.follow(mined, unminable, returned, changes)
        self.settle()

    def follow(
        self,
        mined: Iterable[bytes] = (),
        unminable: Mapping[bytes, str] | None = None,
        returned: Iterable[AnyTransaction] = (),
        changes: Changes | None = None,
    ) -> None:
        """Follow the chain after a block or a rollback: forget what was mined and what the miner
        found to be invalid (with its reason), and find out what to check again.

        What has ``returned`` from blocks that were taken off comes before the rest, which may need
        it. Without the ``changes`` of the state everything is checked again.
        """
        gone: list[tuple[bytes, Departure, str | None]]
        gone = [(name, Departure.MINED, None) for name in mined]
        gone += [(name, Departure.INVALID, why) for name, why in (unminable or {}).items()]
        told, left = list[PoolEvent](), list[Waiting]()
        for name, departure, reason in gone:
            waiting = self._transactions.get(name)
            if waiting is not None:
                self._forget(waiting)
                left.append(waiting)
                told.append(PoolDropped(waiting.transaction, waiting.moved, departure, reason))
        self._state.detach((each.place, each.entries) for each in left)
        self._state.rebase(changes)
        self._look_at_block(everything=changes is None)
        back = list(returned)
        self._first -= len(back)
        self._returning.extendleft(reversed([*enumerate(back, self._first)]))
        for event in told:
            self._tell(event)

    def _look_at_block(self, *, everything: bool) -> None:
        """Note what depends on the block itself: on its height, rules and time."""
        before, now = self._checked_by, self.environment()
        self._checked_by = now
        if now.height != before.height:
            ids = dict.fromkeys(self._transactions, now.height)
            self._state.latest.transaction_ids = ids
        if everything or now.rules is not before.rules:
            self._times = Times(self._by_place.values())
            self._check_again(self._by_place)
            return
        if now.last_block != before.last_block:
            self._check_again(self._by_height)
        self._check_again(self._by_chain)
        oldest = self._chain.last_block.header.timestamp - now.rules.max_time_back_ms
        self._check_again(self._times.over(oldest, now.timestamp))

    def _check_again(self, places: Iterable[int]) -> None:
        for place in places:
            waiting = self._by_place.get(place)
            if waiting is not None:
                self._dirty.add(place, scripted=waiting.scripted)

    def _forget(self, waiting: Waiting) -> None:
        transaction, place = waiting.transaction, waiting.place
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
        """Whether everything is checked against the chain as it is."""
        return not self._returning and not self._dirty and self._state.is_settled

    def settle(self, seconds: float | None = None) -> bool:
        """Check again what the last blocks give cause to, for so long or to the end: whether that
        is reached. One transaction is not divided.
        """
        until = math.inf if seconds is None else perf_counter() + seconds
        with without_retry():
            while self._settle_some():
                if perf_counter() >= until:
                    return self.is_settled
        return True

    def _settle_some(self) -> bool:
        if self._returning:
            back = self._returning.popleft()
            try:
                self._take_back(*back)
            except StorageProblem:
                self._returning.appendleft(back)
                raise
            if not self._returning:
                self._put_in_order()
            return True
        places = self._state.look()
        if places is not None:
            self._check_again(places)
            return True
        place = self._dirty.next()
        if place is None:
            return False
        self._apply_again(self._by_place[place])
        return True

    def _take_back(self, place: int, transaction: AnyTransaction) -> None:
        if transaction.id in self._transactions:
            return
        try:
            # With its signature: a script that stood for it in the block may be missing here.
            reading = Reading(self._state, place, transaction.id)
            accepted = self._admit(transaction, place, reading, verify=True)
        except InputError as error:
            _log.info("not back in the pool: %s: %s", transaction.id.hex(), error)
        else:
            self._count_again(place)
            self._tell(accepted)
            self._make_room()

    def _put_in_order(self) -> None:
        """What has come back stands before the rest, which may need it."""
        in_order = [self._by_place[place] for place in sorted(self._by_place)]
        self._transactions = {each.transaction.id: each for each in in_order}
        self._by_sender = {}
        for each in in_order:
            self._by_sender.setdefault(_sender(each.transaction), {})[each.place] = each

    def _apply_again(self, waiting: Waiting) -> None:
        """Apply what was accepted before; what depends on the state may be otherwise now."""
        transaction, place = waiting.transaction, waiting.place
        reading = Reading(self._state, place, transaction.id)
        sent_by_script = has_script(transaction, transaction.sender_public_key, reading)
        try:
            applied = self._apply(waiting, reading, verify=waiting.unproven)
        except InputError as error:
            self._drop(waiting, error)
            return
        except Exception:
            self._check_again((place,))
            raise
        waiting.moved = joined(waiting.moved, moved_by(transaction, applied))
        waiting.scripted = runs_scripts(transaction, sent_by_script)
        (self._scripted.add if waiting.scripted else self._scripted.discard)(transaction.id)
        for places in (self._by_height, self._by_chain):
            places.discard(place)
        self._state.detach(((place, waiting.entries),))
        issued = waiting.issued
        self._attach(waiting, reading, applied, last=False)
        if waiting.issued != issued:
            self._count_again(place)

    def _count_again(self, place: int) -> None:
        """Who counts what came before counts something else now."""
        self._check_again([other for other in self._by_chain if other > place])

    def _drop(self, waiting: Waiting, error: InputError) -> None:
        transaction, place = waiting.transaction, waiting.place
        self._forget(waiting)
        self._state.detach(((place, waiting.entries),))
        self._count_again(place)
        if isinstance(error, AlreadyInState):
            self._tell(PoolDropped(transaction, waiting.moved, Departure.MINED))
            return
        _log.info("dropped %s from the pool: %s", transaction.id.hex(), error)
        self._tell(PoolDropped(transaction, waiting.moved, Departure.INVALID, str(error)))


def _sender(transaction: AnyTransaction) -> Address:
    return from_public_key(transaction.sender_public_key, transaction.chain_id)
