"""The scanner below the parser: spaces, keywords, signs and names at the current offset.

What lives here: the smallest steps. What does not: the grammar (``parser``).
"""

from __future__ import annotations

import re
from typing import Final

from soliton.ride.compiler.errors import CompileError, Source
from soliton.ride.compiler.literals import BLANK, GAP, KEYWORDS, KEYWORDS_SINCE_V8, NAME

MAX_OPERANDS: Final = 200_000
"""The limit of constants, names, fields and calls in a source: nearly twice what fits into the
largest script. The tree of a megabyte of them would take hundreds of megabytes.
"""
MAX_NESTING: Final = 100
"""The limit of nested brackets, branches and blocks; each takes a few stack frames."""

QUOTES: Final = 'texts stand in double quotes: "text"'
HIDDEN: Final = (
    "a comment hides this from the reference's compiler",
    "put the comment in front of what this belongs to",
)

_DIRECTIVES: Final = re.compile(r"(?:[ \t\r\n]+|#[^\n]*|\{-#[^#]*#-\})*+")


class Cursor:
    """A source and the current offset in it."""

    def __init__(self, source: Source, version: int) -> None:
        self._source = source
        self._watch = source.watch
        self._operands = 0
        self._text = source.text
        self._size = len(source.text)
        self._version = version
        self._keywords = KEYWORDS_SINCE_V8 if version >= 8 else KEYWORDS
        self._offset = 0
        self._depth = 0

    def _deeper(self, advice: str) -> None:
        self._depth += 1
        if self._depth > MAX_NESTING:
            raise self._error(f"nested more than {MAX_NESTING} levels deep", advice)

    def _next_operand(self) -> None:
        """Count a constant, name, field or call against the limit."""
        self._watch()
        self._operands += 1
        if self._operands > MAX_OPERANDS:
            raise self._error(
                f"the source has more than {MAX_OPERANDS} constants, names and calls",
                "no script has room for them",
            )

    # --- words and signs ---

    def _skip_directives(self) -> None:
        found = _DIRECTIVES.match(self._text, self._offset)
        assert found is not None
        self._offset = found.end()

    def _gap(self) -> None:
        found = GAP.match(self._text, self._offset)
        assert found is not None
        self._offset = found.end()

    def _blank(self) -> None:
        """Skip spaces and line ends, where the reference allows no comment."""
        found = BLANK.match(self._text, self._offset)
        assert found is not None
        self._offset = found.end()

    def _commented_gap(self) -> bool:
        """Skip a gap; return whether it has comments."""
        start = self._offset
        self._gap()
        return "#" in self._text[start : self._offset]

    def _next_is(self, sign: str) -> bool:
        return self._text.startswith(sign, self._offset)

    def _ahead(self, sign: str) -> bool:
        self._gap()
        return self._next_is(sign)

    def _accept(self, sign: str, *, comments: bool = True) -> bool:
        """Consume a sign if it is next, after a gap; ``comments`` allows comments in the gap."""
        if comments:
            self._gap()
        else:
            self._blank()
        if self._next_is(sign):
            self._offset += len(sign)
            return True
        return False

    def _accept_comma(self) -> bool:
        """Consume a comma with comments around it, or nothing."""
        before = self._offset
        if self._accept(","):
            self._gap()
            return True
        self._offset = before
        return False

    def _expect(self, sign: str, *, comments: bool = True) -> None:
        if not self._accept(sign, comments=comments):
            raise self._unexpected(f"expected {sign}")

    def _word_ahead(self, word: str, border: str = " \t\n\r") -> bool:
        if not self._text.startswith(word, self._offset):
            return False
        after = self._text[self._offset + len(word) : self._offset + len(word) + 1]
        return after != "" and after in border

    def _expect_word(self, word: str) -> None:
        self._gap()
        if not self._next_is(word):
            raise self._unexpected(f"expected {word}", "write if ... then ... else ...")
        self._offset += len(word)

    def _positioned_name(self, what: str) -> tuple[str, int]:
        self._blank()
        start = self._offset
        return self._name(what), start

    def _declared_name(self, what: str) -> str:
        """Read the name of a declaration. The reference takes a ``#`` right after it for part of
        the name.
        """
        name = self._name(what)
        if self._next_is("#") and self._text[self._offset + 1 : self._offset + 2].isalnum():
            raise self._error(*HIDDEN)
        return name

    def _name(self, what: str) -> str:
        self._blank()
        found = NAME.match(self._text, self._offset)
        if found is None:
            raise self._unexpected(f"expected {what}")
        name = found.group()
        after = self._text[found.end() : found.end() + 1]
        if after == "_" or after.isalpha():
            raise self._source.error(
                found.end(),
                "a name has Latin letters, digits and single underscores",
                f"rename {name + after!r}",
            )
        if name in self._keywords:
            raise self._error(f"{name!r} is a word of the language", "choose another name")
        self._offset = found.end()
        return name

    def _error(self, problem: str, advice: str = "") -> CompileError:
        return self._source.error(self._offset, problem, advice)

    def _unexpected(self, expected: str, advice: str = "") -> CompileError:
        self._blank()
        if self._next_is("#"):
            return self._error(*HIDDEN)
        if self._offset >= self._size:
            return self._error(f"{expected}, found the end of the source", advice)
        if self._next_is("'"):
            advice = advice or QUOTES
        line = self._text[self._offset : self._offset + 100].split("\n", 1)[0].strip()
        return self._error(f"{expected}, found {line[:20]!r}", advice)
