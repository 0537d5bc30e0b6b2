"""Type 9, lease cancel: what was lent comes back.

Source: wavesplatform/Waves
``node/src/main/scala/com/wavesplatform/transaction/lease/LeaseCancelTransaction.scala``,
``transaction/serialization/impl/LeaseCancelTxSerializer.scala`` and
``transaction/validation/impl/LeaseCancelTxValidator.scala``.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from soliton.chain.errors import ValueRuleError
from soliton.chain.json_kinds import BASE58_SCHEMA, JsonKind, expect_string
from soliton.chain.layouts import DIGEST, DIGEST_LENGTH, I64, PUBLIC_KEY, U8, Field
from soliton.chain.proto import transaction_pb2
from soliton.chain.transactions.checks import check_fee
from soliton.chain.transactions.model import (
    AnyTransaction,
    Auth,
    BinaryForm,
    JsonField,
    ProtobufForm,
    TransactionType,
)
from soliton.crypto import base58
from soliton.crypto.errors import Base58Error

_MAX_ID_CHARS: Final = 44


class LeaseCancel(msgspec.Struct, frozen=True, gc=False):
    """The lease that ends."""

    lease_id: bytes


def _validate(transaction: AnyTransaction) -> None:
    check_fee(transaction)
    lease_id: bytes = transaction.payload.lease_id
    if len(lease_id) != DIGEST_LENGTH:
        raise ValueRuleError(
            f"Lease id={base58.encode(lease_id)} has invalid length = {len(lease_id)} byte(s) "
            f"while expecting {DIGEST_LENGTH}"
        )


def _read_id(value: object, _chain_id: int) -> bytes:
    try:
        return base58.decode(expect_string(value), _MAX_ID_CHARS)
    except Base58Error as error:
        raise ValueRuleError("invalid.leaseTx") from error


def _read(message: transaction_pb2.LeaseCancelTransactionData, _chain_id: int) -> dict[str, Any]:
    return {"lease_id": message.lease_id}


def _write(message: transaction_pb2.LeaseCancelTransactionData, payload: LeaseCancel) -> None:
    message.lease_id = payload.lease_id


_FIELDS: Final = (
    Field("sender_public_key", PUBLIC_KEY),
    Field("fee", I64),
    Field("timestamp", I64),
    Field("lease_id", DIGEST),
)

TYPE = TransactionType(
    type_id=9,
    name="lease_cancel",
    title="LeaseCancelTransaction",
    payload=LeaseCancel,
    max_version=3,
    binary={
        1: BinaryForm(b"\x09", _FIELDS, Auth.SIGNATURE_LAST),
        2: BinaryForm(b"\x09\2", (Field("chain_id", U8), *_FIELDS), Auth.PROOFS, lead=b"\0"),
    },
    protobuf=ProtobufForm("lease_cancel", _read, _write),
    json=(
        JsonField(
            "leaseId",
            "lease_id",
            JsonKind(_read_id, base58.encode, BASE58_SCHEMA),
            aliases=("txId",),
        ),
    ),
    validate=_validate,
    protobuf_since=3,
    signature_versions=frozenset({1}),
    chain_id_versions=frozenset({2}),
)
