"""What goes wrong at the worst moment: nothing that was executed stays unsettled, nothing hangs."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import msgspec
import pytest
import pytest_asyncio

from soliton.chain.orders import Side
from soliton.matcher import replica
from soliton.matcher.errors import DatabaseProblem, NodeUnavailable, RecoveryFailed
from soliton.matcher.http_client import HttpNodeClient
from soliton.matcher.journal import Position
from soliton.matcher.journal.embedded import EmbeddedJournal, EmbeddedSettings, Sync
from soliton.matcher.journal.errors import JournalUnavailable
from soliton.matcher.journal.snapshots import SnapshotStore
from soliton.matcher.node_follower import while_another_leads
from soliton.matcher.orders_db import OrdersDatabase
from soliton.matcher.quarantine import Quarantine
from soliton.matcher.records import OrderInfo, ServiceStatus
from soliton.matcher.recovery import identity_of
from soliton.matcher.rest.app import build_app
from soliton.matcher.service import Matcher
from soliton.matcher.settings import NodeAccess
from soliton.matcher.stores import reading
from soliton.matching import errors
from soliton.matching.commands import CancelSource
from soliton.matching.errors import MatcherError
from soliton.matching.model import OrderStatus
from tests.api.client import call
from tests.matcher.kit import (
    ALICE,
    BOB,
    COIN,
    FEE,
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


async def test_what_is_executed_while_blocks_are_taken_off_is_settled(
    matcher: Matcher, node: FakeNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a rollback assets are asked for again; orders that were checked before it may be
    executed before the answer comes.
    """
    await matcher.placing.place(make_order(ALICE, Side.SELL, COIN, PRICE), market=False)
    append, held, asked = matcher._replica.journal.append, asyncio.Event(), asyncio.Event()

    async def slow(payloads: Sequence[bytes]) -> list[Position]:
        asked.set()
        await held.wait()
        return await append(payloads)

    monkeypatch.setattr(matcher._replica.journal, "append", slow)
    buy = make_order(BOB, Side.BUY, COIN, PRICE)
    placing = asyncio.create_task(matcher.placing.place(buy, market=False))
    await asked.wait()
    gone = node.assets.pop(USD)
    node.roll_back(0)
    await eventually(lambda: matcher.chain.height == 0)
    held.set()
    await placing
    [trade] = matcher.database.trades(PAIR, 10)
    assert trade.transaction_id is not None
    with pytest.raises(MatcherError) as caught:
        await matcher.placing.place(make_order(BOB, Side.BUY, COIN, PRICE), market=False)
    assert caught.value.kind is errors.ASSET_NOT_FOUND
    node.assets[USD] = gone
    await matcher.placing.place(make_order(BOB, Side.BUY, COIN, PRICE), market=False)


async def test_news_of_a_moment_without_node_are_not_lost(matcher: Matcher, node: FakeNode) -> None:
    await matcher.placing.place(make_order(ALICE, Side.SELL, COIN, PRICE), market=False)
    await matcher.placing.place(make_order(BOB, Side.BUY, COIN, PRICE), market=False)
    await eventually(lambda: len(node.sent) == 1)
    exchange = node.sent[0]
    await asyncio.sleep(0.02)
    before = node.balances[address_of(BOB)]
    after = {None: before[None] + COIN - FEE, USD: before[USD] - PRICE}
    node.balances[address_of(BOB)] = after
    node.down = True
    node.mine(exchange)
    await asyncio.sleep(0.02)
    node.down = False
    await eventually_equal(lambda: matcher.queries.tradable(address_of(BOB), PAIR), after)


async def test_a_command_that_cannot_be_stored_is_refused(
    matcher: Matcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the reason: nobody waits for ever, and nothing stays set aside."""

    async def fault(_payloads: Sequence[bytes]) -> list[Position]:
        raise RuntimeError("nobody has thought of this")

    monkeypatch.setattr(matcher._replica.journal, "append", fault)
    order = make_order(ALICE, Side.SELL, COIN, PRICE)
    with pytest.raises(MatcherError) as caught:
        await asyncio.wait_for(matcher.placing.place(order, market=False), 60)
    assert caught.value.kind is errors.COMMAND_OUTCOME_UNKNOWN
    monkeypatch.undo()
    await eventually_equal(lambda: _reserved(matcher), {})


async def _reserved(matcher: Matcher) -> object:
    try:
        return matcher.queries.reserved(address_of(ALICE))
    except MatcherError as error:
        return error.kind


async def test_an_order_expires_though_the_journal_failed_once(
    tmp_path: Path, node: FakeNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    late = [0]
    settings = settings_in(tmp_path)
    clock = settings.clock
    settings = msgspec.structs.replace(settings, clock=lambda: clock() + late[0])
    async with running(settings, node) as matcher:
        order = make_order(ALICE, Side.SELL, COIN, PRICE, lifetime_ms=90_000)
        await matcher.placing.place(order, market=False)
        append, failed = matcher._replica.journal.append, asyncio.Event()

        async def full(payloads: Sequence[bytes]) -> list[Position]:
            if not failed.is_set():
                failed.set()
                raise JournalUnavailable("no space left on device")
            return await append(payloads)

        monkeypatch.setattr(matcher._replica.journal, "append", full)
        late[0] = 100_000
        await failed.wait()
        info = matcher.queries.order_info
        await eventually(
            lambda: (found := info(order.id)) is not None and found.status is OrderStatus.CANCELLED
        )


async def test_an_order_that_was_being_checked_is_not_taken_by_the_next_term(
    matcher: Matcher, node: FakeNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its balance was looked up among accounts that are gone."""
    held, asked = asyncio.Event(), asyncio.Event()

    async def slow(_order_id: bytes) -> bool:
        asked.set()
        await held.wait()
        return False

    monkeypatch.setattr(node, "was_executed", slow)
    order = make_order(ALICE, Side.SELL, COIN, PRICE)
    placing = asyncio.create_task(matcher.placing.place(order, market=False))
    await asked.wait()
    node.balances[address_of(ALICE)] = {None: 0, USD: 0}
    accounts = matcher.session.accounts
    matcher._replica.sequencer.lost.set()
    await eventually(lambda: matcher.session.accounts not in (None, accounts))
    held.set()
    with pytest.raises(MatcherError):
        await placing
    assert matcher.queries.order_info(order.id) is None


async def test_who_stands_by_knows_what_is_in_force(tmp_path: Path, node: FakeNode) -> None:
    standby = make_matcher(settings_in(tmp_path), node)
    following_it = asyncio.create_task(
        while_another_leads(standby.settlement, 0.01, standby.chain.refresh)
    )
    node.scripted.add(standby.address)
    await eventually(lambda: standby.chain.matcher_scripted)
    following_it.cancel()
    await standby.stop()


async def test_an_account_stays_the_same_while_its_orders_are_checked(
    matcher: Matcher, node: FakeNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two records of one account would let both orders have the same coins."""
    node.balances[address_of(ALICE)] = {None: COIN + FEE, USD: 0}
    first, second = (make_order(ALICE, Side.SELL, COIN, PRICE + step) for step in (0, 1))
    held, asked = asyncio.Event(), asyncio.Event()

    async def slow(order_id: bytes) -> bool:
        if order_id == first.id:
            asked.set()
            await held.wait()
        return False

    append, stored = matcher._replica.journal.append, asyncio.Event()

    async def slow_disk(payloads: Sequence[bytes]) -> list[Position]:
        await stored.wait()
        return await append(payloads)

    monkeypatch.setattr(node, "was_executed", slow)
    monkeypatch.setattr(matcher._replica.journal, "append", slow_disk)
    placing = [asyncio.create_task(matcher.placing.place(first, market=False))]
    await asked.wait()
    node.mine()
    await eventually(lambda: matcher.chain.height == node.height)
    await asyncio.sleep(0.02)
    placing.append(asyncio.create_task(matcher.placing.place(second, market=False)))
    await asyncio.sleep(0.02)
    held.set()
    await asyncio.sleep(0.02)
    stored.set()
    results = await asyncio.gather(*placing, return_exceptions=True)
    kinds = [each.kind if isinstance(each, MatcherError) else each for each in results]
    assert kinds == [None, errors.BALANCE_NOT_ENOUGH]


async def test_an_order_that_waits_for_its_turn_is_known(
    matcher: Matcher, node: FakeNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    held, asked = asyncio.Event(), asyncio.Event()

    async def slow(_order_id: bytes) -> bool:
        asked.set()
        await held.wait()
        return False

    monkeypatch.setattr(node, "was_executed", slow)
    orders = [make_order(ALICE, Side.SELL, COIN, PRICE + step) for step in range(3)]
    placing = [asyncio.create_task(matcher.placing.place(each, market=False)) for each in orders]
    await asked.wait()
    await asyncio.sleep(0)
    for order in orders:
        with pytest.raises(MatcherError) as caught:
            await matcher.canceling.cancel(order.id, address_of(ALICE), CancelSource.REQUEST)
        assert caught.value.kind is errors.ORDER_IS_PLACING
        with pytest.raises(MatcherError) as caught:
            await matcher.placing.place(order, market=False)
        assert caught.value.kind is errors.ORDER_DUPLICATE
    assert (await matcher.queries.report(address_of(ALICE))).placement_queue != ()
    held.set()
    await asyncio.gather(*placing)
    assert (await matcher.queries.report(address_of(ALICE))).placement_queue == ()


async def test_orders_that_wait_count_as_active(
    tmp_path: Path, node: FakeNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = asyncio.Event()

    async def slow(_order_id: bytes) -> bool:
        await held.wait()
        return False

    monkeypatch.setattr(node, "was_executed", slow)
    async with running(settings_in(tmp_path, max_active_orders=2), node) as matcher:
        orders = [make_order(ALICE, Side.SELL, COIN, PRICE + step) for step in range(3)]
        placing = [
            asyncio.create_task(matcher.placing.place(each, market=False)) for each in orders[:2]
        ]
        accounts = matcher.session.accounts
        assert accounts is not None
        await eventually(lambda: len(accounts.get(address_of(ALICE)).queued) == 2)
        with pytest.raises(MatcherError) as caught:
            await matcher.placing.place(orders[2], market=False)
        assert caught.value.kind is errors.ACTIVE_ORDERS_LIMIT_REACHED
        held.set()
        await asyncio.gather(*placing)


async def test_a_journal_that_ends_before_its_database_is_not_gone_on_with(
    tmp_path: Path, node: FakeNode
) -> None:
    """What is executed at offsets that the database knows already would not be settled."""
    settings = settings_in(tmp_path)
    async with running(settings, node) as matcher:
        await matcher.placing.place(make_order(ALICE, Side.SELL, COIN, PRICE), market=False)
    for name in ("journal", "snapshots"):
        shutil.rmtree(settings.directory / name)
    with pytest.raises(RecoveryFailed, match="ends at -1"):
        async with running(settings, node):
            pass


async def test_the_database_is_never_ahead_of_what_the_disk_has_of_the_journal(
    tmp_path: Path, node: FakeNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A power failure must not leave effects of commands that are gone."""
    steps: list[str] = []
    monkeypatch.setattr(os, "fdatasync", lambda _file: steps.append("journal"))
    settings = settings_in(tmp_path)
    identity = identity_of(settings)
    lazy = EmbeddedSettings(sync=Sync.INTERVAL, sync_interval=1_000)
    journal = EmbeddedJournal(tmp_path / "journal", identity, settings.clock, lazy)
    matcher = Matcher(
        *(settings, node, journal, SnapshotStore(tmp_path / "snapshots", identity)),
        durable=False,
    )
    write = matcher.database._write

    def noted(changes: dict[bytes, bytes | None]) -> None:
        steps.append("database")
        write(changes)

    monkeypatch.setattr(matcher.database, "_write", noted)
    await matcher.start()
    await matcher.working()
    steps.clear()
    await matcher.placing.place(make_order(ALICE, Side.SELL, COIN, PRICE), market=False)
    await matcher.database.flush()
    assert steps[:2] == ["journal", "database"]
    await matcher.stop()


async def test_a_node_that_is_busy_does_not_say_that_there_is_no_asset(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    client = HttpNodeClient(NodeAccess(), ord("R"))
    for status, answer in (
        (404, None),
        (400, None),
        (429, NodeUnavailable),
        (403, NodeUnavailable),
    ):

        async def ask(*_: object, status: int = status) -> tuple[int, object]:
            return status, {"message": "no"}

        monkeypatch.setattr(client, "_request", ask)
        if answer is None:
            assert await client.asset(USD) is None
        else:
            with pytest.raises(answer):
                await client.asset(USD)
    await client.close()


@pytest.mark.parametrize(
    "answer",
    [[7], "no", 7, None, {"balances": [{}], "features": [{"blockchainStatus": "ACTIVATED"}]}],
)
async def test_a_response_of_another_form_counts_as_none(
    monkeypatch: pytest.MonkeyPatch, answer: object
) -> None:
    """Whatever a proxy or another program sends with status 200, the matcher goes on."""
    client = HttpNodeClient(NodeAccess(), ord("R"))

    async def respond(_method: str, path: str, _body: object = None) -> tuple[int, object]:
        last = {"height": 7, "signature": "A"}
        return 200, last if path == "/blocks/headers/last" else answer

    monkeypatch.setattr(client, "_request", respond)
    alice = address_of(ALICE)
    requests = [
        *(client.identity(), client.feature_active(1), client.asset(USD), client.now()),
        *(client.account(alice, None), client.account(alice, (USD,)), client.block_time(1)),
        client.find_exchanges(alice, [frozenset((b"", b"1"))], 0),
    ]
    if not isinstance(answer, dict):
        requests += [client.has_script(alice), client.inclusions([bytes(32)])]
    for request in requests:
        with pytest.raises(NodeUnavailable):
            await request
    await client.close()


POISON = "beyond all understanding"


def _poisoned(monkeypatch: pytest.MonkeyPatch, unlucky: bytes) -> None:
    """What follows from one order fails half way: its trade is kept, then nothing goes on."""
    finalize = OrdersDatabase.finalize

    def failing(self: OrdersDatabase, info: OrderInfo) -> None:
        if info.id == unlucky:
            raise ValueError(POISON)
        finalize(self, info)

    monkeypatch.setattr(OrdersDatabase, "finalize", failing)


async def _books(matcher: Matcher) -> object:
    book = matcher.engine.book(PAIR)
    assert book is not None
    held = [matcher.queries.reserved(address_of(keys)) for keys in (ALICE, BOB)]
    histories = [
        matcher.queries.history(address_of(keys), None, active=True, closed=True)
        for keys in (ALICE, BOB)
    ]
    trades = [(each.offset, each.transaction_id) for each in matcher.database.trades(PAIR, 99)]
    return book.depth(99), held, histories, trades, matcher.engine.last_offset


async def test_a_command_that_cannot_be_applied_is_set_aside(
    tmp_path: Path, node: FakeNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It counts as if it had not been there, now, after a restart and on another replay; the first
    half of what it did is gone.
    """
    settings = settings_in(tmp_path)
    sell = make_order(ALICE, Side.SELL, 3 * COIN, PRICE)
    unlucky = make_order(BOB, Side.BUY, COIN, PRICE)
    _poisoned(monkeypatch, unlucky.id)
    async with running(settings, node) as matcher:
        await matcher.placing.place(sell, market=False)
        with pytest.raises(MatcherError) as refused:
            await matcher.placing.place(unlucky, market=False)
        assert refused.value.kind is errors.COMMAND_OUTCOME_UNKNOWN
        # The refusal arrives before the matcher has begun the replay, which sets the command aside.
        await eventually(lambda: bool(matcher.quarantine.all()))
        await asyncio.wait_for(matcher.working(), 60)
        await eventually(lambda: matcher.status is ServiceStatus.WORKING)
        assert [(each.offset, POISON in each.reason) for each in matcher.quarantine.all()] == [
            (1, True)
        ]
        assert matcher.database.trades(PAIR, 99) == [] and node.sent == []
        book = matcher.engine.book(PAIR)
        assert book is not None and [each.amount for each in book.orders()] == [3 * COIN]
        assert matcher.queries.reserved(address_of(BOB)) == {}
        await matcher.placing.place(make_order(BOB, Side.BUY, 2 * COIN, PRICE), market=False)
        before = await _books(matcher)
        shutil.copytree(tmp_path / "journal", tmp_path / "member" / "journal")
    # Another member of the group, that has only the journal, finds out the same.
    async with running(settings_in(tmp_path / "member"), node) as member:
        assert await _books(member) == before
        assert [each.offset for each in member.quarantine.all()] == [1]
    # A start knows what was passed over, also when it could be applied by now.
    monkeypatch.undo()
    for path in (tmp_path / "snapshots").iterdir():
        path.unlink()
    async with running(settings, node) as matcher:
        assert await _books(matcher) == before
        assert [each.offset for each in matcher.quarantine.all()] == [1]
        shown = (await call(build_app(matcher).gate, "GET /metrics")).body.decode()
        assert "\nsoliton_matcher_commands_quarantined 1\n" in shown
    async with reading(settings) as (_, batches):
        offsets = [record.offset async for batch in batches for record in batch]
    assert offsets == [0, 2]


async def test_bytes_that_are_no_command_are_passed_over(tmp_path: Path, node: FakeNode) -> None:
    """Those of a later version, say: the start goes on behind them, and tells."""
    settings = settings_in(tmp_path)
    async with running(settings, node) as matcher:
        await matcher.placing.place(make_order(ALICE, Side.SELL, COIN, PRICE), market=False)
    for path in (tmp_path / "snapshots").iterdir():
        path.unlink()
    journal = EmbeddedJournal(
        tmp_path / "journal", identity_of(settings), settings.clock, EmbeddedSettings(Sync.NEVER)
    )
    await journal.append([b"\x01\x63nonsense", b""])
    await journal.close()
    for _ in range(2):
        async with running(settings, node) as matcher:
            found = matcher.quarantine.all()
            assert [(each.offset, each.payload) for each in found] == [
                (1, b"\x01\x63nonsense"),
                (2, b""),
            ]
            await matcher.placing.place(make_order(BOB, Side.BUY, COIN, PRICE - 1), market=False)


def test_a_line_that_a_crash_has_torn_does_no_harm(tmp_path: Path) -> None:
    """The command fails again, and is noted again."""
    first = Quarantine(tmp_path)
    first.add(3, 1, b"three", "why")
    first.add(5, 2, b"five", "why")
    first.path.write_bytes(first.path.read_bytes()[:-9])
    second = Quarantine(tmp_path)
    assert second.holds(3, b"three") and not second.holds(5, b"five")
    assert not second.holds(3, b"another journal's")
    second.add(5, 2, b"five", "why")
    assert [each.offset for each in Quarantine(tmp_path).all()] == [3, 5]


@pytest.mark.parametrize("method", ["flush", "pending"])
async def test_a_job_that_ends_unforeseen_ends_the_matcher(
    method: str, tmp_path: Path, node: FakeNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is written any more, say, while orders go on being taken: whoever runs it has to hear
    of that, and what was accepted is there after the next start.
    """
    monkeypatch.setattr(replica, "FORGET_SECONDS", 0.01)
    settings = settings_in(tmp_path)

    def failing(_self: OrdersDatabase) -> None:
        raise RuntimeError("nobody has thought of this")

    async with running(settings, node) as matcher:
        await matcher.placing.place(make_order(ALICE, Side.SELL, COIN, PRICE), market=False)
        with monkeypatch.context() as patched:
            patched.setattr(OrdersDatabase, method, failing)
            # As while another matcher leads.
            matcher.settlement.is_active = False
            with pytest.raises(RuntimeError, match="nobody has thought of this"):
                await asyncio.wait_for(matcher.ended(), 60)
            assert matcher.status is not ServiceStatus.WORKING
    async with running(settings, node) as matcher:
        await matcher.placing.place(make_order(BOB, Side.BUY, COIN, PRICE), market=False)
        assert [each.amount for each in matcher.database.trades(PAIR, 9)] == [COIN]


async def test_a_disk_that_fails_is_no_fault_of_a_command(
    tmp_path: Path, node: FakeNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether a command can be applied must be the same everywhere: trouble of this machine is
    another matter.
    """
    settings = settings_in(tmp_path)
    async with running(settings, node) as matcher:
        await matcher.placing.place(make_order(ALICE, Side.SELL, COIN, PRICE), market=False)
        for path in (tmp_path / "snapshots").iterdir():
            path.unlink()
    for path in (tmp_path / "snapshots").iterdir():
        path.unlink()
    shutil.rmtree(tmp_path / "orders")

    def failing(_self: OrdersDatabase, *_: object) -> None:
        raise DatabaseProblem("the disk of the test fails")

    with monkeypatch.context() as patched:
        patched.setattr(OrdersDatabase, "put_book", failing)
        matcher = make_matcher(settings, node)
        await matcher.start()
        with pytest.raises(DatabaseProblem):
            await matcher.working()
        await matcher.stop()
    async with running(settings, node) as matcher:
        assert matcher.quarantine.all() == []
        book = matcher.engine.book(PAIR)
        assert book is not None and len(book) == 1
