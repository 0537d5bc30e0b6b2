"""Type 2, payment: the original transfer, used until block version 3.

Source: wavesplatform/Waves
``node/src/main/scala/com/wavesplatform/transaction/PaymentTransaction.scala``.
"""

from __future__ import annotations

import msgspec

from soliton.chain import kinds
from soliton.chain.addresses import Address
from soliton.chain.errors import NonPositiveAmount
from soliton.chain.fields import Field
from soliton.chain.transactions import checks, model
from soliton.chain.transactions.model import AnyTransaction


class Payment(msgspec.Struct, frozen=True, gc=False):
    """Sends ``amount`` wavelets to ``recipient``."""

    recipient: Address
    amount: int


def _make_id(_version: int, _body: bytes, proofs: tuple[bytes, ...]) -> bytes:
    return proofs[0] if proofs else b""


def _validate(transaction: AnyTransaction) -> None:
    payload: Payment = transaction.payload
    checks.check_chain(payload.recipient, transaction)
    if payload.amount <= 0:
        raise NonPositiveAmount(payload.amount, "waves")
    checks.check_fee(transaction)
    checks.check_sum(payload.amount, transaction.fee)


TYPE = model.TransactionType(
    type_id=2,
    name="payment",
    title="PaymentTransaction",
    payload=Payment,
    max_version=1,
    fields=(
        Field("recipient", kinds.ADDRESS, path="recipient_address"),
        Field("amount", kinds.LONG),
    ),
    binary={
        1: model.BinaryForm(
            b"\0\0\0\2",
            "timestamp sender_public_key recipient amount fee",
            model.Auth.SIGNATURE_LAST,
            stored_head=b"\2",
        )
    },
    protobuf=model.ProtobufForm("payment"),
    ride=model.RideForm("amount recipient", obsolete=True),
    validate=_validate,
    make_id=_make_id,
    versioned=False,
    signature_versions=frozenset({1}),
    spends=lambda payload: ((None, payload.amount),),
)
