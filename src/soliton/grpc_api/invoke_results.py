"""The result of a dApp call as a message, from its stored record.

What lives here: ``InvokeScriptResult``. What does not: the record (``soliton.node.call_records``),
and its form in the REST API.

Source: wavesplatform/Waves ``node/src/main/scala/com/wavesplatform/state/InvokeScriptResult.scala``
(``toPB``).
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from typing import Any, Final

from soliton.chain.addresses import parse_address
from soliton.chain.function_calls import Argument
from soliton.chain.proto.amount_pb2 import Amount
from soliton.chain.protobuf import write_recipient
from soliton.crypto import base58
from soliton.grpc_api.proto.invoke_script_result_pb2 import InvokeScriptResult
from soliton.ledger.state import LEASE_INFO, State

Record = Mapping[str, Any]

_PREFIX: Final = "base64:"
_Argument = InvokeScriptResult.Call.Argument


def invoke_result(changes: Record, state: State, chain_id: int) -> InvokeScriptResult:
    """Return the message for stored state changes; ``state`` has the leases."""
    result = InvokeScriptResult()
    _fill(result, changes, state, chain_id)
    return result


def _fill(result: InvokeScriptResult, changes: Record, state: State, chain_id: int) -> None:
    for each in changes["data"]:
        entry = result.data.add(key=each["key"])
        if each["value"] is not None:
            value = each["value"]
            kind = each["type"]
            if kind == "binary":
                entry.binary_value = _bytes(value)
            else:
                setattr(entry, _DATA_MEMBERS[kind], value)
    for each in changes["transfers"]:
        result.transfers.add(
            address=parse_address(each["address"], chain_id),
            amount=_amount(each["asset"], each["amount"]),
        )
    for each in changes["issues"]:
        result.issues.add(
            asset_id=base58.decode(each["assetId"]),
            name=each["name"],
            description=each["description"],
            amount=each["quantity"],
            decimals=each["decimals"],
            reissuable=each["isReissuable"],
            nonce=each["nonce"],
        )
    for each in changes["reissues"]:
        result.reissues.add(
            asset_id=base58.decode(each["assetId"]),
            amount=each["quantity"],
            is_reissuable=each["isReissuable"],
        )
    for each in changes["burns"]:
        result.burns.add(asset_id=base58.decode(each["assetId"]), amount=each["quantity"])
    for each in changes["sponsorFees"]:
        fee = each.get("minSponsoredAssetFee", 0)
        result.sponsor_fees.add(min_fee=_amount(each["assetId"], fee))
    for each in changes["leases"]:
        _fill_lease(result.leases.add(), each, state)
    for each in changes["leaseCancels"]:
        result.lease_cancels.add(lease_id=base58.decode(each["id"]))
    if "error" in changes:
        result.error_message.code = changes["error"]["code"]
        result.error_message.text = changes["error"]["text"]
    for each in changes["invokes"]:
        made = result.invokes.add(dApp=parse_address(each["dApp"], chain_id))
        made.call.function = each["call"]["function"]
        made.call.args.extend(map(_stored_argument, each["call"]["args"]))
        made.payments.extend(_amount(one["assetId"], one["amount"]) for one in each["payment"])
        made.stateChanges.SetInParent()
        _fill(made.stateChanges, each["stateChanges"], state, chain_id)


_DATA_MEMBERS: Final = {
    "integer": "int_value",
    "boolean": "bool_value",
    "string": "string_value",
}


def _fill_lease(message: InvokeScriptResult.Lease, record: Record, state: State) -> None:
    message.lease_id = base58.decode(record["id"])
    message.nonce = record.get("nonce", 0)
    info = state.get(LEASE_INFO, message.lease_id)
    if info is not None:
        write_recipient(message.recipient, info.recipient)
        message.amount = info.amount
    if "alias" in record:
        message.recipient.alias = record["alias"]


def _amount(asset: str | None, amount: int) -> Amount:
    return Amount(asset_id=b"" if asset is None else base58.decode(asset), amount=amount)


def _bytes(text: str) -> bytes:
    """Decode base58 or, for long values, base64."""
    if text.startswith(_PREFIX):
        return base64.b64decode(text[len(_PREFIX) :])
    return base58.decode(text)


def _stored_argument(argument: Record) -> _Argument:
    """Return an argument of a dApp's call, from its form in the record."""
    kind, value = argument["type"], argument["value"]
    match kind:
        case "Int":
            return _Argument(integer_value=value)
        case "Boolean":
            return _Argument(boolean_value=value)
        case "String":
            return _Argument(string_value=value)
        case "ByteVector":
            return _Argument(binary_value=_bytes(value))
        case "Array":
            made = _Argument()
            made.list.SetInParent()
            made.list.items.extend(map(_stored_argument, value))
            return made
        case _:
            # The record does not have objects in the serialization of the message.
            return _Argument()


def arguments(values: Iterable[Argument]) -> list[_Argument]:
    """Return the arguments of a transaction's call."""
    return [_argument(value) for value in values]


def _argument(value: Argument) -> _Argument:
    match value:
        case bool():
            return _Argument(boolean_value=value)
        case int():
            return _Argument(integer_value=value)
        case bytes():
            return _Argument(binary_value=value)
        case str():
            return _Argument(string_value=value)
        case _:
            made = _Argument()
            made.list.SetInParent()
            made.list.items.extend(map(_argument, value))
            return made
