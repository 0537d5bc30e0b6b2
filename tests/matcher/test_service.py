"""The life of orders in a whole matcher, with a node that does what the test says."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
import pytest_asyncio

from soliton.chain.addresses import address_text
from soliton.chain.orders import Order, Side
from soliton.matcher.canceling import PORTION
from soliton.matcher.journal.embedded import EmbeddedJournal
from soliton.matcher.journal.errors import JournalProblem
from soliton.matcher.node_client import Broadcast, BroadcastAnswer
from soliton.matcher.records import OrderInfo, ServiceStatus
from soliton.matcher.service import Matcher
from soliton.matching import errors
from soliton.matching.commands import CancelSource
from soliton.matching.errors import MatcherError
from soliton.matching.model import OrderStatus
from soliton.matching.pairs import AssetPair
from tests.matcher.kit import (
    ALICE,
    BOB,
    CAROL,
    COIN,
    FEE,
    MATCHER,
    PAIR,
    USD,
    FakeNode,
    address_of,
    eventually,
    eventually_equal,
    make_matcher,
    make_order,
    running,
    settings_in,
)

PRICE = 250
"""2.50 dollars for a coin: 10**8 units cost 250 cents."""


@pytest.fixture
def node() -> FakeNode:
    node = FakeNode()
    for keys in (ALICE, BOB, CAROL):
        node.fund(keys)
    return node


@pytest_asyncio.fixture
async def matcher(tmp_path: Path, node: FakeNode) -> AsyncIterator[Matcher]:
    async with running(settings_in(tmp_path), node) as matcher:
        yield matcher


async def test_an_order_rests_is_matched_and_settled(matcher: Matcher, node: FakeNode) -> None:
    sell = make_order(ALICE, Side.SELL, 10 * COIN, PRICE)
    buy = make_order(BOB, Side.BUY, 4 * COIN, PRICE + 1)
    await matcher.placing.place(sell, market=False)
    assert info_of(matcher, sell).status is OrderStatus.ACCEPTED
    assert matcher.queries.reserved(address_of(ALICE)) == {None: 10 * COIN + FEE}
    await matcher.placing.place(buy, market=False)
    info = info_of(matcher, buy)
    assert (info.status, info.filled, info.filled_fee) == (OrderStatus.FILLED, 4 * COIN, FEE)
    info = info_of(matcher, sell)
    assert (info.status, info.filled, info.average_price) == (
        OrderStatus.PARTIALLY_FILLED,
        4 * COIN,
        PRICE,
    )
    await eventually(lambda: len(node.sent) == 1)
    exchange = node.sent[0].payload
    assert (exchange.amount, exchange.buy_matcher_fee) == (4 * COIN, FEE)
    assert exchange.sell_matcher_fee == FEE * 4 // 10
    assert [each.id for each in matcher.database.transactions_of(sell.id)] == [node.sent[0].id]
    assert [(each.price, each.amount) for each in matcher.database.trades(PAIR, 10)] == [
        (PRICE, 4 * COIN)
    ]
    assert matcher.queries.reserved(address_of(ALICE)) == {None: 6 * COIN + FEE - FEE * 4 // 10}
    assert matcher.queries.reserved(address_of(BOB)) == {}
    mine = matcher.queries.history(address_of(ALICE), None, active=True, closed=True)
    assert [each.id for each in mine] == [sell.id]
    theirs = matcher.queries.history(address_of(BOB), PAIR, active=True, closed=True)
    assert [each.id for each in theirs] == [buy.id]


def info_of(matcher: Matcher, order: Order) -> OrderInfo:
    info = matcher.queries.order_info(order.id)
    assert info is not None
    return info


async def refusal(matcher: Matcher, order: Order, *, market: bool = False) -> errors.ErrorKind:
    with pytest.raises(MatcherError) as caught:
        await matcher.placing.place(order, market=market)
    return caught.value.kind


async def test_what_is_refused_reserves_nothing(matcher: Matcher, node: FakeNode) -> None:
    order = make_order(ALICE, Side.BUY, COIN, PRICE)
    forged = make_order(BOB, Side.BUY, COIN, PRICE)
    forged = msgspec.structs.replace(forged, proofs=order.proofs)
    assert await refusal(matcher, forged) is errors.ORDER_INVALID_SIGNATURE
    foreign = make_order(ALICE, Side.BUY, COIN, PRICE, matcher=BOB)
    assert await refusal(matcher, foreign) is errors.UNEXPECTED_MATCHER_PUBLIC_KEY
    unknown = make_order(ALICE, Side.BUY, COIN, PRICE, pair=AssetPair(b"\7" * 32, USD))
    assert await refusal(matcher, unknown) is errors.ASSET_NOT_FOUND
    reverse = make_order(ALICE, Side.BUY, COIN, PRICE, pair=PAIR.reversed())
    assert await refusal(matcher, reverse) is errors.ORDER_ASSET_PAIR_REVERSED
    greedy = make_order(ALICE, Side.SELL, 2 * 10**6 * COIN, PRICE)
    assert await refusal(matcher, greedy) is errors.BALANCE_NOT_ENOUGH
    late = make_order(ALICE, Side.BUY, COIN, PRICE, lifetime_ms=1_000)
    assert await refusal(matcher, late) is errors.WRONG_EXPIRATION
    node.executed.add(order.id)
    assert await refusal(matcher, order) is errors.ORDER_DUPLICATE
    for keys in (ALICE, BOB):
        assert matcher.queries.reserved(address_of(keys)) == {}


async def test_duplicates_active_and_finalized(matcher: Matcher) -> None:
    order = make_order(ALICE, Side.BUY, COIN, PRICE)
    results = await asyncio.gather(
        *(matcher.placing.place(order, market=False) for _ in range(5)), return_exceptions=True
    )
    assert [each for each in results if each is None] == [None]
    refused = [each for each in results if isinstance(each, MatcherError)]
    assert [each.kind for each in refused] == [errors.ORDER_DUPLICATE] * 4
    await matcher.canceling.cancel(order.id, address_of(ALICE), CancelSource.REQUEST)
    assert await refusal(matcher, order) is errors.ORDER_DUPLICATE
    assert matcher.queries.reserved(address_of(ALICE)) == {}


async def test_placements_of_one_account_see_what_is_left(matcher: Matcher, node: FakeNode) -> None:
    node.balances[address_of(ALICE)] = {None: 5 * (COIN + FEE), USD: 0}
    orders = [make_order(ALICE, Side.SELL, COIN, PRICE + step) for step in range(8)]
    results = await asyncio.gather(
        *(matcher.placing.place(order, market=False) for order in orders), return_exceptions=True
    )
    assert results[:5] == [None] * 5
    refused = [each.kind for each in results if isinstance(each, MatcherError)]
    assert refused == [errors.BALANCE_NOT_ENOUGH] * 3
    assert await matcher.queries.tradable(address_of(ALICE), PAIR) == {}


async def test_cancelling(matcher: Matcher) -> None:
    order = make_order(ALICE, Side.SELL, COIN, PRICE)
    await matcher.placing.place(order, market=False)
    with pytest.raises(MatcherError) as caught:
        await matcher.canceling.cancel(order.id, address_of(BOB), CancelSource.REQUEST)
    assert caught.value.kind is errors.ORDER_NOT_FOUND
    await matcher.canceling.cancel(order.id, address_of(ALICE), CancelSource.REQUEST)
    with pytest.raises(MatcherError) as caught:
        await matcher.canceling.cancel(order.id, address_of(ALICE), CancelSource.REQUEST)
    assert caught.value.kind is errors.ORDER_CANCELED
    more = [make_order(ALICE, Side.SELL, COIN, PRICE + step) for step in range(3)]
    for each in more:
        await matcher.placing.place(each, market=False)
    done = await matcher.canceling.cancel_all(address_of(ALICE), PAIR)
    assert dict(done) == {each.id: None for each in more}
    assert await matcher.canceling.cancel_all(address_of(ALICE), None) == []
    unknown = await matcher.canceling.cancel_many(address_of(ALICE), [b"\1" * 32, b"\1" * 32])
    assert [(key, error and error.kind) for key, error in unknown] == [
        (b"\1" * 32, errors.ORDER_NOT_FOUND)
    ]


async def test_market_orders(matcher: Matcher) -> None:
    await matcher.placing.place(make_order(ALICE, Side.SELL, 2 * COIN, PRICE), market=False)
    low = make_order(BOB, Side.BUY, COIN, PRICE - 1)
    assert await refusal(matcher, low, market=True) is errors.INVALID_MARKET_ORDER_PRICE
    part = make_order(BOB, Side.BUY, 5 * COIN, PRICE)
    await matcher.placing.place(part, market=True)
    info = info_of(matcher, part)
    assert (info.status, info.filled) == (OrderStatus.FILLED, 2 * COIN)
    nothing = make_order(BOB, Side.BUY, COIN, PRICE)
    await matcher.placing.place(nothing, market=True)
    info = info_of(matcher, nothing)
    assert (info.status, info.filled) == (OrderStatus.FILLED, 0)
    assert matcher.queries.reserved(address_of(BOB)) == {}


async def test_tradable_does_not_jump_while_the_node_learns(
    matcher: Matcher, node: FakeNode
) -> None:
    node.answer = BroadcastAnswer(Broadcast.NOT_YET)
    start = dict(node.balances[address_of(BOB)])
    cost = 4 * PRICE
    await matcher.placing.place(make_order(ALICE, Side.SELL, 4 * COIN, PRICE), market=False)
    await matcher.placing.place(make_order(BOB, Side.BUY, 4 * COIN, PRICE), market=False)
    left = {None: start[None] - FEE, USD: start[USD] - cost}
    assert await matcher.queries.tradable(address_of(BOB), PAIR) == left
    await eventually(lambda: len(node.sent) > 1)
    exchange = node.sent[0]
    node.update(appeared=(exchange,))
    await asyncio.sleep(0.02)
    assert await matcher.queries.tradable(address_of(BOB), PAIR) == left
    node.balances[address_of(BOB)] = {None: left[None] + 4 * COIN, USD: left[USD]}
    node.mine(exchange)
    gained = {None: left[None] + 4 * COIN, USD: left[USD]}
    await eventually_equal(lambda: matcher.queries.tradable(address_of(BOB), PAIR), gained)


async def test_a_refused_settlement_frees_the_volume(matcher: Matcher, node: FakeNode) -> None:
    node.answer = BroadcastAnswer(Broadcast.FINAL, "not allowed by script")
    await matcher.placing.place(make_order(ALICE, Side.SELL, COIN, PRICE), market=False)
    await matcher.placing.place(make_order(BOB, Side.BUY, COIN, PRICE), market=False)
    await eventually(lambda: matcher.database.trade(PAIR, 1, 0, taken_back=True) is not None)
    assert matcher.settlement.unsettled_counts() == (0, 0)
    all_of_it = node.balances[address_of(BOB)]
    await eventually_equal(lambda: matcher.queries.tradable(address_of(BOB), PAIR), all_of_it)


async def test_what_the_node_has_unseen_is_not_held_back(matcher: Matcher, node: FakeNode) -> None:
    """The answer to a second sending is the only sign that the first one was mined."""
    node.answer = BroadcastAnswer(Broadcast.LATER, "the pool is full")
    await matcher.placing.place(make_order(ALICE, Side.SELL, COIN, PRICE), market=False)
    await matcher.placing.place(make_order(BOB, Side.BUY, COIN, PRICE), market=False)
    await eventually(lambda: len(node.sent) > 0)
    own = node.balances[address_of(BOB)]
    gained = {None: (own[None] or 0) + COIN - FEE, USD: own[USD] - PRICE}
    node.balances[address_of(BOB)] = gained
    node.mined[node.sent[0].id] = node.height
    node.answer = BroadcastAnswer(Broadcast.CONFIRMED, "already in the state")
    await eventually_equal(lambda: matcher.queries.tradable(address_of(BOB), PAIR), gained)
    assert matcher.settlement.unsettled(10) == []


async def test_what_leaves_the_pool_unmined_is_not_free(matcher: Matcher, node: FakeNode) -> None:
    """It is sent again: until then, nobody may offer once more what it takes."""
    await matcher.placing.place(make_order(ALICE, Side.SELL, COIN, PRICE), market=False)
    await matcher.placing.place(make_order(BOB, Side.BUY, COIN, PRICE), market=False)
    await eventually(lambda: len(node.sent) == 1)
    own = node.balances[address_of(BOB)]
    left = {None: (own[None] or 0) - FEE, USD: own[USD] - PRICE}
    await asyncio.sleep(0.02)
    assert await matcher.queries.tradable(address_of(BOB), PAIR) == left
    node.answer = BroadcastAnswer(Broadcast.LATER, "the pool is full")
    node.update(vanished=(node.sent[0].id,))
    await eventually(lambda: len(matcher.settlement.unsettled(10)) == 1)
    await asyncio.sleep(0.02)
    assert await matcher.queries.tradable(address_of(BOB), PAIR) == left


async def test_orders_go_when_the_balance_drops_the_youngest_first(
    matcher: Matcher, node: FakeNode
) -> None:
    orders = [
        make_order(ALICE, Side.SELL, amount * COIN, PRICE, timestamp=matcher.now() - age)
        for amount, age in ((4, 300), (5, 200), (1, 100))
    ]
    for order in orders:
        await matcher.placing.place(order, market=False)
    node.balances[address_of(ALICE)] = {None: 6 * COIN, USD: 0}
    node.update(changed=frozenset((address_of(ALICE),)))
    await eventually(lambda: info_of(matcher, orders[1]).status is OrderStatus.CANCELLED)
    stay = [info_of(matcher, orders[index]).status for index in (0, 2)]
    assert stay == [OrderStatus.ACCEPTED] * 2


@pytest.mark.parametrize("fails", [False, True])
async def test_an_order_that_is_being_cancelled_needs_nothing_any_more(
    matcher: Matcher, node: FakeNode, monkeypatch: pytest.MonkeyPatch, fails: bool
) -> None:
    """As in ``AddressActor.getOrdersToCancel``; unless its cancellation fails."""
    owner = address_of(ALICE)
    old, young = (
        make_order(ALICE, Side.SELL, 4 * COIN, PRICE, timestamp=matcher.now() - age)
        for age in (200, 100)
    )
    for order in (old, young):
        await matcher.placing.place(order, market=False)
    append, may_go_on, left = EmbeddedJournal.append, asyncio.Event(), [fails]

    async def slowly(self: EmbeddedJournal, payloads: Sequence[bytes]) -> list[Any]:
        await may_go_on.wait()
        if left and left.pop():
            raise JournalProblem("the disk of the test is full")
        return await append(self, payloads)

    monkeypatch.setattr(EmbeddedJournal, "append", slowly)
    request = matcher.canceling.cancel(old.id, owner, CancelSource.REQUEST)
    cancelling = asyncio.create_task(request)
    node.balances[owner] = {None: 6 * COIN, USD: 0}
    node.update(changed=frozenset((owner,)))

    account = matcher.session.require_accounts().get(owner)
    await eventually(lambda: account.balances.regular[None] == 6 * COIN)
    may_go_on.set()
    if fails:
        with pytest.raises(MatcherError):
            await cancelling
        await eventually(lambda: info_of(matcher, young).status is OrderStatus.CANCELLED)
        assert info_of(matcher, old).status is OrderStatus.ACCEPTED
    else:
        await cancelling
        await asyncio.sleep(0.02)
        assert info_of(matcher, old).status is OrderStatus.CANCELLED
        assert info_of(matcher, young).status is OrderStatus.ACCEPTED


async def test_orders_expire(matcher: Matcher, monkeypatch: pytest.MonkeyPatch) -> None:
    order = make_order(ALICE, Side.SELL, COIN, PRICE, lifetime_ms=61_000)
    await matcher.placing.place(order, market=False)
    late = matcher.now() + 62_000
    monkeypatch.setattr(matcher.canceling, "_clock", lambda: late)
    await eventually(lambda: info_of(matcher, order).status is OrderStatus.CANCELLED)


async def test_whole_books_can_be_cancelled_and_deleted(matcher: Matcher) -> None:
    with pytest.raises(MatcherError) as caught:
        await matcher.canceling.delete_book(PAIR)
    assert caught.value.kind is errors.ORDER_BOOK_BROKEN
    order = make_order(ALICE, Side.SELL, COIN, PRICE)
    await matcher.placing.place(order, market=False)
    await matcher.canceling.cancel_all_in_book(PAIR)
    assert info_of(matcher, order).status is OrderStatus.CANCELLED
    assert list(matcher.queries.pairs()) == [PAIR]
    await matcher.canceling.delete_book(PAIR)
    assert matcher.queries.pairs() == {}
    assert matcher.queries.reserved(address_of(ALICE)) == {}


async def test_before_and_after_its_life_nothing_is_taken(tmp_path: Path, node: FakeNode) -> None:
    node.down = True
    matcher = make_matcher(settings_in(tmp_path), node)
    await matcher.start()
    order = make_order(ALICE, Side.SELL, COIN, PRICE)
    assert await refusal(matcher, order) is errors.MATCHER_IS_STARTING
    await matcher.stop()
    assert matcher.status is ServiceStatus.STOPPING
    assert await refusal(matcher, order) is errors.MATCHER_IS_STOPPING


# --- the coins for fees ---------------------------------------------------------------------------


async def test_nothing_is_matched_that_the_matcher_cannot_pay(
    matcher: Matcher, node: FakeNode, caplog: pytest.LogCaptureFixture
) -> None:
    own = address_of(MATCHER)

    def give(coins: int) -> None:
        node.balances[own] = {None: coins}
        node.update(changed=frozenset((own,)))

    node.answer = BroadcastAnswer(Broadcast.LATER, "busy")
    for _ in range(4):
        await matcher.placing.place(make_order(ALICE, Side.SELL, COIN, 250), market=False)
    accounts = matcher.session.require_accounts()
    give(2 * FEE)
    await eventually(lambda: accounts.get(own).balances.tradable(None) == 2 * FEE)
    # Three exchanges are too many, two are not.
    three = make_order(BOB, Side.BUY, 3 * COIN, 250)
    before = matcher.offsets.current
    assert await refusal(matcher, three) is errors.MATCHER_BALANCE_NOT_ENOUGH
    assert matcher.offsets.current == before
    assert address_text(own) in caplog.text and "0.006 WAVES" in caplog.text
    await matcher.placing.place(make_order(BOB, Side.BUY, 2 * COIN, 250), market=False)
    # What they cost is not there any more, though no block has them.
    one = make_order(BOB, Side.BUY, COIN, 250)
    assert await refusal(matcher, one) is errors.MATCHER_BALANCE_NOT_ENOUGH
    assert await refusal(matcher, one, market=True) is errors.MATCHER_BALANCE_NOT_ENOUGH
    # An order that only rests costs nothing.
    await matcher.placing.place(make_order(BOB, Side.BUY, COIN, 240), market=False)
    give(3 * FEE)
    await eventually(lambda: accounts.get(own).balances.tradable(None) == 3 * FEE)
    await matcher.placing.place(one, market=False)
    assert matcher.settlement.owed + matcher._replica.signer.fees == 3 * FEE
    assert matcher.placing._fee_funds._promised == 0


async def test_what_is_owed_is_counted_once(matcher: Matcher, node: FakeNode) -> None:
    for side, keys in ((Side.SELL, ALICE), (Side.BUY, BOB)):
        await matcher.placing.place(make_order(keys, side, COIN, 250), market=False)
    settlement = matcher.settlement
    await eventually(lambda: len(node.sent) >= 1)
    # The pool has it: there it counts as spent.
    await eventually(lambda: settlement.owed == 0)
    [sent] = {each.id: each for each in node.sent}.values()
    node.update(vanished=(sent.id,))
    await eventually(lambda: settlement.owed == FEE)
    node.mine(sent)
    await eventually(lambda: settlement.owed == 0)
    node.roll_back(node.height - 1)
    await eventually(lambda: settlement.owed == FEE or any(settlement.off_chain.values()))
    settlement.deactivate()
    assert settlement.owed == 0
    settlement.activate()
    assert settlement.owed == FEE


async def test_others_are_served_while_a_large_book_is_cancelled(
    tmp_path: Path, node: FakeNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    count = 3 * PORTION + 1
    settings = settings_in(tmp_path, max_active_orders=count + 1)
    async with running(settings, node) as matcher:
        for _ in range(count):
            await matcher.placing.place(make_order(ALICE, Side.SELL, COIN, PRICE), market=False)
        journal, sizes = matcher._replica.journal, []
        append = journal.append

        async def counting(payloads: Sequence[bytes]) -> Any:
            sizes.append(len(payloads))
            return await append(payloads)

        monkeypatch.setattr(journal, "append", counting)
        cancelling = asyncio.create_task(matcher.canceling.cancel_all_in_book(PAIR))
        await eventually(lambda: len(sizes) > 0)
        # An order that comes meanwhile is served before the end, and stays.
        order = make_order(BOB, Side.BUY, COIN, PRICE - 1)
        await matcher.placing.place(order, market=False)
        assert not cancelling.done()
        await cancelling
        assert max(sizes) <= PORTION + 1 and sum(sizes) == count + 1
        book = matcher.engine.book(PAIR)
        assert book is not None and list(book.index) == [order.id]
        assert matcher.queries.reserved(address_of(ALICE)) == {}


async def test_cancelling_a_book_goes_on_when_nobody_waits(matcher: Matcher) -> None:
    for _ in range(PORTION + 1):
        await matcher.placing.place(make_order(ALICE, Side.SELL, COIN, PRICE), market=False)
    cancelling = asyncio.create_task(matcher.canceling.delete_book(PAIR))
    await asyncio.sleep(0)
    cancelling.cancel()
    await eventually(lambda: matcher.engine.book(PAIR) is None)
    assert matcher.queries.pairs() == {}
