"""Type 17, update asset info: another name and description for an asset.

Source: wavesplatform/Waves
``node/src/main/scala/com/wavesplatform/transaction/assets/UpdateAssetInfoTransaction.scala`` and
``transaction/validation/impl/UpdateAssetInfoTxValidator.scala``.
"""

from __future__ import annotations

from typing import Any

import msgspec

from soliton.chain import protobuf
from soliton.chain.json_kinds import ASSET_ID, TEXT
from soliton.chain.proto import transaction_pb2
from soliton.chain.transactions.checks import check_asset_texts, check_fee
from soliton.chain.transactions.model import (
    PROVEN_REQUEST,
    AnyTransaction,
    JsonField,
    ProtobufForm,
    RequestForm,
    TransactionType,
)
from soliton.chain.values import AssetId


class UpdateAssetInfo(msgspec.Struct, frozen=True, gc=False):
    """What ``asset_id`` is called from now on: UTF-8, as bytes like in an issue."""

    asset_id: AssetId
    name: bytes
    description: bytes


def _validate(transaction: AnyTransaction) -> None:
    check_fee(transaction)
    check_asset_texts(transaction.payload.name, transaction.payload.description)


def _read(
    message: transaction_pb2.UpdateAssetInfoTransactionData, _chain_id: int
) -> dict[str, Any]:
    return {
        "asset_id": protobuf.read_asset_id(message.asset_id),
        "name": message.name.encode(),
        "description": message.description.encode(),
    }


def _write(
    message: transaction_pb2.UpdateAssetInfoTransactionData, payload: UpdateAssetInfo
) -> None:
    message.asset_id = payload.asset_id
    message.name = payload.name.decode(errors="replace")
    message.description = payload.description.decode(errors="replace")


TYPE = TransactionType(
    type_id=17,
    name="update_asset_info",
    title="UpdateAssetInfoTransaction",
    payload=UpdateAssetInfo,
    max_version=1,
    binary={},
    protobuf=ProtobufForm("update_asset_info", _read, _write),
    json=(
        JsonField("assetId", "asset_id", ASSET_ID),
        JsonField("name", "name", TEXT),
        JsonField("description", "description", TEXT),
    ),
    validate=_validate,
    protobuf_since=1,
    fee_in_asset=True,
    request=RequestForm(PROVEN_REQUEST.required | {"version", "chainId"}),
)
