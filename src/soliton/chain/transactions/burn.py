"""Type 6, burn: destroys some of an asset of the sender.

Source: wavesplatform/Waves
``node/src/main/scala/com/wavesplatform/transaction/assets/BurnTransaction.scala`` and
``transaction/serialization/impl/BurnTxSerializer.scala``.
"""

from __future__ import annotations

import msgspec

from soliton.chain import kinds
from soliton.chain.errors import NegativeAmount
from soliton.chain.fields import Field
from soliton.chain.transactions import checks, model
from soliton.chain.transactions.model import AnyTransaction
from soliton.chain.values import AssetId


class Burn(msgspec.Struct, frozen=True, gc=False):
    """Destroys ``quantity`` of ``asset_id``; 0 is allowed."""

    asset_id: AssetId
    quantity: int


def _validate(transaction: AnyTransaction) -> None:
    if transaction.payload.quantity < 0:
        raise NegativeAmount(transaction.payload.quantity, "assets")
    checks.check_fee(transaction)


_LAYOUT = "sender_public_key asset_id quantity fee timestamp"

TYPE = model.TransactionType(
    type_id=6,
    name="burn",
    title="BurnTransaction",
    payload=Burn,
    max_version=3,
    fields=(
        Field("asset_id", kinds.ASSET_ID, path="asset_amount.asset_id"),
        Field(
            "quantity",
            kinds.LONG,
            key="amount",
            path="asset_amount.amount",
            aliases=("quantity",),
        ),
    ),
    binary={
        1: model.BinaryForm(b"\6", _LAYOUT, model.Auth.SIGNATURE_LAST),
        2: model.BinaryForm(b"\6\2", f"chain_id {_LAYOUT}", model.Auth.PROOFS, lead=b"\0"),
    },
    protobuf=model.ProtobufForm("burn", closed=("asset_amount",)),
    ride=model.RideForm("quantity assetId", for_assets=True),
    validate=_validate,
    protobuf_since=3,
    signature_versions=frozenset({1}),
    chain_id_versions=frozenset({2}),
    spends=lambda payload: ((payload.asset_id, payload.quantity),),
)
