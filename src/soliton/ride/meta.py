"""The description of a dApp that its script carries: argument types and original names.

What lives here: the record, its protobuf form both ways, and the bits that stand for argument
types. What does not: how the compiler fills it.

Sources: wavesplatform/protobuf-schemas ``proto/waves/lang/dapp_meta.proto``; wavesplatform/Waves
``lang/shared/src/main/scala/com/wavesplatform/lang/contract/meta``.
"""

from __future__ import annotations

from typing import Final

import msgspec

from soliton.ride.errors import ScriptFormatError

MAX_GROUP_DEPTH: Final = 100
"""Unknown fields may hold groups; the protobuf library of the reference goes down this far."""
LATEST_META_VERSION: Final = 2

_ARGUMENT_TYPES: Final = ("Int", "ByteVector", "Boolean", "String")
_LIST_FLAG: Final = 16
_VARINT, _FIXED64, _BYTES, _GROUP, _END_GROUP, _FIXED32 = range(6)


class ArgumentType(msgspec.Struct, frozen=True, gc=False):
    """The type of a callable function's argument: one type or a union, or a list of that."""

    types: tuple[str, ...]
    is_list: bool = False


class Meta(msgspec.Struct, frozen=True):
    """``signatures`` has one byte per argument and one entry per callable function; the names say
    what the compiler shortened.
    """

    version: int = 0
    signatures: tuple[bytes, ...] = ()
    name_pairs: tuple[tuple[str, str], ...] = ()
    original_names: tuple[str, ...] = ()


def argument_types(meta: Meta) -> tuple[tuple[ArgumentType, ...], ...] | None:
    """The argument types of all callable functions, ``None`` when the script does not tell.

    Raises ``ScriptFormatError`` for a version or for bits that nobody knows.
    """
    if meta.version == 0:
        return None
    if not 0 < meta.version <= LATEST_META_VERSION:
        raise ScriptFormatError(f"Unsupported meta version {meta.version}")
    return tuple(
        tuple(_argument_type(byte, meta.version) for byte in signature)
        for signature in meta.signatures
    )


def _argument_type(byte: int, version: int) -> ArgumentType:
    is_list = version > 1 and bool(byte & _LIST_FLAG)
    bits = byte ^ _LIST_FLAG if is_list else byte
    if not 0 < bits < 1 << len(_ARGUMENT_TYPES):
        raise ScriptFormatError(f"no type of an argument: {byte}")
    types = tuple(name for place, name in enumerate(_ARGUMENT_TYPES) if bits >> place & 1)
    return ArgumentType(types, is_list)


# --- protobuf -------------------------------------------------------------------------------------


def read_meta(data: bytes) -> Meta:
    """The record in a protobuf message; unknown fields are passed over.

    Raises ``ScriptFormatError``.
    """
    version = 0
    signatures, pairs, originals = [], [], []
    for field, value in _fields(data):
        match field, value:
            case 1, int():
                version = _int32(value)
            case 2, bytes():
                signatures.append(_last_bytes(value, 1))
            case 3, bytes():
                pairs.append((_text(_last_bytes(value, 1)), _text(_last_bytes(value, 2))))
            case 4, bytes():
                originals.append(_text(value))
            case _:
                pass
    return Meta(version, tuple(signatures), tuple(pairs), tuple(originals))


def write_meta(meta: Meta) -> bytes:
    """The protobuf message of a record."""
    parts = []
    if meta.version:
        parts.append(b"\x08" + varint(meta.version & 0xFFFF_FFFF_FFFF_FFFF))
    parts.extend(_member(2, _member(1, each) if each else b"") for each in meta.signatures)
    for short, original in meta.name_pairs:
        pair = b"".join(
            _member(field, name.encode()) for field, name in ((1, short), (2, original)) if name
        )
        parts.append(_member(3, pair))
    parts.extend(_member(4, name.encode()) for name in meta.original_names)
    return b"".join(parts)


def _member(field: int, data: bytes) -> bytes:
    return bytes((field << 3 | _BYTES,)) + varint(len(data)) + data


def varint(number: int) -> bytes:
    """A number that is not negative, as protobuf writes it: seven bits a byte, low ones first."""
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def _int32(number: int) -> int:
    number &= 0xFFFF_FFFF
    return number - (1 << 32) if number >> 31 else number


def _text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise ScriptFormatError(f"a name in the meta is no text: {error}") from error


def _last_bytes(message: bytes, wanted: int) -> bytes:
    """A member of bytes; the last one counts when it is repeated."""
    found = b""
    for field, value in _fields(message):
        if field == wanted and isinstance(value, bytes):
            found = value
    return found


def _fields(data: bytes) -> list[tuple[int, int | bytes]]:
    """All fields of a message with their number; groups are read over."""
    found: list[tuple[int, int | bytes]] = []
    groups: list[int] = []
    place = 0
    while place < len(data):
        tag, place = _read_varint(data, place)
        tag &= 0xFFFF_FFFF
        field, wire = tag >> 3, tag & 7
        if field == 0:
            raise ScriptFormatError("a field without a number in the meta")
        if wire == _GROUP:
            groups.append(field)
            if len(groups) > MAX_GROUP_DEPTH:
                raise ScriptFormatError(f"groups in the meta, more than {MAX_GROUP_DEPTH} deep")
        elif wire == _END_GROUP:
            if not groups or groups.pop() != field:
                raise ScriptFormatError("a group in the meta ends that never began")
        else:
            value, place = _read_value(data, place, wire)
            if not groups:
                found.append((field, value))
    if groups:
        raise ScriptFormatError("a group in the meta does not end")
    return found


def _read_value(data: bytes, place: int, wire: int) -> tuple[int | bytes, int]:
    if wire == _VARINT:
        return _read_varint(data, place)
    if wire == _BYTES:
        length, place = _read_varint(data, place)
    elif wire in (_FIXED64, _FIXED32):
        length = 8 if wire == _FIXED64 else 4
    else:
        raise ScriptFormatError(f"a field of the unknown kind {wire} in the meta")
    if length > len(data) - place:
        raise ScriptFormatError("the meta breaks off")
    piece = data[place : place + length]
    place += length
    return (piece if wire == _BYTES else int.from_bytes(piece, "little")), place


def _read_varint(data: bytes, place: int) -> tuple[int, int]:
    number = 0
    for index in range(10):
        if place + index >= len(data):
            raise ScriptFormatError("the meta breaks off")
        byte = data[place + index]
        number |= (byte & 0x7F) << 7 * index
        if byte < 0x80:
            return number, place + index + 1
    raise ScriptFormatError("a number of more than 10 bytes in the meta")
