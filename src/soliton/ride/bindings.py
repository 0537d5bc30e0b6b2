"""Conversion of transactions, orders and calls to objects of the language.

What lives here: the fields of these objects in every version of the language. What does not: their
use (``soliton.ledger``), and assets and blocks (``functions.chain_data``).

Source: wavesplatform/Waves
``lang/shared/src/main/scala/com/wavesplatform/lang/v1/evaluator/ctx/impl/waves/Bindings.scala`` and
``node/src/main/scala/com/wavesplatform/transaction/smart/RealTransactionWrapper.scala``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any, Final

import msgspec

from soliton.chain.addresses import Address, Alias, Recipient, from_public_key
from soliton.chain.function_calls import DEFAULT_CALL, Argument
from soliton.chain.layouts import lenient_text
from soliton.chain.orders import Order, Side
from soliton.chain.transactions.model import (
    FEE_ASSET,
    AnyTransaction,
    RideForm,
)
from soliton.chain.transactions.table import registered, type_by_id
from soliton.chain.values import DataEntry
from soliton.ride.environment import CURRENT_SWITCHES, Payment, Switches
from soliton.ride.errors import EvaluationError
from soliton.ride.values import (
    MAX_BYTES,
    MAX_DATA_TRANSACTION_BYTES,
    UNIT,
    CaseObject,
    Value,
    case_object,
    ride_list,
)

PROOFS: Final = 8
"""The number of proofs that scripts see; missing ones are empty."""
MAX_PAYMENTS_V4: Final = 2
MAX_PAYMENTS: Final = 10
_TYPED_ENTRIES: Final = 4
_SEVERAL_PAYMENTS: Final = 4
_MORE_PAYMENTS: Final = 5
_ORDER_ATTACHMENTS: Final = 8

Fields = dict[str, Value]


class View(msgspec.Struct, frozen=True):
    """The script's view of objects: its language version, whether proofs are included (not for
    asset scripts), and the switches of the height. ``payments_version`` overrides the version for
    the payments of a call.
    """

    version: int
    proofs: bool = True
    switches: Switches = CURRENT_SWITCHES
    payments_version: int | None = None


class Envelope(msgspec.Struct, frozen=True):
    """The common fields of transactions. The action of a dApp has the defaults."""

    id: bytes
    timestamp: int
    sender: Address
    sender_public_key: bytes
    fee: int = 0
    version: int = 0
    body: bytes = b""
    proofs: tuple[bytes, ...] = ()


class Call(msgspec.Struct, frozen=True):
    """A call of a dApp, by a transaction or another dApp."""

    dapp: Recipient
    function: str
    arguments: tuple[Value, ...]
    payments: tuple[Payment, ...]
    fee_asset: bytes | None = None


class Invocation(msgspec.Struct, frozen=True):
    """The information on a call that a callable function receives."""

    caller: Address
    caller_public_key: bytes
    origin_caller: Address
    origin_caller_public_key: bytes
    payments: tuple[Payment, ...]
    transaction_id: bytes
    fee: int
    fee_asset: bytes | None


# --- small parts ----------------------------------------------------------------------------------


def optional(value: Value | None) -> Value:
    """Return a value, or ``UNIT`` for ``None``."""
    return UNIT if value is None else value


def address_object(address: bytes) -> CaseObject:
    """Return the object of an address."""
    return case_object("Address", {"bytes": address})


def recipient_object(recipient: Recipient) -> CaseObject:
    """Return the object of an address or alias."""
    if isinstance(recipient, Alias):
        return case_object("Alias", {"alias": recipient.name})
    return address_object(recipient)


def check_payment_count(payments: Sequence[object], version: int, multiple: bool, who: str) -> None:
    """Raise ``EvaluationError`` for more payments than a script of a version supports.

    ``multiple``: whether the chain allows more than one payment.
    """
    count = len(payments)
    if count <= 1:
        return
    if not multiple:
        raise EvaluationError("Multiple payments isn't allowed now")
    if version < _SEVERAL_PAYMENTS:
        raise EvaluationError(
            f"{who} version {version} < {_SEVERAL_PAYMENTS} doesn't support multiple payment "
            "attachment"
        )
    limit = MAX_PAYMENTS if version >= _MORE_PAYMENTS else MAX_PAYMENTS_V4
    if count > limit:
        raise EvaluationError(f"Script payment amount={count} should not exceed {limit}")


def _payments(payments: tuple[Payment, ...], version: int) -> Fields:
    objects = [
        case_object("AttachedPayment", {"amount": each.amount, "assetId": optional(each.asset_id)})
        for each in payments
    ]
    if version >= _SEVERAL_PAYMENTS:
        return {"payments": ride_list(objects)}
    return {"payment": objects[0] if objects else UNIT}


def _proofs(proofs: tuple[bytes, ...]) -> Fields:
    missing = (b"",) * (PROOFS - len(proofs))
    return {"proofs": ride_list((*proofs, *missing))}


def _header(envelope: Envelope) -> Fields:
    return {
        "id": envelope.id,
        "fee": envelope.fee,
        "timestamp": envelope.timestamp,
        "version": envelope.version,
    }


def _proven(envelope: Envelope, view: View) -> Fields:
    if view.version < _TYPED_ENTRIES and len(envelope.body) > MAX_DATA_TRANSACTION_BYTES:
        raise EvaluationError(
            f"ByteVector size={len(envelope.body)} exceeds {MAX_DATA_TRANSACTION_BYTES} bytes"
        )
    fields: Fields = {
        "sender": address_object(envelope.sender),
        "senderPublicKey": envelope.sender_public_key,
        "bodyBytes": envelope.body,
        **_header(envelope),
    }
    if view.proofs:
        fields |= _proofs(envelope.proofs)
    return fields


def envelope_of(transaction: AnyTransaction) -> Envelope:
    """Return the envelope of a transaction."""
    return Envelope(
        transaction.id,
        transaction.timestamp,
        from_public_key(transaction.sender_public_key, transaction.chain_id),
        transaction.sender_public_key,
        transaction.fee,
        transaction.version,
        transaction.body,
        transaction.proofs,
    )


def foreign_envelope_of(transaction: AnyTransaction) -> Envelope:
    """Return the envelope of an Ethereum transaction: without bytes, proofs and version."""
    return Envelope(
        transaction.id,
        transaction.timestamp,
        from_public_key(transaction.sender_public_key, transaction.chain_id),
        transaction.sender_public_key,
        transaction.fee,
    )


# --- calls ----------------------------------------------------------------------------------------


def call_of(payload: Any, fee_asset: bytes | None) -> Call:  # noqa: ANN401 - of a type that calls
    """Return the call in the payload of a transaction."""
    call = DEFAULT_CALL if payload.call is None else payload.call
    return Call(
        payload.d_app,
        call.function,
        tuple(map(argument_value, call.args)),
        tuple(Payment(payment.asset_id, payment.amount) for payment in payload.payments),
        fee_asset,
    )


def argument_value(argument: Argument) -> Value:
    """Convert an argument of a call."""
    if isinstance(argument, tuple):
        return ride_list(map(argument_value, argument))
    return argument


def invoke_object(envelope: Envelope, call: Call, view: View) -> CaseObject:
    """Return the transaction object of a call, whose number of payments is already checked."""
    return case_object(
        "InvokeScriptTransaction",
        {
            "dApp": recipient_object(call.dapp),
            "feeAssetId": optional(call.fee_asset),
            "function": call.function,
            "args": ride_list(call.arguments),
            **_payments(
                call.payments,
                view.version if view.payments_version is None else view.payments_version,
            ),
            **_proven(envelope, view),
        },
    )


def invocation_object(invocation: Invocation, version: int) -> CaseObject:
    """Return the argument of a callable function's annotation."""
    fields: Fields = {
        "caller": address_object(invocation.caller),
        "callerPublicKey": invocation.caller_public_key,
        "transactionId": invocation.transaction_id,
        "fee": invocation.fee,
        "feeAssetId": optional(invocation.fee_asset),
    }
    if version >= _MORE_PAYMENTS:
        fields["originCaller"] = address_object(invocation.origin_caller)
        fields["originCallerPublicKey"] = invocation.origin_caller_public_key
    return case_object("Invocation", fields | _payments(invocation.payments, version))


# --- orders ---------------------------------------------------------------------------------------


def order_object(order: Order, view: View) -> CaseObject:
    """Return the object of an order."""
    pair: Fields = {
        "amountAsset": optional(order.amount_asset),
        "priceAsset": optional(order.price_asset),
    }
    fields: Fields = {
        "id": order.id,
        "sender": address_object(from_public_key(order.sender_public_key, order.chain_id)),
        "senderPublicKey": order.sender_public_key,
        "matcherPublicKey": order.matcher_public_key,
        "assetPair": case_object("AssetPair", pair),
        "orderType": case_object("Buy" if order.side is Side.BUY else "Sell", {}),
        "amount": order.amount,
        "price": order.price,
        "timestamp": order.timestamp,
        "expiration": order.expiration,
        "matcherFee": order.matcher_fee,
        "bodyBytes": order.body,
        "matcherFeeAssetId": optional(order.matcher_fee_asset),
    }
    if view.proofs or view.version != 3:
        fields |= _proofs(order.proofs)
    if view.version >= _ORDER_ATTACHMENTS:
        fields["attachment"] = optional(order.attachment)
    return case_object("Order", fields)


# --- transactions ---------------------------------------------------------------------------------


def transaction_object(transaction: AnyTransaction, view: View) -> CaseObject:
    """Return the object of a transaction that is neither a call nor an Ethereum transaction.

    Raises ``EvaluationError`` for a type that the language does not have.
    """
    kind = type_by_id(transaction.type_id)
    if kind.ride is None:
        raise EvaluationError(f"Unexpected transaction of type {transaction.type_id}")
    fields = _payload_fields(kind.ride, transaction.payload, view, transaction.fee_asset_id)
    envelope = envelope_of(transaction)
    fields |= _proven(envelope, view) if kind.ride.proven else _header(envelope)
    return case_object(kind.title, fields)


def stand_in(
    name: str, values: object, envelope: Envelope, view: View, fee_asset: bytes | None = None
) -> CaseObject:
    """Return a transaction object for a dApp's action or an Ethereum transaction. ``values`` has
    the attributes of a payload of this type.
    """
    fields = _payload_fields(_forms()[name], values, view, fee_asset)
    return case_object(name, fields | _proven(envelope, view))


class Transfer(msgspec.Struct, frozen=True):
    """A payload for ``stand_in``."""

    recipient: Recipient
    asset_id: bytes | None
    amount: int
    attachment: bytes = b""


def transfer_object(
    envelope: Envelope, recipient: Recipient, asset_id: bytes | None, amount: int, view: View
) -> CaseObject:
    """Return the transaction object of a dApp's transfer or an Ethereum transfer."""
    return stand_in("TransferTransaction", Transfer(recipient, asset_id, amount), envelope, view)


@cache
def _forms() -> dict[str, RideForm]:
    return {kind.title: kind.ride for kind in registered() if kind.ride is not None}


def _payload_fields(form: RideForm, payload: object, view: View, fee_asset: bytes | None) -> Fields:
    fields: Fields = {}
    for name, get, convert in _converters(form, view.version):
        value: Any = fee_asset if get is None else get(payload)
        fields[name] = value if convert is None else convert(value, view)
    return fields


@cache
def _converters(
    form: RideForm, version: int
) -> list[tuple[str, Callable[[Any], Any] | None, Callable[[Any, View], Value] | None]]:
    """Return, for each field of a form, its getter on a payload and its converter."""
    # Scripts of earlier versions see an object as the first version that has it does.
    version = max(version, form.since)
    found = []
    for name in form.fields:
        field = form.extra[name]
        type_ = field.type_in(version)
        if type_ and field.shown and (field.get is not None or name == FEE_ASSET):
            found.append((name, field.get, _CONVERTERS.get(type_)))
    return found


def _to_string(value: str | bytes, _view: View) -> str:
    return lenient_text(value) if isinstance(value, bytes) else value


def _to_bytes(value: bytes | None, view: View) -> Value:
    # Only a script can be so long.
    if value is None or (len(value) > MAX_BYTES and not view.switches.whole_script_field):
        return UNIT
    return value


def _to_transfers(items: Iterable[Any], _view: View) -> Value:
    return ride_list(
        case_object(
            "Transfer", {"recipient": recipient_object(item.recipient), "amount": item.amount}
        )
        for item in items
    )


def _to_entries(entries: Iterable[DataEntry], view: View) -> Value:
    return ride_list(_entry(entry, view.version) for entry in entries)


def _entry(entry: DataEntry, version: int) -> CaseObject:
    if entry.value is None:
        return case_object("DeleteEntry", {"key": entry.key})
    typed = version >= _TYPED_ENTRIES
    name = _ENTRY_TYPES[type(entry.value)] if typed else "DataEntry"
    return case_object(name, {"key": entry.key, "value": entry.value})


_ENTRY_TYPES: Final[dict[type, str]] = {
    int: "IntegerEntry",
    bool: "BooleanEntry",
    bytes: "BinaryEntry",
    str: "StringEntry",
}
_CONVERTERS: Final[dict[str, Callable[[Any, View], Value]]] = {
    "ByteVector|Unit": _to_bytes,
    "Int|Unit": lambda value, _view: optional(value),
    "Recipient": lambda recipient, _view: recipient_object(recipient),
    "String": _to_string,
    "Order": order_object,
    "List[Transfer]": _to_transfers,
    "List[Entry]": _to_entries,
}
"""Converters by type in the language; values of other types are not converted."""
