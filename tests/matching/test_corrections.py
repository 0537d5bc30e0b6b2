"""Executions that are taken back, and that count again: nothing is lost and nothing is doubled."""

from __future__ import annotations

from random import Random

import pytest

from soliton.chain.orders import Order, Side
from soliton.matching.book import LastTrade, check_invariants
from soliton.matching.commands import (
    CancelOrder,
    CancelSource,
    CorrectedSide,
    CorrectExecution,
    PlaceOrder,
    decode,
    encode,
)
from soliton.matching.engine import Engine
from soliton.matching.events import (
    CancelReason,
    Event,
    ExecutionCorrected,
    OrderAdded,
    OrderCanceled,
    OrderExecuted,
)
from soliton.matching.model import ActiveOrder
from soliton.matching.rules import MatchingSettings
from tests.amounts import times
from tests.matching.makers import NOW, PAIR, make_order

STEPS = times(150, 1_000)
PRICE = 10**8


class Market:
    """An engine, the last states of its orders, and all executions."""

    def __init__(self) -> None:
        self.engine = Engine(MatchingSettings())
        self.journal: list[bytes] = []
        self.states: dict[bytes, ActiveOrder] = {}
        self.counting: list[OrderExecuted] = []
        self.taken_back: list[OrderExecuted] = []

    def apply(self, command: PlaceOrder | CancelOrder | CorrectExecution) -> list[Event]:
        self.journal.append(encode(command))
        events = self.engine.apply(len(self.journal) - 1, NOW, command)
        for event in events:
            match event:
                case OrderAdded(order=order) | OrderCanceled(order=order):
                    self.states[order.id] = order
                case OrderExecuted():
                    self.counting.append(event)
                    self.states |= {each.id: each for each in (event.taker, event.maker)}
                case ExecutionCorrected():
                    self.states |= {each.id: each for each in (event.taker, event.maker)}
        return events

    def place(self, order: Order) -> list[Event]:
        return self.apply(PlaceOrder(order))

    def side(self, active: ActiveOrder, *, goes_on: bool) -> CorrectedSide:
        book = self.engine.book(PAIR)
        last = self.states[active.id]
        return CorrectedSide(
            order=active.order,
            is_market=False,
            rests=book is not None and active.id in book.index,
            goes_on=goes_on,
            amount=last.amount,
            fee=last.fee,
            price_nominator=last.price_nominator,
        )

    def correct(
        self,
        event: OrderExecuted,
        *,
        stands: bool = False,
        taker: bool = False,
        maker: bool = False,
    ) -> list[Event]:
        """Take an execution back, or count it again; who goes on."""
        old, new = (self.taken_back, self.counting) if stands else (self.counting, self.taken_back)
        old.remove(event)
        earlier = self.counting[-1] if self.counting and not stands else None
        command = CorrectExecution(
            *(event.offset, 0, stands, event.amount, event.price),
            *(event.taker_fee, event.maker_fee),
            self.side(event.taker, goes_on=taker),
            self.side(event.maker, goes_on=maker),
            None if earlier is None else (earlier.price, earlier.amount, earlier.taker.order.side),
        )
        new.append(event)
        return self.apply(command)

    def check(self) -> None:
        """Every order has filled exactly what its executions say."""
        filled: dict[bytes, int] = {}
        nominators: dict[bytes, int] = {}
        for event in self.counting:
            for active in (event.taker, event.maker):
                filled[active.id] = filled.get(active.id, 0) + event.amount
                nominators[active.id] = nominators.get(active.id, 0) + event.amount * event.price
        book = self.engine.book(PAIR)
        for order_id, state in self.states.items():
            assert state.filled_amount == filled.get(order_id, 0)
            assert state.price_nominator == nominators.get(order_id, 0)
            resting = None if book is None else book.get(order_id)
            assert resting is None or resting == state
        if book is not None:
            check_invariants(book)


def one_execution(taker_amount: int = 5, maker_amount: int = 5) -> tuple[Market, OrderExecuted]:
    market = Market()
    market.place(make_order(Side.SELL, maker_amount, PRICE, sender="alice"))
    market.place(make_order(Side.BUY, taker_amount, PRICE, sender="bob"))
    return market, market.counting[0]


def test_the_innocent_order_returns_and_the_other_one_ends() -> None:
    market, event = one_execution()
    corrected, ended, added = market.correct(event, maker=True)
    assert isinstance(corrected, ExecutionCorrected) and not corrected.stands
    assert isinstance(ended, OrderCanceled) and ended.reason is CancelReason.NOT_SETTLED
    assert ended.order.id == event.taker.id and ended.status.value == "Cancelled"
    assert isinstance(added, OrderAdded) and added.order.id == event.maker.id
    book = market.engine.book(PAIR)
    assert book is not None and list(book.index) == [event.maker.id] and book.last_trade is None
    market.check()


def test_one_that_rests_keeps_its_place() -> None:
    market, event = one_execution(5, 9)
    market.place(make_order(Side.SELL, 7, PRICE, sender="carol"))
    [_, ended] = market.correct(event, maker=True)
    assert isinstance(ended, OrderCanceled)
    book = market.engine.book(PAIR)
    assert book is not None
    assert [each.amount for each in book.asks.orders()] == [9, 7]
    market.check()


def test_one_that_returns_is_matched_at_the_prices_of_others() -> None:
    market, event = one_execution()
    market.place(make_order(Side.BUY, 3, 2 * PRICE, sender="carol"))
    events = market.correct(event, maker=True)
    [executed] = [each for each in events if isinstance(each, OrderExecuted)]
    assert (executed.price, executed.amount) == (2 * PRICE, 3)
    book = market.engine.book(PAIR)
    assert book is not None and [each.amount for each in book.asks.orders()] == [2]
    assert book.last_trade == LastTrade(2 * PRICE, 3, Side.SELL)
    market.check()


def test_nobody_goes_on_whose_order_has_expired() -> None:
    market = Market()
    market.place(make_order(Side.SELL, 5, PRICE, sender="alice", expiration=NOW + 10))
    market.place(make_order(Side.BUY, 5, PRICE, sender="bob"))
    event = market.counting[0]
    command = CorrectExecution(
        *(1, 0, False, 5, PRICE, event.taker_fee, event.maker_fee),
        market.side(event.taker, goes_on=False),
        market.side(event.maker, goes_on=True),
    )
    events = market.engine.apply(2, NOW + 11, command)
    assert [type(each) for each in events] == [ExecutionCorrected, OrderCanceled, OrderCanceled]


def test_a_command_of_an_older_state_does_nothing() -> None:
    market, event = one_execution(5, 9)
    maker = market.side(event.maker, goes_on=True)
    taker = market.side(event.taker, goes_on=False)
    market.apply(CancelOrder(PAIR, event.maker.id, CancelSource.REQUEST))
    before = market.engine.snapshot()
    command = CorrectExecution(*(1, 0, False, 5, PRICE, 0, 0), taker, maker)
    assert market.apply(command) == []
    after = Engine(MatchingSettings())
    after.restore(before)
    after.skip(market.engine.last_offset, NOW)
    assert market.engine.snapshot() == after.snapshot()


def test_what_is_executed_after_all_is_missing_again() -> None:
    market, event = one_execution()
    market.correct(event, maker=True)
    events = market.correct(event, stands=True, maker=True)
    assert [each.status.value for each in events if isinstance(each, OrderCanceled)] == [
        "Filled",
        "Filled",
    ]
    book = market.engine.book(PAIR)
    assert book is not None and not book.index
    assert book.last_trade == LastTrade(PRICE, 5, Side.BUY)
    market.check()


@pytest.mark.parametrize("seed", range(4))
def test_nothing_is_lost_or_doubled(seed: int) -> None:
    """Random orders, cancellations and corrections; the replay and a snapshot agree."""
    random = Random(seed)
    market = Market()
    for step in range(STEPS):
        draw = random.random()
        if draw < 0.25 and market.counting:
            event = random.choice(market.counting)
            taker, maker = random.choice(((True, False), (False, True), (False, False)))
            market.correct(event, taker=taker, maker=maker)
        elif draw < 0.35 and market.taken_back:
            market.correct(random.choice(market.taken_back), stands=True, taker=True, maker=True)
        elif draw < 0.45 and market.states:
            order_id = random.choice(list(market.states))
            market.apply(CancelOrder(PAIR, order_id, CancelSource.REQUEST))
        else:
            market.place(
                make_order(
                    random.choice((Side.BUY, Side.SELL)),
                    random.randint(1, 20) * 10,
                    PRICE * random.randint(9, 11),
                    sender=random.choice(("alice", "bob", "carol")),
                    timestamp=NOW - step,
                )
            )
        market.check()
    assert market.taken_back
    replay = Engine(MatchingSettings())
    for offset, record in enumerate(market.journal):
        replay.apply(offset, NOW, decode(record))
        if offset == len(market.journal) // 2:
            copy = Engine(MatchingSettings())
            copy.restore(replay.snapshot())
            replay = copy
    assert replay.snapshot() == market.engine.snapshot()
