"""Type 17, update asset info: changes the name and description of an asset.

Source: wavesplatform/Waves
``node/src/main/scala/com/wavesplatform/transaction/assets/UpdateAssetInfoTransaction.scala`` and
``transaction/validation/impl/UpdateAssetInfoTxValidator.scala``.
"""

from __future__ import annotations

import msgspec

from soliton.chain import kinds
from soliton.chain.fields import Field
from soliton.chain.transactions import checks, model
from soliton.chain.transactions.model import AnyTransaction
from soliton.chain.values import AssetId


class UpdateAssetInfo(msgspec.Struct, frozen=True, gc=False):
    """The new name and description of ``asset_id``, in UTF-8."""

    asset_id: AssetId
    name: bytes
    description: bytes


def _validate(transaction: AnyTransaction) -> None:
    checks.check_fee(transaction)
    checks.check_asset_texts(transaction.payload.name, transaction.payload.description)


TYPE = model.TransactionType(
    type_id=17,
    name="update_asset_info",
    title="UpdateAssetInfoTransaction",
    payload=UpdateAssetInfo,
    max_version=1,
    fields=(
        Field("asset_id", kinds.ASSET_ID),
        Field("name", kinds.TEXT),
        Field("description", kinds.TEXT),
    ),
    binary={},
    protobuf=model.ProtobufForm("update_asset_info"),
    ride=model.RideForm("assetId name description", since=4, for_assets=True),
    validate=_validate,
    protobuf_since=1,
    fee_in_asset=True,
    request=model.RequestForm(model.PROVEN_REQUEST.required | {"version", "chainId"}),
)
