"""Patterns in rules, for texts and for arguments of functions.

What lives here: the patterns and their limits. What does not: the policy file (``policy_file``).

A star matches any characters. Each piece between stars is searched for once, from the left, so
matching takes time linear in the text, whatever the pattern.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from soliton.chain.function_calls import Argument
from soliton.chain.json_kinds import BASE64_PREFIX, encode_base64

STAR: Final = "*"
MAX_PATTERN_CHARACTERS: Final = 256
MAX_STARS: Final = 8


class BadPattern(ValueError):
    """The pattern is invalid; the message says what is expected."""


class TextPattern(msgspec.Struct, frozen=True):
    """Pieces of text with anything between them; one piece is the whole text."""

    pieces: tuple[str, ...]

    def fits(self, text: str) -> bool:
        """Whether a text matches."""
        first, *middle = self.pieces
        if not middle:
            return text == first
        last = middle.pop()
        end = len(text) - len(last)
        if not text.startswith(first) or not text.endswith(last) or end < len(first):
            return False
        at = len(first)
        for piece in middle:
            found = text.find(piece, at, end)
            if found < 0:
                return False
            at = found + len(piece)
        return True


def text_pattern(value: object) -> TextPattern:
    """Parse a pattern; raises ``BadPattern``."""
    if not isinstance(value, str):
        raise BadPattern("a text, in which * stands for any characters")
    if len(value) > MAX_PATTERN_CHARACTERS or value.count(STAR) > MAX_STARS:
        raise BadPattern(f"at most {MAX_PATTERN_CHARACTERS} characters with {MAX_STARS} stars")
    return TextPattern(tuple(value.split(STAR)))


class ArgumentPattern(msgspec.Struct, frozen=True):
    """What an argument may be: anything, this truth value, an integer within bounds, or a text
    (bytes: their base64 after ``base64:``) that matches a pattern.
    """

    is_anything: bool = False
    truth: bool | None = None
    least: int | None = None
    most: int | None = None
    text: TextPattern | None = None

    def fits(self, argument: Argument) -> bool:
        """Whether an argument matches."""
        if self.is_anything:
            return True
        if isinstance(argument, bool):
            return self.truth is argument
        if isinstance(argument, int):
            return (
                (self.least is not None or self.most is not None)
                and (self.least is None or argument >= self.least)
                and (self.most is None or argument <= self.most)
            )
        if self.text is None or isinstance(argument, tuple):
            return False
        if isinstance(argument, bytes):
            return self.text.pieces[0].startswith(BASE64_PREFIX) and self.text.fits(
                encode_base64(argument)
            )
        return self.text.fits(argument)


def argument_pattern(value: Any) -> ArgumentPattern:  # noqa: ANN401 - whatever a file has
    """Parse a pattern; raises ``BadPattern``."""
    expected = 'a text, a whole number, true, false, {least=…, most=…} or "*" for anything'
    if value == STAR:
        return ArgumentPattern(is_anything=True)
    if isinstance(value, bool):
        return ArgumentPattern(truth=value)
    if isinstance(value, int):
        return ArgumentPattern(least=value, most=value)
    if isinstance(value, str):
        return ArgumentPattern(text=text_pattern(value))
    if not isinstance(value, dict) or not value or not value.keys() <= {"least", "most"}:
        raise BadPattern(expected)
    bounds = value.get("least"), value.get("most")
    if any(each is not None and type(each) is not int for each in bounds):
        raise BadPattern(expected)
    return ArgumentPattern(least=bounds[0], most=bounds[1])
