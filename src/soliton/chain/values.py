"""Small values of transactions and blocks, with their limits: assets and data entries.

What does not live here: addresses (``addresses``).

Sources: wavesplatform/Waves ``node/src/main/scala/com/wavesplatform/state/DataEntry.scala`` and
``transaction/Asset.scala``.
"""

from __future__ import annotations

from typing import Final

import msgspec

from soliton.chain.errors import FormatError
from soliton.chain.layouts import take, take_u16, text, write_bytes16

MAX_I64: Final = 2**63 - 1
MIN_I64: Final = -(2**63)

AssetId = bytes
"""32 bytes: the id of the transaction that issued the asset. ``None`` is the native coin."""

DataValue = int | bool | bytes | str | None
"""``None`` in an entry deletes the key."""

_INTEGER, _BOOLEAN, _BINARY, _STRING = range(4)
DELETED_VALUE: Final = b"\xff"
"""The bytes of a deleted entry in state hashes."""


def wrapped(number: int) -> int:
    """Return the lowest 64 bits of a number, signed, as a result is on the JVM."""
    if MIN_I64 <= number <= MAX_I64:
        return number
    return (number - MIN_I64) % 2**64 + MIN_I64


class DataEntry(msgspec.Struct, frozen=True, gc=False):
    """One entry of an account's data storage."""

    key: str
    value: DataValue


def value_bytes(value: DataValue) -> bytes:
    """Return the bytes of a value: the type byte, then the value."""
    match value:
        case bool():
            return b"\1\1" if value else b"\1\0"
        case int():
            return b"\0" + value.to_bytes(8, "big", signed=True)
        case bytes():
            return b"\2" + write_bytes16(value)
        case str():
            return b"\3" + write_bytes16(value.encode())
        case None:
            return DELETED_VALUE


def entry_bytes(entry: DataEntry) -> bytes:
    """Return ``u16 key length ‖ key ‖ typed value``."""
    return write_bytes16(entry.key.encode()) + value_bytes(entry.value)


def read_entry(data: bytes, offset: int) -> tuple[DataEntry, int]:
    """The inverse of ``entry_bytes`` (deletions have no binary form); raises ``FormatError``."""
    length = take_u16(data, offset)
    key = text(take(data, offset + 2, length))
    value, offset = read_value(data, offset + 2 + length)
    return DataEntry(key, value), offset


def read_value(data: bytes, offset: int) -> tuple[DataValue, int]:
    """The inverse of ``value_bytes``, without deletions; raises ``FormatError``."""
    kind = take(data, offset, 1)[0]
    offset += 1
    if kind == _INTEGER:
        return int.from_bytes(take(data, offset, 8), "big", signed=True), offset + 8
    if kind == _BOOLEAN:
        flag = take(data, offset, 1)[0]
        if flag > 1:
            raise FormatError(f"boolean 0 or 1 expected at offset {offset}, found {flag}")
        return flag == 1, offset + 1
    if kind not in (_BINARY, _STRING):
        raise FormatError(f"unknown data entry type {kind} at offset {offset - 1}")
    length = take_u16(data, offset)
    piece = take(data, offset + 2, length)
    return (piece if kind == _BINARY else text(piece)), offset + 2 + length


def payload_size(entries: tuple[DataEntry, ...]) -> int:
    """Return the size of keys and values, as size and fee rules count it since feature 17."""
    return sum(len(entry.key.encode()) + _value_size(entry.value) for entry in entries)


def _value_size(value: DataValue) -> int:
    match value:
        case None:
            return 0
        case bool():
            return 1
        case int():
            return 8
        case bytes():
            return len(value)
        case str():
            return len(value.encode())
