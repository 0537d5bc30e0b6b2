"""Conversions between numbers, bytes and strings; comparison, type tests, ``throw``.

What lives here: the functions ``toInt``, ``toBytes``, ``toString``, ``parse..`` and so on, and the
few that accept any value. What does not: Base16, Base58, Base64 (``encodings``).

Source: wavesplatform/Waves ``lang/shared/src/main/scala/com/wavesplatform/lang/v1/evaluator/ctx/
impl/PureContext.scala``. Numbers are parsed as java.lang.Long and java.math.BigInteger do it.
"""

from __future__ import annotations

import unicodedata
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Final

from soliton.ride.environment import CallContext
from soliton.ride.errors import EvaluationError, NativeCrash
from soliton.ride.functions.arithmetic import MAX_INT, MIN_INT
from soliton.ride.functions.bodies import DEFAULT_THROW_MESSAGE
from soliton.ride.functions.data import checked_bytes, same
from soliton.ride.functions.text import checked_text, units_length
from soliton.ride.values import (
    MAX_BIG_INT,
    MAX_COMPARED_WEIGHT,
    MAX_DATA_TRANSACTION_BYTES,
    MAX_STRING_BYTES,
    MIN_BIG_INT,
    TUPLE,
    UNIT,
    BigInt,
    CaseObject,
    Value,
    type_name,
    weight,
)

INT_BYTES: Final = 8
MAX_BIG_INT_BYTES: Final = 64
MAX_BIG_INT_CHARS: Final = 155
_BASIC_PLANE: Final = 0x10000
_MAX_DIGITS: Final = 160
"""More significant digits than any valid number has."""


def are_equal(left: Value, right: Value) -> bool:
    """``==``; the weight of one of the values is not limited."""
    if weight(right) > MAX_COMPARED_WEIGHT and weight(left) > MAX_COMPARED_WEIGHT:
        raise EvaluationError("Comparable value too heavy.")
    return same(left, right)


def is_instance_of(arguments: Sequence[Value], context: CallContext) -> Value:
    """``_isInstanceOf``; false for invalid arguments."""
    if len(arguments) != 2:
        return False
    value = arguments[0]
    if context.watch is not None and type(value) is CaseObject and value.weight > _HEAVY_TUPLE:
        # The function is cheap, but the name of a tuple of thousands of values is not.
        context.watch()
    return full_type_name(value) == arguments[1]


def get_type(value: Value) -> Value:
    """``_getType``: the name of a value's type."""
    return checked_text(full_type_name(value))


def full_type_name(value: Value) -> str:
    """Return the name of a value's type; for a tuple, the names of its elements' types in brackets.

    As in the reference, the elements are in the alphabetical order of their field names.
    """
    if isinstance(value, CaseObject) and value.type_name == TUPLE:
        return _known_name(value) or _tuple_name(value)
    return type_name(value)


_HEAVY_TUPLE: Final = 1_000
_KNOWN_NAMES: Final = 64
"""The number of heavy tuples whose names are cached: the function is cheap for a script that calls
it often."""
_names: Final[OrderedDict[int, tuple[CaseObject, str]]] = OrderedDict()


def _known_name(value: CaseObject) -> str | None:
    known = _names.get(id(value))
    return known[1] if known is not None and known[0] is value else None


def _tuple_name(value: CaseObject) -> str:
    # An explicit stack: tuples can be nested more deeply than Python's.
    stack: list[tuple[CaseObject, Iterator[Value], list[str]]] = [(value, _elements(value), [])]
    while True:
        node, rest, names = stack[-1]
        inner = _name_until_tuple(rest, names)
        if inner is not None:
            stack.append((inner, _elements(inner), []))
            continue
        text = f"({', '.join(names)})"
        stack.pop()
        if node.weight > _HEAVY_TUPLE:
            _names[id(node)] = (node, text)
            if len(_names) > _KNOWN_NAMES:
                _names.popitem(last=False)
        if not stack:
            return text
        stack[-1][2].append(text)


def _elements(value: CaseObject) -> Iterator[Value]:
    return iter([value.fields[name] for name in sorted(value.fields)])


def _name_until_tuple(rest: Iterator[Value], names: list[str]) -> CaseObject | None:
    """Append names until a tuple without a cached name; return that, or ``None`` at the end."""
    for item in rest:
        if isinstance(item, CaseObject) and item.type_name == TUPLE:
            known = _known_name(item)
            if known is None:
                return item
            names.append(known)
        else:
            names.append(type_name(item))
    return None


def throw(arguments: Sequence[Value], _context: CallContext) -> Value:
    """``throw``: never returns."""
    if len(arguments) == 1 and isinstance(arguments[0], str):
        raise EvaluationError(str(arguments[0]))
    raise EvaluationError(DEFAULT_THROW_MESSAGE)


def int_to_bytes(number: int) -> Value:
    """``toBytes`` of Int."""
    return number.to_bytes(INT_BYTES, "big", signed=True)


def text_to_bytes(text: str) -> Value:
    """``toBytes`` of String."""
    # Values have no pairs of surrogates, which ``utf8`` would have to combine.
    return checked_bytes(text.encode("utf-8", "replace"))


def boolean_to_bytes(value: bool) -> Value:
    """``toBytes`` of Boolean."""
    return b"\1" if value else b"\0"


def big_int_to_bytes(number: BigInt) -> Value:
    """``toBytes`` of BigInt, in as few bytes as possible."""
    value = number.value
    bits = value.bit_length() if value >= 0 else (~value).bit_length()
    return value.to_bytes(bits // 8 + 1, "big", signed=True)


def bytes_to_int(data: bytes) -> Value:
    """``toInt`` of the first eight bytes."""
    if len(data) < INT_BYTES:
        raise EvaluationError("Buffer underflow")
    return int.from_bytes(data[:INT_BYTES], "big", signed=True)


def bytes_to_int_from(data: bytes, offset: int) -> Value:
    """``toInt`` of eight bytes at an offset."""
    if not 0 <= offset <= len(data) - INT_BYTES:
        raise EvaluationError("IndexOutOfBounds")
    return int.from_bytes(data[offset : offset + INT_BYTES], "big", signed=True)


def bytes_to_big_int(data: bytes) -> Value:
    """``toBigInt`` of up to 64 bytes."""
    if len(data) > MAX_BIG_INT_BYTES:
        raise EvaluationError(
            f"Too big ByteVector for BigInt ({len(data)} > {MAX_BIG_INT_BYTES} bytes)"
        )
    return _big_int_of(data)


def bytes_to_big_int_from(data: bytes, offset: int, size: int) -> Value:
    """``toBigInt`` of a slice, which may extend beyond the end."""
    if not (0 <= offset <= len(data) and 0 < size <= MAX_BIG_INT_BYTES):
        raise EvaluationError(f"ByteStr too long ({size} > {MAX_BIG_INT_BYTES} bytes)")
    return _big_int_of(data[offset : offset + size])


def _big_int_of(data: bytes) -> BigInt:
    if not data:
        raise NativeCrash("Zero length BigInteger")
    return BigInt(int.from_bytes(data, "big", signed=True))


def int_to_big_int(number: int) -> Value:
    """``toBigInt`` of Int."""
    return BigInt(number)


def big_int_to_int(number: BigInt) -> Value:
    """``toInt`` of BigInt."""
    if not MIN_INT <= number.value <= MAX_INT:
        raise EvaluationError(f"toInt: BigInt {number.value} out of integers range")
    return number.value


def int_to_text(number: int) -> Value:
    """``toString`` of Int."""
    return str(number)


def boolean_to_text(value: bool) -> Value:
    """``toString`` of Boolean."""
    return "true" if value else "false"


def big_int_to_text(number: BigInt) -> Value:
    """``toString`` of BigInt."""
    return str(number.value)


def bytes_to_text(data: bytes) -> Value:
    """``toUtf8String`` since version 4."""
    return _decoded(data, MAX_STRING_BYTES)


def bytes_to_long_text(data: bytes) -> Value:
    """``toUtf8String`` in version 3."""
    return _decoded(data, MAX_DATA_TRANSACTION_BYTES)


def _decoded(data: bytes, limit: int) -> str:
    try:
        text = data.decode()
    except UnicodeDecodeError:
        raise EvaluationError("Input contents invalid UTF8 sequence") from None
    try:
        return checked_text(text, limit)
    except EvaluationError as error:
        raise EvaluationError(f"CommonError({error})") from None


def parse_int(text: str) -> Value:
    """``parseInt``."""
    number = _number(text)
    return UNIT if number is None or not MIN_INT <= number <= MAX_INT else number


def parse_big_int(text: str) -> Value:
    """``parseBigInt``: unit for an invalid number."""
    if units_length(text) > MAX_BIG_INT_CHARS:
        return UNIT
    number = _number(text)
    return UNIT if number is None or not MIN_BIG_INT <= number <= MAX_BIG_INT else BigInt(number)


def parse_big_int_value(text: str) -> Value:
    """``parseBigIntValue``: an error for an invalid number."""
    length = units_length(text)
    if length > MAX_BIG_INT_CHARS:
        raise EvaluationError(
            f"String too long for 512-bits big integers ({length} when max is {MAX_BIG_INT_CHARS})"
        )
    number = _number(text)
    if number is None:
        raise NativeCrash(f'For input string: "{text}"')
    if not MIN_BIG_INT <= number <= MAX_BIG_INT:
        raise EvaluationError("Value too big for 512-bits big integer")
    return BigInt(number)


def _number(text: str) -> int | None:
    """Parse an optional sign and decimal digits of any script in the basic plane.

    Return ``None`` for anything else, and for numbers too long for any type.
    """
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not digits:
        return None
    if len(digits) > _MAX_DIGITS:
        digits = _without_zeros(digits)
    if len(digits) > _MAX_DIGITS or not digits.isdecimal():
        return None
    if not digits.isascii():
        if any(ord(character) >= _BASIC_PLANE for character in digits):
            return None
        digits = "".join(str(unicodedata.decimal(character)) for character in digits)
    number = int(digits)
    return -number if text[0] == "-" else number


def _without_zeros(digits: str) -> str:
    """Strip enough leading zeros from digits that exceed the limit."""
    surplus = len(digits) - _MAX_DIGITS
    zeros = _zeros()
    if digits[:surplus] == digits[0] * surplus and digits[0] in zeros:
        return digits[surplus:]
    return digits if digits.isascii() else digits.lstrip(zeros) or "0"


@cache
def _zeros() -> str:
    """The digit zero in every script."""
    return "".join(
        character
        for character in map(chr, range(_BASIC_PLANE))
        if unicodedata.decimal(character, -1) == 0
    )
