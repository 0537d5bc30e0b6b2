"""Type 1, genesis: the first distribution of the native coin, only in the block at height 1.

Source: wavesplatform/Waves
``node/src/main/scala/com/wavesplatform/transaction/GenesisTransaction.scala``.
"""

from __future__ import annotations

from typing import Any

import msgspec

from soliton.chain import protobuf
from soliton.chain.addresses import Address, public_key_hash
from soliton.chain.errors import NegativeAmount, ValueRuleError
from soliton.chain.json_kinds import LONG, RECIPIENT
from soliton.chain.layouts import ADDRESS, I64, Field
from soliton.chain.proto import transaction_pb2
from soliton.chain.transactions.model import (
    AnyTransaction,
    Auth,
    BinaryForm,
    JsonField,
    ProtobufForm,
    TransactionType,
)
from soliton.crypto.hashes import blake2b256


class Genesis(msgspec.Struct, frozen=True, gc=False):
    """``amount`` wavelets for ``recipient``."""

    recipient: Address
    amount: int


def _make_id(_version: int, body: bytes, _proofs: tuple[bytes, ...]) -> bytes:
    # The hash is taken with a type of four bytes and written twice, to look like a signature.
    return blake2b256(bytes(3) + body) * 2


def _validate(transaction: AnyTransaction) -> None:
    if transaction.payload.recipient[1] != transaction.chain_id:
        raise ValueRuleError("Address or alias from other network")
    if transaction.payload.amount < 0:
        raise NegativeAmount(transaction.payload.amount, "waves")


def _write(message: transaction_pb2.GenesisTransactionData, payload: Genesis) -> None:
    message.recipient_address = public_key_hash(payload.recipient)
    message.amount = payload.amount


def _read(message: transaction_pb2.GenesisTransactionData, chain_id: int) -> dict[str, Any]:
    return {
        "recipient": protobuf.read_address(message.recipient_address, chain_id),
        "amount": message.amount,
    }


TYPE = TransactionType(
    type_id=1,
    name="genesis",
    title="GenesisTransaction",
    payload=Genesis,
    max_version=1,
    binary={
        1: BinaryForm(
            b"\1",
            (Field("timestamp", I64), Field("recipient", ADDRESS), Field("amount", I64)),
            Auth.NONE,
        )
    },
    protobuf=ProtobufForm("genesis", _read, _write),
    json=(JsonField("recipient", "recipient", RECIPIENT), JsonField("amount", "amount", LONG)),
    validate=_validate,
    make_id=_make_id,
    versioned=False,
)
