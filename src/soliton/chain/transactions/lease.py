"""Type 8, lease: wavelets lent to a generator until the lease is cancelled; its id is the
transaction's.

Source: wavesplatform/Waves
``node/src/main/scala/com/wavesplatform/transaction/lease/LeaseTransaction.scala``,
``transaction/serialization/impl/LeaseTxSerializer.scala`` and
``transaction/validation/impl/LeaseTxValidator.scala``.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from soliton.chain import protobuf
from soliton.chain.addresses import Recipient, from_public_key
from soliton.chain.errors import NonPositiveAmount, ToSelf
from soliton.chain.json_kinds import LONG, RECIPIENT
from soliton.chain.layouts import I64, PUBLIC_KEY, Field
from soliton.chain.layouts import RECIPIENT as RECIPIENT_BYTES
from soliton.chain.proto import transaction_pb2
from soliton.chain.transactions.checks import check_chain, check_fee, check_sum
from soliton.chain.transactions.model import (
    AnyTransaction,
    Auth,
    BinaryForm,
    JsonField,
    ProtobufForm,
    TransactionType,
)


class Lease(msgspec.Struct, frozen=True, gc=False):
    """``amount`` wavelets lent to ``recipient``."""

    recipient: Recipient
    amount: int


def _validate(transaction: AnyTransaction) -> None:
    payload: Lease = transaction.payload
    check_fee(transaction)
    if payload.amount <= 0:
        raise NonPositiveAmount(payload.amount, "waves")
    check_sum(payload.amount, transaction.fee)
    if from_public_key(transaction.sender_public_key, transaction.chain_id) == payload.recipient:
        raise ToSelf
    check_chain(payload.recipient, transaction)


def _read(message: transaction_pb2.LeaseTransactionData, chain_id: int) -> dict[str, Any]:
    return {
        "recipient": protobuf.read_recipient(message.recipient, chain_id),
        "amount": message.amount,
    }


def _write(message: transaction_pb2.LeaseTransactionData, payload: Lease) -> None:
    protobuf.write_recipient(message.recipient, payload.recipient)
    message.amount = payload.amount


_FIELDS: Final = (
    Field("sender_public_key", PUBLIC_KEY),
    Field("recipient", RECIPIENT_BYTES),
    Field("amount", I64),
    Field("fee", I64),
    Field("timestamp", I64),
)

TYPE = TransactionType(
    type_id=8,
    name="lease",
    title="LeaseTransaction",
    payload=Lease,
    max_version=3,
    binary={
        1: BinaryForm(b"\x08", _FIELDS, Auth.SIGNATURE_LAST),
        # The zero is the place of an asset id; assets were never leased.
        2: BinaryForm(b"\x08\2\0", _FIELDS, Auth.PROOFS, lead=b"\0"),
    },
    protobuf=ProtobufForm("lease", _read, _write),
    json=(JsonField("amount", "amount", LONG), JsonField("recipient", "recipient", RECIPIENT)),
    validate=_validate,
    protobuf_since=3,
    signature_versions=frozenset({1}),
)
