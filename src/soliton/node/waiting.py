"""A transaction that waits in the pool: its place, what it moves, and how it is looked at.

What lives here: the record of one transaction, what can be said of it alone, and a queue of places.
What does not: the pool (``pool``), the state that all of them make (``waiting_state``).
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterable
from typing import Final

from soliton.chain.addresses import from_public_key
from soliton.chain.transactions.model import AnyTransaction
from soliton.ledger.rules import rules_of
from soliton.ledger.scripts import account_script
from soliton.ledger.state import ASSET_BALANCES, WAVES, Changes, State
from soliton.ledger.transactions import Applied
from soliton.node.accounts import accounts_of_pending
from soliton.node.events import Moved
from soliton.node.waiting_state import Balance, Name, Value
from soliton.ride.estimators.machine import WATCHED_STEPS, EstimationTooLong

_NOTHING_MOVED: Final = Moved((), (), ())


class Waiting:
    """A transaction of the pool: its place, what it moves and rests on, and how it was checked."""

    __slots__ = (
        "entries",
        "issued",
        "moved",
        "place",
        "scripted",
        "transaction",
        "unproven",
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
        self.moved = _NOTHING_MOVED
        self.entries: tuple[Value | Balance, ...] = ()


class Places:
    """Places to be looked at: those without scripts first, otherwise in their order."""

    __slots__ = ("_heap", "_places")

    def __init__(self) -> None:
        self._heap: list[tuple[bool, int]] = []
        self._places: set[int] = set()

    def __bool__(self) -> bool:
        return bool(self._places)

    def add(self, place: int, *, scripted: bool) -> None:
        """One more, unless it is there."""
        if place not in self._places:
            self._places.add(place)
            heapq.heappush(self._heap, (scripted, place))

    def discard(self, place: int) -> None:
        """Look at it no more."""
        self._places.discard(place)

    def next(self) -> int | None:
        """The next place, which is taken out."""
        while self._heap:
            _, place = heapq.heappop(self._heap)
            if place in self._places:
                self._places.remove(place)
                return place
        return None


class Patience:
    """Ends the estimation of a script that takes too long for a transaction without a block."""

    __slots__ = ("_left", "_steps")

    def __init__(self, steps: int) -> None:
        self._steps = steps
        self._left = steps // WATCHED_STEPS

    def __call__(self) -> None:
        self._left -= 1
        if self._left < 0:
            raise EstimationTooLong(f"Script estimation takes more than {self._steps} steps")


class Times:
    """Until when they are valid: by the time of the last block, and by the clock."""

    __slots__ = ("_ends", "_old")

    def __init__(self, waiting: Iterable[Waiting] = ()) -> None:
        self._old: list[tuple[int, int]] = []
        self._ends: list[tuple[int, int]] = []
        for each in waiting:
            self.add(each)

    def __len__(self) -> int:
        return len(self._old)

    def add(self, waiting: Waiting) -> None:
        """One more; nobody takes one out."""
        transaction, place = waiting.transaction, waiting.place
        heapq.heappush(self._old, (transaction.timestamp, place))
        ends = rules_of(transaction.type_id).pool.ends(transaction)
        if ends is not None:
            heapq.heappush(self._ends, (ends, place))

    def over(self, oldest: int, now: int) -> list[int]:
        """The places of those that are older, or whose orders have ended by now: told once."""
        places = []
        for times, least in ((self._old, oldest), (self._ends, now)):
            while times and times[0][0] < least:
                places.append(heapq.heappop(times)[1])
        return places


def has_script(transaction: AnyTransaction, public_key: bytes, state: State) -> bool:
    """Whether an account has a script that says, in place of a signature, who signed."""
    if not public_key:
        return False
    address = from_public_key(public_key, transaction.chain_id)
    return account_script(address, state) is not None


def asks_others(transaction: AnyTransaction, state: State) -> bool:
    """Whether that is so of somebody else who signs, such as the account behind an order."""
    signers = rules_of(transaction.type_id).pool.signers(transaction)
    return any(has_script(transaction, key, state) for key in signers)


def only_receive(transaction: AnyTransaction, changes: Changes) -> Collection[Name]:
    """The balances that a transfer adds to: how much there was before is nothing to it."""
    if transaction.fee_asset_id is not None or not rules_of(transaction.type_id).pool.only_adds:
        return ()
    sender = from_public_key(transaction.sender_public_key, transaction.chain_id)
    names: set[Name] = {(WAVES, owner) for owner in changes.get(WAVES, ()) if owner != sender}
    for key in changes.get(ASSET_BALANCES, ()):
        if key[0] != sender:
            names.add((ASSET_BALANCES, key))
    return names


def runs_scripts(transaction: AnyTransaction, sent_by_script: bool) -> bool:
    """Whether it counts as one that does: calls of dApps, and all that scripted accounts send but
    exchanges.
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


def joined(one: Moved, other: Moved) -> Moved:
    if one == other:
        return one
    return Moved(
        tuple(dict.fromkeys(one.waves + other.waves)),
        tuple(dict.fromkeys(one.assets + other.assets)),
        tuple(dict.fromkeys(one.accounts + other.accounts)),
    )


def fee_rate(transaction: AnyTransaction) -> float:
    """Wavelets per signed byte; a fee in an asset counts last: its worth is not known here."""
    if transaction.fee_asset_id is not None:
        return 0.0
    return transaction.fee / len(transaction.body)
