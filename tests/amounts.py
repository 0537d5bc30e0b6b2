"""How much a test repeats: a little with ``make test``, at length with ``make test-all``.

What lives here: the switch, what tests take their numbers from, and the mark of tests that run with
``make test-all`` only: a second variant of what another test shows, or a long fault run whose short
form stays.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable
from typing import Final, TypeVar

import pytest

Item = TypeVar("Item")
Number = TypeVar("Number", int, float)

LONG: Final = os.environ.get("SOLITON_TESTS") == "long"
only_long = pytest.mark.skipif(not LONG, reason="a long run: `make test-all` has it")
EXAMPLES: Final = 200 if LONG else 30
"""Examples of a property that asks for no other number."""
_SHARE: Final = 5
_FEWEST: Final = 20


def times(short: Number, long: Number) -> Number:
    """The first of these numbers with ``make test``, the second with ``make test-all``."""
    return long if LONG else short


def examples(long: int) -> int:
    """As many examples of a property, or a share of them."""
    return long if LONG else max(long // _SHARE, min(long, _FEWEST))


def some(items: Iterable[Item], share: int = _SHARE) -> Collection[Item]:
    """All of them, or one of so many from the beginning to the end."""
    found = list(items)
    return found if LONG else found[::share]


def if_long(*values: object) -> object:
    """A case of a parametrised test that runs with ``make test-all`` only."""
    return pytest.param(*values, marks=only_long)
