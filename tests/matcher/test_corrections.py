"""A matcher takes back what the chain has not executed, for everybody who asks it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import pytest
import pytest_asyncio

from soliton.chain.orders import Side
from soliton.matcher.audit import Audit
from soliton.matcher.corrections import MAX_RETURNS
from soliton.matcher.market_data import MarketData
from soliton.matcher.node_client import Asset
from soliton.matcher.service import Matcher
from soliton.matcher.settlement_audit import SettlementAudit, SettlementCounts
from soliton.matcher.stores import reading
from soliton.matching.candles import Interval
from soliton.matching.engine import Engine
from soliton.matching.model import OrderStatus
from soliton.web.clock import wall_clock
from tests.matcher.kit import (
    ALICE,
    BOB,
    COIN,
    FEE,
    MATCHER,
    PAIR,
    USD,
    FakeNode,
    address_of,
    eventually,
    make_order,
    running,
    settings_in,
)
from tests.matcher.test_settlement_audit import database_of

PRICE = 250
SMART_FEE = FEE + 400_000
FAILED = "script_execution_failed"


@pytest.fixture
def node() -> FakeNode:
    node = FakeNode()
    for keys in (ALICE, BOB):
        node.fund(keys)
    return node


@pytest_asyncio.fixture
async def matcher(tmp_path: Path, node: FakeNode) -> AsyncIterator[Matcher]:
    async with running(settings_in(tmp_path), node) as matcher:
        yield matcher


async def failed(matcher: Matcher, node: FakeNode, fee: int = FEE) -> tuple[bytes, bytes]:
    """Bob takes what Alice offers, and the chain does not execute it. The ids of both orders."""
    sell = make_order(ALICE, Side.SELL, COIN, PRICE, fee=fee)
    buy = make_order(BOB, Side.BUY, COIN, PRICE, fee=fee)
    for order in (sell, buy):
        await matcher.placing.place(order, market=False)
    await eventually(lambda: len(node.sent) == 1)
    node.failures = {node.sent[0].id: FAILED}
    node.mine(node.sent[0])
    node.mine()
    await eventually(lambda: matcher.database.trade(PAIR, 1, 0, taken_back=True) is not None)
    return sell.id, buy.id


def has_sent(node: FakeNode, before: set[bytes]) -> bool:
    """Whether the node has received another exchange."""
    return node.sent[-1].id not in before


def waiting(matcher: Matcher) -> list[bytes]:
    """The orders in the book."""
    book = matcher.engine.book(PAIR)
    return [] if book is None else list(book.index)


async def volume(data: MarketData) -> int:
    day, now = Interval.DAY, wall_clock()
    candles = (await data.candles(PAIR)).candles(day, now - 2 * day, now + day)
    return sum(candle.volume for candle in candles)


async def test_what_failed_is_no_trade(matcher: Matcher, node: FakeNode) -> None:
    data = MarketData(matcher)
    matcher.effects.subscribe(data)
    await matcher.placing.place(make_order(ALICE, Side.SELL, 2 * COIN, PRICE), market=False)
    await matcher.placing.place(make_order(BOB, Side.BUY, 2 * COIN, PRICE), market=False)
    await eventually(lambda: len(node.sent) == 1)
    assert await volume(data) == 2 * COIN
    node.failures = {node.sent[0].id: FAILED}
    node.mine(node.sent[0])
    node.mine()
    await eventually(lambda: matcher.database.trade(PAIR, 1, 0) is None)
    assert await volume(data) == 0
    assert matcher.database.trades(PAIR, 10) == []
    book = matcher.engine.book(PAIR)
    assert book is not None and book.last_trade is None
    assert matcher.settlement.unsettled(10) == []


async def test_if_nobody_is_responsible_both_end(matcher: Matcher, node: FakeNode) -> None:
    sell, buy = await failed(matcher, node)
    for order_id in (sell, buy):
        info = matcher.database.order(order_id)
        assert info is not None and (info.status, info.filled) == (OrderStatus.CANCELLED, 0)
    tradable = await matcher.queries.tradable(address_of(ALICE), PAIR)
    assert tradable == node.balances[address_of(ALICE)]


async def test_who_brings_the_asset_whose_script_refuses_is_responsible(
    tmp_path: Path, node: FakeNode
) -> None:
    """The order of the other side returns, and no more than so many times."""
    node.assets[USD] = Asset("US dollar", 2, scripted=True)
    async with running(settings_in(tmp_path), node) as matcher:
        sell, buy = await failed(matcher, node, SMART_FEE)
        info = matcher.database.order(buy)
        assert info is not None and info.status is OrderStatus.CANCELLED
        for count in range(1, MAX_RETURNS + 1):
            assert waiting(matcher) == [sell]
            assert matcher.database.returns_of(sell) == count
            order = make_order(BOB, Side.BUY, COIN, PRICE, fee=SMART_FEE)
            await matcher.placing.place(order, market=False)
            before = set(node.failures)
            await eventually(partial(has_sent, node, before))
            node.failures[node.sent[-1].id] = FAILED
            node.mine(node.sent[-1])
            node.mine()
            await eventually(lambda: not matcher.settlement.pending)
        info = matcher.database.order(sell)
        assert info is not None and (info.status, info.filled) == (OrderStatus.CANCELLED, 0)
        assert waiting(matcher) == []


async def test_restarts_and_verification_agree(tmp_path: Path, node: FakeNode) -> None:
    settings = settings_in(tmp_path)
    async with running(settings, node) as matcher:
        sell, _ = await failed(matcher, node)
        snapshot = matcher.engine.snapshot()
    async with running(settings, node) as matcher:
        assert matcher.engine.snapshot() == snapshot
        assert matcher.database.trade(PAIR, 1, 0) is None
        info = matcher.database.order(sell)
        assert info is not None and info.status is OrderStatus.CANCELLED
    database = database_of(settings)
    try:
        settlement = SettlementAudit(database, node)
        audit = Audit(Engine(settings.trading.matching(lambda _: 8)), MATCHER.public_key)
        async with reading(settings) as (_, batches):
            async for batch in batches:
                for record in batch:
                    await settlement.take(record.offset, audit.take(record))
                    for correction in audit.corrections:
                        settlement.correct(record.offset, correction)
        audit.finish()
        await settlement.finish()
        assert settlement.faults == []
        assert settlement.counts == SettlementCounts(taken_back=1)
        assert audit.counts.corrections == 1
    finally:
        await database.close()


async def test_another_database_follows_the_journal(tmp_path: Path, node: FakeNode) -> None:
    """As that of another matcher, which has not seen why."""
    settings = settings_in(tmp_path)
    async with running(settings, node) as matcher:
        sell, _ = await failed(matcher, node)
        before = matcher.database.order(sell)
        await matcher.database.flush()
    for path in (settings.directory / "orders").iterdir():
        path.unlink()
    async with running(settings, node) as matcher:
        assert matcher.database.order(sell) == before
        assert matcher.database.trades(PAIR, 10) == []
        assert matcher.database.pending() == {} and matcher.settlement.unsettled(10) == []
