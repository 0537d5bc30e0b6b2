"""Transactions, orders and calls as the objects that scripts see.

What lives here: the fields of these objects in every version of the language. What does not: who
shows them to which script (``soliton.ledger``), and assets and blocks, which functions give out.

Source: wavesplatform/Waves
``lang/shared/src/main/scala/com/wavesplatform/lang/v1/evaluator/ctx/impl/waves/Bindings.scala`` and
``node/src/main/scala/com/wavesplatform/transaction/smart/RealTransactionWrapper.scala``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from soliton.chain.addresses import Address, Alias, Recipient, from_public_key
from soliton.chain.orders import Order, Side
from soliton.chain.transactions.burn import Burn
from soliton.chain.transactions.create_alias import CreateAlias
from soliton.chain.transactions.data import Data
from soliton.chain.transactions.exchange import Exchange
from soliton.chain.transactions.genesis import Genesis
from soliton.chain.transactions.issue import Issue
from soliton.chain.transactions.lease import Lease
from soliton.chain.transactions.lease_cancel import LeaseCancel
from soliton.chain.transactions.mass_transfer import MassTransfer
from soliton.chain.transactions.model import AnyTransaction
from soliton.chain.transactions.payment import Payment as PaymentPayload
from soliton.chain.transactions.reissue import Reissue
from soliton.chain.transactions.set_asset_script import SetAssetScript
from soliton.chain.transactions.set_script import SetScript
from soliton.chain.transactions.sponsor_fee import SponsorFee
from soliton.chain.transactions.transfer import Transfer
from soliton.chain.transactions.update_asset_info import UpdateAssetInfo
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
"""Scripts always see as many; missing ones are empty."""
MAX_PAYMENTS_V4: Final = 2
MAX_PAYMENTS: Final = 10
_TYPED_ENTRIES: Final = 4
_SEVERAL_PAYMENTS: Final = 4
_MORE_PAYMENTS: Final = 5
_ORDER_ATTACHMENTS: Final = 8

Fields = dict[str, Value]


class View(msgspec.Struct, frozen=True):
    """Who looks: the version of the language, whether proofs are shown (not to asset scripts), and
    the switches of the height. ``payments_version`` is where the payments of a call are seen as in
    another version.
    """

    version: int
    proofs: bool = True
    switches: Switches = CURRENT_SWITCHES
    payments_version: int | None = None


class Envelope(msgspec.Struct, frozen=True):
    """What all transactions have; what stands for an action of a dApp has the defaults."""

    id: bytes
    timestamp: int
    sender: Address
    sender_public_key: bytes
    fee: int = 0
    version: int = 0
    body: bytes = b""
    proofs: tuple[bytes, ...] = ()


class Call(msgspec.Struct, frozen=True):
    """A call of a dApp, whoever made it."""

    dapp: Recipient
    function: str
    arguments: tuple[Value, ...]
    payments: tuple[Payment, ...]
    fee_asset: bytes | None = None


class Invocation(msgspec.Struct, frozen=True):
    """What a callable function is told about its call."""

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
    """A value that may be missing."""
    return UNIT if value is None else value


def address_object(address: bytes) -> CaseObject:
    """An address."""
    return case_object("Address", {"bytes": address})


def recipient_object(recipient: Recipient) -> CaseObject:
    """An address or an alias."""
    if isinstance(recipient, Alias):
        return case_object("Alias", {"alias": recipient.name})
    return address_object(recipient)


def check_payment_count(payments: Sequence[object], version: int, multiple: bool, who: str) -> None:
    """Raise ``EvaluationError`` for more payments than a script of a version can be shown.

    ``multiple`` tells whether there can be more than one at all.
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
    most = MAX_PAYMENTS if version >= _MORE_PAYMENTS else MAX_PAYMENTS_V4
    if count > most:
        raise EvaluationError(f"Script payment amount={count} should not exceed {most}")


def _payments(payments: tuple[Payment, ...], version: int) -> Fields:
    made = [
        case_object("AttachedPayment", {"amount": each.amount, "assetId": optional(each.asset_id)})
        for each in payments
    ]
    if version >= _SEVERAL_PAYMENTS:
        return {"payments": ride_list(made)}
    return {"payment": made[0] if made else UNIT}


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


def _script(script: bytes | None, switches: Switches) -> Value:
    if script is None or (len(script) > MAX_BYTES and not switches.whole_script_field):
        return UNIT
    return script


def envelope_of(transaction: AnyTransaction) -> Envelope:
    """The envelope of a transaction of the chain."""
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
    """The envelope of what an Ethereum wallet signed: without bytes, proofs and version."""
    return Envelope(
        transaction.id,
        transaction.timestamp,
        from_public_key(transaction.sender_public_key, transaction.chain_id),
        transaction.sender_public_key,
        transaction.fee,
    )


# --- transactions that also stand for actions -----------------------------------------------------


def transfer_object(
    envelope: Envelope,
    recipient: Recipient,
    asset_id: bytes | None,
    amount: int,
    view: View,
    fee_asset: bytes | None = None,
    attachment: bytes = b"",
) -> CaseObject:
    """A transfer."""
    return case_object(
        "TransferTransaction",
        {
            "amount": amount,
            "feeAssetId": optional(fee_asset),
            "assetId": optional(asset_id),
            "attachment": attachment,
            "recipient": recipient_object(recipient),
            **_proven(envelope, view),
        },
    )


def reissue_object(
    envelope: Envelope, asset_id: bytes, quantity: int, reissuable: bool, view: View
) -> CaseObject:
    """A reissue."""
    return case_object(
        "ReissueTransaction",
        {
            "quantity": quantity,
            "assetId": asset_id,
            "reissuable": reissuable,
            **_proven(envelope, view),
        },
    )


def burn_object(envelope: Envelope, asset_id: bytes, quantity: int, view: View) -> CaseObject:
    """A burn."""
    return case_object(
        "BurnTransaction",
        {"quantity": quantity, "assetId": asset_id, **_proven(envelope, view)},
    )


def sponsor_fee_object(
    envelope: Envelope, asset_id: bytes, min_fee: int | None, view: View
) -> CaseObject:
    """A sponsorship."""
    return case_object(
        "SponsorFeeTransaction",
        {
            "assetId": asset_id,
            "minSponsoredAssetFee": optional(min_fee),
            **_proven(envelope, view),
        },
    )


def invoke_object(envelope: Envelope, call: Call, view: View) -> CaseObject:
    """The call of a dApp; the caller has checked the number of payments."""
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
    """The argument of a callable function's annotation."""
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
    """An order."""
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


# --- all other transactions -----------------------------------------------------------------------


def transaction_object(transaction: AnyTransaction, view: View) -> CaseObject:
    """A transaction of any type but calls of dApps and what Ethereum wallets sign.

    Raises ``EvaluationError`` for a type that scripts do not know.
    """
    payload = transaction.payload
    match payload:
        case Genesis():
            fields: Fields = {
                "amount": payload.amount,
                "recipient": address_object(payload.recipient),
                "id": transaction.id,
                "fee": transaction.fee,
                "timestamp": transaction.timestamp,
                "version": transaction.version,
            }
            return case_object("GenesisTransaction", fields)
        case Transfer():
            return transfer_object(
                envelope_of(transaction),
                payload.recipient,
                payload.asset_id,
                payload.amount,
                view,
                transaction.fee_asset_id,
                payload.attachment,
            )
        case Reissue():
            return reissue_object(
                envelope_of(transaction),
                payload.asset_id,
                payload.quantity,
                payload.reissuable,
                view,
            )
        case Burn():
            return burn_object(envelope_of(transaction), payload.asset_id, payload.quantity, view)
        case SponsorFee():
            return sponsor_fee_object(
                envelope_of(transaction), payload.asset_id, payload.min_fee, view
            )
    row = _PLAIN.get(type(payload))
    if row is None:
        raise EvaluationError(f"Unexpected transaction of type {transaction.type_id}")
    name, make = row
    return case_object(name, make(payload, view) | _proven(envelope_of(transaction), view))


def _payment_fields(payload: PaymentPayload, _view: View) -> Fields:
    return {"amount": payload.amount, "recipient": address_object(payload.recipient)}


def _issue_fields(payload: Issue, view: View) -> Fields:
    texts = view.version >= _TYPED_ENTRIES
    return {
        "quantity": payload.quantity,
        "name": _text(payload.name) if texts else payload.name,
        "description": _text(payload.description) if texts else payload.description,
        "reissuable": payload.reissuable,
        "decimals": payload.decimals,
        "script": _script(payload.script, view.switches),
    }


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _lease_fields(payload: Lease, _view: View) -> Fields:
    return {"amount": payload.amount, "recipient": recipient_object(payload.recipient)}


def _lease_cancel_fields(payload: LeaseCancel, _view: View) -> Fields:
    return {"leaseId": payload.lease_id}


def _create_alias_fields(payload: CreateAlias, _view: View) -> Fields:
    return {"alias": payload.alias.name}


def _mass_transfer_fields(payload: MassTransfer, _view: View) -> Fields:
    transfers = [
        case_object(
            "Transfer", {"recipient": recipient_object(item.recipient), "amount": item.amount}
        )
        for item in payload.transfers
    ]
    return {
        "transfers": ride_list(transfers),
        "assetId": optional(payload.asset_id),
        "transferCount": len(transfers),
        "totalAmount": sum(item.amount for item in payload.transfers),
        "attachment": payload.attachment,
    }


def _set_script_fields(payload: SetScript, view: View) -> Fields:
    return {"script": _script(payload.script, view.switches)}


def _set_asset_script_fields(payload: SetAssetScript, view: View) -> Fields:
    return {"script": _script(payload.script, view.switches), "assetId": payload.asset_id}


def _data_fields(payload: Data, view: View) -> Fields:
    return {"data": ride_list(_entry(entry, view.version) for entry in payload.entries)}


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


def _exchange_fields(payload: Exchange, view: View) -> Fields:
    return {
        "buyOrder": order_object(payload.buy_order, view),
        "sellOrder": order_object(payload.sell_order, view),
        "amount": payload.amount,
        "price": payload.price,
        "buyMatcherFee": payload.buy_matcher_fee,
        "sellMatcherFee": payload.sell_matcher_fee,
    }


def _update_asset_info_fields(payload: UpdateAssetInfo, _view: View) -> Fields:
    return {
        "assetId": payload.asset_id,
        "name": _text(payload.name),
        "description": _text(payload.description),
    }


_PLAIN: Final[dict[type, tuple[str, Callable[..., Fields]]]] = {
    PaymentPayload: ("PaymentTransaction", _payment_fields),
    Issue: ("IssueTransaction", _issue_fields),
    Lease: ("LeaseTransaction", _lease_fields),
    LeaseCancel: ("LeaseCancelTransaction", _lease_cancel_fields),
    CreateAlias: ("CreateAliasTransaction", _create_alias_fields),
    MassTransfer: ("MassTransferTransaction", _mass_transfer_fields),
    SetScript: ("SetScriptTransaction", _set_script_fields),
    SetAssetScript: ("SetAssetScriptTransaction", _set_asset_script_fields),
    Data: ("DataTransaction", _data_fields),
    Exchange: ("ExchangeTransaction", _exchange_fields),
    UpdateAssetInfo: ("UpdateAssetInfoTransaction", _update_asset_info_fields),
}
