"""Type 4, transfer: sends an amount of the native coin or of an asset.

Source: wavesplatform/Waves
``node/src/main/scala/com/wavesplatform/transaction/transfer/TransferTransaction.scala``.
"""

from __future__ import annotations

import msgspec

from soliton.chain import kinds
from soliton.chain.addresses import Recipient
from soliton.chain.errors import NonPositiveAmount
from soliton.chain.fields import Field
from soliton.chain.transactions import checks, model
from soliton.chain.transactions.model import AnyTransaction
from soliton.chain.values import AssetId
from soliton.crypto import base58


class Transfer(msgspec.Struct, frozen=True, gc=False):
    """Sends ``amount`` of ``asset_id`` (``None``: the native coin) to ``recipient``, with an
    attachment of any bytes.
    """

    recipient: Recipient
    asset_id: AssetId | None
    amount: int
    attachment: bytes


def _validate(transaction: AnyTransaction) -> None:
    payload: Transfer = transaction.payload
    if payload.amount <= 0:
        asset = "waves" if payload.asset_id is None else base58.encode(payload.asset_id)
        raise NonPositiveAmount(payload.amount, asset)
    checks.check_fee(transaction)
    checks.check_attachment(payload.attachment)
    checks.check_chain(payload.recipient, transaction)


_LAYOUT = "sender_public_key asset_id fee_asset_id timestamp amount fee recipient attachment"

TYPE = model.TransactionType(
    type_id=4,
    name="transfer",
    title="TransferTransaction",
    payload=Transfer,
    max_version=3,
    fields=(
        Field("recipient", kinds.RECIPIENT),
        Field("asset_id", kinds.ASSET, path="amount.asset_id", default=None),
        Field("amount", kinds.LONG, path="amount.amount"),
        Field("attachment", kinds.BYTES, default=b""),
    ),
    binary={
        1: model.BinaryForm(b"\4", _LAYOUT, model.Auth.SIGNATURE_FIRST),
        2: model.BinaryForm(b"\4\2", _LAYOUT, model.Auth.PROOFS, lead=b"\0"),
    },
    protobuf=model.ProtobufForm("transfer"),
    ride=model.RideForm("feeAssetId amount assetId recipient attachment", for_assets=True),
    validate=_validate,
    protobuf_since=3,
    signature_versions=frozenset({1}),
    fee_in_asset=True,
    repeats_fee_asset=True,
    spends=lambda payload: ((payload.asset_id, payload.amount),),
)
