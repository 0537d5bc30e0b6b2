"""An asyncio client of a matcher, with the same methods as ``matcher``.

What lives here: ``AsyncMatcher``. What does not: the requests of its methods (``matcher_routes``),
the messages of streams (``streams``), and connections (``async_transport``; ``websockets``).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable

from soliton.client import matcher_routes as routes
from soliton.client.account import Account
from soliton.client.amounts import AssetLike
from soliton.client.async_transport import AsyncTransport
from soliton.client.binding import AsyncRunner, awaiting
from soliton.client.errors import NodeBroken, NodeUnreachable
from soliton.client.matcher import is_for_a_while, websocket_url
from soliton.client.order import key_bytes
from soliton.client.steps import Core
from soliton.client.streams import (
    DEFAULT_DEPTH,
    MAX_MESSAGE_BYTES,
    SILENCE_SECONDS,
    MatcherStream,
    Update,
)
from soliton.client.transport import ANSWER_SECONDS, CONNECT_SECONDS, USER_AGENT
from soliton.crypto import base58


class AsyncMatcher(AsyncRunner):
    """The coroutine version of ``Matcher``. Use it from one event loop.

    >>> matcher = AsyncMatcher("http://127.0.0.1:6886")  # doctest: +SKIP
    >>> await matcher.place(order)  # doctest: +SKIP
    """

    def __init__(
        self,
        url: str,
        *,
        public_key: str | None = None,
        timeout: float = ANSWER_SECONDS,
        retries: int = 3,
    ) -> None:
        """``timeout`` is the time limit of a response in seconds, ``retries`` the limit on repeated
        attempts. With a ``public_key``, that of the matcher is not requested from it, and orders
        for another matcher are not placed. Raises ``InputError`` for an invalid URL or key. Nothing
        is sent yet.
        """
        self._transport = AsyncTransport(url, timeout=timeout)
        self._exchange = self._transport.exchange
        self._pause = asyncio.sleep
        key = None if public_key is None else base58.encode(key_bytes(public_key))
        self._core = Core(retries=retries, matcher_key=key)
        self.url = url

    async def stream(
        self,
        books: Iterable[tuple[AssetLike, AssetLike]] = (),
        *,
        account: Account | None = None,
        token: str | None = None,
        rates: bool = False,
        depth: int = DEFAULT_DEPTH,
    ) -> AsyncIterator[Update]:
        """Yield changes as they happen, without end: of the order books of pairs, of the balances
        and orders of an ``account``, of the ``rates`` of fee assets.

        A lost connection is replaced; everything is then sent again, as updates that are
        ``is_whole``. An account authenticates with its signature; matchers other than Soliton's
        require a ``token``. Raises ``NodeRefused``.
        """
        from websockets.asyncio.client import connect
        from websockets.exceptions import InvalidHandshake, WebSocketException

        stream = MatcherStream(books, account=account, token=token, rates=rates, depth=depth)
        while True:
            try:
                async with connect(
                    websocket_url(self.url),
                    open_timeout=CONNECT_SECONDS,
                    max_size=MAX_MESSAGE_BYTES,
                    user_agent_header=USER_AGENT,
                ) as connection:
                    for message in stream.opening():
                        await connection.send(message)
                    while True:
                        update, reply = stream.received(
                            await asyncio.wait_for(connection.recv(), SILENCE_SECONDS)
                        )
                        if reply is not None:
                            await connection.send(reply)
                        if update is not None:
                            yield update
            except InvalidHandshake as error:
                if not is_for_a_while(error):
                    raise NodeUnreachable(f"{self.url}: {error}") from error
            except (OSError, TimeoutError, WebSocketException, NodeBroken):
                pass
            await self._pause(stream.lost())

    def __repr__(self) -> str:
        return f"<AsyncMatcher {self.url}>"

    public_key = awaiting(routes.public_key)
    settings = awaiting(routes.settings)
    rates = awaiting(routes.rates)
    markets = awaiting(routes.markets)
    pair = awaiting(routes.pair)
    book = awaiting(routes.book)
    book_status = awaiting(routes.book_status)
    pair_rules = awaiting(routes.pair_rules)
    order_fee = awaiting(routes.order_fee)
    tickers = awaiting(routes.tickers)
    trades = awaiting(routes.trades)
    candles = awaiting(routes.candles)

    place = awaiting(routes.place)
    cancel = awaiting(routes.cancel)
    cancel_all = awaiting(routes.cancel_all)
    order_status = awaiting(routes.order_status)
    order_transactions = awaiting(routes.order_transactions)
    orders = awaiting(routes.orders)
    order = awaiting(routes.order)
    reserved = awaiting(routes.reserved)
    tradable = awaiting(routes.tradable)
