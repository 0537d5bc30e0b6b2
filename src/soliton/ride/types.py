"""The types of the source language and their algebra: union, subtyping, inference.

What lives here: the types and their operations. What does not: the types of the library
(``compiler.library``) and the syntax of types (``compiler.type_syntax``, ``compiler.type_text``).

Two types are equal if their ``key`` is. ``name`` is for messages and compiled scripts, and may be a
label. Several rules look odd (an empty union, a tuple that contains ``Any``). They are the
reference's, and compiled bytes depend on them.

Source: wavesplatform/Waves ``lang/shared/src/main/scala/com/wavesplatform/lang/v1/compiler/``
``{Types,TypeInferrer}.scala``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from typing import Final, TypeVar, Union

import msgspec

from soliton.ride.errors import RideError


class RideTypeError(RideError):
    """A type mismatch. The message is a clause that callers complete."""


class Plain(msgspec.Struct, frozen=True, eq=False):
    """A type without parts: ``Int``, ``String``, also ``Any`` and ``Nothing``."""

    name: str
    key: str


class ListOf(msgspec.Struct, frozen=True, eq=False):
    """A list of one type."""

    inner: Type
    name: str
    key: str


class TupleOf(msgspec.Struct, frozen=True, eq=False):
    """A tuple of 2 to 22 types."""

    items: tuple[Type, ...]
    name: str
    key: str


class UnionOf(msgspec.Struct, frozen=True, eq=False):
    """A union. One with a single member differs from that member."""

    members: tuple[Type, ...]
    name: str
    key: str


class Record(msgspec.Struct, frozen=True, eq=False):
    """An object type. A ``hidden`` one has no constructor."""

    name: str
    fields: tuple[tuple[str, Type], ...]
    hidden: bool
    key: str


class Parameter(msgspec.Struct, frozen=True):
    """A type variable of a library function."""

    name: str


class GenericList(msgspec.Struct, frozen=True, eq=False):
    """A list type that contains type variables."""

    inner: Pattern
    name: str


class GenericTuple(msgspec.Struct, frozen=True, eq=False):
    """A tuple type that contains type variables."""

    items: tuple[Pattern, ...]
    name: str


class GenericUnion(msgspec.Struct, frozen=True, eq=False):
    """A union type that contains type variables."""

    members: tuple[Pattern, ...]
    name: str


Type = Union[Plain, ListOf, TupleOf, UnionOf, Record]  # noqa: UP007 - it is recursive
Pattern = Union[Type, Parameter, GenericList, GenericTuple, GenericUnion]  # noqa: UP007

_Item = TypeVar("_Item")
_SMALL_SET: Final = 4

MAX_TYPE_CHARS: Final = 4_096
"""The limit of a type's text, which can double with each declaration."""
MAX_ALTERNATIVES: Final = 4_096
"""The limit of alternatives of a tuple of unions, whose number multiplies with each item."""

ANY: Final = Plain("Any", "Any")
NOTHING: Final = Plain("Nothing", "Nothing")
INT: Final = Plain("Int", "Int")
BIG_INT: Final = Plain("BigInt", "BigInt")
BYTES: Final = Plain("ByteVector", "ByteVector")
BOOLEAN: Final = Plain("Boolean", "Boolean")
STRING: Final = Plain("String", "String")


def list_of(inner: Type) -> ListOf:
    """Return the list type; raise ``RideTypeError`` if it is too large."""
    return ListOf(inner, f"List[{inner.name}]", _bounded(f"List[{inner.key}]"))


def tuple_of(items: Iterable[Type]) -> TupleOf:
    """Return the tuple type; raise ``RideTypeError`` if it is too large."""
    parts = tuple(items)
    names = ", ".join(item.name for item in parts)
    key = _bounded(f"({', '.join(item.key for item in parts)})")
    return TupleOf(parts, f"({names})", key)


def _bounded(key: str) -> str:
    if len(key) > MAX_TYPE_CHARS:
        raise RideTypeError(f"the type has more than {MAX_TYPE_CHARS} characters")
    return key


def record(name: str, fields: Iterable[tuple[str, Type]] = (), hidden: bool = False) -> Record:
    """Return an object type."""
    return Record(name, tuple(fields), hidden, name)


UNIT: Final = record("Unit")


def union_of(types: Iterable[Type], label: str | None = None) -> Type:
    """Return a union, flattened by one level; ``Any`` if a member is ``Any``."""
    flat: list[Type] = []
    for each in types:
        if each is ANY:
            return ANY
        if isinstance(each, UnionOf):
            flat.extend(each.members)
        elif each is not NOTHING:
            flat.append(each)
    return _distinct_union(flat, label)


def _distinct_union(types: Iterable[Type], label: str | None = None) -> UnionOf:
    seen: dict[str, Type] = {}
    for member in types:
        seen.setdefault(_identity(member), member)
    kept = tuple(seen.values())
    # By name, as in the reference; types of the same name keep their order.
    ordered = sorted(kept, key=lambda member: member.name)
    name = label if label is not None else "|".join(member.name for member in ordered)
    return UnionOf(kept, name, _bounded("{" + "|".join(member.key for member in ordered) + "}"))


def _identity(type_: Type) -> str:
    """Return the identity of a type in the reference's sets. It includes the order and the label of
    a union, although types that differ only in these are equal.
    """
    match type_:
        case ListOf(inner):
            return f"List[{_identity(inner)}]"
        case TupleOf(items):
            return f"({', '.join(map(_identity, items))})"
        case UnionOf(alternatives, name):
            return f"{name}{{{'|'.join(map(_identity, alternatives))}}}"
    return type_.key


def _joined(types: Iterable[Type]) -> list[Type]:
    """Remove duplicates: by equality in a small set, by identity in a larger one."""
    found: list[Type] = []
    for each in types:
        if len(found) <= _SMALL_SET:
            known = any(each.key == other.key for other in found)
        else:
            known = any(_identity(each) == _identity(other) for other in found)
        if not known:
            found.append(each)
    return found


def simplified(union: Type) -> Type:
    """Replace a union of one member with that member; raise ``RideTypeError`` for an empty one."""
    if isinstance(union, UnionOf):
        if not union.members:
            raise RideTypeError("the union is empty")
        if len(union.members) == 1:
            return union.members[0]
    return union


def members(type_: Type) -> tuple[Type, ...]:
    """Return the alternatives of a type; ``Any`` and ``Nothing`` have none."""
    if isinstance(type_, UnionOf):
        return type_.members
    return () if type_ is ANY or type_ is NOTHING else (type_,)


def fields_of(type_: Type) -> tuple[tuple[str, Type], ...]:
    """Return the fields of a type that is not a union."""
    if isinstance(type_, Record):
        return type_.fields
    if isinstance(type_, TupleOf):
        return tuple((f"_{number}", item) for number, item in enumerate(type_.items, 1))
    return ()


def field_type(type_: Type, field: str) -> Type | None:
    """Return the type of a field, or ``None`` unless all alternatives have it; ``Nothing`` if there
    are no alternatives.
    """
    found = []
    for alternative in members(type_):
        for name, of in fields_of(alternative):
            if name == field:
                found.append(of)
                break
        else:
            return None
    return common_of_all(found)


def regrouped(groups: Sequence[Sequence[_Item]]) -> list[tuple[_Item, ...]]:
    """Return the Cartesian product of the groups; as in the reference, an empty group resets it.

    Raises ``RideTypeError`` for more than ``MAX_ALTERNATIVES``.
    """
    product: list[tuple[_Item, ...]] = []
    for group in groups:
        if len(product) * len(group) > MAX_ALTERNATIVES:
            raise RideTypeError(f"the type stands for more than {MAX_ALTERNATIVES} others")
        if product:
            product = [(*items, item) for items in product for item in group]
        else:
            product = [(item,) for item in group]
    return product


def unfolded(type_: Type) -> Type:
    """Convert tuples of unions to unions of tuples."""
    if isinstance(type_, TupleOf):
        product = regrouped([members(item) for item in type_.items])
        return simplified(union_of(map(tuple_of, product)))
    if isinstance(type_, UnionOf):
        parts: list[Type] = []
        for member in type_.members:
            whole = unfolded(member) if isinstance(member, TupleOf) else member
            parts.extend(members(unfolded(whole)) if isinstance(whole, UnionOf) else [whole])
        return union_of(parts)
    return type_


def equivalent(one: Type, other: Type) -> bool:
    """Whether two types have the same values."""
    if isinstance(one, TupleOf) and isinstance(other, TupleOf):
        if len(one.items) != len(other.items):
            return False
        whole = unfolded(one)
        if whole.key == one.key:
            return all(map(equivalent, one.items, other.items))
        return equivalent(whole, unfolded(other))
    if isinstance(one, ListOf) and isinstance(other, ListOf):
        return equivalent(one.inner, other.inner)
    united = isinstance(one, UnionOf), isinstance(other, UnionOf)
    if united == (True, True):
        first, second = members(one), members(other)
        return len(first) == len(second) and all(
            map(equivalent, _sorted(unfolded(one)), _sorted(unfolded(other)))
        )
    if united == (False, False) and one is not ANY and other is not ANY:
        return one.key == other.key
    return equivalent(_distinct_union(members(one)), _distinct_union(members(other)))


def _sorted(type_: Type) -> list[Type]:
    return sorted(members(type_), key=lambda member: member.name)


def covers(wide: Type, narrow: Type) -> bool:
    """Whether ``narrow`` is a subtype of ``wide``."""
    if wide is ANY or wide is narrow:
        return True
    if isinstance(narrow, UnionOf):
        return all(covers(wide, member) for member in narrow.members)
    if isinstance(wide, UnionOf):
        return any(covers(member, narrow) for member in wide.members)
    if narrow is ANY:
        return False
    if narrow is NOTHING:
        return True
    if wide is NOTHING:
        return False
    if isinstance(wide, ListOf) and isinstance(narrow, ListOf):
        return covers(wide.inner, narrow.inner)
    if isinstance(wide, TupleOf) and isinstance(narrow, TupleOf):
        return len(wide.items) == len(narrow.items) and all(map(covers, wide.items, narrow.items))
    return equivalent(wide, narrow)


def common(one: Type, other: Type, *, merge_tuples: bool = True) -> Type:
    """Return the common type of two branches."""
    if one is ANY or other is ANY:
        return ANY
    if other is NOTHING or one.key == other.key:
        return one
    if one is NOTHING:
        return other
    if isinstance(one, UnionOf) and isinstance(other, UnionOf):
        return union_of(_joined((*one.members, *other.members)))
    if isinstance(one, UnionOf) or isinstance(other, UnionOf):
        union, rest = (one, other) if isinstance(one, UnionOf) else (other, one)
        if any(member.key == rest.key for member in members(union)):
            return union
        return union_of([*members(union), rest])
    if isinstance(one, ListOf) and isinstance(other, ListOf):
        return list_of(common(one.inner, other.inner, merge_tuples=merge_tuples))
    if (
        merge_tuples
        and isinstance(one, TupleOf)
        and isinstance(other, TupleOf)
        and len(one.items) == len(other.items)
    ):
        return tuple_of(map(common, one.items, other.items))
    return union_of([one, other])


def common_of_all(types: Sequence[Type]) -> Type:
    """Return the common type of several branches."""
    if not types:
        return NOTHING
    return reduce(lambda found, each: common(each, found), reversed(types[:-1]), types[-1])


# --- inference of the type variables of a library function ----------------------------------------

_Found = tuple[str, Type]


def infer(pairs: Sequence[tuple[Type, Pattern]]) -> dict[str, Type]:
    """Infer type variables from pairs of given and expected types; raise ``RideTypeError`` if they
    do not match.
    """
    found: dict[str, list[Type]] = {}
    for given, expected in pairs:
        match_ = _match(given, expected, given.name, expected.name)
        if match_ is not None:
            found.setdefault(match_[0], []).append(match_[1])
    return {name: _resolved(name, types) for name, types in found.items()}


def _resolved(name: str, types: list[Type]) -> Type:
    if len(types) == 1:
        result = types[0]
    else:
        result = reduce(common, types)
        if isinstance(result, TupleOf):
            possible = _tuples_merge([each for each in types if isinstance(each, TupleOf)], result)
        elif isinstance(result, UnionOf):
            possible = any(all(covers(each, part) for each in types) for part in result.members)
        else:
            possible = True
        if not possible:
            given = ", ".join(each.name for each in types)
            raise RideTypeError(f"{name} cannot be all of: {given}")
    if isinstance(result, UnionOf) and len(result.members) == 1:
        return result.members[0]
    return result


def _tuples_merge(tuples: list[TupleOf], merged: TupleOf) -> bool:
    for index, item in enumerate(merged.items):
        sources = [each.items[index] for each in tuples]
        if isinstance(item, TupleOf):
            if not _tuples_merge([each for each in sources if isinstance(each, TupleOf)], item):
                return False
        elif len(members(item)) >= sum(len(members(each)) for each in sources):
            return False
    return True


def _match(given: Type, expected: Pattern, given_name: str, wanted: str) -> _Found | None:
    if isinstance(expected, Parameter):
        return expected.name, given
    mismatch = RideTypeError(f"expected {wanted}, found {given_name}")
    if isinstance(expected, GenericList):
        if isinstance(given, ListOf):
            return _match(given.inner, expected.inner, given_name, wanted)
        if not isinstance(given, UnionOf):
            raise mismatch
        inner: list[Type] = []
        for member in given.members:
            if (
                not isinstance(member, ListOf)
                or member.inner is ANY
                or isinstance(member.inner, UnionOf)
            ):
                raise mismatch
            inner.insert(0, member.inner)
        return _match(union_of(inner), expected.inner, given_name, wanted)
    if isinstance(expected, GenericTuple):
        if not isinstance(given, TupleOf):
            raise mismatch
        _match_tuples(given.items, expected.items, mismatch)
        return None
    if isinstance(expected, GenericUnion):
        return _match_union(given, expected, given_name, wanted)
    if isinstance(given, UnionOf) and not isinstance(expected, UnionOf) and expected is not ANY:
        found = None
        for member in given.members:
            found = _match(member, expected, given_name, wanted)
        return found
    if isinstance(expected, ListOf) and isinstance(given, ListOf):
        return _match(given.inner, expected.inner, given_name, wanted)
    if isinstance(expected, TupleOf) and isinstance(given, TupleOf):
        _match_tuples(given.items, expected.items, mismatch)
        return None
    if not covers(expected, given):
        raise mismatch
    return None


def _match_tuples(
    given: Sequence[Type], expected: Sequence[Pattern], mismatch: RideTypeError
) -> None:
    if len(given) != len(expected):
        raise mismatch
    for one, pattern in zip(given, expected, strict=True):
        _match(one, pattern, one.name, pattern.name)


def _match_union(
    given: Type, expected: GenericUnion, given_name: str, wanted: str
) -> _Found | None:
    """Match what the plain alternatives of a union do not cover with its one type variable."""
    generic = (Parameter, GenericList, GenericTuple, GenericUnion)
    plain = union_of([each for each in expected.members if not isinstance(each, generic)])
    if covers(plain, union_of(members(given))):
        return None
    rest = given
    if isinstance(given, UnionOf):
        known = {each.key for each in members(plain)}
        rest = union_of([each for each in given.members if each.key not in known])
    matches: list[_Found | None] = []
    for pattern in expected.members:
        if isinstance(pattern, generic):
            try:
                matches.append(_match(rest, pattern, given_name, wanted))
            except RideTypeError:
                continue
    if len(matches) % 2 != 1:
        raise RideTypeError(f"expected {expected.name}, found {given.name}")
    return matches[-1]


def with_parameters(pattern: Pattern, found: Mapping[str, Type]) -> Type:
    """Substitute the type variables of a result type."""
    match pattern:
        case Parameter(name):
            if name not in found:
                raise RideTypeError(f"nothing says what {name} is")
            return found[name]
        case GenericList(inner):
            return list_of(with_parameters(inner, found))
        case GenericTuple(items):
            return tuple_of(with_parameters(item, found) for item in items)
        case GenericUnion(parts):
            return union_of([with_parameters(part, found) for part in parts])
        case _:
            return pattern
