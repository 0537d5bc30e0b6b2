"""Snapshots: what they hold, and bytes that are none."""

from __future__ import annotations

from itertools import islice
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from soliton.chain.orders import Side
from soliton.errors import InvariantBroken
from soliton.matching.commands import CancelAllOrders, DeleteOrderBook, PlaceOrder
from soliton.matching.engine import NOTHING_APPLIED, Engine
from soliton.matching.rules import MatchingSettings
from soliton.matching.snapshots import SnapshotError
from tests.amounts import times
from tests.matching.makers import NOW, PAIR, make_order
from tests.matching.random_commands import SETTINGS, random_commands
from tests.matching.tables import run

TABLE = """
a: sell 100000000 @300 fee=30 version=1
    added a
b: sell 100000000 @200 fee=20 version=4 percent=3
    added b
c: buy 70000000 @200 fee=20 version=2
    added c
    executed c b 70000000 @200 fees 20 14 taker-done
d: buy 70000000 @100 fee=20 percent=9 const=2
    added d
"""
SNAPSHOT = run(TABLE, MatchingSettings(tick_sizes={PAIR: ((0, 100),)})).engine.snapshot()


def restored(data: bytes) -> Engine:
    """An engine of a snapshot."""
    engine = Engine(MatchingSettings())
    engine.restore(data)
    return engine


def test_what_a_snapshot_holds() -> None:
    engine = restored(SNAPSHOT)
    assert (engine.last_offset, engine.last_timestamp) == (3, NOW)
    book = engine.book(PAIR)
    assert book is not None
    assert book.depth(9)[0][0].price == 100
    assert [order.order.version for order in book.orders()] == [3, 4, 1]
    partly = next(book.asks.orders())
    assert (partly.amount, partly.fee, partly.price_nominator) == (30_000_000, 6, 14 * 10**9)
    assert partly.percent_min_fee == 3
    assert book.last_trade is not None
    assert (book.created, book.changed_at, book.next_timestamp) == (NOW, NOW, NOW + 1)


def test_an_engine_that_has_seen_nothing() -> None:
    engine = restored(Engine(MatchingSettings()).snapshot())
    assert (engine.last_offset, engine.books()) == (NOTHING_APPLIED, [])
    order = make_order(Side.BUY, 10**8, 100)
    assert len(engine.apply(0, NOW, PlaceOrder(order))) == 1


def test_every_cut_is_refused() -> None:
    for end in range(len(SNAPSHOT)):
        with pytest.raises(SnapshotError):
            restored(SNAPSHOT[:end])
    with pytest.raises(SnapshotError):
        restored(SNAPSHOT + b"\0")


@given(st.data())
def test_changed_bytes_are_read_or_refused(data: st.DataObject) -> None:
    changed = bytearray(SNAPSHOT)
    place = data.draw(st.integers(0, len(changed) - 1))
    changed[place] ^= data.draw(st.integers(1, 255))
    try:
        engine = restored(bytes(changed))
    except SnapshotError:
        return
    assert restored(engine.snapshot()).snapshot() == engine.snapshot()


@given(st.binary(max_size=200))
def test_any_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(SnapshotError):
        restored(data)


def _set(stored: Any, path: tuple[int, ...], value: Any) -> None:
    for step in path[:-1]:
        stored = stored[step]
    stored[path[-1]] = value


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ((0,), 2),
        ((3, 0, 4, 2), 2),
        ((3, 0, 6, 0, 0), -5),
        ((3, 0, 6, 0, 0), 99),
        ((3, 0, 6, 0, 2), 0),
        ((3, 0, 6, 0, 2), 10**8 + 1),
        ((3, 0, 6, 0, 3), -1),
        ((3, 0, 6, 0, 4), bytes(33)),
        ((3, 0, 0), b"\0\0"),
    ],
)
def test_books_that_could_not_be(path: tuple[int, ...], value: Any) -> None:
    stored = msgspec.msgpack.decode(SNAPSHOT)
    _set(stored, path, value)
    with pytest.raises(SnapshotError):
        restored(msgspec.msgpack.encode(stored))


def test_orders_in_the_wrong_place() -> None:
    stored = msgspec.msgpack.decode(SNAPSHOT)
    bids, asks = stored[3][0][5:7]
    for changed in ((bids + bids, asks), (bids + asks[:1], asks), (bids, asks + bids)):
        stored[3][0][5:7] = changed
        with pytest.raises(SnapshotError):
            restored(msgspec.msgpack.encode(stored))
    stored[3][0][5:7] = bids, asks
    stored[3] *= 2
    with pytest.raises(SnapshotError):
        restored(msgspec.msgpack.encode(stored))


def test_a_refused_snapshot_changes_nothing() -> None:
    engine = restored(SNAPSHOT)
    with pytest.raises(SnapshotError):
        engine.restore(SNAPSHOT[:-1])
    assert engine.snapshot() == SNAPSHOT


# --- in slices, while commands go on --------------------------------------------------------------


@pytest.mark.parametrize("seed", range(times(2, 6)))
@pytest.mark.parametrize("commands_between", [1, 7])
def test_what_happens_meanwhile_is_not_in_it(seed: int, commands_between: int) -> None:
    engine = Engine(SETTINGS)
    commands = random_commands(seed, 20_000)
    changed = gone = 0

    def go_on(count: int) -> None:
        nonlocal gone
        for offset, now, command in islice(commands, count):
            gone += isinstance(command, CancelAllOrders | DeleteOrderBook)
            if not isinstance(command, CancelAllOrders | DeleteOrderBook) or gone % 6 == 0:
                engine.apply(offset, now, command)

    for _ in range(60):
        go_on(100)
        before = engine.snapshot()
        with engine.begin_snapshot() as writing:
            for _ in writing.slices(2):
                go_on(commands_between)
            changed += engine.snapshot() != before
        assert b"".join(writing.pieces) == before
    assert changed > 5
    assert gone > 6
    book = engine.book(PAIR)
    assert book is None or book.bids.kept is book.asks.kept is None


def test_a_level_of_many_orders_has_several_slices() -> None:
    engine = Engine(MatchingSettings())
    count = times(7_000, 70_000)
    orders = [make_order(Side.BUY, 10**8, 100, timestamp=NOW + number) for number in range(count)]
    for offset, order in enumerate(orders):
        engine.apply(offset, NOW, PlaceOrder(order))
    with engine.begin_snapshot() as writing:
        slices = sum(1 for _ in writing.slices(1_000))
    assert slices == count // 1_000
    copy = restored(b"".join(writing.pieces)).book(PAIR)
    assert copy is not None
    assert [active.id for active in copy.orders()] == [order.id for order in orders]


def test_one_is_written_at_a_time() -> None:
    engine = restored(SNAPSHOT)
    with engine.begin_snapshot(), pytest.raises(InvariantBroken), engine.begin_snapshot():
        pass
    with engine.begin_snapshot() as writing:
        assert list(writing.slices()) == []
    assert b"".join(writing.pieces) == SNAPSHOT
