"""The driver's methods, for both of its classes.

Each is a generator: it yields requests and is sent their responses, so that the runner may be
synchronous or asynchronous.

What lives here: requests, and the translation of responses into ccxt's structures. What does not:
running them (``soliton.matcher.ccxt``, ``asynchronous``).

Source: https://docs.ccxt.com, the manual of the unified interface.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator
from decimal import ROUND_DOWN, Decimal
from typing import Any, Final, TypeVar

import msgspec
from ccxt.base.errors import BadSymbol, InvalidOrder
from ccxt.base.exchange import Exchange

from soliton.chain.addresses import PUBLIC_KEY_LENGTH
from soliton.chain.layouts import DIGEST_LENGTH
from soliton.chain.orders import Order, PriceMode, Side
from soliton.crypto import base58
from soliton.crypto.errors import Base58Error
from soliton.matcher.ccxt.description import AnswerChanged, MatcherFeeTooHigh
from soliton.matcher.ccxt.signing import keys_of, public_key_of, signature, signed_order
from soliton.matching.pairs import NATIVE_TEXT, parse_asset

MAX_DECIMALS: Final = 8
"""Of any asset."""
Params = dict[str, Any] | None
Result = TypeVar("Result")
Unified = dict[str, Any]
"""One of ccxt's structures: a market, a ticker, an order..."""
Listed = list[Unified]
Candles = list[list[float]]

PRICE_DECIMALS: Final = 8
MAX_ROWS: Final = 1_000
MAX_ID_CHARS: Final = 64
"""More than any id or key of 32 bytes has in base58."""
_MAX_CHAIN_ID: Final = 255
_SIDES: Final = ("amount", "price")
_FIRST_PROTOBUF_VERSION: Final = 4
_PLAIN_CODE: Final = re.compile(r"[A-Za-z0-9_.]{1,32}")
_STATUSES: Final = {
    "Accepted": "open",
    "PartiallyFilled": "open",
    "Filled": "closed",
    "Cancelled": "canceled",
}


class Request(msgspec.Struct, frozen=True):
    """A request to the matcher."""

    path: str
    params: dict[str, Any] = {}
    method: str = "GET"
    api: str = "public"

    def arguments(self) -> tuple[str, str, str, dict[str, Any]]:
        """The arguments of ccxt's ``request``."""
        return self.path, self.api, self.method, self.params


Steps = Generator[Request, Any, Result]


# --- markets --------------------------------------------------------------------------------------


def fetch_markets(exchange: Exchange, params: Params = None) -> Steps[Listed]:
    """All markets. An asset's code is the one in ``options["tickers"]``, or else in the list of the
    matcher's operator, or else its id. Names do not matter: anybody may issue an asset of any name.
    """
    settings = yield from _settings(exchange)
    markets = (yield Request("matcher/orderbook", params or {}))["markets"]
    codes = _codes(settings.get("tickers") or {}) | _codes(exchange.options["tickers"])
    own = set(exchange.options["tickers"])
    # A code of the user's own list means that asset only.
    listed = set(exchange.options["tickers"].values())
    codes = {asset: code for asset, code in codes.items() if asset in listed or code not in own} | {
        NATIVE_TEXT: NATIVE_TEXT
    }
    return [_market(exchange, market, codes) for market in markets]


def _settings(exchange: Exchange) -> Steps[dict[str, Any]]:
    """The matcher's settings; raises ``AnswerChanged`` for another chain or key than before."""
    settings: dict[str, Any] = yield Request("matcher/settings")
    options, chain = exchange.options, settings.get("networkByte")
    key = settings.get("matcherPublicKey")
    if type(chain) is not int or not 0 <= chain <= _MAX_CHAIN_ID:
        raise AnswerChanged(f"soliton names no chain: {chain!r:.40}")
    if not isinstance(key, str) or not _is_key(key):
        raise AnswerChanged(f"soliton names no public key: {key!r:.80}")
    known = options["chainId"]
    _check_same("the chain", ord(known) if isinstance(known, str) else known, chain)
    _check_same("the public key", options["matcherPublicKey"], key)
    options["chainId"], options["matcherPublicKey"] = chain, key
    return settings


def _is_key(text: str) -> bool:
    try:
        return len(base58.decode(text, MAX_ID_CHARS)) == PUBLIC_KEY_LENGTH
    except Base58Error:
        return False


def _check_same(what: str, known: object, named: object) -> None:
    if known is not None and known != named:
        raise AnswerChanged(f"soliton names {what} {named}, not {known} as before: see the options")


def _decimals(exchange: Exchange, market: dict[str, Any], side: str) -> int:
    """The decimals of an asset; raises ``AnswerChanged`` for others than before. On a chain they
    never change, and they decide how many units an amount is.
    """
    asset, decimals = str(market[f"{side}Asset"]), market[f"{side}AssetInfo"]["decimals"]
    if type(decimals) is not int or not 0 <= decimals <= MAX_DECIMALS:
        raise AnswerChanged(f"soliton names no decimals of {asset}: {decimals!r:.40}")
    known = exchange.options["assetDecimals"]
    _check_same(f"the decimals of {asset}", known.get(asset), decimals)
    # Not changed in place: all drivers begin with the same dictionary.
    exchange.options["assetDecimals"] = {**known, asset: decimals}
    return decimals


def _codes(tickers: dict[str, Any]) -> dict[str, str]:
    """The codes of assets, without those that are not plain or not unique."""
    assets = list(tickers.values())
    return {
        str(asset): code
        for code, asset in tickers.items()
        if _PLAIN_CODE.fullmatch(code) and code != NATIVE_TEXT and assets.count(asset) == 1
    }


def _market(exchange: Exchange, market: dict[str, Any], codes: dict[str, str]) -> Unified:
    def code(side: str) -> str:
        asset = str(market[f"{side}Asset"])
        return codes.get(asset, asset)

    base, quote = code("amount"), code("price")
    amount_decimals, price_decimals = (_decimals(exchange, market, side) for side in _SIDES)
    # The decimals of an order's price; those of the chain's transactions are at most eight.
    digits = min(PRICE_DECIMALS, PRICE_DECIMALS + price_decimals - amount_decimals)
    limits = market.get("restrictions", {})
    tick = max(Decimal(1).scaleb(-digits), Decimal(market["matchingRules"]["tickSize"]))
    return {
        "id": f"{market['amountAsset']}-{market['priceAsset']}",
        "symbol": f"{base}/{quote}",
        "base": base,
        "quote": quote,
        "baseId": market["amountAsset"],
        "quoteId": market["priceAsset"],
        "type": "spot",
        "spot": True,
        "margin": False,
        "swap": False,
        "future": False,
        "option": False,
        "contract": False,
        "active": True,
        "created": market["created"],
        "precision": {"amount": float(Decimal(1).scaleb(-amount_decimals)), "price": float(tick)},
        "limits": {
            "amount": _range(exchange, limits, "Amount"),
            "price": _range(exchange, limits, "Price"),
            "cost": {"min": None, "max": None},
            "leverage": {"min": None, "max": None},
        },
        "info": {**market, "amountDecimals": amount_decimals, "priceDecimals": price_decimals},
    }


def _range(exchange: Exchange, limits: dict[str, Any], what: str) -> dict[str, Any]:
    return {
        "min": exchange.safe_number(limits, f"min{what}"),
        "max": exchange.safe_number(limits, f"max{what}"),
    }


def _pair(market: Unified) -> dict[str, str]:
    return {"base": market["baseId"], "quote": market["quoteId"]}


def _price_scale(market: Unified) -> int:
    """The number of decimal places of a normalised price."""
    info = market["info"]
    return int(PRICE_DECIMALS + info["priceDecimals"] - info["amountDecimals"])


def _price(units: int, market: Unified) -> str:
    return format(Decimal(units).scaleb(-_price_scale(market)), "f")


def _amount(units: int, market: Unified) -> str:
    return format(Decimal(units).scaleb(-market["info"]["amountDecimals"]), "f")


def _units(value: object, digits: int) -> int:
    return int(Decimal(str(value)).scaleb(digits).to_integral_value(ROUND_DOWN))


# --- market data ----------------------------------------------------------------------------------


def fetch_ticker(exchange: Exchange, symbol: str, params: Params = None) -> Steps[Unified]:
    """The last 24 hours of a market."""
    market = exchange.market(symbol)
    path = "api/v1/tickers/{base}/{quote}"
    return _ticker(exchange, (yield Request(path, {**_pair(market), **(params or {})})))


def fetch_tickers(
    exchange: Exchange, symbols: list[str] | None = None, params: Params = None
) -> Steps[Unified]:
    """The last 24 hours of all markets."""
    tickers = yield Request("api/v1/tickers", params or {})
    known = [_ticker(exchange, one) for one in tickers if one["symbol"] in exchange.markets_by_id]
    return exchange.filter_by_array_tickers(known, "symbol", symbols)


def _ticker(exchange: Exchange, ticker: dict[str, Any]) -> Unified:
    market = exchange.safe_market(ticker["symbol"])
    timestamp = ticker["timestamp"]
    return exchange.safe_ticker(
        {
            "symbol": market["symbol"],
            "timestamp": timestamp,
            "datetime": exchange.iso8601(timestamp),
            "high": ticker.get("high"),
            "low": ticker.get("low"),
            "bid": ticker.get("bid"),
            "bidVolume": ticker.get("bidAmount"),
            "ask": ticker.get("ask"),
            "askVolume": ticker.get("askAmount"),
            "open": ticker.get("open"),
            "close": ticker.get("last"),
            "last": ticker.get("last"),
            "baseVolume": ticker.get("volume"),
            "quoteVolume": ticker.get("priceVolume"),
            "info": ticker,
        },
        market,
    )


def fetch_order_book(
    exchange: Exchange, symbol: str, limit: int | None = None, params: Params = None
) -> Steps[Unified]:
    """The best levels."""
    market = exchange.market(symbol)
    query = {} if limit is None else {"depth": limit}
    path = "matcher/orderbook/{base}/{quote}"
    book = yield Request(path, {**_pair(market), **query, **(params or {})})

    def side(levels: list[Any]) -> list[list[float]]:
        return [
            [float(_price(level["price"], market)), float(_amount(level["amount"], market))]
            for level in levels[:limit]
        ]

    timestamp = book["timestamp"]
    return {
        "symbol": market["symbol"],
        "bids": side(book["bids"]),
        "asks": side(book["asks"]),
        "timestamp": timestamp,
        "datetime": exchange.iso8601(timestamp),
        "nonce": None,
    }


def fetch_trades(
    exchange: Exchange,
    symbol: str,
    since: int | None = None,
    limit: int | None = None,
    params: Params = None,
) -> Steps[Listed]:
    """Executions of all accounts, the oldest first."""
    market = exchange.market(symbol)
    query: dict[str, Any] = {} if since is None else {"since": since}
    if limit is not None:
        query["limit"] = min(limit, MAX_ROWS)
    path = "api/v1/trades/{base}/{quote}"
    trades = yield Request(path, {**_pair(market), **query, **(params or {})})
    return [
        exchange.safe_trade(
            {
                "id": trade["id"],
                "timestamp": trade["timestamp"],
                "datetime": exchange.iso8601(trade["timestamp"]),
                "symbol": market["symbol"],
                "side": trade["side"],
                "price": trade["price"],
                "amount": trade["amount"],
                "info": trade,
            },
            market,
        )
        for trade in trades
    ]


def fetch_ohlcv(
    exchange: Exchange,
    symbol: str,
    timeframe: str = "1m",
    since: int | None = None,
    limit: int | None = None,
    params: Params = None,
) -> Steps[Candles]:
    """Candles, the oldest first; volumes are in the base asset."""
    market = exchange.market(symbol)
    query: dict[str, Any] = {"interval": exchange.timeframes[timeframe]}
    if since is not None:
        query["since"] = since
    if limit is not None:
        query["limit"] = min(limit, MAX_ROWS)
    path = "api/v1/candles/{base}/{quote}"
    rows = yield Request(path, {**_pair(market), **query, **(params or {})})
    return [[row[0], *(float(text) for text in row[1:6])] for row in rows]


# --- the account ----------------------------------------------------------------------------------


def fetch_balance(exchange: Exchange, params: Params = None) -> Steps[Unified]:
    """What the account can trade, and what is reserved for its orders."""
    query = {"publicKey": public_key_of(exchange), **(params or {})}
    balances = yield Request("api/v1/balances/{publicKey}", query, api="private")
    codes = {}
    for market in exchange.markets.values():
        codes[market["baseId"]], codes[market["quoteId"]] = market["base"], market["quote"]
    out: dict[str, Any] = {"info": balances}
    for asset, amounts in balances.items():
        balance = {"free": amounts["tradable"], "used": amounts["reserved"]}
        out[codes.get(asset, asset)] = balance
    return exchange.safe_balance(out)


def create_order(
    exchange: Exchange,
    symbol: str,
    type: str,
    side: str,
    amount: float,
    price: float | None = None,
    params: Params = None,
) -> Steps[Unified]:
    """Sign and place an order; a market order without a price gets one from the book."""
    market, options = exchange.market(symbol), {**exchange.options, **(params or {})}
    kind = type
    if kind not in ("limit", "market") or side not in ("buy", "sell"):
        raise InvalidOrder(f"soliton has no orders of type {kind} and side {side}")
    settings = yield from _settings(exchange)
    scale = _price_scale(market)
    units = _units(amount, market["info"]["amountDecimals"])
    if price is None:
        if kind == "limit":
            raise InvalidOrder("soliton needs a price for a limit order")
        price_units = yield from _market_price(market, side, units, options)
    else:
        # Truncated to the market's precision.
        price_units = _units(
            exchange.decimal_to_precision(
                price, 0, market["precision"]["price"], exchange.precisionMode
            ),
            scale,
        )
        _check_rounding(Decimal(str(price)).scaleb(scale), price_units, options)
    fee = yield from _least_fee(market, side, units, price_units, options)
    version, now = int(options["orderVersion"]), exchange.milliseconds()
    posted = signed_order(
        exchange,
        Order(
            version=version,
            chain_id=settings["networkByte"],
            sender_public_key=keys_of(exchange)[0],
            matcher_public_key=base58.decode(settings["matcherPublicKey"]),
            amount_asset=parse_asset(market["baseId"]),
            price_asset=parse_asset(market["quoteId"]),
            side=Side.BUY if side == "buy" else Side.SELL,
            amount=units,
            price=price_units,
            timestamp=now,
            expiration=now + int(options["orderLifetimeMs"]),
            matcher_fee=fee["matcherFee"],
            matcher_fee_asset=parse_asset(fee["feeAssetId"]),
            price_mode=(
                PriceMode.ASSET_DECIMALS
                if version >= _FIRST_PROTOBUF_VERSION
                else PriceMode.DEFAULT
            ),
        ),
    )
    path = "matcher/orderbook/market" if kind == "market" else "matcher/orderbook"
    answer = (yield Request(path, posted, "POST"))["message"]
    return _placed(exchange, market, kind, posted, answer)


def _placed(
    exchange: Exchange, market: Unified, kind: str, order: dict[str, Any], answer: object
) -> Unified:
    # The order as it was signed: an id of the matcher's would be signed to cancel it.
    return exchange.safe_order(
        {
            "id": order["id"],
            "timestamp": order["timestamp"],
            "datetime": exchange.iso8601(order["timestamp"]),
            "symbol": market["symbol"],
            "type": kind,
            "side": order["orderType"],
            "price": _price(order["price"], market),
            "amount": _amount(order["amount"], market),
            "status": "closed" if kind == "market" else "open",
            "info": answer,
        },
        market,
    )


def _check_rounding(price: Decimal, rounded: int, options: dict[str, Any]) -> None:
    if abs(rounded - price) > price * Decimal(str(options["maxPriceRounding"])):
        raise InvalidOrder(
            "soliton's tick size would change the price by more than maxPriceRounding in the "
            "options allows; nothing was signed"
        )


def _market_price(market: Unified, side: str, units: int, options: dict[str, Any]) -> Steps[int]:
    """The worst acceptable price: that of the last level needed, plus the slippage."""
    book = yield Request("matcher/orderbook/{base}/{quote}", _pair(market))
    levels = book["asks"] if side == "buy" else book["bids"]
    for level in levels:
        units -= level["amount"]
        if units <= 0:
            break
    else:
        raise InvalidOrder(f"soliton's book of {market['symbol']} has not that much to {side}")
    slippage = options["marketSlippage"]
    factor = Decimal(str(1 + slippage if side == "buy" else 1 - slippage))
    tick = max(_units(market["precision"]["price"], _price_scale(market)), 1)
    worst = int(level["price"] * factor)
    rounded = max(worst - worst % tick, tick)
    _check_rounding(Decimal(worst), rounded, options)
    return rounded


def _least_fee(
    market: Unified, side: str, units: int, price: int, options: dict[str, Any]
) -> Steps[dict[str, Any]]:
    if "matcherFee" in options:
        given = {"matcherFee": int(options["matcherFee"])}
        return {**given, "feeAssetId": options.get("matcherFeeAssetId") or NATIVE_TEXT}
    path = "matcher/orderbook/{base}/{quote}/calculateFee"
    order = {"orderType": side, "amount": units, "price": price}
    fee: dict[str, Any] = (yield Request(path, {**_pair(market), **order}, "POST"))["base"]
    _check_fee(fee, market, side, units, price, options)
    return fee


def _check_fee(
    fee: dict[str, Any],
    market: Unified,
    side: str,
    units: int,
    price: int,
    options: dict[str, Any],
) -> None:
    """Raise ``MatcherFeeTooHigh`` if the fee that the matcher names is beyond the options: what it
    names is signed.
    """
    amount, asset = fee["matcherFee"], fee["feeAssetId"] or NATIVE_TEXT
    volume = units * price // 10**PRICE_DECIMALS
    traded = {market["baseId"]: units, market["quoteId"]: volume}
    share = Decimal(str(options["maxMatcherFeeShare"]))
    highest = max(int(options["maxMatcherFees"].get(asset, 0)), int(traded.get(asset, 0) * share))
    if type(amount) is not int or not 0 < amount <= highest:
        raise MatcherFeeTooHigh(
            f"soliton wants a fee of {amount} units of {asset} to {side}, at most {highest} are "
            "allowed: see maxMatcherFees, maxMatcherFeeShare and matcherFee in the options"
        )


def cancel_order(
    exchange: Exchange, id: str, symbol: str | None = None, params: Params = None
) -> Steps[Unified]:
    """Cancel an order of the account."""
    body = {
        "sender": public_key_of(exchange),
        "orderId": id,
        "signature": signature(exchange, _id_bytes(id)),
    }
    result = yield Request("matcher/orderbook/cancel", {**body, **(params or {})}, "POST")
    return exchange.safe_order(
        {"id": result["orderId"], "symbol": symbol, "status": "canceled", "info": result}
    )


def _id_bytes(order_id: str) -> bytes:
    """The bytes of an order's id; raises ccxt's ``InvalidOrder`` for anything longer or shorter.
    Ids come from the matcher, and behind the public key longer bytes would be an order.
    """
    try:
        found = base58.decode(order_id, MAX_ID_CHARS)
    except Base58Error as error:
        raise InvalidOrder(f"soliton has no order {order_id:.60}: {error}") from None
    if len(found) != DIGEST_LENGTH:
        raise InvalidOrder(f"soliton has no order {order_id:.60}: an id has {DIGEST_LENGTH} bytes")
    return found


def cancel_all_orders(
    exchange: Exchange, symbol: str | None = None, params: Params = None
) -> Steps[Listed]:
    """Cancel all orders, of one market or of all; those that could not be cancelled have the error
    in ``info``.
    """
    timestamp = exchange.milliseconds()
    body: dict[str, Any] = {
        "sender": public_key_of(exchange),
        "timestamp": timestamp,
        "signature": signature(exchange, timestamp.to_bytes(8, "big")),
    }
    path = "matcher/orderbook/cancel"
    if symbol is not None:
        path = "matcher/orderbook/{base}/{quote}/cancel"
        body |= _pair(exchange.market(symbol))
    result = yield Request(path, {**body, **(params or {})}, "POST")
    return [
        exchange.safe_order(
            {
                "id": item.get("orderId"),
                "symbol": symbol,
                "status": "canceled" if item["success"] else None,
                "info": item,
            }
        )
        for item in result["message"][0]
    ]


def fetch_order(
    exchange: Exchange, id: str, symbol: str | None = None, params: Params = None
) -> Steps[Unified]:
    """An order of the account."""
    del symbol
    query = {"publicKey": public_key_of(exchange), "orderId": id, **(params or {})}
    order = yield Request("matcher/orderbook/{publicKey}/{orderId}", query, api="private")
    return _order(exchange, order)


def fetch_orders(
    exchange: Exchange,
    symbol: str | None = None,
    since: int | None = None,
    limit: int | None = None,
    params: Params = None,
) -> Steps[Listed]:
    """The account's orders, as many as the matcher stores."""
    query = {"publicKey": public_key_of(exchange), **(params or {})}
    path = "matcher/orderbook/{publicKey}"
    if symbol is not None:
        path = "matcher/orderbook/{base}/{quote}/publicKey/{publicKey}"
        query |= _pair(exchange.market(symbol))
    orders = yield Request(path, query, api="private")
    found = [_order(exchange, item) for item in orders if _is_known(exchange, item)]
    found.sort(key=lambda order: order["timestamp"])
    return exchange.filter_by_symbol_since_limit(found, symbol, since, limit)


def fetch_open_orders(
    exchange: Exchange,
    symbol: str | None = None,
    since: int | None = None,
    limit: int | None = None,
    params: Params = None,
) -> Steps[Listed]:
    """The account's orders that may still be executed."""
    return fetch_orders(exchange, symbol, since, limit, {**(params or {}), "activeOnly": "true"})


def fetch_closed_orders(
    exchange: Exchange,
    symbol: str | None = None,
    since: int | None = None,
    limit: int | None = None,
    params: Params = None,
) -> Steps[Listed]:
    """The account's orders in a final state."""
    return fetch_orders(exchange, symbol, since, limit, {**(params or {}), "closedOnly": "true"})


def _market_id(item: dict[str, Any]) -> str:
    return f"{item['assetPair']['amountAsset']}-{item['assetPair']['priceAsset']}"


def _is_known(exchange: Exchange, item: dict[str, Any]) -> bool:
    return _market_id(item) in exchange.markets_by_id


def _order(exchange: Exchange, item: dict[str, Any]) -> Unified:
    if not _is_known(exchange, item):
        raise BadSymbol(f"soliton's market {_market_id(item)} is new: load_markets again")
    market = exchange.safe_market(_market_id(item))
    filled, average = item["filled"], item["avgWeighedPrice"]
    return exchange.safe_order(
        {
            "id": item["id"],
            "timestamp": item["timestamp"],
            "datetime": exchange.iso8601(item["timestamp"]),
            "symbol": market["symbol"],
            "type": item["orderType"],
            "side": item["type"],
            "price": _price(item["price"], market),
            "amount": _amount(item["amount"], market),
            "filled": _amount(filled, market),
            "average": _price(average, market) if filled else None,
            "status": _STATUSES[item["status"]],
            "fee": _fee(market, item),
            "info": item,
        },
        market,
    )


def _fee(market: Unified, item: dict[str, Any]) -> Unified:
    """The paid fee; without an amount if the asset's decimals are unknown here."""
    asset, info = item["feeAsset"], market["info"]
    known = {
        NATIVE_TEXT: (NATIVE_TEXT, 8),
        market["baseId"]: (market["base"], info["amountDecimals"]),
        market["quoteId"]: (market["quote"], info["priceDecimals"]),
    }
    if asset not in known:
        return {"cost": None, "currency": asset}
    code, decimals = known[asset]
    return {"cost": float(Decimal(item["filledFee"]).scaleb(-decimals)), "currency": code}


def fetch_order_trades(
    exchange: Exchange,
    id: str,
    symbol: str | None = None,
    since: int | None = None,
    limit: int | None = None,
    params: Params = None,
) -> Steps[Listed]:
    """The executions of an order, from its exchange transactions."""
    query = {"orderId": id, **(params or {})}
    transactions = yield Request("matcher/transactions/{orderId}", query)
    takers = yield from _takers(exchange, transactions)
    trades = []
    for transaction in transactions:
        ours, other = transaction["order1"], transaction["order2"]
        if ours["id"] != id:
            ours, other = other, ours
        roles = {ours["id"]: "taker", other["id"]: "maker"}
        market = exchange.safe_market(_market_id(ours))
        trades.append(
            exchange.safe_trade(
                {
                    "id": transaction["id"],
                    "order": id,
                    "timestamp": transaction["timestamp"],
                    "datetime": exchange.iso8601(transaction["timestamp"]),
                    "symbol": market["symbol"],
                    "side": ours["orderType"],
                    "takerOrMaker": roles.get(takers.get(transaction["id"])),
                    "price": _price(transaction["assetDecimalsPrice"], market),
                    "amount": _amount(transaction["amount"], market),
                    "info": transaction,
                },
                market,
            )
        )
    return exchange.filter_by_symbol_since_limit(trades, symbol, since, limit)


def _takers(exchange: Exchange, transactions: Listed) -> Steps[dict[str, str]]:
    """The taking order of each transaction, from the matcher's list of executions. Timestamps of
    orders are those of their owners' clocks.
    """
    if not transactions:
        return {}
    market = exchange.safe_market(_market_id(transactions[0]["order1"]))
    since = min(each["timestamp"] for each in transactions)
    path, found = "api/v1/trades/{base}/{quote}", {}
    query = {**_pair(market), "since": since, "limit": MAX_ROWS}
    for trade in (yield Request(path, query)):
        found[str(trade["transactionId"])] = str(trade["takerOrderId"])
    return found


METHODS: Final[tuple[Callable[..., Steps[Any]], ...]] = (
    *(fetch_markets, fetch_ticker, fetch_tickers, fetch_order_book, fetch_trades, fetch_ohlcv),
    *(fetch_balance, create_order, cancel_order, cancel_all_orders),
    *(fetch_order, fetch_orders, fetch_open_orders, fetch_closed_orders, fetch_order_trades),
)
"""The methods of the driver's classes, by their names."""
