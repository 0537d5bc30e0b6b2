"""What of a RIDE source can be covered by a run: its lines, and the arms of its branches.

A line counts where an expression begins on it that is more than a constant. The arms of an ``if``
count, and the cases of a ``match``; what the compiler adds (checks of strict values, the steps of a
fold) does not.

What lives here: finding them in a script with the map of its source, and which of them a run has
reached. What does not: watching runs (``coverage``).
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
    """What runs of one script have shown: the numbers of expressions that were entered, and with
    their numbers those that were yes or no.
    """

    entered: set[int] = msgspec.field(default_factory=set)
    said: set[tuple[int, bool]] = msgspec.field(default_factory=set)


class Unit(msgspec.Struct, frozen=True, order=True):
    """A line, or one arm of a branch: where it stands in a ``file``, and the text there."""

    file: str
    line: int
    column: int
    kind: str
    words: str


def units(script: Script, text: SourceMap, seen: Seen) -> Iterator[tuple[Unit, bool]]:
    """All of a script, each with whether it was reached. The file of a unit is the name of an
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
            # A block is what it ends with.
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
            for answer in (True, False):
                if self._is_written(number, node, answer):
                    unit = self._arm(number, node, answer)
                    yield unit, (condition, answer) in self._seen.said

    def _arm(self, number: int, node: If, answer: bool) -> Unit:
        whole = self._text.range_of(number)
        place = self._place_of(node.then if answer else node.otherwise, number)
        if answer and self._begins(number, _CASE):
            place, words = whole, whole.text
        elif place is not None:
            words = f"{'then' if answer else 'else'} {place.text}"
        else:
            place, words = whole, f"{'then' if answer else 'else'} of {whole.text}"
        return Unit(place.file, place.line, place.column, BRANCH, words)

    def _is_written(self, number: int, node: If, answer: bool) -> bool:
        """Whether somebody wrote an arm, rather than the compiler."""
        if self._begins(number, _IF):
            return True
        arm, other = (node.then, node.otherwise)[:: 1 if answer else -1]
        if not self._begins(number, _CASE):
            # Of "and" and "or" the right side; not what strict values and folds are made of.
            return isinstance(other, BoolConst) and other.value is not answer
        # Each case, and the last one that asks nothing; not the next one, nor the compiler's
        # refusal.
        if answer or isinstance(arm, BoolConst):
            return True
        inner = self._number(arm)
        is_own = self._text.span(inner) != self._text.span(number)
        return is_own and not (isinstance(arm, If) and self._begins(inner, _CASE))

    def _begins(self, number: int, word: str) -> bool:
        text, start = self._text.text, self._text.span(number)[0]
        # Names may begin so, too.
        behind = text[start + len(word) : start + len(word) + 1]
        return text.startswith(word, start) and not (behind.isalnum() or behind == "_")

    def _conditions_of_cases(self) -> set[int]:
        """The choices by which the compiler asks whether a case fits."""
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
        """Where an arm stands; of one that begins with what the compiler declares, what follows."""
        while not isinstance(arm, BoolConst):
            inner = self._number(arm)
            if self._text.span(inner) != self._text.span(number):
                return self._text.range_of(inner)
            if not isinstance(arm, Block):
                return None
            arm = arm.body
        # All that are yes are one and the same, and so are all that are no.
        return None

    def _number(self, node: Expression) -> int:
        number = self._numbering.of(node)
        assert number is not None, "it is of this tree"
        return number
