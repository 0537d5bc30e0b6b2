r"""Regular expressions for data keys, matched in linear time for any pattern.

The reference uses Java's regular expressions, whose matcher, like Python's, may need exponential
time. Here a pattern becomes a nondeterministic automaton, and all of its states are followed at
once. Supported are characters, ``.``, classes, ``\d \w \s`` and their complements, groups, ``|``,
quantifiers (lazy ones are the same for whole matches), ``^`` and ``$``. Back references,
look-around, flags and possessive quantifiers are rejected.

What lives here: parsing and matching. What does not: the keys.

Source of the syntax: ``java.util.regex.Pattern``; of the use: wavesplatform/Waves
``node/src/main/scala/com/wavesplatform/api/common/CommonAccountsApi.scala``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from soliton.errors import InputError

MAX_PATTERN_CHARS: Final = 1_000
MAX_STATES: Final = 500
MAX_REPETITIONS: Final = 1_000
MAX_GROUP_DEPTH: Final = 50
MAX_CACHED_CHARACTERS: Final = 1_000
_STATE_BYTES: Final = (MAX_STATES + 7) // 8

Predicate = Callable[[str], bool]
# Given the state after it, a part adds its own states and returns the first of them.
Part = Callable[[int], int]

_LINE_ENDS: Final = "\n\r\u0085\u2028\u2029"
_CLASSES: Final[dict[str, frozenset[str]]] = {
    "d": frozenset("0123456789"),
    "w": frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789"),
    "s": frozenset(" \t\n\x0b\f\r"),
}
_CONTROLS: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_ANYWHERE, _START, _END = range(3)


class PatternError(InputError):
    """A pattern that is malformed, too long, or not supported."""


class _Literal(str):
    """The predicate of one character."""

    __slots__ = ()

    def __call__(self, found: str) -> bool:
        return self == found


class KeyPattern:
    """A pattern that a whole key has to match. All keys that match begin with ``prefix``; with
    ``is_literal`` it is the only one that does.

    The set of current states is a bit mask. A lazily filled table maps each of its bytes to the
    following states, so a character takes one step for each byte of the mask.
    """

    __slots__ = (
        "_accepting",
        "_edges",
        "_ends",
        "_next",
        "_predicates",
        "_start",
        "_states_of",
        "_taking",
        "is_literal",
        "prefix",
    )

    def __init__(self, text: str) -> None:
        """Raises ``PatternError``."""
        self._predicates: list[Predicate | None] = []
        self._edges: list[list[tuple[int, int]]] = []
        self._accepting = self._add()
        self._start = _Parser(text, self).parse()(self._accepting)
        # The states of a repeated part share one predicate, which is evaluated once.
        self._states_of: dict[Predicate, int] = {}
        for state, predicate in enumerate(self._predicates):
            if predicate is not None:
                self._states_of[predicate] = self._states_of.get(predicate, 0) | 1 << state
        # For the index of a byte of the mask and its value: the following states.
        self._next: dict[tuple[int, int], int] = {}
        # For a character: the states that accept it.
        self._taking: dict[str, int] = {}
        # For a state: whether the key may end after its character.
        self._ends: dict[int, bool] = {}
        self.prefix, self.is_literal = self._literal_prefix()

    def _literal_prefix(self) -> tuple[str, bool]:
        """The characters that every match begins with, and whether there are no others."""
        characters: list[str] = []
        first: set[int] = {self._start}
        places: tuple[int, ...] = (_START,)
        while True:
            states, ending = set[int](), set[int]()
            for state in first:
                states |= self._closure(state, *places)
                ending |= self._closure(state, *places, _END)
            taking = [each for each in states if self._predicates[each] is not None]
            next_ones = {self._predicates[each] for each in taking}
            may_end = self._accepting in ending
            literal = next_ones.pop() if len(next_ones) == 1 else None
            if may_end or not isinstance(literal, _Literal) or len(characters) >= MAX_PATTERN_CHARS:
                return "".join(characters), may_end and not taking
            characters.append(literal)
            first = {self._edges[each][0][1] for each in taking}
            places = ()

    def matches(self, key: str) -> bool:
        """Whether the whole key matches."""
        if not key:
            return self._accepting in self._closure(self._start, _START, _END)
        states, taken = self._bits(self._closure(self._start, _START)), 0
        last = len(key) - 1
        for place, character in enumerate(key):
            taken = states & self._takers(character)
            if not taken:
                return False
            if place < last:
                states = self._after(taken)
        return any(self._may_end(state) for state in _set_bits(taken))

    def _takers(self, character: str) -> int:
        found = self._taking.get(character)
        if found is None:
            found = 0
            for predicate, states in self._states_of.items():
                if predicate(character):
                    found |= states
            if len(self._taking) >= MAX_CACHED_CHARACTERS:
                self._taking.clear()
            self._taking[character] = found
        return found

    def _after(self, taken: int) -> int:
        states = 0
        for place, byte in enumerate(taken.to_bytes(_STATE_BYTES, "little")):
            if byte:
                known = self._next.get((place, byte))
                states |= self._of_byte(place, byte) if known is None else known
        return states

    def _of_byte(self, place: int, byte: int) -> int:
        """The states that follow those of one byte of the mask."""
        states = 0
        for bit in _set_bits(byte):
            alone = (place, 1 << bit)
            if alone not in self._next:
                target = self._edges[8 * place + bit][0][1]
                self._next[alone] = self._bits(self._closure(target))
            states |= self._next[alone]
        self._next[place, byte] = states
        return states

    def _may_end(self, state: int) -> bool:
        known = self._ends.get(state)
        if known is None:
            after = self._closure(self._edges[state][0][1], _END)
            known = self._ends[state] = self._accepting in after
        return known

    def _bits(self, states: Iterable[int]) -> int:
        """A mask of those states that consume a character."""
        found = 0
        for state in states:
            if self._predicates[state] is not None:
                found |= 1 << state
        return found

    def _closure(self, first: int, *places: int) -> set[int]:
        """The states reachable without a character, under the conditions that hold (``places``)."""
        states, pending = {first}, [first]
        while pending:
            state = pending.pop()
            if self._predicates[state] is not None:
                continue
            for condition, target in self._edges[state]:
                if (condition == _ANYWHERE or condition in places) and target not in states:
                    states.add(target)
                    pending.append(target)
        return states

    def _add(self, predicate: Predicate | None = None, *edges: tuple[int, int]) -> int:
        if len(self._edges) >= MAX_STATES:
            raise PatternError(f"the pattern needs more than {MAX_STATES} states")
        self._predicates.append(predicate)
        self._edges.append(list(edges))
        return len(self._edges) - 1

    def one(self, predicate: Predicate) -> Part:
        """One character."""
        return lambda after: self._add(predicate, (_ANYWHERE, after))

    def place(self, condition: int) -> Part:
        """No character, but a condition: the key's start or end."""
        return lambda after: self._add(None, (condition, after))

    def either(self, options: list[Part]) -> Part:
        """One of several parts."""
        if len(options) == 1:
            return options[0]
        return lambda after: self._add(None, *((_ANYWHERE, part(after)) for part in options))

    def repeated(self, part: Part, least: int, most: int | None) -> Part:
        """A part, repeated ``least`` to ``most`` times."""

        def build(after: int) -> int:
            if most is None:
                state = self._add()
                self._edges[state] += [(_ANYWHERE, part(state)), (_ANYWHERE, after)]
                after = state
            for _ in range((most or least) - least):
                after = self._add(None, (_ANYWHERE, part(after)), (_ANYWHERE, after))
            for _ in range(least):
                after = part(after)
            return after

        return build


def _set_bits(number: int) -> Iterator[int]:
    while number:
        lowest = number & -number
        yield lowest.bit_length() - 1
        number ^= lowest


def _in_order(parts: list[Part]) -> Part:
    def build(after: int) -> int:
        for part in reversed(parts):
            after = part(after)
        return after

    return build


class _Parser:
    """Recursive descent over the text of a pattern."""

    def __init__(self, text: str, machine: KeyPattern) -> None:
        if len(text) > MAX_PATTERN_CHARS:
            raise PatternError(f"the pattern is longer than {MAX_PATTERN_CHARS} characters")
        self._text = text
        self._at = 0
        self._depth = 0
        self._machine = machine

    def parse(self) -> Part:
        part = self._alternatives()
        if self._at < len(self._text):
            raise PatternError(f"unmatched ')' at {self._at}")
        return part

    def _peek(self) -> str:
        return self._text[self._at : self._at + 1]

    def _take(self) -> str:
        character = self._peek()
        if not character:
            raise PatternError("the pattern ends too early")
        self._at += 1
        return character

    def _skip(self, expected: str) -> bool:
        found = self._text.startswith(expected, self._at)
        self._at += len(expected) if found else 0
        return found

    def _alternatives(self) -> Part:
        options = [self._sequence()]
        while self._skip("|"):
            options.append(self._sequence())
        return self._machine.either(options)

    def _sequence(self) -> Part:
        parts = []
        while self._peek() not in ("", "|", ")"):
            parts.append(self._quantified(self._atom()))
        return _in_order(parts)

    def _atom(self) -> Part:
        character = self._take()
        match character:
            case "(":
                return self._group()
            case "[":
                return self._machine.one(self._class())
            case ".":
                return self._machine.one(lambda found: found not in _LINE_ENDS)
            case "^":
                return self._machine.place(_START)
            case "$":
                return self._machine.place(_END)
            case "\\":
                return self._machine.one(self._escape())
            case "*" | "+" | "?" | "{":
                raise PatternError(f"nothing to repeat at {self._at - 1}")
            case _:
                return self._machine.one(_Literal(character))

    def _group(self) -> Part:
        self._depth += 1
        if self._depth > MAX_GROUP_DEPTH:
            raise PatternError(f"groups are nested deeper than {MAX_GROUP_DEPTH}")
        if not self._skip("?:") and self._peek() == "?":
            raise PatternError(f"this kind of group is not supported, at {self._at}")
        part = self._alternatives()
        if not self._skip(")"):
            raise PatternError("a group is not closed")
        self._depth -= 1
        return part

    def _quantified(self, part: Part) -> Part:
        least, most = self._quantifier()
        if (least, most) == (1, 1):
            return part
        if self._peek() == "+":
            raise PatternError(f"possessive quantifiers are not supported, at {self._at}")
        self._skip("?")
        if self._peek() in ("*", "+", "?", "{") and self._peek():
            raise PatternError(f"two quantifiers at {self._at}")
        return self._machine.repeated(part, least, most)

    def _quantifier(self) -> tuple[int, int | None]:
        for sign, bounds in (("*", (0, None)), ("+", (1, None)), ("?", (0, 1))):
            if self._skip(sign):
                return bounds
        if not self._skip("{"):
            return 1, 1
        least = self._number()
        most: int | None = least
        if self._skip(","):
            most = None if self._peek() == "}" else self._number()
        if not self._skip("}") or (most is not None and most < least):
            raise PatternError(f"malformed repetition at {self._at}")
        return least, most

    def _number(self) -> int:
        start = self._at
        while self._peek() in _CLASSES["d"]:
            self._at += 1
        digits = self._text[start : self._at]
        if not digits or len(digits) > len(str(MAX_REPETITIONS)) or int(digits) > MAX_REPETITIONS:
            raise PatternError(f"a repetition is a number up to {MAX_REPETITIONS}, at {start}")
        return int(digits)

    def _escape(self) -> Predicate:
        character = self._take()
        known = _CLASSES.get(character.lower())
        if known is not None:
            opposite = character.isupper()
            return lambda found: (found in known) is not opposite
        return _Literal(self._escaped(character))

    def _escaped(self, character: str) -> str:
        if character in _CONTROLS:
            return _CONTROLS[character]
        if character.isalnum():
            raise PatternError(f"\\{character} is not supported")
        return character

    def _class(self) -> Predicate:
        opposite = self._skip("^")
        members: list[Predicate] = []
        while not self._skip("]") or not members:
            members.append(self._member())
        return lambda found: any(member(found) for member in members) is not opposite

    def _member(self) -> Predicate:
        first = self._take()
        if first == "[" or self._text.startswith("&&", self._at - 1):
            raise PatternError(f"classes within classes are not supported, at {self._at - 1}")
        if first == "\\":
            escaped = self._peek()
            if escaped.lower() in _CLASSES:
                return self._escape()
            first = self._escaped(self._take())
        if self._peek() != "-" or self._text[self._at + 1 : self._at + 2] in ("]", ""):
            return first.__eq__
        self._at += 1
        last = self._take()
        if last == "\\":
            last = self._escaped(self._take())
        if last < first:
            raise PatternError(f"the range {first}-{last} is empty")
        return lambda found: first <= found <= last
