"""Candles and tickers: executions of a pair, gathered by time.

Each interval keeps its last ``MAX_CANDLES`` candles with trades in them; a time without trades has
no candle of its own, and ``candles`` fills it with the last price before it.

What lives here: gathering and reading. What does not: routes and streams that show them
(``soliton.matcher``). The reference matcher has nothing like it; the meaning of the fields is what
exchanges agree on (open, high, low, close, volume).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import deque
from enum import IntEnum
from typing import Final

import msgspec

from soliton.chain.orders import PRICE_CONSTANT

MAX_CANDLES: Final = 1_500
"""Of one pair and interval. A day has 1,440 minutes."""
MAX_ANSWER: Final = 1_000
"""Candles in one answer, empty ones included."""
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
"""By the names that clients use."""


class Candle(msgspec.Struct, frozen=True, gc=False):
    """Executions from ``start`` (milliseconds, a multiple of the interval) on.

    Prices are normalised. ``volume`` is in the amount asset, ``price_nominator`` the sum of amounts
    times prices.
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
        """The mean price, weighed by amounts; the close where there were no trades."""
        return self.price_nominator // self.volume if self.volume else self.close


class Ticker(msgspec.Struct, frozen=True, gc=False):
    """The last 24 hours, to the minute; ``close`` is the last price ever."""

    open: int
    high: int
    low: int
    close: int
    volume: int
    price_volume: int
    trades: int


class Candles:
    """The candles of one pair. Executions come in the order of the engine's events; one that is
    older than the last candle counts to that one, so that clocks set back do no harm.
    """

    __slots__ = ("_series",)

    def __init__(self) -> None:
        self._series: dict[Interval, deque[Candle]] = {
            interval: deque(maxlen=MAX_CANDLES) for interval in Interval
        }

    def add(self, timestamp: int, price: int, amount: int) -> None:
        """An execution at a time in milliseconds."""
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
        """The candles that begin from ``since`` to ``until`` (inclusive, milliseconds), oldest
        first; the last ``limit`` of them, at most ``MAX_ANSWER``. Times before the first trade that
        is still known have none.
        """
        series = self._series[interval]
        if not series or until < since:
            return []
        count = min(limit, MAX_ANSWER)
        last_start = until - until % interval
        first = max(-(-since // interval) * interval, last_start - (count - 1) * interval)
        starts = [candle.start for candle in series]
        place = bisect_right(starts, first) - 1
        if place < 0:
            first, place = starts[0], 0
        previous = series[place]
        out = []
        for start in range(first, last_start + 1, interval):
            while place + 1 < len(series) and series[place + 1].start <= start:
                place += 1
            previous = series[place]
            out.append(previous if previous.start == start else _empty(start, previous.close))
        return out

    def ticker(self, now: int) -> Ticker | None:
        """The 24 hours before a time in milliseconds, or None where nothing was ever traded."""
        series = self._series[Interval.MINUTE]
        if not series:
            return None
        starts = [candle.start for candle in series]
        begin = bisect_left(starts, now - DAY_MS + _TICKER_STEP_MS - now % _TICKER_STEP_MS)
        recent = [series[place] for place in range(begin, len(series))]
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

    def last_start(self, interval: Interval) -> int | None:
        """Where the newest candle begins, or None."""
        series = self._series[interval]
        return series[-1].start if series else None


def _empty(start: int, price: int) -> Candle:
    return Candle(start, price, price, price, price, 0, 0, 0)
