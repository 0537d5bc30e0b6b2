"""The notation of types in the library's tables: ``List[A|B]``, ``(A, B)``, ``Int|Unit``.

What lives here: its parser. What does not: types in sources, which have positions and errors
(``type_syntax``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from soliton.ride.types import (
    GenericList,
    GenericTuple,
    GenericUnion,
    Parameter,
    Pattern,
    Type,
    list_of,
    tuple_of,
    union_of,
)

_MAX_TUPLE: Final = 22
_GENERIC: Final = (Parameter, GenericList, GenericTuple, GenericUnion)


def parse_type(text: str, names: Mapping[str, Type]) -> Pattern:
    """Parse a type; ``names`` are the types that it may use."""
    parts = [_single(part, names) for part in split_outside_brackets(text, "|")]
    if len(parts) == 1:
        return parts[0]
    if any(isinstance(part, _GENERIC) for part in parts):
        return GenericUnion(tuple(parts), "|".join(part.name for part in parts))
    return union_of([part for part in parts if not isinstance(part, _GENERIC)])


def _single(text: str, names: Mapping[str, Type]) -> Pattern:
    if text.startswith("List[") and text.endswith("]"):
        inner = parse_type(text[5:-1], names)
        if isinstance(inner, _GENERIC):
            return GenericList(inner, text)
        return list_of(inner)
    if text.startswith("("):
        return _tuple([parse_type(part, names) for part in split_outside_brackets(text[1:-1], ",")])
    if text == "Tuple":
        letters = [Parameter(chr(ord("A") + index)) for index in range(_MAX_TUPLE)]
        sizes = range(2, _MAX_TUPLE + 1)
        return GenericUnion(tuple(_tuple(letters[:size]) for size in sizes), "tuple")
    if len(text) == 1:
        return Parameter(text)
    return names[text]


def _tuple(items: list[Parameter] | list[Pattern]) -> Pattern:
    name = f"({', '.join(item.name for item in items)})"
    plain = [item for item in items if not isinstance(item, _GENERIC)]
    if len(plain) == len(items):
        return tuple_of(plain)
    return GenericTuple(tuple(items), name)


def split_outside_brackets(text: str, separator: str) -> list[str]:
    """Split at the separators that are outside of brackets, and strip the parts."""
    parts, depth, start = [], 0, 0
    for offset, char in enumerate(text):
        depth += (char in "[(") - (char in "])")
        if char == separator and not depth:
            parts.append(text[start:offset].strip())
            start = offset + 1
    return [*parts, text[start:].strip()]
