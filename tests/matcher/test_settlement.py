"""Transactions on their way: sent, sent again, confirmed, rolled back, refused."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import pytest
import pytest_asyncio

from soliton.chain.transactions import codec
from soliton.chain.transactions.model import AnyTransaction
from soliton.matcher.node_client import Broadcast, BroadcastAnswer, NodeUpdate
from soliton.matcher.orders_db import OrdersDatabase
from soliton.matcher.settings import Settlement as SettlementSettings
from soliton.matcher.settlement import FINAL_DEPTH, Settlement
from soliton.matcher.turns import SLICE
from tests.matcher.kit import CHAIN_ID, MATCHER, FakeNode, eventually, unsigned_transfer

NOW = 1_700_000_000_000


def transaction(number: int, timestamp: int = NOW) -> AnyTransaction:
    return codec.sign(unsigned_transfer(number, timestamp), MATCHER.private_key)


@dataclass
class Setting:
    """A settlement that runs, with what it tells."""

    node: FakeNode
    database: OrdersDatabase
    settlement: Settlement
    refused: list[tuple[bytes, str]] = field(default_factory=list)
    lost: list[bytes] = field(default_factory=list)

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
    refused: list[tuple[bytes, str]] = []
    lost: list[bytes] = []
    settlement = Settlement(
        node,
        database,
        SettlementSettings(interval_ms=20),
        lambda: NOW,
        lambda *both: refused.append(both),
        lost.append,
    )
    settlement.load()
    tasks = [asyncio.create_task(each) for each in settlement.tasks()]
    yield Setting(node, database, settlement, refused, lost)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await database.close()


async def test_one_that_the_node_shows_is_not_sent_again(setting: Setting) -> None:
    first = transaction(1)
    setting.settlement.add(first)
    setting.settlement.add(first)
    await eventually(lambda: len(setting.node.sent) == 1)
    await setting.follow(appeared=(first,))
    await asyncio.sleep(0.06)
    assert len(setting.node.sent) == 1
    await setting.mine(first)
    assert len(setting.settlement) == 0
    assert setting.settlement.counts.confirmed == 1


async def test_one_that_the_node_does_not_show_is_sent_again(
    setting: Setting, monkeypatch: pytest.MonkeyPatch
) -> None:
    times = iter(range(NOW, NOW + 10**9, 1_000))
    monkeypatch.setattr(setting.settlement, "_clock", lambda: next(times))
    first = transaction(1)
    setting.settlement.add(first)
    await eventually(lambda: len(setting.node.sent) >= 3)
    assert {each.id for each in setting.node.sent} == {first.id}
    await setting.follow(appeared=(first,))
    await setting.follow(vanished=(first.id,))
    count = len(setting.node.sent)
    await eventually(lambda: len(setting.node.sent) > count)


async def test_refused_for_now_and_for_good(setting: Setting) -> None:
    setting.node.answer = BroadcastAnswer(Broadcast.RETRY, "too many")
    first = transaction(1)
    setting.settlement.add(first)
    await eventually(lambda: len(setting.node.sent) == 1)
    assert setting.refused == [] and len(setting.settlement) == 1
    setting.node.answer = BroadcastAnswer(Broadcast.REFUSED, "never")
    second = transaction(2)
    setting.settlement.add(second)
    await eventually(lambda: setting.refused == [(second.id, "never")])
    assert set(setting.database.pending()) == {first.id}


async def test_too_old_ones_are_given_up(setting: Setting) -> None:
    old = transaction(1, NOW - 7_200_001)
    setting.settlement.add(old)
    await asyncio.sleep(0.03)
    assert setting.node.sent == [] and setting.database.pending() == {}
    assert setting.database.transaction(old.id) == old


async def test_one_that_becomes_too_old_on_its_way_is_refused(
    setting: Setting, monkeypatch: pytest.MonkeyPatch
) -> None:
    setting.node.answer = BroadcastAnswer(Broadcast.RETRY, "not yet")
    first = transaction(1)
    setting.settlement.add(first)
    await eventually(lambda: len(setting.node.sent) == 1)
    monkeypatch.setattr(setting.settlement, "_clock", lambda: NOW + 7_200_001)
    await eventually(lambda: setting.refused == [(first.id, "it is too old")])


async def test_a_standby_only_writes_down(setting: Setting) -> None:
    setting.settlement.rest()
    first = transaction(1)
    setting.settlement.add(first)
    await asyncio.sleep(0.03)
    assert setting.node.sent == [] and len(setting.settlement) == 0
    setting.settlement.load()
    await setting.settlement.reconcile()
    await eventually(lambda: [each.id for each in setting.node.sent] == [first.id])


async def test_rolled_back_ones_are_sent_again_until_they_are_deep(setting: Setting) -> None:
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


async def test_what_an_earlier_run_left_is_looked_up_and_sent(setting: Setting) -> None:
    mined, lost = transaction(1), transaction(2)
    for each in (mined, lost):
        setting.database.put_transaction(each)
    setting.node.heights[mined.id] = 1
    setting.settlement.load()
    await setting.settlement.reconcile()
    await eventually(lambda: [each.id for each in setting.node.sent] == [lost.id])
    assert setting.settlement.unconfirmed() == [lost.id]


async def test_a_node_that_is_down_is_waited_for(
    setting: Setting, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("soliton.matcher.settlement._PAUSE_SECONDS", 0.01)
    times = iter(range(NOW, NOW + 10**9, 1_000))
    monkeypatch.setattr(setting.settlement, "_clock", lambda: next(times))
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
    await eventually(lambda: len(setting.node.sent) >= len(many), 20)
    turns = [0]

    async def others() -> None:
        while True:
            turns[-1] += 1
            await asyncio.sleep(0)

    task = asyncio.create_task(others())
    await setting.mine(*many)
    assert len(setting.settlement) == 0
    turns.append(0)
    await setting.follow(rolled_back_to=setting.node.height - 1)
    assert setting.lost == [each.id for each in many]
    assert setting.settlement.unconfirmed() == setting.lost
    turns.append(0)
    await setting.mine(*many)
    setting.node.height += FINAL_DEPTH
    await setting.follow()
    assert setting.database.pending() == {}
    task.cancel()
    assert min(turns) >= 5
