"""The units of coverage of a RIDE source: its lines and branches.

A line counts if an expression other than a constant begins on it. The arms of an ``if`` and the
cases of a ``match`` count as branches. Code that the compiler adds (checks of strict values, the
steps of a fold) does not count.

What lives here: finding the units of a script with its source map, and which of them a run has
reached. What does not: observing runs (``coverage``).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from soliton.ride.expressions import CONSTANTS, Block, BoolConst, Expression, If
from soliton.ride.numbering import Numbering, numbered
from soliton.ride.script import Script
from soliton.ride.source_map import SourceMap, TextRange

LINE: Final = "line"
BRANCH: Final = "branch"
_IF: Final = "if"
_CASE: Final = "case"


class Seen(msgspec.Struct):
    """The expressions of a script that runs have entered, by number, and the values of boolean
    ones.
    """

    entered: set[int] = msgspec.field(default_factory=set)
    values: set[tuple[int, bool]] = msgspec.field(default_factory=set)


class Unit(msgspec.Struct, frozen=True, order=True):
    """A line or one arm of a branch, with its position and text."""

    file: str
    line: int
    column: int
    kind: str
    text: str


def units(script: Script, text: SourceMap, seen: Seen) -> Iterator[tuple[Unit, bool]]:
    """The units of a script, each with whether it was reached. The file of a unit is the name of an
    imported library, or empty.
    """
    found = _Finder(numbered(script.content), text, seen)
    yield from found.lines()
    yield from found.branches()


class _Finder:
    def __init__(self, numbering: Numbering, text: SourceMap, seen: Seen) -> None:
        self._numbering, self._text, self._seen = numbering, text, seen
        self._nodes = numbering.expressions
        self._whole = (0, len(text.text))

    def lines(self) -> Iterator[tuple[Unit, bool]]:
        reached: dict[tuple[str, int], tuple[TextRange, bool]] = {}
        for number, node in enumerate(self._nodes):
            # The expression at the end of a block counts instead.
            if isinstance(node, (*CONSTANTS, Block)) or self._text.span(number) == self._whole:
                continue
            place = self._text.range_of(number)
            key = place.file, place.line
            known, before = reached.get(key, (place, False))
            first = min(known, place, key=lambda each: each.column)
            reached[key] = first, before or number in self._seen.entered
        for place, is_reached in reached.values():
            yield Unit(place.file, place.line, place.column, LINE, place.text), is_reached

    def branches(self) -> Iterator[tuple[Unit, bool]]:
        hidden = self._conditions_of_cases()
        for number, node in enumerate(self._nodes):
            if not isinstance(node, If) or number in hidden:
                continue
            condition = self._number(node.condition)
            if isinstance(node.condition, CONSTANTS):
                continue
            for value in (True, False):
                if self._is_written(number, node, value):
                    unit = self._arm(number, node, value)
                    yield unit, (condition, value) in self._seen.values

    def _arm(self, number: int, node: If, value: bool) -> Unit:
        whole = self._text.range_of(number)
        place = self._place_of(node.then if value else node.otherwise, number)
        if value and self._begins(number, _CASE):
            place, text = whole, whole.text
        elif place is not None:
            text = f"{'then' if value else 'else'} {place.text}"
        else:
            place, text = whole, f"{'then' if value else 'else'} of {whole.text}"
        return Unit(place.file, place.line, place.column, BRANCH, text)

    def _is_written(self, number: int, node: If, value: bool) -> bool:
        """Whether an arm is in the source, rather than added by the compiler."""
        if self._begins(number, _IF):
            return True
        arm, other = (node.then, node.otherwise)[:: 1 if value else -1]
        if not self._begins(number, _CASE):
            # The right side of "&&" and "||", but not the code of strict values and folds.
            return isinstance(other, BoolConst) and other.value is not value
        # Each case and the default case, but not the following case, nor the compiler's error.
        if value or isinstance(arm, BoolConst):
            return True
        inner = self._number(arm)
        is_own = self._text.span(inner) != self._text.span(number)
        return is_own and not (isinstance(arm, If) and self._begins(inner, _CASE))

    def _begins(self, number: int, word: str) -> bool:
        text, start = self._text.text, self._text.span(number)[0]
        # A name may begin with the word.
        following = text[start + len(word) : start + len(word) + 1]
        return text.startswith(word, start) and not (following.isalnum() or following == "_")

    def _conditions_of_cases(self) -> set[int]:
        """The conditionals that the compiler adds to test whether a case matches."""
        found: set[int] = set()
        for number, node in enumerate(self._nodes):
            if not isinstance(node, If):
                continue
            span = self._text.span(number)
            if not self._begins(number, _CASE):
                continue
            stack = [node.condition]
            while stack:
                each = stack.pop()
                if isinstance(each, If):
                    inner = self._number(each)
                    if self._text.span(inner) == span:
                        found.add(inner)
                    stack += (each.condition, each.then, each.otherwise)
        return found

    def _place_of(self, arm: Expression, number: int) -> TextRange | None:
        """The place of an arm, after declarations that the compiler adds; ``None`` if unknown."""
        while not isinstance(arm, BoolConst):
            inner = self._number(arm)
            if self._text.span(inner) != self._text.span(number):
                return self._text.range_of(inner)
            if not isinstance(arm, Block):
                return None
            arm = arm.body
        # Boolean constants are shared objects without a position.
        return None

    def _number(self, node: Expression) -> int:
        number = self._numbering.of(node)
        assert number is not None, "the node belongs to this tree"
        return number
