"""Candles from what is on record and from what happens meanwhile: nothing twice, nothing lost."""

from __future__ import annotations

import asyncio

import pytest

from soliton.matcher import market_data
from soliton.matcher.market_data import MarketData
from soliton.matcher.records import Trade
from soliton.matching.candles import Interval
from soliton.matching.pairs import AssetPair
from tests.matcher.fakes import ALICE, BOB, GOLD_WAVES, NOW, FakeCore, as_matcher, buy, sell


class BusyCore(FakeCore):
    """While its record is read, the market goes on: it counts the slices that were asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.limits_asked: list[int] = []

    def trades_after(
        self, pair: AssetPair, place: tuple[int, int] | None, limit: int
    ) -> list[Trade]:
        self.limits_asked.append(limit)
        return super().trades_after(pair, place, limit)

    async def trade(self, count: int, step: int = 1) -> None:
        """So many executions of one unit, with a time between them."""
        for _ in range(count):
            self.time += step
            number = len(self.placed)
            await self.place(sell(BOB, 10**8, 2 * 10**8, timestamp=NOW + number), market=False)
            await self.place(buy(ALICE, 10**8, 2 * 10**8, timestamp=NOW + number), market=False)


async def volume(data: MarketData) -> tuple[int, int]:
    """What was traded, and how often."""
    found = (await data.candles(GOLD_WAVES)).candles(Interval.DAY, 0, NOW + 10**9)
    return sum(candle.volume for candle in found) // 10**8, sum(each.trades for each in found)


@pytest.mark.parametrize("step", [0, 1])
async def test_slices_follow_one_another(monkeypatch: pytest.MonkeyPatch, step: int) -> None:
    monkeypatch.setattr(market_data, "SLICE", 4)
    core = BusyCore()
    await core.trade(21, step)
    data = MarketData(as_matcher(core))
    core.effects.subscribe(data)
    assert await volume(data) == (21, 21)
    await core.trade(2, step)
    assert await volume(data) == (23, 23)
    assert data.executions == 2
    assert core.limits_asked == [4] * 6


async def test_what_happens_while_the_record_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(market_data, "SLICE", 4)
    core = BusyCore()
    await core.trade(10)
    data = MarketData(as_matcher(core))
    core.effects.subscribe(data)
    asked = [asyncio.create_task(volume(data)) for _ in range(3)]
    for _ in range(3):
        await asyncio.sleep(0)
    assert core.limits_asked, "the record is being read"
    assert len(core.limits_asked) < 3, "and not to its end"
    await core.trade(5)
    asked[0].cancel()
    assert await asked[1] == await asked[2] == (15, 15)
    assert await volume(data) == (15, 15)


async def test_a_record_that_cannot_be_read_is_tried_again() -> None:
    core = BusyCore()
    await core.trade(3)
    data = MarketData(as_matcher(core))
    pairs = core._trades
    core._trades = None  # type: ignore[assignment]
    with pytest.raises(AttributeError):
        await data.candles(GOLD_WAVES)
    core._trades = pairs
    assert await volume(data) == (3, 3)
