"""Type 4, transfer: an amount of the native coin or of an asset from one account to another.

Source: wavesplatform/Waves
``node/src/main/scala/com/wavesplatform/transaction/transfer/TransferTransaction.scala``.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from soliton.chain import protobuf
from soliton.chain.addresses import Alias, Recipient
from soliton.chain.errors import InsufficientFee, NonPositiveAmount, TooBigInBytes, ValueRuleError
from soliton.chain.json_kinds import ASSET, BASE58, LONG, RECIPIENT
from soliton.chain.layouts import BYTES16, I64, OPTIONAL_ASSET, PUBLIC_KEY, Field
from soliton.chain.layouts import RECIPIENT as RECIPIENT_BYTES
from soliton.chain.proto import transaction_pb2
from soliton.chain.transactions.model import (
    AnyTransaction,
    Auth,
    BinaryForm,
    JsonField,
    ProtobufForm,
    TransactionType,
)
from soliton.chain.values import AssetId
from soliton.crypto import base58

MAX_ATTACHMENT_BYTES: Final = 140


class Transfer(msgspec.Struct, frozen=True, gc=False):
    """``amount`` of ``asset_id`` (``None``: the native coin) to ``recipient``, with free bytes
    attached.
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
    if transaction.fee <= 0:
        raise InsufficientFee
    size = len(payload.attachment)
    if size > MAX_ATTACHMENT_BYTES:
        raise TooBigInBytes(
            f"Invalid attachment. Length {size} bytes exceeds maximum of "
            f"{MAX_ATTACHMENT_BYTES} bytes."
        )
    recipient = payload.recipient
    chain_id = recipient.chain_id if isinstance(recipient, Alias) else recipient[1]
    if chain_id != transaction.chain_id:
        raise ValueRuleError("Address or alias from other network")


def _read(message: transaction_pb2.TransferTransactionData, chain_id: int) -> dict[str, Any]:
    return {
        "recipient": protobuf.read_recipient(message.recipient, chain_id),
        "asset_id": protobuf.read_asset(message.amount.asset_id),
        "amount": message.amount.amount,
        "attachment": message.attachment,
    }


def _write(message: transaction_pb2.TransferTransactionData, payload: Transfer) -> None:
    protobuf.write_recipient(message.recipient, payload.recipient)
    protobuf.write_amount(message.amount, payload.asset_id, payload.amount)
    message.attachment = payload.attachment


_FIELDS: Final = (
    Field("sender_public_key", PUBLIC_KEY),
    Field("asset_id", OPTIONAL_ASSET),
    Field("fee_asset_id", OPTIONAL_ASSET),
    Field("timestamp", I64),
    Field("amount", I64),
    Field("fee", I64),
    Field("recipient", RECIPIENT_BYTES),
    Field("attachment", BYTES16),
)

TYPE = TransactionType(
    type_id=4,
    name="transfer",
    title="TransferTransaction",
    payload=Transfer,
    max_version=3,
    binary={
        1: BinaryForm(b"\4", _FIELDS, Auth.SIGNATURE_FIRST),
        2: BinaryForm(b"\4\2", _FIELDS, Auth.PROOFS, lead=b"\0"),
    },
    protobuf=ProtobufForm("transfer", _read, _write),
    json=(
        JsonField("recipient", "recipient", RECIPIENT),
        JsonField("assetId", "asset_id", ASSET, default=None),
        JsonField("amount", "amount", LONG),
        JsonField("attachment", "attachment", BASE58, default=b""),
    ),
    validate=_validate,
    protobuf_since=3,
    signature_versions=frozenset({1}),
    fee_in_asset=True,
    repeats_fee_asset=True,
)
