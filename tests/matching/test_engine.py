"""The engine under random commands: equal to a naive model, to its own replay, and to itself after
a snapshot; its books always in order.

``SOLITON_COMMANDS`` sets how many commands there are (100,000 in a long run).
"""

from __future__ import annotations

import os
from decimal import Decimal
from random import Random

import pytest
from hypothesis import assume, given
from hypothesis.strategies import booleans, integers

from soliton.chain.errors import ChainError
from soliton.chain.orders import PRICE_CONSTANT, Side
from soliton.matching.book import check_invariants
from soliton.matching.commands import (
    CancelAllOrders,
    CancelOrder,
    CancelSource,
    Command,
    CorrectExecution,
    DeleteOrderBook,
    PlaceMarketOrder,
    PlaceOrder,
    decode,
    encode,
)
from soliton.matching.engine import Engine
from soliton.matching.events import OrderExecuted
from soliton.matching.fees import zero_fee_accounts
from soliton.matching.rules import MatchingSettings
from tests.amounts import times
from tests.matching.makers import NOW, PAIR, make_order
from tests.matching.naive import Entry, Line, NaiveBook, line_of
from tests.matching.random_commands import SETTINGS, random_commands

COMMANDS = int(os.environ.get("SOLITON_COMMANDS", times(24_000, 100_000)))
RUNS = times(8, 25)
HOSTILE = times(900, 2_000)
_REASONS = {
    CancelSource.NOT_TRACKED: "NotTracked",
    CancelSource.REQUEST: "RequestExecuted",
    CancelSource.EXPIRATION: "Expired",
    CancelSource.BALANCE_TRACKING: "InsufficientBalance",
}


class Model:
    """The naive book under the same commands."""

    def __init__(self, settings: MatchingSettings) -> None:
        self.settings = settings
        self.book: NaiveBook | None = None

    def apply(self, offset: int, now: int, command: Command) -> list[Line]:
        """What should happen."""
        match command:
            case PlaceOrder() | PlaceMarketOrder():
                return self.place(offset, now, command)
            case CancelOrder(order_id=order_id, source=source):
                book = NaiveBook() if self.book is None else self.book
                return book.cancel(order_id, _REASONS[source])
            case CancelAllOrders():
                return self.book.cancel_all("RequestExecuted") if self.book is not None else []
            case DeleteOrderBook():
                gone, self.book = self.book, None
                if gone is None:
                    return []
                return [*gone.cancel_all("OrderBookDeleted"), ("deleted",)]
            case CorrectExecution():
                raise AssertionError("this model knows no corrections")

    def place(self, offset: int, now: int, command: PlaceOrder | PlaceMarketOrder) -> list[Line]:
        """A placement, by the rules at its offset, looked up from the end."""
        if self.book is None:
            self.book = NaiveBook()
        order = command.order
        fee = next(fee for start, fee in reversed(SETTINGS.order_fees) if start <= offset)
        ticks = SETTINGS.tick_sizes[PAIR]
        tick = next(tick for start, tick in (*reversed(ticks), (-1, 1)) if start <= offset)
        available = 0
        if isinstance(command, PlaceMarketOrder):
            available = command.available_for_spending
        entry = Entry(
            order=order,
            number=0,
            level=0,
            amount=Decimal(order.amount),
            fee=order.matcher_fee,
            market=isinstance(command, PlaceMarketOrder),
            available=available,
            nominator=0,
            percent=command.percent_min_fee,
            const=command.percent_const_min_fee,
            exempt=zero_fee_accounts(fee, PAIR),
            whole_units=isinstance(command, PlaceMarketOrder) and command.whole_units,
        )
        return self.book.add(entry, now, tick, fee)


@pytest.mark.parametrize("seed", range(3))
def test_commands_that_nobody_checked(seed: int) -> None:
    """Records with changed bytes: the engine takes whatever can be read; its books stay books."""
    random = Random(seed)
    engine = Engine(SETTINGS)
    changed = 0
    for _, now, command in random_commands(seed, HOSTILE):
        record = bytearray(encode(command))
        for _ in range(random.randint(0, 2)):
            record[random.randrange(2, len(record))] = random.choice((0, 1, 127, 128, 255))
        try:
            hostile = decode(bytes(record))
        except ChainError:
            continue
        changed += hostile != command
        engine.apply(engine.last_offset + 1, now, hostile)
        for book in engine.books():
            check_invariants(book)
        assert sorted(engine._homes) == sorted(
            order.order.id for book in engine.books() for order in book.orders()
        )
    assert changed > HOSTILE // 10
    restored = Engine(SETTINGS)
    restored.restore(engine.snapshot())
    assert restored.snapshot() == engine.snapshot()


def check_found(engine: Engine, commands: list[tuple[int, int, Command]]) -> None:
    """Each order is found by its id as long as it is in a book."""
    for _, _, command in commands:
        if isinstance(command, PlaceOrder):
            order_id = command.order.id
            books = [book.get(order_id) for book in engine.books()]
            assert engine.order(order_id) is next((each for each in books if each), None)


@pytest.mark.parametrize("seed", range(RUNS))
def test_random_commands(seed: int) -> None:
    commands = list(random_commands(seed, COMMANDS // RUNS))
    live, model = Engine(SETTINGS), Model(SETTINGS)
    middle, copy = len(commands) // 2, Engine(SETTINGS)
    journal: list[tuple[int, int, bytes]] = []
    events = []
    for place, (offset, now, command) in enumerate(commands):
        if place == middle:
            copy.restore(live.snapshot())
        happened = live.apply(offset, now, command)
        assert list(map(line_of, happened)) == model.apply(offset, now, command), (place, command)
        if place >= middle:
            assert copy.apply(offset, now, command) == happened
        book = live.book(PAIR)
        if book is not None and place % 8 == 0:
            check_invariants(book)
            check_found(live, commands[: place + 1 : 16])
        journal.append((offset, now, encode(command)))
        events.append(happened)
    assert copy.snapshot() == live.snapshot()
    check_found(copy, commands)
    replay = Engine(SETTINGS)
    for (offset, now, record), happened in zip(journal, events, strict=True):
        assert replay.apply(offset, now, decode(record)) == happened
    assert replay.snapshot() == live.snapshot()
    assert sum(map(len, events)) > len(commands) // 2


@given(
    amount=integers(1, 10**12),
    price=integers(1, 10**12),
    available=integers(0, 10**12),
    fee_is_spent=booleans(),
)
def test_a_sale_that_funds_limit_is_paid_to_the_last_unit(
    amount: int, price: int, available: int, fee_is_spent: bool
) -> None:
    """No unit is sold that is not needed for what is received."""
    assume(amount * price >= PRICE_CONSTANT)
    fee_asset = PAIR.amount_asset if fee_is_spent else None
    engine = Engine(MatchingSettings())
    engine.apply(0, NOW, PlaceOrder(make_order(Side.BUY, amount, price, sender="bob")))
    sale = make_order(Side.SELL, amount, price, fee_asset=fee_asset)
    events = engine.apply(1, NOW, PlaceMarketOrder(sale, available, whole_units=True))
    for event in events:
        if isinstance(event, OrderExecuted):
            assert event.price_volume > 0
            assert (event.amount - 1) * price // PRICE_CONSTANT < event.price_volume
            assert (
                sum(event.taker_spending().values()) - (0 if fee_is_spent else event.taker_fee)
                <= available
            )
