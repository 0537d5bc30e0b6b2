"""Type 12, data: entries written to the sender's own data storage.

Source: wavesplatform/Waves
``node/src/main/scala/com/wavesplatform/transaction/DataTransaction.scala`` and
``transaction/validation/impl/DataTxValidator.scala``.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from soliton.chain import protobuf
from soliton.chain.errors import FormatError, InsufficientFee, TooBigCount, ValueRuleError
from soliton.chain.json_kinds import DATA_ENTRIES
from soliton.chain.layouts import I64, PUBLIC_KEY, Field, Variable, take_u16
from soliton.chain.proto import transaction_pb2
from soliton.chain.transactions.model import (
    AnyTransaction,
    Auth,
    BinaryForm,
    JsonField,
    ProtobufForm,
    TransactionType,
)
from soliton.chain.values import DataEntry, entry_bytes, read_entry

MAX_ENTRIES: Final = 100
MAX_KEY_BYTES: Final = 400
MAX_KEY_CHARS_V1: Final = 100
MAX_VALUE_BYTES: Final = 32_767
MAX_BYTES_V1: Final = 153_600
MAX_PROTOBUF_BYTES: Final = 165_890
MAX_PAYLOAD_BYTES: Final = 165_835


class Data(msgspec.Struct, frozen=True, gc=False):
    """The entries, in the sender's order."""

    entries: tuple[DataEntry, ...]


def _validate(transaction: AnyTransaction) -> None:
    entries: tuple[DataEntry, ...] = transaction.payload.entries
    if transaction.fee <= 0:
        raise InsufficientFee
    if len(entries) > MAX_ENTRIES or not all(map(_fits, entries)):
        raise TooBigCount(MAX_ENTRIES)
    if not all(entry.key for entry in entries):
        raise ValueRuleError("Empty key found")
    if len({entry.key for entry in entries}) != len(entries):
        raise ValueRuleError("Duplicate keys found")
    if transaction.version == 1 and any(entry.value is None for entry in entries):
        raise ValueRuleError("Empty data is not allowed in V1")


def _fits(entry: DataEntry) -> bool:
    size = 0
    if isinstance(entry.value, bytes):
        size = len(entry.value)
    elif isinstance(entry.value, str):
        size = len(entry.value.encode())
    return len(entry.key.encode()) <= MAX_KEY_BYTES and size <= MAX_VALUE_BYTES


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


def _read(message: transaction_pb2.DataTransactionData, _chain_id: int) -> dict[str, Any]:
    return {"entries": tuple(map(protobuf.read_data_entry, message.data))}


def _write(message: transaction_pb2.DataTransactionData, payload: Data) -> None:
    for entry in payload.entries:
        protobuf.write_data_entry(message.data.add(), entry)


TYPE = TransactionType(
    type_id=12,
    name="data",
    title="DataTransaction",
    payload=Data,
    max_version=2,
    binary={
        1: BinaryForm(
            b"\x0c\1",
            (
                Field("sender_public_key", PUBLIC_KEY),
                Field("entries", Variable(_read_entries, _write_entries)),
                Field("timestamp", I64),
                Field("fee", I64),
            ),
            Auth.PROOFS,
            lead=b"\0",
        )
    },
    protobuf=ProtobufForm("data_transaction", _read, _write, strict=False),
    json=(JsonField("data", "entries", DATA_ENTRIES),),
    validate=_validate,
    protobuf_since=2,
)
