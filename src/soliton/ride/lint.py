"""Warnings for valid sources: unused and shadowed names, constant conditions, high complexity.

What lives here: name resolution (``resolve``), and the warnings. What does not: errors
(``compiler.all_faults``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from soliton.ride.compiler.all_faults import Checked
from soliton.ride.compiler.compile import Compiled
from soliton.ride.compiler.syntax import (
    Apply,
    Binding,
    Case,
    Cast,
    Choice,
    Constants,
    ContractNode,
    Declared,
    Field,
    Fold,
    FunctionNode,
    LetNode,
    ListLiteral,
    Literal,
    Match,
    Name,
    Node,
    ObjectPattern,
    PatternNode,
    Truth,
    TuplePattern,
)
from soliton.ride.estimators.choice import max_callable_complexity
from soliton.ride.evaluator_scope import Scope, find
from soliton.ride.expressions import BytesConst, LongConst, StringConst

MAX_WARNINGS: Final = 200
FREE_VERIFIER: Final = 200
"""A verifier of higher complexity costs each transaction of its account an extra fee."""
LARGE_SHARE: Final = 0.5
"""The share of a function's limit from which on its complexity is reported."""
UNUSED, SHADOWED, CONSTANT, COMPLEXITY = "unused", "shadowed", "always", "complexity"


class Finding(msgspec.Struct, frozen=True):
    """A warning: its kind, offset and message."""

    kind: str
    start: int
    message: str


class Named:
    """A name that a source declares. ``uses`` has the starts and ends of its uses in the linked
    text.
    """

    __slots__ = ("end", "kind", "name", "node", "start", "uses")

    def __init__(
        self, kind: str, name: str, start: int, end: int, node: LetNode | FunctionNode | None
    ) -> None:
        self.kind = kind
        """``value``, ``function``, ``parameter``, ``case`` or ``annotation``."""
        self.name = name
        self.start = start
        self.end = end
        self.node = node
        self.uses: list[tuple[int, int]] = []


class Names:
    """The names and the conditions of a source."""

    def __init__(self) -> None:
        self.declared: list[Named] = []
        self.shadows: list[tuple[Named, Named | None]] = []
        """A name, and the one that it shadows (``None``: one of the library)."""
        self.conditions: list[Node] = []

    def at(self, offset: int) -> Named | None:
        """Return the name that is declared or used at an offset."""
        for each in self.declared:
            spans = [(each.start, each.end), *each.uses]
            if any(start <= offset < end for start, end in spans):
                return each
        return None


_Scope = Scope[Named] | None


def resolve(checked: Checked) -> Names:
    """Resolve the names of a source."""
    return _Resolver(checked).names


class _Resolver:
    """Resolves names without recursion, since chains in sources have any length."""

    def __init__(self, checked: Checked) -> None:
        self.names = Names()
        self._checked = checked
        self._text = checked.source.text
        self._known = checked.library if checked.tree is not None else None
        self._stack: list[tuple[Node, _Scope]] = []
        tree = checked.tree
        if isinstance(tree, ContractNode):
            self._contract(tree)
        elif tree is not None:
            self._stack.append((tree, None))
            self._walk()

    def _contract(self, tree: ContractNode) -> None:
        scope: _Scope = None
        for declaration in tree.declarations:
            scope = self._declare(declaration, scope)
        for each in tree.functions:
            inner = scope
            for annotation in each.annotations:
                for name, start in annotation.parameters:
                    inner = self._bind("annotation", name, start, inner)
            self._function(each.function, inner)
        self._walk()

    def _declare(self, node: LetNode | FunctionNode, scope: _Scope) -> _Scope:
        """Return the scope after a declaration; push its value or body on the stack."""
        if isinstance(node, FunctionNode):
            self._function(node, scope)
            return self._bind("function", node.name, self._name_offset(node), scope, node)
        self._stack.append((node.value, scope))
        return self._bind("value", node.name, self._name_offset(node), scope, node)

    def _function(self, node: FunctionNode, scope: _Scope) -> None:
        for name, start, _ in node.parameters:
            scope = self._bind("parameter", name, start, scope)
        self._stack.append((node.body, scope))

    def _name_offset(self, node: LetNode | FunctionNode) -> int:
        """Return the offset of a declaration's name, after its keyword or in an unpacked tuple."""
        found = self._text.find(node.name, node.start, max(node.end, node.start))
        return node.start if found < 0 else found

    def _bind(
        self,
        kind: str,
        name: str,
        start: int,
        scope: _Scope,
        node: LetNode | FunctionNode | None = None,
    ) -> _Scope:
        is_function = kind == "function"
        named = Named(kind, name, start, start + len(name), node)
        if not name.startswith(("$", "@")):
            self.names.declared.append(named)
            hidden = find(scope, (is_function, name))
            known = self._known
            if hidden is not None:
                self.names.shadows.append((named, hidden.declaration))
            elif known is not None and name in (
                known.functions if is_function else known.variables
            ):
                self.names.shadows.append((named, None))
        return Scope((is_function, name), named, scope)

    def _use(self, is_function: bool, name: str, start: int, scope: _Scope) -> None:
        found = find(scope, (is_function, name))
        if found is None:
            return
        if not self._text.startswith(name, start):
            # A method call starts with its subject.
            start = self._text.find(name, start)
        found.declaration.uses.append((start, start + len(name)))

    def _walk(self) -> None:
        while self._stack:
            node, scope = self._stack.pop()
            self._enter(node, scope)

    def _enter(self, node: Node, scope: _Scope) -> None:
        stack = self._stack
        match node:
            case Name(start=start, name=name):
                self._use(False, name, start, scope)
            case Field(subject=subject):
                stack.append((subject, scope))
            case Apply(start=start, name=name, arguments=arguments):
                self._use(True, name, self._call_offset(node), scope)
                stack.extend((each, scope) for each in arguments)
            case ListLiteral(items=items):
                stack.extend((each, scope) for each in items)
            case Choice(condition=condition, then=then, otherwise=otherwise):
                if not _is_strict(condition):
                    self.names.conditions.append(condition)
                stack += ((condition, scope), (then, scope), (otherwise, scope))
            case Declared(declaration=declaration, body=body):
                stack.append((body, self._declare(declaration, scope)))
            case Cast(subject=subject):
                stack.append((subject, scope))
            case Fold(items=items, first=first, function=function, end=end):
                offset = self._text.rfind(function, node.start, end)
                self._use(True, function, max(offset, node.start), scope)
                stack += ((items, scope), (first, scope))
            case Match(subject=subject, cases=cases):
                stack.append((subject, scope))
                for case in cases:
                    self._case(case, scope)
            case _:
                pass

    def _call_offset(self, node: Apply) -> int:
        if self._text.startswith(node.name, node.start) or not node.arguments:
            return node.start
        return min(node.arguments[0].end, node.end)

    def _case(self, case: Case, scope: _Scope) -> None:
        patterns: list[PatternNode] = [case.pattern]
        while patterns:
            match patterns.pop(0):
                case Binding(start=start, name=name):
                    if name is not None:
                        scope = self._bind("case", name, start, scope)
                case Constants(values=values):
                    self._stack.extend((each, scope) for each in values)
                case TuplePattern(items=items):
                    patterns.extend(items)
                case ObjectPattern(fields=fields):
                    patterns.extend(pattern for _, pattern in fields)
        self._stack.append((case.body, scope))


def _is_strict(condition: Node) -> bool:
    """Whether a condition is the expansion of ``strict``: one node compared with itself."""
    match condition:
        case Apply(name="==", arguments=(one, other)):
            return one is other
        case _:
            return False


# --- warnings -------------------------------------------------------------------------------------


def warnings(checked: Checked, compiled: Compiled | None = None) -> list[Finding]:
    """Return the warnings for a source in order of offsets; only some for one with faults.

    ``compiled`` is needed for warnings of complexity.
    """
    names = resolve(checked)
    found = []
    if not checked.faults:
        found += _unused(checked, names)
    found += [
        Finding(SHADOWED, each.start, _shadow_message(each, hidden))
        for each, hidden in names.shadows
    ]
    for condition in names.conditions:
        truth = _constant_truth(condition)
        if truth is not None:
            message = f"this is always {'true' if truth else 'false'}"
            found.append(Finding(CONSTANT, condition.start, message))
    if compiled is not None:
        found += _complexity(checked, compiled)
    if checked.source.imported is not None:
        begin, end, longer = checked.source.imported
        found = [each for each in found if not begin <= each.start < end + longer]
    found.sort(key=lambda warning: (warning.start, warning.kind))
    return found[:MAX_WARNINGS]


def _unused(checked: Checked, names: Names) -> list[Finding]:
    called = set()
    if isinstance(checked.tree, ContractNode):
        called = {id(each.function) for each in checked.tree.functions}
    is_library = checked.directives.content == "LIBRARY"
    found = []
    for each in names.declared:
        if each.uses or each.kind == "annotation" or id(each.node) in called:
            continue
        if is_library and each.kind in ("value", "function"):
            continue
        message = {
            "value": "the value {} is never used",
            "function": "the function {} is never called",
            "parameter": "the parameter {} is never used",
            "case": "the name {} of this case is never used: write _",
        }[each.kind]
        found.append(Finding(UNUSED, each.start, message.format(repr(each.name))))
    return found


def _shadow_message(each: Named, hidden: Named | None) -> str:
    whose = "one of the library" if hidden is None else f"the {hidden.kind} declared further out"
    return f"{each.name!r} hides {whose} of the same name"


def _constant_truth(condition: Node) -> bool | None:
    match condition:
        case Truth(value=value):
            return value
        case Apply(name="!", arguments=(inner,)):
            truth = _constant_truth(inner)
            return None if truth is None else not truth
        case Apply(name=sign, arguments=(one, other)) if sign in _SAME:
            left, right = _constant(one), _constant(other)
            if left is not None and right is not None:
                return _compared(sign, left, right)
            return _SAME[sign] if _is_same(one, other) else None
        case _:
            return None


_SAME: Final[Mapping[str, bool]] = {"==": True, ">=": True, "!=": False, ">": False}
"""The results of comparing a value with itself."""


def _constant(node: Node) -> int | str | bytes | None:
    if isinstance(node, Literal) and isinstance(node.value, LongConst | StringConst | BytesConst):
        return node.value.value
    return None


def _compared(sign: str, left: int | str | bytes, right: int | str | bytes) -> bool | None:
    if sign in ("==", "!="):
        return (left == right) is (sign == "==")
    if isinstance(left, int) and isinstance(right, int):
        return left > right or (sign == ">=" and left == right)
    return None


def _is_same(one: Node, other: Node) -> bool:
    """Whether two expressions are the same name or field."""
    while isinstance(one, Field) and isinstance(other, Field) and one.field == other.field:
        one, other = one.subject, other.subject
    return isinstance(one, Name) and isinstance(other, Name) and one.name == other.name


def _complexity(checked: Checked, compiled: Compiled) -> list[Finding]:
    numbers, parts = compiled.estimate, compiled.parts
    if numbers is None or not isinstance(checked.tree, ContractNode):
        return []
    limit = max_callable_complexity(checked.directives.version)
    functions = {} if parts is None else parts.functions
    found = []
    for annotated in checked.tree.functions:
        name, start = annotated.function.name, annotated.function.start
        taken = numbers.callables.get(name)
        if taken is not None and taken > LARGE_SHARE * limit:
            message = f"{name} takes up to {taken} of {limit}{_costliest(functions)}"
            found.append(Finding(COMPLEXITY, start, message))
        elif annotated.annotations[0].name == "Verifier" and numbers.verifier > FREE_VERIFIER:
            message = (
                f"the verifier takes up to {numbers.verifier}: beyond {FREE_VERIFIER} each "
                "transaction of the account costs 400000 more"
            )
            found.append(Finding(COMPLEXITY, start, message))
    return found


def _costliest(functions: Mapping[str, int]) -> str:
    if not functions:
        return ""
    name = max(functions, key=lambda each: functions[each])
    return f"; the dearest function is {name} with {functions[name]}"
