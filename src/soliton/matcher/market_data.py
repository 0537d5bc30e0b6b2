"""What was traded: candles and tickers of all pairs, kept up to date as things happen.

What lives here: the listener that gathers executions, first those that are on record, then those
to come. What does not: what a candle is (``soliton.matching.candles``), the routes that show them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from soliton.chain.addresses import Address
from soliton.chain.values import AssetId
from soliton.matcher.core import MatcherCore
from soliton.matching.candles import Candles
from soliton.matching.events import Event, OrderExecuted
from soliton.matching.pairs import AssetPair

MAX_LOADED_TRADES: Final = 200_000
"""How far back on record the candles of a pair reach when they are first asked for."""


class MarketData:
    """The candles of each pair, from the first time that somebody asks for them."""

    __slots__ = ("_candles", "_core", "_loaded_to", "executions")

    def __init__(self, core: MatcherCore) -> None:
        self._core = core
        self._candles: dict[AssetPair, Candles] = {}
        self._loaded_to: dict[AssetPair, int] = {}
        self.executions = 0

    def candles(self, pair: AssetPair) -> Candles:
        """The candles of a pair."""
        found = self._candles.get(pair)
        if found is None:
            found = self._candles[pair] = Candles()
            trades = self._core.trades(pair, MAX_LOADED_TRADES)
            for trade in trades:
                found.add(trade.timestamp, trade.price, trade.amount)
            self._loaded_to[pair] = trades[-1].offset if trades else -1
        return found

    def on_events(self, offset: int, timestamp: int, events: Sequence[Event]) -> None:
        """Executions count for their pair's candles."""
        del timestamp
        for event in events:
            if isinstance(event, OrderExecuted):
                self.executions += 1
                pair = event.maker.pair
                candles = self._candles.get(pair)
                if candles is not None and offset > self._loaded_to[pair]:
                    candles.add(event.timestamp, event.price, event.amount)

    def on_balances(self, address: Address, assets: frozenset[AssetId | None]) -> None:
        """Trades do not depend on balances."""

    def on_rates(self, changed: dict[AssetId | None, float | None]) -> None:
        """Trades do not depend on rates."""
