"""Reconstruction of the cases of a ``match`` from compiled choices.

What lives here: the reverse of ``matching``. What does not: writing source text (``decompiler``).
"""

from __future__ import annotations

from typing import Final, Union

import msgspec

from soliton.ride.compiler.library import Library
from soliton.ride.expressions import (
    FALSE,
    TRUE,
    Block,
    Call,
    Expression,
    GetField,
    If,
    Let,
    LongConst,
    Ref,
    StringConst,
)
from soliton.ride.functions.catalogue import EQUAL, IS_INSTANCE_OF, THROW
from soliton.ride.hash_order import hash_map_order
from soliton.ride.types import Record, members

_TUPLE_SIZE: Final = 1350
_MATCH_ERROR: Final = Call(THROW, (StringConst("Match error"),))
_MAX_PATH: Final = 32
"""The limit of nested patterns; those in sources have a few levels."""


class Bound(msgspec.Struct, frozen=True):
    """``name: A|B``; both are optional."""

    name: str | None
    types: tuple[str, ...] = ()


class Parts(msgspec.Struct, frozen=True):
    """A tuple pattern, or, with a type, an object pattern: fields and their patterns."""

    type: str | None
    parts: tuple[tuple[str, Pattern], ...]


class FoundCase(msgspec.Struct, frozen=True):
    """A pattern and the body of its case."""

    pattern: Pattern
    body: Expression


Pattern = Union[Bound, Parts, tuple[Expression, ...]]  # noqa: UP007 - it is recursive

_Path = tuple[str, ...]


def find_cases(name: str, body: Expression, library: Library) -> list[FoundCase] | None:
    """Return the cases of the match on a hidden name, or ``None`` for choices of another shape."""
    cases = []
    node = body
    while isinstance(node, If):
        case = _case(name, node, library)
        if case is None:
            break
        cases.append(case)
        node = node.otherwise
    else:
        if node == _MATCH_ERROR and cases:
            return cases
    bound, rest = _binding(name, node)
    return [*cases, FoundCase(Bound(bound), rest)]


def _case(name: str, node: If, library: Library) -> FoundCase | None:
    condition = node.condition
    types = _tested_types(name, (), condition)
    if types is not None:
        bound, body = _binding(name, node.then)
        return FoundCase(Bound(bound, tuple(reversed(types))), body)
    constants = _constants(name, (), condition)
    if constants is not None:
        return FoundCase(tuple(constants), node.then)
    match condition:
        case If(first, Block(Let(again, Ref(same)), inner), otherwise) if (
            again == same == name and otherwise == FALSE
        ):
            types = _tested_types(name, (), first)
            if types is None or len(types) != 1:
                return None
            body = node.then
            if not (isinstance(body, Block) and body.declaration == Let(name, Ref(name))):
                return None
            return _object_case(name, types[0], inner, body.body, library)
        case If(parts, check, otherwise) if otherwise == FALSE and _is_tuple_check(name, check):
            return _tuple_case(name, parts, node.then, library)
        case _:
            return None


def _binding(name: str, body: Expression) -> tuple[str | None, Expression]:
    match body:
        case Block(Let(bound, Ref(value)), rest, True) if value == name:
            return bound, rest
        case _:
            return None, body


def _chain(node: Expression) -> list[Expression]:
    """Return the operands of ``a || b || c``."""
    found = []
    while isinstance(node, If) and node.then == TRUE:
        found.append(node.condition)
        node = node.otherwise
    return [*found, node]


def _tested_types(name: str, path: _Path, condition: Expression) -> list[str] | None:
    types = []
    for each in _chain(condition):
        match each:
            case Call(function, (subject, StringConst(type_))) if (
                function == IS_INSTANCE_OF and _path(name, subject) == path
            ):
                types.append(type_)
            case _:
                return None
    return types


def _constants(name: str, path: _Path, condition: Expression) -> list[Expression] | None:
    constants = []
    for each in _chain(condition):
        match each:
            case Call(function, (constant, subject)) if (
                function == EQUAL and _path(name, subject) == path
            ):
                constants.append(constant)
            case _:
                return None
    return constants


def _is_tuple_check(name: str, check: Expression) -> bool:
    types = _tested_types(name, (), check)
    if types is not None:
        return all(type_.startswith("(") for type_ in types)
    match check:
        case Call(equal, (Call(size, (Ref(subject),)), LongConst())):
            return equal == EQUAL and size == _TUPLE_SIZE and subject == name
        case _:
            return False


class _Leaf(msgspec.Struct):
    path: _Path | None
    types: tuple[str, ...] = ()
    constants: tuple[Expression, ...] = ()
    name: str | None = None


def _leaves(name: str, condition: Expression) -> list[_Leaf] | None:
    """Return the parts of a pattern. The path of a part without a condition is unknown."""
    leaves = []
    node = condition
    while isinstance(node, If) and node.otherwise == FALSE:
        leaves.append(_leaf(name, node.condition))
        node = node.then
    leaves.append(_leaf(name, node))
    known = [leaf for leaf in leaves if leaf is not None]
    return known if len(known) == len(leaves) else None


def _leaf(name: str, condition: Expression) -> _Leaf | None:
    if condition == TRUE:
        return _Leaf(None)
    match _chain(condition)[0]:
        case Call(function, (subject, StringConst())) if function == IS_INSTANCE_OF:
            path = _path(name, subject)
            types = _tested_types(name, path, condition) if path else None
            return None if types is None else _Leaf(path, tuple(types))
        case Call(function, (_, subject)) if function == EQUAL:
            path = _path(name, subject)
            constants = _constants(name, path, condition) if path else None
            return None if constants is None else _Leaf(path, (), tuple(constants))
        case _:
            return None


def _path(name: str, node: Expression) -> _Path | None:
    """Return the path to a part, outermost field first; empty for the subject itself."""
    fields: list[str] = []
    while isinstance(node, GetField) and len(fields) < _MAX_PATH:
        fields.append(node.field)
        node = node.expression
    return tuple(reversed(fields)) if isinstance(node, Ref) and node.name == name else None


def _bound_parts(name: str, body: Expression) -> tuple[list[tuple[_Path, str]], Expression]:
    bound = []
    while isinstance(body, Block) and isinstance(body.declaration, Let):
        path = _path(name, body.declaration.value)
        if not path:
            break
        bound.append((path, body.declaration.name))
        body = body.body
    return bound, body


def _tuple_case(
    name: str, condition: Expression, then: Expression, library: Library
) -> FoundCase | None:
    leaves = _leaves(name, condition)
    bound, body = _bound_parts(name, then)
    if leaves is None:
        return None
    _assign_names(leaves, bound)
    flat = all(len(path) == 1 for path, _ in bound) and all(
        leaf.path is None or len(leaf.path) == 1 for leaf in leaves
    )
    if flat:
        for number, leaf in enumerate(leaves, 1):
            leaf.path = (f"_{number}",)
        names = dict(bound)
        for leaf in leaves:
            assert leaf.path is not None
            leaf.name = names.get(leaf.path)
    if any(leaf.path is None for leaf in leaves):
        return None
    pattern = _tree(None, leaves, 0, library)
    return None if pattern is None else FoundCase(pattern, body)


def _object_case(
    name: str, type_: str, condition: Expression, then: Expression, library: Library
) -> FoundCase | None:
    bound, body = _bound_parts(name, then)
    if condition == TRUE and not bound:
        return FoundCase(Parts(type_, ()), body)
    leaves = _leaves(name, condition)
    if leaves is None:
        return None
    _assign_names(leaves, bound)
    record = library.types.get(type_)
    fields = [field for field, _ in record.fields] if isinstance(record, Record) else []
    taken = {leaf.path[0] for leaf in leaves if leaf.path}
    free = [field for field in fields if field not in taken]
    for leaf in leaves:
        if leaf.path is None:
            if not free:
                return None
            leaf.path = (free.pop(0),)
    pattern = _tree(type_, leaves, 0, library)
    if not isinstance(pattern, Parts):
        return None
    order = [field for field, _ in pattern.parts]
    return FoundCase(pattern, body) if hash_map_order(order) == order else None


def _assign_names(leaves: list[_Leaf], bound: list[tuple[_Path, str]]) -> None:
    """Assign names to the leaves of the same path, and the others to leaves of unknown path, in
    order.
    """
    by_path = {leaf.path: index for index, leaf in enumerate(leaves) if leaf.path is not None}
    position = 0
    for path, name in bound:
        index = by_path.get(path)
        if index is None:
            while position < len(leaves) and leaves[position].path is not None:
                position += 1
            if position == len(leaves):
                return
            index = position
            leaves[index].path = path
        leaves[index].name = name
        position = max(position, index + 1)


def _tree(type_: str | None, leaves: list[_Leaf], depth: int, library: Library) -> Pattern | None:
    """Build a pattern of parts by grouping paths by prefix."""
    groups: dict[str, list[_Leaf]] = {}
    for leaf in leaves:
        assert leaf.path is not None
        groups.setdefault(leaf.path[depth], []).append(leaf)
    parts: list[tuple[str, Pattern]] = []
    for number, (field, inner) in enumerate(groups.items(), 1):
        if type_ is None and field != f"_{number}":
            return None
        path = inner[0].path
        assert path is not None
        part: Pattern | None
        if len(path) > depth + 1:
            owner = _type_of_field(type_, field, inner, depth + 1, library)
            part = _tree(owner, inner, depth + 1, library)
            if part is None:
                return None
        elif inner[0].constants:
            part = inner[0].constants
        else:
            part = Bound(inner[0].name, inner[0].types)
        parts.append((field, part))
    return Parts(type_, tuple(parts))


def _type_of_field(
    owner: str | None, field: str, leaves: list[_Leaf], depth: int, library: Library
) -> str | None:
    """Return the object type of a nested pattern; ``None`` for a tuple."""
    names = {leaf.path[depth] for leaf in leaves if leaf.path and len(leaf.path) > depth}
    if names <= {f"_{number}" for number in range(1, len(names) + 1)}:
        return None
    record = library.types.get(owner or "")
    declared = dict(record.fields).get(field) if isinstance(record, Record) else None
    possible = members(declared) if declared is not None else tuple(library.types.values())
    for each in possible:
        if isinstance(each, Record) and names <= {name for name, _ in each.fields}:
            return each.name
    return None
