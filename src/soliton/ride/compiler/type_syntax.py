"""Types as sources write them: ``Int``, ``List[Int|String]``, ``(Int, String)``, ``Any``.

What lives here: the notation. What does not: which types there are (``checker``).

Source: wavesplatform/Waves
``lang/shared/src/main/scala/com/wavesplatform/lang/v1/parser/Parser.scala``.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import Final

from soliton.ride.compiler.errors import Source
from soliton.ride.compiler.literals import BLANK, GAP, NAME
from soliton.ride.compiler.syntax import AnyType, NamedType, TupleType, TypeNode, UnionType

MAX_TYPE_NESTING: Final = 50
_MAX_TUPLE_SIZE: Final = 22


def parse_type_node(
    source: Source, place: int, keywords: AbstractSet[str], depth: int = 0
) -> tuple[TypeNode, int]:
    """The type at an offset or the spaces there, and the offset after it."""
    if depth > MAX_TYPE_NESTING:
        raise source.error(place, f"a type nested more than {MAX_TYPE_NESTING} levels deep")
    blank = BLANK.match(source.text, place)
    assert blank is not None
    place = blank.end()
    start = place
    if source.text.startswith("Any", place):
        return AnyType(start, place + 3), place + 3
    parts: list[TypeNode] = []
    while True:
        part, end = _single(source, place, keywords, depth)
        parts.append(part)
        place = _after_gap(source, end)
        if not source.text.startswith("|", place):
            return (parts[0] if len(parts) == 1 else UnionType(start, end, tuple(parts))), end
        place = _after_gap(source, place + 1)


def _single(
    source: Source, start: int, keywords: AbstractSet[str], depth: int
) -> tuple[TypeNode, int]:
    text = source.text
    if text.startswith("(", start):
        return _tuple(source, start, keywords, depth)
    found = NAME.match(text, start)
    if found is None or found.group() in keywords:
        raise source.error(start, "expected a type", "types are Int, String, List[Int], ...")
    end = found.end()
    if not text.startswith("[", end):
        return NamedType(start, end, found.group()), end
    parameter, end = parse_type_node(source, end + 1, keywords, depth + 1)
    if not text.startswith("]", end):
        raise source.error(end, "expected ]")
    return NamedType(start, end + 1, found.group(), parameter), end + 1


def _tuple(
    source: Source, start: int, keywords: AbstractSet[str], depth: int
) -> tuple[TypeNode, int]:
    items = []
    place = start + 1
    while True:
        item, place = parse_type_node(source, _after_gap(source, place), keywords, depth + 1)
        items.append(item)
        place = _after_gap(source, place)
        if not source.text.startswith(",", place):
            break
        place += 1
    if not source.text.startswith(")", place):
        raise source.error(place, "expected )")
    if not 2 <= len(items) <= _MAX_TUPLE_SIZE:
        raise source.error(
            start, f"a tuple has 2 to {_MAX_TUPLE_SIZE} elements, this one has {len(items)}"
        )
    return TupleType(start, place + 1, tuple(items)), place + 1


def _after_gap(source: Source, place: int) -> int:
    found = GAP.match(source.text, place)
    assert found is not None
    return found.end()
