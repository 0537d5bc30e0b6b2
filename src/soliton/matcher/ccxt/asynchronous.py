"""The driver for ccxt, for programs with asyncio.

What lives here: the asynchronous class. What does not: its methods (``steps``).
"""

from __future__ import annotations

from typing import Any

from ccxt.async_support.base.exchange import Exchange

from soliton.matcher.ccxt.driver import Driver, with_methods
from soliton.matcher.ccxt.steps import Result, Steps

__all__ = ["SolitonMatcher"]


async def _run(exchange: Exchange, steps: Steps[Result], needs_markets: bool) -> Result:
    if needs_markets:
        await exchange.load_markets()
    response: Any = None
    while True:
        try:
            request = steps.send(response)
        except StopIteration as ended:
            result: Result = ended.value
            return result
        response = await exchange.request(*request.arguments())


@with_methods(_run)
class SolitonMatcher(Driver, Exchange):
    """The exchange, for asyncio; ``close`` it at the end. ``secret`` is a private key."""
