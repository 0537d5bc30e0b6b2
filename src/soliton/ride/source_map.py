"""Where the expressions of a script are in a text.

What lives here: the map from numbers of expressions (``numbering``) to places, made while a source
is compiled. A script of which nobody has the source is decompiled first: the text compiles to the
same tree, so its places are those of the script. What does not: what a run has to tell of such
places (``faults``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from soliton.caching import kept
from soliton.ride.compiler.checker import Checker, Typed
from soliton.ride.compiler.compile import compile_content, linked
from soliton.ride.compiler.directives import read_directives
from soliton.ride.compiler.errors import Source, bounded
from soliton.ride.compiler.library import Library, ScriptKind, library
from soliton.ride.compiler.parser import parse_expression
from soliton.ride.compiler.syntax import Node
from soliton.ride.decompiler import decompile
from soliton.ride.errors import RideError
from soliton.ride.expressions import FALSE, TRUE, Block, Call, Expression, Func, GetField, If, Let
from soliton.ride.numbering import Body, Numbering, numbered, shape
from soliton.ride.script import Script, parse_script

MAX_KEPT_BYTES: Final = 64 * 1024**2
MAX_EXCERPT_CHARS: Final = 200
_MAP_FACTOR: Final = 400
"""What a map takes for each byte of its script, at most."""
_Span = tuple[int, int]


class Place(msgspec.Struct, frozen=True):
    """A part of a text: lines and columns count from 1, the end is the place behind it. ``file`` is
    the name of an imported library, empty for the text itself.
    """

    line: int
    column: int
    end_line: int
    end_column: int
    text: str
    file: str = ""


class NotedChecker(Checker):
    """Notes where each expression comes from. What it notes it keeps, so that no identity is given
    twice.
    """

    def __init__(self, source: Source, library: Library) -> None:
        super().__init__(source, library)
        self.spans: dict[int, tuple[Expression, _Span]] = {}
        self._handlers = {kind: self._noting(handle) for kind, handle in self._handlers.items()}

    def _noting(self, handle: Callable[..., Typed]) -> Callable[..., Typed]:
        def noted(node: Node) -> Typed:
            result = handle(node)
            self._note(node, result)
            return result

        return noted

    def call(self, node: Node, name: str, arguments: list[Typed]) -> Typed:
        """The call, with its place."""
        result = super().call(node, name, arguments)
        self._note(node, result)
        return result

    def _note(self, node: Node, result: Typed) -> None:
        expression = result.expression
        if expression is not TRUE and expression is not FALSE:
            self.spans.setdefault(id(expression), (expression, (node.start, node.end)))


class SourceMap:
    """A text with the places of a script's expressions in it."""

    def __init__(self, source: Source, numbering: Numbering, spans: list[_Span]) -> None:
        self._source = source
        self._spans = spans
        self.owners: Final = numbering.owners
        self.bodies: Final[Mapping[int, Body]] = numbering.bodies
        self.shape: Final = hash(shape(numbering.expressions))

    @property
    def text(self) -> str:
        """The text, with what it imports."""
        return self._source.text

    def fits(self, script: Script) -> bool:
        """Whether a script is what the text compiles to, but for names."""
        found = numbered(script.content).expressions
        return len(found) == len(self._spans) and hash(shape(found)) == self.shape

    def span(self, number: int) -> tuple[int, int]:
        """Begin and end of an expression in the text."""
        return self._spans[number]

    def place(self, number: int) -> Place:
        """Where an expression is."""
        start, end = self._spans[number]
        text = self._source.text
        end = max(start, end)
        end = start + len(text[start:end].rstrip())
        start, end = _balanced(text, start, end)
        file, line, column = self._position(start)
        _, end_line, end_column = self._position(end)
        return Place(line, column, end_line, end_column, shortened(text[start:end]), file)

    def body(self, number: int) -> Body | None:
        """What an expression is the body of."""
        return self.bodies.get(number)

    def _position(self, offset: int) -> tuple[str, int, int]:
        inside = self._source.library_position(offset)
        if inside is not None:
            return inside
        line, column, _ = self._source.position(offset)
        return "", line, column


def _balanced(text: str, start: int, end: int) -> _Span:
    """The span with the brackets that belong to it: those around operands are not in their own."""
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
    """How many closing brackets have no opening one."""
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
    """A text on one line, of bounded length."""
    line = " ".join(text.split())
    return line if len(line) <= MAX_EXCERPT_CHARS else f"{line[: MAX_EXCERPT_CHARS - 3]}..."


def map_source(
    text: str,
    libraries: Mapping[str, str] | None = None,
    *,
    remove_unused: bool = False,
    watch: Callable[[], None] | None = None,
) -> SourceMap:
    """The map of a source; raises ``CompileError``."""
    checkers: list[NotedChecker] = []

    def make(source: Source, library: Library) -> Checker:
        checkers.append(NotedChecker(source, library))
        return checkers[-1]

    directives = read_directives(text)
    source = linked(text, directives, libraries or {}, watch)
    content = compile_content(source, directives, checker=make, remove_unused=remove_unused)
    numbering = numbered(content)
    spans = _spans(numbering, checkers[-1].spans, len(source.text))
    return SourceMap(source, numbering, spans)


def map_value(text: str, version: int, kind: ScriptKind = ScriptKind.ACCOUNT) -> SourceMap:
    """The map of an expression of any type, as ``compile_value`` takes it."""
    source = Source(text)
    checker = NotedChecker(source, library(version, kind))
    with bounded():
        content = checker.expression(parse_expression(source, version)).expression
    numbering = numbered(content)
    return SourceMap(source, numbering, _spans(numbering, checker.spans, len(text)))


def _spans(
    numbering: Numbering, noted: dict[int, tuple[Expression, _Span]], size: int
) -> list[_Span]:
    """The places of all expressions; what the compiler made is where it made it for."""
    spans: list[_Span] = [(-1, -1)] * len(numbering.expressions)
    for number, node in enumerate(numbering.expressions):
        found = noted.get(id(node))
        span = found[1] if found is not None else spans[number]
        if span[0] < 0:
            span = (0, size)
        spans[number] = span
        for part in _parts(node):
            inner = numbering.of(part)
            if inner is not None and spans[inner][0] < 0:
                spans[inner] = span
    return spans


def _parts(node: Expression) -> tuple[Expression, ...]:
    match node:
        case If(condition, then, otherwise):
            return condition, then, otherwise
        case GetField(inner):
            return (inner,)
        case Call(_, arguments):
            return arguments
        case Block(Let(_, value), rest):
            return value, rest
        case Block(Func() as function, rest):
            return function.body, rest
        case _:
            return ()


def map_known_source(
    script: Script, text: str, libraries: Mapping[str, str] | None = None
) -> SourceMap | None:
    """The map of a script whose source is said to be known; nothing if it is another one's."""
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


@kept(MAX_KEPT_BYTES, _map_weight)
def map_decompiled(script: bytes) -> SourceMap | None:
    """The map of a script in the text that it is decompiled to; nothing if no source means it.

    Raises ``ScriptFormatError``.
    """
    parsed = parse_script(script)
    try:
        text = decompile(parsed)
    except RideError:
        return None
    return map_known_source(parsed, text)
