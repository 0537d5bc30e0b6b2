"""Functions on String: length, slices, searching, splitting and joining.

What does not live here: conversion of numbers and bytes (``conversions``, ``encodings``).

The reference's strings are UTF-16. Versions 1 to 4 of the language measure them in code units
before the feature of the switch ``code_points``, and in code points since; version 5 and later
always in code points. Here strings never contain adjacent halves of a surrogate pair (see
``joined``), so equal strings have equal representations. To count code units, characters beyond the
basic plane are split (``_units``).

Source: wavesplatform/Waves ``lang/shared/src/main/scala/com/wavesplatform/lang/v1/evaluator/ctx/
impl/PureContext.scala``.
"""

from __future__ import annotations

from typing import Final

from soliton.ride.environment import CallContext
from soliton.ride.errors import EvaluationError, NativeCrash
from soliton.ride.functions.printing import plain_text
from soliton.ride.values import (
    ELEMENT_WEIGHT,
    EMPTY_LIST_WEIGHT,
    MAX_LIST_LENGTH,
    MAX_STRING_BYTES,
    UNIT,
    RideList,
    Value,
    WeighedText,
    joined,
    kind_of,
    ride_list,
    utf8,
    weighed_text,
    weight,
)

_FIRST_SURROGATE: Final = "\ud800"
_FIRST_LOW_SURROGATE: Final = "\udc00"
_LAST_SURROGATE: Final = "\udfff"


def checked_text(text: str, limit: int = MAX_STRING_BYTES) -> str:
    """Return the string; raise ``EvaluationError`` if it exceeds the limit."""
    size = len(text) if text.isascii() else len(utf8(text))
    if size > limit:
        raise EvaluationError(f"String size={size} exceeds {limit} bytes")
    return text


def units_length(text: str) -> int:
    """Return the length in UTF-16 code units."""
    if text.isascii():
        return len(text)
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def _units(text: str) -> str:
    """Return the string with one character per UTF-16 code unit."""
    if text.isascii() or units_length(text) == len(text):
        return text
    data = text.encode("utf-16-le", "surrogatepass")
    return "".join(
        chr(int.from_bytes(data[start : start + 2], "little")) for start in range(0, len(data), 2)
    )


def _is_well_formed(text: str) -> bool:
    if text.isascii():
        return True
    return not any(_FIRST_SURROGATE <= character <= _LAST_SURROGATE for character in text)


def add(left: str, right: str) -> str:
    """``+`` of String."""
    size = weight(left) + weight(right)
    if size > MAX_STRING_BYTES:
        raise EvaluationError(f"String size = {size} exceeds {MAX_STRING_BYTES} bytes")
    text = left + right
    if left and right and _FIRST_SURROGATE <= left[-1] < _FIRST_LOW_SURROGATE <= right[0]:
        return weighed_text(joined(text), size)
    if type(left) is WeighedText or type(right) is WeighedText:
        return weighed_text(text, size)
    return text


def size(text: str) -> Value:
    """``size``, in code points."""
    return len(text)


def size_before(context: CallContext, text: str) -> Value:
    """``size`` in versions 1 to 4."""
    return len(text) if context.switches.code_points else units_length(text)


def take(text: str, count: int) -> Value:
    """``take`` in version 5; the count is clamped."""
    return checked_text(text[: max(count, 0)])


def drop(text: str, count: int) -> Value:
    """``drop`` in version 5."""
    return checked_text(text[max(count, 0) :])


def take_before(context: CallContext, text: str, count: int) -> Value:
    """``take`` in versions 1 to 4."""
    if context.switches.code_points:
        return take(text, count)
    return checked_text(joined(_units(text)[: max(count, 0)]))


def drop_before(context: CallContext, text: str, count: int) -> Value:
    """``drop`` in versions 1 to 4."""
    if context.switches.code_points:
        return drop(text, count)
    return checked_text(joined(_units(text)[max(count, 0) :]))


def limited_take(text: str, count: int) -> Value:
    """``take`` since version 6."""
    _check_count(count, "take")
    return checked_text(text[:count])


def limited_drop(text: str, count: int) -> Value:
    """``drop`` since version 6."""
    _check_count(count, "drop")
    return checked_text(text[count:])


def limited_take_right(text: str, count: int) -> Value:
    """``takeRight`` since version 6; see ``_units_of_first`` for the count."""
    _check_count(count, "takeRight")
    units = _units(text)
    number = _units_of_first(text, count)
    return checked_text(joined(units[len(units) - number :]))


def limited_drop_right(text: str, count: int) -> Value:
    """``dropRight`` since version 6; see ``_units_of_first`` for the count."""
    _check_count(count, "dropRight")
    units = _units(text)
    number = _units_of_first(text, count)
    return checked_text(joined(units[: len(units) - number]))


def _units_of_first(text: str, count: int) -> int:
    # The reference counts the code units of the first ``count`` characters, and takes as many from
    # the other end. This may split a character.
    return units_length(text[:count])


def _check_count(count: int, name: str) -> None:
    if count < 0:
        raise EvaluationError(f"Unexpected negative number = {count} passed to {name}()")
    if count > MAX_STRING_BYTES:
        raise EvaluationError(
            f"Number = {count} passed to {name}() exceeds String limit = {MAX_STRING_BYTES}"
        )


def index_of(text: str, part: str) -> Value:
    """``indexOf`` since version 5."""
    return _found(text.find(part)) if _is_well_formed(part) else UNIT


def index_of_from(text: str, part: str, offset: int) -> Value:
    """``indexOf`` with an offset since version 5."""
    if not _is_well_formed(part) or not 0 <= offset <= len(text):
        return UNIT
    return _found(text.find(part, offset))


def last_index_of(text: str, part: str) -> Value:
    """``lastIndexOf`` since version 5."""
    return _found(text.rfind(part)) if _is_well_formed(part) else UNIT


def last_index_of_from(text: str, part: str, offset: int) -> Value:
    """``lastIndexOf`` with an offset since version 5: the last match at or before the offset."""
    if offset < 0 or not _is_well_formed(part):
        return UNIT
    return _found(text.rfind(part, 0, min(offset, len(text)) + len(part)))


def index_of_before(context: CallContext, text: str, part: str) -> Value:
    """``indexOf`` in versions 3 and 4."""
    if context.switches.code_points:
        return index_of(text, part)
    return _found(_units(text).find(_units(part)))


def index_of_from_before(context: CallContext, text: str, part: str, offset: int) -> Value:
    """``indexOf`` with an offset in versions 3 and 4."""
    if context.switches.code_points:
        return index_of_from(text, part, offset)
    units = _units(text)
    return _found(units.find(_units(part), offset)) if 0 <= offset <= len(units) else UNIT


def last_index_of_before(context: CallContext, text: str, part: str) -> Value:
    """``lastIndexOf`` in versions 3 and 4."""
    if context.switches.code_points:
        return last_index_of(text, part)
    return _found(_units(text).rfind(_units(part)))


def last_index_of_from_before(context: CallContext, text: str, part: str, offset: int) -> Value:
    """``lastIndexOf`` with an offset in versions 3 and 4."""
    if context.switches.code_points:
        return last_index_of_from(text, part, offset)
    if offset < 0:
        return UNIT
    units, part_units = _units(text), _units(part)
    return _found(units.rfind(part_units, 0, min(offset, len(units)) + len(part_units)))


def _found(index: int) -> Value:
    return index if index >= 0 else UNIT


def split_before(context: CallContext, text: str, separator: str) -> Value:
    """``split`` in versions 3 and 4."""
    if context.switches.code_points:
        return limited_split("split", MAX_STRING_BYTES, MAX_LIST_LENGTH, text, separator)
    units, separator_units = _units(text), _units(separator)
    parts = [text]
    if units:
        parts = (
            [joined(part) for part in units.split(separator_units)]
            if separator_units
            else list(units)
        )
    return _parts(parts)


def limited_split(name: str, max_bytes: int, max_parts: int, text: str, separator: str) -> Value:
    """``split`` and its variants: in code points, with limits of input and output."""
    size = weight(text)
    if size > max_bytes:
        raise EvaluationError(
            f"Input string size = {size} bytes exceeds limit = {max_bytes} for {name}"
        )
    parts = [text]
    if len(text) and _is_well_formed(separator):
        parts = text.split(separator) if len(separator) else list(text)
    if len(parts) > max_parts:
        raise EvaluationError(
            f"Output list size = {len(parts)} exceeds limit = {max_parts} for {name}"
        )
    return _parts(parts)


def _parts(parts: list[str]) -> RideList:
    if any(weight(part) > MAX_STRING_BYTES for part in parts):
        raise NativeCrash("a part of the text is too long")
    return ride_list(parts, limited=True)


def join(
    name: str,
    max_items: int,
    max_bytes: int,
    only_text: bool,
    items: RideList,
    separator: str,
) -> Value:
    """``makeString`` and its variants; before version 6, elements of any type are printed."""
    count = len(items.items)
    if count > max_items:
        raise EvaluationError(f"Input list size = {count} for {name} should not exceed {max_items}")
    size = items.weight - EMPTY_LIST_WEIGHT - ELEMENT_WEIGHT * count
    size += max(count - 1, 0) * units_length(separator)
    if only_text and any(kind_of(item) is not str for item in items.items):
        raise EvaluationError("makeString only accepts strings")
    if size > max_bytes:
        raise EvaluationError(f"Constructing string size = {size} bytes will exceed {max_bytes}")
    text = separator.join(map(plain_text, items.items))
    return checked_text(text if text.isascii() else joined(text))
