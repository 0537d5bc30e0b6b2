"""Reading the pieces that serialised scripts consist of, in both encodings.

What lives here: numbers, lengths, texts and counts, with the bounds of each. What does not: what
they make up (``serialization``).

Sources: wavesplatform/Waves ``lang/shared/src/main/scala/com/wavesplatform/lang``:
``utils/Serialize.scala``, ``v1/serialization/{SerdeV1,SerdeV2}.scala``.
"""

from __future__ import annotations

import re
import struct
from typing import Final

from soliton.ride.errors import ScriptFormatError

FIRST_VARINT_VERSION: Final = 6
"""From this version of the language on scripts are written in the varint encoding."""

_NATIVE, _USER = 0, 1
_MAX_VARINT_BYTES: Final = 10
_I16: Final = struct.Struct(">h")
_I32: Final = struct.Struct(">i")
_I64: Final = struct.Struct(">q")
_ENCODED_SURROGATE: Final = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]")


def _decode_text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        # The JVM writes one mark for an encoded surrogate, Python three.
        return _ENCODED_SURROGATE.sub(b"\xef\xbf\xbd", data).decode("utf-8", "replace")


def signed_byte(byte: int) -> int:
    """A byte as the JVM sees it."""
    return byte - 256 if byte > 127 else byte


class _Bytes:
    """A place in the bytes of a script, which both encodings share."""

    __slots__ = ("_data", "_place")

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._place = 0

    def left(self) -> int:
        """How many bytes are left."""
        return len(self._data) - self._place

    def byte(self) -> int:
        """One byte."""
        place = self._place
        if place >= len(self._data):
            raise ScriptFormatError("the script breaks off")
        self._place = place + 1
        return self._data[place]


class FixedReader(_Bytes):
    """Reads the encoding with numbers of fixed width."""

    __slots__ = ()

    def long(self) -> int:
        """A 64-bit signed number."""
        return self._number(_I64)

    def sized(self) -> bytes:
        """Bytes with their length before them."""
        length = self._number(_I32)
        start = self._place
        if not 0 <= length <= len(self._data) - start:
            raise ScriptFormatError(f"Invalid array size ({length})")
        self._place = start + length
        return self._data[start : start + length]

    def text(self) -> str:
        """Text with its length before it; mistakes in it are repaired."""
        return _decode_text(self.sized())

    def function(self) -> int | str:
        """What a call calls: a number or a name."""
        kind = self.byte()
        if kind == _NATIVE:
            return self._number(_I16)
        if kind == _USER:
            return self.text()
        raise ScriptFormatError(f"Unknown function header type: {kind}")

    def argument_count(self) -> int:
        """How many arguments a call has."""
        return self._count(1)

    list_count = argument_count
    dapp_count = argument_count

    def parameter_count(self) -> int:
        """How many parameters a function has."""
        return self._count(2)

    def start_of_dapp(self) -> None:
        """Read over what comes before the description."""
        self._number(_I32)

    def has_verifier(self) -> bool:
        """Whether a verifier follows."""
        return self._number(_I32) > 0

    def _count(self, bytes_each: int) -> int:
        count = self._number(_I32)
        if not 0 <= count <= self.left() // bytes_each:
            raise ScriptFormatError(f"At position {self._place} array of arguments too big.")
        return count

    def _number(self, form: struct.Struct) -> int:
        start = self._place
        if len(self._data) - start < form.size:
            raise ScriptFormatError("the script breaks off")
        self._place = start + form.size
        number: int = form.unpack_from(self._data, start)[0]
        return number


class VarintReader(_Bytes):
    """Reads the encoding with numbers as in protobuf."""

    __slots__ = ()

    def long(self) -> int:
        """A 64-bit signed number."""
        number = self._varint() & 0xFFFF_FFFF_FFFF_FFFF
        return number - (1 << 64) if number >> 63 else number

    def sized(self) -> bytes:
        """Bytes with their length before them."""
        length = self._int32()
        start = self._place
        if not 0 <= length <= len(self._data) - start:
            raise ScriptFormatError(f"Invalid array size ({length})")
        self._place = start + length
        return self._data[start : start + length]

    def text(self) -> str:
        """Text with its length before it; mistakes in it are repaired."""
        return _decode_text(self.sized())

    def function(self) -> int | str:
        """What a call calls: a number or a name."""
        kind = self.byte()
        if kind == _NATIVE:
            number = self._varint() & 0xFFFF
            return number - (1 << 16) if number >> 15 else number
        if kind == _USER:
            return self.text()
        raise ScriptFormatError(f"Unknown function header type: {kind}")

    def argument_count(self) -> int:
        """How many arguments a call has."""
        return max(0, signed_byte(self.byte()))

    parameter_count = argument_count

    def list_count(self) -> int:
        """How many elements a list has."""
        return max(0, self._int32())

    def dapp_count(self) -> int:
        """How many declarations of a kind a dApp has."""
        count = self._int32()
        if not 0 <= count <= self.left():
            raise ScriptFormatError(f"At position {self._place} array of arguments too big.")
        return count

    def start_of_dapp(self) -> None:
        """Nothing comes before the description here."""

    def has_verifier(self) -> bool:
        """Whether a verifier follows."""
        flag = self.byte()
        if flag > 1:
            raise ScriptFormatError(f"At position {self._place} unknown option flag value")
        return flag == 1

    def _int32(self) -> int:
        number = self._varint() & 0xFFFF_FFFF
        return number - (1 << 32) if number >> 31 else number

    def _varint(self) -> int:
        number = 0
        for shift in range(0, 7 * _MAX_VARINT_BYTES, 7):
            byte = self.byte()
            number |= (byte & 0x7F) << shift
            if byte < 0x80:
                return number
        raise ScriptFormatError(f"a number of more than {_MAX_VARINT_BYTES} bytes")


Reader = FixedReader | VarintReader


def make_reader(data: bytes, version: int) -> Reader:
    """What reads the encoding of a version."""
    return FixedReader(data) if version < FIRST_VARINT_VERSION else VarintReader(data)
