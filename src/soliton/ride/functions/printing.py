"""The text form of values, in ``makeString`` until version 5 and in error messages.

What lives here: the reference's two forms. What does not: values in JSON (the API) and in source
code (``soliton.ride.decompiler``).

Fields of objects are in the iteration order of the reference's hash map.

Source: wavesplatform/Waves
``lang/shared/src/main/scala/com/wavesplatform/lang/v1/compiler/TermPrinter.scala``.
"""

from __future__ import annotations

import base64
from functools import lru_cache
from typing import Final

from soliton.crypto import base58
from soliton.ride.hash_order import hash_map_order
from soliton.ride.values import BigInt, CaseObject, RideList, Value

MAX_BASE58_IN_OBJECTS: Final = 1024
"""Up to this length, bytes inside lists and objects are written in Base58."""
MAX_BASE58_ALONE: Final = 1023
"""Up to this length, bytes that are the whole value are written in Base58."""
MAX_PRINTED_CHARS: Final = 200_000
"""More than a string may have that a function returns. By indentation, texts of objects within one
another grow with the square of their depth: a script could have fifty megabytes printed.
"""

_ESCAPES: Final = str.maketrans(
    {
        "\\": "\\\\",
        "/": "\\/",
        "'": "\\'",
        '"': '\\"',
        "\n": "\\n",
        "\r": "\\r",
        "\t": "\\t",
        "\b": "\\b",
        "\f": "\\f",
        "\u2028": "\\u2028",
        "\u2029": "\\u2029",
    }
)


def plain_text(value: Value) -> str:
    """Return the text of a value: strings without quotes, bytes in Base58."""
    if isinstance(value, str):
        return str(value)
    if isinstance(value, bytes):
        if len(value) <= MAX_BASE58_ALONE:
            return base58.encode(value)
        return "base64:" + base64.b64encode(value).decode()
    return nested_text(value)


def nested_text(value: Value, depth: int | None = None, limit: int = MAX_PRINTED_CHARS) -> str:
    """Return the text of a value inside a list or object: strings in quotes. With a ``depth`` of
    indentation, lists are written line by line, too. The text ends soon after ``limit`` characters.
    """
    parts: list[str] = []
    list_parts = _list_parts if depth is None else _lines
    # An explicit stack: values can be nested more deeply than Python's.
    stack: list[tuple[Value | str, int, bool]] = [(value, depth or 0, True)]
    while stack and limit >= 0:
        item, depth, is_value = stack.pop()
        if isinstance(item, RideList):
            stack.extend(reversed(list_parts(item, depth)))
        elif isinstance(item, CaseObject):
            stack.extend(reversed(_object_parts(item, depth)))
        else:
            text = _simple_text(item) if is_value else str(item)
            parts.append(text)
            limit -= len(text)
    return "".join(parts)


def _simple_text(value: Value) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return f'"{value.translate(_ESCAPES)}"'
        case bytes() if len(value) > MAX_BASE58_IN_OBJECTS:
            return f"base64'{base64.b64encode(value).decode()}'"
        case bytes():
            return f"base58'{base58.encode(value)}'"
        case BigInt():
            return str(value.value)
        case _:
            return str(value)


def _lines(value: RideList, depth: int) -> list[tuple[Value | str, int, bool]]:
    if not value.items:
        return [("[]", 0, False)]
    first = "\n" + "\t" * (depth + 1)
    later = "," + first
    parts: list[tuple[Value | str, int, bool]] = [("[", 0, False)]
    for index, item in enumerate(value.items):
        parts.append((later if index else first, 0, False))
        parts.append((item, depth + 1, True))
    parts.append(("\n" + "\t" * depth + "]", 0, False))
    return parts


def _list_parts(value: RideList, _depth: int) -> list[tuple[Value | str, int, bool]]:
    parts: list[tuple[Value | str, int, bool]] = [("[", 0, False)]
    for index, item in enumerate(value.items):
        if index:
            parts.append((", ", 0, False))
        parts.append((item, 0, True))
    parts.append(("]", 0, False))
    return parts


def _object_parts(value: CaseObject, depth: int) -> list[tuple[Value | str, int, bool]]:
    parts: list[tuple[Value | str, int, bool]] = [(value.type_name, 0, False)]
    if value.fields:
        parts.append(("(\n", 0, False))
        indent = "\t" * (depth + 1)
        for name in _field_order(tuple(value.fields)):
            parts.append((f"{indent}{name} = ", 0, False))
            parts.append((value.fields[name], depth + 1, True))
            parts.append(("\n", 0, False))
        parts.append(("\t" * depth + ")", 0, False))
    return parts


@lru_cache(maxsize=512)
def _field_order(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(hash_map_order(list(names)))
