"""Counters in shared memory for several processes: usage of each client, and counts of events.

Each process has a slot that only it writes; a value is the sum over all slots. So no locks are
needed, no update is lost, and what a process had open when it ended can be reset. Whoever has a
limit counts first and compares then: two processes cannot both take the last place. The times of
clients are the exception: all processes write them. When two change the same one at the same
moment, one update is lost, the cost of one request.

Clients are stored by a keyed hash of their name with a random key: the memory has a fixed size, and
nobody can choose a collision.

What lives here: the memory and its layout. What does not: the meaning of the numbers, and limits
(``soliton.api``, the server).
"""

from __future__ import annotations

import hashlib
import mmap
import secrets
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Final

CLIENT_CELLS: Final = 1 << 16
"""Two clients collide with a probability of one to this."""
NUMBERS: Final = 9_216
"""Plain counters of a process; most are those of routes (``traffic``)."""
LONG, IDLE, CONNECTIONS = range(3)
"""Kinds of counts of clients: long answers, waiting answers, connections."""

_KINDS: Final = 3
_KEY_BYTES: Final = 16
_HEAD_BYTES: Final = 64
_TIME_BYTES: Final = 8
_COUNT_BYTES: Final = 4
_TIMES_END: Final = _HEAD_BYTES + CLIENT_CELLS * _TIME_BYTES
_NUMBERS_BYTES: Final = NUMBERS * 8
_COUNTS_BYTES: Final = (CLIENT_CELLS + 2) * _COUNT_BYTES
_SLOT_BYTES: Final = _NUMBERS_BYTES + _KINDS * _COUNTS_BYTES


class ClientCounts:
    """The counts of one kind, in total and by client, over all processes."""

    __slots__ = ("_counters", "_own", "_slots")

    def __init__(self, counters: SharedCounters, slots: list[memoryview], own: memoryview) -> None:
        self._counters = counters
        self._slots = slots
        self._own = own

    def total(self) -> int:
        """Return the total."""
        return sum(slot[CLIENT_CELLS] for slot in self._slots)

    def of(self, client: str) -> int:
        """Return a client's count."""
        cell = self._counters.cell(client)
        return sum(slot[cell] for slot in self._slots)

    def add(self, client: str | None, count: int = 1) -> None:
        """Add to the total and, unless it is ``None``, to the client's count."""
        self._own[CLIENT_CELLS] += count
        if client is not None:
            self._own[self._counters.cell(client)] += count


class SharedCounters:
    """The counters of one process, and of others that share the memory.

    ``times`` has a number of seconds for each client, at ``cell``; ``own`` are the plain counters
    of this process.
    """

    def __init__(self, memory: mmap.mmap | None = None, *, slots: int = 1, slot: int = 0) -> None:
        """Without ``memory`` they are private."""
        if memory is None:
            memory = mmap.mmap(-1, _size(slots))
            memory[:_KEY_BYTES] = secrets.token_bytes(_KEY_BYTES)
        view = memoryview(memory)
        key = bytes(view[:_KEY_BYTES])

        @lru_cache(maxsize=4_096)
        def cell(client: str) -> int:
            digest = hashlib.blake2b(client.encode(), digest_size=8, key=key).digest()
            return int.from_bytes(digest, "big") % CLIENT_CELLS

        self.cell = cell
        self.times = view[_HEAD_BYTES:_TIMES_END].cast("d")
        starts = range(_TIMES_END, _size(slots), _SLOT_BYTES)
        self._numbers = [view[at : at + _NUMBERS_BYTES].cast("q") for at in starts]
        self.own = self._numbers[slot]
        self._counts = [
            [view[at : at + _COUNTS_BYTES].cast("i") for at in _places(start)] for start in starts
        ]
        self._slot = slot

    def counts(self, kind: int) -> ClientCounts:
        """Return the counts of a kind."""
        slots = [kinds[kind] for kinds in self._counts]
        return ClientCounts(self, slots, slots[self._slot])

    def sum(self, number: int) -> int:
        """Return a plain counter, over all processes."""
        return sum(numbers[number] for numbers in self._numbers)

    def sums(self, end: int) -> list[int]:
        """Return the plain counters below ``end``, over all processes."""
        return [
            sum(each) for each in zip(*(numbers[:end] for numbers in self._numbers), strict=True)
        ]

    def reset_slot(self, slot: int, gauges: Iterable[int]) -> None:
        """Reset the counts of clients and the ``gauges`` of a process that has ended. Its plain
        counters stay.
        """
        for number in gauges:
            self._numbers[slot][number] = 0
        for cells in self._counts[slot]:
            cells.cast("B")[:] = bytes(_COUNTS_BYTES)


def _size(slots: int) -> int:
    return _TIMES_END + slots * _SLOT_BYTES


def _places(slot_start: int) -> Iterator[int]:
    first = slot_start + _NUMBERS_BYTES
    return iter(range(first, slot_start + _SLOT_BYTES, _COUNTS_BYTES))


def share(path: Path, slots: int) -> SharedCounters:
    """Create the shared file, as the process with slot 0."""
    with path.open("xb") as file:
        file.write(secrets.token_bytes(_KEY_BYTES))
        file.truncate(_size(slots))
    return join(path, slots, 0)


def join(path: Path, slots: int, slot: int) -> SharedCounters:
    """Open a shared file that another process has created."""
    with path.open("r+b") as file:
        return SharedCounters(mmap.mmap(file.fileno(), _size(slots)), slots=slots, slot=slot)
