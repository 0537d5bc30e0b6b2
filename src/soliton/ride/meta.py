"""The metadata in a dApp's script: argument types and original names.

What lives here: the record, its protobuf form, and the bits of argument types. What does not: its
creation (the compiler).

Sources: wavesplatform/protobuf-schemas ``proto/waves/lang/dapp_meta.proto``; wavesplatform/Waves
``lang/shared/src/main/scala/com/wavesplatform/lang/contract/meta``.
"""

from __future__ import annotations

from typing import Final

import msgspec

from soliton.ride.errors import ScriptFormatError

MAX_GROUP_DEPTH: Final = 100
"""The limit of nested groups in unknown fields, as in the reference's protobuf library."""
LATEST_META_VERSION: Final = 2

_ARGUMENT_TYPES: Final = ("Int", "ByteVector", "Boolean", "String")
_LIST_FLAG: Final = 16
_VARINT, _FIXED64, _BYTES, _GROUP, _END_GROUP, _FIXED32 = range(6)


class ArgumentType(msgspec.Struct, frozen=True, gc=False):
    """The type of a callable function's argument: one type or a union, or a list of that."""

    types: tuple[str, ...]
    is_list: bool = False


class Meta(msgspec.Struct, frozen=True):
    """``signatures`` has an entry per callable function with a byte per argument. The names are
    those that the compiler shortened.
    """

    version: int = 0
    signatures: tuple[bytes, ...] = ()
    name_pairs: tuple[tuple[str, str], ...] = ()
    original_names: tuple[str, ...] = ()


def argument_types(meta: Meta) -> tuple[tuple[ArgumentType, ...], ...] | None:
    """Return the argument types of all callable functions, or ``None`` if they are not recorded.

    Raises ``ScriptFormatError`` for an unknown version or unknown bits.
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
    types = tuple(name for bit, name in enumerate(_ARGUMENT_TYPES) if bits >> bit & 1)
    return ArgumentType(types, is_list)


# --- protobuf -------------------------------------------------------------------------------------


def read_meta(data: bytes) -> Meta:
    """Parse the protobuf message, ignoring unknown fields; raise ``ScriptFormatError`` if it is
    malformed.
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
    """Serialize the protobuf message."""
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
    """Encode a non-negative number as a protobuf varint: seven bits per byte, low ones first."""
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


def _last_bytes(message: bytes, number: int) -> bytes:
    """Return the last occurrence of a bytes field."""
    last = b""
    for field, value in _fields(message):
        if field == number and isinstance(value, bytes):
            last = value
    return last


def _fields(data: bytes) -> list[tuple[int, int | bytes]]:
    """Return the fields of a message with their numbers, skipping groups."""
    found: list[tuple[int, int | bytes]] = []
    groups: list[int] = []
    offset = 0
    while offset < len(data):
        tag, offset = _read_varint(data, offset)
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
            value, offset = _read_value(data, offset, wire)
            if not groups:
                found.append((field, value))
    if groups:
        raise ScriptFormatError("a group in the meta does not end")
    return found


def _read_value(data: bytes, offset: int, wire: int) -> tuple[int | bytes, int]:
    if wire == _VARINT:
        return _read_varint(data, offset)
    if wire == _BYTES:
        length, offset = _read_varint(data, offset)
    elif wire in (_FIXED64, _FIXED32):
        length = 8 if wire == _FIXED64 else 4
    else:
        raise ScriptFormatError(f"a field of the unknown kind {wire} in the meta")
    if length > len(data) - offset:
        raise ScriptFormatError("the meta breaks off")
    piece = data[offset : offset + length]
    offset += length
    return (piece if wire == _BYTES else int.from_bytes(piece, "little")), offset


def _read_varint(data: bytes, offset: int) -> tuple[int, int]:
    number = 0
    for index in range(10):
        if offset + index >= len(data):
            raise ScriptFormatError("the meta breaks off")
        byte = data[offset + index]
        number |= (byte & 0x7F) << 7 * index
        if byte < 0x80:
            return number, offset + index + 1
    raise ScriptFormatError("a number of more than 10 bytes in the meta")
