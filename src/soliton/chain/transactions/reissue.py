"""Type 5, reissue: increases the quantity of an asset, and may make that the last time.

Source: wavesplatform/Waves
``node/src/main/scala/com/wavesplatform/transaction/assets/ReissueTransaction.scala`` and
``transaction/serialization/impl/ReissueTxSerializer.scala``.
"""

from __future__ import annotations

import msgspec

from soliton.chain import kinds
from soliton.chain.errors import NonPositiveAmount
from soliton.chain.fields import Field
from soliton.chain.transactions import checks, model
from soliton.chain.transactions.model import AnyTransaction
from soliton.chain.values import AssetId


class Reissue(msgspec.Struct, frozen=True, gc=False):
    """Issues another ``quantity`` of ``asset_id``."""

    asset_id: AssetId
    quantity: int
    reissuable: bool


def _validate(transaction: AnyTransaction) -> None:
    checks.check_fee(transaction)
    if transaction.payload.quantity <= 0:
        raise NonPositiveAmount(transaction.payload.quantity, "assets")


_LAYOUT = "sender_public_key asset_id quantity reissuable fee timestamp"

TYPE = model.TransactionType(
    type_id=5,
    name="reissue",
    title="ReissueTransaction",
    payload=Reissue,
    max_version=3,
    fields=(
        Field("asset_id", kinds.ASSET_ID, path="asset_amount.asset_id"),
        Field("quantity", kinds.LONG, path="asset_amount.amount"),
        Field("reissuable", kinds.BOOLEAN),
    ),
    binary={
        1: model.BinaryForm(b"\5", _LAYOUT, model.Auth.SIGNATURE_FIRST),
        2: model.BinaryForm(b"\5\2", f"chain_id {_LAYOUT}", model.Auth.PROOFS, lead=b"\0"),
    },
    protobuf=model.ProtobufForm("reissue", closed=("asset_amount",)),
    ride=model.RideForm("quantity assetId reissuable", for_assets=True),
    creates=lambda payload: ((payload.asset_id, payload.quantity),),
    validate=_validate,
    protobuf_since=3,
    signature_versions=frozenset({1}),
    chain_id_versions=frozenset({2}),
)
