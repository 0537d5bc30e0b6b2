"""Functions on String: length, slices, searching, splitting and joining.

What does not live here: conversion of numbers and bytes (``conversions``, ``encodings``).

The reference's strings are UTF-16. Versions 1 to 4 of the language measure them in code units
before the feature of the switch ``code_points``, and in code points since; version 5 and later
always in code points. Here strings never contain adjacent halves of a surrogate pair (see
``joined``), so equal strings have equal representations. To count code units, characters beyond the
basic plane are split (``_wide``).

Source: wavesplatform/Waves ``lang/shared/src/main/scala/com/wavesplatform/lang/v1/evaluator/ctx/
impl/PureContext.scala``.
"""

from __future__ import annotations

import sys
from array import array
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
    weighed_text,
    weight,
)

_FIRST_SURROGATE: Final = "\ud800"
_FIRST_LOW_SURROGATE: Final = "\udc00"
_WIDE_HIGH: Final = "\U0001d800"
_WIDE_LOW: Final = "\U0001dc00"
_WIDE_END: Final = "\U0001e000"
"""The borders of both kinds of surrogates in ``_wide`` form."""
_HIGH_BYTE, _LOW_BYTE = 0xD8, 0xDC
"""The first bytes of the first surrogates of both kinds."""
_ADDED_BY_PAIR: Final = 2
"""A surrogate pair has four bytes in UTF-8; two lone surrogates have one each."""


def checked_text(text: str, limit: int = MAX_STRING_BYTES) -> str:
    """Return the string; raise ``EvaluationError`` if it exceeds the limit."""
    size = weight(text)
    if size > limit:
        raise EvaluationError(f"String size={size} exceeds {limit} bytes")
    return text


_CONTINUED: Final = bytes(range(0x80, 0xC0))
_LONG_LEADS: Final = bytes(range(0xF0, 0x100))
_LONG: Final = 0xF0
_ONE_LONG_LEAD: Final = bytes(min(byte, _LONG) for byte in range(256))


def units_length(text: str) -> int:
    """Return the length in UTF-16 code units."""
    if text.isascii():
        return len(text)
    data = text.encode("utf-8", "surrogatepass")
    return len(text) + len(data) - len(data.translate(None, _LONG_LEADS))


def _has_pairs(text: str) -> bool:
    """Whether a character of the text takes two code units."""
    return not text.isascii() and units_length(text) != len(text)


def _split_units(text: str, count: int) -> tuple[str, str]:
    """Split a string after so many code units, which may split a character."""
    if _is_well_formed(text):
        data = text.encode("utf-16-le")
        before, after = data[: 2 * count], data[2 * count :]
        if before and _HIGH_BYTE <= before[-1] < _LOW_BYTE:
            high, low = _unit(before[:-3:-1]), _unit(after[1::-1])
            return before[:-2].decode("utf-16-le") + high, low + after[2:].decode("utf-16-le")
        return before.decode("utf-16-le"), after.decode("utf-16-le")
    if not _has_pairs(text):
        return text[:count], text[count:]
    # One byte for each unit: of a character of two units, the two of its first byte in UTF-8.
    leads = text.encode("utf-8", "surrogatepass").translate(_ONE_LONG_LEAD, _CONTINUED)
    units = leads.replace(bytes((_LONG,)), bytes((_LONG, _LONG)))[:count]
    long, half = divmod(units.count(_LONG), 2)
    index = len(units) - long - half
    if not half:
        return text[:index], text[index:]
    both = text[index].encode("utf-16-be")
    return text[:index] + _unit(both[:2]), _unit(both[2:]) + text[index + 1 :]


def _unit(data: bytes) -> str:
    return chr(int.from_bytes(data, "big"))


def _wide(text: str) -> str:
    """Return the string with one character per UTF-16 code unit, each moved out of the plane of
    surrogates: for searching.
    """
    try:
        data = text.encode("utf-16-le")
    except UnicodeEncodeError:
        lone = len(text) - len(text.encode("utf-8", "ignore").decode())
        if lone * _CHARACTERS_FOR_ONE_LONE > len(text):
            return _wide_of_surrogates(text)
        data = text.encode("utf-16-le", "surrogatepass")
    wide = bytearray(2 * len(data))
    wide[0::4], wide[1::4] = data[0::2], data[1::2]
    wide[2::4] = b"\1" * (len(data) // 2)
    return wide.decode("utf-32-le")


_CHARACTERS_FOR_ONE_LONE: Final = 3
"""The encoder calls Python for each lone surrogate, which takes as long as the work of
``_wide_of_surrogates`` for so many characters.
"""


def _wide_of_surrogates(text: str) -> str:
    """Return what ``_wide`` does, for a text with many lone surrogates.

    The text is handled in columns of bytes, which are combined as large integers, so that no work
    is done for single characters.
    """
    points, count = array(_CHARACTERS, text).tobytes(), len(text)
    low, high, plane = points[0::4], points[1::4], points[2::4]
    units = bytearray(_TWO_POINTS * count)
    units[2::8] = b"\1" * count
    if plane.count(0) == count:
        units[0::8], units[1::8] = low, high
        return units.decode("utf-32-le").replace("\0", "")
    # Of a character beyond the basic plane, the second unit follows; of others, a zero that is
    # removed.
    beyond = int.from_bytes(plane.translate(_IS_BEYOND), "little")
    within = beyond ^ ((1 << 8 * count) - 1)
    lows, highs = int.from_bytes(low, "little"), int.from_bytes(high, "little")
    upper = int.from_bytes(plane.translate(_LOW_OF_PLANE), "little")
    upper |= int.from_bytes(high.translate(_WITHOUT_TWO_BITS), "little") & beyond
    first = int.from_bytes(plane.translate(_HIGH_OF_PLANE), "little") | highs & within
    second = int.from_bytes(high.translate(_LOW_SURROGATE), "little") & beyond
    units[0::8] = (upper | lows & within).to_bytes(count, "little")
    units[1::8] = first.to_bytes(count, "little")
    units[4::8] = (lows & beyond).to_bytes(count, "little")
    units[5::8] = second.to_bytes(count, "little")
    units[6::8] = plane.translate(_ONE_IF_BEYOND)
    return units.decode("utf-32-le").replace("\0", "")


_CHARACTERS: Final = "w" if sys.version_info >= (3, 13) else "u"
"""The code of arrays of characters, of four bytes each."""
_TWO_POINTS: Final = 8
_IS_BEYOND: Final = bytes(255 * (plane > 0) for plane in range(256))
_ONE_IF_BEYOND: Final = bytes(plane > 0 for plane in range(256))
_LOW_OF_PLANE: Final = bytes(((plane - 1) << 6) & 255 if plane else 0 for plane in range(256))
_HIGH_OF_PLANE: Final = bytes(0xD8 | (plane - 1) >> 2 & 3 if plane else 0 for plane in range(256))
_WITHOUT_TWO_BITS: Final = bytes(byte >> 2 for byte in range(256))
_LOW_SURROGATE: Final = bytes(0xDC | byte & 3 for byte in range(256))
"""From bytes of a character to those of its two units in UTF-16."""


def _narrow(wide: str) -> str:
    """Return the text of a part of ``_wide``."""
    points = bytearray(wide.encode("utf-32-le"))
    data = bytearray(len(points) // 2)
    data[0::2], data[1::2] = points[0::4], points[1::4]
    parts: list[str] = []
    for _ in range(_FEW_LONE):
        try:
            return "".join([*parts, data.decode("utf-16-le")])
        except UnicodeDecodeError as error:
            end = error.start + 2
            parts += (
                data[: error.start].decode("utf-16-le"),
                _unit(bytes(data[error.start : end][::-1])),
            )
            data = data[end:]
    points[2::4] = bytes(len(wide))
    units = array(_CHARACTERS)
    units.frombytes(points)
    return joined(units.tounicode())


_FEW_LONE: Final = 4
"""So many lone surrogates are handled one by one."""


def _in_units(text: str, part: str) -> tuple[str, str]:
    """Return two strings with one character per code unit, to search one in the other."""
    if _has_pairs(text):
        return _wide(text), _wide(part)
    # Without pairs in the text, a part that has some occurs nowhere, in characters as well.
    return text, part


def _is_well_formed(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def add(left: str, right: str) -> str:
    """``+`` of String."""
    size = weight(left) + weight(right)
    if size > MAX_STRING_BYTES:
        raise EvaluationError(f"String size = {size} exceeds {MAX_STRING_BYTES} bytes")
    if left and right and _FIRST_SURROGATE <= left[-1] < _FIRST_LOW_SURROGATE <= right[0]:
        return weighed_text(left[:-1] + joined(left[-1] + right[0]) + right[1:], size)
    text = left + right
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
    return checked_text(_split_units(text, max(count, 0))[0])


def drop_before(context: CallContext, text: str, count: int) -> Value:
    """``drop`` in versions 1 to 4."""
    if context.switches.code_points:
        return drop(text, count)
    return checked_text(_split_units(text, max(count, 0))[1])


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
    rest = units_length(text) - _units_of_first(text, count)
    return checked_text(_split_units(text, rest)[1])


def limited_drop_right(text: str, count: int) -> Value:
    """``dropRight`` since version 6; see ``_units_of_first`` for the count."""
    _check_count(count, "dropRight")
    rest = units_length(text) - _units_of_first(text, count)
    return checked_text(_split_units(text, rest)[0])


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


# Python's search is quadratic in the worst case for many lengths of text and part, and backwards
# for all. It is linear for texts as long as these that go on for a while behind every match.
_FEW_COMPARISONS: Final = 20_000
_SHORT_PART: Final = 6
_LINEAR_LENGTH: Final = 32_768


def _padded(text: str, part: str) -> str:
    """Return the text, longer by characters in which no match of the part ends."""
    return text + ("\1" if part[-1] == "\0" else "\0") * _LINEAR_LENGTH


def _is_quick(text: str, part: str) -> bool:
    """Whether Python's search is quick for these lengths, whatever the characters are."""
    return len(part) < _SHORT_PART or len(text) * len(part) <= _FEW_COMPARISONS


def _find(text: str, part: str, start: int = 0) -> int:
    """Return what ``text.find(part, start)`` does, in linear time."""
    if _is_quick(text, part) or len(text) - start < len(part):
        return text.find(part, start)
    return _padded(text, part).find(part, start)


def _find_last(text: str, part: str, end: int | None = None) -> int:
    """Return what ``text.rfind(part, 0, end)`` does, in linear time."""
    text = text if end is None else text[:end]
    if _is_quick(text, part) or len(text) < len(part):
        return text.rfind(part)
    at = _find(text[::-1], part[::-1])
    return at if at < 0 else len(text) - at - len(part)


def _split(text: str, separator: str) -> list[str]:
    """Return what ``text.split(separator)`` does, in linear time."""
    if _is_quick(text, separator) or len(text) < len(separator):
        return text.split(separator)
    padded, length, parts, start = _padded(text, separator), len(separator), [], 0
    while (found := padded.find(separator, start)) >= 0:
        parts.append(text[start:found])
        start = found + length
    return [*parts, text[start:]]


def index_of(text: str, part: str) -> Value:
    """``indexOf`` since version 5."""
    return _found(_find(text, part)) if _is_well_formed(part) else UNIT


def index_of_from(text: str, part: str, offset: int) -> Value:
    """``indexOf`` with an offset since version 5."""
    if not _is_well_formed(part) or not 0 <= offset <= len(text):
        return UNIT
    return _found(_find(text, part, offset))


def last_index_of(text: str, part: str) -> Value:
    """``lastIndexOf`` since version 5."""
    return _found(_find_last(text, part)) if _is_well_formed(part) else UNIT


def last_index_of_from(text: str, part: str, offset: int) -> Value:
    """``lastIndexOf`` with an offset since version 5: the last match at or before the offset."""
    if offset < 0 or not _is_well_formed(part):
        return UNIT
    return _found(_find_last(text, part, min(offset, len(text)) + len(part)))


def index_of_before(context: CallContext, text: str, part: str) -> Value:
    """``indexOf`` in versions 3 and 4."""
    if context.switches.code_points:
        return index_of(text, part)
    return _found(_find(*_in_units(text, part)))


def index_of_from_before(context: CallContext, text: str, part: str, offset: int) -> Value:
    """``indexOf`` with an offset in versions 3 and 4."""
    if context.switches.code_points:
        return index_of_from(text, part, offset)
    units, part_units = _in_units(text, part)
    return _found(_find(units, part_units, offset)) if 0 <= offset <= len(units) else UNIT


def last_index_of_before(context: CallContext, text: str, part: str) -> Value:
    """``lastIndexOf`` in versions 3 and 4."""
    if context.switches.code_points:
        return last_index_of(text, part)
    return _found(_find_last(*_in_units(text, part)))


def last_index_of_from_before(context: CallContext, text: str, part: str, offset: int) -> Value:
    """``lastIndexOf`` with an offset in versions 3 and 4."""
    if context.switches.code_points:
        return last_index_of_from(text, part, offset)
    if offset < 0:
        return UNIT
    units, part_units = _in_units(text, part)
    return _found(_find_last(units, part_units, min(offset, len(units)) + len(part_units)))


def _found(index: int) -> Value:
    return index if index >= 0 else UNIT


def replace_first(text: str, target: str, replacement: str) -> Value:
    """``replaceFirst``: the first occurrence of a target; an empty one is at the beginning."""
    return _replaced(text, target, replacement, 1)


def replace_all(text: str, target: str, replacement: str) -> Value:
    """``replaceAll``: from left to right; an empty target is before each code unit and at the
    end.
    """
    return _replaced(text, target, replacement, -1)


def _replaced(text: str, target: str, replacement: str, limit: int) -> str:
    """Replace occurrences, which are found in code units. Whether the result, which could have a
    gigabyte, exceeds the limit is known before it is made.
    """
    # Without pairs, places in characters are those in units: none of them is half of a pair.
    in_units = _has_pairs(text) and not (target and _is_well_formed(text + target))
    pieces = _pieces(*((_wide(text), _wide(target)) if in_units else (text, target)), limit)
    if len(pieces) == 1:
        return checked_text(text)
    new = _wide(replacement) if in_units else replacement
    count = len(pieces) - 1
    size = _size_apart(text) + count * (_size_apart(replacement) - _size_apart(target))
    if size > MAX_STRING_BYTES:
        pieces = _pieces(_wide(text), _wide(target), limit)
        raise _too_long(size + _bytes_of_pairs(pieces, _wide(replacement)))
    result = new.join(pieces)
    if in_units:
        result = _narrow(result)
    elif not (_is_well_formed(text) and _stays_apart(replacement)):
        result = joined(result)
    return checked_text(result)


def _stays_apart(text: str) -> bool:
    """Whether two of these texts in a row have no surrogates that become a pair."""
    return not (text and text[0] >= _FIRST_LOW_SURROGATE and text[-1] >= _FIRST_SURROGATE)


def _pieces(text: str, target: str, limit: int) -> list[str]:
    """Return what is between the occurrences of a target: all, or the first one. An empty one is
    before each character and at the end.
    """
    if not target:
        return ["", text] if limit >= 0 else ["", *text, ""]
    if limit < 0:
        return _split(text, target)
    found = _find(text, target)
    return [text] if found < 0 else [text[:found], text[found + len(target) :]]


def _too_long(size: int) -> EvaluationError:
    return EvaluationError(f"String size={size} exceeds {MAX_STRING_BYTES} bytes")


def _size_apart(text: str) -> int:
    """Return the size in UTF-8 where each surrogate is one byte, even one of a pair."""
    return len(text.encode("utf-8", "replace")) - _ADDED_BY_PAIR * (units_length(text) - len(text))


def _bytes_of_pairs(pieces: list[str], new: str) -> int:
    """Return what the surrogate pairs of a replaced text in ``_wide`` form add to its size."""
    pairs = _pairs(new) * (len(pieces) - 1)
    last = ""
    for number, piece in enumerate(pieces):
        for part in (new, piece) if number else (piece,):
            if part:
                pairs += _WIDE_HIGH <= last < _WIDE_LOW <= part[0] < _WIDE_END
                last = part[-1]
        if len(piece) > 1:
            pairs += _pairs(piece)
    return _ADDED_BY_PAIR * pairs


def _pairs(units: str) -> int:
    return len(units) - len(_narrow(units))


def split_before(context: CallContext, text: str, separator: str) -> Value:
    """``split`` in versions 3 and 4."""
    if context.switches.code_points:
        return limited_split("split", MAX_STRING_BYTES, MAX_LIST_LENGTH, text, separator)
    units, separator_units = _in_units(text, separator)
    parts = [text]
    if units:
        parts = _split(units, separator_units) if separator_units else list(units)
        if units is not text:
            # Too many parts are an error, after that of a part that is too long.
            many = len(parts) > MAX_LIST_LENGTH
            parts = [
                part if many and 4 * len(part) <= MAX_STRING_BYTES else _narrow(part)
                for part in parts
            ]
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
        parts = _split(text, separator) if len(separator) else list(text)
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
