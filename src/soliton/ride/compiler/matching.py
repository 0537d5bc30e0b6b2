"""Lowering of ``match`` to nested choices, before these are type-checked.

What lives here: the cases, their conditions, the names that they bind, and the check that they are
exhaustive. What does not: compiling the choices (``checker``).

The choices have exactly the reference's form. The alternatives of a type are tested from the last
to the first. A tuple pattern tests the tuple's type if all its parts have one, and its size
otherwise. An object pattern narrows the subject by declaring it again.

Source: wavesplatform/Waves
``lang/shared/src/main/scala/com/wavesplatform/lang/v1/compiler/ExpressionCompiler.scala``
(``compileMatch``, ``mkIfCases``).
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Final

import msgspec

from soliton.ride.compiler.library import UTILITY_PREFIX
from soliton.ride.compiler.syntax import (
    AnyType,
    Apply,
    Binding,
    Case,
    Choice,
    Constants,
    Declared,
    Field,
    LetNode,
    Literal,
    Match,
    Name,
    NamedType,
    Node,
    ObjectPattern,
    PatternNode,
    Truth,
    TuplePattern,
    TupleType,
    TypeNode,
    UnionType,
)
from soliton.ride.expressions import BytesConst, LongConst, Ref, StringConst
from soliton.ride.types import (
    ANY,
    NOTHING,
    ListOf,
    Type,
    UnionOf,
    covers,
    equivalent,
    fields_of,
    list_of,
    members,
    regrouped,
    simplified,
    unfolded,
    union_of,
)

if TYPE_CHECKING:
    from soliton.ride.compiler.checker import Checker, Typed

_IS_INSTANCE_OF: Final = f"{UTILITY_PREFIX}isInstanceOf"
_ANY_LIST: Final = "List[Any]"
_STRICT_CONSTANTS_SINCE: Final = 8


class _Part(msgspec.Struct, frozen=True):
    """A pattern without parts, and its path: the innermost field first."""

    pattern: Binding | Constants
    path: tuple[tuple[str, str | None], ...]
    """Field names, each with the object type of its pattern."""


class _Subject(msgspec.Struct, frozen=True):
    name: str
    type: Type
    shadowable: str | None
    """The subject's name in the source, which cases may bind again."""


def lower_match(checker: Checker, node: Match, name: str, typed: Typed) -> Node:
    """Return the choices of a match. ``name`` is the hidden variable of its subject."""
    shadowable = typed.expression.name if isinstance(typed.expression, Ref) else None
    subject = _Subject(name, typed.type, shadowable)
    _check_names(checker, node)
    types = [_case_type(checker, case.pattern) for case in node.cases]
    _check_exhaustive(checker, node, subject, types)
    start, end = node.cases[0].start, node.cases[0].end
    message = Literal(start, end, StringConst("Match error"))
    result: Node = Apply(start, end, "throw", (message,))
    remaining = _remaining(subject.type, types)
    for case, type_ in zip(reversed(node.cases), reversed(types), strict=True):
        body = _body(checker, case, type_, subject, remaining)
        result = _guarded(checker, case, type_, subject, body, result)
    return result


# --- checks ---------------------------------------------------------------------------------------


def _check_names(checker: Checker, node: Match) -> None:
    defaults = 0
    for case in node.cases:
        pattern = case.pattern
        _check_generics(checker, pattern)
        if isinstance(pattern, Binding):
            if pattern.name in checker.library.types:
                raise checker.source.error(
                    pattern.start,
                    f"a case binds the name {pattern.name!r}, which is a type",
                    f"write `case _: {pattern.name} => ...`",
                )
            defaults += pattern.type is None
    if defaults > 1:
        raise checker.source.error(node.start, f"{defaults} default cases", "keep the last one")


def _check_generics(checker: Checker, pattern: PatternNode) -> None:
    """Reject list types other than ``List[Any]``: elements are not tested at run time."""
    if isinstance(pattern, Binding) and pattern.type is not None:
        _check_generic_type(checker, pattern.type)
    elif isinstance(pattern, TuplePattern):
        for item in pattern.items:
            _check_generics(checker, item)
    elif isinstance(pattern, ObjectPattern):
        for _, part in pattern.fields:
            _check_generics(checker, part)


def _check_generic_type(checker: Checker, type_: TypeNode) -> None:
    if isinstance(type_, UnionType | TupleType):
        for each in type_.members if isinstance(type_, UnionType) else type_.items:
            _check_generic_type(checker, each)
    elif isinstance(type_, NamedType) and type_.parameter is not None and not _is_any_list(type_):
        raise checker.source.error(
            type_.start, "a case cannot ask what a list holds", "write List[Any]"
        )


def _is_any_list(type_: TypeNode) -> bool:
    return (
        isinstance(type_, NamedType)
        and type_.name == "List"
        and isinstance(type_.parameter, AnyType)
    )


def _case_type(checker: Checker, pattern: PatternNode) -> Type:
    if isinstance(pattern, Binding):
        if pattern.type is None:
            return union_of([])
        return checker.type_of(pattern.type, pattern.name)
    if isinstance(pattern, ObjectPattern):
        return checker.type_of(NamedType(pattern.start, pattern.start, pattern.type))
    return NOTHING


def _check_exhaustive(checker: Checker, node: Match, subject: _Subject, types: list[Type]) -> None:
    possible, matched = subject.type, types
    any_list = list_of(ANY)
    if any(each.key == any_list.key for each in types):
        matched = [each for each in types if each.key != any_list.key]
        alternatives = [ANY] if possible is ANY else [*members(possible)]
        possible = union_of([each for each in alternatives if not isinstance(each, ListOf)])
    united = union_of(matched)
    last = node.cases[-1].pattern
    default = isinstance(last, Binding) and (last.type is None or isinstance(last.type, AnyType))
    if not ((default and covers(possible, united)) or equivalent(possible, united)):
        tested = ", ".join(each.name for each in types if each.name) or "no type"
        raise checker.source.error(
            node.start,
            f"the cases do not fit {subject.type.name or 'the value'}: they ask for {tested}",
            "add the types that are missing, or `case _ => ...`, and drop those that cannot be",
        )


def _remaining(possible: Type, types: list[Type]) -> Type:
    """Return the type of the subject in a case without a type."""
    if possible is ANY:
        return ANY
    if isinstance(possible, UnionOf):
        taken = {each.key for each in types}
        return union_of([each for each in possible.members if each.key not in taken])
    return NOTHING


# --- bodies: the names that a case binds ----------------------------------------------------------


def _body(checker: Checker, case: Case, type_: Type, subject: _Subject, remaining: Type) -> Node:
    pattern = case.pattern
    if isinstance(pattern, Constants):
        return case.body
    if isinstance(pattern, Binding):
        if pattern.name is None:
            return case.body
        if isinstance(type_, UnionOf) and not type_.members:
            single = isinstance(remaining, UnionOf) and len(remaining.members) == 1
            type_ = members(remaining)[0] if single else remaining
        value = Name(case.start, case.end, subject.name)
        may_shadow = pattern.name == subject.shadowable
        let = LetNode(case.start, case.end, pattern.name, value, type_, may_shadow)
        return Declared(case.start, case.end, let, case.body)
    result = case.body
    for part in reversed(_parts(pattern)):
        if isinstance(part.pattern, Binding) and part.pattern.name is not None:
            let = _part_let(checker, part, part.pattern.name, subject)
            result = Declared(case.start, case.end, let, result)
    if isinstance(pattern, ObjectPattern):
        return _narrowed(pattern, type_, subject, result)
    return result


def _part_let(checker: Checker, part: _Part, name: str, subject: _Subject) -> LetNode:
    pattern = part.pattern
    assert isinstance(pattern, Binding)
    start, end = pattern.start, pattern.end
    type_ = union_of([]) if pattern.type is None else checker.type_of(pattern.type, name)
    field, owner = part.path[0]
    record = None if owner is None else checker.record_named(start, owner)
    declared = None if record is None else dict(fields_of(record)).get(field)
    if declared is not None:
        type_ = simplified(union_of([declared, type_]))
    value = _get(part.path, Name(start, end, subject.name), start, end)
    return LetNode(start, end, name, value, type_, name == subject.shadowable)


def _narrowed(pattern: ObjectPattern, type_: Type, subject: _Subject, body: Node) -> Node:
    start, end = pattern.start, pattern.end
    value = Name(start, end, subject.name)
    return Declared(start, end, LetNode(start, end, subject.name, value, type_, True), body)


def _parts(pattern: PatternNode) -> list[_Part]:
    if isinstance(pattern, Binding | Constants):
        return [_Part(pattern, ())]
    owner = pattern.type if isinstance(pattern, ObjectPattern) else None
    return [
        _Part(part.pattern, (*part.path, (field, owner)))
        for field, inner in _fields(pattern)
        for part in _parts(inner)
    ]


def _fields(pattern: TuplePattern | ObjectPattern) -> list[tuple[str, PatternNode]]:
    if isinstance(pattern, ObjectPattern):
        return [*pattern.fields]
    return [(f"_{number}", item) for number, item in enumerate(pattern.items, 1)]


def _get(path: tuple[tuple[str, str | None], ...], value: Node, start: int, end: int) -> Node:
    for field, _ in reversed(path):
        value = Field(start, end, value, field, True)
    return value


# --- conditions -----------------------------------------------------------------------------------


def _guarded(
    checker: Checker, case: Case, type_: Type, subject: _Subject, body: Node, further: Node
) -> Node:
    """Return the choice between a case and those after it."""
    start, end = case.start, case.end
    pattern = case.pattern
    value = Name(start, end, subject.name)
    if isinstance(pattern, Binding):
        whole = unfolded(type_)
        if whole is ANY or (isinstance(whole, UnionOf) and not whole.members):
            return body
        names = [each.name for each in (members(whole) or (whole,))]
        condition = _is_instance(value, names[0], start, end)
        for name in names[1:]:
            condition = _either(_is_instance(value, name, start, end), condition)
        return Choice(start, end, condition, body, further)
    if isinstance(pattern, Constants):
        compared: list[Node] = [
            Apply(start, end, "==", (constant, value)) for constant in pattern.values
        ]
        return Choice(start, end, _joined(compared), body, further)
    condition = _composite_condition(checker, pattern, type_, subject)
    return Choice(pattern.start, pattern.end, condition, body, further)


def _composite_condition(
    checker: Checker, pattern: TuplePattern | ObjectPattern, type_: Type, subject: _Subject
) -> Node:
    start, end = pattern.start, pattern.end
    value = Name(start, end, subject.name)
    parts = [_part_condition(checker, part, value) for part in _parts(pattern)]
    condition: Node = Truth(start, end, True)
    if parts:
        condition = parts[-1]
        for part in reversed(parts[:-1]):
            condition = _both(part, condition)
    if isinstance(pattern, ObjectPattern):
        check = _is_instance(value, pattern.type, start, end)
        return _both(check, _narrowed(pattern, type_, subject, condition))
    if len(_typed_groups(pattern)) != len(pattern.items):
        size = Literal(start, end, LongConst(len(pattern.items)))
        actual = Apply(start, end, "size", (value,))
        return _both(condition, Apply(start, end, "==", (actual, size)))
    checks = [_is_instance(value, name, start, end) for name in _tuple_type_names(pattern)]
    return _both(condition, reduce(_either, checks))


def _part_condition(checker: Checker, part: _Part, value: Node) -> Node:
    pattern = part.pattern
    start, end = pattern.start, pattern.end
    value = _get(part.path, value, start, end)
    if isinstance(pattern, Constants):
        compared: list[Node] = []
        for constant in pattern.values:
            if checker.library.version >= _STRICT_CONSTANTS_SINCE:
                _check_constant(checker, constant)
            compared.append(Apply(start, end, "==", (constant, value)))
        return _joined(compared)
    names = _plain_names(pattern.type)
    if not names:
        return Truth(start, end, True)
    return _joined([_is_instance(value, name, start, end) for name in names])


def _check_constant(checker: Checker, node: Node) -> None:
    if isinstance(node, Literal | Truth | Name):
        return
    if isinstance(node, Apply) and node.name in checker.library.types:
        return
    raise checker.error(
        node, "a field can be compared with a constant only", "bind it and use if in the case"
    )


def _plain_names(type_: TypeNode | None) -> list[str]:
    """Return the names in a type by which values are tested; none for tuples and ``Any``."""
    if type_ is None:
        return []
    parts = type_.members if isinstance(type_, UnionType) else (type_,)
    return [
        _ANY_LIST if _is_any_list(part) else part.name
        for part in parts
        if isinstance(part, NamedType) and (part.parameter is None or _is_any_list(part))
    ]


def _typed_groups(pattern: TuplePattern | ObjectPattern) -> list[list[str]]:
    """Return the possible types of each part that has one."""
    groups: list[list[str]] = []
    for _, part in _fields(pattern):
        if isinstance(part, Binding):
            names = _plain_names(part.type)
            if names:
                groups.append(names[::-1])
        elif isinstance(part, Constants):
            groups.append([_constant_type(constant) for constant in reversed(part.values)])
        elif isinstance(part, TuplePattern):
            groups.append(_tuple_type_names(part))
        else:
            groups.append([part.type])
    return groups


def _tuple_type_names(pattern: TuplePattern) -> list[str]:
    groups = regrouped(_typed_groups(pattern))
    return [
        *dict.fromkeys(each[0] if len(each) == 1 else f"({', '.join(each)})" for each in groups)
    ]


def _constant_type(node: Node) -> str:
    if isinstance(node, Truth):
        return "Boolean"
    if isinstance(node, Literal):
        kinds = {LongConst: "Int", StringConst: "String", BytesConst: "ByteVector"}
        return kinds[type(node.value)]
    return "Any"


def _is_instance(value: Node, name: str, start: int, end: int) -> Node:
    return Apply(start, end, _IS_INSTANCE_OF, (value, Literal(start, end, StringConst(name))))


def _either(one: Node, other: Node) -> Node:
    return Choice(one.start, one.end, one, Truth(one.start, one.end, True), other)


def _both(one: Node, other: Node) -> Node:
    return Choice(one.start, one.end, one, other, Truth(one.start, one.end, False))


def _joined(conditions: list[Node]) -> Node:
    result = conditions[-1]
    for condition in reversed(conditions[:-1]):
        result = _either(condition, result)
    return result
