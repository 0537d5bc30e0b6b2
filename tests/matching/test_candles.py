"""Candles and tickers, against sums over all executions."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from soliton.matching import candles
from soliton.matching.candles import INTERVALS, Candle, Candles, Interval, Ticker

COIN = 10**8
MINUTE = 60_000
T = 1_700_000_040_000 - 1_700_000_040_000 % 86_400_000
"""Midnight."""


def filled(*executions: tuple[int, int, int]) -> Candles:
    """Candles of executions: milliseconds after midnight, price, amount in whole assets."""
    made = Candles()
    for after, price, amount in executions:
        made.add(T + after, price, amount * COIN)
    return made


def test_a_candle() -> None:
    made = filled((0, 100, 1), (10, 130, 2), (59_999, 90, 3), (60_000, 95, 4))
    first, second = made.candles(Interval.MINUTE, T, T + MINUTE)
    assert first == Candle(T, 100, 130, 90, 90, 6 * COIN, 630 * COIN, 3)
    assert (first.price_volume, first.average_price) == (630, 105)
    assert second == Candle(T + MINUTE, 95, 95, 95, 95, 4 * COIN, 380 * COIN, 1)
    (day,) = made.candles(Interval.DAY, T, T)
    assert day == Candle(T, 100, 130, 90, 95, 10 * COIN, 1_010 * COIN, 4)


def test_times_without_trades_have_the_last_price() -> None:
    made = filled((0, 100, 1), (3 * MINUTE, 110, 1))
    found = made.candles(Interval.MINUTE, T - 5 * MINUTE, T + 4 * MINUTE)
    assert [(candle.start - T) // MINUTE for candle in found] == [0, 1, 2, 3, 4]
    assert [candle.close for candle in found] == [100, 100, 100, 110, 110]
    assert [candle.trades for candle in found] == [1, 0, 0, 1, 0]
    assert found[1].average_price == 100


@pytest.mark.parametrize(
    ("since", "until", "limit", "minutes"),
    [
        (0, 2, 10, [0, 1, 2]),
        (0, 9, 3, [7, 8, 9]),
        (4, 3, 10, []),
        (-9, -1, 10, []),
        (0.5, 2.5, 10, [1, 2]),
        (-9, 0, 2, [0]),
    ],
)
def test_what_is_asked_for(since: float, until: float, limit: int, minutes: list[int]) -> None:
    made = filled((0, 100, 1))
    bounds = T + int(since * MINUTE), T + int(until * MINUTE)
    found = made.candles(Interval.MINUTE, *bounds, limit)
    assert [(candle.start - T) // MINUTE for candle in found] == minutes


def test_nothing_was_traded() -> None:
    made = Candles()
    assert made.candles(Interval.HOUR, 0, T) == []
    assert made.ticker(T) is None


def test_a_clock_set_back_does_no_harm() -> None:
    made = filled((5 * MINUTE, 100, 1), (MINUTE, 120, 1))
    (only,) = made.candles(Interval.MINUTE, T, T + 5 * MINUTE)
    assert (only.start, only.trades, only.high) == (T + 5 * MINUTE, 2, 120)


def test_old_candles_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(candles, "MAX_CANDLES", 3)
    made = filled(*((n * MINUTE, 100 + n, 1) for n in range(5)))
    found = made.candles(Interval.MINUTE, T, T + 4 * MINUTE)
    assert [candle.open for candle in found] == [102, 103, 104]


def test_answers_are_bounded() -> None:
    made = filled((0, 100, 1))
    found = made.candles(Interval.MINUTE, 0, T + 10**6 * MINUTE, 10**6)
    assert len(found) == candles.MAX_ANSWER
    assert found[-1].start == T + 10**6 * MINUTE


def test_a_ticker() -> None:
    made = filled((0, 500, 1), (MINUTE, 100, 1), (2 * MINUTE, 130, 2), (3 * MINUTE, 90, 3))
    day = 86_400_000
    # At midnight of the next day the minute from midnight on is still in, a minute later not.
    assert made.ticker(T + day - MINUTE) == Ticker(500, 500, 90, 90, 7 * COIN, 1_130, 4)
    assert made.ticker(T + day) == Ticker(100, 130, 90, 90, 6 * COIN, 630, 3)
    assert made.ticker(T + 2 * day) == Ticker(90, 90, 90, 90, 0, 0, 0)


@given(
    st.lists(
        st.tuples(st.integers(0, 10 * MINUTE), st.integers(1, 1_000), st.integers(1, 9)),
        min_size=1,
    ),
    st.sampled_from(list(Interval)),
)
def test_candles_add_up(executions: list[tuple[int, int, int]], interval: Interval) -> None:
    executions.sort(key=lambda execution: execution[0])
    made = filled(*executions)
    found = made.candles(interval, T, T + 10 * MINUTE)
    assert sum(candle.trades for candle in found) == len(executions)
    for candle in found:
        own = [
            (price, amount)
            for after, price, amount in executions
            if candle.start <= T + after < candle.start + interval
        ]
        assert candle.trades == len(own)
        assert candle.volume == sum(amount for _, amount in own) * COIN
        assert candle.price_nominator == sum(price * amount for price, amount in own) * COIN
        if own:
            prices = [price for price, _ in own]
            assert (candle.open, candle.close) == (prices[0], prices[-1])
            assert (candle.low, candle.high) == (min(prices), max(prices))
    starts = [candle.start for candle in found]
    assert starts == list(range(starts[0], starts[-1] + 1, interval))


def test_names_of_intervals() -> None:
    assert {name: int(interval) // MINUTE for name, interval in INTERVALS.items()} == {
        "1m": 1,
        "5m": 5,
        "15m": 15,
        "30m": 30,
        "1h": 60,
        "2h": 120,
        "4h": 240,
        "6h": 360,
        "12h": 720,
        "1d": 1_440,
    }
