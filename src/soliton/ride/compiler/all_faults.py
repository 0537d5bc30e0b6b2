"""All that is wrong with a source, at once, and what its expressions are.

What lives here: a checker that goes on after a fault, and reading a source of which parts cannot be
read. What does not: the checks (``checker``, ``contract``); what a compiler stops at is the first
of these.

A part with a fault is taken for something that fits everywhere, so that one fault is told once. A
declaration that cannot be read is left out, and what it would have declared counts as unknown.
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
"""More are not looked for."""
MAX_UNREADABLE: Final = 20
"""Declarations that cannot be read; each means that the source is read once more."""
_TOP: Final = re.compile(r"^(?:func|let|strict|@)(?=[ \t(A-Za-z])", re.MULTILINE)
_DECLARED: Final = re.compile(r"^(?:func|let|strict)[ \t]+([A-Za-z_][A-Za-z0-9_]*)", re.MULTILINE)
_UNKNOWN: Final = Ref("unit")


class TooMany(CompileError):
    """There are more faults than anybody wants to see."""


class Checked:
    """What is known of a source: its faults in order, its tree as far as it could be read, types
    and compiled expressions of parts by their places.
    """

    def __init__(self, source: Source, said: Directives) -> None:
        self.source: Final = source
        self.said: Final = said
        self.faults: list[CompileError] = []
        self.tree: ContractNode | Node | None = None
        self.types: dict[tuple[int, int], Type] = {}
        """What expressions are, by begin and end in the linked text."""
        self.functions: dict[str, tuple[tuple[Type, ...], Type]] = {}
        """Types of parameters and result of the source's own functions; of a name the last one."""
        self.unknown: set[str] = set()
        """Names whose declarations could not be read."""

    def add(self, fault: CompileError) -> None:
        """Note a fault; raises ``TooMany``."""
        if len(self.faults) >= MAX_FAULTS:
            raise TooMany("and more")
        words = {word.strip(":;,") for word in fault.problem.split()}
        if self.faults and NOTHING.name in words:
            return  # it follows from one that was told
        self.faults.append(fault)

    @property
    def library(self) -> Library:
        """What the source can use."""
        return library(self.said.version, kind_of(self.said))


def check_source(
    text: str,
    libraries: Mapping[str, str] | None = None,
    watch: Callable[[], None] | None = None,
) -> Checked:
    """All faults of a source; nothing is raised but what ``watch`` raises."""
    if len(text) > MAX_SOURCE_CHARS:
        words = f"a source has at most {MAX_SOURCE_CHARS} characters"
        return _refused("", CompileError(words))
    try:
        said = read_directives(text)
        source = linked(text, said, libraries or {}, watch)
    except CompileError as fault:
        return _refused(text, fault)
    found = Checked(source, said)
    try:
        with bounded():
            if said.content == heads.DAPP:
                _check_dapp(found)
            else:
                _check_expression(found)
    except TooMany:
        pass
    except CompileError as fault:
        found.faults.append(fault)
    found.faults.sort(key=lambda fault: fault.offset)
    return found


def _refused(text: str, fault: CompileError) -> Checked:
    found = Checked(Source(text), Directives())
    found.faults.append(fault)
    return found


def _check_dapp(found: Checked) -> None:
    tree = _read_contract(found)
    if tree is None:
        return
    found.tree = tree
    compile_contract(_CollectingChecker(found, found.source, found.library), tree, found.add)


def _check_expression(found: Checked) -> None:
    def make(source: Source, known: Library) -> Checker:
        return _CollectingChecker(found, source, known)

    try:
        found.tree = parse_expression(found.source, found.said.version)
    except CompileError:
        if found.said.content != heads.LIBRARY:
            raise
    compile_content(found.source, found.said, checker=make)


def _read_contract(found: Checked) -> ContractNode | None:
    """The tree of a dApp without the declarations that cannot be read."""
    source, version = found.source, found.said.version
    text = source.text
    for _ in range(MAX_UNREADABLE):
        readable = Source(text, source.imported, source.watch, source.libraries)
        try:
            return parse_contract(readable, version)
        except CompileError as fault:
            found.add(fault)
            begin, end = _declaration_at(text, fault.offset)
            left_out = text[begin:end]
            if not left_out.strip():
                return None
            found.unknown.update(_DECLARED.findall(left_out))
            blank = "".join(char if char == "\n" else " " for char in left_out)
            text = text[:begin] + blank + text[end:]
    return None


def _declaration_at(text: str, offset: int) -> tuple[int, int]:
    """The declaration of the top level that a fault is in: what ends too early is noticed at the
    begin of the next one.
    """
    starts = [match.start() for match in _TOP.finditer(text)]
    # An annotation and its function are one.
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
    """Notes faults and goes on; notes the types of expressions."""

    def __init__(self, found: Checked, source: Source, known: Library) -> None:
        super().__init__(source, known)
        self._found = found
        self._handlers = {kind: self._going_on(handle) for kind, handle in self._handlers.items()}

    def _going_on(self, handle: Callable[..., Typed]) -> Callable[..., Typed]:
        def checked(node: Node) -> Typed:
            try:
                result = handle(node)
            except TooMany:
                raise
            except CompileError as fault:
                self._found.add(fault)
                return Typed(_UNKNOWN, NOTHING)
            self._found.types.setdefault((node.start, node.end), result.type)
            return result

        return checked

    def _name(self, node: Name) -> Typed:
        if node.name in self._found.unknown and node.name not in self.variables:
            return Typed(_UNKNOWN, NOTHING)
        return super()._name(node)

    def _field(self, node: Field) -> Typed:
        subject = self.expression(node.subject)
        if subject.type is NOTHING:
            return Typed(GetField(subject.expression, node.field), NOTHING)
        return super()._field(node)

    def call(self, node: Node, name: str, arguments: list[Typed]) -> Typed:
        """The call; of what is not known, or with what is not known, it may be anything."""
        if name in self._found.unknown and name not in self.functions:
            return Typed(_UNKNOWN, NOTHING)
        try:
            result = super().call(node, name, arguments)
        except CompileError:
            known = name in self.functions or name in self.library.constructors
            if known and any(argument.type is NOTHING for argument in arguments):
                return Typed(_UNKNOWN, NOTHING)
            raise
        self._found.types[(node.start, node.end)] = result.type
        return result

    def let(self, node: LetNode) -> tuple[Let, Type]:
        """The value; one with a fault may be anything."""
        try:
            return super().let(node)
        except TooMany:
            raise
        except CompileError as fault:
            self._found.add(fault)
            return Let(node.name, _UNKNOWN), NOTHING

    def function(
        self, node: FunctionNode, allowed: frozenset[str] = frozenset()
    ) -> tuple[Func, tuple[Type, ...], Type]:
        """The function; one with a fault takes and gives anything."""
        try:
            made = super().function(node, allowed)
        except TooMany:
            raise
        except CompileError as fault:
            self._found.add(fault)
            names = tuple(name for name, _, _ in node.parameters)
            made = Func(node.name, names, _UNKNOWN), (NOTHING,) * len(names), NOTHING
        self._found.functions[node.name] = made[1], made[2]
        return made
