"""Type 14, sponsor fee: lets users pay fees in an asset of the sender, or ends that.

Source: wavesplatform/Waves
``node/src/main/scala/com/wavesplatform/transaction/assets/SponsorFeeTransaction.scala`` and
``transaction/serialization/impl/SponsorFeeTxSerializer.scala``.
"""

from __future__ import annotations

from typing import Final

import msgspec

from soliton.chain import kinds
from soliton.chain.errors import NegativeMinFee
from soliton.chain.fields import Field, Kind, MessageKind
from soliton.chain.json_kinds import JsonKind, expect_long, same
from soliton.chain.json_schemas import LONG_SCHEMA, described, or_null
from soliton.chain.layouts import Variable, take
from soliton.chain.transactions import checks, model
from soliton.chain.transactions.model import AnyTransaction
from soliton.chain.values import AssetId


class SponsorFee(msgspec.Struct, frozen=True, gc=False):
    """``min_fee`` smallest units of ``asset_id`` are worth a unit of fees; ``None`` ends the
    sponsorship.
    """

    asset_id: AssetId
    min_fee: int | None


def _validate(transaction: AnyTransaction) -> None:
    checks.check_fee(transaction)
    min_fee: int | None = transaction.payload.min_fee
    if min_fee is not None and min_fee <= 0:
        raise NegativeMinFee(min_fee, "asset")


def _read_min_fee(data: bytes, offset: int) -> tuple[int | None, int]:
    return int.from_bytes(take(data, offset, 8), "big", signed=True) or None, offset + 8


def _write_min_fee(min_fee: int | None) -> bytes:
    return (min_fee or 0).to_bytes(8, "big", signed=True)


_MIN_FEE: Final = Kind(
    JsonKind(
        lambda value, _chain_id: expect_long(value) or None,
        same,
        described(or_null(LONG_SCHEMA), "Null or 0 ends the sponsorship"),
    ),
    Variable(_read_min_fee, _write_min_fee),
    # The reference node treats negative fees as none, so they are not in the signed bytes.
    MessageKind(
        lambda amount, _chain_id: amount if amount > 0 else None, lambda min_fee: min_fee or 0
    ),
    "Int|Unit",
)

TYPE = model.TransactionType(
    type_id=14,
    name="sponsor_fee",
    title="SponsorFeeTransaction",
    payload=SponsorFee,
    max_version=2,
    fields=(
        Field("asset_id", kinds.ASSET_ID, path="min_fee.asset_id"),
        Field("min_fee", _MIN_FEE, key="minSponsoredAssetFee", path="min_fee.amount", default=None),
    ),
    binary={
        1: model.BinaryForm(
            b"\x0e\1",
            "sender_public_key asset_id min_fee fee timestamp",
            model.Auth.PROOFS,
            lead=b"\0\x0e\1",
        )
    },
    protobuf=model.ProtobufForm("sponsor_fee", closed=("min_fee",)),
    ride=model.RideForm("assetId minSponsoredAssetFee"),
    sets=lambda payload: ((payload.asset_id, payload.min_fee or 0),),
    validate=_validate,
    protobuf_since=2,
    request=model.PROVEN_REQUEST,
)
