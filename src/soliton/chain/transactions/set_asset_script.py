"""Type 15, set asset script: another script for an asset that has one.

Source: wavesplatform/Waves
``node/src/main/scala/com/wavesplatform/transaction/assets/SetAssetScriptTransaction.scala``,
``transaction/serialization/impl/SetAssetScriptTxSerializer.scala`` and
``transaction/validation/impl/SetAssetScriptTxValidator.scala``.
"""

from __future__ import annotations

from typing import Any

import msgspec

from soliton.chain import protobuf
from soliton.chain.errors import ValueRuleError
from soliton.chain.json_kinds import ASSET_ID, SCRIPT
from soliton.chain.layouts import DIGEST, I64, OPTIONAL_SCRIPT, PUBLIC_KEY, U8, Field
from soliton.chain.proto import transaction_pb2
from soliton.chain.transactions.checks import check_asset_script, check_fee
from soliton.chain.transactions.model import (
    PROVEN_REQUEST,
    AnyTransaction,
    Auth,
    BinaryForm,
    JsonField,
    ProtobufForm,
    TransactionType,
)
from soliton.chain.values import AssetId


class SetAssetScript(msgspec.Struct, frozen=True, gc=False):
    """The serialised script for ``asset_id``. None cannot be set, but it can be written."""

    asset_id: AssetId
    script: bytes | None


def _validate(transaction: AnyTransaction) -> None:
    check_fee(transaction)
    check_asset_script(transaction.payload.script)
    if transaction.payload.script is None:
        raise ValueRuleError("Cannot set empty script")


def _read(message: transaction_pb2.SetAssetScriptTransactionData, _chain_id: int) -> dict[str, Any]:
    return {
        "asset_id": protobuf.read_asset_id(message.asset_id),
        "script": message.script or None,
    }


def _write(message: transaction_pb2.SetAssetScriptTransactionData, payload: SetAssetScript) -> None:
    message.asset_id = payload.asset_id
    message.script = payload.script or b""


TYPE = TransactionType(
    type_id=15,
    name="set_asset_script",
    title="SetAssetScriptTransaction",
    payload=SetAssetScript,
    max_version=2,
    binary={
        1: BinaryForm(
            b"\x0f\1",
            (
                Field("chain_id", U8),
                Field("sender_public_key", PUBLIC_KEY),
                Field("asset_id", DIGEST),
                Field("fee", I64),
                Field("timestamp", I64),
                Field("script", OPTIONAL_SCRIPT),
            ),
            Auth.PROOFS,
            lead=b"\0",
        )
    },
    protobuf=ProtobufForm("set_asset_script", _read, _write),
    json=(
        JsonField("assetId", "asset_id", ASSET_ID),
        JsonField("script", "script", SCRIPT, default=None),
    ),
    validate=_validate,
    protobuf_since=2,
    chain_id_versions=frozenset({1}),
    request=PROVEN_REQUEST,
)
