"""A driver for ccxt: the matcher as one of the exchanges of that library.

    from soliton.matcher.ccxt import SolitonMatcher
    exchange = SolitonMatcher({"secret": private_key, "urls": {"api": "http://127.0.0.1:6886"}})
    exchange.create_order("WAVES/Gold", "limit", "buy", 1, 2)

``soliton.matcher.ccxt.asynchronous`` has the same for asyncio.

What lives here: the class that blocks. What does not: what its methods do (``steps``). Needs the
package ``ccxt`` (the extra ``soliton[ccxt]``), which the matcher itself does not.

Source: https://docs.ccxt.com, the manual of the unified interface.
"""

from __future__ import annotations

from typing import Any

from ccxt.base.exchange import Exchange

from soliton.matcher.ccxt import steps
from soliton.matcher.ccxt.description import DESCRIPTION, raise_for
from soliton.matcher.ccxt.signing import signed_url
from soliton.matcher.ccxt.steps import Candles, Listed, Params, Result, Steps, Unified

__all__ = ["SolitonMatcher"]


class SolitonMatcher(Exchange):
    """The exchange, for programs without asyncio. ``secret`` is an account's private key."""

    def describe(self) -> Unified:
        """What ccxt knows about the exchange."""
        described: Unified = self.deep_extend(super().describe(), DESCRIPTION)
        return described

    def _run(self, todo: Steps[Result]) -> Result:
        answer: Any = None
        while True:
            try:
                wanted = todo.send(answer)
            except StopIteration as ended:
                result: Result = ended.value
                return result
            answer = self.request(*wanted.arguments())

    def _run_on_markets(self, todo: Steps[Result]) -> Result:
        """Run steps that need to know the markets."""
        self.load_markets()
        return self._run(todo)

    def sign(
        self,
        path: str,
        api: str = "public",
        method: str = "GET",
        params: Params = None,
        headers: dict[str, str] | None = None,
        body: str | None = None,
    ) -> Unified:
        """The request as it is sent."""
        return signed_url(self, path, api, method, params or {}, headers, body)

    def handle_errors(self, *told: object) -> None:
        """Turn the matcher's codes into ccxt's errors."""
        raise_for(told)

    def fetch_markets(self, params: Params = None) -> Listed:
        """All markets."""
        return self._run(steps.fetch_markets(self, params))

    def fetch_ticker(self, symbol: str, params: Params = None) -> Unified:
        """The last 24 hours of a market."""
        return self._run_on_markets(steps.fetch_ticker(self, symbol, params))

    def fetch_tickers(self, symbols: list[str] | None = None, params: Params = None) -> Unified:
        """The last 24 hours of all markets."""
        return self._run_on_markets(steps.fetch_tickers(self, symbols, params))

    def fetch_order_book(
        self, symbol: str, limit: int | None = None, params: Params = None
    ) -> Unified:
        """The best levels."""
        return self._run_on_markets(steps.fetch_order_book(self, symbol, limit, params))

    def fetch_trades(
        self, symbol: str, since: int | None = None, limit: int | None = None, params: Params = None
    ) -> Listed:
        """Executions of everybody."""
        return self._run_on_markets(steps.fetch_trades(self, symbol, since, limit, params))

    def fetch_ohlcv(
        self,
        symbol: str,
        timeframe: str = "1m",
        since: int | None = None,
        limit: int | None = None,
        params: Params = None,
    ) -> Candles:
        """Candles."""
        return self._run_on_markets(
            steps.fetch_ohlcv(self, symbol, timeframe, since, limit, params)
        )

    def fetch_balance(self, params: Params = None) -> Unified:
        """What the account can trade, and what is reserved for its orders."""
        return self._run_on_markets(steps.fetch_balance(self, params))

    def create_order(
        self,
        symbol: str,
        type: str,
        side: str,
        amount: float,
        price: float | None = None,
        params: Params = None,
    ) -> Unified:
        """Sign and place an order; a market order without a price takes one from the book."""
        return self._run_on_markets(
            steps.create_order(self, symbol, type, side, amount, price, params)
        )

    def cancel_order(self, id: str, symbol: str | None = None, params: Params = None) -> Unified:
        """Cancel an order."""
        return self._run_on_markets(steps.cancel_order(self, id, symbol, params))

    def cancel_all_orders(self, symbol: str | None = None, params: Params = None) -> Listed:
        """Cancel all orders, of a market or at all."""
        return self._run_on_markets(steps.cancel_all_orders(self, symbol, params))

    def fetch_order(self, id: str, symbol: str | None = None, params: Params = None) -> Unified:
        """An order of the account."""
        return self._run_on_markets(steps.fetch_order(self, id, symbol, params))

    def fetch_orders(
        self,
        symbol: str | None = None,
        since: int | None = None,
        limit: int | None = None,
        params: Params = None,
    ) -> Listed:
        """The account's orders, as many as the matcher remembers."""
        return self._run_on_markets(steps.fetch_orders(self, symbol, since, limit, params))

    def fetch_open_orders(
        self,
        symbol: str | None = None,
        since: int | None = None,
        limit: int | None = None,
        params: Params = None,
    ) -> Listed:
        """The account's orders that may still be executed."""
        return self._run_on_markets(
            steps.fetch_orders(self, symbol, since, limit, {**(params or {}), "activeOnly": "true"})
        )

    def fetch_closed_orders(
        self,
        symbol: str | None = None,
        since: int | None = None,
        limit: int | None = None,
        params: Params = None,
    ) -> Listed:
        """The account's orders that are done with."""
        return self._run_on_markets(
            steps.fetch_orders(self, symbol, since, limit, {**(params or {}), "closedOnly": "true"})
        )

    def fetch_order_trades(
        self,
        id: str,
        symbol: str | None = None,
        since: int | None = None,
        limit: int | None = None,
        params: Params = None,
    ) -> Listed:
        """The executions of an order."""
        return self._run_on_markets(
            steps.fetch_order_trades(self, id, symbol, since, limit, params)
        )
