"""Readers of the primitives of serialized scripts, in both encodings.

What lives here: numbers, lengths, strings and counts, with their limits. What does not:
expressions and dApps (``serialization``).

Sources: wavesplatform/Waves ``lang/shared/src/main/scala/com/wavesplatform/lang``:
``utils/Serialize.scala``, ``v1/serialization/{SerdeV1,SerdeV2}.scala``.
"""

from __future__ import annotations

import struct
from abc import ABC, abstractmethod
from typing import Final

from soliton.chain.layouts import lenient_text
from soliton.ride.errors import ScriptFormatError

FIRST_VARINT_VERSION: Final = 6
"""The first version of the language with the varint encoding."""

_NATIVE, _USER = 0, 1
_MAX_VARINT_BYTES: Final = 10
_I16: Final = struct.Struct(">h")
_I32: Final = struct.Struct(">i")
_I64: Final = struct.Struct(">q")


def signed_byte(byte: int) -> int:
    """Convert an unsigned byte to a signed one."""
    return byte - 256 if byte > 127 else byte


class _Base(ABC):
    """The common part of both readers. All methods raise ``ScriptFormatError``."""

    __slots__ = ("_data", "_offset")

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._offset = 0

    def left(self) -> int:
        """Return the number of remaining bytes."""
        return len(self._data) - self._offset

    def byte(self) -> int:
        """Read a byte."""
        offset = self._offset
        if offset >= len(self._data):
            raise ScriptFormatError("the script breaks off")
        self._offset = offset + 1
        return self._data[offset]

    def text(self) -> str:
        """Read a string with its length; invalid UTF-8 is replaced."""
        return lenient_text(self.sized())

    def sized(self) -> bytes:
        """Read bytes with their length."""
        length = self._int32()
        start = self._offset
        if not 0 <= length <= len(self._data) - start:
            raise ScriptFormatError(f"Invalid array size ({length})")
        self._offset = start + length
        return self._data[start : start + length]

    def function(self) -> int | str:
        """Read the function of a call: a number or a name."""
        kind = self.byte()
        if kind == _NATIVE:
            return self._int16()
        if kind == _USER:
            return self.text()
        raise ScriptFormatError(f"Unknown function header type: {kind}")

    @abstractmethod
    def _int16(self) -> int: ...

    @abstractmethod
    def _int32(self) -> int: ...


class FixedReader(_Base):
    """Reads the encoding with numbers of fixed width."""

    __slots__ = ()

    def long(self) -> int:
        """Read a 64-bit signed number."""
        return self._number(_I64)

    def argument_count(self) -> int:
        """Read the number of arguments of a call."""
        return self._count(1)

    list_count = argument_count
    dapp_count = argument_count

    def parameter_count(self) -> int:
        """Read the number of parameters of a function."""
        return self._count(2)

    def start_of_dapp(self) -> None:
        """Skip the bytes before the metadata."""
        self._int32()

    def has_verifier(self) -> bool:
        """Read whether a verifier follows."""
        return self._int32() > 0

    def _count(self, bytes_each: int) -> int:
        count = self._int32()
        if not 0 <= count <= self.left() // bytes_each:
            raise ScriptFormatError(f"At position {self._offset} array of arguments too big.")
        return count

    def _int16(self) -> int:
        return self._number(_I16)

    def _int32(self) -> int:
        return self._number(_I32)

    def _number(self, form: struct.Struct) -> int:
        start = self._offset
        if len(self._data) - start < form.size:
            raise ScriptFormatError("the script breaks off")
        self._offset = start + form.size
        number: int = form.unpack_from(self._data, start)[0]
        return number


class VarintReader(_Base):
    """Reads the encoding with numbers as in protobuf."""

    __slots__ = ()

    def long(self) -> int:
        """Read a 64-bit signed number."""
        return _signed(self._varint(), 64)

    def argument_count(self) -> int:
        """Read the number of arguments of a call."""
        return max(0, signed_byte(self.byte()))

    parameter_count = argument_count

    def list_count(self) -> int:
        """Read the number of elements of a list."""
        return max(0, self._int32())

    def dapp_count(self) -> int:
        """Read the number of declarations or callable functions of a dApp."""
        count = self._int32()
        if not 0 <= count <= self.left():
            raise ScriptFormatError(f"At position {self._offset} array of arguments too big.")
        return count

    def start_of_dapp(self) -> None:
        """Do nothing: the metadata comes first."""

    def has_verifier(self) -> bool:
        """Read whether a verifier follows."""
        flag = self.byte()
        if flag > 1:
            raise ScriptFormatError(f"At position {self._offset} unknown option flag value")
        return flag == 1

    def _int16(self) -> int:
        return _signed(self._varint(), 16)

    def _int32(self) -> int:
        number = self._varint()
        return number if number < 0x80 else _signed(number, 32)

    def _varint(self) -> int:
        first = self.byte()
        if first < 0x80:
            return first
        number = first & 0x7F
        for shift in range(7, 7 * _MAX_VARINT_BYTES, 7):
            byte = self.byte()
            number |= (byte & 0x7F) << shift
            if byte < 0x80:
                return number
        raise ScriptFormatError(f"a number of more than {_MAX_VARINT_BYTES} bytes")


def _signed(number: int, bits: int) -> int:
    number &= (1 << bits) - 1
    return number - (1 << bits) if number >> bits - 1 else number


Reader = FixedReader | VarintReader


def make_reader(data: bytes, version: int) -> Reader:
    """Return the reader for the encoding of a version."""
    return FixedReader(data) if version < FIRST_VARINT_VERSION else VarintReader(data)
