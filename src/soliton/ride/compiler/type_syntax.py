"""The syntax of types in sources: ``Int``, ``List[Int|String]``, ``(Int, String)``, ``Any``.

What lives here: the parser of types. What does not: their resolution (``checker``).

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
    source: Source, offset: int, keywords: AbstractSet[str], depth: int = 0
) -> tuple[TypeNode, int]:
    """Parse the type at an offset, after spaces; return it and the offset after it."""
    if depth > MAX_TYPE_NESTING:
        raise source.error(offset, f"a type nested more than {MAX_TYPE_NESTING} levels deep")
    blank = BLANK.match(source.text, offset)
    assert blank is not None
    offset = blank.end()
    start = offset
    if source.text.startswith("Any", offset):
        return AnyType(start, offset + 3), offset + 3
    parts: list[TypeNode] = []
    while True:
        part, end = _single(source, offset, keywords, depth)
        parts.append(part)
        offset = _after_gap(source, end)
        if not source.text.startswith("|", offset):
            return (parts[0] if len(parts) == 1 else UnionType(start, end, tuple(parts))), end
        offset = _after_gap(source, offset + 1)


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
    offset = start + 1
    while True:
        item, offset = parse_type_node(source, _after_gap(source, offset), keywords, depth + 1)
        items.append(item)
        offset = _after_gap(source, offset)
        if not source.text.startswith(",", offset):
            break
        offset += 1
    if not source.text.startswith(")", offset):
        raise source.error(offset, "expected )")
    if not 2 <= len(items) <= _MAX_TUPLE_SIZE:
        raise source.error(
            start, f"a tuple has 2 to {_MAX_TUPLE_SIZE} elements, this one has {len(items)}"
        )
    return TupleType(start, offset + 1, tuple(items)), offset + 1


def _after_gap(source: Source, offset: int) -> int:
    found = GAP.match(source.text, offset)
    assert found is not None
    return found.end()
