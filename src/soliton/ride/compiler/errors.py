"""Compile errors, and the source text that maps offsets to lines and columns.

What does not live here: the checks (``parser``, ``checker``, ``contract``).
"""

from __future__ import annotations

import bisect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from soliton.ride.errors import RideError
from soliton.ride.types import RideTypeError

MAX_MESSAGE_CHARS: Final = 500
"""The limit of a problem and of an advice, both of which may quote the source."""


class CompileError(RideError):
    """A fault of a source. ``line`` and ``column`` count from 1; 0 means no position. ``advice``
    may suggest a fix. ``library`` is the imported library with the fault, and the line and column
    there.
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
        position = f"line {line}, column {column}: " if line else ""
        suffix = f" ({advice})" if advice else ""
        super().__init__(f"{position}{problem}{suffix}")
        self.problem = problem
        self.advice = advice
        self.line = line
        self.column = column
        self.library = library
        self.offset = 0
        """The offset in the linked text; 0 also without a position."""


def _shortened(text: str) -> str:
    if len(text) <= MAX_MESSAGE_CHARS:
        return text
    return f"{text[: MAX_MESSAGE_CHARS - 3]}..."


def _unwatched() -> None:
    """The default of ``watch``: never cancel."""


@contextmanager
def bounded() -> Iterator[None]:
    """Raise ``CompileError`` where the limits of depth and of types are exceeded."""
    try:
        yield
    except RecursionError:
        raise CompileError(
            "the source is nested too deeply", "give names to parts of it with let"
        ) from None
    except RideTypeError as error:
        raise CompileError(str(error), "use fewer types within one another") from None


class Source:
    """A source text with its imported libraries linked in.

    Offsets are those of the linked text; ``position`` is that in the author's text. ``watch`` is
    called for each operand, call and declaration, both in the parser and in the checker. It may
    raise to cancel.
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
        """The start, end and name of each imported library in the text."""
        self.watch: Final = watch or _unwatched
        self.text: Final = text
        self.imported: Final = imported
        """The start and end of the import directive in the author's text, and how much longer the
        imported declarations are."""
        self._astral: Final = [offset for offset, char in enumerate(text) if char > "\uffff"]

    def error(self, offset: int, problem: str, advice: str = "") -> CompileError:
        """Return an error at an offset."""
        line, column, inside = self.position(offset)
        suffix = " in an imported library" if inside else ""
        library = self.library_position(offset)
        error = CompileError(problem + suffix, advice, line, column, library)
        error.offset = offset
        return error

    def library_position(self, offset: int) -> tuple[str, int, int] | None:
        """Return the library that contains an offset, and the line and column there."""
        for begin, end, name in self.libraries:
            if begin <= offset < end:
                before = self.text[begin:offset]
                return name, before.count("\n") + 1, len(before) - before.rfind("\n")
        return None

    def position(self, offset: int) -> tuple[int, int, bool]:
        """Return the line and column of an offset, and whether it is inside a library."""
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
        """Convert two offsets to UTF-16 units of the author's text, as the reference counts.

        The names of hidden variables contain them.
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
