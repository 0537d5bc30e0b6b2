"""Type 2, payment: the first form of a transfer, used until block version 3.

Source: wavesplatform/Waves
``node/src/main/scala/com/wavesplatform/transaction/PaymentTransaction.scala``.
"""

from __future__ import annotations

from typing import Any

import msgspec

from soliton.chain import protobuf
from soliton.chain.addresses import Address, public_key_hash
from soliton.chain.errors import (
    AmountOverflow,
    InsufficientFee,
    NonPositiveAmount,
    ValueRuleError,
)
from soliton.chain.json_kinds import LONG, RECIPIENT
from soliton.chain.layouts import ADDRESS, I64, PUBLIC_KEY, Field
from soliton.chain.proto import transaction_pb2
from soliton.chain.transactions.model import (
    AnyTransaction,
    Auth,
    BinaryForm,
    JsonField,
    ProtobufForm,
    TransactionType,
)
from soliton.chain.values import MAX_I64


class Payment(msgspec.Struct, frozen=True, gc=False):
    """``amount`` wavelets to ``recipient``."""

    recipient: Address
    amount: int


def _make_id(_version: int, _body: bytes, proofs: tuple[bytes, ...]) -> bytes:
    return proofs[0] if proofs else b""


def _validate(transaction: AnyTransaction) -> None:
    if transaction.payload.recipient[1] != transaction.chain_id:
        raise ValueRuleError("Address or alias from other network")
    amount, fee = transaction.payload.amount, transaction.fee
    if amount <= 0:
        raise NonPositiveAmount(amount, "waves")
    if fee <= 0:
        raise InsufficientFee
    if amount + fee > MAX_I64:
        raise AmountOverflow


def _read(message: transaction_pb2.PaymentTransactionData, chain_id: int) -> dict[str, Any]:
    return {
        "recipient": protobuf.read_address(message.recipient_address, chain_id),
        "amount": message.amount,
    }


def _write(message: transaction_pb2.PaymentTransactionData, payload: Payment) -> None:
    message.recipient_address = public_key_hash(payload.recipient)
    message.amount = payload.amount


TYPE = TransactionType(
    type_id=2,
    name="payment",
    title="PaymentTransaction",
    payload=Payment,
    max_version=1,
    binary={
        1: BinaryForm(
            b"\0\0\0\2",
            (
                Field("timestamp", I64),
                Field("sender_public_key", PUBLIC_KEY),
                Field("recipient", ADDRESS),
                Field("amount", I64),
                Field("fee", I64),
            ),
            Auth.SIGNATURE_LAST,
            stored_head=b"\2",
        )
    },
    protobuf=ProtobufForm("payment", _read, _write),
    json=(JsonField("recipient", "recipient", RECIPIENT), JsonField("amount", "amount", LONG)),
    validate=_validate,
    make_id=_make_id,
    versioned=False,
    signature_versions=frozenset({1}),
)
