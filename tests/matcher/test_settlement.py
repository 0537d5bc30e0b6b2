"""Transactions on their way: sent, sent again, confirmed, rolled back, refused."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import msgspec
import pytest
import pytest_asyncio

from soliton.chain.transactions.model import AnyTransaction
from soliton.matcher import broadcasting
from soliton.matcher.broadcasting import Broadcasting
from soliton.matcher.node_client import Broadcast, BroadcastAnswer, NodeUpdate
from soliton.matcher.orders_db import OrdersDatabase
from soliton.matcher.renewal import FINAL_DEPTH, Window, renewed
from soliton.matcher.session import Session
from soliton.matcher.settings import Settlement as SettlementSettings
from soliton.matcher.settlement import Correction, Settlement
from soliton.matcher.time_slices import SLICE
from tests.matcher.kit import (
    CHAIN_ID,
    COIN,
    MATCHER,
    FakeNode,
    address_of,
    eventually,
    exchange_of,
)

NOW = 1_700_000_000_000


WINDOW = Window(back_ms=7_200_000, forward_ms=5_400_000)


def transaction(number: int, timestamp: int = NOW) -> AnyTransaction:
    return exchange_of(number, timestamp)


class Books(Session):
    """A session that records its notifications."""

    def __init__(self) -> None:
        super().__init__()
        self.refused: list[bytes] = []
        self.gone: list[bytes] = []

    def given_up(self, transaction_id: bytes) -> None:
        self.refused.append(transaction_id)

    def lost(self, transaction: AnyTransaction) -> None:
        self.gone.append(transaction.id)


@dataclass
class Setting:
    """A settlement that runs, with what it tells."""

    node: FakeNode
    database: OrdersDatabase
    settlement: Settlement
    books: Books
    sender: Broadcasting

    @property
    def refused(self) -> list[bytes]:
        return self.books.refused

    @property
    def lost(self) -> list[bytes]:
        return self.books.gone

    async def follow(self, **parts: object) -> None:
        update = NodeUpdate(self.node._status())
        await self.settlement.follow(msgspec.structs.replace(update, **parts))

    async def mine(self, *transactions: AnyTransaction) -> None:
        self.node.height += 1
        await self.follow(confirmed=tuple((each.id, self.node.height) for each in transactions))


@pytest_asyncio.fixture
async def setting(tmp_path: Path) -> AsyncIterator[Setting]:
    node = FakeNode()
    database = OrdersDatabase(tmp_path, "matcher", CHAIN_ID, 3, durable=False)
    books = Books()
    settings = SettlementSettings(interval_ms=20)
    settlement = Settlement(node, database, WINDOW, books, address_of(MATCHER))
    sender = Broadcasting(
        *(settlement, node, database, settings, WINDOW, MATCHER, books),
        chain_id=CHAIN_ID,
        decimals=lambda asset_id: 8 if asset_id is None else 2,
        clock=lambda: NOW,
    )
    settlement.activate()
    node.height = 10
    await settlement.follow(NodeUpdate(node._status()))
    tasks = [asyncio.create_task(each) for each in sender.tasks()]
    yield Setting(node, database, settlement, books, sender)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await database.close()


async def test_one_that_the_node_shows_is_not_sent_again(
    setting: Setting, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(broadcasting, "SHOWN_PAUSE", 1_000_000)
    first = transaction(1)
    setting.settlement.add(first)
    setting.settlement.add(first)
    await eventually(lambda: len(setting.node.sent) == 1)
    await setting.follow(appeared=(first,))
    await asyncio.sleep(0.06)
    assert len(setting.node.sent) == 1
    await setting.mine(first)
    assert len(setting.settlement.off_chain) == 0


async def test_one_that_has_left_the_pool_unheard_is_sent_again(setting: Setting) -> None:
    first = transaction(1)
    setting.settlement.add(first)
    await eventually(lambda: len(setting.node.sent) >= 1)
    await setting.follow(appeared=(first,))
    count = len(setting.node.sent)
    await eventually(lambda: len(setting.node.sent) > count + 1)


async def test_one_that_the_node_does_not_show_is_sent_again(setting: Setting) -> None:
    first = transaction(1)
    setting.settlement.add(first)
    await eventually(lambda: len(setting.node.sent) >= 3)
    assert {each.id for each in setting.node.sent} == {first.id}
    await setting.follow(appeared=(first,))
    await setting.follow(vanished=(first.id,))
    count = len(setting.node.sent)
    await eventually(lambda: len(setting.node.sent) > count)


async def test_refused_for_now_and_for_good(setting: Setting) -> None:
    setting.node.answer = BroadcastAnswer(Broadcast.NOT_YET, "too much buy")
    first = transaction(1)
    setting.settlement.add(first)
    await eventually(lambda: len(setting.node.sent) >= 1)
    assert setting.refused == [] and len(setting.settlement.off_chain) == 1
    setting.node.answer = BroadcastAnswer(Broadcast.FINAL, "never")
    second = transaction(2)
    setting.settlement.add(second)
    await eventually(lambda: second.id in setting.refused)
    assert second.id not in setting.database.pending()
    found = {each.transaction_id: each for each in setting.settlement.unsettled(10)}
    assert (found[second.id].given_up, found[second.id].message) == (True, "never")
    assert found[second.id].amount == COIN + 2


@pytest.mark.parametrize(
    "result", [Broadcast.FINAL, Broadcast.LATER, Broadcast.OPERATOR, Broadcast.NOT_YET]
)
@pytest.mark.parametrize("height", [0, 9])
async def test_one_that_the_node_has_is_not_taken_for_rejected(
    setting: Setting, result: Broadcast, height: int
) -> None:
    """Whatever a proxy, or the node itself when it is sent again, says about it."""
    setting.node.answer = BroadcastAnswer(result, "not allowed by somebody")
    setting.sender._settings = SettlementSettings(interval_ms=20, max_pending_ms=0)
    first = transaction(1)
    setting.node.mined[first.id] = height
    setting.settlement.add(first)
    await eventually(
        lambda: (
            first.id not in setting.settlement.off_chain if height else len(setting.node.sent) > 2
        )
    )
    assert setting.refused == [] and setting.settlement.unsettled_counts()[1] == 0
    assert first.id in setting.database.pending()


async def test_a_standby_only_writes_down(setting: Setting) -> None:
    setting.settlement.deactivate()
    first = transaction(1)
    setting.settlement.add(first)
    await asyncio.sleep(0.03)
    assert setting.node.sent == [] and len(setting.settlement.off_chain) == 0
    setting.settlement.activate()
    await setting.settlement.reconcile()
    await eventually(lambda: [each.id for each in setting.node.sent] == [first.id])


async def test_rolled_back_ones_are_sent_again_until_they_are_deep(
    setting: Setting, caplog: pytest.LogCaptureFixture
) -> None:
    first = transaction(1)
    setting.settlement.add(first)
    await eventually(lambda: len(setting.node.sent) == 1)
    await setting.mine(first)
    height = setting.node.height
    setting.node.height -= 1
    await setting.follow(rolled_back_to=height - 1)
    assert setting.lost == [first.id]
    await eventually(lambda: len(setting.node.sent) == 2)
    await setting.mine(first)
    setting.node.height += FINAL_DEPTH - 1
    await setting.follow()
    assert set(setting.database.pending()) == {first.id}
    setting.node.height += 1
    await setting.follow()
    assert setting.database.pending() == {}
    setting.node.height = height
    await setting.follow(rolled_back_to=height)
    assert "no fork replaces" not in caplog.text
    setting.node.height = height - 1
    await setting.follow(rolled_back_to=height - 1)
    assert "no fork replaces" in caplog.text


@pytest.mark.parametrize(
    ("above", "reported_above", "is_final"),
    [
        # Votes on its block, and on the one above it, count two blocks later.
        (2, 0, True),
        (5, 0, True),
        (5, -1, False),
        # No report makes a block final before it can be.
        (1, 0, False),
        (1, 10**9, False),
        (2, 10**9, True),
        (0, 10**9, False),
        # Without votes, and however little a node reports, its depth counts.
        (FINAL_DEPTH - 1, -1_000, False),
        (FINAL_DEPTH, -1_000, True),
    ],
)
async def test_a_transaction_is_settled_once_its_block_is_final(
    setting: Setting, above: int, reported_above: int, is_final: bool
) -> None:
    first = transaction(1)
    setting.settlement.add(first)
    await eventually(lambda: len(setting.node.sent) >= 1)
    await setting.mine(first)
    block = setting.node.height
    setting.node.height += above
    await setting.follow(finalized=max(0, block + reported_above))
    assert (first.id not in setting.database.pending()) is is_final


async def test_what_was_final_stays_so_after_a_fork(setting: Setting) -> None:
    setting.node.height = 30
    await setting.follow(finalized=25)
    first = transaction(1)
    setting.settlement.add(first)
    await eventually(lambda: len(setting.node.sent) >= 1)
    # The new blocks have fewer votes.
    setting.node.height = 29
    await setting.follow(rolled_back_to=26, finalized=20, confirmed=((first.id, 27),), changed=None)
    assert setting.settlement.final == 25
    assert set(setting.database.pending()) == {first.id}
    # Only an operator takes final blocks off.
    await setting.follow(rolled_back_to=24)
    assert setting.settlement.final == 24


FAILED = "script_execution_failed"


async def test_one_that_is_mined_but_not_executed_is_unsettled(
    setting: Setting, caplog: pytest.LogCaptureFixture
) -> None:
    first, second = transaction(1), transaction(2)
    for each in (first, second):
        setting.settlement.add(each)
    await eventually(lambda: len(setting.node.sent) >= 2)
    setting.node.height += 1
    block = setting.node.height
    confirmed = tuple((each.id, block) for each in (first, second))
    await setting.follow(confirmed=confirmed, failures={first.id: FAILED})
    [found] = setting.settlement.unsettled(10)
    assert (found.transaction_id, found.given_up) == (first.id, False)
    assert FAILED in found.message and str(block) in found.message
    assert setting.settlement.unsettled_counts() == (1, 0)
    assert "was not executed" in caplog.text
    # The next run knows it, too.
    setting.settlement.activate()
    assert [each.transaction_id for each in setting.settlement.unsettled(10)] == [first.id]
    # A fork may execute it: it is sent again.
    count = len(setting.node.sent)
    await setting.follow(rolled_back_to=block - 1)
    await eventually(lambda: first.id in {each.id for each in setting.node.sent[count:]})
    await setting.follow(confirmed=confirmed)
    assert setting.settlement.unsettled(10) == []


async def test_a_failure_is_corrected_once_another_block_is_above_it(setting: Setting) -> None:
    first = transaction(1)
    setting.settlement.add(first)
    await eventually(lambda: len(setting.node.sent) >= 1)
    # Found by a question, as what a reconnected stream has missed.
    setting.node.mined, setting.node.failures = {first.id: 9}, {first.id: FAILED}
    await setting.settlement.reconcile()
    assert [each.given_up for each in setting.settlement.unsettled(10)] == [False]
    await setting.follow()
    assert setting.settlement.correction_of(first.id) == Correction(stands=False)
    # However deep it is: it waits for the command that takes its execution back.
    setting.node.height = 9 + FINAL_DEPTH
    await setting.follow()
    assert list(setting.settlement.to_correct) == [first.id]
    assert setting.settlement.unsettled_counts() == (1, 0)
    setting.settlement.corrected(first.id, False)
    assert setting.settlement.unsettled_counts() == (0, 0) and setting.refused == [first.id]
    assert setting.database.pending() == {}
    await setting.settlement.reconcile()
    assert setting.settlement.correction_of(first.id) is None
    # A deep fork has executed it.
    setting.node.failures = {}
    await setting.settlement.reconcile()
    assert setting.settlement.correction_of(first.id) == Correction(stands=True)
    setting.settlement.corrected(first.id, True)
    assert setting.database.pending()[first.id].height == 9


async def test_a_failure_in_the_last_block_may_be_that_of_a_fork(setting: Setting) -> None:
    first = transaction(1)
    setting.settlement.add(first)
    await eventually(lambda: len(setting.node.sent) >= 1)
    setting.node.height += 1
    confirmed = ((first.id, setting.node.height),)
    await setting.follow(confirmed=confirmed, failures={first.id: FAILED})
    assert setting.settlement.correction_of(first.id) is None
    setting.node.height += 1
    await setting.follow()
    assert setting.settlement.correction_of(first.id) == Correction(stands=False)


async def test_a_standby_keeps_a_failure_until_it_is_taken_back(setting: Setting) -> None:
    setting.settlement.deactivate()
    first = transaction(1)
    setting.settlement.add(first)
    setting.node.height = FINAL_DEPTH + 10
    setting.node.mined, setting.node.failures = {first.id: 10}, {first.id: FAILED}
    await setting.settlement.forget_settled()
    assert list(setting.database.pending()) == [first.id]
    setting.settlement.corrected(first.id, False)
    assert setting.database.pending() == {}
    assert [each.is_taken_back for each in setting.database.unsettled()] == [True]


async def test_one_whose_successor_failed_is_not_renewed(setting: Setting) -> None:
    first = transaction(1)
    other = renewed(first, NOW + WINDOW.length_ms, MATCHER)
    setting.node.sent.append(other)
    setting.node.mined, setting.node.failures = {other.id: 5}, {other.id: FAILED}
    setting.node.answer = BroadcastAnswer(Broadcast.TOO_LATE, "in the past relative to")
    chain_time(setting, NOW + WINDOW.back_ms + 1)
    setting.settlement.add(first)
    await eventually(lambda: set(setting.database.pending()) == {other.id})
    [found] = setting.settlement.unsettled(10)
    assert found.transaction_id == other.id and FAILED in found.message


async def test_what_an_earlier_run_left_is_looked_up_and_sent(setting: Setting) -> None:
    mined, lost = transaction(1), transaction(2)
    for each in (mined, lost):
        setting.database.put_transaction(each)
    setting.node.mined[mined.id] = 1
    setting.settlement.activate()
    await setting.settlement.reconcile()
    await eventually(lambda: [each.id for each in setting.node.sent] == [lost.id])
    assert list(setting.settlement.off_chain) == [lost.id]


async def test_a_node_that_is_down_is_waited_for(
    setting: Setting, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("soliton.matcher.broadcasting._PAUSE_SECONDS", 0.01)
    setting.node.down = True
    first = transaction(1)
    setting.settlement.add(first)
    await asyncio.sleep(0.03)
    setting.node.down = False
    await eventually(lambda: len(setting.node.sent) >= 1)
    assert setting.refused == []


async def test_others_go_on_while_many_are_confirmed_and_rolled_back(setting: Setting) -> None:
    many = [transaction(number) for number in range(5 * SLICE)]
    for each in many:
        setting.settlement.add(each)
    await eventually(lambda: len(setting.node.sent) >= len(many))
    turns = [0]

    async def others() -> None:
        while True:
            turns[-1] += 1
            await asyncio.sleep(0)

    task = asyncio.create_task(others())
    await setting.mine(*many)
    assert len(setting.settlement.off_chain) == 0
    turns.append(0)
    await setting.follow(rolled_back_to=setting.node.height - 1)
    assert setting.lost == [each.id for each in many]
    assert list(setting.settlement.off_chain) == setting.lost
    turns.append(0)
    await setting.mine(*many)
    setting.node.height += FINAL_DEPTH
    await setting.follow()
    assert setting.database.pending() == {}
    task.cancel()
    assert min(turns) >= 5


# --- whose time is over ---------------------------------------------------------------------------


def chain_time(setting: Setting, milliseconds: int) -> None:
    """The block that nothing can take off any more is of this time."""
    setting.node.height = FINAL_DEPTH + 7
    setting.node.block_times[7] = milliseconds


async def test_one_that_is_too_late_gets_a_new_time_when_nothing_can_mine_the_old_one(
    setting: Setting,
) -> None:
    setting.node.answer = BroadcastAnswer(Broadcast.TOO_LATE, "in the past relative to")
    first = transaction(1)
    chain_time(setting, NOW + WINDOW.back_ms)
    setting.settlement.add(first)
    await eventually(lambda: len(setting.node.sent) >= 3)
    # It may still be mined above a block of this very time.
    assert {each.id for each in setting.node.sent} == {first.id}
    chain_time(setting, NOW + WINDOW.back_ms + 1)
    await eventually(lambda: setting.node.sent[-1].id != first.id)
    second = setting.node.sent[-1]
    assert second.timestamp == NOW + WINDOW.back_ms + WINDOW.forward_ms
    assert second.payload == first.payload
    assert set(setting.database.pending()) == {second.id}
    assert (setting.refused, setting.lost) == ([first.id], [second.id])


async def test_the_times_of_an_execution_are_the_same_whoever_renews_it() -> None:
    length = WINDOW.back_ms + WINDOW.forward_ms
    for late in range(1, 10 * length, length // 7):
        block = NOW + WINDOW.back_ms + late
        found = WINDOW.next_time(NOW, block)
        steps = (found - NOW) // length
        assert found == NOW + steps * length
        # The first whose window is not over, and none is passed over.
        assert not WINDOW.is_over(found, block)
        assert WINDOW.is_over(found - length, block)


async def test_one_that_another_transaction_settled_is_not_settled_again(setting: Setting) -> None:
    """Another matcher of the account has renewed it."""
    first = transaction(1)
    other = renewed(first, NOW + WINDOW.length_ms, MATCHER)
    setting.node.sent.append(other)
    setting.node.mined[other.id] = 5
    setting.node.answer = BroadcastAnswer(Broadcast.TOO_LATE, "in the past relative to")
    chain_time(setting, NOW + WINDOW.back_ms + 1)
    setting.settlement.add(first)
    await eventually(lambda: set(setting.database.pending()) == {other.id})
    assert len(setting.settlement.off_chain) == 0
    assert {each.id for each in setting.node.sent} == {first.id, other.id}


async def test_one_that_the_node_refused_for_what_it_says_is_given_up_when_its_time_is_over(
    setting: Setting,
) -> None:
    setting.node.answer = BroadcastAnswer(Broadcast.NOT_YET, "negative asset balance")
    first = transaction(1)
    setting.settlement.add(first)
    await eventually(lambda: len(setting.node.sent) >= 1)
    assert [each.given_up for each in setting.settlement.unsettled(10)] == [False]
    chain_time(setting, NOW + WINDOW.back_ms + 1)
    await eventually(lambda: setting.refused == [first.id])
    [found] = setting.settlement.unsettled(10)
    assert found.given_up and "negative asset balance" in found.message
    # It is on the chain after all.
    setting.node.mined[first.id] = 6
    await setting.settlement.reconcile()
    assert setting.settlement.correction_of(first.id) == Correction(stands=True)
    setting.settlement.corrected(first.id, True)
    assert setting.settlement.unsettled(10) == [] and first.id in setting.settlement.pending


async def test_one_whose_orders_have_expired_is_given_up(setting: Setting) -> None:
    setting.node.answer = BroadcastAnswer(Broadcast.LATER, "the pool is full")
    first = exchange_of(1, NOW, lifetime_ms=WINDOW.length_ms)
    setting.settlement.add(first)
    chain_time(setting, NOW + WINDOW.back_ms + 1)
    await eventually(lambda: setting.refused == [first.id])
    assert "expired" in setting.settlement.unsettled(10)[0].message


# --- what is found by asking ----------------------------------------------------------------------


async def test_what_is_found_on_the_chain_is_told(setting: Setting) -> None:
    """The node says when it is sent once more that it has it: nobody else will say so."""
    first = transaction(1)
    setting.node.mined[first.id] = 4
    setting.node.answer = BroadcastAnswer(Broadcast.CONFIRMED, "already in the state")
    setting.settlement.add(first)
    await asyncio.wait_for(setting.settlement.found.wait(), 60)
    assert setting.settlement.take_found() == ((first.id, 4),)
    assert not setting.settlement.found.is_set()


async def test_what_is_found_above_the_last_block_that_was_told_is_not_relied_on(
    setting: Setting,
) -> None:
    """Such a block may go again, and nobody would tell that: nobody has told that it came."""
    first = transaction(1)
    setting.node.mined[first.id] = setting.node.height + 1
    setting.node.answer = BroadcastAnswer(Broadcast.CONFIRMED, "already in the state")
    setting.settlement.add(first)
    await setting.settlement.reconcile()
    await eventually(lambda: len(setting.node.sent) >= 2)
    assert list(setting.settlement.off_chain) == [first.id]
    # It has gone; the next block that is told of is another one.
    del setting.node.mined[first.id]
    setting.node.answer = BroadcastAnswer(Broadcast.UNCONFIRMED)
    await setting.mine()
    count = len(setting.node.sent)
    await eventually(lambda: len(setting.node.sent) > count)


async def test_when_something_was_missed_the_node_is_asked(setting: Setting) -> None:
    mined, gone = transaction(1), transaction(2)
    for each in (mined, gone):
        setting.settlement.add(each)
    await eventually(lambda: len(setting.node.sent) == 2)
    await setting.follow(appeared=(mined, gone))
    await setting.mine(gone)
    setting.node.mined = {mined.id: 9}
    await setting.follow(missed=True)
    assert setting.settlement.take_found() == ((mined.id, 9),)
    assert setting.lost == [gone.id]
    await eventually(lambda: [each.id for each in setting.node.sent][2:] == [gone.id])


async def test_one_that_is_too_late_gets_a_new_time_above_a_final_block(setting: Setting) -> None:
    """However short the chain is."""
    setting.node.answer = BroadcastAnswer(Broadcast.TOO_LATE, "in the past relative to")
    setting.node.height = 20
    setting.node.block_times = dict.fromkeys(range(1, 21), NOW + WINDOW.back_ms)
    setting.node.block_times[18] += 1
    first = transaction(1)
    setting.settlement.add(first)
    await setting.follow(finalized=17)
    await eventually(lambda: len(setting.node.sent) >= 3)
    assert {each.id for each in setting.node.sent} == {first.id}
    await setting.follow(finalized=18)
    await eventually(lambda: setting.node.sent[-1].id != first.id)
    assert set(setting.database.pending()) == {setting.node.sent[-1].id}


async def test_a_standby_forgets_what_is_old_and_deep_and_nothing_else(setting: Setting) -> None:
    """The one that leads has settled it; what it has not may fall to this one some day."""
    setting.settlement.deactivate()
    deep, shallow, missing = (transaction(number) for number in range(3))
    new = transaction(4, await setting.node.now())
    for each in (deep, shallow, missing, new):
        setting.settlement.add(each)
    setting.node.height = FINAL_DEPTH + 10
    setting.node.mined = {deep.id: 10, new.id: 10, shallow.id: 11}
    await setting.settlement.forget_settled()
    assert set(setting.database.pending()) == {shallow.id, missing.id, new.id}
