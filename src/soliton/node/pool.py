"""The pool of unconfirmed transactions (UTX): what is valid now and waits for a block.

Every transaction is checked against the chain *and* everything that came before it in the pool, so
that the pool can become a block as it stands. After each block the rest is checked again; what no
longer holds is dropped.

What lives here: adding, looking up, re-checking, limits. What does not: choosing the time of a
block (``miner``), the rules of transactions (``soliton.ledger``).

Source: wavesplatform/Waves ``node/src/main/scala/com/wavesplatform/utx/UtxPoolImpl.scala``.
"""

from __future__ import annotations

import heapq
import logging
from collections.abc import Callable, Collection, Iterable, Mapping
from enum import Enum
from typing import Final, TypeVar

import msgspec

from soliton.chain.addresses import from_public_key
from soliton.chain.blocks import Block
from soliton.chain.features import Feature
from soliton.chain.transactions import (
    exchange,
    invoke_script,
    issue,
    set_asset_script,
    set_script,
)
from soliton.chain.transactions.model import AnyTransaction
from soliton.crypto.curve25519 import SignedMessage
from soliton.errors import InputError
from soliton.ledger.context import Context
from soliton.ledger.errors import AlreadyInState, LedgerError
from soliton.ledger.rules import rules_of
from soliton.ledger.scripts import FAIL_FREE_COMPLEXITY, account_script
from soliton.ledger.state import ASSET_BALANCES, WAVES, Changes, Overlay, State, Table
from soliton.ledger.traces import Traces
from soliton.ledger.transactions import Applied, apply_transaction, refuse_failure
from soliton.node import plain_transfers
from soliton.node.accounts import accounts_of_pending
from soliton.node.chain import Chain
from soliton.node.events import Departure, Moved, PoolAccepted, PoolDropped, PoolEvent
from soliton.ride.estimators.machine import WATCHED_STEPS, EstimationTooLong

K = TypeVar("K")
V = TypeVar("V")

MAX_SCRIPTED: Final = 5_000
MAX_REMEMBERED: Final = 200_000
"""Values of the chain's state that are kept at hand; a full pool needs fewer."""

MAX_ESTIMATION_STEPS: Final = 500_000
"""What estimating a new script may take here, some 0.3 s; the largest dApps known take a tenth. A
block may bring one that takes ten times as much; but who is refused here has paid no fee for it.
"""
_SETTING_SCRIPTS: Final = frozenset(
    kind.TYPE.type_id for kind in (issue, set_script, set_asset_script)
)

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


class _Patience:
    """Ends the estimation of a script that takes too long for a transaction without a block."""

    __slots__ = ("_left",)

    def __init__(self) -> None:
        self._left = MAX_ESTIMATION_STEPS // WATCHED_STEPS

    def __call__(self) -> None:
        self._left -= 1
        if self._left < 0:
            raise EstimationTooLong(
                f"Script estimation takes more than {MAX_ESTIMATION_STEPS} steps"
            )


class _Remembered:
    """The chain's state, of which each value is read once: until the next block it stays so."""

    __slots__ = ("_count", "_state", "_values")

    def __init__(self, state: State) -> None:
        self._state = state
        self._values: Changes = {}
        self._count = 0

    def get(self, table: Table[K, V], key: K) -> V:
        values = self._values.setdefault(table, {})
        if key in values:
            known: V = values[key]
            return known
        value = self._state.get(table, key)
        self._count += 1
        if self._count > MAX_REMEMBERED:
            self._values.clear()
            self._count = 0
        else:
            values[key] = value
        return value

    def transaction_height(self, transaction_id: bytes) -> int | None:
        return self._state.transaction_height(transaction_id)


class UtxPool:
    """Unconfirmed transactions in the order of their arrival."""

    __slots__ = (
        "_bytes",
        "_chain",
        "_checked_by",
        "_clock",
        "_context_after",
        "_max_bytes",
        "_max_count",
        "_max_scripted",
        "_moved",
        "_overlay",
        "_scripted",
        "_tell",
        "_transactions",
        "_unlimited",
        "_unproven",
        "_whole",
    )

    def __init__(
        self,
        chain: Chain,
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
        self._max_scripted = max_scripted
        self._unlimited = unlimited
        self._scripted: set[bytes] = set()
        self._unproven: set[bytes] = set()
        self._whole: set[bytes] = set()
        self._chain = chain
        self._clock = clock
        self._max_count = max_count
        self._max_bytes = max_bytes
        self._tell = tell
        self._transactions: dict[bytes, AnyTransaction] = {}
        self._moved: dict[bytes, Moved] = {}
        self._bytes = 0
        self._context_after: tuple[Block, Context] | None = None
        self._checked_by = chain.rules.at(chain.height + 1)
        self._overlay = Overlay(_Remembered(chain.store), chain.height + 1)

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
        return self._transactions.get(transaction_id)

    def transactions(self) -> list[AnyTransaction]:
        """All transactions, the oldest first."""
        return list(self._transactions.values())

    @property
    def unproven(self) -> Collection[bytes]:
        """The ids of those that came through an account's script in place of a signature.

        Whoever applies them to another state verifies what signatures are asked for there.
        """
        return self._unproven

    def moved(self, transaction_id: bytes) -> Moved:
        """What a transaction of the pool does to balances, or has done since it came: who was told
        of it is told of its end. Raises ``KeyError`` for others.
        """
        return self._moved[transaction_id]

    def in_mining_order(self) -> list[AnyTransaction]:
        """All transactions in the order in which a block takes them.

        Higher fees per byte first, but what one account has sent stays in the order of arrival:
        later transactions may need what earlier ones brought.
        """
        by_sender: dict[bytes, list[AnyTransaction]] = {}
        for transaction in self._transactions.values():
            by_sender.setdefault(transaction.sender_public_key, []).append(transaction)
        if len(by_sender) == 1:
            return self.transactions()
        queues = [
            (-_fee_rate(queue[0]), number, 0, queue)
            for number, queue in enumerate(by_sender.values())
        ]
        heapq.heapify(queues)
        ordered = []
        while queues:
            _, number, index, queue = heapq.heappop(queues)
            ordered.append(queue[index])
            index += 1
            if index < len(queue):
                heapq.heappush(queues, (-_fee_rate(queue[index]), number, index, queue))
        return ordered

    def state(self) -> State:
        """The state as if the whole pool were in the next block."""
        return self._overlay

    def kept_state(self) -> Overlay:
        """The same as it is now, and stays whatever comes into the pool or leaves it."""
        kept = Overlay(self._chain.store, self._chain.height + 1)
        kept.merge(self._overlay)
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
        accepted = self._admit(
            transaction,
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
        *,
        verify: bool,
        verified: Collection[SignedMessage] = (),
        origin: Origin = Origin.PEER,
        traces: Traces | None = None,
    ) -> PoolAccepted:
        self._check_room(transaction)
        sent_by_script = self._has_script(transaction, transaction.sender_public_key)
        scripted = _runs_scripts(transaction, sent_by_script)
        if scripted and len(self._scripted) >= self._max_scripted:
            raise PoolFull("Transaction pool scripted txs size limit is reached")
        unproven = sent_by_script or self._asks_of_orders(transaction)
        context = self.context()
        if traces is not None:
            context = msgspec.structs.replace(context, traces=traces)
        whole = self._unlimited or origin is Origin.CLIENT
        applied = self._apply(transaction, context, verify, verified, whole=whole)
        refuse_failure(applied)
        self._overlay.merge(applied.changes)
        if whole:
            self._whole.add(transaction.id)
        moved = _moved_by(transaction, applied)
        self._moved[transaction.id] = moved
        self._keep(transaction)
        if scripted:
            self._scripted.add(transaction.id)
        if unproven:
            self._unproven.add(transaction.id)
        return PoolAccepted(transaction, moved)

    def _check_room(self, transaction: AnyTransaction) -> None:
        size = self._bytes + len(transaction.body)
        if len(self._transactions) >= self._max_count or size > self._max_bytes:
            raise PoolFull("Transaction pool size limit is reached")

    def _keep(self, transaction: AnyTransaction) -> None:
        self._transactions[transaction.id] = transaction
        self._bytes += len(transaction.body)

    def _has_script(self, transaction: AnyTransaction, public_key: bytes) -> bool:
        """Whether an account has a script that says, in place of a signature, who signed."""
        if not public_key:
            return False
        address = from_public_key(public_key, transaction.chain_id)
        return account_script(address, self._overlay) is not None

    def _asks_of_orders(self, transaction: AnyTransaction) -> bool:
        """Whether that is so of an account behind an order."""
        return transaction.type_id == exchange.TYPE.type_id and any(
            self._has_script(transaction, order.sender_public_key)
            for order in transaction.payload.orders
        )

    def _apply(
        self,
        transaction: AnyTransaction,
        context: Context,
        verify: bool,
        verified: Collection[SignedMessage] = (),
        *,
        whole: bool,
    ) -> Applied:
        fails = rules_of(transaction.type_id).may_fail and context.rules.has(Feature.BLOCK_V5)
        if fails and not whole:
            context = msgspec.structs.replace(context, limit=FAIL_FREE_COMPLEXITY)
        # Estimators before the third one take more steps for the same.
        if transaction.type_id in _SETTING_SCRIPTS and context.rules.has(Feature.BLOCK_V5):
            context = msgspec.structs.replace(context, watch=_Patience())
        at_once = verify and not verified
        applied = apply_transaction(transaction, self._overlay, context, verify_signature=at_once)
        if verify and any(message not in verified for message in context.unverified):
            applied = apply_transaction(transaction, self._overlay, context)
        # Whoever does not want signatures verified here has done so, or did when they came.
        context.unverified.clear()
        return applied

    def context(self) -> Context:
        """The block after the last one, made now; all but the time is the same until that comes."""
        last = self._chain.last_block
        if self._context_after is None or self._context_after[0] is not last:
            self._context_after = last, self._context_on(last)
        return msgspec.structs.replace(self._context_after[1], timestamp=self._clock())

    def _context_on(self, last: Block) -> Context:
        height = self._chain.height + 1
        return Context(
            height,
            self._clock(),
            last.header.timestamp,
            self._chain.rules.at(height),
            self._chain.scripts,
            self._chain.view.block(self._chain.height),
            chain=self._chain.view,
        )

    def refresh(
        self,
        mined: Iterable[bytes] = (),
        unminable: Mapping[bytes, str] | None = None,
        returned: Iterable[AnyTransaction] = (),
    ) -> None:
        """Follow the chain after a block or a rollback: forget what was mined and what the miner
        found to be invalid (with its reason), check the rest again.

        What has ``returned`` from blocks that were taken off comes before the rest, which may need
        it.
        """
        gone: list[tuple[bytes, Departure, str | None]]
        gone = [(name, Departure.MINED, None) for name in mined]
        gone += [(name, Departure.INVALID, why) for name, why in (unminable or {}).items()]
        told: list[PoolEvent] = []
        for name, departure, reason in gone:
            transaction = self._transactions.pop(name, None)
            if transaction is not None:
                told.append(PoolDropped(transaction, self._moved.pop(name), departure, reason))
        remaining = self._transactions
        self._transactions = {}
        self._scripted.intersection_update(remaining)
        self._unproven.intersection_update(remaining)
        self._whole.intersection_update(remaining)
        self._bytes = 0
        self._overlay = Overlay(_Remembered(self._chain.store), self._chain.height + 1)
        told += self._take_back(returned)
        context = self.context()
        same_rules = context.rules is self._checked_by
        self._checked_by = context.rules
        for transaction in remaining.values():
            try:
                if transaction.id in self._transactions:
                    continue
                self._check_room(transaction)
                self._apply_again(transaction, context, same_rules=same_rules)
            except InputError as error:
                told.append(self._leaves(transaction, error))
            else:
                self._keep(transaction)
        for event in told:
            self._tell(event)

    def _apply_again(
        self, transaction: AnyTransaction, context: Context, *, same_rules: bool
    ) -> None:
        """Apply what was accepted before; what depends on the state may be otherwise now."""
        name = transaction.id
        unproven = name in self._unproven
        shortcut = same_rules and not unproven
        if shortcut and plain_transfers.apply_again(transaction, self._overlay, context):
            self._scripted.discard(name)
            return
        sent_by_script = self._has_script(transaction, transaction.sender_public_key)
        applied = self._apply(transaction, context, verify=unproven, whole=name in self._whole)
        self._overlay.merge(applied.changes)
        self._moved[name] = _joined(self._moved[name], _moved_by(transaction, applied))
        if _runs_scripts(transaction, sent_by_script):
            self._scripted.add(name)
        else:
            self._scripted.discard(name)

    def _take_back(self, returned: Iterable[AnyTransaction]) -> list[PoolAccepted]:
        back = []
        for transaction in returned:
            try:
                # With its signature: a script that stood for it in the block may be missing here.
                back.append(self._admit(transaction, verify=True))
            except InputError as error:
                _log.info("not back in the pool: %s: %s", transaction.id.hex(), error)
        return back

    def _leaves(self, transaction: AnyTransaction, error: InputError) -> PoolDropped:
        moved = self._moved.pop(transaction.id)
        self._scripted.discard(transaction.id)
        self._unproven.discard(transaction.id)
        self._whole.discard(transaction.id)
        if isinstance(error, AlreadyInState):
            return PoolDropped(transaction, moved, Departure.MINED)
        _log.info("dropped %s from the pool: %s", transaction.id.hex(), error)
        return PoolDropped(transaction, moved, Departure.INVALID, str(error))


def _runs_scripts(transaction: AnyTransaction, sent_by_script: bool) -> bool:
    """Whether it counts as one that does: calls of dApps, and all that scripted accounts send but
    exchanges.
    """
    if transaction.type_id == invoke_script.TYPE.type_id:
        return True
    return sent_by_script and transaction.type_id != exchange.TYPE.type_id


def _moved_by(transaction: AnyTransaction, applied: Applied) -> Moved:
    changes = applied.changes.changes
    return Moved(
        tuple(changes.get(WAVES, ())),
        tuple(changes.get(ASSET_BALANCES, ())),
        accounts_of_pending(transaction, applied),
    )


def _joined(one: Moved, other: Moved) -> Moved:
    if one == other:
        return one
    return Moved(
        tuple(dict.fromkeys(one.waves + other.waves)),
        tuple(dict.fromkeys(one.assets + other.assets)),
        tuple(dict.fromkeys(one.accounts + other.accounts)),
    )


def _fee_rate(transaction: AnyTransaction) -> float:
    """Wavelets per signed byte; a fee in an asset counts last: its worth is not known here."""
    if transaction.fee_asset_id is not None:
        return 0.0
    return transaction.fee / len(transaction.body)
