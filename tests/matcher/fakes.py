"""A matcher that the tests hold in their hands: a real engine, and nothing else that is real.

What lives here: the fake, accounts with keys, orders that they sign, requests without sockets.
What does not: validation, journals and nodes, which the service's own tests have.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import msgspec

from soliton.chain import networks, orders
from soliton.chain.addresses import Address, address_text, from_public_key
from soliton.chain.orders import Order, PriceMode, Side
from soliton.chain.transactions.model import AnyTransaction
from soliton.chain.values import AssetId
from soliton.crypto import base58
from soliton.crypto.curve25519 import sign as sign_bytes
from soliton.crypto.hashes import blake2b256, secure_hash
from soliton.crypto.keys import KeyPair, key_pair
from soliton.matcher.effects import Listener
from soliton.matcher.node_client import Asset, Balances
from soliton.matcher.quarantine import Quarantine
from soliton.matcher.records import (
    AddressReport,
    Offsets,
    OrderInfo,
    ServiceStatus,
    Trade,
    Unsettled,
    describe,
)
from soliton.matcher.rest.app import build_app
from soliton.matcher.service import Matcher
from soliton.matcher.settings import MatcherSettings, RestApi, WebSockets
from soliton.matching import errors
from soliton.matching.commands import (
    CancelAllOrders,
    CancelOrder,
    CancelSource,
    Command,
    DeleteOrderBook,
    PlaceMarketOrder,
    PlaceOrder,
)
from soliton.matching.engine import Engine
from soliton.matching.errors import MatcherError
from soliton.matching.events import OrderAdded, OrderCanceled, OrderCancelFailed, OrderExecuted
from soliton.matching.model import OrderStatus
from soliton.matching.pairs import AssetPair, asset_text, is_correctly_ordered
from soliton.matching.placement import PlacementSettings, Restrictions
from soliton.matching.rates import Rates
from soliton.matching.rules import MatchingSettings
from soliton.web.answers import Service
from tests.api.client import call

NOW = 1_700_000_000_000
KEY = "the operator's key"
NETWORK = networks.load("devnet")
CHAIN_ID = NETWORK.chain_id
MATCHER = key_pair("the matcher")
ALICE = key_pair("alice")
BOB = key_pair("bob")
GOLD: AssetId = blake2b256(b"gold")
DOLLAR: AssetId = blake2b256(b"dollar")
PICTURE: AssetId = blake2b256(b"a picture")
NOWHERE: AssetId = blake2b256(b"an asset of no chain")
GOLD_WAVES = AssetPair(GOLD, None)
ASSETS = {
    None: Asset("WAVES", 8, False),
    GOLD: Asset("Gold", 8, False),
    DOLLAR: Asset("Dollar", 2, False),
    PICTURE: Asset("Picture", 0, False, nft=True),
}


def address_of(keys: KeyPair) -> Address:
    return from_public_key(keys.public_key, CHAIN_ID)


def text_address(keys: KeyPair) -> str:
    return address_text(address_of(keys))


def settings(**changes: Any) -> MatcherSettings:
    values: dict[str, Any] = {
        "network": NETWORK,
        "directory": Path(tempfile.gettempdir()) / "nowhere",
        "account": MATCHER,
        "id": "test",
        "rest_api": RestApi(api_key_hashes=(secure_hash(KEY.encode()),)),
        "web_sockets": WebSockets(messages_interval_ms=1, internal_messages_interval_ms=1),
        "clock": lambda: NOW,
    }
    return MatcherSettings(**(values | changes))


class FakeNode:
    """The node of the fake: it knows its height."""

    async def status(self) -> Any:
        from soliton.matcher.node_client import ChainStatus

        return ChainStatus(7, bytes(32))


class FakeCore:
    """A ``Matcher`` around an engine, all of its parts in one. Everybody is rich; each command is
    applied at once.
    """

    def __init__(self, **changes: Any) -> None:
        self.settings = settings(**changes)
        self.node: Any = FakeNode()
        self.status = ServiceStatus.WORKING
        self.engine = Engine(MatchingSettings(order_v4_start_offset=0))
        self.placing = self.canceling = self.queries = self.database = self
        self.settlement = self.snapshots = self.effects = self
        self.final = 5
        self.is_node_silent = False
        self.commands_waiting = 0
        self.quarantine = Quarantine(self.settings.directory)
        self.public_key, self.address = MATCHER.public_key, address_of(MATCHER)
        self.time = NOW
        self.fail_with: Exception | None = None
        self.placed: list[Order] = []
        self.saved = 0
        self._offset = -1
        self._infos: dict[bytes, OrderInfo] = {}
        self._trades: dict[AssetPair, list[Trade]] = {}
        self.rates = Rates(on_change=self._rate_changed)
        self._listeners: list[Listener] = []
        self.lost: list[Unsettled] = []
        self.limits: dict[AssetPair, Restrictions] = {}
        self.placement = PlacementSettings(
            MATCHER.public_key, price_assets=(None,), restrictions=self.limits
        )
        self.denied: set[AssetPair] = set()
        self.owned: Balances = {None: 10**12, GOLD: 10**10}

    @property
    def offsets(self) -> Offsets:
        return Offsets(self._offset, self._offset, 3, 1)

    def now(self) -> int:
        return self.time

    def _apply(self, command: Command) -> None:
        self._offset += 1
        events = self.engine.apply(self._offset, self.time, command)
        for index, event in enumerate(events):
            match event:
                case OrderAdded(order=order):
                    self._infos[order.id] = describe(order, order.status)
                case OrderCanceled(order=order):
                    self._infos[order.id] = describe(order, event.status)
                case OrderExecuted():
                    for order in (event.taker, event.maker):
                        self._infos[order.id] = describe(order, order.status)
                    self._trades.setdefault(event.maker.pair, []).append(
                        Trade(
                            event.offset,
                            index,
                            event.timestamp,
                            event.price,
                            event.amount,
                            event.taker.order.side,
                            event.taker.id,
                            event.maker.id,
                            None,
                        )
                    )
                case OrderCancelFailed():
                    raise MatcherError(errors.ORDER_NOT_FOUND, id=base58.encode(event.order_id))
                case _:
                    pass
        for listener in self._listeners:
            listener.on_events(self._offset, self.time, events)

    async def place(self, order: Order, *, market: bool, is_signed: bool | None = None) -> None:
        if self.fail_with is not None:
            raise self.fail_with
        if not (orders.signature_is_valid(order) if is_signed is None else is_signed):
            raise MatcherError(
                errors.ORDER_INVALID_SIGNATURE, id=base58.encode(order.id), details="wrong"
            )
        if order.id in self._infos:
            raise MatcherError(errors.ORDER_DUPLICATE, id=base58.encode(order.id))
        await self.check_pair(AssetPair(order.amount_asset, order.price_asset))
        self.placed.append(order)
        self._apply(PlaceMarketOrder(order, 10**17) if market else PlaceOrder(order))

    async def cancel(self, order_id: bytes, owner: Address, source: CancelSource) -> None:
        info = self._infos.get(order_id)
        if info is None or info.owner != owner:
            raise MatcherError(errors.ORDER_NOT_FOUND, id=base58.encode(order_id))
        if info.status is OrderStatus.CANCELLED:
            raise MatcherError(errors.ORDER_CANCELED, id=base58.encode(order_id))
        if info.status is OrderStatus.FILLED:
            raise MatcherError(errors.ORDER_FULL, id=base58.encode(order_id))
        self._apply(CancelOrder(info.pair, order_id, source, owner))

    async def cancel_all(
        self, owner: Address, pair: AssetPair | None
    ) -> list[tuple[bytes, MatcherError | None]]:
        ids = [info.id for info in self.history(owner, pair, active=True, closed=False)]
        return await self.cancel_many(owner, ids)

    async def cancel_many(
        self, owner: Address, order_ids: Sequence[bytes]
    ) -> list[tuple[bytes, MatcherError | None]]:
        out: list[tuple[bytes, MatcherError | None]] = []
        for order_id in dict.fromkeys(order_ids):
            try:
                await self.cancel(order_id, owner, CancelSource.REQUEST)
                out.append((order_id, None))
            except MatcherError as error:
                out.append((order_id, error))
        return out

    async def cancel_all_in_book(self, pair: AssetPair) -> None:
        self._apply(CancelAllOrders(pair))

    async def delete_book(self, pair: AssetPair) -> None:
        self._apply(DeleteOrderBook(pair))

    def order_info(self, order_id: bytes) -> OrderInfo | None:
        return self._infos.get(order_id)

    def history(
        self, owner: Address, pair: AssetPair | None, *, active: bool, closed: bool
    ) -> list[OrderInfo]:
        mine = [
            info
            for info in self._infos.values()
            if info.owner == owner and pair in (None, info.pair)
        ]
        mine.sort(key=lambda info: (-info.timestamp, info.id))
        open_ones = (OrderStatus.ACCEPTED, OrderStatus.PARTIALLY_FILLED)
        first = [info for info in mine if active and info.status in open_ones]
        return first + [info for info in mine if closed and info.status not in open_ones]

    def transactions_of(self, order_id: bytes) -> list[AnyTransaction]:
        return []

    def unsettled(self, limit: int) -> list[Unsettled]:
        return self.lost[:limit]

    def unsettled_counts(self) -> tuple[int, int]:
        given_up = sum(each.given_up for each in self.lost)
        return len(self.lost) - given_up, given_up

    def trades(self, pair: AssetPair, limit: int, since: int | None = None) -> list[Trade]:
        found = self._trades.get(pair, [])
        if since is None:
            return found[-limit:]
        return [trade for trade in found if trade.timestamp >= since][:limit]

    def trades_after(
        self, pair: AssetPair, place: tuple[int, int] | None, limit: int
    ) -> list[Trade]:
        found = self._trades.get(pair, [])
        return [each for each in found if (each.offset, each.index) > (place or (-1, -1))][:limit]

    def pairs(self) -> dict[AssetPair, int]:
        return {book.pair: book.created for book in self.engine.books()}

    def listed_pairs(self) -> dict[AssetPair, int]:
        return {pair: at for pair, at in self.pairs().items() if pair not in self.denied}

    async def check_pair(self, pair: AssetPair) -> None:
        if pair in self.denied:
            raise MatcherError(errors.ASSET_PAIR_IS_DENIED, assetPair=pair)
        if pair.amount_asset == pair.price_asset:
            name = asset_text(pair.amount_asset)
            raise MatcherError(errors.ASSET_PAIR_SAME_ASSETS, assetId=name)
        if not is_correctly_ordered(pair, self.placement.price_assets):
            raise MatcherError(errors.ORDER_ASSET_PAIR_REVERSED, assetPair=pair)
        for asset_id in (pair.price_asset, pair.amount_asset):
            await self.asset(asset_id)

    async def check_asset(self, asset_id: AssetId | None) -> None:
        await self.asset(asset_id)

    async def asset(self, asset_id: AssetId | None) -> Asset:
        found = ASSETS.get(asset_id)
        if found is None:
            raise MatcherError(errors.ASSET_NOT_FOUND, assetId=asset_text(asset_id))
        return found

    def order_versions(self) -> tuple[int, ...]:
        return (1, 2, 3, 4)

    def account_fee(self) -> int:
        return 0

    async def minimum_fee(
        self, pair: AssetPair, side: Side, amount: int, price: int
    ) -> tuple[tuple[AssetId | None, int], tuple[AssetId | None, int] | None]:
        return (None, 300_000), (GOLD, 100_000)

    async def tradable(self, owner: Address, pair: AssetPair) -> Balances:
        return {pair.amount_asset: 10**9}

    def reserved(self, owner: Address) -> Balances:
        out: Balances = {}
        for book in self.engine.books():
            for order in book.orders():
                if from_public_key(order.order.sender_public_key, CHAIN_ID) == owner:
                    for asset, amount in order.reservable_balance().items():
                        out[asset] = out.get(asset, 0) + amount
        return out

    async def report(self, owner: Address) -> AddressReport:
        reserved = self.reserved(owner)
        regular = dict(self.owned)
        tradable = {asset: n - reserved.get(asset, 0) for asset, n in regular.items()}
        return AddressReport(regular, reserved, tradable, {}, 0, 0, ())

    def _rate_changed(self, asset_id: AssetId, rate: float | None) -> None:
        for listener in self._listeners:
            listener.on_rate(asset_id, rate)

    async def save(self) -> None:
        self.saved += 1

    def subscribe(self, listener: Listener) -> None:
        self._listeners.append(listener)


# --- orders ---------------------------------------------------------------------------------------


def make_order(
    keys: KeyPair,
    side: Side,
    amount: int,
    price: int,
    *,
    pair: AssetPair = GOLD_WAVES,
    version: int = 3,
    timestamp: int = NOW,
    fee: int = 300_000,
) -> Order:
    """A signed order of any version."""
    draft = Order(
        version=version,
        chain_id=CHAIN_ID,
        sender_public_key=keys.public_key,
        matcher_public_key=MATCHER.public_key,
        amount_asset=pair.amount_asset,
        price_asset=pair.price_asset,
        side=side,
        amount=amount,
        price=price,
        timestamp=timestamp,
        expiration=timestamp + 86_400_000,
        matcher_fee=fee,
        price_mode=PriceMode.ASSET_DECIMALS if version >= 4 else PriceMode.DEFAULT,
    )
    return orders.sign(orders.build(draft), keys.private_key)


def buy(keys: KeyPair, amount: int, price: int, **more: Any) -> Order:
    return make_order(keys, Side.BUY, amount, price, **more)


def sell(keys: KeyPair, amount: int, price: int, **more: Any) -> Order:
    return make_order(keys, Side.SELL, amount, price, **more)


def signature_headers(keys: KeyPair, timestamp: int = NOW) -> dict[str, str]:
    """The headers by which an account proves who it is."""
    signed = sign_bytes(keys.private_key, keys.public_key + timestamp.to_bytes(8, "big"))
    return {"Timestamp": str(timestamp), "Signature": base58.encode(signed)}


def cancel_body(
    keys: KeyPair, order_id: bytes | None = None, timestamp: int | None = None
) -> dict[str, Any]:
    """A signed request to cancel."""
    body: dict[str, Any] = {"sender": base58.encode(keys.public_key)}
    signed = b""
    if timestamp is not None:
        body["timestamp"], signed = timestamp, timestamp.to_bytes(8, "big")
    if order_id is not None:
        body["orderId"], signed = base58.encode(order_id), order_id
    body["signature"] = base58.encode(sign_bytes(keys.private_key, keys.public_key + signed))
    return body


# --- requests -------------------------------------------------------------------------------------


class Reply(msgspec.Struct):
    """What came back."""

    status: int
    headers: dict[bytes, bytes]
    body: bytes

    def json(self) -> Any:
        return msgspec.json.decode(self.body)


def as_matcher(core: FakeCore | Matcher) -> Matcher:
    """The fake, as what it stands for."""
    return cast("Matcher", core)


class Api:
    """The application around a fake, asked without sockets."""

    def __init__(self, core: FakeCore | None = None) -> None:
        self.core = core or FakeCore()
        self.app = build_app(as_matcher(self.core))

    async def __call__(
        self,
        line: str,
        body: Any = None,
        headers: dict[str, str] | None = None,
        *,
        breaks_off: bool = False,
    ) -> Reply:
        """``METHOD /path?query``; a body that is no bytes goes as JSON. When it ``breaks_off``, the
        client has gone before its end.
        """
        return await exchange(self.app.gate, line, body, headers, breaks_off=breaks_off)

    async def place(self, order: Order) -> Reply:
        return await self("POST /matcher/orderbook", orders.to_json(order))

    async def keyed(self, line: str, body: Any = None) -> Reply:
        return await self(line, body, {"X-API-Key": KEY})


async def exchange(
    service: Service[Any],
    line: str,
    body: Any = None,
    headers: dict[str, str] | None = None,
    *,
    breaks_off: bool = False,
    host: str = "127.0.0.1",
) -> Reply:
    """One request over a connection without a socket; a body that is no bytes goes as JSON."""
    given = dict(headers or {})
    if body is not None and "content-type" not in {name.lower() for name in given}:
        given["content-type"] = "application/json"
    if not isinstance(body, bytes):
        body = b"" if body is None else msgspec.json.encode(body)
    answer = await call(service, line, body, given, leaves=breaks_off, host=host)
    answer.headers.pop(b"date", None)
    return Reply(answer.status, answer.headers, answer.body)
