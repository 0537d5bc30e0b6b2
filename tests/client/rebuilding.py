"""Transactions of others made again through an account's own methods, from their JSON."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

from soliton import Account, Order, Transaction
from soliton.chain.json_kinds import decode_base58
from soliton.client.records import data_value

Json = Mapping[str, Any]


def remade(fields: Json, chain_id: int) -> Transaction:
    """The transaction that an account makes when it is asked for the same."""
    account = Account.from_public_key(fields["senderPublicKey"], chain_id)
    options: dict[str, Any] = {
        "fee": int(fields["fee"]),
        "timestamp": int(fields["timestamp"]),
        "version": fields.get("version", 1),
    }
    made: Transaction = _MAKERS[fields["type"]](account, fields, options)
    return made


def argument(told: Json) -> Any:
    value = told["value"]
    match told["type"]:
        case "list":
            return [argument(each) for each in value]
        case "binary":
            return base64.b64decode(value.removeprefix("base64:"))
        case "integer":
            return int(value)
    return value


def _attached(fields: Json) -> bytes:
    return decode_base58(fields["attachment"]) if fields.get("attachment") else b""


def _issue(account: Account, tx: Json, options: dict[str, Any]) -> Transaction:
    return account.issue(
        tx["name"],
        int(tx["quantity"]),
        tx["decimals"],
        tx["description"],
        reissuable=tx["reissuable"],
        script=tx.get("script"),
        **options,
    )


def _transfer(account: Account, tx: Json, options: dict[str, Any]) -> Transaction:
    return account.transfer(
        tx["recipient"],
        int(tx["amount"]),
        tx.get("assetId"),
        attachment=_attached(tx),
        fee_asset=tx.get("feeAssetId"),
        **options,
    )


def _exchange(account: Account, tx: Json, options: dict[str, Any]) -> Transaction:
    return account.exchange(
        Order.from_json(tx["order1"], account.chain_id),
        Order.from_json(tx["order2"], account.chain_id),
        int(tx["amount"]),
        int(tx["price"]),
        buy_matcher_fee=int(tx["buyMatcherFee"]),
        sell_matcher_fee=int(tx["sellMatcherFee"]),
        **options,
    )


def _mass_transfer(account: Account, tx: Json, options: dict[str, Any]) -> Transaction:
    amounts = [(each["recipient"], int(each["amount"])) for each in tx["transfers"]]
    return account.mass_transfer(amounts, tx.get("assetId"), attachment=_attached(tx), **options)


def _data(account: Account, tx: Json, options: dict[str, Any]) -> Transaction:
    entries = {
        each["key"]: None
        if each.get("type") is None
        else data_value(
            each["type"], int(each["value"]) if each["type"] == "integer" else each["value"]
        )
        for each in tx["data"]
    }
    return account.data(entries, **options)


def _sponsor(account: Account, tx: Json, options: dict[str, Any]) -> Transaction:
    least = tx.get("minSponsoredAssetFee")
    return account.sponsor(tx["assetId"], None if least is None else int(least), **options)


def _invoke(account: Account, tx: Json, options: dict[str, Any]) -> Transaction:
    call = tx.get("call") or {}
    return account.invoke(
        tx["dApp"],
        call.get("function"),
        *map(argument, call.get("args", ())),
        payments=[(int(each["amount"]), each.get("assetId")) for each in tx["payment"]],
        fee_asset=tx.get("feeAssetId"),
        **options,
    )


_MAKERS: dict[int, Any] = {
    3: _issue,
    4: _transfer,
    5: lambda account, tx, options: account.reissue(
        tx["assetId"], int(tx["quantity"]), reissuable=tx["reissuable"], **options
    ),
    6: lambda account, tx, options: account.burn(
        tx["assetId"], int(tx["amount"] if "amount" in tx else tx["quantity"]), **options
    ),
    7: _exchange,
    8: lambda account, tx, options: account.lease(tx["recipient"], int(tx["amount"]), **options),
    9: lambda account, tx, options: account.cancel_lease(tx["leaseId"], **options),
    10: lambda account, tx, options: account.alias(tx["alias"], **options),
    11: _mass_transfer,
    12: _data,
    13: lambda account, tx, options: account.set_script(tx.get("script"), **options),
    14: _sponsor,
    15: lambda account, tx, options: account.set_asset_script(
        tx["assetId"], tx.get("script"), **options
    ),
    16: _invoke,
    17: lambda account, tx, options: account.update_asset_info(
        tx["assetId"],
        tx["name"],
        tx["description"],
        fee_asset=tx.get("feeAssetId"),
        **options,
    ),
}
TYPES = frozenset(_MAKERS)
