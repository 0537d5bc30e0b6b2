"""Candles of a pair.

What lives here: reading them, empty candles for times without trades. What does not: making them
(``soliton.export``).

Source: wavesplatform/data-service ``src/services/candles``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

from soliton.data_service.assets import Assets
from soliton.data_service.errors import BadRequest, NotFound, WrongValue
from soliton.data_service.formats import Format, listed, moment, one, scaled
from soliton.data_service.parameters import Query
from soliton.data_service.pool import Pool, Row

MAX_CANDLES: Final = 1_440
_WEEK: Final = 604_800
_MONTH_DAYS: Final = 31
SECONDS: Final[Mapping[str, int]] = {
    "1m": 60,
    "5m": 300,
    "15m": 900,
    "30m": 1_800,
    "1h": 3_600,
    "2h": 7_200,
    "3h": 10_800,
    "4h": 14_400,
    "6h": 21_600,
    "12h": 43_200,
    "1d": 86_400,
    "1w": _WEEK,
    "1M": 2_678_400,
}
_PRICE: Final = 8
_FIRST_MONDAY: Final = datetime(1970, 1, 5, tzinfo=UTC)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_LATEST: Final = datetime(9_000, 1, 1, tzinfo=UTC)
"""Latest start of a candle, so that no date computation overflows."""

_READ: Final = """
SELECT * FROM candles
WHERE amount_asset_id = %(amount)s AND price_asset_id = %(price)s AND matcher_address = %(matcher)s
    AND interval = %(interval)s AND time_start >= %(start)s AND time_start <= %(end)s
ORDER BY time_start
"""
_LAST: Final = """
SELECT * FROM candles
WHERE amount_asset_id = %(amount)s AND price_asset_id = %(price)s AND matcher_address = %(matcher)s
    AND interval = %(interval)s AND time_start >= %(start)s AND time_start <= %(end)s
ORDER BY time_start DESC LIMIT 1
"""


class Market(NamedTuple):
    """A pair of assets at a matcher."""

    amount: str
    price: str
    matcher: str


class _Period(NamedTuple):
    start: datetime
    end: datetime
    interval: str


class Candles:
    """The candles of one database."""

    def __init__(self, pool: Pool, assets: Assets) -> None:
        self._pool = pool
        self._assets = assets

    async def many(self, market: Market, query: Query, shape: Format, *, missing: str) -> object:
        """Return the candles of a period, with empty ones for times without trades; ``missing`` is
        the reference's word in the error for a missing parameter.
        """
        period = _read(query, missing)
        starts = [] if period.start > _LATEST else list(_starts(period))
        if not starts:
            raise NotFound("no candle begins in this time")
        rows = await self._pool.fetch(_READ, _parameters(market, period))
        found = {row["time_start"]: row for row in rows}
        decimals = await self._assets.decimals((market.amount, market.price))
        places = decimals[market.amount], decimals[market.price]
        items = [
            one("candle", _json(found.get(each), each, period.interval, shape, places))
            for each in starts
        ]
        return listed(items, isLastPage=False)

    async def last(self, market: Market, query: Query, shape: Format, *, missing: str) -> object:
        """Return the last candle with a trade."""
        period = _read(query, missing, bounded=False)
        rows = await self._pool.fetch(_LAST, _parameters(market, period))
        if not rows:
            raise NotFound("no trades in this time")
        decimals = await self._assets.decimals((market.amount, market.price))
        places = decimals[market.amount], decimals[market.price]
        start = rows[0]["time_start"]
        return one("candle", _json(rows[0], start, period.interval, shape, places))


def _parameters(market: Market, period: _Period) -> Row:
    # The timestamps in the table have no time zone.
    start, end = (each.replace(tzinfo=None) for each in (period.start, period.end))
    return {**market._asdict(), "interval": period.interval, "start": start, "end": end}


def _read(query: Query, missing: str, *, bounded: bool = True) -> _Period:
    start, interval = query.moment("timeStart"), query.text("interval")
    if start is None:
        allowed = "a date, or milliseconds since 1970"
        raise WrongValue(f"timeStart is {missing}", "timeStart", None, allowed)
    if interval is None:
        raise WrongValue(f"interval is {missing}", "interval", None, f"one of {', '.join(SECONDS)}")
    if interval not in SECONDS:
        raise BadRequest(
            "Interval must be one of the allowed",
            name="interval",
            allowed=list(SECONDS),
            actual=interval,
        )
    end = min(query.moment("timeEnd") or datetime.now(UTC), _LATEST)
    period = _Period(start, end, interval)
    if bounded and (end - start).total_seconds() / SECONDS[interval] > MAX_CANDLES:
        raise BadRequest(
            f"N of candles is more then allowed of {MAX_CANDLES}. "
            "Try to decrease requested period of time.",
            name="timeEnd",
        )
    return period


def _starts(period: _Period) -> Iterator[datetime]:
    """Yield the starts of candles in a period, without a time zone."""
    if period.interval == "1M":
        yield from _months(period)
        return
    seconds = SECONDS[period.interval]
    origin = _FIRST_MONDAY if seconds == _WEEK else _EPOCH
    behind = (period.start - origin) / timedelta(seconds=seconds)
    number = int(behind) + (behind > int(behind))
    start = origin + timedelta(seconds=seconds * number)
    while start <= period.end:
        yield start.replace(tzinfo=None)
        start += timedelta(seconds=seconds)


def _months(period: _Period) -> Iterator[datetime]:
    start = period.start.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    if start < period.start:
        start = _next_month(start)
    while start <= period.end:
        yield start.replace(tzinfo=None)
        start = _next_month(start)


def _next_month(start: datetime) -> datetime:
    return (start + timedelta(days=_MONTH_DAYS + 1)).replace(day=1)


def _json(
    row: Row | None, start: datetime, interval: str, shape: Format, places: tuple[int, int]
) -> Row:
    close = start + timedelta(seconds=SECONDS[interval], milliseconds=-1)
    amount, price = places

    def shown(name: str, scale: int) -> object:
        if row is None:
            return None
        return shape.number(row[name] if shape.long else scaled(row[name], scale))

    by_price = amount - price - _PRICE
    return {
        "maxHeight": None if row is None else row["max_height"],
        "open": shown("open", by_price),
        "high": shown("high", by_price),
        "low": shown("low", by_price),
        "close": shown("close", by_price),
        "volume": shown("volume", -amount),
        "quoteVolume": shown("quote_volume", -price - _PRICE),
        "weightedAveragePrice": shown("weighted_average_price", by_price),
        "time": moment(start),
        "timeClose": moment(close),
        "txsCount": 0 if row is None else row["txs_count"],
    }
