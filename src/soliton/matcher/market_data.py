"""Candles and tickers of all pairs, updated with each execution.

What lives here: the listener that aggregates executions, first the recorded ones, then new ones.
What does not: the candles themselves (``soliton.matching.candles``), and the routes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from soliton.matcher.effects import Listener
from soliton.matcher.service import Matcher
from soliton.matching.candles import Candles
from soliton.matching.events import Event, ExecutionCorrected, OrderExecuted
from soliton.matching.pairs import AssetPair

SLICE: Final = 200
"""Recorded executions read at a time, with a pause for other tasks in between."""


class MarketData(Listener):
    """The candles of each pair, loaded at the first request."""

    __slots__ = ("_candles", "_core", "_loading", "_meanwhile", "_outdated", "executions")

    def __init__(self, core: Matcher) -> None:
        self._core = core
        self._candles: dict[AssetPair, Candles] = {}
        self._loading: dict[AssetPair, asyncio.Task[Candles]] = {}
        self._meanwhile: dict[AssetPair, list[OrderExecuted]] = {}
        self._outdated: set[AssetPair] = set()
        self.executions = 0

    async def candles(self, pair: AssetPair) -> Candles:
        """The candles of a pair; the first call reads all recorded executions."""
        found = self._candles.get(pair)
        if found is not None:
            return found
        task = self._loading.get(pair)
        if task is None:
            task = self._loading[pair] = asyncio.create_task(self._load(pair))
        # If the first caller is cancelled, the others still wait.
        return await asyncio.shield(task)

    async def _load(self, pair: AssetPair) -> Candles:
        meanwhile = self._meanwhile[pair] = []
        try:
            while True:
                self._outdated.discard(pair)
                meanwhile.clear()
                candles = await self._read(pair, meanwhile)
                if pair not in self._outdated:
                    break
            self._candles[pair] = candles
        finally:
            del self._meanwhile[pair], self._loading[pair]
            self._outdated.discard(pair)
        return candles

    async def _read(self, pair: AssetPair, meanwhile: list[OrderExecuted]) -> Candles:
        candles = Candles()
        seen: tuple[int, int] | None = None
        while True:
            trades = self._core.database.trades_after(pair, seen, SLICE)
            for trade in trades:
                candles.add(trade.timestamp, trade.price, trade.amount)
                seen = trade.offset, trade.index
            if len(trades) < SLICE:
                break
            await asyncio.sleep(0)
        for event in meanwhile:
            if seen is None or event.offset > seen[0]:
                candles.add(event.timestamp, event.price, event.amount)
        return candles

    def on_events(self, offset: int, timestamp: int, events: Sequence[Event]) -> None:
        """Add executions to the candles of their pair; drop those of a corrected one."""
        del offset, timestamp
        for event in events:
            if isinstance(event, OrderExecuted):
                self.executions += 1
                pair = event.maker.pair
                candles = self._candles.get(pair)
                if candles is not None:
                    candles.add(event.timestamp, event.price, event.amount)
                elif pair in self._meanwhile:
                    self._meanwhile[pair].append(event)
            elif isinstance(event, ExecutionCorrected):
                # Candles cannot be subtracted from: the next request reads the executions again.
                pair = event.maker.pair
                self._candles.pop(pair, None)
                if pair in self._meanwhile:
                    self._outdated.add(pair)
