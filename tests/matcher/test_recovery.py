"""A matcher that ended, in whatever way, begins again where it was."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import random
import shutil
import signal
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec
import pytest

from soliton.chain.orders import Order, Side
from soliton.matcher.errors import RecoveryFailed
from soliton.matcher.journal.errors import JournalUnavailable
from soliton.matcher.journal.snapshots import SnapshotStore
from soliton.matcher.recovery import identity_of
from soliton.matcher.service import Matcher
from soliton.matching import errors
from soliton.matching.engine import Engine
from soliton.matching.errors import MatcherError
from soliton.matching.events import Event
from soliton.matching.model import OrderStatus
from soliton.matching.snapshots import Writing
from tests.matcher.kit import (
    ALICE,
    BOB,
    CAROL,
    COIN,
    PAIR,
    FakeNode,
    address_of,
    eventually,
    make_matcher,
    make_order,
    running,
    settings_in,
)

TRADERS = (ALICE, BOB, CAROL)
KILLS = 3


def funded_node() -> FakeNode:
    node = FakeNode()
    for keys in TRADERS:
        node.fund(keys)
    return node


def random_orders(seed: int, count: int) -> Iterator[Order]:
    chance = random.Random(seed)
    for _ in range(count):
        yield make_order(
            chance.choice(TRADERS),
            chance.choice((Side.BUY, Side.SELL)),
            chance.randint(1, 20) * COIN,
            chance.randint(240, 260),
        )


def state_of(matcher: Matcher) -> tuple[object, ...]:
    """All that must be the same after a recovery."""
    book = matcher.engine.book(PAIR)
    assert book is not None
    histories = [
        [
            (info.id, info.status, info.filled, info.filled_fee)
            for info in matcher.queries.history(address_of(keys), None, active=True, closed=True)
        ]
        for keys in TRADERS
    ]
    trades = [
        (each.offset, each.index, each.transaction_id)
        for each in matcher.database.trades(PAIR, 999)
    ]
    return book.depth(1_000), book.created, matcher.engine.last_offset, histories, trades


async def reserved_of(matcher: Matcher) -> list[object]:
    return [matcher.queries.reserved(address_of(keys)) for keys in TRADERS]


async def place_all(matcher: Matcher, orders: Iterable[Order]) -> None:
    for order in orders:
        await matcher.placing.place(order, market=False)


@pytest.mark.parametrize("with_snapshot", [False, True])
async def test_a_restart_changes_nothing(tmp_path: Path, *, with_snapshot: bool) -> None:
    node, settings = funded_node(), settings_in(tmp_path)
    async with running(settings, node) as matcher:
        await place_all(matcher, random_orders(1, 60))
        if with_snapshot:
            await matcher.snapshots.save()
        await place_all(matcher, random_orders(2, 60))
        await eventually(
            lambda: len({each.id for each in node.sent}) == len(matcher.database.trades(PAIR, 999))
        )
        before, held = state_of(matcher), await reserved_of(matcher)
        sent = {each.id for each in node.sent}
    if not with_snapshot:
        for path in (tmp_path / "snapshots").iterdir():
            path.unlink()
    node.sent.clear()
    async with running(settings, node) as matcher:
        assert state_of(matcher) == before
        assert await reserved_of(matcher) == held
        # The node has nothing of it: all is sent again, and it is the same.
        await eventually(lambda: {each.id for each in node.sent} == sent)


async def test_a_snapshot_that_is_written_while_orders_come(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = Writing.slices

    def slowly(writing: Writing) -> Iterator[None]:
        slices = 0
        for _ in whole(writing, 1):
            slices += 1
            while matcher.engine.last_offset < began + slices:
                yield
        assert slices > 10

    node, settings = funded_node(), settings_in(tmp_path)
    async with running(settings, node) as matcher:
        await place_all(matcher, random_orders(1, 60))
        began = matcher.engine.last_offset
        lanes = (place_all(matcher, random_orders(seed, 20)) for seed in (2, 3, 4))
        with monkeypatch.context() as patched:
            patched.setattr(Writing, "slices", slowly)
            await asyncio.wait_for(asyncio.gather(matcher.snapshots.save(), *lanes), 30)
        assert matcher.offsets.newest_snapshot == began
        before, held = state_of(matcher), await reserved_of(matcher)
    for path in (tmp_path / "snapshots").iterdir():
        if path.name != f"{began:020}.snapshot":
            path.unlink()
    async with running(settings, node) as matcher:
        assert matcher.offsets.newest_snapshot == began
        assert state_of(matcher) == before
        assert await reserved_of(matcher) == held


async def test_an_orderly_end_keeps_a_snapshot(tmp_path: Path) -> None:
    node, settings = funded_node(), settings_in(tmp_path)
    async with running(settings, node) as matcher:
        watching = asyncio.create_task(matcher.ended())
        await place_all(matcher, random_orders(1, 5))
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)
    assert [path.name for path in (tmp_path / "snapshots").iterdir()] == [f"{4:020}.snapshot"]
    async with running(settings, node) as matcher:
        assert matcher.offsets.newest_snapshot == matcher.offsets.current == 4


async def test_orders_that_the_balance_no_longer_covers_go_at_the_start(tmp_path: Path) -> None:
    node, settings = funded_node(), settings_in(tmp_path)
    order = make_order(ALICE, Side.SELL, 10 * COIN, 250)
    async with running(settings, node) as matcher:
        await matcher.placing.place(order, market=False)
    node.balances[address_of(ALICE)] = {}
    async with running(settings, node) as matcher:

        def status() -> OrderStatus:
            info = matcher.queries.order_info(order.id)
            assert info is not None
            return info.status

        await eventually(lambda: status() is OrderStatus.CANCELLED)


async def test_a_journal_without_its_beginning_needs_its_snapshot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    matcher = make_matcher(settings_in(tmp_path), funded_node())
    monkeypatch.setattr(type(matcher._replica.journal), "first_offset", 5)
    await matcher.start()
    with pytest.raises(RecoveryFailed, match="does not reach back"):
        await asyncio.wait_for(matcher.working(), 60)
    with pytest.raises(RecoveryFailed):
        await matcher.ended()
    await matcher.stop()


async def test_a_full_disk_refuses_and_reserves_nothing(tmp_path: Path) -> None:
    node, settings = funded_node(), settings_in(tmp_path)
    async with running(settings, node) as matcher:
        journal = matcher._replica.journal
        store = journal._store  # type: ignore[attr-defined]

        def full(*_: object) -> None:
            raise JournalUnavailable("no space left on device")

        journal._store = full  # type: ignore[attr-defined]
        order = make_order(ALICE, Side.SELL, COIN, 250)
        with pytest.raises(MatcherError) as caught:
            await matcher.placing.place(order, market=False)
        assert caught.value.kind is errors.CAN_NOT_PERSIST_EVENT
        assert matcher.queries.reserved(address_of(ALICE)) == {}
        journal._store = store  # type: ignore[attr-defined]
        await matcher.placing.place(order, market=False)
        assert matcher.engine.last_offset == 0


async def test_a_fault_in_applying_leads_back_to_the_journal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    node, settings = funded_node(), settings_in(tmp_path)
    async with running(settings, node) as matcher:
        await place_all(matcher, random_orders(3, 20))
        before = state_of(matcher)
        sound = Engine.apply

        def unsound(*_: object) -> list[Event]:
            raise ZeroDivisionError

        monkeypatch.setattr(Engine, "apply", unsound)
        lost = make_order(ALICE, Side.SELL, COIN, 900)
        with pytest.raises(MatcherError) as caught:
            await matcher.placing.place(lost, market=False)
        assert caught.value.kind is errors.COMMAND_OUTCOME_UNKNOWN
        monkeypatch.setattr(Engine, "apply", sound)
        await eventually(lambda: matcher.engine.last_offset == 20)
        await asyncio.wait_for(matcher.working(), 60)
        # The journal had it, so it counts, though its sender was not told so.
        info = matcher.queries.order_info(lost.id)
        assert info is not None and info.status is OrderStatus.ACCEPTED
        assert matcher.engine.last_offset == 20
        assert state_of(matcher)[4] == before[4]


# --- kill -9 --------------------------------------------------------------------------------------


def _place_for_ever(directory: str, accepted: str, seed: int) -> None:
    """The victim: every order that was accepted is noted in a file."""

    async def main() -> None:
        settings = settings_in(Path(directory), snapshots_interval=150, max_active_orders=10**6)
        async with running(settings, funded_node()) as matcher:
            notes = os.open(accepted, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

            async def trade(lane: int) -> None:
                for number, order in enumerate(random_orders(seed + lane, 100_000)):
                    try:
                        await matcher.placing.place(order, market=number % 7 == 0)
                    except MatcherError:
                        continue
                    os.write(notes, order.id)

            await asyncio.gather(*(trade(lane) for lane in range(8)))

    asyncio.run(main())


async def test_killed_at_random_nothing_accepted_is_lost_or_doubled(tmp_path: Path) -> None:
    accepted = tmp_path / "accepted"
    data = tmp_path / "data"
    context = multiprocessing.get_context("spawn")
    for kill in range(KILLS):
        known = accepted.stat().st_size if accepted.exists() else 0
        victim = context.Process(
            target=_place_for_ever, args=(str(data), str(accepted), 1_000 * kill)
        )
        victim.start()
        assert victim.pid is not None

        def busy(known: int = known) -> bool:
            return accepted.exists() and accepted.stat().st_size > known + 32 * 200

        try:
            await eventually(busy)
            await asyncio.sleep(random.random() / 4)
        finally:
            os.kill(victim.pid, signal.SIGKILL)
            victim.join()
    ids = accepted.read_bytes()
    noted = {ids[start : start + 32] for start in range(0, len(ids) - 31, 32)}
    first = await _recovered(data, noted)
    # Once more from the very beginning of the journal: the same books, transactions and histories.
    for path in (data / "snapshots").iterdir():
        path.unlink()
    assert await _recovered(data, noted) == first


async def _recovered(data: Path, noted: set[bytes]) -> tuple[object, ...]:
    settings = msgspec.structs.replace(settings_in(data), snapshots_interval=10**9)
    matcher = make_matcher(settings, funded_node())
    matcher._replica.journal.truncate_before = _keep_all  # type: ignore[method-assign]
    await matcher.start()
    await asyncio.wait_for(matcher.working(), 30)
    try:
        assert [each for each in noted if matcher.queries.order_info(each) is None] == []
        trades = matcher.database.trades(PAIR, 10**6)
        transactions = [each.transaction_id for each in trades]
        assert None not in transactions
        assert len(set(transactions)) == len(transactions)
        filled: dict[bytes, int] = {}
        for trade in trades:
            for order_id in (trade.taker_order_id, trade.maker_order_id):
                filled[order_id] = filled.get(order_id, 0) + trade.amount
        for order_id, amount in filled.items():
            info = matcher.queries.order_info(order_id)
            assert info is not None and info.filled == amount
        return (*state_of(matcher), await reserved_of(matcher), len(trades))
    finally:
        await matcher.stop()


async def _keep_all(offset: int) -> None:
    del offset


async def test_a_snapshot_that_holds_no_books_does_not_stop_a_start(tmp_path: Path) -> None:
    """Its checksum is right, but what is in it is not understood: the journal has it all."""
    node, settings = funded_node(), settings_in(tmp_path)
    async with running(settings, node) as matcher:
        await place_all(matcher, random_orders(3, 20))
        before = state_of(matcher)
        offset = matcher.engine.last_offset
    for path in (tmp_path / "snapshots").iterdir():
        path.unlink()
    store = SnapshotStore(tmp_path / "snapshots", identity_of(settings))
    store.save(offset, [b"of another version"])
    async with running(settings, node) as matcher:
        assert state_of(matcher) == before


async def test_a_snapshot_of_what_comes_later_is_never_taken(tmp_path: Path) -> None:
    """Journal and orders database were brought back from a copy, the snapshots were not: what they
    hold did not happen here, also when the journal has become as long again.
    """
    node, settings = funded_node(), settings_in(tmp_path)
    async with running(settings, node) as matcher:
        await place_all(matcher, random_orders(1, 10))
    copy = tmp_path / "copy"
    for name in ("journal", "orders"):
        shutil.copytree(tmp_path / name, copy / name)
    async with running(settings, node) as matcher:
        for seed in (2, 3):
            await place_all(matcher, random_orders(seed, 10))
            await matcher.snapshots.save()
    for name in ("journal", "orders"):
        shutil.rmtree(tmp_path / name)
        shutil.copytree(copy / name, tmp_path / name)
    async with running(settings, node) as matcher:
        assert matcher.engine.last_offset == 9
        await place_all(matcher, random_orders(4, 15))
        await matcher.snapshots.save()
        assert matcher.offsets.newest_snapshot == 24
        await place_all(matcher, random_orders(5, 15))
        before = state_of(matcher)
        await matcher.database.flush()
        shutil.copytree(tmp_path / "snapshots", copy / "snapshots")
    # As a crash leaves it.
    shutil.rmtree(tmp_path / "snapshots")
    shutil.copytree(copy / "snapshots", tmp_path / "snapshots")
    async with running(settings, node) as matcher:
        assert state_of(matcher) == before
