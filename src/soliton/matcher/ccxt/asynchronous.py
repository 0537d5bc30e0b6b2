"""The driver for ccxt, for programs with asyncio.

What lives here: the class that awaits. What does not: what its methods do (``steps``).
"""

from __future__ import annotations

from typing import Any

from ccxt.async_support.base.exchange import Exchange

from soliton.matcher.ccxt.driver import Driver, with_methods
from soliton.matcher.ccxt.steps import Result, Steps

__all__ = ["SolitonMatcher"]


async def _run(exchange: Exchange, todo: Steps[Result], on_markets: bool) -> Result:
    if on_markets:
        await exchange.load_markets()
    answer: Any = None
    while True:
        try:
            wanted = todo.send(answer)
        except StopIteration as ended:
            result: Result = ended.value
            return result
        answer = await exchange.request(*wanted.arguments())


@with_methods(_run)
class SolitonMatcher(Driver, Exchange):
    """The exchange, for asyncio; ``close`` it at the end. ``secret`` is a private key."""
