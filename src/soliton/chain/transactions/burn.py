"""Type 6, burn: some of the sender's own asset ceases to be.

Source: wavesplatform/Waves
``node/src/main/scala/com/wavesplatform/transaction/assets/BurnTransaction.scala`` and
``transaction/serialization/impl/BurnTxSerializer.scala``.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from soliton.chain import protobuf
from soliton.chain.errors import NegativeAmount
from soliton.chain.json_kinds import ASSET_ID, LONG
from soliton.chain.layouts import DIGEST, I64, PUBLIC_KEY, U8, Field
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
from soliton.chain.values import AssetId


class Burn(msgspec.Struct, frozen=True, gc=False):
    """``quantity`` less of ``asset_id``; 0 is allowed."""

    asset_id: AssetId
    quantity: int


def _validate(transaction: AnyTransaction) -> None:
    if transaction.payload.quantity < 0:
        raise NegativeAmount(transaction.payload.quantity, "assets")
    check_fee(transaction)


def _read(message: transaction_pb2.BurnTransactionData, _chain_id: int) -> dict[str, Any]:
    protobuf.refuse_unknown_fields(message.asset_amount)
    return {
        "asset_id": protobuf.read_asset_id(message.asset_amount.asset_id),
        "quantity": message.asset_amount.amount,
    }


def _write(message: transaction_pb2.BurnTransactionData, payload: Burn) -> None:
    protobuf.write_amount(message.asset_amount, payload.asset_id, payload.quantity)


_FIELDS: Final = (
    Field("sender_public_key", PUBLIC_KEY),
    Field("asset_id", DIGEST),
    Field("quantity", I64),
    Field("fee", I64),
    Field("timestamp", I64),
)

TYPE = TransactionType(
    type_id=6,
    name="burn",
    title="BurnTransaction",
    payload=Burn,
    max_version=3,
    binary={
        1: BinaryForm(b"\6", _FIELDS, Auth.SIGNATURE_LAST),
        2: BinaryForm(b"\6\2", (Field("chain_id", U8), *_FIELDS), Auth.PROOFS, lead=b"\0"),
    },
    protobuf=ProtobufForm("burn", _read, _write),
    json=(
        JsonField("assetId", "asset_id", ASSET_ID),
        JsonField("amount", "quantity", LONG, aliases=("quantity",)),
    ),
    validate=_validate,
    protobuf_since=3,
    signature_versions=frozenset({1}),
    chain_id_versions=frozenset({2}),
)
