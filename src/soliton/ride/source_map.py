"""Source maps: the positions of a script's expressions in its source.

What lives here: the map from numbers of expressions (``numbering``) to positions, recorded by the
compiler. A script without a known source is decompiled first; that text compiles to the same tree.
What does not: reports of failed runs (``faults``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from soliton.caching import cached_by_weight
from soliton.ride.compiler.checker import Checker, Typed
from soliton.ride.compiler.compile import compile_content, linked
from soliton.ride.compiler.directives import read_directives
from soliton.ride.compiler.errors import Source, bounded
from soliton.ride.compiler.library import Library, ScriptKind, library
from soliton.ride.compiler.parser import parse_expression
from soliton.ride.compiler.syntax import Node
from soliton.ride.decompiler import decompile
from soliton.ride.errors import RideError
from soliton.ride.expressions import FALSE, TRUE, Expression, children
from soliton.ride.numbering import Body, Numbering, numbered, shape
from soliton.ride.script import Script, parse_script

MAX_CACHED_BYTES: Final = 64 * 1024**2
MAX_EXCERPT_CHARS: Final = 200
_MAP_FACTOR: Final = 400
"""The largest size of a map in memory, per byte of its script."""
_Span = tuple[int, int]


class TextRange(msgspec.Struct, frozen=True):
    """A range of a text. Lines and columns count from 1, and the end is exclusive. ``file`` is the
    name of an imported library, empty for the text itself.
    """

    line: int
    column: int
    end_line: int
    end_column: int
    text: str
    file: str = ""


class RecordingChecker(Checker):
    """Records the span of each expression by its ``id``. The expressions are kept alive, so that no
    ``id`` is reused.
    """

    def __init__(self, source: Source, library: Library) -> None:
        super().__init__(source, library)
        self.spans: dict[int, tuple[Expression, _Span]] = {}
        self._handlers = {kind: self._recording(handle) for kind, handle in self._handlers.items()}

    def _recording(self, handle: Callable[..., Typed]) -> Callable[..., Typed]:
        def recording_handler(node: Node) -> Typed:
            result = handle(node)
            self._record(node, result)
            return result

        return recording_handler

    def call(self, node: Node, name: str, arguments: list[Typed]) -> Typed:
        """Compile a call, and record its span."""
        result = super().call(node, name, arguments)
        self._record(node, result)
        return result

    def _record(self, node: Node, result: Typed) -> None:
        expression = result.expression
        if expression is not TRUE and expression is not FALSE:
            self.spans.setdefault(id(expression), (expression, (node.start, node.end)))


class SourceMap:
    """A source text with the positions of a script's expressions."""

    def __init__(self, source: Source, numbering: Numbering, spans: list[_Span]) -> None:
        self._source = source
        self._spans = spans
        self.owners: Final = numbering.owners
        self.bodies: Final[Mapping[int, Body]] = numbering.bodies
        self.shape: Final = hash(shape(numbering.expressions))

    @property
    def text(self) -> str:
        """The text with its imported libraries."""
        return self._source.text

    def fits(self, script: Script) -> bool:
        """Whether the text compiles to this script, apart from names."""
        found = numbered(script.content).expressions
        return len(found) == len(self._spans) and hash(shape(found)) == self.shape

    def span(self, number: int) -> tuple[int, int]:
        """Return the start and end of an expression in the text."""
        return self._spans[number]

    def range_of(self, number: int) -> TextRange:
        """Return the position of an expression."""
        start, end = self._spans[number]
        text = self._source.text
        end = max(start, end)
        end = start + len(text[start:end].rstrip())
        start, end = _balanced(text, start, end)
        file, line, column = self._position(start)
        _, end_line, end_column = self._position(end)
        return TextRange(line, column, end_line, end_column, shortened(text[start:end]), file)

    def body(self, number: int) -> Body | None:
        """Return the declaration of which an expression is the body."""
        return self.bodies.get(number)

    def _position(self, offset: int) -> tuple[str, int, int]:
        in_library = self._source.library_position(offset)
        if in_library is not None:
            return in_library
        line, column, _ = self._source.position(offset)
        return "", line, column


def _balanced(text: str, start: int, end: int) -> _Span:
    """Extend a span to balanced brackets; a span lacks the brackets around its outer operands."""
    excerpt = text[start:end]
    if '"' in excerpt or "'" in excerpt:
        return start, end
    for _ in range(max(0, _unopened(excerpt))):
        before = len(text[:start].rstrip())
        if before and text[before - 1] == "(":
            start = before - 1
    for _ in range(max(0, _unopened(excerpt[::-1].translate(_MIRRORED)))):
        after = end + len(text[end:]) - len(text[end:].lstrip())
        if text[after : after + 1] == ")":
            end = after + 1
    return start, end


_MIRRORED: Final = str.maketrans("()", ")(")


def _unopened(text: str) -> int:
    """Return the number of closing brackets without an opening one."""
    missing = depth = 0
    for char in text:
        if char == "(":
            depth += 1
        elif char == ")":
            depth -= 1
            if depth < 0:
                missing, depth = missing + 1, 0
    return missing


def shortened(text: str) -> str:
    """Return a text on one line, cut to ``MAX_EXCERPT_CHARS``."""
    line = " ".join(text.split())
    return line if len(line) <= MAX_EXCERPT_CHARS else f"{line[: MAX_EXCERPT_CHARS - 3]}..."


def map_source(
    text: str,
    libraries: Mapping[str, str] | None = None,
    *,
    remove_unused: bool = False,
    watch: Callable[[], None] | None = None,
) -> SourceMap:
    """Compile a source and return its map; raise ``CompileError`` for a fault."""
    checkers: list[RecordingChecker] = []

    def make(source: Source, library: Library) -> Checker:
        checkers.append(RecordingChecker(source, library))
        return checkers[-1]

    directives = read_directives(text)
    source = linked(text, directives, libraries or {}, watch)
    content = compile_content(source, directives, checker=make, remove_unused=remove_unused)
    numbering = numbered(content)
    spans = _spans(numbering, checkers[-1].spans, len(source.text))
    return SourceMap(source, numbering, spans)


def map_value(text: str, version: int, kind: ScriptKind = ScriptKind.ACCOUNT) -> SourceMap:
    """Return the map of an expression of any type, as in ``compile_value``."""
    source = Source(text)
    checker = RecordingChecker(source, library(version, kind))
    with bounded():
        content = checker.expression(parse_expression(source, version)).expression
    numbering = numbered(content)
    return SourceMap(source, numbering, _spans(numbering, checker.spans, len(text)))


def _spans(
    numbering: Numbering, recorded: dict[int, tuple[Expression, _Span]], size: int
) -> list[_Span]:
    """Return the spans of all expressions; a generated one has that of its parent."""
    spans: list[_Span] = [(-1, -1)] * len(numbering.expressions)
    for number, node in enumerate(numbering.expressions):
        recorded_span = recorded.get(id(node))
        span = recorded_span[1] if recorded_span is not None else spans[number]
        if span[0] < 0:
            span = (0, size)
        spans[number] = span
        for child in children(node):
            inner = numbering.of(child)
            if inner is not None and spans[inner][0] < 0:
                spans[inner] = span
    return spans


def map_known_source(
    script: Script, text: str, libraries: Mapping[str, str] | None = None
) -> SourceMap | None:
    """Return the map of a script in its supposed source, or ``None`` if that does not match."""
    for remove_unused in (False, True):
        try:
            found = map_source(text, libraries, remove_unused=remove_unused)
        except RideError:
            return None
        if found.fits(script):
            return found
    return None


def _map_weight(script: bytes) -> int:
    return 4_096 + _MAP_FACTOR * len(script)


@cached_by_weight(MAX_CACHED_BYTES, _map_weight)
def map_decompiled(script: bytes) -> SourceMap | None:
    """Return the map of a script in its decompiled text; ``None`` if that compiles to another one.

    Raises ``ScriptFormatError``.
    """
    parsed = parse_script(script)
    try:
        text = decompile(parsed)
    except RideError:
        return None
    return map_known_source(parsed, text)
