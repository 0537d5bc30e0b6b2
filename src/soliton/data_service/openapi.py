"""The OpenAPI document of ``/v0``: routes, parameters, and schemas of responses.

What lives here: the content of the document. What does not: writing one (``soliton.web.openapi``),
and the responses. The schemas allow no additional members: a test validates each response of the
service's tests against them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from soliton import __version__
from soliton.data_service.candles import SECONDS
from soliton.data_service.kinds import KINDS
from soliton.web import openapi
from soliton.web.openapi import Object, content, operation, parameter, ref

Schema = Mapping[str, Any]

_DESCRIPTION: Final = (
    "Assets, aliases, pairs, candles, rates and transactions of a chain, from a database. Amounts "
    "are numbers in units of their asset; with `Accept: application/json; money-format=long` "
    "integers in its smallest unit, with `large-significand-format=string` texts."
)
_TEXT: Final[Schema] = {"type": "string"}
_WHOLE: Final[Schema] = {"type": "integer"}
_FLAG: Final[Schema] = {"type": "boolean"}
_TIME: Final[Schema] = {"type": "string", "format": "date-time"}
_NUMBER: Final[Schema] = ref("Number")
_STRINGS: Final[Schema] = {"type": "array", "items": _TEXT}


def _or_null(schema: Schema) -> Schema:
    return {"anyOf": [schema, {"type": "null"}]}


def _object(members: Mapping[str, Schema], optional: Mapping[str, Schema] | None = None) -> Object:
    return {
        "type": "object",
        "properties": {**members, **(optional or {})},
        "required": list(members),
        "additionalProperties": False,
    }


def _array(items: Schema) -> Schema:
    return {"type": "array", "items": items}


def _constant(value: object) -> Schema:
    return {"const": value}


def _envelope(kind: str, data: Schema, **beside: Schema) -> Schema:
    return _object({"__type": _constant(kind), "data": data, **beside})


def _list(item: str) -> Schema:
    return _object(
        {"__type": _constant("list"), "data": _array(ref(item))},
        {"isLastPage": _FLAG, "lastCursor": _TEXT},
    )


_ASSETS_OF_PAIR: Final = {"amountAsset": _TEXT, "priceAsset": _TEXT}
_COMMON: Final[Mapping[str, Schema]] = {
    "height": _WHOLE,
    "type": _WHOLE,
    "id": _TEXT,
    "timestamp": _TIME,
    "fee": _NUMBER,
    "applicationStatus": _TEXT,
}
_SOMETIMES: Final[Mapping[str, Schema]] = {
    "signature": _TEXT,
    "proofs": _STRINGS,
    "version": _WHOLE,
    "sender": _TEXT,
    "senderPublicKey": _TEXT,
}
_PAYMENT: Final = {"amount": _NUMBER, "recipient": _TEXT}
_ASSET_SCRIPT: Final = {"script": _or_null(_TEXT)}
_CALL: Final = _object(
    {"function": _TEXT, "args": _array(_object({"type": _TEXT, "value": {}}))},
)
_MEMBERS: Final[Mapping[str, tuple[Mapping[str, Schema], Mapping[str, Schema]]]] = {
    "genesis": (_PAYMENT, {}),
    "payment": (_PAYMENT, {}),
    "issue": (
        {
            "assetId": _TEXT,
            "name": _TEXT,
            "description": _TEXT,
            "quantity": _NUMBER,
            "decimals": _WHOLE,
            "reissuable": _FLAG,
            **_ASSET_SCRIPT,
        },
        {},
    ),
    "transfer": (
        {**_PAYMENT, "assetId": _TEXT, "feeAsset": _TEXT, "attachment": _or_null(_TEXT)},
        {},
    ),
    "reissue": ({"assetId": _TEXT, "quantity": _NUMBER, "reissuable": _FLAG}, {}),
    "burn": ({"assetId": _TEXT, "amount": _NUMBER}, {}),
    "exchange": (
        {
            **dict.fromkeys(("buyMatcherFee", "sellMatcherFee", "price", "amount"), _NUMBER),
            **dict.fromkeys(("order1", "order2"), ref("Order")),
        },
        {},
    ),
    "lease": (_PAYMENT, {}),
    "lease-cancel": ({"leaseId": _TEXT}, {}),
    "alias": ({"alias": _TEXT}, {}),
    "mass-transfer": (
        {
            "assetId": _TEXT,
            "attachment": _or_null(_TEXT),
            "transfers": _array(_object(_PAYMENT)),
        },
        {},
    ),
    "data": ({"data": _array(_object({"key": _TEXT, "type": _or_null(_TEXT)}, {"value": {}}))}, {}),
    "set-script": (_ASSET_SCRIPT, {}),
    "sponsorship": ({"assetId": _TEXT, "minSponsoredAssetFee": _or_null(_NUMBER)}, {}),
    "set-asset-script": ({"assetId": _TEXT, **_ASSET_SCRIPT}, {}),
    "invoke-script": (
        {
            "dApp": _TEXT,
            "feeAssetId": _TEXT,
            "payment": _array(_object({"amount": _NUMBER, "assetId": _TEXT})),
        },
        {"call": _CALL},
    ),
    "update-asset-info": ({"assetId": _TEXT, "name": _TEXT, "description": _TEXT}, {}),
    "ethereum-like": (
        {
            "bytes": _TEXT,
            "payload": _object({"type": _TEXT}, {"call": _object({"function": _TEXT})}),
        },
        {},
    ),
}


def _transaction_name(path: str) -> str:
    return "".join(word.capitalize() for word in path.split("-"))


_PLAIN: Final[Mapping[str, Schema]] = {
    "Number": {"type": ["number", "string"], "description": "A number, or a text with one"},
    "Order": _object(
        {
            **dict.fromkeys(("id", "senderPublicKey", "matcherPublicKey", "orderType"), _TEXT),
            "version": _WHOLE,
            "assetPair": _object(_ASSETS_OF_PAIR),
            **dict.fromkeys(("price", "amount", "matcherFee"), _NUMBER),
            "sender": _TEXT,
            **dict.fromkeys(("timestamp", "expiration"), _or_null(_TIME)),
            "signature": _or_null(_TEXT),
        },
        dict.fromkeys(("matcherFeeAssetId", "priceMode", "eip712Signature"), _or_null(_TEXT)),
    ),
    "Asset": _object(
        {
            "ticker": _or_null(_TEXT),
            **dict.fromkeys(("id", "name", "description", "sender"), _TEXT),
            "precision": _WHOLE,
            "height": _WHOLE,
            "timestamp": _TIME,
            "quantity": _NUMBER,
            "reissuable": _FLAG,
            "hasScript": _FLAG,
            "minSponsoredFee": _or_null(_NUMBER),
        }
    ),
    "Alias": _object({"alias": _TEXT, "address": _or_null(_TEXT)}),
    "Pair": _object(
        {
            **dict.fromkeys(
                (
                    *("firstPrice", "lastPrice", "low", "high", "weightedAveragePrice"),
                    *("volume", "quoteVolume", "volumeWaves"),
                ),
                _or_null(_NUMBER),
            ),
            "txsCount": _WHOLE,
        }
    ),
    "Candle": _object(
        {
            "maxHeight": _or_null(_WHOLE),
            **dict.fromkeys(
                (
                    *("open", "high", "low", "close", "volume", "quoteVolume"),
                    "weightedAveragePrice",
                ),
                _or_null(_NUMBER),
            ),
            **dict.fromkeys(("time", "timeClose"), _TIME),
            "txsCount": _WHOLE,
        }
    ),
    "Rate": _object({"rate": _NUMBER}),
    "OtherTransaction": {
        "type": "object",
        "description": "One of a type without a kind, as the chain shows it",
        "properties": {"type": {"type": "integer", "minimum": len(KINDS) + 1}},
        "required": ["type"],
    },
    "Error": _object({"message": _TEXT}, {"meta": _array({"type": "object"})}),
}


def _schemas() -> Object:
    found: Object = dict(_PLAIN)
    names = []
    for kind in KINDS:
        name = f"{_transaction_name(kind.path)}Transaction"
        own, sometimes = _MEMBERS[kind.path]
        of_type = {**_COMMON, "type": _constant(kind.type_id), **own}
        found[name] = _object(of_type, {**_SOMETIMES, **sometimes})
        names.append(name)
    found["Transaction"] = {"anyOf": [ref(name) for name in (*names, "OtherTransaction")]}
    for name in ("Asset", "Alias", "Transaction", *names):
        word = "transaction" if name.endswith("Transaction") else name.lower()
        found[f"{name}Item"] = _envelope(word, _or_null(ref(name)))
    for name in ("Pair", "Rate", "Candle"):
        found[f"{name}Item"] = _object(
            {"__type": _constant(name.lower()), "data": _or_null(ref(name))},
            {} if name == "Candle" else _ASSETS_OF_PAIR,
        )
    for name in [each for each in found if each.endswith("Item")]:
        found[f"{name.removesuffix('Item')}List"] = _list(name)
    return found


_PATH: Final = {
    "id": "The id of an asset or of a transaction",
    "alias": "An alias, without its prefix",
    "matcher": "The address of a matcher",
    "amount": "The id of the amount asset, or WAVES",
    "price": "The id of the price asset, or WAVES",
}
_QUERY: Final[Mapping[str, tuple[str, Schema]]] = {
    "ids": ("By their ids, in this order, with null for what is not there", _STRINGS),
    "ticker": ("Those with this ticker; `*`: all that have one", _TEXT),
    "search": ("By id, ticker, or words of the name", _TEXT),
    "aliases": ("By their names, in this order", _STRINGS),
    "address": ("Those of this account", _TEXT),
    "addresses": ("Those of these accounts", _STRINGS),
    "queries": ("Those of these accounts or names", _STRINGS),
    "showBroken": ("Also aliases that several accounts have", _FLAG),
    "matcher": ("Whose trades", _TEXT),
    "pairs": ("By their assets, `amount/price`", _STRINGS),
    "search_by_asset": ("Pairs with an asset of this id, ticker or name", _TEXT),
    "search_by_assets": ("Pairs of these two", _STRINGS),
    "match_exactly": ("Whether ticker and name have to be the same, not begin so", _STRINGS),
    "interval": ("The length of a candle", {"type": "string", "enum": list(SECONDS)}),
    "timestamp": ("At this time: a date, or milliseconds", _TEXT),
    "limit": ("How many, 100 unless told", {"type": "integer", "minimum": 0}),
    "after": ("Behind this cursor, the `lastCursor` of the page before", _TEXT),
    "sort": ("By place on the chain", {"type": "string", "enum": ["asc", "desc"]}),
    "timeStart": ("From this time on: a date, or milliseconds", _TEXT),
    "timeEnd": ("Up to this time", _TEXT),
    "blockTimeStart": ("In blocks from this time on", _TEXT),
    "blockTimeEnd": ("In blocks up to this time", _TEXT),
    "sender": ("Of this account", _TEXT),
    "senders": ("Of these accounts", _STRINGS),
    "recipient": ("To this address or alias", _TEXT),
    "assetId": ("Of this asset", _TEXT),
    "script": ("With this script, as base64", _TEXT),
    "amountAsset": ("With this amount asset", _TEXT),
    "priceAsset": ("With this price asset", _TEXT),
    "orderId": ("That filled this order", _TEXT),
    "key": ("With an entry of this key", _TEXT),
    "type": ("With an entry of this type, or transfers or invocations", _TEXT),
    "value": ("With an entry of this value; needs `type`", _TEXT),
    "dapp": ("Calls of this address or alias", _TEXT),
    "function": ("Calls of this function", _TEXT),
}
_PAGE: Final = ("limit", "after", "sort")
_TIMES: Final = ("timeStart", "timeEnd", "blockTimeStart", "blockTimeEnd")
_CANDLES: Final = ("timeStart", "timeEnd", "interval")
_SEARCH: Final = ("pairs", "search_by_asset", "search_by_assets", "match_exactly", "limit")


_REFUSALS: Final[Mapping[str, str]] = {
    "400": "Something is wrong with the request; `meta` says what",
    "404": "Not there",
    "500": "The database does not answer",
    "504": "The database took too long",
}


def _refusal(status: str) -> Object:
    return {"description": _REFUSALS[status], "content": content(ref("Error"))}


def _operation(name: str, path: str, summary: str, schema: str, query: Iterable[str]) -> Object:
    answers: Object = {
        "200": {"description": summary, "content": content(ref(schema))},
        **{status: _refusal(status) for status in _REFUSALS},
    }
    places = [each.strip("{}") for each in path.split("/") if each.startswith("{")]
    parameters = [parameter(each, "path", _PATH[each]) for each in places]
    parameters += [parameter(each, "query", *_QUERY[each]) for each in query]
    return operation(name, summary, answers, tag=path.split("/")[1], parameters=parameters)


def _posted(name: str, path: str, summary: str, schema: str, query: Iterable[str]) -> Object:
    found = _operation(f"{name}ByPost", path, summary, schema, ())
    members = {each: dict(_QUERY[each][1]) for each in query}
    body = {"type": "object", "properties": members}
    return found | {"requestBody": {"content": content(body)}}


_Row = tuple[str, str, str, str, tuple[str, ...], bool]


def _rows_of_trades(prefix: str, of: str, more: tuple[str, ...]) -> list[_Row]:
    """Return the routes of pairs, of the default matcher or below the path of one."""
    pair, candles = "{amount}/{price}", (*_CANDLES, *more)
    return [
        (f"pair{of}", f"{prefix}/pairs/{pair}", "Trades of 24 hours", "PairItem", more, False),
        (f"pairs{of}", f"{prefix}/pairs", "Pairs", "PairList", (*_SEARCH, *more), True),
        (f"candles{of}", f"{prefix}/candles/{pair}", "Candles", "CandleList", candles, False),
        (
            *(f"lastCandle{of}", f"{prefix}/last_candle/{pair}", "The newest candle"),
            *("CandleItem", candles, False),
        ),
    ]


def document() -> Object:
    """Return the whole document."""
    rows: list[_Row] = [
        ("asset", "/assets/{id}", "An asset", "AssetItem", (), False),
        (
            *("assets", "/assets", "Assets by ids, by ticker, or by a search", "AssetList"),
            ("ids", "ticker", "search", "limit", "after"),
            True,
        ),
        ("alias", "/aliases/{alias}", "An alias and whose it is", "AliasItem", (), False),
        (
            *("aliases", "/aliases", "Aliases by names, or of accounts", "AliasList"),
            ("aliases", "address", "addresses", "queries", "showBroken", "after"),
            True,
        ),
    ]
    rows += _rows_of_trades("", "", ("matcher",))
    rows += _rows_of_trades("/matchers/{matcher}", "OfMatcher", ())
    rates = ("pairs", "timestamp")
    rows.append(("rates", "/matchers/{matcher}/rates", "Rates", "RateList", rates, True))
    every = ("ids", "sender", "senders", *_TIMES, *_PAGE)
    for kind in (None, *KINDS):
        path = "all" if kind is None else kind.path
        name = "" if kind is None else _transaction_name(path)
        own = () if kind is None else tuple(each.name for each in kind.filters)
        own += ("key", "type", "value") if path == "data" else ()
        listed = tuple(dict.fromkeys((*(each for each in every if each not in own), *own)))
        if path == "genesis":
            listed = tuple(each for each in listed if each not in ("sender", "senders"))
        what = f"{name or 'All'} transactions"
        one = f"/transactions/{path}/{{id}}"
        rows += [
            (f"transaction{name}", one, what, f"{name}TransactionItem", (), False),
            (f"transactions{name}", one[:-5], what, f"{name}TransactionList", listed, True),
        ]
    paths: Object = {}
    for name, path, summary, schema, query, posts in rows:
        paths[path] = {"get": _operation(name, path, summary, schema, query)}
        if posts:
            paths[path]["post"] = _posted(name, path, summary, schema, query)
    version: Object = {
        "description": "The version",
        "content": content(_object({"version": _TEXT})),
    }
    paths["/version"] = {
        "get": operation(
            "version", "The version", {"200": version, "400": _refusal("400")}, tag="version"
        )
    }
    made = openapi.document(
        "Data service", __version__, _DESCRIPTION, paths, {"schemas": _schemas()}
    )
    return made | {"servers": [{"url": "/v0"}]}
