"""The state with the pool applied, and the dependencies of each transaction.

Each transaction of the pool has a place, and was applied to the state that the chain and the
transactions before it make. Each entry of the state records its readers, with the values they read,
and its writers. When the chain changes an entry, or a transaction changes or leaves, exactly the
readers that would now read another value have to be rechecked.

Balances are not overwritten but added to, and rules only require a balance to suffice. A reader is
therefore not rechecked when a balance has grown. Scripts may read the exact amount, and so does a
transaction that has failed.

What lives here: entries with their readers and writers. What does not: transactions (``pool``).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator
from itertools import accumulate
from typing import Any, Final, TypeVar

from soliton.ledger.state import ASSET_BALANCES, WAVES, Changes, Overlay, State, Table

K = TypeVar("K")
V = TypeVar("V")

MAX_CACHED: Final = 200_000
"""Cached values of the chain's state; a full pool needs fewer."""
MAX_SAFE_BALANCE: Final = 1 << 62
"""Above it, a larger balance may fail, since sums have to fit into 64 bits."""

CHAIN: Final = -(1 << 62)
"""The place of the chain: before all transactions."""
_ABSENT: Final = object()
_BALANCES: Final = frozenset((WAVES, ASSET_BALANCES))

Stored = Any
"""A key or a value of the state; its type depends on the table."""
_EMPTY: Final[list[Stored]] = []
_NOTHING: Final[dict[int, Stored]] = {}
"""Shared empty containers, which are replaced on the first write."""
Name = tuple[Table[Stored, Stored], Stored]
"""A table, and a key in it."""


class ReadCache:
    """A cache of the chain's state: a value stays valid until a block changes it."""

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
        if self._count > MAX_CACHED:
            self.forget()
        else:
            values[key] = value
        return value

    def update(self, changes: Changes) -> None:
        """Apply what a block has written."""
        for table, written in changes.items():
            values = self._values.get(table, {})
            for key in written.keys() & values.keys():
                values[key] = written[key]

    def forget(self) -> None:
        """Drop all values."""
        self._values.clear()
        self._count = 0

    def transaction_height(self, transaction_id: bytes) -> int | None:
        return self._state.transaction_height(transaction_id)


class Entry:
    """An entry of the state: its readers and writers by their places."""

    __slots__ = ("_late", "base", "key", "places", "table")

    def __init__(self, table: Table[Stored, Stored], key: Stored, base: Stored) -> None:
        self.table = table
        self.key = key
        self.base = base
        self.places: list[Stored] = _EMPTY
        # Readers since changes that are not processed yet.
        self._late: list[Stored] = _EMPTY

    def _add_late_reader(self, place: int) -> None:
        if self._late:
            self._late.append(place)
        else:
            self._late = [place]


class Value(Entry):
    """An entry that is overwritten."""

    __slots__ = ("_before", "_values", "readers")

    def __init__(self, table: Table[Stored, Stored], key: Stored, base: Stored) -> None:
        super().__init__(table, key, base)
        self.readers: dict[int, Stored] = {}
        self._values: list[Stored] = _EMPTY
        # The values before the unprocessed changes, by place.
        self._before: dict[int, Stored] = _NOTHING

    def before(self, place: int) -> Stored:
        """Return what a transaction at this place reads."""
        index = bisect_left(self.places, place)
        return self._values[index - 1] if index else self.base

    def latest(self) -> Stored:
        """Return the value with the whole pool applied."""
        return self._values[-1] if self._values else self.base

    def write(self, place: int, _seen: Stored, value: Stored, *, last: bool) -> None:
        """Record what a transaction writes; there are none after the ``last``."""
        if not self.places:
            self.places, self._values = [], []
        index = bisect_left(self.places, place)
        self.places.insert(index, place)
        self._values.insert(index, value)
        if not last:
            self._record(place, _ABSENT, value)

    def leave(self, place: int) -> None:
        """Remove a transaction's reads and writes."""
        self.readers.pop(place, None)
        index = bisect_left(self.places, place)
        if index < len(self.places) and self.places[index] == place:
            del self.places[index]
            self._record(place, self._values.pop(index), _ABSENT)

    def rebase(self, value: Stored) -> None:
        """Set the chain's value."""
        old, self.base = self.base, value
        self._record(CHAIN, old, value)

    def _record(self, place: int, old: Stored, new: Stored) -> None:
        if not self._before:
            self._before = {}
        first = self._before.setdefault(place, old)
        if first is new or first == new:
            del self._before[place]

    def read(self, place: int, seen: Stored, *, exactly: bool) -> None:  # noqa: ARG002
        """Record what a transaction has read."""
        self.readers[place] = seen
        if self._before:
            self._add_late_reader(place)

    def step(self, place: int) -> tuple[Stored, Stored] | None:
        """Return the values before and after a transaction, ``None`` if it wrote nothing."""
        index = bisect_left(self.places, place)
        if index == len(self.places) or self.places[index] != place:
            return None
        return self.before(place), self._values[index]

    def is_unused(self) -> bool:
        """Whether nobody reads or writes it."""
        return not self.readers and not self.places

    def stale_readers(self) -> list[int]:
        """Process the changes: return the places of readers that would now read another value."""
        places = dict.fromkeys(place for place in self._late if place in self.readers)
        if self._before:
            first = min(self._before)
            places |= dict.fromkeys(place for place in self.readers if place > first)
        self._before, self._late = _NOTHING, _EMPTY
        return [place for place in places if self._differs(self.readers[place], self.before(place))]

    @staticmethod
    def _differs(one: Stored, other: Stored) -> bool:
        return one is not other and bool(one != other)


class Balance(Entry):
    """An entry that is added to."""

    __slots__ = ("_shifts", "_steps", "at_least", "exactly", "total")

    def __init__(self, table: Table[Stored, Stored], key: Stored, base: int) -> None:
        super().__init__(table, key, base)
        self.at_least: dict[int, int] = {}
        self.exactly: dict[int, int] = _NOTHING
        self.total = 0
        self._steps: list[int] = _EMPTY
        # The unprocessed changes by place.
        self._shifts: dict[int, int] = _NOTHING

    def before(self, place: int) -> int:
        """Return what a transaction at this place reads."""
        base: int = self.base
        index, steps = bisect_left(self.places, place), self._steps
        if index > len(steps) // 2:
            return base + self.total - sum(steps[index:])
        return base + sum(steps[:index])

    def latest(self) -> int:
        """Return the balance with the whole pool applied."""
        base: int = self.base
        return base + self.total

    def write(self, place: int, seen: int, value: int, *, last: bool) -> None:
        """Record the balance that a transaction leaves after reading ``seen``."""
        step = value - seen
        if not self.places:
            self.places, self._steps = [], []
        index = bisect_left(self.places, place)
        self.places.insert(index, place)
        self._steps.insert(index, step)
        self.total += step
        if not last:
            self._record(place, step)

    def leave(self, place: int) -> None:
        """Remove a transaction's reads and writes."""
        if self.at_least.pop(place, None) is None:
            self.exactly.pop(place, None)
        index = bisect_left(self.places, place)
        if index < len(self.places) and self.places[index] == place:
            del self.places[index]
            step = self._steps.pop(index)
            self.total -= step
            self._record(place, -step)

    def rebase(self, value: int) -> None:
        """Set the chain's value."""
        self._record(CHAIN, value - self.base)
        self.base = value

    def _record(self, place: int, step: int) -> None:
        if not self._shifts:
            self._shifts = {}
        self._shifts[place] = self._shifts.get(place, 0) + step

    def read(self, place: int, seen: int, *, exactly: bool) -> None:
        """Record what a transaction has read, and whether it depends on the exact amount."""
        if exactly and not self.exactly:
            self.exactly = {}
        (self.exactly if exactly else self.at_least)[place] = seen
        if self._shifts:
            self._add_late_reader(place)

    def step(self, place: int) -> tuple[int, int] | None:
        """Return 0 and the change of a transaction: summing up the balance before takes long."""
        index = bisect_left(self.places, place)
        if index == len(self.places) or self.places[index] != place:
            return None
        return 0, self._steps[index]

    def is_unused(self) -> bool:
        """Whether nobody reads or writes it."""
        return not (self.at_least or self.exactly or self.places)

    def stale_readers(self) -> list[int]:
        """Process the changes: return the places of readers for which the balance no longer
        suffices, or is no longer the exact one.
        """
        shifts = sorted(item for item in self._shifts.items() if item[1])
        late = [place for place in self._late if self._is_stale(place, self.before(place))]
        self._shifts, self._late = _NOTHING, _EMPTY
        checks_amounts = bool(self.at_least) and not self._only_grows(shifts)
        if not shifts or not (checks_amounts or self.exactly):
            return late
        balances = list(accumulate(self._steps, initial=self.base))
        readers = [*self.exactly, *(self.at_least if checks_amounts else ())]
        return late + [
            place
            for place in readers
            if self._is_stale(place, balances[bisect_left(self.places, place)])
        ]

    def _is_stale(self, place: int, balance: int) -> bool:
        """Whether a reader's result may differ with this balance."""
        seen = self.at_least.get(place)
        if seen is None:
            return self.exactly.get(place, balance) != balance
        return balance < seen or (balance > MAX_SAFE_BALANCE and balance != seen)

    def _only_grows(self, shifts: list[tuple[int, int]]) -> bool:
        """Whether no reader would read less than before."""
        if not shifts:
            return True
        if max(self.base, self.latest()) > MAX_SAFE_BALANCE:
            return False
        first, last = min(self.at_least), max(self.at_least)
        shift = 0
        ends = [place for place, _ in shifts[1:]]
        for (place, step), end in zip(shifts, [*ends, last], strict=True):
            shift += step
            # Readers between this place and the next one read so much more.
            if shift < 0 and place < last and end >= first:
                return False
        return True


class ReadRecorder(Overlay):
    """The state that a transaction is applied to; records what it reads."""

    __slots__ = ("_own", "_place", "_pool", "asked_blocks", "asked_chain", "exact", "reads")

    def __init__(self, waiting: PoolState, place: int | None, own: bytes) -> None:
        """``place`` is ``None`` after all others; ``own`` is the transaction's id."""
        super().__init__(waiting.chain)
        self._pool = waiting
        self._place = place
        self._own = own
        self.reads: dict[Name, Stored] = {}
        self.exact: set[Name] = set()
        self.asked_blocks = False
        self.asked_chain = False

    def get(self, table: Table[K, V], key: K) -> V:
        name = table, key
        known = self.reads.get(name, _ABSENT)
        if known is _ABSENT:
            known = self.reads[name] = self._pool.before(table, key, self._place)
        value: V = known
        return value

    def is_current(self) -> bool:
        """Whether all that was read is still the same."""
        return not self.asked_chain and all(
            seen is now or bool(seen == now)
            for (table, key), seen in self.reads.items()
            for now in (self._pool.before(table, key, self._place),)
        )

    def count_written(self, table: Table[Stored, Stored]) -> int:
        self.asked_chain = True
        return sum(1 for _ in self._pool.written(table, self._place))

    def written(self, table: Table[K, V]) -> Iterator[K]:
        self.asked_chain = True
        return self._pool.written(table, self._place)

    def transaction_height(self, transaction_id: bytes) -> int | None:
        if transaction_id == self._own:
            return self._pool.chain.transaction_height(transaction_id)
        self.asked_chain = True
        return self._pool.latest.transaction_height(transaction_id)

    # --- as the witness of a context --------------------------------------------------------------

    def of_balance(self, table: Table[Stored, Stored], key: Stored) -> None:
        """Record that a script reads an exact balance."""
        self.exact.add((table, key))

    def of_blocks(self) -> None:
        """Record that a script reads the height or a block."""
        self.asked_blocks = True

    def of_chain(self) -> None:
        """Record that a script reads other data of the chain."""
        self.asked_chain = True


class PoolState:
    """All entries of the state that transactions of the pool read or write."""

    __slots__ = ("_entries", "_stale", "_touched", "chain", "latest")

    def __init__(self, chain: State) -> None:
        self.chain = ReadCache(chain)
        self.latest = Overlay(self.chain)
        self._entries: dict[Table[Stored, Stored], dict[Stored, Value | Balance]] = {}
        self._touched: dict[Value | Balance, None] = {}
        self._stale: list[Value | Balance] = []

    def before(self, table: Table[Stored, Stored], key: Stored, place: int | None) -> Stored:
        """Return what a transaction at a place reads."""
        if place is None:
            return self.latest.get(table, key)
        entry = self._entries.get(table, {}).get(key)
        return self.chain.get(table, key) if entry is None else entry.before(place)

    def written(self, table: Table[K, V], place: int | None) -> Iterator[K]:
        """Yield the keys that transactions before a place have written."""
        for key in self.latest.changes.get(table, ()):
            if place is None or self._entries[table][key].places[0] < place:
                yield key

    def find(self, changes: Changes) -> None:
        """Read from the chain the values that are about to be overwritten."""
        for table, written in changes.items():
            for key in written:
                self.chain.get(table, key)

    # --- transactions -----------------------------------------------------------------------------

    def attach(
        self,
        place: int,
        recorder: ReadRecorder,
        changes: Changes,
        *,
        exactly: bool,
        only_receive: Collection[Name] = (),
        last: bool,
    ) -> tuple[Value | Balance, ...]:
        """Record what a transaction has read and written, and return the entries.

        With ``exactly`` it depends on exact balances; it does not depend on those in
        ``only_receive``. There are no transactions after the ``last``.
        """
        entries: dict[Value | Balance, None] = {}
        for name, seen in recorder.reads.items():
            if name in only_receive and name not in recorder.exact:
                continue
            entry = self._entry(*name)
            entry.read(place, seen, exactly=exactly or name in recorder.exact)
            entries[entry] = None
        for table, written in changes.items():
            latest = self.latest.changes.setdefault(table, {})
            for key, value in written.items():
                entry = self._entry(table, key)
                entry.write(place, self._seen(recorder, entry, place), value, last=last)
                latest[key] = entry.latest()
                entries[entry] = None
                if not last:
                    self._touched[entry] = None
        return tuple(entries)

    def _seen(self, recorder: ReadRecorder, entry: Value | Balance, place: int) -> Stored:
        if isinstance(entry, Value):
            return None
        seen = recorder.reads.get((entry.table, entry.key))
        return entry.before(place) if seen is None else seen

    def _entry(self, table: Table[Stored, Stored], key: Stored) -> Value | Balance:
        entries = self._entries.setdefault(table, {})
        entry = entries.get(key)
        if entry is None:
            kind = Balance if table in _BALANCES else Value
            entry = entries[key] = kind(table, key, self.chain.get(table, key))
        return entry

    def detach(self, gone: Iterable[tuple[int, Collection[Value | Balance]]]) -> None:
        """Remove the reads and writes of transactions, given as places with their entries."""
        changed: set[Value | Balance] = set()
        for place, entries in gone:
            for entry in entries:
                entry.leave(place)
            changed.update(entries)
        for entry in changed:
            if entry.is_unused():
                self._entries[entry.table].pop(entry.key, None)
                self._touched.pop(entry, None)
            else:
                self._touched[entry] = None
            self._update_latest(entry)

    def _update_latest(self, entry: Value | Balance) -> None:
        """Update the value of an entry in ``latest``."""
        shown = self.latest.changes.get(entry.table, {})
        if entry.places:
            shown[entry.key] = entry.latest()
        else:
            shown.pop(entry.key, None)

    # --- the chain changes ------------------------------------------------------------------------

    def rebase(self, changes: Changes | None) -> None:
        """Apply changes of the chain, ``None`` if they are unknown."""
        if changes is None:
            self.chain.forget()
            self._stale = [each for some in self._entries.values() for each in some.values()]
            return
        self.chain.update(changes)
        for table, written in changes.items():
            entries = self._entries.get(table, {})
            for key in written.keys() & entries.keys():
                entry = entries[key]
                entry.rebase(written[key])
                self._touched[entry] = None
                self._update_latest(entry)

    def next_stale(self) -> list[int] | None:
        """Process a changed entry: return the places of readers to recheck, ``None`` when there are
        no more changed entries.
        """
        if self._stale:
            entry = self._stale.pop()
            # It may have been removed, and added again.
            if self._entries[entry.table].get(entry.key) is entry:
                entry.rebase(self.chain.get(entry.table, entry.key))
                self._touched[entry] = None
                self._update_latest(entry)
            return []
        if not self._touched:
            return None
        entry, _ = self._touched.popitem()
        return entry.stale_readers()

    @property
    def is_settled(self) -> bool:
        """Whether there are no changed entries."""
        return not self._stale and not self._touched
