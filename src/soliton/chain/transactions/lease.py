"""Type 8, lease: wavelets lent to a generator until the lease is cancelled; its id is the
transaction's.

Source: wavesplatform/Waves
``node/src/main/scala/com/wavesplatform/transaction/lease/LeaseTransaction.scala``,
``transaction/serialization/impl/LeaseTxSerializer.scala`` and
``transaction/validation/impl/LeaseTxValidator.scala``.
"""

from __future__ import annotations

import msgspec

from soliton.chain import kinds
from soliton.chain.addresses import Recipient, from_public_key
from soliton.chain.errors import NonPositiveAmount, ToSelf
from soliton.chain.fields import Field
from soliton.chain.transactions import checks, model
from soliton.chain.transactions.model import AnyTransaction


class Lease(msgspec.Struct, frozen=True, gc=False):
    """Leases ``amount`` wavelets to ``recipient``."""

    recipient: Recipient
    amount: int


def _validate(transaction: AnyTransaction) -> None:
    payload: Lease = transaction.payload
    checks.check_fee(transaction)
    if payload.amount <= 0:
        raise NonPositiveAmount(payload.amount, "waves")
    checks.check_sum(payload.amount, transaction.fee)
    if from_public_key(transaction.sender_public_key, transaction.chain_id) == payload.recipient:
        raise ToSelf
    checks.check_chain(payload.recipient, transaction)


_LAYOUT = "sender_public_key recipient amount fee timestamp"

TYPE = model.TransactionType(
    type_id=8,
    name="lease",
    title="LeaseTransaction",
    payload=Lease,
    max_version=3,
    fields=(Field("amount", kinds.LONG), Field("recipient", kinds.RECIPIENT)),
    binary={
        1: model.BinaryForm(b"\x08", _LAYOUT, model.Auth.SIGNATURE_LAST),
        # The zero is a missing asset id; only the native coin can be leased.
        2: model.BinaryForm(b"\x08\2\0", _LAYOUT, model.Auth.PROOFS, lead=b"\0"),
    },
    protobuf=model.ProtobufForm("lease"),
    ride=model.RideForm("amount recipient"),
    validate=_validate,
    protobuf_since=3,
    signature_versions=frozenset({1}),
    spends=lambda payload: ((None, payload.amount),),
)
