"""A transaction of the pool: its place, the balances it changes, and how it is rechecked.

What lives here: the record of one transaction, its own properties, and queues of places. What does
not: the pool (``pool``), the state with all of them applied (``pool_state``).
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Collection, Iterable
from typing import Final

from soliton.chain.addresses import from_public_key
from soliton.chain.transactions.model import AnyTransaction
from soliton.ledger.errors import LedgerError
from soliton.ledger.rules import rules_of
from soliton.ledger.scripts import account_script
from soliton.ledger.state import ASSET_BALANCES, WAVES, Changes, State
from soliton.ledger.transactions import Applied
from soliton.node.accounts import accounts_of_pending
from soliton.node.events import Moved
from soliton.node.pool_state import Balance, Name, Value
from soliton.ride.estimators.machine import WATCHED_STEPS, EstimationTooLong
from soliton.steps import pause

MAX_PAUSES: Final = 50_000
"""The limit of pauses in the check of a transaction. A call of the maximum complexity has some
2,000 of them in the fast evaluator, and up to 20,000 in the exact one; what has more is made of
functions whose expressions cost nothing. A block may contain it, but the pool does not run it.
"""
_NOTHING_MOVED: Final = Moved((), (), ())


class PooledTransaction:
    """A transaction of the pool: its place, the entries that it uses, how it was checked, and how
    often a miner found it invalid, the last time at the height ``missed_at``.

    ``vain`` is the work of its scripts for blocks that did not take it, ``failed`` the part of it
    when it was invalid there, and ``needs`` the complexity that did not fit. ``rechecked`` is the
    work of rechecks.
    """

    __slots__ = (
        "entries",
        "failed",
        "issued",
        "missed_at",
        "misses",
        "moved",
        "needs",
        "place",
        "rechecked",
        "scripted",
        "transaction",
        "unproven",
        "vain",
        "whole",
    )

    def __init__(
        self, transaction: AnyTransaction, place: int, *, unproven: bool, whole: bool
    ) -> None:
        self.transaction = transaction
        self.place = place
        self.unproven = unproven
        self.whole = whole
        self.scripted = False
        self.issued = 0
        self.missed_at = self.misses = 0
        self.vain = self.failed = self.needs = self.rechecked = 0
        self.moved = _NOTHING_MOVED
        self.entries: tuple[Value | Balance, ...] = ()


class RecheckQueue:
    """Places to be rechecked: those without scripts first, otherwise in their order."""

    __slots__ = ("_places", "_plain", "_scripted")

    def __init__(self) -> None:
        self._plain: list[int] = []
        self._scripted: list[int] = []
        self._places: set[int] = set()

    def __bool__(self) -> bool:
        return bool(self._places)

    def add(self, place: int, *, scripted: bool) -> None:
        """Add a place, unless it is queued."""
        if place not in self._places:
            self._places.add(place)
            heapq.heappush(self._scripted if scripted else self._plain, place)

    def discard(self, place: int) -> None:
        """Remove a place."""
        self._places.discard(place)

    def next(self) -> int | None:
        """Remove and return the next place."""
        for heap in (self._plain, self._scripted):
            if self._least(heap) is not None:
                place = heapq.heappop(heap)
                self._places.remove(place)
                return place
        return None

    def postpone(self, place: int) -> bool:
        """Add a place that was the next again, after the earlier ones with scripts; return
        ``False`` if there are none.
        """
        least = self._least(self._scripted)
        if least is None or least > place:
            return False
        self.add(place, scripted=True)
        return True

    def _least(self, heap: list[int]) -> int | None:
        """The lowest place of a heap that was not discarded."""
        while heap and heap[0] not in self._places:
            heapq.heappop(heap)
        return heap[0] if heap else None


class ScriptsTooLong(LedgerError):
    """Checking a transaction takes more work than the pool does for one."""


class Effort:
    """What scripts of a transaction call while they run or are estimated (``Context.watch``): it
    leaves them for other work, and ends them after too much work.
    """

    __slots__ = ("_left", "_steps", "done")

    def __init__(self, estimation_steps: int | None = None) -> None:
        """``estimation_steps`` is a limit on the steps of an estimator."""
        self._steps = estimation_steps
        self._left = MAX_PAUSES if estimation_steps is None else estimation_steps // WATCHED_STEPS
        self.done = 0
        """How often it was called."""

    def __call__(self) -> None:
        self._left -= 1
        self.done += 1
        if self._left < 0:
            if self._steps is None:
                raise ScriptsTooLong("The scripts of the transaction take too long to run")
            raise EstimationTooLong(f"Script estimation takes more than {self._steps} steps")
        pause()


class Expiries:
    """Expiry times: by the time of the last block, and by the clock."""

    __slots__ = ("_ends", "_old")

    def __init__(self, pooled: Iterable[PooledTransaction] = ()) -> None:
        self._old: list[tuple[int, int]] = []
        self._ends: list[tuple[int, int]] = []
        for each in pooled:
            self.add(each)

    def __len__(self) -> int:
        return len(self._old)

    def add(self, pooled: PooledTransaction) -> None:
        """Add a transaction; there is no removal."""
        transaction, place = pooled.transaction, pooled.place
        heapq.heappush(self._old, (transaction.timestamp, place))
        ends = rules_of(transaction.type_id).pool.ends(transaction)
        if ends is not None:
            heapq.heappush(self._ends, (ends, place))

    def pop_expired(self, oldest: int, now: int) -> list[int]:
        """Remove and return the places of transactions that are older, or whose orders have
        expired.
        """
        places = []
        for times, least in ((self._old, oldest), (self._ends, now)):
            while times and times[0][0] < least:
                places.append(heapq.heappop(times)[1])
        return places


def has_script(transaction: AnyTransaction, public_key: bytes, state: State) -> bool:
    """Whether an account has a script, which verifies proofs in place of a signature."""
    if not public_key:
        return False
    address = from_public_key(public_key, transaction.chain_id)
    return account_script(address, state) is not None


def has_scripted_signer(transaction: AnyTransaction, state: State) -> bool:
    """Whether another signer, such as the account of an order, has a script."""
    signers = rules_of(transaction.type_id).pool.signers(transaction)
    return any(has_script(transaction, key, state) for key in signers)


def only_receive(transaction: AnyTransaction, changes: Changes) -> Collection[Name]:
    """Return the balances that a transfer only adds to: it does not depend on their values."""
    if transaction.fee_asset_id is not None or not rules_of(transaction.type_id).pool.only_adds:
        return ()
    sender = from_public_key(transaction.sender_public_key, transaction.chain_id)
    names: set[Name] = {(WAVES, owner) for owner in changes.get(WAVES, ()) if owner != sender}
    for key in changes.get(ASSET_BALANCES, ()):
        if key[0] != sender:
            names.add((ASSET_BALANCES, key))
    return names


def runs_scripts(transaction: AnyTransaction, sent_by_script: bool) -> bool:
    """Whether it counts as running scripts: calls of dApps, and transactions of scripted accounts
    except exchanges.
    """
    always = rules_of(transaction.type_id).pool.runs_scripts
    return sent_by_script if always is None else always


def moved_by(transaction: AnyTransaction, applied: Applied) -> Moved:
    changes = applied.changes.changes
    return Moved(
        tuple(changes.get(WAVES, ())),
        tuple(changes.get(ASSET_BALANCES, ())),
        accounts_of_pending(transaction, applied),
    )


def merged_moves(one: Moved, other: Moved) -> Moved:
    if one == other:
        return one
    return Moved(
        tuple(dict.fromkeys(one.waves + other.waves)),
        tuple(dict.fromkeys(one.assets + other.assets)),
        tuple(dict.fromkeys(one.accounts + other.accounts)),
    )


def mining_rank(pooled: PooledTransaction) -> float:
    """Return the place of a transaction in the mining order: returned ones come first, and those
    that blocks have tried in vain come last, since the tries might go on.
    """
    if pooled.failed:
        return float(pooled.failed)
    return -math.inf if pooled.place < 0 else -_fee_rate(pooled.transaction)


def _fee_rate(transaction: AnyTransaction) -> float:
    """Return wavelets per signed byte; 0 for a fee in an asset, whose value is unknown."""
    if transaction.fee_asset_id is not None:
        return 0.0
    return transaction.fee / len(transaction.body)
