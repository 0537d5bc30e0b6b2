"""All faults of a source, and the types of its expressions, for editors.

What lives here: a checker that continues after a fault, and error recovery in the parser. What does
not: the checks (``checker``, ``contract``).

A faulty expression gets a type that fits everywhere, so that each fault is reported once. A
declaration with a syntax error is skipped, and its name counts as unknown.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final

from soliton.ride.compiler import directives as heads
from soliton.ride.compiler.checker import Checker, Typed
from soliton.ride.compiler.compile import MAX_SOURCE_CHARS, compile_content, kind_of, linked
from soliton.ride.compiler.contract import compile_contract
from soliton.ride.compiler.directives import Directives, read_directives
from soliton.ride.compiler.errors import CompileError, Source, bounded
from soliton.ride.compiler.library import Library, library
from soliton.ride.compiler.parser import parse_contract, parse_expression
from soliton.ride.compiler.syntax import (
    ContractNode,
    Field,
    FunctionNode,
    LetNode,
    Name,
    Node,
)
from soliton.ride.expressions import Func, GetField, Let, Ref
from soliton.ride.types import NOTHING, Type

MAX_FAULTS: Final = 100
"""The check stops after this many."""
MAX_UNREADABLE: Final = 20
"""The limit of declarations with a syntax error; for each, the source is parsed again."""
_TOP: Final = re.compile(r"^(?:func|let|strict|@)(?=[ \t(A-Za-z])", re.MULTILINE)
_DECLARED: Final = re.compile(r"^(?:func|let|strict)[ \t]+([A-Za-z_][A-Za-z0-9_]*)", re.MULTILINE)
_UNKNOWN: Final = Ref("unit")


class TooMany(CompileError):
    """There are more than ``MAX_FAULTS`` faults."""


class Checked:
    """The result of a check: the faults in order, the tree as far as it could be parsed, and the
    types of its expressions.
    """

    def __init__(self, source: Source, directives: Directives) -> None:
        self.source: Final = source
        self.directives: Final = directives
        self.faults: list[CompileError] = []
        self.tree: ContractNode | Node | None = None
        self.types: dict[tuple[int, int], Type] = {}
        """The type of each expression, by its start and end in the linked text."""
        self.functions: dict[str, tuple[tuple[Type, ...], Type]] = {}
        """Parameter types and result type of the source's functions; the last one of each name."""
        self.unknown: set[str] = set()
        """Names whose declarations have syntax errors."""

    def add(self, fault: CompileError) -> None:
        """Add a fault; raise ``TooMany`` beyond the limit."""
        if len(self.faults) >= MAX_FAULTS:
            raise TooMany("and more")
        words = {word.strip(":;,") for word in fault.problem.split()}
        if self.faults and NOTHING.name in words:
            return  # A consequence of a reported fault.
        self.faults.append(fault)

    @property
    def library(self) -> Library:
        """The library of the source."""
        return library(self.directives.version, kind_of(self.directives))


def check_source(
    text: str,
    libraries: Mapping[str, str] | None = None,
    watch: Callable[[], None] | None = None,
) -> Checked:
    """Find all faults of a source. Only exceptions of ``watch`` propagate."""
    if len(text) > MAX_SOURCE_CHARS:
        return _refused("", CompileError(f"a source has at most {MAX_SOURCE_CHARS} characters"))
    try:
        directives = read_directives(text)
        source = linked(text, directives, libraries or {}, watch)
    except CompileError as fault:
        return _refused(text, fault)
    checked = Checked(source, directives)
    try:
        with bounded():
            if directives.content == heads.DAPP:
                _check_dapp(checked)
            else:
                _check_expression(checked)
    except TooMany:
        pass
    except CompileError as fault:
        checked.faults.append(fault)
    checked.faults.sort(key=lambda fault: fault.offset)
    return checked


def _refused(text: str, fault: CompileError) -> Checked:
    checked = Checked(Source(text), Directives())
    checked.faults.append(fault)
    return checked


def _check_dapp(checked: Checked) -> None:
    tree = _read_contract(checked)
    if tree is None:
        return
    checked.tree = tree
    compile_contract(
        _CollectingChecker(checked, checked.source, checked.library), tree, checked.add
    )


def _check_expression(checked: Checked) -> None:
    def make(source: Source, known: Library) -> Checker:
        return _CollectingChecker(checked, source, known)

    try:
        checked.tree = parse_expression(checked.source, checked.directives.version)
    except CompileError:
        if checked.directives.content != heads.LIBRARY:
            raise
    compile_content(checked.source, checked.directives, checker=make)


def _read_contract(checked: Checked) -> ContractNode | None:
    """Parse a dApp without the declarations that have syntax errors."""
    source, version = checked.source, checked.directives.version
    text = source.text
    for _ in range(MAX_UNREADABLE):
        readable = Source(text, source.imported, source.watch, source.libraries)
        try:
            return parse_contract(readable, version)
        except CompileError as fault:
            checked.add(fault)
            begin, end = _declaration_at(text, fault.offset)
            skipped = text[begin:end]
            if not skipped.strip():
                return None
            checked.unknown.update(_DECLARED.findall(skipped))
            blank = "".join(char if char == "\n" else " " for char in skipped)
            text = text[:begin] + blank + text[end:]
    return None


def _declaration_at(text: str, offset: int) -> tuple[int, int]:
    """Return the span of the top-level declaration with the fault. An incomplete declaration causes
    a fault at the start of the next one.
    """
    starts = [match.start() for match in _TOP.finditer(text)]
    # An annotation and its function are one declaration.
    starts = [
        start
        for number, start in enumerate(starts)
        if not (number and text[starts[number - 1]] == "@" and text[start] == "f")
    ]
    before = [start for start in starts if start < offset]
    begin = before[-1] if before else 0
    after = [start for start in starts if start > begin]
    end = after[0] if after else len(text)
    return (begin, end) if before else (min(offset, len(text)), end)


class _CollectingChecker(Checker):
    """Collects faults instead of raising them, and the types of expressions."""

    def __init__(self, checked: Checked, source: Source, known: Library) -> None:
        super().__init__(source, known)
        self._checked = checked
        self._handlers = {kind: self._collecting(handle) for kind, handle in self._handlers.items()}

    def _collecting(self, handle: Callable[..., Typed]) -> Callable[..., Typed]:
        def collecting_handler(node: Node) -> Typed:
            try:
                result = handle(node)
            except TooMany:
                raise
            except CompileError as fault:
                self._checked.add(fault)
                return Typed(_UNKNOWN, NOTHING)
            self._checked.types.setdefault((node.start, node.end), result.type)
            return result

        return collecting_handler

    def _name(self, node: Name) -> Typed:
        if node.name in self._checked.unknown and node.name not in self.variables:
            return Typed(_UNKNOWN, NOTHING)
        return super()._name(node)

    def _field(self, node: Field) -> Typed:
        subject = self.expression(node.subject)
        if subject.type is NOTHING:
            return Typed(GetField(subject.expression, node.field), NOTHING)
        return super()._field(node)

    def call(self, node: Node, name: str, arguments: list[Typed]) -> Typed:
        """Check a call; with an unknown function or argument, the result fits everywhere."""
        if name in self._checked.unknown and name not in self.functions:
            return Typed(_UNKNOWN, NOTHING)
        try:
            result = super().call(node, name, arguments)
        except CompileError:
            known = name in self.functions or name in self.library.constructors
            if known and any(argument.type is NOTHING for argument in arguments):
                return Typed(_UNKNOWN, NOTHING)
            raise
        self._checked.types[(node.start, node.end)] = result.type
        return result

    def let(self, node: LetNode) -> tuple[Let, Type]:
        """Check a value; a faulty one fits everywhere."""
        try:
            return super().let(node)
        except TooMany:
            raise
        except CompileError as fault:
            self._checked.add(fault)
            return Let(node.name, _UNKNOWN), NOTHING

    def function(
        self, node: FunctionNode, allowed: frozenset[str] = frozenset()
    ) -> tuple[Func, tuple[Type, ...], Type]:
        """Check a function; a faulty one takes and returns anything."""
        try:
            result = super().function(node, allowed)
        except TooMany:
            raise
        except CompileError as fault:
            self._checked.add(fault)
            names = tuple(name for name, _, _ in node.parameters)
            result = Func(node.name, names, _UNKNOWN), (NOTHING,) * len(names), NOTHING
        self._checked.functions[node.name] = result[1], result[2]
        return result
