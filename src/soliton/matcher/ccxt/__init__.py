"""A driver for ccxt: the matcher as one of the exchanges of that library.

    from soliton.matcher.ccxt import SolitonMatcher
    exchange = SolitonMatcher({"secret": private_key, "urls": {"api": "http://127.0.0.1:6886"}})
    exchange.create_order("WAVES/Gold", "limit", "buy", 1, 2)

``soliton.matcher.ccxt.asynchronous`` has the same for asyncio.

What lives here: the synchronous class. What does not: its methods (``steps``). Needs the package
``ccxt`` (the extra ``ccxt``), which the matcher itself does not.

Source: https://docs.ccxt.com, the manual of the unified interface.
"""

from __future__ import annotations

from typing import Any

from soliton.matcher.ccxt.driver import Driver, with_methods
from soliton.matcher.ccxt.steps import Result, Steps

__all__ = ["SolitonMatcher"]


def _run(exchange: Driver, steps: Steps[Result], needs_markets: bool) -> Result:
    if needs_markets:
        exchange.load_markets()
    response: Any = None
    while True:
        try:
            request = steps.send(response)
        except StopIteration as ended:
            result: Result = ended.value
            return result
        response = exchange.request(*request.arguments())


@with_methods(_run)
class SolitonMatcher(Driver):
    """The exchange, for programs without asyncio. ``secret`` is an account's private key."""
