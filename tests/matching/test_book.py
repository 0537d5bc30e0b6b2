"""The matching loop, by text tables (see ``tests/matching/tables.py``).

Numbers were worked out by hand from the rules; those of ``ROUNDING`` are the reference's own
vectors (wavesplatform/matcher ``dex-it/.../RoundingIssuesTestSuite.scala``).
"""

from __future__ import annotations

import pytest

from soliton.chain.orders import Side
from soliton.matching.book import LastTrade, LevelTotal
from soliton.matching.events import OrderCanceled, OrderExecuted
from soliton.matching.fees import DynamicFee
from soliton.matching.model import OrderStatus
from soliton.matching.rules import MatchingSettings
from tests.matching.makers import NOW, PAIR
from tests.matching.tables import run

ROUNDING = {
    "the taker is left with dust": """
m: buy 3100000000 @238
    added m
t: sell 425532 @235
    added t
    executed t m 420169 @238 fees 296219 40 taker-done
    =bids 238 3099579831
    =asks
""",
    "a taker of nearly whole units": """
m: buy 923431000 @31887
    added m
t: sell 223345000 @31887
    added t
    executed t m 223344937 @31887 fees 299999 72559 taker-done
    =bids 31887 700086063
""",
    "neither is done, and nothing more can be exchanged": """
a: sell 98333333 @60
    added a
b: sell 100000000 @70
    added b
t: buy 100000000 @1000
    added t
    executed t a 96666667 @60 fees 290000 294915 maker-done
    executed t b 2857143 @70 fees 8571 8571
    canceled t BecameUnmatchable 476190 left
    =asks 70 97142857
""",
}

PRIORITY = {
    "better prices first, then the order of arrival": """
a: sell 100000000 @300000000 fee=30
    added a
b: sell 100000000 @200000000 fee=20
    added b
c: sell 100000000 @200000000 fee=20
    added c
d: sell 100000000 @100000000 fee=10
    added d
    =asks 100000000 100000000, 200000000 200000000, 300000000 100000000
t: buy 350000000 @300000000 fee=350
    added t
    executed t d 100000000 @100000000 fees 100 10 maker-done
    executed t b 100000000 @200000000 fees 100 20 maker-done
    executed t c 100000000 @200000000 fees 100 20 maker-done
    executed t a 50000000 @300000000 fees 50 15 taker-done
    =asks 300000000 50000000
    =bids
""",
    "a partly filled order keeps its place": """
a: buy 300000000 @100000000 fee=300
    added a
b: buy 300000000 @100000000 fee=300
    added b
s: sell 100000000 @100000000 fee=100
    added s
    executed s a 100000000 @100000000 fees 100 100 taker-done
t: sell 300000000 @100000000 fee=300
    added t
    executed t a 200000000 @100000000 fees 200 200 maker-done
    executed t b 100000000 @100000000 fees 100 100 taker-done
    =bids 100000000 200000000
""",
    "the higher bid first, and the rest of the taker stays": """
a: buy 100000000 @100000000 fee=100
    added a
b: buy 100000000 @101000000 fee=100
    added b
t: sell 300000000 @100000000 fee=300
    added t
    executed t b 100000000 @101000000 fees 100 100 maker-done
    executed t a 100000000 @100000000 fees 100 100 maker-done
    =bids
    =asks 100000000 100000000
""",
    "an order may meet one of the same account": """
a: buy 100000000 @100000000 fee=100 by=one
    added a
t: sell 100000000 @100000000 fee=100 by=one
    added t
    executed t a 100000000 @100000000 fees 100 100 taker-done maker-done
    =bids
    =asks
""",
    "prices that do not overlap": """
a: buy 100000000 @99999999
    added a
t: sell 100000000 @100000000
    added t
    =bids 99999999 100000000
    =asks 100000000 100000000
""",
}

ENDINGS = {
    "an order that expired on its way": """
at 86400001
t: sell 100000000 @100000000
    added t
    canceled t BecameInvalid 100000000 left
    =asks
""",
    "an expired maker is removed when a taker meets it": """
a: sell 100000000 @100000000 fee=100 expires=1000
    added a
b: sell 100000000 @100000000 fee=100
    added b
at 1000
c: buy 50000000 @100000000 fee=50            # in the last millisecond of a
    added c
    executed c a 50000000 @100000000 fees 50 50 taker-done
at 1001
t: buy 100000000 @100000000 fee=100
    added t
    canceled a BecameInvalid 50000000 left
    executed t b 100000000 @100000000 fees 100 100 taker-done maker-done
    =asks
""",
    "cancelling": """
a: sell 100000000 @100000000
    added a
b: sell 100000000 @100000000
    added b
c: buy 100000000 @90000000
    added c
cancel a
    canceled a RequestExecuted 100000000 left
cancel a
    not found a
cancel b expiration
    canceled b Expired 100000000 left
    =asks
cancel c balance
    canceled c InsufficientBalance 100000000 left
    =bids
""",
    "all at once: bids, then asks, by priority": """
cancel all
a: sell 100000000 @300000000
    added a
b: sell 100000000 @200000000
    added b
c: buy 100000000 @90000000
    added c
d: buy 100000000 @95000000
    added d
cancel all
    canceled d RequestExecuted 100000000 left
    canceled c RequestExecuted 100000000 left
    canceled b RequestExecuted 100000000 left
    canceled a RequestExecuted 100000000 left
    =bids
    =asks
""",
    "a deleted book begins anew": """
delete book
a: sell 100000000 @300000000
    added a
delete book
    canceled a OrderBookDeleted 100000000 left
    deleted
cancel a
    not found a
a: sell 100000000 @300000000
    added a
    =asks 300000000 100000000
""",
    "a resting order is not placed twice": """
a: sell 100000000 @300000000
    added a
a: sell 100000000 @300000000
    =asks 300000000 100000000
""",
    "the rest of a maker is dust": """
m: sell 100000000 @60
    added m
t: buy 98333400 @60
    added t
    executed t m 98333334 @60 fees 299999 295000 taker-done maker-done
    =asks
""",
    "an amount that is worth less than a unit at the maker's price": """
m: buy 100000000 @2
    added m
t: sell 50000000 @2
    added t
    executed t m 50000000 @2 fees 300000 150000 taker-done
u: sell 60000000 @2
    added u
    executed u m 50000000 @2 fees 250000 150000 taker-done maker-done
v: buy 100000000 @3
    added v
w: sell 40000000 @3
    added w
    executed w v 33333334 @3 fees 250000 100000 taker-done
    =bids 3 66666666
""",
    "a taker whose amount is no unit at the maker's price": """
m: sell 100000000 @60000000
    added m
t: buy 1 @100000000
    added t
    canceled t BecameUnmatchable 1 left
    =asks 60000000 100000000
""",
}

MARKET = {
    "no counter order": """
t: market buy 100000000 @100000000 spend=100000000
    added t
    canceled t BecameUnmatchable 100000000 left
""",
    "part of it": """
m: sell 40000000 @100000000 fee=40
    added m
t: market buy 100000000 @100000000 fee=100 spend=100000000
    added t
    executed t m 40000000 @100000000 fees 40 40 maker-done
    canceled t BecameUnmatchable 60000000 left
    =bids
    =asks
""",
    "all of it, over two levels": """
a: sell 40000000 @100000000 fee=40
    added a
b: sell 80000000 @200000000 fee=80
    added b
t: market buy 100000000 @200000000 fee=100 spend=200000000
    added t
    executed t a 40000000 @100000000 fees 40 40 maker-done
    executed t b 60000000 @200000000 fees 60 60 taker-done
    =asks 200000000 20000000
""",
    "its price is a limit": """
a: sell 40000000 @100000000 fee=40
    added a
b: sell 80000000 @200000000 fee=80
    added b
t: market buy 100000000 @199999999 fee=100 spend=200000000
    added t
    executed t a 40000000 @100000000 fees 40 40 maker-done
    canceled t BecameUnmatchable 60000000 left
""",
    "a buyer who cannot afford all": """
m: sell 100000000 @300000000 fee=100
    added m
t: market buy 100000000 @300000000 fee=100 spend=150000000
    added t
    executed t m 50000000 @300000000 fees 50 50
    canceled t BecameUnmatchable 50000000 left
    =asks 300000000 50000000
""",
    # 303 = 0.5 * 600 + 3: of the fee of 6 half goes with half of the amount.
    "a buyer whose fee is in the asset that he spends": """
m: sell 100000000 @600 fee=100
    added m
t: market buy 100000000 @600 fee=6 fee-asset=price spend=303
    added t
    executed t m 50000000 @600 fees 3 50
    canceled t BecameUnmatchable 50000000 left
""",
    "a seller who does not have all": """
m: buy 100000000 @300000000 fee=100
    added m
t: market sell 100000000 @200000000 fee=100 spend=25000000
    added t
    executed t m 25000000 @300000000 fees 25 25
    canceled t BecameUnmatchable 75000000 left
""",
    # He has 50 of 125 units that the whole would take: two fifths of his amount.
    "a seller whose fee is in the asset that he spends": """
m: buy 100000000 @100000000 fee=100
    added m
t: market sell 100000000 @100000000 fee=25000000 fee-asset=amount spend=50000000
    added t
    executed t m 40000000 @100000000 fees 10000000 40
    canceled t BecameUnmatchable 60000000 left
""",
    "spent to the last unit while the maker is done": """
a: sell 50000000 @300000000 fee=50
    added a
b: sell 50000000 @300000000 fee=50
    added b
t: market buy 100000000 @300000000 fee=100 spend=150000000
    added t
    executed t a 50000000 @300000000 fees 50 50 maker-done
    canceled t BecameUnmatchable 50000000 left
    =asks 300000000 50000000
""",
    "nothing to spend": """
m: sell 100000000 @100000000
    added m
t: market buy 100000000 @100000000 spend=0
    added t
    canceled t BecameUnmatchable 100000000 left
""",
    "never in the book": """
t: market sell 100000000 @100000000 spend=100000000
    added t
    canceled t BecameUnmatchable 100000000 left
cancel t
    not found t
""",
}

FEES = {
    "later versions pay at least one unit, at their first execution only": """
m: buy 100000000000 @100000000 fee=1 version=3
    added m
t: sell 100000000 @100000000 fee=100 version=2
    added t
    executed t m 100000000 @100000000 fees 100 1 taker-done
u: sell 100000000 @100000000 fee=100
    added u
    executed u m 100000000 @100000000 fees 100 0 taker-done
""",
    "older versions may pay nothing": """
m: buy 100000000000 @100000000 fee=1 version=2
    added m
t: sell 100000000 @100000000 fee=100 version=1
    added t
    executed t m 100000000 @100000000 fees 100 0 taker-done
""",
    "fees are cut down": """
m: buy 300000000 @100000000 fee=100 version=4
    added m
t: sell 100000000 @100000000 fee=99
    added t
    executed t m 100000000 @100000000 fees 99 33 taker-done
u: sell 100000000 @100000000 fee=99
    added u
    executed u m 100000000 @100000000 fees 99 33 taker-done
v: sell 100000000 @100000000 fee=99
    added v
    executed v m 100000000 @100000000 fees 99 33 taker-done maker-done
""",
}

TICKS = {
    "bids go down to the tick, asks up; prices of executions are the orders' own": """
m: buy 100000000 @105 fee=100
    added m
    =bids 100 100000000
t: sell 100000000 @103 fee=100          # though m would pay as much
    added t
    =asks 110 100000000
u: sell 100000000 @100 fee=100
    added u
    executed u m 100000000 @105 fees 100 100 taker-done maker-done
    =bids
v: buy 100000000 @109 fee=100
    added v
    =bids 100 100000000
w: buy 100000000 @110 fee=100
    added w
    executed w t 100000000 @103 fees 100 100 taker-done maker-done
""",
    "a new tick size leaves older orders where they are": """
a: buy 100000000 @105 fee=100
    added a
offset 100
b: buy 100000000 @107 fee=100
    added b
    =bids 105 100000000, 100 100000000
t: sell 100000000 @103 fee=100
    added t
""",
    "nothing rests at price 0": """
a: buy 100000000 @9
    added a
    canceled a BecameInvalid 100000000 left
    =bids
""",
}


def _tables(*groups: dict[str, str]) -> list[object]:
    return [pytest.param(table, id=name) for group in groups for name, table in group.items()]


@pytest.mark.parametrize("table", _tables(ROUNDING, PRIORITY, ENDINGS, MARKET, FEES))
def test_tables(table: str) -> None:
    run(table)


def test_ticks() -> None:
    ten = MatchingSettings(tick_sizes={PAIR: ((0, 10),)})
    run(TICKS["bids go down to the tick, asks up; prices of executions are the orders' own"], ten)
    run(TICKS["nothing rests at price 0"], ten)


def test_ticks_that_change() -> None:
    later = MatchingSettings(tick_sizes={PAIR: ((0, 5), (100, 50))})
    table = TICKS["a new tick size leaves older orders where they are"]
    run(table.replace("t: sell", "# t: sell").replace("    added t", ""), later)
    # A level of 105 with a tick of 50: a seller at 103 takes it.
    state = run(
        table.rstrip() + "\n    executed t a 100000000 @105 fees 100 100 taker-done maker-done\n",
        later,
    )
    assert state.engine.tick_size(PAIR, 8, 2) == 50


def test_fees_change_with_the_offset_of_the_taker() -> None:
    settings = MatchingSettings(
        order_fees=((-1, DynamicFee(300_000, 300_000)), (10, DynamicFee(100_000, 300_000)))
    )
    run(
        """
m: buy 200000000 @100000000 fee=300
    added m
t: sell 100000000 @100000000 fee=300
    added t
    executed t m 100000000 @100000000 fees 300 150 taker-done
offset 10
u: sell 100000000 @100000000 fee=300
    added u
    executed u m 100000000 @100000000 fees 300 50 taker-done maker-done
""",
        settings,
    )


def test_transactions_of_a_book_share_timestamps_unless_they_may_not() -> None:
    table = """
a: sell 100000000 @100000000 fee=100
    added a
b: sell 100000000 @100000000 fee=100
    added b
t: buy 200000000 @100000000 fee=100
    added t
    executed t a 100000000 @100000000 fees 50 100 maker-done
    executed t b 100000000 @100000000 fees 50 100 taker-done maker-done
c: sell 100000000 @100000000 fee=100
    added c
u: buy 100000000 @100000000 fee=100
    added u
    executed u c 100000000 @100000000 fees 100 100 taker-done maker-done
"""
    run(table)
    distinct = table.replace("50 100 taker-done maker-done", "50 100 taker-done maker-done at 1")
    distinct = distinct.replace(
        "fees 100 100 taker-done maker-done", "fees 100 100 taker-done maker-done at 2"
    )
    run(distinct, MatchingSettings(distinct_timestamps_start_offset=0))


def test_state_of_orders_in_events() -> None:
    state = run(ROUNDING["neither is done, and nothing more can be exchanged"])
    first, second = (event for event in state.events if isinstance(event, OrderExecuted))
    assert first.maker.status is OrderStatus.FILLED
    assert (second.taker.status, second.maker.status) == (OrderStatus.PARTIALLY_FILLED,) * 2
    taker = second.taker
    assert taker.filled_amount == 99_523_810
    assert taker.filled_fee == 298_571
    assert taker.price_nominator == 96_666_667 * 60 + 2_857_143 * 70
    assert taker.average_price == taker.price_nominator // 99_523_810 == 60
    # 58.0000002 and 2.0000001 units; the sum is cut down, not each of them.
    assert taker.executed_price_assets == 60
    last = state.events[-1]
    assert isinstance(last, OrderCanceled)
    assert last.status is OrderStatus.FILLED
    assert (first.price_volume, second.price_volume) == (58, 2)
    assert first.taker_spending() == {PAIR.price_asset: 58, None: 290_000}
    assert first.maker_spending() == {PAIR.amount_asset: 96_666_667, None: 294_915}
    assert (first.buy_fee, first.sell_fee) == (290_000, 294_915)


@pytest.mark.parametrize(
    ("table", "status"),
    [
        (MARKET["no counter order"], OrderStatus.FILLED),
        (MARKET["part of it"], OrderStatus.FILLED),
        (ENDINGS["an order that expired on its way"], OrderStatus.CANCELLED),
        (
            ENDINGS["a taker whose amount is no unit at the maker's price"],
            OrderStatus.CANCELLED,
        ),
    ],
)
def test_what_a_cancellation_counts_as(table: str, status: OrderStatus) -> None:
    last = run(table).events[-1]
    assert isinstance(last, OrderCanceled)
    assert last.status is status


def test_reading_a_book() -> None:
    state = run(PRIORITY["better prices first, then the order of arrival"])
    book = state.engine.book(PAIR)
    assert book is not None
    status = book.status()
    assert status.last_trade == LastTrade(300_000_000, 50_000_000, Side.BUY)
    assert (status.best_bid, status.best_ask) == (None, LevelTotal(300_000_000, 50_000_000))
    assert (book.created, book.changed_at, len(book)) == (NOW, NOW, 1)
    assert [order.id for order in book.orders()] == [state.orders["a"].id]
    assert book.get(state.orders["a"].id) is not None
    assert book.get(state.orders["t"].id) is None
    assert book.depth(0) == ([], [])


def test_changes_of_levels_are_told_to_a_watcher() -> None:
    state = run("a: buy 100000000 @100\n    added a\nb: buy 100000000 @90\n    added b\n")
    book = state.engine.book(PAIR)
    assert book is not None
    assert book.bids.take_changes() == []
    state.command("c: buy 50000000 @100")
    state.command("cancel b")
    assert book.bids.take_changes() == [LevelTotal(100, 150_000_000), LevelTotal(90, 0)]
    state.command("t: sell 120000000 @100 fee=120")
    assert book.bids.take_changes() == [LevelTotal(100, 30_000_000)]
    assert book.bids.take_changes() == []


def test_a_command_that_was_applied_already_does_nothing() -> None:
    state = run("a: buy 100000000 @100\n    added a\nb: buy 100000000 @90\n    added b\n")
    before = state.engine.snapshot()
    state.offset = 1
    assert state.command("c: buy 100000000 @90") == []
    assert state.engine.snapshot() == before
