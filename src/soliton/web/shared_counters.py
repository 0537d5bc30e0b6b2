"""What several processes count together, in memory that they share: what each client takes, and how
often things happened.

Each process has a slot that only it writes; what there is of something is the sum over all slots.
So nothing is locked, nothing is lost, and what a process that ended had open can be struck out. The
times of clients are the exception: all processes write them. Two that change the same one at the
same moment make it forget the smaller part, the cost of one request.

Clients are kept by a hash of their name, keyed with random bytes, and not by the name: the memory
has one size whoever comes, and nobody can choose with whom to share a cell.

What lives here: the memory and its layout. What does not: what the numbers mean and who is refused
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
"""Two clients share a cell with a probability of one to this."""
NUMBERS: Final = 2_048
"""Plain numbers that a process counts."""
LONG, IDLE, CONNECTIONS = range(3)
"""What clients have at a time: long answers, answers that wait, connections."""

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
    """How many of one kind there are in all processes, and how many a client has of them."""

    __slots__ = ("_counters", "_own", "_slots")

    def __init__(self, counters: SharedCounters, slots: list[memoryview], own: memoryview) -> None:
        self._counters = counters
        self._slots = slots
        self._own = own

    def total(self) -> int:
        """All of them."""
        return sum(slot[CLIENT_CELLS] for slot in self._slots)

    def of(self, client: str) -> int:
        """Those of a client."""
        cell = self._counters.cell(client)
        return sum(slot[cell] for slot in self._slots)

    def add(self, client: str | None, count: int = 1) -> None:
        """Count one, or with -1 one less; ``None`` is nobody in particular."""
        self._own[CLIENT_CELLS] += count
        if client is not None:
            self._own[self._counters.cell(client)] += count


class SharedCounters:
    """The counts of one process and, where there are others, theirs.

    ``times`` has a number of seconds for each client, at ``cell``; ``own`` are the plain numbers
    of this process.
    """

    def __init__(self, memory: mmap.mmap | None = None, *, slots: int = 1, slot: int = 0) -> None:
        """Without ``memory`` nobody shares them."""
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
        """What clients have of a kind."""
        slots = [kinds[kind] for kinds in self._counts]
        return ClientCounts(self, slots, slots[self._slot])

    def sum(self, number: int) -> int:
        """A plain number, over all processes."""
        return sum(numbers[number] for numbers in self._numbers)

    def sums(self, end: int) -> list[int]:
        """The plain numbers below ``end``, over all processes."""
        return [
            sum(each) for each in zip(*(numbers[:end] for numbers in self._numbers), strict=True)
        ]

    def reset_slot(self, slot: int, gauges: Iterable[int]) -> None:
        """Strike out what a process had open that has ended, and the numbers of what it had only
        for as long as it lived. What it counted stays.
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
    """Begin to count in a new file, as the process with slot 0."""
    with path.open("xb") as file:
        file.write(secrets.token_bytes(_KEY_BYTES))
        file.truncate(_size(slots))
    return join(path, slots, 0)


def join(path: Path, slots: int, slot: int) -> SharedCounters:
    """Count along in a file that another process has begun."""
    with path.open("r+b") as file:
        return SharedCounters(mmap.mmap(file.fileno(), _size(slots)), slots=slots, slot=slot)
