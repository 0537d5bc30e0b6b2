"""Levels of a book: their orders in the order of arrival, whichever leaves, and what they weigh."""

from __future__ import annotations

import gc
import tracemalloc
from random import Random

import pytest

from soliton.chain.orders import Side
from soliton.matching.book import check_invariants
from soliton.matching.commands import CancelOrder, CancelSource, PlaceOrder, decode, encode
from soliton.matching.engine import Engine
from soliton.matching.rules import MatchingSettings
from tests.amounts import times
from tests.matching.makers import NOW, PAIR, make_order

MAX_BYTES = 1_024
"""What a resting order may take, asked of a matcher for a million of them."""


@pytest.mark.parametrize("seed", range(4))
def test_orders_come_and_go_on_one_level(seed: int) -> None:
    random = Random(seed)
    engine = Engine(MatchingSettings())
    waiting: list[bytes] = []
    sizes = set()
    for number in range(400):
        # Dozens, then none, and again: a level changes the way in which it holds them.
        likely = (0.9, 0.1, 0.8, 0)[number // 100]
        if random.random() < likely:
            order = make_order(Side.BUY, 10**8, 100, timestamp=NOW + number)
            engine.apply(number, NOW, PlaceOrder(order))
            waiting.append(order.id)
        elif waiting:
            gone = waiting.pop(random.choice((0, random.randrange(len(waiting)))))
            engine.apply(number, NOW, CancelOrder(PAIR, gone, CancelSource.REQUEST))
        book = engine.book(PAIR)
        if book is not None:
            check_invariants(book)
            assert [active.id for active in book.orders()] == waiting
            assert book.get(bytes(32)) is None
        sizes.add(len(waiting))
    assert {0, 1, 2, 7, 8, 9, 30} <= sizes


@pytest.mark.parametrize("orders_on_each", [1, 2, 20])
@pytest.mark.parametrize("from_snapshot", [False, True])
def test_a_resting_order_is_small(orders_on_each: int, *, from_snapshot: bool) -> None:
    count = times(2_000, 6_000)
    records = [
        encode(
            PlaceOrder(
                make_order(
                    Side.BUY,
                    10**8 + number,
                    (1 + number // orders_on_each) * 10**4,
                    sender=f"account {number % 100}",
                    timestamp=NOW + number,
                    expiration=NOW + 10**6 + number,
                    fee=300_000 + number % 100,
                )
            )
        )
        for number in range(count)
    ]
    before = Engine(MatchingSettings())
    for offset, record in enumerate(records if from_snapshot else ()):
        before.apply(offset, NOW, decode(record))
    snapshot = before.snapshot()
    engine = Engine(MatchingSettings())
    gc.collect()
    tracemalloc.start()
    try:
        if from_snapshot:
            engine.restore(snapshot)
        else:
            for offset, record in enumerate(records):
                engine.apply(offset, NOW, decode(record))
        gc.collect()
        taken = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    book = engine.book(PAIR)
    assert book is not None
    assert len(book) == count
    assert taken / count < MAX_BYTES
