"""Conversion of protobuf messages to values and back.

What lives here: recipients, amounts and data entries as messages, and parsing with typed errors.
What does not: the schema (``proto/*.proto``) and the message of a transaction type (its own
module).

Sources: wavesplatform/protobuf-schemas ``proto/waves``; wavesplatform/Waves
``node/src/main/scala/com/wavesplatform/protobuf/transaction``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, TypeVar

from google.protobuf.message import DecodeError, EncodeError, Message
from google.protobuf.unknown_fields import UnknownFieldSet

from soliton.chain.addresses import (
    ADDRESS_LENGTH,
    PUBLIC_KEY_HASH_LENGTH,
    PUBLIC_KEY_LENGTH,
    Address,
    Alias,
    Recipient,
    check_address,
    from_public_key,
    from_public_key_hash,
    make_alias,
    public_key_hash,
)
from soliton.chain.errors import FormatError
from soliton.chain.layouts import DIGEST_LENGTH
from soliton.chain.proto import amount_pb2, recipient_pb2, transaction_pb2
from soliton.chain.values import DataEntry, DataValue

M = TypeVar("M", bound=Message)

_NUMBER: Final = 0
_LENGTH_DELIMITED: Final = 2
_GROUP: Final = 3
_FIXED_BYTES: Final = {1: 8, 5: 4}
_MAX_LENGTH_BITS: Final = 35


def parse(message_type: type[M], data: bytes) -> M:
    """Parse a message; raise ``FormatError``."""
    try:
        return message_type.FromString(data)
    except (DecodeError, RecursionError, ValueError) as error:
        raise FormatError(f"no {message_type.DESCRIPTOR.name}: {error}") from error


def serialize(message: Message) -> bytes:
    """Serialize a message deterministically: fields in tag order, without defaults."""
    try:
        return message.SerializeToString(deterministic=True)
    except (EncodeError, ValueError) as error:
        raise FormatError(f"{message.DESCRIPTOR.name} cannot be written: {error}") from error


def delimited(field: int, data: bytes) -> bytes:
    """Encode a bytes or message field: its tag, the length, the bytes."""
    length = len(data)
    if length <= 0x7F:
        return bytes((field << 3 | _LENGTH_DELIMITED, length)) + data
    if length <= 0x3FFF:
        return bytes((field << 3 | _LENGTH_DELIMITED, length & 0x7F | 0x80, length >> 7)) + data
    size = bytearray()
    while length > 0x7F:
        size.append(length & 0x7F | 0x80)
        length >>= 7
    return bytes((field << 3 | _LENGTH_DELIMITED, *size, length)) + data


def read_length(data: bytes, offset: int) -> tuple[int, int]:
    """Return an encoded length and the offset after it; raise ``FormatError``."""
    value = shift = 0
    try:
        while shift < _MAX_LENGTH_BITS:
            byte = data[offset]
            offset += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value, offset
            shift += 7
    except IndexError as error:
        raise FormatError(f"a length expected at offset {offset}, nothing left") from error
    raise FormatError(f"over-long number before offset {offset}")


def spans(data: bytes) -> Iterator[tuple[int, int, int]]:
    """Yield field number, start and end of each length-delimited member, without decoding it; other
    members are skipped. Raises ``FormatError``.
    """
    offset, size = 0, len(data)
    while offset < size:
        tag, offset = read_length(data, offset)
        kind = tag & 7
        if kind == _LENGTH_DELIMITED:
            length, offset = read_length(data, offset)
            if length > size - offset:
                raise FormatError(f"{length} bytes expected at offset {offset}, too few are left")
            yield tag >> 3, offset, offset + length
            offset += length
        elif kind == _NUMBER:
            _, offset = read_length(data, offset)
        elif kind in _FIXED_BYTES:
            offset += _FIXED_BYTES[kind]
        else:
            raise FormatError(f"no member of a message before offset {offset}")


def refuse_unknown_fields(message: Message) -> None:
    """Raise ``FormatError`` if the message contains fields that are not in the schema."""
    if len(UnknownFieldSet(message)):
        raise FormatError(f"{message.DESCRIPTOR.name} has unknown fields")


def refuse_unknown_groups(message: Message) -> None:
    """Raise ``FormatError`` if the message contains groups that are not in the schema."""
    unknown = UnknownFieldSet(message)
    if any(unknown[place].wire_type == _GROUP for place in range(len(unknown))):
        raise FormatError(f"{message.DESCRIPTOR.name} has unknown groups")


def read_asset(asset_id: bytes, _chain_id: int = 0) -> bytes | None:
    """Convert an asset id; empty bytes are the native coin. Raises ``FormatError`` unless it has 32
    bytes. All readers of members take a chain id.
    """
    if not asset_id:
        return None
    if len(asset_id) != DIGEST_LENGTH:
        raise FormatError(f"asset id of {len(asset_id)} bytes")
    return asset_id


def read_asset_id(asset_id: bytes, _chain_id: int = 0) -> bytes:
    """Check the id of an asset, which cannot be the native coin; raise ``FormatError``."""
    if len(asset_id) != DIGEST_LENGTH:
        raise FormatError(f"asset id of {len(asset_id)} bytes")
    return asset_id


def read_recipient(message: recipient_pb2.Recipient, chain_id: int) -> Recipient:
    """Convert a ``Recipient`` message.

    The hash member may also contain an address or a public key, as in the reference node. Raises
    ``FormatError`` or ``AddressError``.
    """
    match message.WhichOneof("recipient"):
        case "alias":
            return make_alias(message.alias, chain_id)
        case "public_key_hash":
            return read_address(message.public_key_hash, chain_id)
        case _:
            raise FormatError("recipient is empty")


def read_address(data: bytes, chain_id: int) -> Address:
    """Return an address from its 20-byte hash, its 26 bytes or a 32-byte public key."""
    match len(data):
        case n if n == PUBLIC_KEY_HASH_LENGTH:
            return from_public_key_hash(data, chain_id)
        case n if n == ADDRESS_LENGTH:
            return check_address(data, chain_id)
        case n if n == PUBLIC_KEY_LENGTH:
            return from_public_key(data, chain_id)
        case n:
            raise FormatError(f"no address in {n} bytes")


def write_recipient(message: recipient_pb2.Recipient, recipient: Recipient) -> None:
    """Fill a ``Recipient`` message."""
    if isinstance(recipient, Alias):
        message.alias = recipient.name
    else:
        message.public_key_hash = public_key_hash(recipient)


def write_amount(message: amount_pb2.Amount, asset_id: bytes | None, amount: int) -> None:
    """Fill an ``Amount`` message; it is written even if both members are empty."""
    message.SetInParent()
    if asset_id is not None:
        message.asset_id = asset_id
    message.amount = amount


def read_data_entry(message: transaction_pb2.DataEntry, _chain_id: int = 0) -> DataEntry:
    """Convert a ``DataEntry`` message; without a value it is a deletion."""
    member = message.WhichOneof("value")
    value: DataValue = None if member is None else getattr(message, member)
    return DataEntry(message.key, value)


def write_data_entry(message: transaction_pb2.DataEntry, entry: DataEntry) -> None:
    """Fill a ``DataEntry`` message."""
    message.key = entry.key
    match entry.value:
        case None:
            pass
        case bool():
            message.bool_value = entry.value
        case int():
            message.int_value = entry.value
        case bytes():
            message.binary_value = entry.value
        case str():
            message.string_value = entry.value
