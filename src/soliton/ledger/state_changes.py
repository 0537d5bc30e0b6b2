"""The effects of a dApp call, as a value and in JSON: its actions, and its nested calls.

What lives here: the tree that clients see as ``stateChanges``. What does not: computing it
(``invocation``, ``actions``).

Source: wavesplatform/Waves
``node/src/main/scala/com/wavesplatform/state/InvokeScriptResult.scala``.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any, Final

import msgspec

from soliton.chain.addresses import Address, address_text
from soliton.chain.values import AssetId, DataEntry
from soliton.crypto import base58
from soliton.ledger.script_results import (
    Action,
    Burn,
    Issue,
    Lease,
    LeaseCancel,
    Reissue,
    SponsorFee,
    Transfer,
)
from soliton.ride.environment import Payment
from soliton.ride.values import BigInt, CaseObject, RideList, Value

JsonObject = dict[str, Any]

FIRST_BASE64_BYTES: Final = 1_024
"""Values of this size and more are rendered in base64."""


class ErrorMessage(msgspec.Struct, frozen=True, gc=False):
    """Why a transaction failed: ``code`` as in ``FailedTransaction``, and a message."""

    code: int
    text: str


class StateChanges(msgspec.Struct, frozen=True):
    """The actions of one call in order, the calls that it made, and an error if it failed."""

    actions: tuple[Action, ...] = ()
    invokes: tuple[InvokedCall, ...] = ()
    error: ErrorMessage | None = None


class Invoked(msgspec.Struct, frozen=True):
    """The outcome of a transaction's call, which includes the fee: the complexity of all scripts
    that ran, and the effects.
    """

    complexity: int
    changes: StateChanges


class InvokedCall(msgspec.Struct, frozen=True):
    """A call that a dApp made."""

    dapp: Address
    function: str
    arguments: tuple[Value, ...]
    payments: tuple[Payment, ...]
    changes: StateChanges


def to_json(changes: StateChanges, lease: Callable[[Lease], JsonObject]) -> JsonObject:
    """Return the tree in JSON; ``lease`` renders a lease with its present state."""
    actions = changes.actions
    out: JsonObject = {
        "data": [_entry(each) for each in actions if isinstance(each, DataEntry)],
        "transfers": [_transfer(each) for each in actions if isinstance(each, Transfer)],
        "issues": [_issue(each) for each in actions if isinstance(each, Issue)],
        "reissues": [_reissue(each) for each in actions if isinstance(each, Reissue)],
        "burns": [_burn(each) for each in actions if isinstance(each, Burn)],
        "sponsorFees": [_sponsor_fee(each) for each in actions if isinstance(each, SponsorFee)],
        "leases": [lease(each) for each in actions if isinstance(each, Lease)],
        "leaseCancels": [
            {"id": base58.encode(each.id)} for each in actions if isinstance(each, LeaseCancel)
        ],
        "invokes": [
            {
                "dApp": address_text(call.dapp),
                "call": {
                    "function": call.function,
                    "args": [value_json(argument) for argument in call.arguments],
                },
                "payment": [
                    {"assetId": _asset(payment.asset_id), "amount": payment.amount}
                    for payment in call.payments
                ],
                "stateChanges": to_json(call.changes, lease),
            }
            for call in changes.invokes
        ],
    }
    if changes.error is not None:
        out["error"] = {"code": changes.error.code, "text": changes.error.text}
    return out


def _asset(asset_id: AssetId | None) -> str | None:
    return None if asset_id is None else base58.encode(asset_id)


def _entry(entry: DataEntry) -> JsonObject:
    match entry.value:
        case None:
            return {"key": entry.key, "value": None}
        case bool():
            kind: str = "boolean"
        case int():
            kind = "integer"
        case bytes():
            return {"key": entry.key, "type": "binary", "value": _base64(entry.value)}
        case _:
            kind = "string"
    return {"key": entry.key, "type": kind, "value": entry.value}


def _shown_bytes(data: bytes) -> str:
    """Encode long values in base64, because base58 takes quadratic time."""
    return base58.encode(data) if len(data) < FIRST_BASE64_BYTES else _base64(data)


def _base64(data: bytes) -> str:
    return "base64:" + base64.b64encode(data).decode()


def _transfer(transfer: Transfer) -> JsonObject:
    return {
        "address": address_text(Address(transfer.address)),
        "asset": _asset(transfer.asset_id),
        "amount": transfer.amount,
    }


def _issue(issue: Issue) -> JsonObject:
    return {
        "assetId": base58.encode(issue.id),
        "name": issue.name,
        "description": issue.description,
        "quantity": issue.quantity,
        "decimals": issue.decimals,
        "isReissuable": issue.reissuable,
        "compiledScript": None,
        "nonce": issue.nonce,
    }


def _reissue(reissue: Reissue) -> JsonObject:
    return {
        "assetId": base58.encode(reissue.asset_id),
        "isReissuable": reissue.reissuable,
        "quantity": reissue.quantity,
    }


def _burn(burn: Burn) -> JsonObject:
    return {"assetId": base58.encode(burn.asset_id), "quantity": burn.quantity}


def _sponsor_fee(sponsorship: SponsorFee) -> JsonObject:
    out: JsonObject = {"assetId": base58.encode(sponsorship.asset_id)}
    if sponsorship.min_fee is not None:
        out["minSponsoredAssetFee"] = sponsorship.min_fee
    return out


MAX_SHOWN_DEPTH: Final = 100
"""The nesting depth of rendered values; scripts can produce much deeper ones."""


def value_json(value: Value, levels: int = MAX_SHOWN_DEPTH) -> JsonObject:
    """Return a value of the script language with its type; lists and objects below ``levels`` are
    rendered as empty.

    Source: wavesplatform/Waves
    ``node/src/main/scala/com/wavesplatform/serialization/ScriptValuesJson.scala``.
    """
    match value:
        case bool():
            return {"type": "Boolean", "value": value}
        case int():
            return {"type": "Int", "value": value}
        case BigInt():
            # It has up to 155 digits; the JSON encoder supports only 64 bits.
            return {"type": "BigInt", "value": msgspec.Raw(str(value.value).encode("ascii"))}
        case str():
            return {"type": "String", "value": str(value)}
        case bytes():
            return {"type": "ByteVector", "value": _shown_bytes(value)}
        case RideList():
            items = value.items if levels else ()
            return {"type": "Array", "value": [value_json(item, levels - 1) for item in items]}
        case CaseObject():
            inner = value.fields.items() if levels else ()
            fields = {name: value_json(field, levels - 1) for name, field in inner}
            return {"type": value.type_name, "value": fields}
