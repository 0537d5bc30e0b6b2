"""Type 12, data: entries written to the sender's own data storage.

Source: wavesplatform/Waves
``node/src/main/scala/com/wavesplatform/transaction/DataTransaction.scala`` and
``transaction/validation/impl/DataTxValidator.scala``.
"""

from __future__ import annotations

from typing import Final

import msgspec

from soliton.chain import kinds
from soliton.chain.errors import TooBigCount, ValueRuleError
from soliton.chain.fields import Field
from soliton.chain.transactions import checks, model
from soliton.chain.transactions.model import AnyTransaction
from soliton.chain.values import DataEntry

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
    checks.check_fee(transaction)
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


TYPE = model.TransactionType(
    type_id=12,
    name="data",
    title="DataTransaction",
    payload=Data,
    max_version=2,
    fields=(Field("entries", kinds.DATA_ENTRIES, key="data", path="data"),),
    binary={
        1: model.BinaryForm(
            b"\x0c\1",
            "sender_public_key entries timestamp fee",
            model.Auth.PROOFS,
            lead=b"\0",
        )
    },
    protobuf=model.ProtobufForm("data_transaction", strict=False),
    ride=model.RideForm("data"),
    validate=_validate,
    protobuf_since=2,
)
