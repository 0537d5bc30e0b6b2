"""The kinds of values that fields of several transaction types have.

What does not live here: the definition of a kind (``fields``), and kinds of a single type (its own
module).

Sources: wavesplatform/Waves ``node/src/main/scala/com/wavesplatform/serialization/Deser.scala``,
``protobuf/transaction`` and
``lang/shared/src/main/scala/com/wavesplatform/lang/v1/evaluator/ctx/impl/waves/Types.scala``.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from soliton.chain import json_kinds, layouts, protobuf
from soliton.chain.addresses import Recipient, public_key_hash, recipient_text
from soliton.chain.errors import FormatError
from soliton.chain.fields import Kind, MessageKind
from soliton.chain.json_kinds import JsonKind, same
from soliton.chain.json_schemas import (
    BOOLEAN_SCHEMA,
    BYTE_SCHEMA,
    LONG_SCHEMA,
    TEXT_SCHEMA,
    list_of,
)
from soliton.chain.layouts import Variable, take_u16
from soliton.chain.values import DataEntry, entry_bytes, read_entry
from soliton.crypto import base58

_BYTES: Final = "ByteVector"
_MAYBE_BYTES: Final = "ByteVector|Unit"


def _itself(recipient: Recipient) -> tuple[Recipient]:
    return (recipient,)


def _or_empty(value: bytes | None) -> bytes:
    return value or b""


def _or_none(member: bytes, _chain_id: int) -> bytes | None:
    return member or None


def _read_string(data: bytes, offset: int) -> tuple[str, int]:
    value, end = layouts.BYTES16.read(data, offset)
    return layouts.text(value), end


def _read_entries(data: bytes, offset: int) -> tuple[tuple[DataEntry, ...], int]:
    count = take_u16(data, offset)
    offset += 2
    entries = []
    for _ in range(count):
        entry, offset = read_entry(data, offset)
        entries.append(entry)
    return tuple(entries), offset


def _write_entries(entries: tuple[DataEntry, ...]) -> bytes:
    if any(entry.value is None for entry in entries):
        raise FormatError("version 1 cannot delete entries")
    return len(entries).to_bytes(2, "big") + b"".join(map(entry_bytes, entries))


def _fill_entries(messages: Any, entries: Iterable[DataEntry]) -> None:  # noqa: ANN401 - a repeated member
    for entry in entries:
        protobuf.write_data_entry(messages.add(), entry)


OPTIONAL_BYTES: Final = MessageKind(_or_none, _or_empty)
"""Bytes in a message; empty ones mean ``None``."""
LONG: Final = Kind(JsonKind(json_kinds.read_long, same, LONG_SCHEMA), layouts.I64, ride="Int")
BYTE: Final = Kind(JsonKind(json_kinds.read_byte, same, BYTE_SCHEMA), layouts.U8, ride="Int")
BOOLEAN: Final = Kind(
    JsonKind(json_kinds.read_boolean, same, BOOLEAN_SCHEMA), layouts.BOOL, ride="Boolean"
)
STRING: Final = Kind(
    JsonKind(json_kinds.read_string, same, TEXT_SCHEMA),
    Variable(_read_string, lambda value: layouts.write_bytes16(value.encode())),
    ride="String",
)
BYTES: Final = Kind(
    JsonKind(
        json_kinds.read_bytes,
        base58.encode,
        json_kinds.BASE58_SCHEMA,
        json_kinds.SENT_BYTES_SCHEMA,
    ),
    layouts.BYTES16,
    ride=_BYTES,
)
TEXT: Final = Kind(
    JsonKind(
        lambda value, _chain_id: json_kinds.expect_string(value).encode(),
        layouts.lenient_text,
        TEXT_SCHEMA,
    ),
    layouts.BYTES16,
    MessageKind(lambda member, _chain_id: member.encode(), layouts.lenient_text),
    ride={1: _BYTES, 4: "String"},
)
"""Bytes that should be text; in early history they are not always valid."""
ASSET: Final = Kind(
    JsonKind(json_kinds.read_asset, json_kinds.write_asset, json_kinds.ASSET_SCHEMA),
    layouts.OPTIONAL_ASSET,
    MessageKind(protobuf.read_asset, _or_empty),
    _MAYBE_BYTES,
)
"""An asset, or ``None`` for the native coin."""
ASSET_ID: Final = Kind(
    JsonKind(json_kinds.read_asset_id, base58.encode, json_kinds.BASE58_SCHEMA),
    layouts.DIGEST,
    MessageKind(protobuf.read_asset_id),
    _BYTES,
)
SCRIPT: Final = Kind(
    JsonKind(json_kinds.read_script, json_kinds.write_script, json_kinds.SCRIPT_SCHEMA),
    layouts.OPTIONAL_SCRIPT,
    OPTIONAL_BYTES,
    _MAYBE_BYTES,
)
SCRIPT_OF_ISSUE: Final = Kind(
    JsonKind(json_kinds.read_some_script, json_kinds.write_script, json_kinds.SCRIPT_SCHEMA),
    SCRIPT.binary,
    SCRIPT.message,
    SCRIPT.ride,
)
"""The same, but an empty string in JSON is an error instead of no script."""
_RECIPIENT_JSON: Final = JsonKind(
    json_kinds.read_recipient, recipient_text, json_kinds.RECIPIENT_SCHEMA
)
RECIPIENT: Final = Kind(
    _RECIPIENT_JSON,
    layouts.RECIPIENT,
    MessageKind(protobuf.read_recipient, fill=protobuf.write_recipient),
    "Recipient",
    _itself,
)
ADDRESS: Final = Kind(
    _RECIPIENT_JSON,
    layouts.ADDRESS,
    MessageKind(protobuf.read_address, public_key_hash),
    "Recipient",
    _itself,
)
"""An address, for the oldest types, which do not support aliases."""
DATA_ENTRIES: Final = Kind(
    JsonKind(
        lambda value, chain_id: json_kinds.read_items(
            value,
            chain_id,
            json_kinds.MAX_JSON_DATA_ENTRIES,
            json_kinds.read_data_entry,
            "data entries",
        ),
        lambda entries: [json_kinds.data_entry_json(entry) for entry in entries],
        list_of(json_kinds.DATA_ENTRY_SCHEMA),
    ),
    Variable(_read_entries, _write_entries),
    MessageKind(
        lambda messages, _chain_id: tuple(map(protobuf.read_data_entry, messages)),
        fill=_fill_entries,
    ),
    "List[Entry]",
)
