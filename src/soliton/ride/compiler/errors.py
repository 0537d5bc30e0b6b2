"""What is wrong with a source, where, and what to do about it.

What lives here: the error, and the source text that knows lines and columns. What does not: the
checks (``parser``, ``checker``, ``contract``).
"""

from __future__ import annotations

import bisect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from soliton.ride.errors import RideError
from soliton.ride.types import RideTypeError

MAX_WORDS: Final = 500
"""Characters of a problem, and of an advice: both may quote the source."""


class CompileError(RideError):
    """A source that cannot be compiled; ``line`` and ``column`` count from 1, 0 means nowhere in
    particular. ``advice`` is a way out where there is one. ``library`` is the name of the imported
    text that the fault is in, with line and column there.
    """

    def __init__(
        self,
        problem: str,
        advice: str = "",
        line: int = 0,
        column: int = 0,
        library: tuple[str, int, int] | None = None,
    ) -> None:
        problem, advice = _shortened(problem), _shortened(advice)
        place = f"line {line}, column {column}: " if line else ""
        way_out = f" ({advice})" if advice else ""
        super().__init__(f"{place}{problem}{way_out}")
        self.problem = problem
        self.advice = advice
        self.line = line
        self.column = column
        self.library = library
        self.offset = 0
        """Where it is in the linked text; 0 also where it is nowhere in particular."""


def _shortened(words: str) -> str:
    return words if len(words) <= MAX_WORDS else f"{words[: MAX_WORDS - 3]}..."


def _unwatched() -> None:
    """Nobody stops the compiler."""


@contextmanager
def bounded() -> Iterator[None]:
    """Turns what goes beyond the limits of depth and of types into ``CompileError``."""
    try:
        yield
    except RecursionError:
        raise CompileError(
            "the source is nested too deeply", "give names to parts of it with let"
        ) from None
    except RideTypeError as error:
        raise CompileError(str(error), "use fewer types within one another") from None


class Source:
    """A source text with the libraries that it imports already in it.

    Offsets are those of the linked text. ``place`` counts in the text that the author wrote.
    ``watch`` is called at each operand, call and declaration, when that is read and when it is
    checked; it raises to stop the compiler.
    """

    __slots__ = ("_astral", "imported", "libraries", "text", "watch")

    def __init__(
        self,
        text: str,
        imported: tuple[int, int, int] | None = None,
        watch: Callable[[], None] | None = None,
        libraries: tuple[tuple[int, int, str], ...] = (),
    ) -> None:
        self.libraries: Final = libraries
        """Begin and end of each imported text in this one, and its name."""
        self.watch: Final = watch or _unwatched
        self.text: Final = text
        self.imported: Final = imported
        """Begin and end of the import directive in the author's text, and by how much the
        imported declarations are longer than it."""
        self._astral: Final = [place for place, char in enumerate(text) if char > "\uffff"]

    def error(self, offset: int, problem: str, advice: str = "") -> CompileError:
        """The error at an offset."""
        line, column, inside = self.place(offset)
        where = " in an imported library" if inside else ""
        library = self.library_place(offset)
        error = CompileError(problem + where, advice, line, column, library)
        error.offset = offset
        return error

    def library_place(self, offset: int) -> tuple[str, int, int] | None:
        """The imported text that an offset is in, with line and column there."""
        for begin, end, name in self.libraries:
            if begin <= offset < end:
                before = self.text[begin:offset]
                return name, before.count("\n") + 1, len(before) - before.rfind("\n")
        return None

    def place(self, offset: int) -> tuple[int, int, bool]:
        """Line and column of an offset, and whether it is inside of a library."""
        inside = False
        before = self.text[:offset]
        if self.imported is not None:
            begin, end, longer = self.imported
            if begin <= offset < end + longer:
                inside, before = True, self.text[:begin]
            elif offset >= end + longer:
                line = before.count("\n") - self.text.count("\n", begin, end + longer) + 1
                return line, offset - before.rfind("\n"), False
        return before.count("\n") + 1, len(before) - before.rfind("\n"), inside

    def reference_span(self, start: int, end: int) -> tuple[int, int]:
        """The two offsets as the reference counts them: in UTF-16 units of the author's text.

        They end up in compiled scripts, in the names of hidden variables.
        """
        first, last = self._units(start), self._units(end)
        if self.imported is None:
            return first, last
        begin, finish, longer = self.imported
        start, length = self._units(begin), finish - begin
        longer = self._units(finish + longer) - start - length
        return (
            _shifted(first, start, longer, start + length, start),
            _shifted(last, start, longer, start + length, start + length),
        )

    def _units(self, offset: int) -> int:
        return offset + bisect.bisect_left(self._astral, offset)


def _shifted(offset: int, begin: int, longer: int, finish: int, bound: int) -> int:
    if offset < begin:
        return offset
    return bound if offset - longer < finish else offset - longer
