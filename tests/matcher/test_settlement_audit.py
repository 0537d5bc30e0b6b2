"""Executions without their transaction, and transactions that went lost, are found."""

from __future__ import annotations

import shutil
from pathlib import Path

import msgspec
import pytest

from soliton.chain.addresses import address_text
from soliton.chain.orders import Side
from soliton.matcher.audit import Audit
from soliton.matcher.orders_db import OrdersDatabase
from soliton.matcher.settings import MatcherSettings
from soliton.matcher.settlement_audit import Fault, SettlementAudit, SettlementCounts
from soliton.matcher.stores import reading
from soliton.matching.engine import Engine
from tests.matcher.kit import (
    ALICE,
    BOB,
    COIN,
    MATCHER,
    PAIR,
    FakeNode,
    address_of,
    eventually,
    make_order,
    running,
    settings_in,
)

EXECUTING = 2
"""The offset of the command that executes with both orders before it."""


def database_of(settings: MatcherSettings) -> OrdersDatabase:
    owner = address_text(address_of(MATCHER))
    chain_id = settings.network.chain_id
    return OrdersDatabase(settings.directory / "orders", owner, chain_id, 100, durable=False)


async def traded(settings: MatcherSettings) -> FakeNode:
    """Two sellers and a buyer of both; everything was sent."""
    node = FakeNode()
    for keys in (ALICE, BOB):
        node.fund(keys)
    async with running(settings, node) as matcher:
        for side, keys, amount in (
            (Side.SELL, ALICE, COIN),
            (Side.SELL, ALICE, 2 * COIN),
            (Side.BUY, BOB, 3 * COIN),
        ):
            await matcher.placing.place(make_order(keys, side, amount, 250), market=False)
        await eventually(lambda: len(node.sent) == 2)
    return node


async def audited(
    settings: MatcherSettings, node: FakeNode | None, final: int = 0
) -> tuple[SettlementCounts, list[Fault]]:
    async def find_final() -> int:
        return final

    database = database_of(settings)
    try:
        settlement = SettlementAudit(database, node, find_final)
        engine = Engine(settings.trading.matching(lambda _: 8))
        audit = Audit(engine, MATCHER.public_key)
        async with reading(settings) as (_, batches):
            async for batch in batches:
                for record in batch:
                    await settlement.take(record.offset, audit.take(record))
        await settlement.finish()
        return settlement.counts, settlement.faults
    finally:
        await database.close()


async def test_transactions_are_on_the_chain_or_in_the_pool(tmp_path: Path) -> None:
    settings = settings_in(tmp_path)
    node = await traded(settings)
    node.mined = {node.sent[0].id: 7, node.sent[1].id: 0}
    assert await audited(settings, node) == (SettlementCounts(confirmed=1, waiting=1), [])
    for final, counts in ((6, SettlementCounts(1, 0, 1)), (7, SettlementCounts(1, 1, 1))):
        assert await audited(settings, node, final) == (counts, [])
    assert await audited(settings, None) == (SettlementCounts(), [])


async def test_what_is_in_a_block_but_was_not_executed_is_a_fault(tmp_path: Path) -> None:
    settings = settings_in(tmp_path)
    node = await traded(settings)
    node.mined = {each.id: 7 for each in node.sent}
    node.failures = {node.sent[1].id: "script_execution_failed"}
    counts, faults = await audited(settings, node)
    assert counts == SettlementCounts(confirmed=1)
    assert [(each.offset, each.index) for each in faults] == [(EXECUTING, 1)]
    assert "block 7" in faults[0].why and "script_execution_failed" in faults[0].why


async def test_what_the_database_does_not_know_is_not_taken_for_settled(tmp_path: Path) -> None:
    settings = settings_in(tmp_path)
    node = await traded(settings)
    shutil.rmtree(settings.directory / "orders")
    assert await audited(settings, node) == (SettlementCounts(unknown=2), [])


async def test_all_that_is_not_settled_is_found(tmp_path: Path) -> None:
    """After a rollback, one waits to be sent again and the other one was given up."""
    settings = settings_in(tmp_path)
    node = await traded(settings)
    database = database_of(settings)
    database.settle(node.sent[1].id)
    await database.close()
    counts, faults = await audited(settings, node)
    assert counts == SettlementCounts()
    assert [(each.offset, each.index, each.amount) for each in faults] == [
        (EXECUTING, 0, COIN),
        (EXECUTING, 1, 2 * COIN),
    ]
    assert "waits to be sent" in faults[0].why and "given up" in faults[1].why


@pytest.mark.parametrize("change", ["amount", "price", "transaction_id", "maker_order_id"])
async def test_a_database_that_says_something_else_is_found(tmp_path: Path, change: str) -> None:
    settings = settings_in(tmp_path)
    await traded(settings)
    database = database_of(settings)
    trade = database.trade(PAIR, EXECUTING, 1)
    assert trade is not None
    other = bytes(32) if change.endswith("id") else 1
    database.put_trade(PAIR, msgspec.structs.replace(trade, **{change: other}))
    await database.close()
    _, faults = await audited(settings, None)
    assert [(each.offset, each.index) for each in faults] == [(EXECUTING, 1)]


async def test_the_transaction_of_another_execution_is_found(tmp_path: Path) -> None:
    settings = settings_in(tmp_path)
    await traded(settings)
    database = database_of(settings)
    first, second = (database.trade(PAIR, EXECUTING, index) for index in (0, 1))
    assert first is not None and second is not None
    changed = msgspec.structs.replace(second, transaction_id=first.transaction_id)
    database.put_trade(PAIR, changed)
    await database.close()
    _, faults = await audited(settings, None)
    assert [each.why for each in faults] == ["its transaction is another"]
