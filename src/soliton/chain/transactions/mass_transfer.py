"""Type 11, mass transfer: amounts of one asset to many accounts.

Source: wavesplatform/Waves
``node/src/main/scala/com/wavesplatform/transaction/transfer/MassTransferTransaction.scala``,
``transaction/serialization/impl/MassTransferTxSerializer.scala`` and
``transaction/validation/impl/MassTransferTxValidator.scala``.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from soliton.chain import protobuf
from soliton.chain.addresses import Recipient, recipient_text
from soliton.chain.errors import FormatError, NegativeAmount, ValueRuleError
from soliton.chain.json_kinds import (
    ASSET,
    BASE58,
    LONG,
    RECIPIENT_SCHEMA,
    JsonKind,
    member,
    read_items,
)
from soliton.chain.json_kinds import RECIPIENT as RECIPIENT_JSON
from soliton.chain.json_schemas import INTEGER_SCHEMA, LONG_SCHEMA, list_of, object_of
from soliton.chain.layouts import (
    BYTES16,
    I64,
    MAX_BYTES16,
    OPTIONAL_ASSET,
    PUBLIC_KEY,
    RECIPIENT,
    Field,
    Variable,
    take,
    take_u16,
)
from soliton.chain.proto import transaction_pb2
from soliton.chain.transactions.checks import (
    chain_of,
    check_attachment,
    check_fee,
    check_sum,
)
from soliton.chain.transactions.model import (
    PROVEN_REQUEST,
    AnyTransaction,
    Auth,
    BinaryForm,
    JsonField,
    ProtobufForm,
    TransactionType,
)
from soliton.chain.values import MAX_I64, MIN_I64, AssetId

MAX_TRANSFERS: Final = 100
MAX_JSON_TRANSFERS: Final = 10_000
"""Reading stops here; the rule on transfers (100) is checked on what was read."""


class TransferItem(msgspec.Struct, frozen=True, gc=False):
    """One of the transfers: ``amount`` to ``recipient``; 0 is allowed."""

    recipient: Recipient
    amount: int


class MassTransfer(msgspec.Struct, frozen=True, gc=False):
    """Transfers of ``asset_id`` (``None``: the native coin), with free bytes attached."""

    asset_id: AssetId | None
    transfers: tuple[TransferItem, ...]
    attachment: bytes


def _validate(transaction: AnyTransaction) -> None:
    payload: MassTransfer = transaction.payload
    for item in payload.transfers:
        if item.amount < 0:
            raise NegativeAmount(item.amount, "asset")
    check_fee(transaction)
    check_sum(transaction.fee, *(item.amount for item in payload.transfers))
    if len(payload.transfers) > MAX_TRANSFERS:
        raise ValueRuleError(
            f"Number of transfers {len(payload.transfers)} is greater than {MAX_TRANSFERS}"
        )
    check_attachment(payload.attachment)
    chains = [chain_of(item.recipient) for item in payload.transfers]
    if any(chain != transaction.chain_id for chain in chains):
        raise ValueRuleError(f"One of chain ids not match: List({', '.join(map(str, chains))})")


def _read_transfers(data: bytes, offset: int) -> tuple[tuple[TransferItem, ...], int]:
    count = take_u16(data, offset)
    offset += 2
    items = []
    for _ in range(count):
        recipient, offset = RECIPIENT.read(data, offset)
        amount = int.from_bytes(take(data, offset, 8), "big", signed=True)
        items.append(TransferItem(recipient, amount))
        offset += 8
    return tuple(items), offset


def _write_transfers(items: tuple[TransferItem, ...]) -> bytes:
    if len(items) > MAX_BYTES16:
        raise FormatError(f"{len(items)} transfers do not fit a field of at most {MAX_BYTES16}")
    parts = [len(items).to_bytes(2, "big")]
    for item in items:
        if not MIN_I64 <= item.amount <= MAX_I64:
            raise FormatError(f"amount {item.amount} has more than 64 bits")
        parts += (RECIPIENT.write(item.recipient), item.amount.to_bytes(8, "big", signed=True))
    return b"".join(parts)


def _read(message: transaction_pb2.MassTransferTransactionData, chain_id: int) -> dict[str, Any]:
    return {
        "asset_id": protobuf.read_asset(message.asset_id),
        "transfers": tuple(
            TransferItem(protobuf.read_recipient(item.recipient, chain_id), item.amount)
            for item in message.transfers
        ),
        "attachment": message.attachment,
    }


def _write(message: transaction_pb2.MassTransferTransactionData, payload: MassTransfer) -> None:
    if payload.asset_id is not None:
        message.asset_id = payload.asset_id
    for item in payload.transfers:
        target = message.transfers.add()
        protobuf.write_recipient(target.recipient, item.recipient)
        target.amount = item.amount
    message.attachment = payload.attachment


def _read_json_item(value: object, chain_id: int) -> TransferItem:
    return TransferItem(
        member(value, "recipient", RECIPIENT_JSON.read, chain_id),
        member(value, "amount", LONG.read, chain_id),
    )


def _write_json(items: tuple[TransferItem, ...]) -> list[dict[str, Any]]:
    return [{"recipient": recipient_text(item.recipient), "amount": item.amount} for item in items]


def _derived_json(transaction: AnyTransaction) -> dict[str, Any]:
    transfers = transaction.payload.transfers
    return {
        "transferCount": len(transfers),
        "totalAmount": sum(item.amount for item in transfers),
    }


TYPE = TransactionType(
    type_id=11,
    name="mass_transfer",
    title="MassTransferTransaction",
    payload=MassTransfer,
    max_version=2,
    binary={
        1: BinaryForm(
            b"\x0b\1",
            (
                Field("sender_public_key", PUBLIC_KEY),
                Field("asset_id", OPTIONAL_ASSET),
                Field("transfers", Variable(_read_transfers, _write_transfers)),
                Field("timestamp", I64),
                Field("fee", I64),
                Field("attachment", BYTES16),
            ),
            Auth.PROOFS,
        )
    },
    protobuf=ProtobufForm("mass_transfer", _read, _write, strict=False),
    json=(
        JsonField("assetId", "asset_id", ASSET, default=None),
        JsonField("attachment", "attachment", BASE58, default=b""),
        JsonField(
            "transfers",
            "transfers",
            JsonKind(
                lambda value, chain_id: read_items(
                    value, chain_id, MAX_JSON_TRANSFERS, _read_json_item
                ),
                _write_json,
                list_of(object_of({"recipient": RECIPIENT_SCHEMA, "amount": LONG_SCHEMA})),
            ),
        ),
    ),
    validate=_validate,
    protobuf_since=2,
    derived_json=_derived_json,
    derived_schemas={"transferCount": INTEGER_SCHEMA, "totalAmount": LONG_SCHEMA},
    request=PROVEN_REQUEST,
)
