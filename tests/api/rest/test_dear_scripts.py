"""Transactions whose scripts take long: other requests are answered while they are checked."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from soliton.chain.addresses import parse_address
from soliton.chain.function_calls import FunctionCall
from soliton.chain.transactions import codec
from soliton.chain.transactions.invoke_script import TYPE as INVOKE
from soliton.chain.transactions.invoke_script import InvokeScript
from soliton.chain.transactions.model import AnyTransaction
from soliton.chain.transactions.set_script import TYPE as SET_SCRIPT
from soliton.chain.transactions.set_script import SetScript
from soliton.node import pool_entries, turns
from soliton.ride.compiler import compile_source
from tests.api.chain import RICH, RICH_ADDRESS, PrivateChain
from tests.node import forging

SUM = "+".join(["x"] * 400)
CONDITIONS = " && ".join(["x"] * 300)
SOURCE = f"""{{-# STDLIB_VERSION 6 #-}}
{{-# CONTENT_TYPE DAPP #-}}
{{-# SCRIPT_TYPE ACCOUNT #-}}
func of(key: String) = match getInteger(this, key) {{ case n: Int => n case _ => 0 }}
func sums(x: Int) = {SUM}
func free(x: Boolean) = {CONDITIONS}
func ten(x: Boolean) = {" && ".join(["free(x)"] * 10)}
@Callable(i)
func count() = {{
  strict before = of("all")
  strict spent = sums(before) + sums(1) + sums(2) + sums(3) + sums(4)
  [IntegerEntry("all", before + 1), IntegerEntry("spent", spent)]
}}
@Callable(i)
func fail() = {{
  strict spent = sums(1) + sums(2) + sums(3)
  if (spent > 0) then throw("no") else []
}}
@Callable(i)
func conditions() = {{
  strict spent = {" && ".join(["ten(true)"] * 30)}
  []
}}
"""


@pytest.fixture
def dapp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[PrivateChain]:
    """A chain with a dApp, each of whose portions is a turn of the event loop."""
    chain = PrivateChain(tmp_path)
    script = compile_source(SOURCE).script.source
    chain.send(chain.sign(SET_SCRIPT, SetScript(script), 2, fee=100_000_000))
    chain.mine()
    monkeypatch.setattr(turns, "TURN_SECONDS", 0.0)
    yield chain
    chain.node.close()


def call(chain: PrivateChain, name: str) -> AnyTransaction:
    to = parse_address(RICH_ADDRESS, chain.node.network.chain_id)
    return chain.sign(INVOKE, InvokeScript(to, FunctionCall(name, ()), ()), 2, fee=500_000)


async def entry(chain: PrivateChain, key: str) -> Any:
    return (await chain.get(f"/addresses/data/{RICH_ADDRESS}/{key}")).json()


async def under_way(chain: PrivateChain, count: int = 1) -> None:
    """Wait until so many checks are in the middle."""
    while len(chain.node.turns) < count:  # noqa: ASYNC110 - the queue sets no event
        await asyncio.sleep(0)


async def test_others_are_answered_while_a_script_runs(dapp: PrivateChain) -> None:
    broadcast = asyncio.create_task(dapp.broadcast(call(dapp, "count")))
    await under_way(dapp)
    answered = 0
    while not broadcast.done():
        assert (await dapp.get("/blocks/height")).status == 200
        answered += 1
        await asyncio.sleep(0)
    assert broadcast.result().status == 200
    assert answered >= 10


async def test_a_transfer_does_not_wait_for_a_dear_call(dapp: PrivateChain) -> None:
    dear = call(dapp, "count")
    broadcast = asyncio.create_task(dapp.broadcast(dear))
    await under_way(dapp)
    transfer = dapp.transfer()
    assert (await dapp.broadcast(transfer)).status == 200
    assert not broadcast.done()
    assert (await broadcast).status == 200
    assert {each.id for each in dapp.node.pool.transactions()} == {transfer.id, dear.id}
    dapp.mine()
    assert len(dapp.node.chain.last_block.transactions) == 2


async def test_calls_that_read_what_others_write_are_checked_again(dapp: PrivateChain) -> None:
    calls = [asyncio.create_task(dapp.broadcast(call(dapp, "count"))) for _ in range(3)]
    await under_way(dapp, 3)
    assert [(await each).status for each in calls] == [200] * 3
    dapp.node.pool.settle()
    dapp.mine()
    assert len(dapp.node.chain.last_block.transactions) == 3
    assert (await entry(dapp, "all"))["value"] == 3


async def test_the_same_call_twice_is_in_the_pool_once(dapp: PrivateChain) -> None:
    dear = call(dapp, "count")
    both = [asyncio.create_task(dapp.broadcast(dear)) for _ in range(2)]
    await under_way(dapp, 2)
    assert [(await each).status for each in both] == [200, 200]
    assert [each.id for each in dapp.node.pool.transactions()] == [dear.id]


async def test_a_block_may_come_meanwhile(dapp: PrivateChain) -> None:
    dear, rival = call(dapp, "count"), call(dapp, "count")
    broadcast = asyncio.create_task(dapp.broadcast(dear))
    await under_way(dapp)
    dapp.node.broadcast(rival)
    dapp.mine()
    assert (await broadcast).status == 200
    await dapp.node.settled()
    dapp.mine()
    assert (await entry(dapp, "all"))["value"] == 2


async def test_the_call_itself_may_be_mined_meanwhile(dapp: PrivateChain) -> None:
    dear = call(dapp, "count")
    broadcast = asyncio.create_task(dapp.broadcast(dear))
    await under_way(dapp)
    dapp.node.broadcast(dear)
    dapp.mine()
    await broadcast
    await dapp.node.settled()
    assert not dapp.node.pool.transactions()


async def test_failures_are_told_as_before(dapp: PrivateChain) -> None:
    answer = await dapp.broadcast(call(dapp, "fail"))
    body: Any = answer.json()
    assert answer.status == 400
    assert body["error"] == 306
    traced = await dapp.post(
        "/transactions/broadcast?trace=true", codec.to_json(call(dapp, "fail"))
    )
    assert traced.status == 400


async def test_microblocks_are_made_while_scripts_run(dapp: PrivateChain) -> None:
    dapp.tick()
    dapp.node.mine(RICH, empty=True)
    transfer = dapp.transfer()
    dapp.node.broadcast(transfer)
    dear = call(dapp, "count")
    broadcast = asyncio.create_task(dapp.broadcast(dear))
    await under_way(dapp)
    assert forging.mine_micro(dapp.node, RICH) == 1
    assert (await broadcast).status == 200
    await dapp.node.settled()
    assert dear.id in dapp.node.pool


async def test_what_costs_nothing_is_bounded(
    dapp: PrivateChain, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pool_entries, "MAX_PAUSES", 200)
    answer = await dapp.broadcast(call(dapp, "conditions"))
    body: Any = answer.json()
    assert answer.status == 400
    assert "take too long to run" in body["message"]
    assert (await dapp.broadcast(call(dapp, "count"))).status == 200


async def test_too_many_at_once_are_refused(
    dapp: PrivateChain, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(turns, "MAX_WAITING", 2)
    calls = [asyncio.create_task(dapp.broadcast(call(dapp, "count"))) for _ in range(4)]
    statuses = sorted([(await each).status for each in calls])
    assert statuses[:2] == [200, 200]
    assert set(statuses[2:]) <= {200, 503}
    assert 503 in statuses


async def test_a_stop_ends_what_is_under_way(dapp: PrivateChain) -> None:
    broadcast = asyncio.create_task(dapp.broadcast(call(dapp, "count")))
    await under_way(dapp)
    dapp.node.turns.close()
    assert (await broadcast).status == 503
    assert not dapp.node.pool.transactions()
