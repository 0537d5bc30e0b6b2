"""Type 16, invoke script: a call of a dApp's function, with payments.

Source: wavesplatform/Waves
``node/src/main/scala/com/wavesplatform/transaction/smart/InvokeScriptTransaction.scala``,
``transaction/serialization/impl/InvokeScriptTxSerializer.scala`` and
``transaction/validation/impl/InvokeScriptTxValidator.scala``.
"""

from __future__ import annotations

from operator import attrgetter
from typing import Final

import msgspec

from soliton.chain import kinds
from soliton.chain.addresses import Recipient
from soliton.chain.errors import FormatError, NonPositiveAmount, ValueRuleError
from soliton.chain.fields import Field, Kind, MessageKind, records_of
from soliton.chain.function_calls import (
    CALL_SCHEMA,
    SENT_CALL_SCHEMA,
    FunctionCall,
    call_bytes,
    call_json,
    read_call,
    read_call_json,
)
from soliton.chain.json_kinds import JsonKind
from soliton.chain.layouts import Variable, write_proofs
from soliton.chain.proto import transaction_pb2
from soliton.chain.transactions import checks, model
from soliton.chain.transactions.model import AnyTransaction
from soliton.chain.values import AssetId
from soliton.crypto import base58

MAX_ARGUMENTS: Final = 22
MAX_FUNCTION_NAME_BYTES: Final = 255
MAX_BYTES: Final = 5_120
"""The limit for the transaction in version 1, and for its data message in protobuf versions."""
MAX_JSON_PAYMENTS: Final = 1_000
"""The limit for reading, far above what 5120 bytes can contain."""


class Payment(msgspec.Struct, frozen=True, gc=False):
    """Pays ``amount`` of ``asset_id`` (``None``: the native coin) to the dApp."""

    amount: int
    asset_id: AssetId | None


class InvokeScript(msgspec.Struct, frozen=True, gc=False):
    """Calls a function of ``d_app``; ``None`` calls the default one."""

    d_app: Recipient
    call: FunctionCall | None
    payments: tuple[Payment, ...]


def _validate(transaction: AnyTransaction) -> None:
    payload: InvokeScript = transaction.payload
    call = payload.call
    checks.check_fee(transaction)
    checks.check_chain(payload.d_app, transaction)
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
    """Raise ``NonPositiveAmount`` unless every payment is positive."""
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
    """Return the size of a call's protobuf message, which is limited."""
    message = transaction_pb2.InvokeScriptTransactionData()
    _DATA.write(message, payload)
    return message.ByteSize()


def _read_whole_call(data: bytes, _chain_id: int) -> FunctionCall | None:
    call, end = read_call(data, 0)
    if end != len(data):
        raise FormatError(f"{len(data) - end} bytes after the call")
    return call


CALL: Final = Kind(
    JsonKind(read_call_json, call_json, CALL_SCHEMA, SENT_CALL_SCHEMA),
    Variable(read_call, call_bytes),
    MessageKind(_read_whole_call, call_bytes),
)
PAYMENTS: Final = records_of(
    Payment,
    (Field("amount", kinds.LONG), Field("asset_id", kinds.ASSET, default=None)),
    limit=MAX_JSON_PAYMENTS,
    sized=True,
    name="Payment",
)
_ARGUMENT: Final = "Int|String|Boolean|ByteVector"
_DATA: Final = model.ProtobufForm("invoke_script")

TYPE = model.TransactionType(
    type_id=16,
    name="invoke_script",
    title="InvokeScriptTransaction",
    payload=InvokeScript,
    max_version=2,
    fields=(
        Field("d_app", kinds.RECIPIENT),
        Field("payments", PAYMENTS, key="payment", default=()),
        Field("call", CALL, path="function_call", default=None),
    ),
    binary={
        1: model.BinaryForm(
            b"\x10\1",
            "chain_id sender_public_key d_app call payments fee fee_asset_id timestamp",
            model.Auth.PROOFS,
            lead=b"\0",
        )
    },
    protobuf=_DATA,
    ride=model.RideForm(
        "dApp feeAssetId function args",
        tail="payment payments",
        extra={
            "function": model.RideField("String"),
            "args": model.RideField(f"List[{_ARGUMENT}|List[{_ARGUMENT}]]"),
            "payment": model.RideField("AttachedPayment|Unit", until=3),
            "payments": model.RideField({4: "List[AttachedPayment]"}),
        },
        since=3,
        for_assets=True,
    ),
    validate=_validate,
    protobuf_since=2,
    fee_in_asset=True,
    request=model.RequestForm(model.PROVEN_REQUEST.required, default_version=2),
    spends=lambda payload: ((each.asset_id, each.amount) for each in payload.payments),
    calls=attrgetter("d_app"),
)
