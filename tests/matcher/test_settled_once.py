"""An execution is settled by one transaction, whatever the settings of the next run are."""

from __future__ import annotations

import shutil
from pathlib import Path

import msgspec
import pytest

from soliton.chain.orders import Side
from soliton.chain.transactions.model import AnyTransaction
from soliton.matcher.errors import DatabaseProblem
from soliton.matcher.key_values import KeyValues
from soliton.matcher.node_client import BroadcastAnswer
from soliton.matcher.orders_db import OrdersDatabase
from soliton.matcher.service import Matcher
from soliton.matcher.settings import MatcherSettings
from tests.matcher.kit import (
    ALICE,
    BOB,
    COIN,
    MATCHER,
    FakeNode,
    address_of,
    eventually,
    make_order,
    running,
    settings_in,
)


class Photographer(FakeNode):
    """A node that copies the matcher's files at the moment in which it gets a transaction."""

    def __init__(self, directory: Path, copy: Path) -> None:
        super().__init__()
        self._directory, self._copy = directory, copy
        for keys in (ALICE, BOB):
            self.fund(keys)

    async def broadcast(self, transaction: AnyTransaction) -> BroadcastAnswer:
        if not self._copy.exists():
            shutil.copytree(self._directory, self._copy)
        return await super().broadcast(transaction)


async def trade(matcher: Matcher, *, market: bool = False) -> None:
    """Alice sells to Bob, who takes a part of her order."""
    await matcher.placing.place(make_order(ALICE, Side.SELL, 3 * COIN, 250), market=False)
    await matcher.placing.place(make_order(BOB, Side.BUY, COIN, 250), market=market)


def dearer(settings: MatcherSettings, directory: Path) -> MatcherSettings:
    """Other settings, with which the same execution gives another transaction."""
    trading = msgspec.structs.replace(settings.trading, exchange_base_fee=400_000)
    return msgspec.structs.replace(settings, directory=directory, trading=trading)


@pytest.mark.parametrize("market", [False, True])
async def test_a_crash_after_the_first_broadcast_does_not_make_another_transaction(
    tmp_path: Path, market: bool
) -> None:
    settings, copy = settings_in(tmp_path / "first"), tmp_path / "crashed"
    node = Photographer(settings.directory, copy)
    async with running(settings, node) as matcher:
        await trade(matcher, market=market)
        await eventually(lambda: len(node.sent) == 1)
    [sent] = node.sent
    async with running(dearer(settings, copy), node) as second:
        await eventually(lambda: len(node.sent) == 2)
        assert second.engine.last_offset == 1
        assert [each.id for each in second.database.transactions_of(trade_orders(sent)[0])] == [
            sent.id
        ]
    assert {each.id for each in node.sent} == {sent.id}


def trade_orders(transaction: AnyTransaction) -> list[bytes]:
    return [transaction.payload.order1.id, transaction.payload.order2.id]


@pytest.mark.parametrize("where", ["chain", "failed", "pool"])
async def test_a_replay_from_the_beginning_finds_what_was_sent(tmp_path: Path, where: str) -> None:
    """The orders database is gone, so all transactions are made again, with another fee."""
    settings = settings_in(tmp_path / "first")
    node = Photographer(settings.directory, tmp_path / "copy")
    async with running(settings, node) as matcher:
        await trade(matcher)
        await eventually(lambda: len(node.sent) == 1)
    [sent] = node.sent
    shutil.rmtree(settings.directory / "orders")
    shutil.rmtree(settings.directory / "snapshots")
    node.height = 9
    if where == "pool":
        node.pool = [sent]
    else:
        node.mined = {sent.id: 9}
        node.failures = {sent.id: "script_execution_failed"} if where == "failed" else {}
    async with running(dearer(settings, settings.directory), node) as second:
        assert set(second.database.pending()) == {sent.id}
        for order_id in trade_orders(sent):
            assert [each.id for each in second.database.transactions_of(order_id)] == [sent.id]
        waiting, _ = second.settlement.unsettled_counts()
        assert waiting == (where == "failed")
    assert {each.id for each in node.sent} == {sent.id}


async def test_what_nobody_has_sent_is_sent_after_the_search(tmp_path: Path) -> None:
    settings = settings_in(tmp_path / "first")
    node = Photographer(settings.directory, tmp_path / "copy")
    async with running(settings, node) as matcher:
        await trade(matcher)
        await eventually(lambda: len(node.sent) == 1)
    shutil.rmtree(settings.directory / "orders")
    shutil.rmtree(settings.directory / "snapshots")
    [earlier], node.sent = node.sent, []
    async with running(dearer(settings, settings.directory), node) as second:
        await eventually(lambda: len(node.sent) == 1)
        [sent] = node.sent
        assert (sent.fee, earlier.fee) == (400_000, 300_000)
        # After a rollback it is sent again, without another search.
        node.mine(sent)
        await eventually(lambda: not second.settlement.off_chain)
        node.roll_back(node.height - 1)
        await eventually(lambda: len(node.sent) == 2)
    assert {each.id for each in node.sent} == {sent.id}


async def test_nothing_is_sent_that_the_disk_does_not_have(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    full = [True]
    write = KeyValues._write

    def writing(self: OrdersDatabase, changes: dict[bytes, bytes | None]) -> None:
        if full[0] and any(key.startswith(b"x") for key in changes):
            raise DatabaseProblem("the disk is full")
        write(self, changes)

    monkeypatch.setattr(KeyValues, "_write", writing)
    monkeypatch.setattr("soliton.matcher.broadcasting._PAUSE_SECONDS", 0.01)
    settings = settings_in(tmp_path / "first")
    node = Photographer(settings.directory, tmp_path / "copy")
    async with running(settings, node) as matcher:
        await trade(matcher)
        matcher.database.complete()
        await eventually(
            lambda: any("full" in each.message for each in matcher.settlement.unsettled(9))
        )
        assert node.sent == []
        full[0] = False
        await eventually(lambda: len(node.sent) == 1)
        assert node.sent[0].sender_public_key == MATCHER.public_key
        assert matcher.address == address_of(MATCHER)
