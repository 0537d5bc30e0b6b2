"""Candles and tickers: executions of a pair, aggregated by time.

Each interval keeps its last ``MAX_CANDLES`` candles with trades; ``candles`` fills an interval
without trades with the last price before it.

What lives here: aggregation and queries. What does not: the routes and streams that serve them
(``soliton.matcher``). The reference matcher has no candles; the fields have the meaning common
among exchanges (open, high, low, close, volume).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import deque
from enum import IntEnum
from typing import Final

import msgspec

from soliton.chain.orders import PRICE_CONSTANT

MAX_CANDLES: Final = 1_500
"""Per pair and interval. A day has 1,440 minutes."""
MAX_ANSWER: Final = 1_000
"""The maximum number of candles in one response, including empty ones."""
DAY_MS: Final = 86_400_000
_TICKER_STEP_MS: Final = 60_000


class Interval(IntEnum):
    """Lengths of candles, in milliseconds."""

    MINUTE = 60_000
    FIVE_MINUTES = 300_000
    FIFTEEN_MINUTES = 900_000
    HALF_HOUR = 1_800_000
    HOUR = 3_600_000
    TWO_HOURS = 7_200_000
    FOUR_HOURS = 14_400_000
    SIX_HOURS = 21_600_000
    TWELVE_HOURS = 43_200_000
    DAY = DAY_MS


INTERVALS: Final = {
    "1m": Interval.MINUTE,
    "5m": Interval.FIVE_MINUTES,
    "15m": Interval.FIFTEEN_MINUTES,
    "30m": Interval.HALF_HOUR,
    "1h": Interval.HOUR,
    "2h": Interval.TWO_HOURS,
    "4h": Interval.FOUR_HOURS,
    "6h": Interval.SIX_HOURS,
    "12h": Interval.TWELVE_HOURS,
    "1d": Interval.DAY,
}
"""Intervals by the names that clients use."""


class Candle(msgspec.Struct, frozen=True, gc=False):
    """Executions of the interval from ``start`` (milliseconds, a multiple of the interval).

    Prices are normalised. ``volume`` is in the amount asset; ``price_nominator`` is the sum of
    amounts times prices.
    """

    start: int
    open: int
    high: int
    low: int
    close: int
    volume: int
    price_nominator: int
    trades: int

    @property
    def price_volume(self) -> int:
        """The turnover in the price asset, rounded down once."""
        return self.price_nominator // PRICE_CONSTANT

    @property
    def average_price(self) -> int:
        """The mean price weighted by amount; the close if there were no trades."""
        return self.price_nominator // self.volume if self.volume else self.close


class Ticker(msgspec.Struct, frozen=True, gc=False):
    """The last 24 hours, to the minute; ``close`` is the last price, however old."""

    open: int
    high: int
    low: int
    close: int
    volume: int
    price_volume: int
    trades: int


class Candles:
    """The candles of one pair. Executions arrive in the order of the engine's events. One older
    than the last candle counts towards that candle, so a clock set back does no harm.
    """

    __slots__ = ("_series",)

    def __init__(self) -> None:
        self._series: dict[Interval, deque[Candle]] = {
            interval: deque(maxlen=MAX_CANDLES) for interval in Interval
        }

    def add(self, timestamp: int, price: int, amount: int) -> None:
        """Add an execution at a time in milliseconds."""
        for interval, series in self._series.items():
            start = timestamp - timestamp % interval
            last = series[-1] if series else None
            if last is None or start > last.start:
                series.append(Candle(start, price, price, price, price, amount, amount * price, 1))
                continue
            series[-1] = Candle(
                last.start,
                last.open,
                max(last.high, price),
                min(last.low, price),
                price,
                last.volume + amount,
                last.price_nominator + amount * price,
                last.trades + 1,
            )

    def candles(
        self, interval: Interval, since: int, until: int, limit: int = MAX_ANSWER
    ) -> list[Candle]:
        """The candles that start between ``since`` and ``until`` (inclusive, milliseconds), oldest
        first; the last ``limit`` of them, at most ``MAX_ANSWER``. There are none before the first
        known trade.
        """
        series = self._series[interval]
        if not series or until < since:
            return []
        count = min(limit, MAX_ANSWER)
        last_start = until - until % interval
        first = max(-(-since // interval) * interval, last_start - (count - 1) * interval)
        starts = [candle.start for candle in series]
        index = bisect_right(starts, first) - 1
        if index < 0:
            first, index = starts[0], 0
        out = []
        for start in range(first, last_start + 1, interval):
            while index + 1 < len(series) and series[index + 1].start <= start:
                index += 1
            latest = series[index]
            out.append(latest if latest.start == start else _empty(start, latest.close))
        return out

    def ticker(self, now: int) -> Ticker | None:
        """The ticker at a time in milliseconds, or None if nothing was ever traded."""
        series = self._series[Interval.MINUTE]
        if not series:
            return None
        starts = [candle.start for candle in series]
        begin = bisect_left(starts, now - DAY_MS + _TICKER_STEP_MS - now % _TICKER_STEP_MS)
        recent = [series[index] for index in range(begin, len(series))]
        close = series[-1].close
        if not recent:
            return Ticker(close, close, close, close, 0, 0, 0)
        nominator = sum(candle.price_nominator for candle in recent)
        return Ticker(
            open=recent[0].open,
            high=max(candle.high for candle in recent),
            low=min(candle.low for candle in recent),
            close=close,
            volume=sum(candle.volume for candle in recent),
            price_volume=nominator // PRICE_CONSTANT,
            trades=sum(candle.trades for candle in recent),
        )


def _empty(start: int, price: int) -> Candle:
    return Candle(start, price, price, price, price, 0, 0, 0)
