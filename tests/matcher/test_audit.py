"""The audit agrees with a right engine, and names the first offset of a wrong one."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from soliton.chain import orders
from soliton.chain.orders import Side
from soliton.matcher.audit import CONSERVATION, JOURNAL, PRIORITY, Audit, RuleBroken
from soliton.matcher.journal import Record
from soliton.matching.commands import CancelOrder, CancelSource, Command, PlaceOrder, encode
from soliton.matching.engine import Engine
from soliton.matching.events import Event, OrderAdded, OrderExecuted
from soliton.matching.rules import MatchingSettings
from tests.matching.makers import MATCHER, NOW, PAIR, make_order
from tests.matching.random_commands import SETTINGS, random_commands

COIN = 10**8
BUY, SELL = Side.BUY, Side.SELL

# Two sellers at the best price, one behind; a buyer who takes the first and half of the second.
ORDERS = [
    make_order(SELL, 5 * COIN, 200, sender="alice", timestamp=NOW - 1),
    make_order(SELL, 5 * COIN, 200, sender="bob", timestamp=NOW - 2),
    make_order(SELL, 5 * COIN, 210, sender="carol", timestamp=NOW - 3),
    make_order(BUY, 7 * COIN, 205, sender="dave", timestamp=NOW - 4),
    make_order(BUY, 1 * COIN, 190, sender="dave", timestamp=NOW - 5),
]
COMMANDS: list[Command] = [
    *(PlaceOrder(order) for order in ORDERS),
    CancelOrder(PAIR, ORDERS[2].id, CancelSource.REQUEST),
]
EXECUTING, CANCELLING = 3, 5


def records(commands: list[Command]) -> list[Record]:
    return [Record(offset, NOW, encode(command)) for offset, command in enumerate(commands)]


@pytest.mark.parametrize("seed", range(20))
def test_what_the_engine_does_is_right(seed: int) -> None:
    audit = Audit(Engine(SETTINGS), MATCHER, signatures=False)
    given = list(random_commands(seed, 600))
    executions = 0
    placed: set[bytes] = set()
    count = 0
    for offset, timestamp, command in given:
        order = getattr(command, "order", None)
        if order is not None:
            if order.id in placed:
                continue
            placed.add(order.id)
        executions += len(audit.take(Record(offset, timestamp, encode(command))))
        count += 1
    audit.finish()
    assert audit.counts.commands == count
    assert audit.counts.executions == executions > 0


def test_it_goes_on_from_a_snapshot() -> None:
    given = records(COMMANDS)
    whole = Engine(MatchingSettings())
    for offset, timestamp, _ in given[:EXECUTING]:
        whole.apply(offset, timestamp, COMMANDS[offset])
    engine = Engine(MatchingSettings())
    engine.restore(whole.snapshot())
    audit = Audit(engine, MATCHER, signatures=False)
    assert [len(audit.take(record)) for record in given[EXECUTING:]] == [2, 0, 0]
    audit.finish()


def test_signatures_are_counted() -> None:
    audit = Audit(Engine(MatchingSettings()), MATCHER)
    for record in records(COMMANDS):
        audit.take(record)
    assert (audit.counts.orders, audit.counts.unsigned) == (5, 5)


class Wrong(Engine):
    """An engine whose events at one offset are falsified."""

    def __init__(self, offset: int, falsify: Callable[[Wrong, list[Event]], list[Event]]) -> None:
        super().__init__(MatchingSettings())
        self._offset = offset
        self._falsify = falsify

    def apply(self, offset: int, timestamp: int, command: Command) -> list[Event]:
        events = super().apply(offset, timestamp, command)
        return self._falsify(self, events) if offset == self._offset else events


def audited(engine: Engine) -> None:
    """All commands and the end."""
    audit = Audit(engine, MATCHER, signatures=False)
    for record in records(COMMANDS):
        audit.take(record)
    audit.finish()


def changed(**fields: object) -> Callable[[Wrong, list[Event]], list[Event]]:
    """The first execution with other fields."""

    def falsify(_engine: Wrong, events: list[Event]) -> list[Event]:
        index = next(i for i, each in enumerate(events) if isinstance(each, OrderExecuted))
        events[index] = msgspec.structs.replace(events[index], **fields)
        return events

    return falsify


def second_first(engine: Wrong, events: list[Event]) -> list[Event]:
    """Both executions, in the other order."""
    events[1], events[2] = events[2], events[1]
    return events


def lost(engine: Wrong, events: list[Event]) -> list[Event]:
    """The rest of what was placed disappears."""
    book = engine.book(PAIR)
    assert book is not None and isinstance(events[0], OrderAdded)
    order = events[0].order
    side = book.bids if order.order.side is Side.BUY else book.asks
    side.remove(book.index.pop(order.id), order.id)
    return events


def nothing(_engine: Wrong, _events: list[Event]) -> list[Event]:
    return []


def maker_gets_more(_engine: Wrong, events: list[Event]) -> list[Event]:
    event = events[1]
    assert isinstance(event, OrderExecuted)
    maker = msgspec.structs.replace(event.maker, amount=event.maker.amount + 1)
    events[1] = msgspec.structs.replace(event, maker=maker)
    return events


@pytest.mark.parametrize(
    ("offset", "falsify", "rule"),
    [
        (EXECUTING, second_first, PRIORITY),
        (EXECUTING, changed(price=206), PRIORITY),
        (EXECUTING, changed(price=199), PRIORITY),
        (EXECUTING, changed(amount=5 * COIN + 1), CONSERVATION),
        (EXECUTING, changed(amount=0), CONSERVATION),
        (EXECUTING, changed(maker_fee=300_001), CONSERVATION),
        (EXECUTING, changed(maker_is_done=False), PRIORITY),
        (EXECUTING, maker_gets_more, CONSERVATION),
        (EXECUTING, nothing, PRIORITY),
        (4, lost, CONSERVATION),
        (0, nothing, PRIORITY),
        (CANCELLING, nothing, PRIORITY),
    ],
)
def test_a_wrong_engine_is_found(
    offset: int, falsify: Callable[[Wrong, list[Event]], list[Event]], rule: str
) -> None:
    with pytest.raises(RuleBroken) as told:
        audited(Wrong(offset, falsify))
    assert (told.value.rule, told.value.offset) == (rule, offset)


def test_a_wrong_journal_is_found() -> None:
    good = records(COMMANDS)
    stranger = make_order(BUY, COIN, 100)
    stranger = orders.build(msgspec.structs.replace(stranger, matcher_public_key=bytes(32)))
    for wrong in (
        Record(2, NOW, b"\xff\xff"),
        Record(1, NOW, good[2].payload),
        Record(2, NOW, good[0].payload),
        Record(2, NOW, encode(PlaceOrder(stranger))),
    ):
        audit = Audit(Engine(MatchingSettings()), MATCHER, signatures=False)
        for record in good[:2]:
            audit.take(record)
        with pytest.raises(RuleBroken) as told:
            audit.take(wrong)
        assert (told.value.rule, told.value.offset) == (JOURNAL, wrong.offset)


def test_cancellations_are_counted() -> None:
    audit = Audit(Engine(MatchingSettings()), MATCHER, signatures=False)
    for record in records(COMMANDS):
        audit.take(record)
    audit.finish()
    assert audit.counts.cancellations == 1
