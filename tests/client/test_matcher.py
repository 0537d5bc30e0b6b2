"""The library against a devnet's matcher: placing, cancelling, reading, streams."""

from __future__ import annotations

import asyncio
import inspect
import re
import socket
import threading
from collections.abc import Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from soliton import (
    Account,
    Asset,
    AsyncMatcher,
    Matcher,
    Node,
    NodeBroken,
    NodeRefused,
    NodeTimeout,
    NodeUnreachable,
    NotFound,
    OutcomeUnknown,
)
from soliton.chain.errors import FormatError
from soliton.client import matcher_routes
from soliton.client.matcher import websocket_url
from soliton.client.steps import Answer
from soliton.client.streams import (
    AccountUpdate,
    BookUpdate,
    MatcherStream,
    OrderUpdate,
    RatesUpdate,
)
from soliton.crypto import base58
from tests.client.breaking import BreakingProxy
from tests.client.scripted import Scripted, told
from tests.e2e.programs import Program, eventually

ALICE = Account.from_seed("soliton devnet account 1", "R")
BOB = Account.from_seed("soliton devnet account 2", "R")
GOLD = Asset("DG2xFkPdDwKUoBkzGAhQtLpSGzfXLiCYPEzeKH2Ad24p", 2)
ORDER = ALICE.sell("1", GOLD, "0.5", matcher=BOB.public_key)
PLACE = "POST /matcher/orderbook"
STATUS = f"GET /matcher/orderbook/{GOLD.asset_id}/WAVES/{ORDER.id}"
ELSEWHERE = {"close"}


@pytest.fixture(scope="module")
def asked(program: Program) -> Iterator[Matcher]:
    with Matcher(program.matcher_url) as matcher:
        yield matcher


@pytest.fixture(scope="module")
def gold(node: Node) -> Asset:
    """An asset that both have."""
    issued = node.send(ALICE.issue("Gold", 10**9, 2)).wait().asset_id
    assert issued is not None
    node.send(ALICE.transfer(BOB, 10**8, issued)).wait()
    return Asset(issued, 2)


@pytest.mark.slow
def test_trading(asked: Matcher, node: Node, gold: Asset) -> None:
    key = asked.public_key()
    assert asked.settings().matcher_public_key == key and 4 in asked.settings().order_versions
    assert asked.rates() == {"WAVES": 1}
    pair = asked.pair(gold, None)
    assert pair == asked.pair(None, gold)
    # The coin comes last: of two assets, a matcher trades the one whose id is larger.
    assert (pair.amount_asset, pair.price_asset) == (gold.asset_id, "WAVES")
    sell = ALICE.sell("1", gold, "0.5", matcher=key)
    assert asked.place(sell) == sell.id
    with pytest.raises(NodeRefused) as twice:
        asked.place(sell)
    assert twice.value.code == 3148040
    assert asked.order_status(sell).status == "Accepted"
    book = asked.book(gold, None)
    assert [(each.price, each.amount) for each in book.asks] == [(sell.price, 100)]
    assert asked.book_status(gold, None).ask_amount == 100
    assert asked.reserved(ALICE)[gold.asset_id] == 100
    assert asked.tradable(ALICE, gold, None)[gold.asset_id] == 10**9 - 10**8 - 100
    buy = BOB.buy("0.4", gold, "0.5", matcher=key, version=4, price_mode="assetDecimals")
    asked.place(buy)
    eventually(lambda: asked.order_status(buy).status == "Filled")
    assert asked.order_status(sell).filled_amount == 40
    eventually(lambda: len(asked.order_transactions(buy.id)) == 1)
    (exchange,) = asked.order_transactions(buy.id)
    node.wait(exchange.id)
    mine = asked.order(ALICE, sell.id)
    assert (mine.status, mine.filled, mine.side) == ("PartiallyFilled", 40, "sell")
    assert [each.id for each in asked.orders(ALICE, active=True)] == [sell.id]
    assert [each.id for each in asked.orders(BOB, gold, None)] == [buy.id]
    assert asked.orders(ALICE, active=False) == []
    (market,) = asked.markets()
    assert market.amount_asset_name == "Gold" and asked.pair_rules(gold, None)["matchingRules"]
    assert asked.order_fee("buy", 100, 10**14, gold, None)["base"]["matcherFee"] == 300_000
    assert asked.trades(gold, None)[0].price == Decimal("0.5")
    assert asked.tickers()[0].last == Decimal("0.5")
    assert asked.candles(gold, None, "1m")[0].volume == Decimal("0.4")
    asked.cancel(ALICE, mine)
    assert asked.order_status(sell).status == "Cancelled"
    with pytest.raises(NodeRefused):
        asked.cancel(ALICE, mine)
    taken = BOB.buy("0.1", gold, "0.5", matcher=key)
    asked.place(taken, market=True)
    # Nobody sells: it is done with at once.
    eventually(lambda: asked.order_status(taken).status != "Accepted")
    assert asked.order_status(taken).filled_amount == 0
    for _ in range(3):
        asked.place(ALICE.sell("1", gold, "0.7", matcher=key))
    asked.cancel_all(ALICE, gold, None)
    eventually(lambda: asked.orders(ALICE, active=True) == [])
    asked.place(ALICE.sell("1", gold, "0.7", matcher=key))
    asked.cancel_all(ALICE)
    eventually(lambda: asked.orders(ALICE, active=True) == [])
    with pytest.raises(NotFound):
        asked.order(ALICE, buy.id)


@pytest.mark.slow
def test_streams_go_on(asked: Matcher, program: Program, gold: Asset) -> None:
    key = asked.public_key()
    first = ALICE.sell("2", gold, "0.9", matcher=key)
    seen: list[BookUpdate | AccountUpdate | RatesUpdate] = []
    with BreakingProxy(program.matcher_url) as proxy:

        def follow() -> None:
            stream = Matcher(proxy.url).stream([(gold, None)], account=ALICE, rates=True)
            for update in stream:
                seen.append(update)
                if isinstance(update, BookUpdate) and Decimal("0.8") in update.book.asks:
                    return

        follower = threading.Thread(target=follow, daemon=True)
        follower.start()
        eventually(
            lambda: {type(each) for each in seen} == {BookUpdate, AccountUpdate, RatesUpdate}
        )
        asked.place(first)
        eventually(lambda: any(order.id == first.id for order in orders_in(seen)))
        proxy.break_all()
        eventually(lambda: sum(is_whole_account(each) for each in seen) == 2)
        asked.place(ALICE.sell("1", gold, "0.8", matcher=key))
        follower.join(60)
        assert not follower.is_alive()
    last = seen[-1]
    assert isinstance(last, BookUpdate)
    assert last.book.asks == {Decimal("0.9"): Decimal(2), Decimal("0.8"): Decimal(1)}
    assert last.book.best_ask == Decimal("0.8") and last.book.best_bid is None
    asked.cancel_all(ALICE)


def orders_in(updates: list[BookUpdate | AccountUpdate | RatesUpdate]) -> Iterator[OrderUpdate]:
    for update in updates:
        if isinstance(update, AccountUpdate):
            yield from update.orders


def is_whole_account(update: object) -> bool:
    return isinstance(update, AccountUpdate) and update.is_whole


@pytest.mark.slow
async def test_awaiting(program: Program, gold: Asset) -> None:
    async with asyncio.timeout(60), AsyncMatcher(program.matcher_url) as matcher:
        key = await matcher.public_key()
        order = ALICE.sell("1", gold, "2", matcher=key)
        placed = False
        async for update in matcher.stream([(gold, None)], account=ALICE):
            if not placed:
                await matcher.place(order)
                placed = True
            if isinstance(update, AccountUpdate) and any(
                each.id == order.id for each in update.orders
            ):
                break
        await matcher.cancel(ALICE, order)
        assert (await matcher.order_status(order)).status == "Cancelled"


class Named(NamedTuple):
    """A matcher's record of an order, as far as cancelling needs it."""

    id: str
    amount_asset: str | None = None
    price_asset: str | None = None


FIRST = ALICE.sell("1", GOLD, "0.5", matcher=BOB.public_key, version=1)


@pytest.mark.parametrize(
    "name", [base58.encode(FIRST.inner.body[32:]), "", "0OIl", "1" * 31, "1" * 33]
)
def test_nothing_but_an_id_is_signed_to_cancel(name: str) -> None:
    """Records are the matcher's. Behind the public key, other bytes are an order of version 1."""
    with Matcher("http://127.0.0.1:1") as matcher, pytest.raises(FormatError):
        matcher.cancel(ALICE, Named(name))


def test_both_have_the_same_methods() -> None:
    names = {name for name in vars(Matcher) if not name.startswith("_")}
    assert names == {name for name in vars(AsyncMatcher) if not name.startswith("_")}
    for name in names:
        one, other = getattr(Matcher, name), getattr(AsyncMatcher, name)
        assert list(inspect.signature(one).parameters) == list(inspect.signature(other).parameters)
        assert one.__doc__ and other.__doc__
    used = set(re.findall(r"\basked\.(\w+)", Path(__file__).read_text(encoding="utf-8")))
    assert names - used - ELSEWHERE - {"stream"} == set()


@pytest.mark.parametrize(
    "trouble",
    [
        NodeTimeout("slow"),
        told({"error": 25612, "message": "who knows"}, 503),
        Answer(200, b"<html>"),
    ],
)
def test_an_order_that_may_have_arrived_is_asked_for(trouble: Answer | NodeTimeout) -> None:
    run = Scripted(trouble, told({"status": "Accepted", "filledAmount": 0}), retries=0)
    assert run.run(matcher_routes.place, ORDER) == ORDER.id
    assert run.paths == [PLACE, STATUS]


def test_an_order_that_did_not_arrive_is_placed_again() -> None:
    missing = told({"error": 9437193, "message": "The order is not found"}, 404)
    run = Scripted(NodeTimeout("slow"), missing, told({"success": True}))
    assert run.run(matcher_routes.place, ORDER) == ORDER.id
    assert run.paths == [PLACE, STATUS, PLACE]
    duplicate = told({"error": 3148040, "message": "has already been placed"}, 400)
    run = Scripted(NodeBroken("lost"), missing, duplicate)
    assert run.run(matcher_routes.place, ORDER) == ORDER.id
    with pytest.raises(OutcomeUnknown) as unknown:
        Scripted(NodeTimeout("x"), *[NodeBroken("x")] * 4).run(matcher_routes.place, ORDER)
    assert unknown.value.id == ORDER.id


def _serve(server: socket.socket, answers: Sequence[bytes]) -> None:
    for answer in answers:
        connection, _ = server.accept()
        with connection:
            connection.recv(4_096)
            connection.sendall(answer)


def _first(matcher: Matcher) -> object:
    return next(iter(matcher.stream(rates=True)))


def _first_awaited(matcher: AsyncMatcher) -> object:
    async def first() -> object:
        return await anext(aiter(matcher.stream(rates=True)))

    return asyncio.run(first())


@pytest.mark.parametrize(("kind", "first"), [(Matcher, _first), (AsyncMatcher, _first_awaited)])
def test_a_stream_comes_again_to_one_that_is_busy(kind: Any, first: Any) -> None:
    ends = b"Content-Length: 0\r\nConnection: close\r\n\r\n"
    # One that ends meanwhile, one that is busy, and one that has no streams.
    answers = [b"", b"HTTP/1.1 503 Busy\r\n" + ends, b"HTTP/1.1 404 Not Found\r\n" + ends]
    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=_serve, args=(server, answers))
        thread.start()
        with pytest.raises(NodeUnreachable, match="404"):
            first(kind(f"http://127.0.0.1:{server.getsockname()[1]}"))
        thread.join()


def test_where_streams_are() -> None:
    assert websocket_url("HTTP://a:1/b/") == "ws://a:1/b/ws/v0"
    assert websocket_url("https://a") == "wss://a/ws/v0"


def test_messages_of_streams() -> None:
    stream = MatcherStream([(GOLD, None)])
    assert stream.opening() == [f'{{"T":"obs","S":"{GOLD.asset_id}-WAVES","d":100}}']
    ping = '{"T":"pp","_":5}'
    assert stream.received(ping) == (None, ping)
    assert stream.received('{"T":"i","_":5}') == (None, None)
    whole = '{"T":"ob","U":0,"S":"a-b","a":[["1.0","2.0"],["1.5","1.0"]],"b":[["0.5","1.0"]]}'
    update, _ = stream.received(whole)
    assert isinstance(update, BookUpdate) and update.is_whole
    update, _ = stream.received('{"T":"ob","U":1,"S":"a-b","a":[["1.0","0.0"]]}')
    assert isinstance(update, BookUpdate) and update.book.best_ask == Decimal("1.5")
    assert update.book.best_bid == Decimal("0.5") and not update.is_whole
    with pytest.raises(NodeRefused, match="expired"):
        stream.received('{"T":"e","c":110105088,"m":"The subscription token expired"}')
    with pytest.raises(NodeBroken):
        stream.received('{"T":"e","c":109051922,"m":"System is balancing the load"}')
    for bad in (
        "",
        "[]",
        "[" * 100_000,
        '{"T":"ob","a":[["x","y"]]}',
        '{"T":"ob","a":[1]}',
        '{"T":"ob","t":[]}',
        '{"T":"ob","t":{}}',
        '{"T":"au"}',
    ):
        with pytest.raises(NodeBroken):
            stream.received(bad)
