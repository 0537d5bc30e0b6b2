"""A blocking client of a matcher.

What lives here: ``Matcher``. What does not: the requests of its methods (``matcher_routes``), the
messages of streams (``streams``), and connections (``transport``; ``websockets``).
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

from soliton.client import matcher_routes as routes
from soliton.client.account import Account
from soliton.client.amounts import AssetLike
from soliton.client.binding import Runner, blocking
from soliton.client.errors import NodeBroken, NodeUnreachable
from soliton.client.order import key_bytes
from soliton.client.steps import BUSY, Core
from soliton.client.streams import (
    DEFAULT_DEPTH,
    MAX_MESSAGE_BYTES,
    PATH,
    SILENCE_SECONDS,
    MatcherStream,
    Update,
)
from soliton.client.transport import (
    ANSWER_SECONDS,
    CONNECT_SECONDS,
    USER_AGENT,
    Transport,
    origin_of,
)
from soliton.crypto import base58

if TYPE_CHECKING:
    from websockets.exceptions import InvalidHandshake

_SCHEMES: Final = {"http": "ws", "https": "wss"}


class Matcher(Runner):
    """A matcher, Soliton's or the reference, at a URL. Any number of threads may use it.

    Methods that read an account's private data take the account, which signs the request. An order
    that may have been accepted is not placed again before its status has been queried.

    >>> matcher = Matcher("http://127.0.0.1:6886")  # doctest: +SKIP
    >>> order = alice.buy("1.5", gold, "0.2", matcher=matcher.public_key())  # doctest: +SKIP
    >>> matcher.place(order)  # doctest: +SKIP
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
        self._transport = Transport(url, timeout=timeout)
        self._exchange = self._transport.exchange
        self._pause = time.sleep
        key = None if public_key is None else base58.encode(key_bytes(public_key))
        self._core = Core(retries=retries, matcher_key=key)
        self.url = url

    def stream(
        self,
        books: Iterable[tuple[AssetLike, AssetLike]] = (),
        *,
        account: Account | None = None,
        token: str | None = None,
        rates: bool = False,
        depth: int = DEFAULT_DEPTH,
    ) -> Iterator[Update]:
        """Yield changes as they happen, without end: of the order books of pairs, of the balances
        and orders of an ``account``, of the ``rates`` of fee assets.

        A lost connection is replaced; everything is then sent again, as updates that are
        ``is_whole``. An account authenticates with its signature; matchers other than Soliton's
        require a ``token``. Raises ``NodeRefused``.
        """
        from websockets.exceptions import InvalidHandshake, WebSocketException
        from websockets.sync.client import connect

        stream = MatcherStream(books, account=account, token=token, rates=rates, depth=depth)
        while True:
            try:
                with connect(
                    websocket_url(self.url),
                    open_timeout=CONNECT_SECONDS,
                    max_size=MAX_MESSAGE_BYTES,
                    user_agent_header=USER_AGENT,
                ) as connection:
                    for message in stream.opening():
                        connection.send(message)
                    while True:
                        update, reply = stream.received(connection.recv(SILENCE_SECONDS))
                        if reply is not None:
                            connection.send(reply)
                        if update is not None:
                            yield update
            except InvalidHandshake as error:
                if not is_for_a_while(error):
                    raise NodeUnreachable(f"{self.url}: {error}") from error
            except (OSError, TimeoutError, WebSocketException, NodeBroken):
                pass
            self._pause(stream.lost())

    def __repr__(self) -> str:
        return f"<Matcher {self.url}>"

    public_key = blocking(routes.public_key)
    settings = blocking(routes.settings)
    rates = blocking(routes.rates)
    markets = blocking(routes.markets)
    pair = blocking(routes.pair)
    book = blocking(routes.book)
    book_status = blocking(routes.book_status)
    pair_rules = blocking(routes.pair_rules)
    order_fee = blocking(routes.order_fee)
    tickers = blocking(routes.tickers)
    trades = blocking(routes.trades)
    candles = blocking(routes.candles)

    place = blocking(routes.place)
    cancel = blocking(routes.cancel)
    cancel_all = blocking(routes.cancel_all)
    order_status = blocking(routes.order_status)
    order_transactions = blocking(routes.order_transactions)
    orders = blocking(routes.orders)
    order = blocking(routes.order)
    reserved = blocking(routes.reserved)
    tradable = blocking(routes.tradable)


def websocket_url(url: str) -> str:
    """Return the URL of a matcher's WebSocket stream."""
    origin = origin_of(url)
    return f"{_SCHEMES[origin.scheme]}://{origin.name}{origin.prefix}{PATH}"


def is_for_a_while(error: InvalidHandshake) -> bool:
    """Whether a failed handshake may succeed later: the matcher hung up, or is busy."""
    status = getattr(getattr(error, "response", None), "status_code", None)
    return status in BUSY or isinstance(error.__cause__, EOFError)
