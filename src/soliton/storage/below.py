"""The base layer of a store: records of a chain whose first blocks the store does not hold itself.

Records of the store take precedence; a record that it lacks, or has removed, is read from the base
layer, which never changes.

What lives here: the protocol, and merged scans of both layers. What does not: the source of the
base layer (``soliton.devnet.fork``).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Protocol

from soliton.storage import layout

Items = Iterator[tuple[bytes, bytes]]

_BY_HEIGHT: Final = frozenset(
    (layout.ADDRESS_TRANSACTION, layout.HISTORY, layout.ADDRESS_ALIAS, layout.ADDRESS_LEASE)
)
"""Kinds of records whose keys end in a height: those of the store come after all of the base."""


class Below(Protocol):
    """Immutable, thread-safe records of a chain up to some height.

    Raises ``BelowProblem`` and ``NotBelow``.
    """

    def get(self, key: bytes, /) -> bytes | None:
        """Return the value of a key."""

    def scan(self, prefix: bytes, start: bytes, /) -> Items:
        """Yield the keys and values of a prefix in ascending order, from ``start`` on."""

    def scan_back(self, prefix: bytes, before: bytes, /) -> Items:
        """The same in descending order, below ``prefix + before``, or from the last one."""


def scan_both(own: Items, below: Items) -> Items:
    """Merge records in key order; the store's record wins over one with the same key."""
    return _merged(own, below, falling=False)


def scan_both_back(prefix: bytes, own: Items, below: Items) -> Items:
    """The same in descending order; the base layer is read only when it is needed."""
    if prefix[:1] in _BY_HEIGHT:
        yield from own
        yield from below
        return
    yield from _merged(own, below, falling=True)


def _merged(own: Items, below: Items, *, falling: bool) -> Items:
    mine, other = next(own, None), next(below, None)
    while mine is not None and other is not None:
        if mine[0] == other[0]:
            other = next(below, None)
        elif (mine[0] < other[0]) is not falling:
            yield mine
            mine = next(own, None)
        else:
            yield other
            other = next(below, None)
    if mine is not None:
        yield mine
        yield from own
    if other is not None:
        yield other
        yield from below
