"""The kinds of transactions: their tables, filters and JSON.

What lives here: tables, filters and JSON of each kind. What does not: pages and envelopes
(``transactions``), formats.

Source: wavesplatform/data-service ``src/services/transactions``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple

from soliton.data_service.formats import (
    NATIVE,
    NATIVE_DECIMALS,
    PRICE_DECIMALS,
    Format,
    moment,
)
from soliton.data_service.pool import Row

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_FIXED_PRICE_VERSION: Final = 3
_FIXED_ORDER_VERSION: Final = 4
_FEE_ASSET_VERSION: Final = 3

Decimals = Mapping[str, int]
Shown = Callable[[Row, Format, Decimals], Row]


class Detail(NamedTuple):
    """A table with a row for each item of a transaction, which go into the member ``name``."""

    name: str
    table: str
    order: str


class Filter(NamedTuple):
    """A condition; ``%(value)s`` is the parameter's value, which is read as its ``kind``: ``text``,
    ``list``, ``script`` or ``account`` (an address, or an alias).
    """

    name: str
    condition: str
    kind: str = "text"


class Kind(NamedTuple):
    """A kind of transactions. ``assets`` returns those whose decimals it needs."""

    path: str
    table: str
    type_id: int
    filters: tuple[Filter, ...]
    show: Shown
    assets: Callable[[Row], Iterable[str]]
    details: tuple[Detail, ...] = ()
    columns: str = "t.*"
    joins: str = ""


SENDER: Final = Filter("sender", "t.sender = %(value)s")
SENDERS: Final = Filter("senders", "t.sender = ANY(%(value)s)", "list")
_ASSET: Final = Filter("assetId", "t.asset_id = %(value)s")
_RECIPIENT: Final = Filter("recipient", "t.recipient_address = %(value)s", "account")
_SCRIPT: Final = Filter("script", "md5(t.script) = md5(%(value)s)", "script")
_BY_SENDER: Final = (SENDER, SENDERS)


def common_json(row: Row, shape: Format, fee_decimals: int = NATIVE_DECIMALS) -> Row:
    """Return the members that all transactions have."""
    shown: Row = {
        "height": row["height"],
        "type": row["tx_type"],
        "id": row["id"],
        "timestamp": moment(row["time_stamp"]),
    }
    if row["signature"] is not None:
        shown["signature"] = row["signature"]
    if row["proofs"] or row["signature"] is None:
        shown["proofs"] = row["proofs"] or []
    if row["tx_version"] is not None:
        shown["version"] = row["tx_version"]
    shown["fee"] = shape.money(row["fee"], fee_decimals)
    shown["applicationStatus"] = row["status"]
    if row["sender"] is not None:
        shown |= {"sender": row["sender"], "senderPublicKey": row["sender_public_key"]}
    return shown


def _base64(script: str | None) -> str | None:
    return None if script is None else f"base64:{script}"


def _no_assets(_row: Row) -> Iterable[str]:
    return ()


def _own_asset(row: Row) -> Iterable[str]:
    return (row["asset_id"],)


def _to(row: Row) -> str:
    """Return a recipient as in the transaction: the alias if one was used."""
    alias: str | None = row["recipient_alias"]
    return row["recipient_address"] if alias is None else alias


def _payment(row: Row, shape: Format, _decimals: Decimals) -> Row:
    return {"amount": shape.money(row["amount"], NATIVE_DECIMALS), "recipient": _to(row)}


def _issue(row: Row, shape: Format, _decimals: Decimals) -> Row:
    return {
        "assetId": row["asset_id"],
        "name": row["asset_name"],
        "description": row["description"],
        "quantity": shape.money(row["quantity"], row["decimals"]),
        "decimals": row["decimals"],
        "reissuable": row["reissuable"],
        "script": _base64(row["script"]),
    }


def _transfer(row: Row, shape: Format, decimals: Decimals) -> Row:
    return {
        "fee": shape.money(row["fee"], decimals[row["fee_asset_id"]]),
        "assetId": row["asset_id"],
        "amount": shape.money(row["amount"], decimals[row["asset_id"]]),
        "recipient": _to(row),
        "feeAsset": row["fee_asset_id"],
        "attachment": row["attachment"],
    }


def _reissue(row: Row, shape: Format, decimals: Decimals) -> Row:
    return {
        "assetId": row["asset_id"],
        "quantity": shape.money(row["quantity"], decimals[row["asset_id"]]),
        "reissuable": row["reissuable"],
    }


def _burn(row: Row, shape: Format, decimals: Decimals) -> Row:
    amount = shape.money(row["amount"], decimals[row["asset_id"]])
    return {"assetId": row["asset_id"], "amount": amount}


def _fee_asset(order: Row) -> str:
    return order.get("matcherFeeAssetId") or NATIVE


def _exchange_assets(row: Row) -> Iterable[str]:
    orders = (row["order1"], row["order2"])
    pairs = [order["assetPair"][name] for order in orders for name in ("amountAsset", "priceAsset")]
    return (
        *(row["amount_asset_id"], row["price_asset_id"], row["fee_asset_id"]),
        *map(_fee_asset, orders),
        *(each or NATIVE for each in pairs),
    )


def _exchange(row: Row, shape: Format, decimals: Decimals) -> Row:
    amount_decimals = decimals[row["amount_asset_id"]]
    pair = decimals[row["price_asset_id"]] - amount_decimals
    fixed = (row["tx_version"] or 0) >= _FIXED_PRICE_VERSION
    orders: tuple[Row, Row] = (row["order1"], row["order2"])
    by_side: dict[str, Row] = {order["orderType"]: order for order in orders}
    fees = {side: decimals[_fee_asset(by_side.get(side, orders[0]))] for side in ("buy", "sell")}
    return {
        "buyMatcherFee": shape.money(row["buy_matcher_fee"], fees["buy"]),
        "sellMatcherFee": shape.money(row["sell_matcher_fee"], fees["sell"]),
        "price": shape.money(row["price"], PRICE_DECIMALS + (0 if fixed else pair)),
        "amount": shape.money(row["amount"], amount_decimals),
        "order1": _order(orders[0], shape, decimals),
        "order2": _order(orders[1], shape, decimals),
    }


def _order(order: Row, shape: Format, decimals: Decimals) -> Row:
    amount_asset = order["assetPair"]["amountAsset"] or NATIVE
    price_asset = order["assetPair"]["priceAsset"] or NATIVE
    version = order["version"]
    fixed = version >= _FIXED_ORDER_VERSION and order.get("priceMode") != "assetDecimals"
    pair = 0 if fixed else decimals[price_asset] - decimals[amount_asset]
    shown: Row = {
        "id": order["id"],
        "version": version,
        "senderPublicKey": order["senderPublicKey"],
        "matcherPublicKey": order["matcherPublicKey"],
        "assetPair": {"amountAsset": amount_asset, "priceAsset": price_asset},
        "orderType": order["orderType"],
        "price": shape.money(order["price"], PRICE_DECIMALS + pair),
        "sender": order["sender"],
        "amount": shape.money(order["amount"], decimals[amount_asset]),
        "timestamp": _order_time(order["timestamp"]),
        "expiration": _order_time(order["expiration"]),
        "matcherFee": shape.money(order["matcherFee"], decimals[_fee_asset(order)]),
        "signature": order["signature"],
    }
    if version >= _FEE_ASSET_VERSION:
        shown["matcherFeeAssetId"] = order.get("matcherFeeAssetId")
    if version >= _FIXED_ORDER_VERSION:
        shown["priceMode"] = order.get("priceMode")
        shown["eip712Signature"] = order.get("eip712Signature")
    return shown


def _order_time(milliseconds: int) -> str | None:
    try:
        return moment(_EPOCH + timedelta(milliseconds=milliseconds))
    except OverflowError:
        return None


def _cancel(row: Row, _shape: Format, _decimals: Decimals) -> Row:
    return {"leaseId": row["lease_id"]}


def _alias(row: Row, _shape: Format, _decimals: Decimals) -> Row:
    return {"alias": row["alias"]}


def _mass_transfer(row: Row, shape: Format, decimals: Decimals) -> Row:
    places = decimals[row["asset_id"]]
    return {
        "assetId": row["asset_id"],
        "attachment": row["attachment"],
        "transfers": [
            {"recipient": _to(item), "amount": shape.money(item["amount"], places)}
            for item in row["transfers"]
        ],
    }


def _data(row: Row, shape: Format, _decimals: Decimals) -> Row:
    return {"data": [_entry(item, shape) for item in row["data"]]}


def _entry(item: Row, shape: Format) -> Row:
    kind = item["data_type"]
    entry = {"key": item["data_key"], "type": kind}
    return entry if kind is None else entry | {"value": _value(kind, item, "data_value", shape)}


def _value(kind: str, item: Row, prefix: str, shape: Format) -> Any:  # noqa: ANN401 - any JSON value
    value = item[f"{prefix}_{kind}"]
    return shape.number(value) if kind == "integer" and value is not None else value


def _set_script(row: Row, _shape: Format, _decimals: Decimals) -> Row:
    return {"script": _base64(row["script"])}


def _asset_script(row: Row, _shape: Format, _decimals: Decimals) -> Row:
    return {"assetId": row["asset_id"], "script": _base64(row["script"])}


def _sponsorship(row: Row, shape: Format, decimals: Decimals) -> Row:
    fee = row["min_sponsored_asset_fee"]
    shown = None if fee is None else shape.money(fee, decimals[row["asset_id"]])
    return {"assetId": row["asset_id"], "minSponsoredAssetFee": shown}


def _call_assets(row: Row) -> Iterable[str]:
    return (row["fee_asset_id"], *(item["asset_id"] for item in row["payment"]))


def _call(row: Row, shape: Format, decimals: Decimals) -> Row:
    shown: Row = {
        "fee": shape.money(row["fee"], decimals[row["fee_asset_id"]]),
        "dApp": row["dapp_address"] if row["dapp_alias"] is None else row["dapp_alias"],
        "feeAssetId": row["fee_asset_id"],
        "payment": [
            {
                "amount": shape.money(item["amount"], decimals[item["asset_id"]]),
                "assetId": item["asset_id"],
            }
            for item in row["payment"]
        ],
    }
    if row["function_name"] is not None:
        args = [
            {"type": item["arg_type"], "value": _value(item["arg_type"], item, "arg_value", shape)}
            for item in row["args"]
        ]
        shown["call"] = {"function": row["function_name"], "args": args}
    return shown


def _renaming(row: Row, _shape: Format, _decimals: Decimals) -> Row:
    return {
        "assetId": row["asset_id"],
        "name": row["asset_name"],
        "description": row["description"],
    }


def _ethereum(row: Row, _shape: Format, _decimals: Decimals) -> Row:
    function = row["function_name"]
    payload: Row = {"type": "transfer"}
    if function is not None:
        payload = {"type": "invocation", "call": {"function": function}}
    return {"bytes": "0x" + bytes(row["bytes"]).hex(), "payload": payload}


def other_json(row: Row) -> Row:
    """Return a transaction of a type without a kind, as the chain shows it."""
    return dict(row["body"])


_ORDER_IDS: Final = "ARRAY[t.order1 ->> 'id', t.order2 ->> 'id']"
_ORDER_SENDERS: Final = "ARRAY[t.order1 ->> 'sender', t.order2 ->> 'sender']"
_LEASE: Final = (
    "EXISTS (SELECT 1 FROM txs_8 l WHERE l.uid = t.lease_tx_uid AND "
    "l.recipient_address = %(value)s)"
)

KINDS: Final[Sequence[Kind]] = (
    Kind("genesis", "txs_1", 1, (_RECIPIENT,), _payment, _no_assets),
    Kind("payment", "txs_2", 2, (*_BY_SENDER, _RECIPIENT), _payment, _no_assets),
    Kind("issue", "txs_3", 3, (*_BY_SENDER, _ASSET, _SCRIPT), _issue, _no_assets),
    Kind(
        "transfer",
        "txs_4",
        4,
        (*_BY_SENDER, _ASSET, _RECIPIENT),
        _transfer,
        lambda row: (row["asset_id"], row["fee_asset_id"]),
    ),
    Kind("reissue", "txs_5", 5, (*_BY_SENDER, _ASSET), _reissue, _own_asset),
    Kind("burn", "txs_6", 6, (*_BY_SENDER, _ASSET), _burn, _own_asset),
    Kind(
        "exchange",
        "txs_7",
        7,
        (
            Filter("sender", f"{_ORDER_SENDERS} @> ARRAY[%(value)s]::text[]"),
            Filter("senders", f"{_ORDER_SENDERS} && %(value)s::text[]", "list"),
            Filter("matcher", "t.sender = %(value)s"),
            Filter("amountAsset", "t.amount_asset_id = %(value)s"),
            Filter("priceAsset", "t.price_asset_id = %(value)s"),
            Filter("orderId", f"{_ORDER_IDS} @> ARRAY[%(value)s]::text[]"),
        ),
        _exchange,
        _exchange_assets,
    ),
    Kind("lease", "txs_8", 8, (*_BY_SENDER, _RECIPIENT), _payment, _no_assets),
    Kind(
        "lease-cancel",
        "txs_9",
        9,
        (*_BY_SENDER, Filter("recipient", _LEASE, "account")),
        _cancel,
        _no_assets,
    ),
    Kind("alias", "txs_10", 10, _BY_SENDER, _alias, _no_assets),
    Kind(
        "mass-transfer",
        "txs_11",
        11,
        (
            *(*_BY_SENDER, _ASSET),
            Filter(
                "recipient",
                "t.uid IN (SELECT i.tx_uid FROM txs_11_transfers i "
                "WHERE i.recipient_address = %(value)s)",
                "account",
            ),
        ),
        _mass_transfer,
        _own_asset,
        (Detail("transfers", "txs_11_transfers", "position_in_tx"),),
    ),
    Kind(
        "data",
        "txs_12",
        12,
        _BY_SENDER,
        _data,
        _no_assets,
        (Detail("data", "txs_12_data", "position_in_tx"),),
    ),
    Kind("set-script", "txs_13", 13, (*_BY_SENDER, _SCRIPT), _set_script, _no_assets),
    Kind("sponsorship", "txs_14", 14, (*_BY_SENDER, _ASSET), _sponsorship, _own_asset),
    Kind(
        "set-asset-script", "txs_15", 15, (*_BY_SENDER, _ASSET, _SCRIPT), _asset_script, _no_assets
    ),
    Kind(
        "invoke-script",
        "txs_16",
        16,
        (
            *_BY_SENDER,
            Filter("dapp", "t.dapp_address = %(value)s", "account"),
            Filter("function", "t.function_name = %(value)s"),
        ),
        _call,
        _call_assets,
        (
            Detail("args", "txs_16_args", "position_in_args"),
            Detail("payment", "txs_16_payment", "position_in_payment"),
        ),
    ),
    Kind("update-asset-info", "txs_17", 17, (*_BY_SENDER, _ASSET), _renaming, _no_assets),
    Kind(
        "ethereum-like",
        "txs_18",
        18,
        (
            *_BY_SENDER,
            Filter("type", "(t.function_name IS NULL) = (%(value)s::text = 'transfer')"),
            Filter("function", "t.function_name = %(value)s"),
        ),
        _ethereum,
        _no_assets,
    ),
)
BY_PATH: Final = {kind.path: kind for kind in KINDS}
BY_TYPE: Final = {kind.type_id: kind for kind in KINDS}

DATA_VALUES: Final[Mapping[str, tuple[str, Callable[[str], object]]]] = {
    "integer": ("i.data_value_integer = %(data_value)s", int),
    "boolean": ("i.data_value_boolean = %(data_value)s", lambda text: text.lower() == "true"),
    "string": (
        "md5(i.data_value_string) = md5(%(data_value)s) AND i.data_value_string = %(data_value)s",
        str,
    ),
    "binary": ("md5(i.data_value_binary) = md5(%(data_value)s)", str),
}
"""The condition for each type of data values, and the conversion of the parameter."""
