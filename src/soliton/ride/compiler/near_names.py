"""Which known name somebody may have meant.

What lives here: the search for a name that differs little. What does not: where the names come from
and what is said then (``checker``).

How long the search takes is bounded by the product of its limits, whatever names a source has.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import islice
from typing import Final

from soliton.ride.compiler.library import UTILITY_PREFIX

MAX_NAME_CHARS: Final = 32
"""Nobody mistypes a longer name than the library has."""
MAX_COMPARED: Final = 1_000
"""Names that are looked at: those of the library come first."""
_CHARS_FOR_A_FAULT: Final = 4
"""One character of so many may be wrong."""


def similar(name: str, known: Iterable[str]) -> str:
    """The advice to take the nearest name, if one is near."""
    if len(name) > MAX_NAME_CHARS:
        return ""
    best, nearest = max(1, len(name) // _CHARS_FOR_A_FAULT) + 1, ""
    letters = Counter(name)
    for each in islice(known, MAX_COMPARED):
        if abs(len(each) - len(name)) >= best or each.startswith(UTILITY_PREFIX):
            continue
        # A wrong character takes one of these and brings another.
        if (letters - Counter(each)).total() >= best:
            continue
        distance = _distance(name, each)
        if distance < best:
            best, nearest = distance, each
    return f"did you mean {nearest}?" if nearest else ""


def _distance(one: str, other: str) -> int:
    """How many characters have to be changed, put in, left out, or swapped with their neighbour."""
    above: list[int] = []
    row = list(range(len(other) + 1))
    for place, char in enumerate(one, 1):
        last, above, row = above, row, [place]
        for column, candidate in enumerate(other, 1):
            least = min(above[column], row[-1], above[column - 1] - (char == candidate)) + 1
            if last and char == other[column - 2] and candidate == one[place - 2] and column > 1:
                least = min(least, last[column - 2] + 1)
            row.append(least)
    return row[-1]
