"""Type 5, reissue: more of an asset, and whether there can be more again.

Source: wavesplatform/Waves
``node/src/main/scala/com/wavesplatform/transaction/assets/ReissueTransaction.scala`` and
``transaction/serialization/impl/ReissueTxSerializer.scala``.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from soliton.chain import protobuf
from soliton.chain.errors import NonPositiveAmount
from soliton.chain.json_kinds import ASSET_ID, BOOLEAN, LONG
from soliton.chain.layouts import BOOL, DIGEST, I64, PUBLIC_KEY, U8, Field
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


class Reissue(msgspec.Struct, frozen=True, gc=False):
    """``quantity`` more of ``asset_id``."""

    asset_id: AssetId
    quantity: int
    reissuable: bool


def _validate(transaction: AnyTransaction) -> None:
    check_fee(transaction)
    if transaction.payload.quantity <= 0:
        raise NonPositiveAmount(transaction.payload.quantity, "assets")


def _read(message: transaction_pb2.ReissueTransactionData, _chain_id: int) -> dict[str, Any]:
    protobuf.refuse_unknown_fields(message.asset_amount)
    return {
        "asset_id": protobuf.read_asset_id(message.asset_amount.asset_id),
        "quantity": message.asset_amount.amount,
        "reissuable": message.reissuable,
    }


def _write(message: transaction_pb2.ReissueTransactionData, payload: Reissue) -> None:
    protobuf.write_amount(message.asset_amount, payload.asset_id, payload.quantity)
    message.reissuable = payload.reissuable


_FIELDS: Final = (
    Field("sender_public_key", PUBLIC_KEY),
    Field("asset_id", DIGEST),
    Field("quantity", I64),
    Field("reissuable", BOOL),
    Field("fee", I64),
    Field("timestamp", I64),
)

TYPE = TransactionType(
    type_id=5,
    name="reissue",
    title="ReissueTransaction",
    payload=Reissue,
    max_version=3,
    binary={
        1: BinaryForm(b"\5", _FIELDS, Auth.SIGNATURE_FIRST),
        2: BinaryForm(b"\5\2", (Field("chain_id", U8), *_FIELDS), Auth.PROOFS, lead=b"\0"),
    },
    protobuf=ProtobufForm("reissue", _read, _write),
    json=(
        JsonField("assetId", "asset_id", ASSET_ID),
        JsonField("quantity", "quantity", LONG),
        JsonField("reissuable", "reissuable", BOOLEAN),
    ),
    validate=_validate,
    protobuf_since=3,
    signature_versions=frozenset({1}),
    chain_id_versions=frozenset({2}),
)
