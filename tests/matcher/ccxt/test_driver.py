"""The driver under the real ccxt, blocking and with asyncio, against a served matcher."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from decimal import Decimal
from typing import Any

import ccxt
import msgspec
import pytest
import pytest_asyncio

from soliton.chain import networks
from soliton.chain.transactions import codec
from soliton.chain.transactions.exchange import TYPE as EXCHANGE
from soliton.chain.transactions.exchange import Exchange as Payload
from soliton.crypto import base58
from soliton.matcher.ccxt import SolitonMatcher
from soliton.matcher.ccxt.asynchronous import SolitonMatcher as AsyncMatcher
from soliton.matcher.ccxt.description import ERRORS, AnswerChanged, MatcherFeeTooHigh
from soliton.matcher.node_client import Asset
from soliton.matcher.rest import books, placing
from soliton.matching.errors import KINDS
from soliton.matching.pairs import AssetPair
from tests.matcher.fakes import (
    ALICE,
    ASSETS,
    BOB,
    DOLLAR,
    GOLD,
    GOLD_WAVES,
    MATCHER,
    NOW,
    buy,
    sell,
)
from tests.matcher.websocket.streams import Place, served

SYMBOL = "Gold/WAVES"
GOLD_NAME = base58.encode(GOLD)


def credentials(place: Place) -> dict[str, Any]:
    return {
        "secret": base58.encode(ALICE.private_key),
        "urls": {"api": f"http://127.0.0.1:{place.port}"},
        "options": {"tickers": {"Gold": GOLD_NAME}},
    }


class Exchange:
    """The same calls to either driver: the blocking one runs in a thread."""

    def __init__(self, driver: Any, *, blocks: bool) -> None:
        self.driver = driver
        self._blocks = blocks

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method = getattr(self.driver, name)

        async def call(*arguments: Any) -> Any:
            if self._blocks:
                return await asyncio.to_thread(method, *arguments)
            return await method(*arguments)

        return call


@pytest_asyncio.fixture
async def place() -> AsyncIterator[Place]:
    """Two asks, and an execution of the first of them."""
    async with served() as place:
        await place.api.place(sell(BOB, 2 * 10**8, 3 * 10**8))
        await place.api.place(sell(BOB, 10**8, 4 * 10**8))
        await place.api.place(buy(BOB, 5 * 10**7, 3 * 10**8))
        yield place


@pytest_asyncio.fixture(params=["blocking", "asyncio"])
async def exchange(request: pytest.FixtureRequest, place: Place) -> AsyncIterator[Exchange]:
    if request.param == "blocking":
        driver = SolitonMatcher(credentials(place))
        yield Exchange(driver, blocks=True)
        driver.session.close()
    else:
        awaiting = AsyncMatcher(credentials(place))
        yield Exchange(awaiting, blocks=False)
        await awaiting.close()


def at_present(place: Place, exchange: Exchange) -> None:
    """Signatures and orders expire: the driver's clock has to show what the fake's does."""
    place.core.time = NOW
    exchange.driver.milliseconds = lambda: NOW


async def test_markets(exchange: Exchange) -> None:
    markets = await exchange.load_markets()
    market = markets[SYMBOL]
    assert (market["id"], market["base"], market["quote"]) == (
        *(f"{GOLD_NAME}-WAVES", "Gold", "WAVES"),
    )
    assert market["precision"] == {"amount": 1e-8, "price": 1e-8}
    assert market["spot"] is True and market["active"] is True


async def test_book_and_trades(exchange: Exchange) -> None:
    book = await exchange.fetch_order_book(SYMBOL)
    assert book["asks"] == [[3.0, 1.5], [4.0, 1.0]] and book["bids"] == []
    assert (await exchange.fetch_order_book(SYMBOL, 1))["asks"] == [[3.0, 1.5]]
    (trade,) = await exchange.fetch_trades(SYMBOL)
    assert (trade["price"], trade["amount"], trade["side"], trade["cost"]) == (3, 0.5, "buy", 1.5)
    assert trade["timestamp"] == NOW
    assert await exchange.fetch_trades(SYMBOL, NOW + 1, 5) == []


async def test_ticker_and_candles(place: Place, exchange: Exchange) -> None:
    place.core.time = NOW
    ticker = await exchange.fetch_ticker(SYMBOL)
    assert (ticker["last"], ticker["ask"], ticker["bid"], ticker["baseVolume"]) == (3, 3, None, 0.5)
    assert list(await exchange.fetch_tickers()) == [SYMBOL]
    assert await exchange.fetch_tickers(["Gold/WAVES"]) == await exchange.fetch_tickers()
    start = NOW - NOW % 60_000
    candles = await exchange.fetch_ohlcv(SYMBOL, "1m", start, 1)
    assert candles == [[start, 3.0, 3.0, 3.0, 3.0, 0.5]]


async def test_an_order_and_its_end(place: Place, exchange: Exchange) -> None:
    at_present(place, exchange)
    placed = await exchange.create_order(SYMBOL, "limit", "buy", 1, 2.5)
    assert (placed["status"], placed["price"], placed["amount"]) == ("open", 2.5, 1)
    (resting,) = place.core.placed[-1:]
    assert (resting.price, resting.amount, resting.matcher_fee) == (25 * 10**7, 10**8, 300_000)
    assert (await exchange.fetch_open_orders(SYMBOL))[0]["id"] == placed["id"]
    await place.api.place(sell(BOB, 25 * 10**6, 10**8))
    order = await exchange.fetch_order(placed["id"])
    assert (order["status"], order["filled"], order["remaining"]) == ("open", 0.25, 0.75)
    assert (order["average"], order["cost"]) == (2.5, 0.625)
    assert order["fee"]["cost"] == 0.00075 and order["fee"]["currency"] == "WAVES"
    balance = await exchange.fetch_balance()
    assert balance["WAVES"]["used"] == 1.87725 and balance["Gold"]["free"] == 100
    cancelled = await exchange.cancel_order(placed["id"], SYMBOL)
    assert cancelled["status"] == "canceled"
    assert await exchange.fetch_open_orders() == []
    (closed,) = await exchange.fetch_closed_orders(SYMBOL)
    assert (closed["id"], closed["status"]) == (placed["id"], "canceled")
    with pytest.raises(ccxt.OrderNotFound):
        await exchange.cancel_order(placed["id"])
    assert await exchange.fetch_order_trades(placed["id"]) == []


async def test_market_orders(place: Place, exchange: Exchange) -> None:
    at_present(place, exchange)
    placed = await exchange.create_order(SYMBOL, "market", "buy", 2)
    # The second level is needed, and 5 % more is allowed.
    assert place.core.placed[-1].price == 42 * 10**7
    order = await exchange.fetch_order(placed["id"])
    assert (order["type"], order["status"], order["filled"]) == ("market", "closed", 2)
    with pytest.raises(ccxt.InvalidOrder):
        await exchange.create_order(SYMBOL, "market", "sell", 2)
    with pytest.raises(ccxt.InvalidOrder):
        await exchange.create_order(SYMBOL, "limit", "buy", 2)
    with pytest.raises(ccxt.InvalidOrder):
        await exchange.create_order(SYMBOL, "stop", "buy", 2, 1)


async def test_all_orders_are_cancelled(place: Place, exchange: Exchange) -> None:
    at_present(place, exchange)
    ids = {(await exchange.create_order(SYMBOL, "limit", "buy", n, 1))["id"] for n in (1, 2)}
    assert {order["id"] for order in await exchange.cancel_all_orders(SYMBOL)} == ids
    assert await exchange.cancel_all_orders() == []
    orders = await exchange.fetch_orders(SYMBOL, None, 1)
    assert len(orders) == 1


@pytest.mark.parametrize("version", [1, 2, 3, 4])
async def test_order_versions(place: Place, exchange: Exchange, version: int) -> None:
    at_present(place, exchange)
    await exchange.create_order(SYMBOL, "limit", "buy", 1, 1, {"orderVersion": version})
    assert place.core.placed[-1].version == version


async def test_amounts_and_prices_to_the_last_unit(place: Place, exchange: Exchange) -> None:
    at_present(place, exchange)
    await exchange.create_order(SYMBOL, "limit", "buy", 0.29, 0.57)
    assert (place.core.placed[-1].amount, place.core.placed[-1].price) == (29_000_000, 57_000_000)
    await exchange.create_order(SYMBOL, "limit", "buy", 1e-8 * 123_456_789, 1e-8)
    assert place.core.placed[-1].price == 1


async def test_pairs_of_other_decimals(place: Place, exchange: Exchange) -> None:
    pair = AssetPair(GOLD, DOLLAR) if GOLD > DOLLAR else AssetPair(DOLLAR, GOLD)
    await place.api.place(buy(BOB, 10**8, 10**9, pair=pair))
    at_present(place, exchange)
    markets = await exchange.load_markets()
    (symbol,) = set(markets) - {SYMBOL}
    amount_decimals = 8 if pair.amount_asset == GOLD else 2
    price_decimals = 10 - amount_decimals
    digits = min(8, 8 + price_decimals - amount_decimals)
    assert markets[symbol]["precision"]["price"] == pytest.approx(10**-digits)
    await exchange.create_order(symbol, "limit", "buy", 1, 1)
    assert place.core.placed[-1].amount == 10**amount_decimals
    assert place.core.placed[-1].price == 10 ** (8 + price_decimals - amount_decimals)
    book = await exchange.fetch_order_book(symbol)
    assert [1.0, 1.0] in book["bids"]


async def test_errors_are_those_of_ccxt(place: Place, exchange: Exchange) -> None:
    at_present(place, exchange)
    with pytest.raises(ccxt.BadSymbol):
        await exchange.fetch_ticker("Silver/WAVES")
    with pytest.raises(ccxt.OrderNotFound):
        await exchange.fetch_order(base58.encode(bytes(32)))
    exchange.driver.secret = ""
    with pytest.raises(ccxt.AuthenticationError):
        await exchange.fetch_balance()
    exchange.driver.secret = "111"
    with pytest.raises(ccxt.AuthenticationError):
        await exchange.fetch_balance()
    place.core.time = 0
    exchange.driver.secret = base58.encode(ALICE.private_key)
    with pytest.raises(ccxt.AuthenticationError):
        await exchange.fetch_orders()


ORDER_FINALIZED = 9_437_195
"""An error of the reference matcher only."""


def test_the_table_of_errors_has_codes_of_matchers_only() -> None:
    assert set(ERRORS) <= {kind.code for kind in KINDS.values()} | {ORDER_FINALIZED}


def test_what_is_promised_is_there() -> None:
    for driver in (SolitonMatcher(), AsyncMatcher()):
        for ability, there in driver.has.items():
            if there is True and ability.startswith(("fetch", "create", "cancel")):
                assert callable(getattr(driver, ability)), ability


async def test_symbols_do_not_follow_names(place: Place, exchange: Exchange) -> None:
    """Only the user's and the operator's lists make codes; the user's comes first."""
    driver = exchange.driver
    driver.options["tickers"] = {}
    by_id = f"{GOLD_NAME}/WAVES"
    assert list(await exchange.load_markets(True)) == [by_id]
    settings = place.core.settings
    place.core.settings = msgspec.structs.replace(settings, tickers={"XAU": GOLD})
    assert list(await exchange.load_markets(True)) == ["XAU/WAVES"]
    driver.options["tickers"] = {"Metal": GOLD_NAME}
    assert list(await exchange.load_markets(True)) == ["Metal/WAVES"]
    # The matcher's code of another asset is the user's: it means the user's asset only.
    driver.options["tickers"] = {"XAU": base58.encode(DOLLAR)}
    assert list(await exchange.load_markets(True)) == [by_id]
    # Neither codes of two assets' one, nor strange ones, nor that of the coin.
    driver.options["tickers"] = {"A": GOLD_NAME, "B": GOLD_NAME, "a/b": GOLD_NAME}
    place.core.settings = settings
    assert list(await exchange.load_markets(True)) == [by_id]
    driver.options["tickers"] = {"WAVES": GOLD_NAME}
    assert by_id in await exchange.load_markets(True)


@pytest.mark.parametrize(
    ("fee", "is_signed"),
    [
        ((None, 3_000_000), True),
        ((None, 3_000_001), False),
        ((None, 5 * 10**12), False),
        ((GOLD, 10**6), True),
        ((GOLD, 10**6 + 1), False),
        ((DOLLAR, 1), False),
        ((None, 0), False),
        ((None, -1), False),
    ],
)
async def test_a_fee_that_the_matcher_names_is_signed_up_to_a_limit(
    place: Place, exchange: Exchange, fee: tuple[bytes | None, int], is_signed: bool
) -> None:
    at_present(place, exchange)

    async def minimum_fee(*_: object) -> object:
        return fee, None

    place.core.minimum_fee = minimum_fee  # type: ignore[assignment]
    before = len(place.core.placed)
    if is_signed:
        await exchange.create_order(SYMBOL, "limit", "buy", 1, 1)
        placed = place.core.placed[-1]
        assert (placed.matcher_fee_asset, placed.matcher_fee) == fee
        return
    with pytest.raises(MatcherFeeTooHigh):
        await exchange.create_order(SYMBOL, "limit", "buy", 1, 1)
    assert len(place.core.placed) == before
    if fee[1] > 0:
        asset = "WAVES" if fee[0] is None else base58.encode(fee[0])
        allowed = {"maxMatcherFees": {asset: fee[1]}}
        await exchange.create_order(SYMBOL, "limit", "buy", 1, 1, allowed)
        assert place.core.placed[-1].matcher_fee == fee[1]


async def test_who_took_is_what_the_matcher_executed(
    place: Place, exchange: Exchange, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The clock of the taker's client is late: its order has the earlier timestamp."""
    maker = sell(BOB, 10**8, 2 * 10**8, timestamp=NOW)
    taker = buy(ALICE, 10**8, 2 * 10**8, timestamp=NOW - 60_000)
    for order in (maker, taker):
        await place.api.place(order)
    [trade] = [each for each in place.core._trades[GOLD_WAVES] if each.taker_order_id == taker.id]
    draft = codec.build(
        EXCHANGE,
        Payload(taker, maker, trade.amount, trade.price, 300_000, 300_000),
        version=2,
        chain_id=taker.chain_id,
        sender_public_key=MATCHER.public_key,
        fee=300_000,
        timestamp=trade.timestamp,
    )
    settled = codec.sign(draft, MATCHER.private_key)
    trades = place.core._trades[GOLD_WAVES]
    trades[trades.index(trade)] = msgspec.structs.replace(trade, transaction_id=settled.id)
    monkeypatch.setattr(place.core, "transactions_of", lambda _: [settled])
    for order, role in ((maker, "maker"), (taker, "taker")):
        [found] = await exchange.fetch_order_trades(base58.encode(order.id))
        assert found["takerOrMaker"] == role


async def test_nothing_but_an_id_is_signed_to_cancel(place: Place, exchange: Exchange) -> None:
    """Ids come from the matcher. Behind the public key, other bytes are an order of version 1."""
    at_present(place, exchange)
    for_nothing = sell(ALICE, 10**12, 1, version=1)
    body = for_nothing.body
    assert body.startswith(ALICE.public_key)
    for name in (base58.encode(body[32:]), base58.encode(body[32:40]), "", "0OIl", "1" * 31):
        with pytest.raises(ccxt.InvalidOrder):
            await exchange.cancel_order(name, SYMBOL)
    order = await exchange.create_order(SYMBOL, "limit", "buy", 1, 1)
    assert (await exchange.cancel_order(order["id"], SYMBOL))["status"] == "canceled"


async def test_the_id_of_an_order_is_the_one_that_was_signed(
    place: Place, exchange: Exchange, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_present(place, exchange)
    monkeypatch.setattr(placing, "order_json", lambda order: {"id": "1" * 100})
    order = await exchange.create_order(SYMBOL, "limit", "buy", 1, 1)
    assert order["id"] == base58.encode(place.core.placed[-1].id)
    assert (order["price"], order["amount"], order["timestamp"]) == (1, 1, NOW)


async def test_no_other_chain_or_matcher_is_signed_for(place: Place, exchange: Exchange) -> None:
    at_present(place, exchange)
    await exchange.create_order(SYMBOL, "limit", "buy", 1, 1)
    before, settings = len(place.core.placed), place.core.settings
    place.core.public_key = BOB.public_key
    with pytest.raises(AnswerChanged):
        await exchange.create_order(SYMBOL, "limit", "buy", 1, 1)
    place.core.public_key = MATCHER.public_key
    other = networks.load("waves-mainnet")
    place.core.settings = msgspec.structs.replace(settings, network=other)
    with pytest.raises(AnswerChanged):
        await exchange.create_order(SYMBOL, "limit", "buy", 1, 1)
    assert len(place.core.placed) == before
    place.core.settings = settings
    await exchange.create_order(SYMBOL, "limit", "buy", 2, 1)


@pytest.mark.parametrize(
    "options", [{"chainId": "W"}, {"chainId": 87}, {"matcherPublicKey": base58.encode(bytes(32))}]
)
async def test_chain_and_matcher_of_the_options_count(
    exchange: Exchange, options: dict[str, Any]
) -> None:
    assert SolitonMatcher().options["chainId"] is None
    exchange.driver.options |= options
    with pytest.raises(AnswerChanged):
        await exchange.load_markets()


async def test_decimals_decide_once_how_much_an_amount_is(
    exchange: Exchange, monkeypatch: pytest.MonkeyPatch
) -> None:
    await exchange.load_markets()
    assert GOLD_NAME not in SolitonMatcher().options["assetDecimals"]
    for asset, name in ((GOLD, "Gold"), (None, "WAVES")):
        with monkeypatch.context() as patch:
            patch.setitem(ASSETS, asset, Asset(name, 0, False))
            with pytest.raises(AnswerChanged):
                await exchange.load_markets(True)
    await exchange.load_markets(True)
    exchange.driver.options["assetDecimals"] = {GOLD_NAME: 2}
    with pytest.raises(AnswerChanged):
        await exchange.load_markets(True)


@pytest.mark.parametrize("tick", ["0.001", "2", "1000000"])
async def test_a_tick_size_does_not_change_a_price(
    place: Place, exchange: Exchange, monkeypatch: pytest.MonkeyPatch, tick: str
) -> None:
    at_present(place, exchange)

    async def tick_size(*_: object) -> Decimal:
        return Decimal(tick)

    monkeypatch.setattr(books, "tick_size", tick_size)
    before = len(place.core.placed)
    calls = (("limit", "sell", 1, 3.3), ("market", "buy", 1, None))
    for kind, side, amount, price in calls:
        if tick == "0.001":
            await exchange.create_order(SYMBOL, kind, side, amount, price)
            continue
        with pytest.raises(ccxt.InvalidOrder, match="maxPriceRounding"):
            await exchange.create_order(SYMBOL, kind, side, amount, price)
    assert len(place.core.placed) == before + (2 if tick == "0.001" else 0)
