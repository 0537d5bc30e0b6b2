"""Ethereum's two encodings: RLP for transactions, and the ABI for the calls in them.

What lives here: canonical, bounded encoding and decoding of plain values. What does not: the
meaning of the values (``transactions.ethereum``).

Sources: Ethereum yellow paper, appendix B; Solidity's contract ABI specification;
wavesplatform/Waves ``node/src/main/scala/com/wavesplatform/transaction/EthABIConverter.scala``, and
the library headlong 12.3.1, which that calls.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from soliton.chain.errors import FormatError
from soliton.chain.layouts import lenient_text, take
from soliton.crypto.hashes import keccak256

# --- RLP ------------------------------------------------------------------------------------------

_SHORT_STRING: Final = 0x80
_SHORT_LIST: Final = 0xC0
_LONGEST_SHORT: Final = 55


def rlp_number(value: int) -> bytes:
    """Return a number as the content of an RLP string: big-endian, of minimal length."""
    return value.to_bytes((value.bit_length() + 7) // 8, "big")


def rlp_list(items: Sequence[bytes]) -> bytes:
    """Return the RLP of a list of strings."""
    return _rlp_sized(_SHORT_LIST, b"".join(map(_rlp_string, items)))


def _rlp_string(data: bytes) -> bytes:
    if len(data) == 1 and data[0] < _SHORT_STRING:
        return data
    return _rlp_sized(_SHORT_STRING, data)


def _rlp_sized(base: int, data: bytes) -> bytes:
    if len(data) <= _LONGEST_SHORT:
        return bytes((base + len(data),)) + data
    length = rlp_number(len(data))
    return bytes((base + _LONGEST_SHORT + len(length),)) + length + data


def read_rlp_list(data: bytes) -> list[bytes]:
    """Return the strings of an RLP list that fills ``data`` and contains no nested lists.

    Raises ``FormatError``, also for encodings that are not minimal.
    """
    start, end = _rlp_head(data, 0, _SHORT_LIST)
    if end != len(data):
        raise FormatError(f"a list of {end} bytes in {len(data)}")
    items = []
    while start < end:
        first = data[start]
        if first < _SHORT_STRING:
            items.append(data[start : start + 1])
            start += 1
            continue
        start, stop = _rlp_head(data, start, _SHORT_STRING)
        item = take(data, start, stop - start)
        if len(item) == 1 and item[0] < _SHORT_STRING:
            raise FormatError(f"a byte at offset {start} that needs no length")
        items.append(item)
        start = stop
    if start != end:
        raise FormatError("the last item is longer than its list")
    return items


def _rlp_head(data: bytes, offset: int, base: int) -> tuple[int, int]:
    """Return the start and end offset of the content."""
    size = take(data, offset, 1)[0] - base
    offset += 1
    if not 0 <= size <= _LONGEST_SHORT + 8:
        raise FormatError(f"an unexpected kind of item at offset {offset - 1}")
    if size <= _LONGEST_SHORT:
        return offset, offset + size
    width = size - _LONGEST_SHORT
    digits = take(data, offset, width)
    length = int.from_bytes(digits, "big")
    if digits[0] == 0 or length <= _LONGEST_SHORT:
        raise FormatError(f"a length at offset {offset} that could be shorter")
    return offset + width, offset + width + length


def read_rlp_number(data: bytes) -> int:
    """The inverse of ``rlp_number``; raises ``FormatError`` for leading zeros."""
    if data[:1] == b"\0":
        raise FormatError("a number with leading zeros")
    return int.from_bytes(data, "big")


# --- ABI ------------------------------------------------------------------------------------------

WORD: Final = 32
SELECTOR_LENGTH: Final = 4
MAX_ABI_VALUES: Final = 10_000
"""The limit for decoding: array elements may refer to the same bytes repeatedly."""
MAX_ABI_DEPTH: Final = 8

PAYMENTS_TYPE: Final = "(bytes32,int64)[]"
"""The type of the last argument of every call, the payments."""

AbiValue = int | bool | bytes | str | tuple["AbiValue", ...]


def selector(function: str, argument_types: Sequence[str]) -> bytes:
    """Return the four bytes that identify a function, payments included."""
    types = ",".join((*argument_types, PAYMENTS_TYPE))
    return keccak256(f"{function}({types})".encode())[:SELECTOR_LENGTH]


def read_arguments(data: bytes, argument_types: Sequence[str]) -> tuple[tuple[AbiValue, ...], bool]:
    """Return the values in a call's data after its selector, and whether they fill the data.

    Types are ``int64``, ``bool``, ``bytes``, ``bytes32``, ``string``, arrays ``T[]`` and tuples
    ``(T,…)`` of them. Raises ``FormatError``, also if the last value ends before the data.
    """
    reader = _AbiReader(data)
    values = reader.tuple_at(0, tuple(argument_types), 0)
    if reader.end != len(data):
        raise FormatError(f"unconsumed bytes: {len(data) - reader.end} remaining")
    return values, reader.used == len(data)


def write_word(number: int) -> bytes:
    """Encode an unsigned number or a boolean."""
    return number.to_bytes(WORD, "big")


def write_text(data: bytes) -> bytes:
    """Encode a single string argument or result, given in UTF-8."""
    padding = bytes(-len(data) % WORD)
    return write_word(WORD) + write_word(len(data)) + data + padding


def write_arguments(values: Sequence[AbiValue], argument_types: Sequence[str]) -> bytes:
    """The inverse of ``read_arguments``; raises ``FormatError`` for a value that does not fit its
    type.
    """
    head, tail, size = b"", b"", sum(_width_in_head(kind) for kind in argument_types)
    for value, kind in zip(values, argument_types, strict=True):
        if _is_dynamic(kind):
            head += write_word(size + len(tail))
            tail += _write_dynamic(value, kind)
        else:
            head += _write_static(value, kind)
    return head + tail


def _width_in_head(kind: str) -> int:
    return WORD if _is_dynamic(kind) else _head_size(kind)


def _write_static(value: AbiValue, kind: str) -> bytes:
    match kind, value:
        case "int64", int() if not isinstance(value, bool) and -(2**63) <= value < 2**63:
            return value.to_bytes(WORD, "big", signed=True)
        case "bool", bool():
            return write_word(value)
        case "bytes32", bytes() if len(value) == WORD:
            return value
        case _, tuple() if kind.endswith(")"):
            return write_arguments(value, _members(kind))
    raise FormatError(f"{type(value).__name__} is no {kind}")


def _write_dynamic(value: AbiValue, kind: str) -> bytes:
    if isinstance(value, tuple):
        if kind.endswith("[]"):
            return write_word(len(value)) + write_arguments(value, (kind[:-2],) * len(value))
        if kind.endswith(")"):
            return write_arguments(value, _members(kind))
    data = value.encode() if isinstance(value, str) and kind == "string" else value
    if isinstance(data, bytes) and (kind == "string") is isinstance(value, str):
        return write_word(len(data)) + data + bytes(-len(data) % WORD)
    raise FormatError(f"{type(value).__name__} is no {kind}")


class _AbiReader:
    """Reads values in the order of the reference's library, headlong: all heads of a tuple first.

    ``used`` is the number of bytes that a canonical encoding of the values takes, ``end`` the place
    after what was read last.
    """

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._left = MAX_ABI_VALUES
        self.used = 0
        self.end = 0

    def tuple_at(self, base: int, types: Sequence[str], depth: int) -> tuple[AbiValue, ...]:
        values: list[AbiValue] = []
        targets = []
        offset = base
        for place, kind in enumerate(types):
            if _is_dynamic(kind):
                self.used += WORD
                targets.append((place, base + self._length(offset)))
                values.append(b"")
                offset += WORD
            else:
                values.append(self._static(offset, kind, depth))
                offset += _head_size(kind)
        self.end = offset
        for place, target in targets:
            values[place] = self._dynamic(target, types[place], depth)
        return tuple(values)

    def _length(self, offset: int) -> int:
        number = int.from_bytes(take(self._data, offset, WORD), "big")
        if number > len(self._data):
            raise FormatError(f"length or place {number} in {len(self._data)} bytes of a call")
        return number

    def _static(self, offset: int, kind: str, depth: int) -> AbiValue:
        if kind.endswith(")"):
            return self.tuple_at(offset, _members(kind), depth + 1)
        self._count()
        self.used += WORD
        word = take(self._data, offset, WORD)
        match kind:
            case "int64":
                number = int.from_bytes(word, "big", signed=True)
                if not -(2**63) <= number < 2**63:
                    raise FormatError(f"{number} has more than 64 bits")
                return number
            case "bool":
                flag = int.from_bytes(word, "big")
                if flag > 1:
                    raise FormatError(f"boolean 0 or 1 expected, found {flag}")
                return flag == 1
            case "bytes32":
                return word
            case _:
                raise FormatError(f"unknown type {kind} of an argument")

    def _dynamic(self, offset: int, kind: str, depth: int) -> AbiValue:
        if depth >= MAX_ABI_DEPTH:
            raise FormatError(f"values within values, more than {MAX_ABI_DEPTH} deep")
        if kind.endswith(")"):
            return self.tuple_at(offset, _members(kind), depth + 1)
        self._count()
        self.used += WORD
        length = self._length(offset)
        if kind.endswith("[]"):
            self._count(length)
            return self.tuple_at(offset + WORD, (kind[:-2],) * length, depth + 1)
        piece = take(self._data, offset + WORD, _padded(length))
        self.end = offset + WORD + len(piece)
        if any(piece[length:]):
            raise FormatError("padding that is not zero")
        value = piece[:length]
        words = lenient_text(value) if kind == "string" else None
        self.used += _padded(length if words is None else len(words.encode()))
        return value if words is None else words

    def _count(self, values: int = 1) -> None:
        self._left -= values
        if self._left < 0:
            raise FormatError(f"more than {MAX_ABI_VALUES} values in a call")


def _padded(length: int) -> int:
    return -(-length // WORD) * WORD


def _is_dynamic(kind: str) -> bool:
    if kind.endswith(")"):
        return any(map(_is_dynamic, _members(kind)))
    return kind in ("bytes", "string") or kind.endswith("[]")


def _head_size(kind: str) -> int:
    if kind.endswith(")"):
        return sum(map(_head_size, _members(kind)))
    return WORD


def _members(kind: str) -> list[str]:
    """Return the member types of a tuple type."""
    members, depth, start = [], 0, 1
    for place, sign in enumerate(kind):
        if sign == "(":
            depth += 1
        elif sign == ")":
            depth -= 1
        if (sign == "," and depth == 1) or depth == 0:
            members.append(kind[start:place])
            start = place + 1
    return members
