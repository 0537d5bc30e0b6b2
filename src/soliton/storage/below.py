"""What a store may stand on: the records of a chain whose first blocks it does not hold itself.

A store that stands on something finds there what it has not written. What it has written comes
first; what it takes back shows again what is below, which never changes.

What lives here: the protocol, and lists that are made of both. What does not: where such records
come from (``soliton.devnet.fork``).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Protocol

from soliton.storage import layout

Items = Iterator[tuple[bytes, bytes]]

_BY_HEIGHT: Final = frozenset(
    (layout.ADDRESS_TRANSACTION, layout.HISTORY, layout.ADDRESS_ALIAS, layout.ADDRESS_LEASE)
)
"""Of these kinds of records what the store has written is behind all that is below."""


class Below(Protocol):
    """Records of a chain up to some height; they are always the same, and any thread may ask.

    Raises ``BelowProblem`` and ``NotBelow``.
    """

    def get(self, key: bytes, /) -> bytes | None:
        """The value of a key."""

    def scan(self, prefix: bytes, start: bytes, /) -> Items:
        """Keys and values under a prefix, in key order, from ``start`` on."""

    def scan_back(self, prefix: bytes, before: bytes, /) -> Items:
        """The same in falling key order, from below ``prefix + before`` on, or from the last."""


def scan_both(own: Items, below: Items) -> Items:
    """Records in key order; of two with the same key that of the store."""
    return _merged(own, below, falling=False)


def scan_both_back(prefix: bytes, own: Items, below: Items) -> Items:
    """The same in falling key order; what is below is asked only when it is needed."""
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
