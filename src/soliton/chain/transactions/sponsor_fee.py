"""Type 14, sponsor fee: fees may be paid in the sender's own asset, until this is cancelled.

Source: wavesplatform/Waves
``node/src/main/scala/com/wavesplatform/transaction/assets/SponsorFeeTransaction.scala`` and
``transaction/serialization/impl/SponsorFeeTxSerializer.scala``.
"""

from __future__ import annotations

from typing import Any

import msgspec

from soliton.chain import protobuf
from soliton.chain.errors import NegativeMinFee
from soliton.chain.json_kinds import ASSET_ID, JsonKind, expect_long
from soliton.chain.json_schemas import LONG_SCHEMA, or_null, told
from soliton.chain.layouts import DIGEST, I64, PUBLIC_KEY, Field, Variable, take
from soliton.chain.proto import transaction_pb2
from soliton.chain.transactions.checks import check_fee
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


class SponsorFee(msgspec.Struct, frozen=True, gc=False):
    """``min_fee``, in the smallest units of ``asset_id``, is worth a unit of fees; ``None`` ends
    the sponsorship.
    """

    asset_id: AssetId
    min_fee: int | None


def _validate(transaction: AnyTransaction) -> None:
    check_fee(transaction)
    min_fee: int | None = transaction.payload.min_fee
    if min_fee is not None and min_fee <= 0:
        raise NegativeMinFee(min_fee, "asset")


def _read_min_fee(data: bytes, offset: int) -> tuple[int | None, int]:
    return int.from_bytes(take(data, offset, 8), "big", signed=True) or None, offset + 8


def _write_min_fee(min_fee: int | None) -> bytes:
    return (min_fee or 0).to_bytes(8, "big", signed=True)


def _read(message: transaction_pb2.SponsorFeeTransactionData, _chain_id: int) -> dict[str, Any]:
    protobuf.refuse_unknown_fields(message.min_fee)
    min_fee = message.min_fee.amount
    return {
        "asset_id": protobuf.read_asset_id(message.min_fee.asset_id),
        # The reference node takes negative fees for none, and so drops them from the signed bytes.
        "min_fee": min_fee if min_fee > 0 else None,
    }


def _write(message: transaction_pb2.SponsorFeeTransactionData, payload: SponsorFee) -> None:
    protobuf.write_amount(message.min_fee, payload.asset_id, payload.min_fee or 0)


TYPE = TransactionType(
    type_id=14,
    name="sponsor_fee",
    title="SponsorFeeTransaction",
    payload=SponsorFee,
    max_version=2,
    binary={
        1: BinaryForm(
            b"\x0e\1",
            (
                Field("sender_public_key", PUBLIC_KEY),
                Field("asset_id", DIGEST),
                Field("min_fee", Variable(_read_min_fee, _write_min_fee)),
                Field("fee", I64),
                Field("timestamp", I64),
            ),
            Auth.PROOFS,
            lead=b"\0\x0e\1",
        )
    },
    protobuf=ProtobufForm("sponsor_fee", _read, _write),
    json=(
        JsonField("assetId", "asset_id", ASSET_ID),
        JsonField(
            "minSponsoredAssetFee",
            "min_fee",
            JsonKind(
                lambda value, _chain_id: expect_long(value) or None,
                lambda value: value,
                told(or_null(LONG_SCHEMA), "Null or 0 ends the sponsorship"),
            ),
            default=None,
        ),
    ),
    validate=_validate,
    protobuf_since=2,
    request=PROVEN_REQUEST,
)
