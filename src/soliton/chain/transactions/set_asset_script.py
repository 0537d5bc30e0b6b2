"""Type 15, set asset script: replaces the script of a smart asset.

Source: wavesplatform/Waves
``node/src/main/scala/com/wavesplatform/transaction/assets/SetAssetScriptTransaction.scala``,
``transaction/serialization/impl/SetAssetScriptTxSerializer.scala`` and
``transaction/validation/impl/SetAssetScriptTxValidator.scala``.
"""

from __future__ import annotations

import msgspec

from soliton.chain import kinds
from soliton.chain.errors import ValueRuleError
from soliton.chain.fields import Field
from soliton.chain.transactions import checks, model
from soliton.chain.transactions.model import AnyTransaction
from soliton.chain.values import AssetId


class SetAssetScript(msgspec.Struct, frozen=True, gc=False):
    """The serialised script for ``asset_id``; ``None`` can be encoded, but is invalid."""

    asset_id: AssetId
    script: bytes | None


def _validate(transaction: AnyTransaction) -> None:
    checks.check_fee(transaction)
    checks.check_asset_script(transaction.payload.script)
    if transaction.payload.script is None:
        raise ValueRuleError("Cannot set empty script")


TYPE = model.TransactionType(
    type_id=15,
    name="set_asset_script",
    title="SetAssetScriptTransaction",
    payload=SetAssetScript,
    max_version=2,
    fields=(Field("asset_id", kinds.ASSET_ID), Field("script", kinds.SCRIPT, default=None)),
    binary={
        1: model.BinaryForm(
            b"\x0f\1",
            "chain_id sender_public_key asset_id fee timestamp script",
            model.Auth.PROOFS,
            lead=b"\0",
        )
    },
    protobuf=model.ProtobufForm("set_asset_script"),
    ride=model.RideForm("script assetId", for_assets=True),
    validate=_validate,
    protobuf_since=2,
    chain_id_versions=frozenset({1}),
    request=model.PROVEN_REQUEST,
)
