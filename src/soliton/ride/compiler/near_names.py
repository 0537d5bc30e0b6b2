"""Suggestions for misspelt names.

What lives here: the search for a similar name. What does not: the known names, and the error
(``checker``).

The product of the limits bounds the time of a search.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import islice
from typing import Final

from soliton.ride.compiler.library import UTILITY_PREFIX

MAX_NAME_CHARS: Final = 32
"""Longer names get no suggestion; the library has none."""
MAX_COMPARED: Final = 1_000
"""The number of names that are compared, those of the library first."""
_CHARS_PER_TYPO: Final = 4
"""One wrong character is allowed per this many."""


def similar(name: str, known: Iterable[str]) -> str:
    """Return the advice to use the most similar name, or an empty string."""
    if len(name) > MAX_NAME_CHARS:
        return ""
    best, nearest = max(1, len(name) // _CHARS_PER_TYPO) + 1, ""
    letters = Counter(name)
    for each in islice(known, MAX_COMPARED):
        if abs(len(each) - len(name)) >= best or each.startswith(UTILITY_PREFIX):
            continue
        # A typo replaces at most one letter.
        if (letters - Counter(each)).total() >= best:
            continue
        distance = _distance(name, each)
        if distance < best:
            best, nearest = distance, each
    return f"did you mean {nearest}?" if nearest else ""


def _distance(one: str, other: str) -> int:
    """Return the number of replacements, insertions, deletions and swaps of neighbours."""
    above: list[int] = []
    row = list(range(len(other) + 1))
    for index, char in enumerate(one, 1):
        last, above, row = above, row, [index]
        for column, candidate in enumerate(other, 1):
            least = min(above[column], row[-1], above[column - 1] - (char == candidate)) + 1
            if last and char == other[column - 2] and candidate == one[index - 2] and column > 1:
                least = min(least, last[column - 2] + 1)
            row.append(least)
    return row[-1]
