"""The state that waiting transactions make, and what each of them rests on.

Each waiting transaction has a place, and was applied to the state that those before it make above
the chain. For each entry of the state it is kept who has read it, and what, and who has written it.
So when the chain changes an entry, or one that waits changes or goes, it is known who else has to
be looked at again: those who would read something else now, and nobody else.

Balances are not overwritten but added to, and rules ask of a balance only that it suffices. Who has
read one is therefore not looked at again when there is more of it than before. Scripts may ask for
the very amount; so may a transaction that has failed.

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

MAX_REMEMBERED: Final = 200_000
"""Values of the chain's state that are kept at hand; a full pool needs fewer."""
MAX_SAFE_BALANCE: Final = 1 << 62
"""Above it, more is not always as good: sums have to fit into 64 bits."""

CHAIN: Final = -(1 << 62)
"""The place of what the chain holds: before all that wait."""
_ABSENT: Final = object()
_BALANCES: Final = frozenset((WAVES, ASSET_BALANCES))

Stored = Any
"""A key or a value of the state: its table knows of which type."""
_EMPTY: Final[list[Stored]] = []
_NOTHING: Final[dict[int, Stored]] = {}
"""What most entries have of most things: whoever puts something in takes a container of its own."""
Name = tuple[Table[Stored, Stored], Stored]
"""A table, and a key in it."""


class Remembered:
    """The chain's state, of which each value is read once: it stays so until a block changes it."""

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
            self.forget()
        else:
            values[key] = value
        return value

    def learn(self, changes: Changes) -> None:
        """Take over what a block has written."""
        for table, written in changes.items():
            values = self._values.get(table, {})
            for key in written.keys() & values.keys():
                values[key] = written[key]

    def forget(self) -> None:
        """Read everything again."""
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
        # Those who have read it after changes at which nobody has looked yet.
        self._late: list[Stored] = _EMPTY

    def _come_late(self, place: int) -> None:
        if self._late:
            self._late.append(place)
        else:
            self._late = [place]


class Value(Entry):
    """One that is overwritten."""

    __slots__ = ("_before", "_values", "readers")

    def __init__(self, table: Table[Stored, Stored], key: Stored, base: Stored) -> None:
        super().__init__(table, key, base)
        self.readers: dict[int, Stored] = {}
        self._values: list[Stored] = _EMPTY
        # What those that have changed since the last look wrote then.
        self._before: dict[int, Stored] = _NOTHING

    def before(self, place: int) -> Stored:
        """What a transaction at this place reads."""
        index = bisect_left(self.places, place)
        return self._values[index - 1] if index else self.base

    def latest(self) -> Stored:
        """What the last one has written."""
        return self._values[-1] if self._values else self.base

    def write(self, place: int, _seen: Stored, value: Stored, *, last: bool) -> None:
        """Note what a transaction writes; nobody is behind the ``last``."""
        if not self.places:
            self.places, self._values = [], []
        index = bisect_left(self.places, place)
        self.places.insert(index, place)
        self._values.insert(index, value)
        if not last:
            self._note(place, _ABSENT, value)

    def leave(self, place: int) -> None:
        """Forget what a transaction has read and wrote here, if it did."""
        self.readers.pop(place, None)
        index = bisect_left(self.places, place)
        if index < len(self.places) and self.places[index] == place:
            del self.places[index]
            self._note(place, self._values.pop(index), _ABSENT)

    def rebase(self, value: Stored) -> None:
        """Note what the chain holds now."""
        old, self.base = self.base, value
        self._note(CHAIN, old, value)

    def _note(self, place: int, old: Stored, new: Stored) -> None:
        if not self._before:
            self._before = {}
        first = self._before.setdefault(place, old)
        if first is new or first == new:
            del self._before[place]

    def read(self, place: int, seen: Stored, *, exactly: bool) -> None:  # noqa: ARG002
        """Note what a transaction has read."""
        self.readers[place] = seen
        if self._before:
            self._come_late(place)

    def step(self, place: int) -> tuple[Stored, Stored] | None:
        """What a transaction found and left here, ``None`` if it wrote nothing."""
        index = bisect_left(self.places, place)
        if index == len(self.places) or self.places[index] != place:
            return None
        return self.before(place), self._values[index]

    def is_unused(self) -> bool:
        """Whether nobody reads or writes it."""
        return not self.readers and not self.places

    def misled(self) -> list[int]:
        """The places of those who would read something else now, since the last look."""
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
    """One that is added to."""

    __slots__ = ("_shifts", "_steps", "at_least", "exactly", "total")

    def __init__(self, table: Table[Stored, Stored], key: Stored, base: int) -> None:
        super().__init__(table, key, base)
        self.at_least: dict[int, int] = {}
        self.exactly: dict[int, int] = _NOTHING
        self.total = 0
        self._steps: list[int] = _EMPTY
        # By how much it has changed at which places since the last look.
        self._shifts: dict[int, int] = _NOTHING

    def before(self, place: int) -> int:
        """What a transaction at this place reads."""
        base: int = self.base
        index, steps = bisect_left(self.places, place), self._steps
        if index > len(steps) // 2:
            return base + self.total - sum(steps[index:])
        return base + sum(steps[:index])

    def latest(self) -> int:
        """What all leave."""
        base: int = self.base
        return base + self.total

    def write(self, place: int, seen: int, value: int, *, last: bool) -> None:
        """Note what a transaction that has seen a balance leaves."""
        step = value - seen
        if not self.places:
            self.places, self._steps = [], []
        index = bisect_left(self.places, place)
        self.places.insert(index, place)
        self._steps.insert(index, step)
        self.total += step
        if not last:
            self._note(place, step)

    def leave(self, place: int) -> None:
        """Forget what a transaction has read and added here, if it did."""
        if self.at_least.pop(place, None) is None:
            self.exactly.pop(place, None)
        index = bisect_left(self.places, place)
        if index < len(self.places) and self.places[index] == place:
            del self.places[index]
            step = self._steps.pop(index)
            self.total -= step
            self._note(place, -step)

    def rebase(self, value: int) -> None:
        """Note what the chain holds now."""
        self._note(CHAIN, value - self.base)
        self.base = value

    def _note(self, place: int, step: int) -> None:
        if not self._shifts:
            self._shifts = {}
        self._shifts[place] = self._shifts.get(place, 0) + step

    def read(self, place: int, seen: int, *, exactly: bool) -> None:
        """Note what a transaction has read, and whether it was for the very amount."""
        if exactly and not self.exactly:
            self.exactly = {}
        (self.exactly if exactly else self.at_least)[place] = seen
        if self._shifts:
            self._come_late(place)

    def step(self, place: int) -> tuple[int, int] | None:
        """As of a value, as if there had been nothing before: to sum that up takes long."""
        index = bisect_left(self.places, place)
        if index == len(self.places) or self.places[index] != place:
            return None
        return 0, self._steps[index]

    def is_unused(self) -> bool:
        """Whether nobody reads or writes it."""
        return not (self.at_least or self.exactly or self.places)

    def misled(self) -> list[int]:
        """The places of those for whom it is not enough any more, or not the same, since the last
        look.
        """
        shifts = sorted(item for item in self._shifts.items() if item[1])
        late = [place for place in self._late if self._is_misled(place, self.before(place))]
        self._shifts, self._late = _NOTHING, _EMPTY
        checks_amounts = bool(self.at_least) and not self._only_grows(shifts)
        if not shifts or not (checks_amounts or self.exactly):
            return late
        balances = list(accumulate(self._steps, initial=self.base))
        readers = [*self.exactly, *(self.at_least if checks_amounts else ())]
        return late + [
            place
            for place in readers
            if self._is_misled(place, balances[bisect_left(self.places, place)])
        ]

    def _is_misled(self, place: int, balance: int) -> bool:
        """Whether a reader would do something else with this balance."""
        seen = self.at_least.get(place)
        if seen is None:
            return self.exactly.get(place, balance) != balance
        return balance < seen or (balance > MAX_SAFE_BALANCE and balance != seen)

    def _only_grows(self, shifts: list[tuple[int, int]]) -> bool:
        """Whether no reader finds less than before."""
        if not shifts:
            return True
        if max(self.base, self.latest()) > MAX_SAFE_BALANCE:
            return False
        first, last = min(self.at_least), max(self.at_least)
        shift = 0
        ends = [place for place, _ in shifts[1:]]
        for (place, step), end in zip(shifts, [*ends, last], strict=True):
            shift += step
            # Some of the readers between this place and the next one find as much more.
            if shift < 0 and place < last and end >= first:
                return False
        return True


class Reading(Overlay):
    """The state before a transaction: whoever applies it reads here, and it is noted what."""

    __slots__ = ("_own", "_place", "_waiting", "asked_blocks", "asked_chain", "exact", "reads")

    def __init__(self, waiting: WaitingState, place: int | None, own: bytes) -> None:
        """``place`` is ``None`` behind all others; ``own`` is the transaction's id."""
        super().__init__(waiting.chain)
        self._waiting = waiting
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
            known = self.reads[name] = self._waiting.before(table, key, self._place)
        value: V = known
        return value

    def count_written(self, table: Table[Stored, Stored]) -> int:
        self.asked_chain = True
        return sum(1 for _ in self._waiting.written(table, self._place))

    def written(self, table: Table[K, V]) -> Iterator[K]:
        self.asked_chain = True
        return self._waiting.written(table, self._place)

    def transaction_height(self, transaction_id: bytes) -> int | None:
        if transaction_id == self._own:
            return self._waiting.chain.transaction_height(transaction_id)
        self.asked_chain = True
        return self._waiting.latest.transaction_height(transaction_id)

    # --- as the witness of a context --------------------------------------------------------------

    def of_balance(self, table: Table[Stored, Stored], key: Stored) -> None:
        """A script asks for the very amount."""
        self.exact.add((table, key))

    def of_blocks(self) -> None:
        """A script asks for the height or for a block."""
        self.asked_blocks = True

    def of_chain(self) -> None:
        """A script asks for something else that the chain holds."""
        self.asked_chain = True


class WaitingState:
    """All entries of the state that waiting transactions read or write."""

    __slots__ = ("_entries", "_stale", "_touched", "chain", "latest")

    def __init__(self, chain: State) -> None:
        self.chain = Remembered(chain)
        self.latest = Overlay(self.chain)
        self._entries: dict[Table[Stored, Stored], dict[Stored, Value | Balance]] = {}
        self._touched: dict[Value | Balance, None] = {}
        self._stale: list[Value | Balance] = []

    def before(self, table: Table[Stored, Stored], key: Stored, place: int | None) -> Stored:
        """What a transaction at a place reads."""
        if place is None:
            return self.latest.get(table, key)
        entry = self._entries.get(table, {}).get(key)
        return self.chain.get(table, key) if entry is None else entry.before(place)

    def written(self, table: Table[K, V], place: int | None) -> Iterator[K]:
        """The keys that those before a place have written."""
        for key in self.latest.changes.get(table, ()):
            if place is None or self._entries[table][key].places[0] < place:
                yield key

    def find(self, changes: Changes) -> None:
        """Read from the chain what is about to be overwritten."""
        for table, written in changes.items():
            for key in written:
                self.chain.get(table, key)

    # --- who comes and goes -----------------------------------------------------------------------

    def attach(
        self,
        place: int,
        reading: Reading,
        changes: Changes,
        *,
        exactly: bool,
        only_receive: Collection[Name] = (),
        last: bool,
    ) -> tuple[Value | Balance, ...]:
        """Note what a transaction has read and written: the entries.

        With ``exactly`` it would do something else for any other balance. Who ``only_receive`` may
        have any. Nobody is behind the ``last``.
        """
        entries: dict[Value | Balance, None] = {}
        for name, seen in reading.reads.items():
            if name in only_receive and name not in reading.exact:
                continue
            entry = self._entry(*name)
            entry.read(place, seen, exactly=exactly or name in reading.exact)
            entries[entry] = None
        for table, written in changes.items():
            latest = self.latest.changes.setdefault(table, {})
            for key, value in written.items():
                entry = self._entry(table, key)
                entry.write(place, self._seen(reading, entry, place), value, last=last)
                latest[key] = entry.latest()
                entries[entry] = None
                if not last:
                    self._touched[entry] = None
        return tuple(entries)

    def _seen(self, reading: Reading, entry: Value | Balance, place: int) -> Stored:
        if isinstance(entry, Value):
            return None
        seen = reading.reads.get((entry.table, entry.key))
        return entry.before(place) if seen is None else seen

    def _entry(self, table: Table[Stored, Stored], key: Stored) -> Value | Balance:
        entries = self._entries.setdefault(table, {})
        entry = entries.get(key)
        if entry is None:
            kind = Balance if table in _BALANCES else Value
            entry = entries[key] = kind(table, key, self.chain.get(table, key))
        return entry

    def detach(self, gone: Iterable[tuple[int, Collection[Value | Balance]]]) -> None:
        """Forget what transactions have read and written: their places, and entries."""
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
            self._show(entry)

    def _show(self, entry: Value | Balance) -> None:
        """What is seen of an entry when all that wait are applied."""
        shown = self.latest.changes.get(entry.table, {})
        if entry.places:
            shown[entry.key] = entry.latest()
        else:
            shown.pop(entry.key, None)

    # --- the chain changes ------------------------------------------------------------------------

    def rebase(self, changes: Changes | None) -> None:
        """Follow what the chain has changed, ``None`` when that is not known."""
        if changes is None:
            self.chain.forget()
            self._stale = [each for some in self._entries.values() for each in some.values()]
            return
        self.chain.learn(changes)
        for table, written in changes.items():
            entries = self._entries.get(table, {})
            for key in written.keys() & entries.keys():
                entry = entries[key]
                entry.rebase(written[key])
                self._touched[entry] = None
                self._show(entry)

    def look(self) -> list[int] | None:
        """Look at some entries that have changed: the places of those who read something else now,
        ``None`` when there is nothing to look at.
        """
        if self._stale:
            entry = self._stale.pop()
            # It may have gone meanwhile, and come back.
            if self._entries[entry.table].get(entry.key) is entry:
                entry.rebase(self.chain.get(entry.table, entry.key))
                self._touched[entry] = None
                self._show(entry)
            return []
        if not self._touched:
            return None
        entry, _ = self._touched.popitem()
        return entry.misled()

    @property
    def is_settled(self) -> bool:
        """Whether there is nothing to look at."""
        return not self._stale and not self._touched
