"""Market data: trades, tickers and candles. The reference matcher has none of them.

Prices and amounts are decimal text in whole assets.

What lives here: the routes, built around one ``MarketData``. What does not: order books.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from soliton.crypto import base58
from soliton.matcher.market_data import MarketData
from soliton.matcher.records import Trade
from soliton.matcher.rest import examples
from soliton.matcher.rest.answers import Answer, encode_json
from soliton.matcher.rest.requests import (
    Request,
    pair_assets,
    read_pair,
    traded_pair,
)
from soliton.matcher.rest.routes import Route, row, table
from soliton.matcher.service import Matcher
from soliton.matching.arithmetic import decimal_text, denormalize_amount, denormalize_price
from soliton.matching.candles import INTERVALS, MAX_ANSWER, Interval, Ticker
from soliton.matching.errors import MatcherError
from soliton.matching.pairs import AssetPair
from soliton.web.parameters import Kind, whole

MAX_TRADES: Final = 1_000
DEFAULT_TRADES: Final = 100
DEFAULT_CANDLES: Final = 500


class Scale(msgspec.Struct, frozen=True):
    """Formats prices and amounts of a pair by the decimals of its assets."""

    amount_decimals: int
    price_decimals: int

    def price(self, units: int) -> str:
        """A normalised price."""
        return decimal_text(denormalize_price(units, self.amount_decimals, self.price_decimals))

    def amount(self, units: int) -> str:
        """An amount of the amount asset."""
        return decimal_text(denormalize_amount(units, self.amount_decimals))

    def volume(self, units: int) -> str:
        """An amount of the price asset."""
        return decimal_text(denormalize_amount(units, self.price_decimals))


async def scale_of(core: Matcher, pair: AssetPair) -> Scale:
    """The decimals of a pair."""
    return Scale(*(asset.decimals for asset in await pair_assets(core, pair)))


def trade_json(trade: Trade, scale: Scale) -> dict[str, Any]:
    """An execution; ``id`` is unique within the pair."""
    transaction = trade.transaction_id
    return {
        "id": f"{trade.offset}-{trade.index}",
        "timestamp": trade.timestamp,
        "price": scale.price(trade.price),
        "amount": scale.amount(trade.amount),
        "side": trade.side.name.lower(),
        "takerOrderId": base58.encode(trade.taker_order_id),
        "makerOrderId": base58.encode(trade.maker_order_id),
        "transactionId": None if transaction is None else base58.encode(transaction),
    }


async def trades(request: Request) -> Answer:
    """Executions of a pair, the oldest first."""
    core = request.core
    limit = request.arguments.get("limit", DEFAULT_TRADES)
    since = request.arguments.get("since")
    pair = await _pair(request)
    scale = await scale_of(core, pair)
    found = core.database.trades(pair, limit, since) if limit else []
    return Answer(encode_json([trade_json(trade, scale) for trade in found]))


def _ticker_json(
    core: Matcher, pair: AssetPair, scale: Scale, ticker: Ticker | None
) -> dict[str, Any]:
    body: dict[str, Any] = {"symbol": pair.key, **pair.to_json(), "timestamp": core.now()}
    name = core.settings.pair_name(pair)
    if name is not None:
        body["name"] = name
    book = core.engine.book(pair)
    if book is not None:
        status = book.status()
        for name, level in (("bid", status.best_bid), ("ask", status.best_ask)):
            if level is not None:
                body[name] = scale.price(level.price)
                body[f"{name}Amount"] = scale.amount(level.amount)
    if ticker is not None:
        body |= {
            "open": scale.price(ticker.open),
            "high": scale.price(ticker.high),
            "low": scale.price(ticker.low),
            "last": scale.price(ticker.close),
            "volume": scale.amount(ticker.volume),
            "priceVolume": scale.volume(ticker.price_volume),
            "trades": ticker.trades,
        }
    return body


async def _pair(request: Request) -> AssetPair:
    return await traded_pair(request.core, read_pair(*request.segments[3:5]))


_INTERVAL: Final = Kind(
    "interval", {"enum": list(INTERVALS)}, INTERVALS.get, f"one of {', '.join(INTERVALS)}"
)
_PARAMETERS: Final = f"""
limit.trades  | trades       | At most {MAX_TRADES}.               | -
limit.candles | candles      | At most {MAX_ANSWER}.               | -
since         | natural_long | From this time on, in milliseconds. | -
until         | natural_long | Up to this time, in milliseconds.   | -
interval      | interval     | {", ".join(INTERVALS)}              | -
"""


class GatheredRoutes:
    """The routes that need aggregated executions."""

    __slots__ = ("_data",)

    def __init__(self, data: MarketData) -> None:
        self._data = data

    async def ticker(self, request: Request) -> Answer:
        """The last 24 hours of a pair."""
        pair = await _pair(request)
        core = request.core
        found = (await self._data.candles(pair)).ticker(core.now())
        return Answer(encode_json(_ticker_json(core, pair, await scale_of(core, pair), found)))

    async def tickers(self, request: Request) -> Answer:
        """The last 24 hours of all pairs."""
        core = request.core
        out = []
        for pair in core.queries.pairs():
            try:
                scale = await scale_of(core, pair)
            except MatcherError:
                continue  # An asset may be gone after a rollback of the chain.
            found = (await self._data.candles(pair)).ticker(core.now())
            out.append(_ticker_json(core, pair, scale, found))
        return Answer(encode_json(out))

    async def candles(self, request: Request) -> Answer:
        """Open, high, low, close and volumes by interval, the oldest first."""
        core, asked = request.core, request.arguments
        interval = asked.get("interval", Interval.HOUR)
        limit = asked.get("limit", DEFAULT_CANDLES)
        until = asked.get("until", core.now())
        since = asked.get("since", 0)
        pair = await _pair(request)
        scale = await scale_of(core, pair)
        if "since" in asked and "until" not in asked and limit:
            until = min(until, since + limit * interval - 1)
        candles = await self._data.candles(pair)
        found = candles.candles(interval, since, until, limit) if limit else []
        rows = [
            [
                candle.start,
                scale.price(candle.open),
                scale.price(candle.high),
                scale.price(candle.low),
                scale.price(candle.close),
                scale.amount(candle.volume),
                scale.volume(candle.price_volume),
                candle.trades,
            ]
            for candle in found
        ]
        return Answer(encode_json(rows))

    def routes(self) -> tuple[Route, ...]:
        """The rows of the table."""
        return table("market data", _PARAMETERS,
            row("GET /api/v1/tickers", self.tickers, "The last 24 hours of all pairs",
                [examples.TICKER]),
            row("GET /api/v1/tickers/{amount}/{price}", self.ticker,
                "The last 24 hours of a pair", examples.TICKER),
            row("GET /api/v1/trades/{amount}/{price}?limit.trades&since", trades,
                "Executions, oldest first", examples.TRADES,
                description="Without since the last ones, with it the first ones from then on."),
            row("GET /api/v1/candles/{amount}/{price}?interval&since&until&limit.candles",
                self.candles, "Candles, oldest first", examples.CANDLES,
                description="Start (milliseconds), open, high, low, close, volume in the amount "
                "asset, volume in the price asset, number of trades. Intervals without trades "
                "repeat the last price."),
            kinds=(_INTERVAL, whole("trades", MAX_TRADES), whole("candles", MAX_ANSWER)),
            own=True,
        )  # fmt: skip
