"""Type 16, invoke script: a call of a dApp's function, with payments.

Source: wavesplatform/Waves
``node/src/main/scala/com/wavesplatform/transaction/smart/InvokeScriptTransaction.scala``,
``transaction/serialization/impl/InvokeScriptTxSerializer.scala`` and
``transaction/validation/impl/InvokeScriptTxValidator.scala``.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from soliton.chain import protobuf
from soliton.chain.addresses import Recipient
from soliton.chain.errors import FormatError, NonPositiveAmount, ValueRuleError
from soliton.chain.function_calls import (
    CALL_SCHEMA,
    SENT_CALL_SCHEMA,
    FunctionCall,
    call_bytes,
    call_json,
    read_call,
    read_call_json,
)
from soliton.chain.json_kinds import ASSET, ASSET_SCHEMA, LONG, JsonKind, member, read_items
from soliton.chain.json_kinds import RECIPIENT as RECIPIENT_JSON
from soliton.chain.json_schemas import LONG_SCHEMA, Named, list_of, object_of
from soliton.chain.layouts import (
    I64,
    MAX_BYTES16,
    OPTIONAL_ASSET,
    PUBLIC_KEY,
    RECIPIENT,
    U8,
    Field,
    Variable,
    take,
    take_u16,
    write_bytes16,
    write_proofs,
)
from soliton.chain.proto import transaction_pb2
from soliton.chain.transactions.checks import check_chain, check_fee
from soliton.chain.transactions.model import (
    PROVEN_REQUEST,
    AnyTransaction,
    Auth,
    BinaryForm,
    JsonField,
    ProtobufForm,
    RequestForm,
    TransactionType,
)
from soliton.chain.values import MAX_I64, MIN_I64, AssetId
from soliton.crypto import base58

MAX_ARGUMENTS: Final = 22
MAX_FUNCTION_NAME_BYTES: Final = 255
MAX_BYTES: Final = 5_120
"""Of the whole transaction in version 1, of its data message in protobuf versions."""
MAX_JSON_PAYMENTS: Final = 1_000
"""Far above what 5120 bytes can hold; reading stops here."""


class Payment(msgspec.Struct, frozen=True, gc=False):
    """``amount`` of ``asset_id`` (``None``: the native coin) for the dApp."""

    amount: int
    asset_id: AssetId | None


class InvokeScript(msgspec.Struct, frozen=True, gc=False):
    """The call of ``d_app``'s function; ``None`` calls the default one."""

    d_app: Recipient
    call: FunctionCall | None
    payments: tuple[Payment, ...]


def _validate(transaction: AnyTransaction) -> None:
    payload: InvokeScript = transaction.payload
    call = payload.call
    check_fee(transaction)
    check_chain(payload.d_app, transaction)
    if call is not None and len(call.args) > MAX_ARGUMENTS:
        raise ValueRuleError(f"InvokeScript can't have more than {MAX_ARGUMENTS} arguments")
    name_size = 0 if call is None else len(call.function.encode())
    if name_size > MAX_FUNCTION_NAME_BYTES:
        raise ValueRuleError(
            f"Callable function name size = {name_size} bytes must be less than "
            f"{MAX_FUNCTION_NAME_BYTES}"
        )
    check_payments(payload.payments)
    size = _size(transaction)
    if size > MAX_BYTES:
        raise ValueRuleError(
            f"InvokeScriptTransaction bytes length = {size} exceeds limit = {MAX_BYTES}"
        )


def check_payments(payments: tuple[Payment, ...]) -> None:
    """Every payment is above zero, or ``NonPositiveAmount``."""
    for payment in payments:
        if payment.amount <= 0:
            asset = payment.asset_id
            name = "Waves" if asset is None else base58.encode(asset)
            raise NonPositiveAmount(payment.amount, name)


def _size(transaction: AnyTransaction) -> int:
    if transaction.version == 1:
        return 1 + len(transaction.body) + len(write_proofs(transaction.proofs))
    return data_size(transaction.payload)


def data_size(payload: InvokeScript) -> int:
    """The size of the protobuf message of a call, which the limit is about."""
    message = transaction_pb2.InvokeScriptTransactionData()
    _write(message, payload)
    return message.ByteSize()


def _read_payments(data: bytes, offset: int) -> tuple[tuple[Payment, ...], int]:
    count = take_u16(data, offset)
    offset += 2
    payments = []
    for _ in range(count):
        end = offset + 2 + take_u16(data, offset)
        amount = int.from_bytes(take(data, offset + 2, 8), "big", signed=True)
        asset_id, offset = OPTIONAL_ASSET.read(data, offset + 10)
        if offset != end:
            raise FormatError(f"a payment that ends at {offset} instead of {end}")
        payments.append(Payment(amount, asset_id))
    return tuple(payments), offset


def _write_payments(payments: tuple[Payment, ...]) -> bytes:
    if len(payments) > MAX_BYTES16:
        raise FormatError(f"{len(payments)} payments do not fit a field of at most {MAX_BYTES16}")
    parts = [len(payments).to_bytes(2, "big")]
    for payment in payments:
        if not MIN_I64 <= payment.amount <= MAX_I64:
            raise FormatError(f"amount {payment.amount} has more than 64 bits")
        amount = payment.amount.to_bytes(8, "big", signed=True)
        parts.append(write_bytes16(amount + OPTIONAL_ASSET.write(payment.asset_id)))
    return b"".join(parts)


def _read(message: transaction_pb2.InvokeScriptTransactionData, chain_id: int) -> dict[str, Any]:
    call, end = read_call(message.function_call, 0)
    if end != len(message.function_call):
        raise FormatError(f"{len(message.function_call) - end} bytes after the call")
    return {
        "d_app": protobuf.read_recipient(message.d_app, chain_id),
        "call": call,
        "payments": tuple(
            Payment(item.amount, protobuf.read_asset(item.asset_id)) for item in message.payments
        ),
    }


def _write(message: transaction_pb2.InvokeScriptTransactionData, payload: InvokeScript) -> None:
    protobuf.write_recipient(message.d_app, payload.d_app)
    message.function_call = call_bytes(payload.call)
    for payment in payload.payments:
        protobuf.write_amount(message.payments.add(), payment.asset_id, payment.amount)


def _read_json_payment(value: object, chain_id: int) -> Payment:
    return Payment(
        member(value, "amount", LONG.read, chain_id),
        member(value, "assetId", ASSET.read, chain_id, None),
    )


def payments_json(payments: tuple[Payment, ...]) -> list[dict[str, Any]]:
    return [{"amount": item.amount, "assetId": ASSET.write(item.asset_id)} for item in payments]


PAYMENT_SCHEMA: Final = Named(
    "Payment", object_of({"amount": LONG_SCHEMA, "assetId": ASSET_SCHEMA})
)
PAYMENTS: Final = JsonKind(
    lambda value, chain_id: read_items(value, chain_id, MAX_JSON_PAYMENTS, _read_json_payment),
    payments_json,
    list_of(PAYMENT_SCHEMA),
    list_of(object_of({"amount": LONG_SCHEMA}, {"assetId": ASSET_SCHEMA})),
)

CALL: Final = JsonKind(read_call_json, call_json, CALL_SCHEMA, SENT_CALL_SCHEMA)

TYPE = TransactionType(
    type_id=16,
    name="invoke_script",
    title="InvokeScriptTransaction",
    payload=InvokeScript,
    max_version=2,
    binary={
        1: BinaryForm(
            b"\x10\1",
            (
                Field("chain_id", U8),
                Field("sender_public_key", PUBLIC_KEY),
                Field("d_app", RECIPIENT),
                Field("call", Variable(read_call, call_bytes)),
                Field("payments", Variable(_read_payments, _write_payments)),
                Field("fee", I64),
                Field("fee_asset_id", OPTIONAL_ASSET),
                Field("timestamp", I64),
            ),
            Auth.PROOFS,
            lead=b"\0",
        )
    },
    protobuf=ProtobufForm("invoke_script", _read, _write),
    json=(
        JsonField("dApp", "d_app", RECIPIENT_JSON),
        JsonField("payment", "payments", PAYMENTS, default=()),
        JsonField("call", "call", CALL, default=None),
    ),
    validate=_validate,
    protobuf_since=2,
    fee_in_asset=True,
    request=RequestForm(PROVEN_REQUEST.required, default_version=2),
)
