"""The rows of a transaction, made from its JSON, by table.

The JSON is the REST API's, so that a store and a node give the same rows. A type without a table in
the ecosystem's schema goes into ``txs_other`` unchanged.

What lives here: tables, columns, rows of transactions. What does not: rows of assets (``assets``),
writing (``database``).

Source: wavesplatform/blockchain-postgres-sync ``src/lib/consumer/models/txs/convert.rs``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple

from soliton.export.sources import Members

Row = tuple[Any, ...]

PLACES: Final = 100_000
"""Range of transaction numbers for each height, many times what a block can have."""
NATIVE: Final = "WAVES"
DEFAULT_FUNCTION: Final = "default"
"""The reference's name for the function of a call that names none."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MS: Final = timedelta(milliseconds=1)
_FIRST_MS: Final = -((_EPOCH - datetime.min.replace(tzinfo=UTC)) // _MS)
_LAST_MS: Final = (datetime.max.replace(tzinfo=UTC) - _EPOCH) // _MS
_ALIAS_PREFIX: Final = "alias:"
_ORDER_MEMBERS: Final = (
    *("id", "version", "sender", "senderPublicKey", "matcherPublicKey", "assetPair"),
    *("orderType", "amount", "price", "timestamp", "expiration", "matcherFee", "proofs"),
    *("signature", "matcherFeeAssetId", "eip712Signature", "priceMode"),
)
_ETHEREUM_VERSION: Final = 1
# The first alternative consumes escaped backslashes, so that what follows is not misread.
_ESCAPES: Final = re.compile(r"(\\\\)|\\u0000")

COMMON: Final = (
    *("uid", "tx_type", "sender", "sender_public_key", "time_stamp", "height", "id", "signature"),
    *("proofs", "tx_version", "fee", "status", "block_uid"),
)


class Place(NamedTuple):
    """The keys of a row: the transaction's uid, its height, and the uid of its block."""

    uid: int
    height: int
    block_uid: int


class Lookup(NamedTuple):
    """Lookups for rows: the address of an alias, the uid of a lease."""

    address_of: Callable[[str], str]
    lease_uid: Callable[[str], int | None]


class Table(NamedTuple):
    """The table of a type: its own columns, and their values for a transaction."""

    name: str
    columns: tuple[str, ...]
    values: Callable[[Members, Lookup], Row]


class Details(NamedTuple):
    """A table with a row for each item of a transaction."""

    name: str
    columns: tuple[str, ...]
    values: Callable[[Members, Lookup, Place], Iterable[Row]]


def moment(milliseconds: int) -> datetime:
    """Convert a timestamp of the chain; those that no date has become the first or last one."""
    return _EPOCH + timedelta(milliseconds=min(max(milliseconds, _FIRST_MS), _LAST_MS))


def text(value: str) -> str:
    """Replace NUL characters, which PostgreSQL cannot store."""
    return value.replace("\0", "\\0") if "\0" in value else value


def _json(value: object) -> str:
    """Return a value as JSON without NUL characters."""
    return _ESCAPES.sub(lambda found: found[1] or r"\\0", json.dumps(value))


def common_row(members: Members, place: Place) -> Row:
    """Return the columns that all transactions have."""
    proofs = members.get("proofs")
    if proofs is None:
        signature = members.get("signature")
        proofs = [] if signature is None else [signature]
    type_id = members["type"]
    version = members.get("version")
    if "bytes" in members:
        version = _ETHEREUM_VERSION
    elif "sender" not in members:
        version = None
    return (
        place.uid,
        type_id,
        members.get("sender"),
        members.get("senderPublicKey"),
        moment(members["timestamp"]),
        place.height,
        members["id"],
        (proofs[0] or None) if proofs else None,
        proofs,
        version,
        members["fee"],
        members.get("applicationStatus", "succeeded"),
        place.block_uid,
    )


def _asset(value: str | None) -> str:
    return value or NATIVE


def _recipient(value: str, lookup: Lookup) -> tuple[str, str | None]:
    """Return address and alias of a recipient."""
    if not value.startswith(_ALIAS_PREFIX):
        return value, None
    alias = value.rpartition(":")[2]
    return lookup.address_of(alias), alias


def _payment(members: Members, lookup: Lookup) -> Row:
    return *_recipient(members["recipient"], lookup), members["amount"]


def _issue(members: Members, _lookup: Lookup) -> Row:
    return (
        members.get("assetId") or members["id"],
        text(members["name"]),
        text(members["description"]),
        members["quantity"],
        members["decimals"],
        members["reissuable"],
        _script(members.get("script")),
    )


def _script(value: str | None) -> str | None:
    """Return a script without its encoding prefix."""
    return value.removeprefix("base64:") if value else None


def _transfer(members: Members, lookup: Lookup) -> Row:
    return (
        _asset(members["assetId"]),
        members["amount"],
        *_recipient(members["recipient"], lookup),
        _asset(members.get("feeAssetId") or members.get("feeAsset")),
        members["attachment"],
    )


def _reissue(members: Members, _lookup: Lookup) -> Row:
    return members["assetId"], members["quantity"], members["reissuable"]


def _burn(members: Members, _lookup: Lookup) -> Row:
    return members["assetId"], members["amount"]


def _order(order: Members) -> str:
    return json.dumps({name: order[name] for name in _ORDER_MEMBERS if name in order})


def _exchange(members: Members, _lookup: Lookup) -> Row:
    pair = members["order1"]["assetPair"]
    return (
        _order(members["order1"]),
        _order(members["order2"]),
        members["amount"],
        members["price"],
        _asset(pair["amountAsset"]),
        _asset(pair["priceAsset"]),
        members["buyMatcherFee"],
        members["sellMatcherFee"],
        _asset(members.get("feeAssetId")),
    )


def _cancel(members: Members, lookup: Lookup) -> Row:
    return lookup.lease_uid(members["leaseId"]), members["leaseId"]


def _alias(members: Members, _lookup: Lookup) -> Row:
    return (members["alias"],)


def _mass_transfer(members: Members, _lookup: Lookup) -> Row:
    return _asset(members["assetId"]), members["attachment"]


def _nothing(_members: Members, _lookup: Lookup) -> Row:
    return ()


def _set_script(members: Members, _lookup: Lookup) -> Row:
    return (_script(members["script"]),)


def _sponsorship(members: Members, _lookup: Lookup) -> Row:
    return members["assetId"], members["minSponsoredAssetFee"] or None


def _asset_script(members: Members, _lookup: Lookup) -> Row:
    return members["assetId"], _script(members["script"])


def _call(members: Members, lookup: Lookup) -> Row:
    call = members.get("call")
    return (
        *_recipient(members["dApp"], lookup),
        DEFAULT_FUNCTION if call is None else text(call["function"]),
        _asset(members.get("feeAssetId")),
    )


def _renaming(members: Members, _lookup: Lookup) -> Row:
    return members["assetId"], text(members["name"]), text(members["description"])


def _ethereum(members: Members, _lookup: Lookup) -> Row:
    payload = members["payload"]
    function = None
    if payload["type"] != "transfer":
        call = payload.get("call")
        function = DEFAULT_FUNCTION if call is None else text(call["function"])
    return bytes.fromhex(members["bytes"].removeprefix("0x")), function


def _body(members: Members, _lookup: Lookup) -> Row:
    return (_json(members),)


_TO: Final = ("recipient_address", "recipient_alias", "amount")
TABLES: Final[Mapping[int, Table]] = {
    1: Table("txs_1", _TO, _payment),
    2: Table("txs_2", _TO, _payment),
    3: Table(
        "txs_3",
        (
            *("asset_id", "asset_name", "description", "quantity", "decimals", "reissuable"),
            "script",
        ),
        _issue,
    ),
    4: Table(
        "txs_4",
        (
            *("asset_id", "amount", "recipient_address", "recipient_alias", "fee_asset_id"),
            "attachment",
        ),
        _transfer,
    ),
    5: Table("txs_5", ("asset_id", "quantity", "reissuable"), _reissue),
    6: Table("txs_6", ("asset_id", "amount"), _burn),
    7: Table(
        "txs_7",
        (
            *("order1", "order2", "amount", "price", "amount_asset_id", "price_asset_id"),
            *("buy_matcher_fee", "sell_matcher_fee", "fee_asset_id"),
        ),
        _exchange,
    ),
    8: Table("txs_8", _TO, _payment),
    9: Table("txs_9", ("lease_tx_uid", "lease_id"), _cancel),
    10: Table("txs_10", ("alias",), _alias),
    11: Table("txs_11", ("asset_id", "attachment"), _mass_transfer),
    12: Table("txs_12", (), _nothing),
    13: Table("txs_13", ("script",), _set_script),
    14: Table("txs_14", ("asset_id", "min_sponsored_asset_fee"), _sponsorship),
    15: Table("txs_15", ("asset_id", "script"), _asset_script),
    16: Table("txs_16", ("dapp_address", "dapp_alias", "function_name", "fee_asset_id"), _call),
    17: Table("txs_17", ("asset_id", "asset_name", "description"), _renaming),
    18: Table("txs_18", ("bytes", "function_name"), _ethereum),
}
"""The table of each type."""
OTHER: Final = Table("txs_other", ("body",), _body)


# --- tables with a row for each item --------------------------------------------------------------


def _transfers(members: Members, lookup: Lookup, place: Place) -> Iterable[Row]:
    for position, item in enumerate(members["transfers"]):
        recipient = _recipient(item["recipient"], lookup)
        yield place.uid, *recipient, item["amount"], position, place.height


def _entries(members: Members, _lookup: Lookup, place: Place) -> Iterable[Row]:
    for position, entry in enumerate(members["data"]):
        kind = entry.get("type")
        yield (
            place.uid,
            text(entry["key"]),
            kind,
            *_typed(kind, entry.get("value")),
            position,
            place.height,
        )


def _typed(kind: str | None, value: Any) -> Row:  # noqa: ANN401 - any JSON value
    """Return a value in the column of its type, and NULL in the other three."""
    return (
        value if kind == "integer" else None,
        value if kind == "boolean" else None,
        value if kind == "binary" else None,
        text(value) if kind == "string" else None,
    )


def _called(members: Members) -> tuple[Members, list[Members]]:
    """Return a transaction's call and its payments."""
    holder = members.get("payload", members)
    return holder.get("call") or {}, holder.get("payment") or []


def _arguments(members: Members, _lookup: Lookup, place: Place) -> Iterable[Row]:
    call, _ = _called(members)
    for position, argument in enumerate(call.get("args", ())):
        kind, value = argument["type"], argument.get("value")
        listed = _json(value) if kind == "list" else None
        yield kind, *_typed(kind, value), listed, position, place.uid, place.height


def _payments(members: Members, _lookup: Lookup, place: Place) -> Iterable[Row]:
    _, payments = _called(members)
    for position, payment in enumerate(payments):
        asset = _asset(payment["assetId"])
        yield place.uid, payment["amount"], position, place.height, asset


_ARGUMENTS: Final = (
    *("arg_type", "arg_value_integer", "arg_value_boolean", "arg_value_binary"),
    *("arg_value_string", "arg_value_list", "position_in_args", "tx_uid", "height"),
)
_PAYMENTS: Final = ("tx_uid", "amount", "position_in_payment", "height", "asset_id")
DETAILS: Final[Mapping[int, tuple[Details, ...]]] = {
    11: (Details("txs_11_transfers", ("tx_uid", *_TO, "position_in_tx", "height"), _transfers),),
    12: (
        Details(
            "txs_12_data",
            (
                *("tx_uid", "data_key", "data_type", "data_value_integer"),
                *("data_value_boolean", "data_value_binary", "data_value_string"),
                *("position_in_tx", "height"),
            ),
            _entries,
        ),
    ),
    16: (
        Details("txs_16_args", _ARGUMENTS, _arguments),
        Details("txs_16_payment", _PAYMENTS, _payments),
    ),
    18: (
        Details("txs_18_args", _ARGUMENTS, _arguments),
        Details("txs_18_payment", _PAYMENTS, _payments),
    ),
}
"""The types with more than one row, and their tables."""


def columns() -> dict[str, tuple[str, ...]]:
    """Return the columns of each transaction table, in an order in which they can be filled."""
    found = {table.name: COMMON + table.columns for table in (*TABLES.values(), OTHER)}
    for details in DETAILS.values():
        found |= {each.name: each.columns for each in details}
    return found


def transaction_rows(members: Members, place: Place, lookup: Lookup) -> Iterable[tuple[str, Row]]:
    """Yield the rows of a transaction, each with its table."""
    type_id = members["type"]
    table = TABLES.get(type_id, OTHER)
    yield table.name, common_row(members, place) + table.values(members, lookup)
    for details in DETAILS.get(type_id, ()):
        for row in details.values(members, lookup, place):
            yield details.name, row
