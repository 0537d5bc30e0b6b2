"""Type 1, genesis: the first distribution of the native coin, only in the block at height 1.

Source: wavesplatform/Waves
``node/src/main/scala/com/wavesplatform/transaction/GenesisTransaction.scala``.
"""

from __future__ import annotations

import msgspec

from soliton.chain import kinds
from soliton.chain.addresses import Address
from soliton.chain.errors import NegativeAmount
from soliton.chain.fields import Field
from soliton.chain.transactions import checks, model
from soliton.chain.transactions.model import AnyTransaction
from soliton.crypto.hashes import blake2b256


class Genesis(msgspec.Struct, frozen=True, gc=False):
    """Creates ``amount`` wavelets for ``recipient``."""

    recipient: Address
    amount: int


def _make_id(_version: int, body: bytes, _proofs: tuple[bytes, ...]) -> bytes:
    # The hash uses a type of four bytes, and is repeated to get the length of a signature.
    return blake2b256(bytes(3) + body) * 2


def _validate(transaction: AnyTransaction) -> None:
    checks.check_chain(transaction.payload.recipient, transaction)
    if transaction.payload.amount < 0:
        raise NegativeAmount(transaction.payload.amount, "waves")


TYPE = model.TransactionType(
    type_id=1,
    name="genesis",
    title="GenesisTransaction",
    payload=Genesis,
    max_version=1,
    fields=(
        Field("recipient", kinds.ADDRESS, path="recipient_address"),
        Field("amount", kinds.LONG),
    ),
    binary={1: model.BinaryForm(b"\1", "timestamp recipient amount", model.Auth.NONE)},
    protobuf=model.ProtobufForm("genesis"),
    ride=model.RideForm("amount recipient", obsolete=True, proven=False),
    validate=_validate,
    make_id=_make_id,
    versioned=False,
    senderless=True,
)
