"""The subscriptions of all clients, and the timers that flush changes to them.

What lives here: subscribing and its limits, and the flush timers. What does not: connections
(``hub``), and the messages of each stream.

Source: wavesplatform/matcher
``dex/src/main/scala/com/wavesplatform/dex/api/ws/actors/WsExternalClientDirectoryActor.scala``.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from decimal import Decimal
from typing import Final

from soliton.chain.addresses import Address, address_text, parse_address
from soliton.chain.errors import ChainError, FormatError
from soliton.chain.values import AssetId
from soliton.matcher.effects import Listener
from soliton.matcher.errors import NodeUnavailable
from soliton.matcher.rest.answers import Refusal
from soliton.matcher.rest.auth import check_signed_time, not_that_user
from soliton.matcher.rest.requests import owner_of, read_public_key
from soliton.matcher.service import Matcher
from soliton.matcher.websocket.addresses import AddressFeed, Decimals
from soliton.matcher.websocket.books import BookFeed
from soliton.matcher.websocket.connection import Connection
from soliton.matcher.websocket.internal import InternalFeed
from soliton.matcher.websocket.messages import (
    RATES_KEY,
    ClientMessage,
    SubscribeAddress,
    SubscribeBook,
    SubscribeRates,
    Unsubscribe,
    encode,
    next_update_id,
    numbered,
)
from soliton.matcher.websocket.tokens import SIGNATURE, check_token
from soliton.matching import errors
from soliton.matching.arithmetic import decimal_text
from soliton.matching.errors import MatcherError
from soliton.matching.events import (
    Event,
    ExecutionCorrected,
    OrderAdded,
    OrderCanceled,
    OrderExecuted,
)
from soliton.matching.pairs import AssetPair, asset_text, parse_asset

_DELETED_RATE: Final = "-1"
_RETRY_MS: Final = 1_000

logger = logging.getLogger("soliton.matcher")


class Client:
    """A connection and its subscriptions, in the order of subscribing."""

    __slots__ = ("addresses", "connection", "kind", "pairs", "rates")

    def __init__(self, connection: Connection, kind: str) -> None:
        self.connection = connection
        self.kind = kind
        self.pairs: dict[AssetPair, None] = {}
        self.addresses: dict[Address, asyncio.TimerHandle] = {}
        self.rates: int | None = None


class Subscriptions(Listener):
    """All subscriptions, and a listener of the matcher."""

    def __init__(self, core: Matcher) -> None:
        self._core = core
        self._settings = core.settings.web_sockets
        self._decimals = Decimals(core)
        self.clients: dict[Connection, Client] = {}
        self.operators: set[Connection] = set()
        """The operator's connections."""
        self._books: dict[AssetPair, BookFeed] = {}
        self._addresses: dict[Address, AddressFeed] = {}
        self._realtime = _realtime_accounts(core)
        self.internal = InternalFeed(core, self._decimals)
        self._pending: set[str] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    async def handle(self, message: ClientMessage, client: Client) -> None:
        """Handle a client's message. Raises ``MatcherError`` or ``NodeUnavailable``."""
        match message:
            case SubscribeBook():
                await self._subscribe_book(message, client)
            case SubscribeAddress():
                await self._subscribe_address(message, client)
            case SubscribeRates() if client.rates is None:
                client.rates = 0
                rates = {asset_text(a): _rate_text(r) for a, r in self._core.rates.latest().items()}
                client.connection.push(numbered(0, self._rates_body(rates)))
            case Unsubscribe(key=key):
                self._unsubscribe(key, client)
            case _:
                pass

    def forget(self, connection: Connection) -> None:
        """Remove a closed connection."""
        self.operators.discard(connection)
        self.internal.remove(connection)
        client = self.clients.pop(connection, None)
        if client is not None:
            for pair in list(client.pairs):
                self._leave_book(pair, client)
            for address in list(client.addresses):
                self._leave_address(address, client)

    # --- order books ------------------------------------------------------------------------------

    async def _subscribe_book(self, message: SubscribeBook, client: Client) -> None:
        pair = _read_pair(message.pair)
        if pair in client.pairs:
            return
        await self._core.queries.check_pair(pair)
        amount = await self._decimals.of(pair.amount_asset)
        price = await self._decimals.of(pair.price_asset)
        if pair in client.pairs or client.connection not in self.clients:
            # Subscribed or disconnected meanwhile.
            return
        feed = self._books.get(pair)
        if feed is None:
            feed = self._books[pair] = BookFeed(self._core, pair, amount, price)
        client.pairs[pair] = None
        feed.add(client.connection, message.resume)
        limit = self._settings.max_order_books
        if len(client.pairs) > limit:
            oldest = next(iter(client.pairs))
            self._leave_book(oldest, client)
            error = MatcherError(errors.SUBSCRIPTIONS_LIMIT_REACHED, limit=limit, id=oldest.key)
            client.connection.push_error(error)

    def _leave_book(self, pair: AssetPair, client: Client) -> None:
        if pair in client.pairs:
            del client.pairs[pair]
            feed = self._books[pair]
            feed.remove(client.connection)
            if not feed:
                feed.close()
                del self._books[pair]

    # --- accounts ---------------------------------------------------------------------------------

    async def _subscribe_address(self, message: SubscribeAddress, client: Client) -> None:
        core, settings = self._core, self._settings
        chain_id = core.settings.network.chain_id
        address = _read_address(message.address, chain_id)
        if message.auth_type == SIGNATURE:
            expiration = check_stream_signature(core, message, address)
        else:
            key = settings.jwt_public_key
            expiration = check_token(message.auth_type, message.token, address, key, chain_id)
        delay = max(expiration - core.now(), 0) / 1_000
        timer = asyncio.get_running_loop().call_later(delay, self._token_expired, address, client)
        known = client.addresses.get(address)
        client.addresses[address] = timer
        if known is not None:
            known.cancel()
            return
        feed = self._addresses.get(address)
        if feed is None:
            feed = self._addresses[address] = AddressFeed(core, address, self._decimals)
        try:
            await feed.add(client.connection, message.flags)
        except BaseException:
            # Not subscribed: the client may try again.
            self._leave_address(address, client)
            self._leave_feed(address, client)
            raise
        if client.addresses.get(address) is not timer:
            # The token has expired meanwhile.
            self._leave_feed(address, client)
            return
        limit = settings.max_addresses
        if len(client.addresses) > limit:
            oldest = next(iter(client.addresses))
            self._leave_address(oldest, client)
            text = address_text(oldest)
            error = MatcherError(errors.SUBSCRIPTIONS_LIMIT_REACHED, limit=limit, id=text)
            client.connection.push_error(error)

    def _token_expired(self, address: Address, client: Client) -> None:
        error = MatcherError(errors.SUBSCRIPTION_TOKEN_EXPIRED, address=address_text(address))
        client.connection.push_error(error)
        self._leave_address(address, client)

    def _leave_address(self, address: Address, client: Client) -> None:
        timer = client.addresses.pop(address, None)
        if timer is not None:
            timer.cancel()
            self._leave_feed(address, client)

    def _leave_feed(self, address: Address, client: Client) -> None:
        feed = self._addresses.get(address)
        if feed is not None:
            feed.remove(client.connection)
            if not feed:
                del self._addresses[address]

    def _unsubscribe(self, key: str, client: Client) -> None:
        if key == RATES_KEY:
            client.rates = None
        elif "-" in key:
            self._leave_book(_read_pair(key), client)
        else:
            chain_id = self._core.settings.network.chain_id
            self._leave_address(_read_address(key, chain_id), client)

    # --- the matcher's events ---------------------------------------------------------------------

    def on_events(self, offset: int, timestamp: int, events: Sequence[Event]) -> None:
        """Note the changes for subscribers; they are sent after an interval."""
        del timestamp
        if self._books:
            self._schedule("books", self._settings.messages_interval_ms)
        for event in events:
            self.internal.on_event(offset, event)
            if self._addresses:
                self._note_owners(event)
        if self.operators:
            self._schedule("internal", self._settings.internal_messages_interval_ms)

    def _note_owners(self, event: Event) -> None:
        match event:
            case OrderAdded(order=order) | OrderCanceled(order=order):
                orders = [order]
            case OrderExecuted() | ExecutionCorrected():
                orders = [event.taker, event.maker]
            case _:
                return
        for owner in {order.owner for order in orders}:
            feed = self._addresses.get(owner)
            if feed is not None:
                feed.on_event(event)
                self._schedule_address(owner)

    def on_balances(self, address: Address, assets: frozenset[AssetId | None]) -> None:
        """Note changed balances."""
        feed = self._addresses.get(address)
        if feed is not None:
            feed.on_balances(assets)
            self._schedule_address(address)

    def on_rate(self, asset_id: AssetId, rate: float | None) -> None:
        """Send a changed rate immediately."""
        text = _DELETED_RATE if rate is None else _rate_text(rate)
        body = self._rates_body({asset_text(asset_id): text})
        for client in self.clients.values():
            if client.rates is not None:
                client.rates = next_update_id(client.rates)
                client.connection.push(numbered(client.rates, body))

    def _rates_body(self, rates: dict[str, str]) -> bytes:
        return encode({"T": "ru", "_": self._core.now(), "R": rates})

    def _schedule_address(self, address: Address) -> None:
        if address in self._realtime:
            # Not held up by another account's flush that waits for its interval.
            self._schedule("realtime", 0)
        else:
            self._schedule("addresses", self._settings.messages_interval_ms)

    def _schedule(self, stream: str, delay_ms: int) -> None:
        if stream not in self._pending:
            self._pending.add(stream)
            asyncio.get_running_loop().call_later(delay_ms / 1_000, self._start_flush, stream)

    def _start_flush(self, stream: str) -> None:
        self._pending.discard(stream)
        if stream == "books":
            for feed in self._books.values():
                feed.flush()
            return
        task = asyncio.create_task(self._flush(stream))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _flush(self, stream: str) -> None:
        """Flush the feeds; an error of one must not affect the others."""
        for feed in [self.internal] if stream == "internal" else self._feeds(stream):
            try:
                await feed.flush()
            except NodeUnavailable as error:
                logger.warning("a stream has to wait: %s", error)
                self._schedule(stream, _RETRY_MS)
            except Exception as error:
                known = isinstance(error, MatcherError)
                logger.warning("a stream lost an update: %s", error, exc_info=not known)

    def _feeds(self, stream: str) -> list[AddressFeed]:
        addresses = self._addresses
        if stream == "realtime":
            return [addresses[each] for each in self._realtime if each in addresses]
        return list(addresses.values())


def _realtime_accounts(core: Matcher) -> frozenset[Address]:
    """The accounts whose streams are not throttled; liquidity providers' never are."""
    keys = core.settings.web_sockets.realtime_accounts | core.settings.trading.lp_accounts
    return frozenset(owner_of(core, key) for key in keys)


def check_stream_signature(core: Matcher, message: SubscribeAddress, owner: Address) -> int:
    """The expiration (ms) of a subscription signed by the account; raises ``MatcherError``."""
    try:
        public_key = read_public_key(message.public_key, "SimpleErrorResponse")
        check_signed_time(core, public_key, message.timestamp, message.token)
        if owner_of(core, public_key) != owner:
            raise not_that_user()
    except Refusal as refusal:
        raise refusal.error from None
    return message.timestamp + core.settings.rest_api.signature_window_ms


def _read_pair(text: str) -> AssetPair:
    amount, _, price = text.partition("-")
    try:
        return AssetPair(parse_asset(amount), parse_asset(price))
    except FormatError as error:
        raise MatcherError(errors.INVALID_ASSET, assetId=text[:100], reason=str(error)) from None


def _read_address(text: str, chain_id: int) -> Address:
    try:
        return parse_address(text, chain_id)
    except ChainError as error:
        raise MatcherError(errors.INVALID_ADDRESS, reason=str(error)) from None


def _rate_text(rate: float) -> str:
    """A rate in the reference's form: unlike other numbers of its streams without an exponent, and
    whole ones without a decimal point.
    """
    return decimal_text(Decimal(repr(rate)))
