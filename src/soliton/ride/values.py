"""The run-time values of scripts, their weights and their equality.

==============  ===================================================================================
Int             ``int`` (64 bits, signed; functions check the range of their results)
BigInt          ``BigInt``
Boolean         ``bool``, a subclass of ``int``: test for integers with ``type(value) is int``
ByteVector      ``bytes``
String          ``str``, which may contain lone surrogates (the reference's strings are UTF-16):
                encode with ``utf8(text)``, never with ``.encode()``; rarely ``WeighedText``: test
                for strings with ``isinstance`` or ``kind_of(value) is str``
List            ``RideList``, created by ``ride_list`` (checks weight, optionally length)
Unit            ``UNIT``, a singleton without fields: test with ``value is UNIT``
tuples          ``CaseObject`` of type ``Tuple`` with the fields ``_1``, ``_2``...; ``ride_tuple``
all others      ``CaseObject``, created by ``case_object`` (checks weight)
==============  ===================================================================================

Values are immutable and store their weight. Lists can be nested thousands of levels deep, so
``equal`` and other traversals must not recurse.

Source: wavesplatform/Waves
``lang/shared/src/main/scala/com/wavesplatform/lang/v1/compiler/Terms.scala`` and
``v1/ContractLimits.scala``.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Final, Union

import msgspec

from soliton.ride.errors import EvaluationError, EvaluationEscaped

MAX_STRING_BYTES: Final = 32_767
MAX_BYTES: Final = 32_767
MAX_DATA_TRANSACTION_BYTES: Final = 153_600
MAX_DATA_TRANSACTION_PROTOBUF_BYTES: Final = 165_947
MAX_LIST_LENGTH: Final = 1_000
MAX_WEIGHT: Final = 344_764
"""The limit of a list or object."""
MAX_COMPARED_WEIGHT: Final = 13_000
"""Two values that are both heavier than this cannot be compared."""
OBJECT_WEIGHT: Final = 40
FIELD_WEIGHT: Final = 30
EMPTY_LIST_WEIGHT: Final = 20
ELEMENT_WEIGHT: Final = 20
MIN_BIG_INT: Final = -(2**511)
MAX_BIG_INT: Final = 2**511 - 1
TUPLE: Final = "Tuple"


class BigInt(msgspec.Struct, frozen=True, gc=False):
    """A 512-bit signed integer."""

    value: int


class RideList(msgspec.Struct, frozen=True, gc=False):
    """A list with its weight."""

    items: tuple[Value, ...]
    weight: int


class CaseObject(msgspec.Struct, frozen=True, gc=False):
    """An object: the name of its type, its fields (do not modify), its weight."""

    type_name: str
    fields: dict[str, Value]
    weight: int


Value = Union[int, bool, str, bytes, BigInt, RideList, CaseObject]  # noqa: UP007 - it is recursive

UNIT: Final = CaseObject("Unit", {}, OBJECT_WEIGHT)
NIL: Final = RideList((), EMPTY_LIST_WEIGHT)


class WeighedText(str):
    """A string with another weight than its bytes, since ``+`` adds weights: two halves of a
    surrogate pair weigh one each, and the character that they become has four bytes.
    """

    __slots__ = ("weight",)
    weight: AddedWeight


class AddedWeight(int):
    """The weight of a ``WeighedText``, or a sum with one: it is equal to any weight, so that lists
    and objects with the same content are equal whatever they weigh.
    """

    __slots__ = ()
    __hash__ = int.__hash__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, int)

    def __ne__(self, other: object) -> bool:
        return not isinstance(other, int)

    def __add__(self, other: int) -> AddedWeight:
        return AddedWeight(int(self) + int(other))

    __radd__ = __add__

    def __sub__(self, other: int) -> AddedWeight:
        return AddedWeight(int(self) - int(other))

    def __rsub__(self, other: int) -> AddedWeight:
        return AddedWeight(int(other) - int(self))


def weighed_text(text: str, weight_of_parts: int) -> str:
    """Return the string with this weight."""
    size = int(weight_of_parts)
    if weight(text) == size:
        return text
    weighed = WeighedText(text)
    weighed.weight = AddedWeight(size)
    return weighed


def kind_of(value: Value | None) -> type:
    """Return the Python type that stands for the type of a value."""
    kind = type(value)
    return str if kind is WeighedText else kind


def utf8(text: str) -> bytes:
    """Encode a string; as on the JVM, a lone surrogate becomes a question mark."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        return joined(text).encode("utf-8", "replace")


def joined(text: str) -> str:
    """Combine the surrogate pairs of a string into characters."""
    # Decoders of UTF-16 call Python for each lone surrogate, which takes twenty times as long.
    combined: str = json.loads(json.dumps(text))
    return combined


def weight(value: Value) -> int:
    """Return the weight of a value, by which the limits measure its size."""
    kind = type(value)
    if kind is str:
        # Values contain no pairs of surrogates, see ``joined``.
        text: str = value  # type: ignore[assignment]
        return len(text) if text.isascii() else len(text.encode("utf-8", "replace"))
    if kind is bytes:
        return len(value)  # type: ignore[arg-type]
    if kind is int:
        return 8
    if kind is bool:
        return 1
    if kind is BigInt:
        return 64
    return value.weight  # type: ignore[union-attr]


def ride_list(items: Iterable[Value], limited: bool = False) -> RideList:
    """Create a list; raise ``EvaluationError`` if it is too heavy or, if ``limited``, too long."""
    elements = tuple(items)
    if limited and len(elements) > MAX_LIST_LENGTH:
        raise EvaluationError(f"List size should not exceed {MAX_LIST_LENGTH}")
    total = EMPTY_LIST_WEIGHT + ELEMENT_WEIGHT * len(elements)
    for element in elements:
        total += weight(element)
    return weighed_list(elements, total)


def weighed_list(elements: tuple[Value, ...], total: int) -> RideList:
    """Create a list whose weight is known; raise ``EvaluationError`` if it is too heavy."""
    if total > MAX_WEIGHT:
        raise EvaluationError(f"The list is too heavy. Actual weight: {total}, limit: {MAX_WEIGHT}")
    return RideList(elements, total)


def case_object(type_name: str, fields: dict[str, Value]) -> CaseObject:
    """Create an object; raise ``EvaluationEscaped`` if it is too heavy.

    The evaluator converts that error to ``NativeCrash`` when a library function raises it.
    """
    total = OBJECT_WEIGHT + FIELD_WEIGHT * len(fields)
    for value in fields.values():
        total += weight(value)
    if total > MAX_WEIGHT:
        raise EvaluationEscaped(
            f"the object {type_name} is too heavy. Actual weight: {total}, limit: {MAX_WEIGHT}"
        )
    return CaseObject(type_name, fields, total)


def ride_tuple(*items: Value) -> CaseObject:
    """Create a tuple of two or more values."""
    return case_object(TUPLE, {f"_{number}": item for number, item in enumerate(items, 1)})


def type_name(value: Value) -> str:
    """Return the name of a value's type; for lists and tuples without the types of elements."""
    kind = kind_of(value)
    if kind is CaseObject:
        return value.type_name  # type: ignore[union-attr]
    return _TYPE_NAMES[kind]


_TYPE_NAMES: Final[dict[type, str]] = {
    int: "Int",
    bool: "Boolean",
    str: "String",
    bytes: "ByteVector",
    BigInt: "BigInt",
    RideList: "List[Any]",
}


_SIMPLE_TYPES: Final = frozenset((int, bool, str, bytes))


def equal(left: Value, right: Value) -> bool:
    """Whether two values are equal in type and content; there is no limit on weight."""
    stack: list[tuple[Value, Value]] = []
    one, other = left, right
    while True:
        if one is not other:
            kind = type(one)
            if kind is not type(other) and kind_of(one) is not kind_of(other):
                return False
            if kind is RideList:
                mine, theirs = one.items, other.items  # type: ignore[union-attr]
                if len(mine) != len(theirs):
                    return False
                if len(mine) == 1:
                    # Chains of lists have no other length.
                    one, other = mine[0], theirs[0]
                    continue
                types = list(map(type, mine))
                if not _SIMPLE_TYPES.issuperset(types):
                    stack.extend(zip(mine, theirs, strict=True))
                elif mine != theirs or types != list(map(kind_of, theirs)):
                    return False
            elif kind is CaseObject:
                if one.type_name != other.type_name:  # type: ignore[union-attr]
                    return False
                fields, others = one.fields, other.fields  # type: ignore[union-attr]
                if fields.keys() != others.keys():
                    return False
                for name, field in fields.items():
                    stack.append((field, others[name]))
            elif one != other:
                return False
        if not stack:
            return True
        one, other = stack.pop()
