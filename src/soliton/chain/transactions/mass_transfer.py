"""Type 11, mass transfer: sends amounts of one asset to many accounts.

Source: wavesplatform/Waves
``node/src/main/scala/com/wavesplatform/transaction/transfer/MassTransferTransaction.scala``,
``transaction/serialization/impl/MassTransferTxSerializer.scala`` and
``transaction/validation/impl/MassTransferTxValidator.scala``.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from soliton.chain import kinds
from soliton.chain.addresses import Recipient
from soliton.chain.errors import NegativeAmount, ValueRuleError
from soliton.chain.fields import Field, records_of
from soliton.chain.json_schemas import INTEGER_SCHEMA, LONG_SCHEMA
from soliton.chain.transactions import checks, model
from soliton.chain.transactions.model import AnyTransaction
from soliton.chain.values import AssetId

MAX_TRANSFERS: Final = 100
MAX_JSON_TRANSFERS: Final = 10_000
"""The limit for reading; the rule on transfers (100) is checked later."""


class TransferItem(msgspec.Struct, frozen=True, gc=False):
    """Sends ``amount`` to ``recipient``; 0 is allowed."""

    recipient: Recipient
    amount: int


class MassTransfer(msgspec.Struct, frozen=True, gc=False):
    """Transfers of ``asset_id`` (``None``: the native coin), with an attachment of any bytes."""

    asset_id: AssetId | None
    transfers: tuple[TransferItem, ...]
    attachment: bytes


def _validate(transaction: AnyTransaction) -> None:
    payload: MassTransfer = transaction.payload
    for item in payload.transfers:
        if item.amount < 0:
            raise NegativeAmount(item.amount, "asset")
    checks.check_fee(transaction)
    checks.check_sum(transaction.fee, *(item.amount for item in payload.transfers))
    if len(payload.transfers) > MAX_TRANSFERS:
        raise ValueRuleError(
            f"Number of transfers {len(payload.transfers)} is greater than {MAX_TRANSFERS}"
        )
    checks.check_attachment(payload.attachment)
    chains = [checks.chain_of(item.recipient) for item in payload.transfers]
    if any(chain != transaction.chain_id for chain in chains):
        raise ValueRuleError(f"One of chain ids not match: List({', '.join(map(str, chains))})")


def _total(payload: MassTransfer) -> int:
    return sum(item.amount for item in payload.transfers)


def _derived_json(transaction: AnyTransaction) -> dict[str, Any]:
    payload = transaction.payload
    return {"transferCount": len(payload.transfers), "totalAmount": _total(payload)}


_TRANSFERS: Final = records_of(
    TransferItem,
    (Field("recipient", kinds.RECIPIENT), Field("amount", kinds.LONG)),
    limit=MAX_JSON_TRANSFERS,
    ride="List[Transfer]",
)

TYPE = model.TransactionType(
    type_id=11,
    name="mass_transfer",
    title="MassTransferTransaction",
    payload=MassTransfer,
    max_version=2,
    fields=(
        Field("asset_id", kinds.ASSET, default=None),
        Field("attachment", kinds.BYTES, default=b""),
        Field("transfers", _TRANSFERS),
    ),
    binary={
        1: model.BinaryForm(
            b"\x0b\1",
            "sender_public_key asset_id transfers timestamp fee attachment",
            model.Auth.PROOFS,
        )
    },
    protobuf=model.ProtobufForm("mass_transfer", strict=False),
    ride=model.RideForm(
        "feeAssetId assetId totalAmount transfers transferCount attachment",
        extra={
            # The type had this field until version 4 of the language, but objects never do.
            model.FEE_ASSET: model.RideField("ByteVector|Unit", until=4, shown=False),
            "totalAmount": model.RideField("Int", _total),
            "transferCount": model.RideField("Int", lambda payload: len(payload.transfers)),
        },
        for_assets=True,
    ),
    validate=_validate,
    protobuf_since=2,
    derived_json=_derived_json,
    derived_schemas={"transferCount": INTEGER_SCHEMA, "totalAmount": LONG_SCHEMA},
    request=model.PROVEN_REQUEST,
    spends=lambda payload: ((payload.asset_id, _total(payload)),),
)
