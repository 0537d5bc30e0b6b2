"""The orders database: what is put is read at once, and after the end of the process."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from soliton.chain.orders import Side
from soliton.chain.transactions.exchange import Exchange
from soliton.matcher.errors import DatabaseProblem
from soliton.matcher.key_values import KeyValues
from soliton.matcher.orders_db import OrdersDatabase, PendingRecord
from soliton.matcher.records import OrderInfo, Trade, Unsettled, describe
from soliton.matcher.unwritten import Unwritten
from soliton.matching.model import OrderStatus, limit_order
from soliton.matching.pairs import AssetPair, pair_to_bytes
from tests.matcher.kit import (
    ALICE,
    BOB,
    CHAIN_ID,
    COIN,
    PAIR,
    USD,
    address_of,
    exchange_of,
    make_order,
)
from tests.storage.rows import change_rows, tables

Open = Callable[[], OrdersDatabase]
OTHER = AssetPair(b"\7" * 32, USD)


@pytest.fixture
def reopen(tmp_path: Path) -> Open:
    return lambda: OrdersDatabase(tmp_path, "matcher", CHAIN_ID, 3, durable=False)


def info(number: int, pair: AssetPair = PAIR) -> OrderInfo:
    order = make_order(ALICE, Side.SELL, COIN + number, 250, pair=pair, timestamp=1_000 + number)
    return describe(limit_order(order), OrderStatus.CANCELLED)


def trade(offset: int, index: int = 0, timestamp: int = 0) -> Trade:
    return Trade(
        offset=offset,
        index=index,
        timestamp=timestamp or offset * 10,
        price=250,
        amount=COIN,
        side=Side.BUY,
        taker_order_id=b"\1" * 32,
        maker_order_id=b"\2" * 32,
        transaction_id=bytes([offset % 256]) * 32,
    )


async def both(reopen: Open, database: OrdersDatabase) -> list[OrdersDatabase]:
    """The database as it is, and as a later process finds it."""
    await database.close()
    return [reopen()]


async def test_orders_and_their_lists(reopen: Open) -> None:
    database = reopen()
    orders = [info(number) for number in range(5)] + [info(9, OTHER)]
    for each in orders:
        database.finalize(each)
        database.finalize(each)
    for _ in range(2):
        assert database.order(orders[0].id) == orders[0]
        assert database.knows(orders[5].id) and not database.knows(b"\0" * 32)
        assert database.order(b"short") is None
        # The last three of each list; the records of all.
        assert database.history(address_of(ALICE), None) == orders[3:]
        assert database.history(address_of(ALICE), PAIR) == orders[2:5]
        assert database.history(address_of(ALICE), OTHER) == orders[5:]
        assert database.history(address_of(BOB), None) == []
        (database,) = await both(reopen, database)
    await database.close()


async def test_trades_by_number_and_by_time(reopen: Open) -> None:
    database = reopen()
    trades = [trade(offset, index) for offset in range(0, 600, 2) for index in range(2)]
    for each in trades[:300]:
        database.put_trade(PAIR, each)
    await database.flush()
    for each in trades[300:]:
        database.put_trade(PAIR, each)
    database.put_trade(OTHER, trade(7))
    database.mark(trades[-1].offset)
    assert database.trades(PAIR, 5) == trades[-5:]
    assert database.trades(PAIR, 3, since=0) == trades[:3]
    assert database.trades(PAIR, 2, since=2_001) == [trade(202, 0), trade(202, 1)]
    assert database.trades(PAIR, 3, since=10**9) == []
    assert database.trades(AssetPair(USD, None), 5) == []
    await database.close()


class Reads:
    """The rows that readers have gone through, on the disk and before it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        for owner, name in ((Unwritten, "rows"), (KeyValues, "_stored")):
            monkeypatch.setattr(owner, name, self._counted(getattr(owner, name)))

    def _counted(self, rows: Callable[..., Iterator[Any]]) -> Callable[..., Iterator[Any]]:
        def counting(*args: Any, **named: Any) -> Iterator[Any]:
            for row in rows(*args, **named):
                self.count += 1
                yield row

        return counting

    def of(self, question: Callable[[], Any]) -> tuple[Any, int]:
        """An answer, and the rows that it took."""
        before = self.count
        return question(), self.count - before


MANY = 1_000
AHEAD = 4
"""Each layer of changes, and the disk, is one row ahead of what is taken."""


@pytest.mark.parametrize("when", ["unwritten", "written", "both", "failing"])
async def test_a_question_about_some_rows_reads_no_others(
    reopen: Open, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    """Millions of changes may wait for a slow disk, and anybody may ask."""
    database = reopen()
    trades = [trade(offset) for offset in range(MANY)]
    for number, each in enumerate(trades):
        database.put_trade(PAIR, each)
        database.put_trade(OTHER, each)
        database.finalize(info(number)) if number < 100 else None
        database.mark(each.offset)
        if number == MANY // 2 and when != "unwritten":
            if when == "failing":
                monkeypatch.setattr(database, "_write", fails)
                with pytest.raises(DatabaseProblem):
                    await database.flush()
            else:
                await database.flush()
    if when == "written":
        await database.flush()
    reads = Reads(monkeypatch)
    found, count = reads.of(lambda: database.trades(PAIR, 3))
    assert (found, count <= 3 + AHEAD) == (trades[-3:], True)
    middle = trades[MANY // 2 - 1]
    found, count = reads.of(lambda: database.trades(PAIR, 3, since=middle.timestamp))
    assert found == trades[MANY // 2 - 1 : MANY // 2 + 2]
    assert count <= (1 + AHEAD) * MANY.bit_length() + 3 + AHEAD
    found, count = reads.of(lambda: database.trades_after(PAIR, (5, 0), 2))
    assert (found, count <= 2 + AHEAD) == (trades[6:8], True)
    found, count = reads.of(lambda: list(database.transactions_of(b"\3" * 32)))
    assert (found, count) == ([], 0)
    monkeypatch.undo()
    await database.close()


def fails(_changes: object) -> None:
    """A write to a full disk."""
    raise DatabaseProblem("there is no space")


async def test_an_execution_is_found_by_the_order_that_has_few(
    reopen: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = reopen()
    settled = exchange_of(1, 1_000)
    body = settled.payload
    assert isinstance(body, Exchange)
    for offset in range(MANY):
        maker = trade(offset)
        database.put_trade(PAIR, msgspec.structs.replace(maker, maker_order_id=body.order2.id))
    last = msgspec.structs.replace(
        trade(MANY),
        taker_order_id=body.order1.id,
        maker_order_id=body.order2.id,
        transaction_id=settled.id,
    )
    database.put_trade(PAIR, last)
    database.put_transaction(settled)
    database.mark(MANY)
    await database.flush()
    reads = Reads(monkeypatch)
    found, count = reads.of(lambda: database.trade_of(settled))
    assert found == (last, True)
    assert count <= 2 + AHEAD
    renewed = exchange_of(2, 2_000)
    _, count = reads.of(lambda: database.replace_transaction(settled, renewed))
    assert count <= 2 + AHEAD
    moved = msgspec.structs.replace(last, transaction_id=renewed.id)
    assert database.trade(PAIR, MANY, 0) == moved
    for order in (body.order1, body.order2):
        assert renewed.id in [each.id for each in database.transactions_of(order.id)]
    await database.close()


async def test_a_part_of_an_id_is_no_order(reopen: Open) -> None:
    """A shorter text would be a prefix: the transactions of all others begin with it."""
    database = reopen()
    settled = exchange_of(1, 1_000)
    database.put_trade(PAIR, msgspec.structs.replace(trade(1), transaction_id=settled.id))
    database.put_transaction(settled)
    database.mark(1)
    assert [each.id for each in database.transactions_of(b"\1" * 32)] == [settled.id]
    for part in (b"", b"\1", b"\1" * 31, b"\1" * 33):
        assert list(database.transactions_of(part)) == []
    await database.close()


async def test_executions_that_were_taken_back_are_not_gone_through(
    reopen: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Anybody can cause some, and the metrics count the others at each question."""
    database = reopen()
    lost = [
        Unsettled(PAIR, 1, bytes([number]) * 32, b"\2" * 32, None, 5, True, "lost")
        for number in range(200)
    ]
    for each in lost:
        database.put_unsettled(each)
    for each in lost[1:]:
        database.put_unsettled(msgspec.structs.replace(each, is_taken_back=True))
    for _ in range(2):
        assert list(database.given_up.values()) == lost[:1]
        reads = Reads(monkeypatch)
        assert len(database.given_up) == 1
        assert reads.count == 0
        monkeypatch.undo()
        assert len(database.unsettled()) == len(lost)
        (database,) = await both(reopen, database)
    database.put_unsettled(lost[0], gone=True)
    assert not database.given_up
    await database.close()


async def test_marks_rates_books_and_pending_transactions(reopen: Open) -> None:
    database = reopen()
    assert database.offset == -1
    database.mark(41)
    database.put_rate(USD, 2.5)
    database.put_rate(b"\7" * 32, 1.0)
    database.put_rate(b"\7" * 32, None)
    database.put_book(PAIR, 77)
    database.put_book(OTHER, 78)
    database.put_book(OTHER, None)
    database.note_seen(b"\1" * 32, PendingRecord(5))
    database.note_seen(b"\2" * 32, PendingRecord(6, 9))
    database.settle(b"\1" * 32)
    for _ in range(2):
        assert database.offset == 41
        assert database.rates() == {USD: 2.5}
        assert database.books() == {PAIR: 77}
        assert database.pending() == {b"\2" * 32: PendingRecord(6, 9)}
        (database,) = await both(reopen, database)
    await database.close()


async def test_it_belongs_to_one_matcher_and_one_process(tmp_path: Path, reopen: Open) -> None:
    database = reopen()
    with pytest.raises(DatabaseProblem, match="another matcher has"):
        reopen()
    await database.close()
    with pytest.raises(DatabaseProblem, match="orders of the matcher matcher, not somebody"):
        OrdersDatabase(tmp_path, "somebody", CHAIN_ID, 3, durable=False)
    await reopen().close()


async def test_a_write_that_fails_is_tried_again(
    reopen: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = reopen()
    database.mark(1)

    def full(_self: OrdersDatabase, _changes: object) -> None:
        raise DatabaseProblem("no space left")

    with monkeypatch.context() as patched:
        patched.setattr(OrdersDatabase, "_write", full)
        with pytest.raises(DatabaseProblem):
            await database.flush()
    database.mark(2)
    assert database.unwritten > 0
    await asyncio.gather(database.flush(), database.flush())
    assert database.unwritten == 0
    await database.close()
    database = reopen()
    assert database.offset == 2
    await database.close()


async def test_files_that_cannot_be_opened_are_free_for_the_next_try(
    tmp_path: Path, reopen: Open
) -> None:
    damaged = tmp_path / "CURRENT"
    damaged.write_bytes(b"no database" * 1_000)
    with pytest.raises(DatabaseProblem, match=r"are damaged: .* move the directory away"):
        reopen()
    damaged.unlink()
    await reopen().close()


async def test_executions_are_read_on_from_a_place(reopen: Open) -> None:
    database = reopen()
    kept = [trade(offset, index) for offset in (3, 4, 900) for index in (0, 1, 65_535)]
    for each in kept:
        database.put_trade(PAIR, each)
    database.put_trade(OTHER, trade(5))
    for _ in range(2):
        for number, each in enumerate(kept):
            place = each.offset, each.index
            assert database.trades_after(PAIR, place, 2) == kept[number + 1 : number + 3]
        assert database.trades_after(PAIR, (3, 500), 1) == kept[2:3]
        assert database.trades_after(PAIR, None, 4) == kept[:4]
        (database,) = await both(reopen, database)
    await database.close()


async def test_an_order_that_meets_more_others_than_a_short_number_counts(reopen: Open) -> None:
    """65,535 was the last that had a place; the executions behind it come behind it."""
    database = reopen()
    numbers = [0, 65_534, 65_535, 65_536, 70_000, 10**6]
    for index in numbers:
        database.put_trade(PAIR, trade(7, index))
    database.put_trade(PAIR, trade(8))
    wanted = [*((7, index) for index in numbers), (8, 0)]
    for _ in range(2):
        assert [(each.offset, each.index) for each in database.trades(PAIR, 99)] == wanted
        found: list[tuple[int, int]] = []
        while next_one := database.trades_after(PAIR, found[-1] if found else None, 1):
            found.append((next_one[0].offset, next_one[0].index))
        assert found == wanted
        for index in numbers:
            assert database.trade(PAIR, 7, index) == trade(7, index)
        [database] = await both(reopen, database)
    await database.close()


async def test_what_a_command_leads_to_counts_as_a_whole(reopen: Open) -> None:
    database = reopen()
    kept, dropped = info(1), info(2)
    database.finalize(kept)
    database.mark(0)
    database.finalize(dropped)
    database.put_trade(PAIR, trade(1))
    assert database.knows(dropped.id)
    database.drop_step()
    for _ in range(2):
        assert database.order(kept.id) == kept and not database.knows(dropped.id)
        assert database.trades(PAIR, 9) == []
        assert database.history(kept.owner, None) == [kept]
        [database] = await both(reopen, database)
    await database.close()


def test_a_file_that_is_cut_is_told(tmp_path: Path) -> None:
    change_rows(tmp_path, {b"%d" % number: bytes(400) for number in range(200)})
    [table] = tables(tmp_path)
    os.truncate(table, table.stat().st_size - 100)
    with pytest.raises(DatabaseProblem, match=r"are damaged: .* size mismatch"):
        OrdersDatabase(tmp_path, "matcher", 82, 100, durable=False)


def test_orders_of_an_earlier_version_are_told(tmp_path: Path) -> None:
    (tmp_path / "data.mdb").write_bytes(b"")
    with pytest.raises(DatabaseProblem, match="a version that used LMDB; move the directory away"):
        OrdersDatabase(tmp_path, "matcher", 82, 100, durable=False)


async def test_a_page_that_cannot_be_read_is_told(tmp_path: Path, reopen: Open) -> None:
    """Whether one row is looked for or many, and with what can be done."""
    database, orders = reopen(), [info(number) for number in range(100)]
    for number, each in enumerate(orders):
        database.finalize(each)
        for index in range(5):
            database.put_trade(PAIR, trade(number, index))
        database.mark(number)
    await database.close()
    path = tables(tmp_path)[0]
    whole, told = path.read_bytes(), []
    for start in range(0, len(whole), 97):
        path.write_bytes(whole[:start] + bytes((whole[start] ^ 1,)) + whole[start + 1 :])
        try:
            _read_all(reopen(), orders)
        except DatabaseProblem as problem:
            told.append(str(problem))
    assert len(told) > 5
    words = ("cannot be read", "are damaged")
    assert all(any(word in each for word in words) for each in told)
    assert all("move the directory away" in each for each in told)


def _read_all(database: OrdersDatabase, orders: list[OrderInfo]) -> None:
    try:
        for each in orders:
            database.order(each.id)
        database.trades(PAIR, 999)
        database.trades(PAIR, 999, since=500)
        database.history(address_of(ALICE), PAIR)
    finally:
        database._release()


@pytest.mark.parametrize(
    ("prefix", "read"),
    [
        (b"i", lambda database: database.order(info(1).id)),
        (b"d", lambda database: database.trades(PAIR, 10)),
        (b"s", lambda database: database.pending()),
        (b"u", lambda database: database.unsettled()),
        (b"x", lambda database: database.transaction(b"\4" * 32)),
        (b"manchors", lambda database: database.anchors()),
        (b"mgenesis", lambda database: database.genesis()),
        (b"r", lambda database: database.rates()),
    ],
)
@pytest.mark.parametrize("value", [b"", b"\xff" * 9, b"\x91"])
def test_damaged_values_are_named(
    reopen: Open, prefix: bytes, read: Callable[[OrdersDatabase], Any], value: bytes
) -> None:
    database = reopen()
    key = prefix
    match prefix:
        case b"i":
            key += info(1).id
        case b"d":
            key += pair_to_bytes(PAIR) + bytes(10)
        case b"s" | b"x":
            key += b"\4" * 32
        case b"u":
            key += bytes(64)
        case b"r":
            key += b"\5" * 32
    database._fresh[key] = value
    if (prefix, value) == (b"mgenesis", b""):
        # An empty text is one.
        assert read(database) == ""
        return
    with pytest.raises(DatabaseProblem, match="in the orders database cannot be read"):
        read(database)
