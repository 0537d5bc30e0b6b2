"""Changes of a key-value store that are not on the disk yet.

Millions of them may wait for a slow or full disk while anybody asks for trades or for an order's
transactions. So the keys that are read together are in groups, and a reader goes through those of
its own group only, from where it starts.

What lives here: such changes, and merging them with the rows on the disk. What does not: writing
(``key_values``).
"""

from __future__ import annotations

import heapq
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence

Changes = dict[bytes, bytes | None]
"""New values by key; ``None`` for a deleted key."""
GroupOf = Callable[[bytes], bytes | None]
"""The group of a key; ``None`` for a key that is only read alone."""
Rows = Iterator[tuple[bytes, bytes | None]]


class _Group:
    """Keys, sorted at the first reading after a change that was not at the end."""

    __slots__ = ("_is_sorted", "_keys")

    def __init__(self) -> None:
        self._keys: list[bytes] = []
        self._is_sorted = True

    def add(self, key: bytes) -> None:
        """Add a key that is not there."""
        if self._keys and key < self._keys[-1]:
            self._is_sorted = False
        self._keys.append(key)

    def sorted(self) -> list[bytes]:
        """All keys in order."""
        if not self._is_sorted:
            self._keys.sort()
            self._is_sorted = True
        return self._keys


class Unwritten:
    """Changes by key, and their keys by group."""

    __slots__ = ("_group_of", "_groups", "values")

    def __init__(self, group_of: GroupOf) -> None:
        self.values: Changes = {}
        self._groups: dict[bytes, _Group] = {}
        self._group_of = group_of

    def __len__(self) -> int:
        return len(self.values)

    def __setitem__(self, key: bytes, value: bytes | None) -> None:
        if key not in self.values:
            name = self._group_of(key)
            if name is not None:
                group = self._groups.get(name)
                if group is None:
                    group = self._groups[name] = _Group()
                group.add(key)
        self.values[key] = value

    def add(self, later: Unwritten) -> None:
        """Add later changes, which replace these."""
        for key, value in later.values.items():
            self[key] = value

    def clear(self) -> None:
        """Forget all changes."""
        self.values.clear()
        self._groups.clear()

    def rows(self, group: bytes, start: bytes, *, backwards: bool = False) -> Rows:
        """The changes of a group in order of the keys from ``start`` on, or backwards from the
        last. To be read before there are further changes.
        """
        found = self._groups.get(group)
        if found is None:
            return
        keys = found.sorted()
        first = bisect_left(keys, start)
        places = range(len(keys) - 1, first - 1, -1) if backwards else range(first, len(keys))
        for place in places:
            yield keys[place], self.values[keys[place]]


def merged(layers: Sequence[Rows], *, backwards: bool) -> Iterator[tuple[bytes, bytes]]:
    """The rows of all layers in order of the keys. Of several values of a key the first layer's
    counts; ``None`` stands for no row.
    """
    count = len(layers)
    ranked = [
        _ranked(rows, count - number if backwards else number) for number, rows in enumerate(layers)
    ]
    last: bytes | None = None
    for key, _, value in heapq.merge(*ranked, key=_order, reverse=backwards):
        if key != last and value is not None:
            yield key, value
        last = key


_Ranked = tuple[bytes, int, bytes | None]


def _ranked(rows: Rows, rank: int) -> Iterator[_Ranked]:
    for key, value in rows:
        yield key, rank, value


def _order(row: _Ranked) -> tuple[bytes, int]:
    return row[0], row[1]
