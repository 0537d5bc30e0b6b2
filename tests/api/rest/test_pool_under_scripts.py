"""Calls of dApps that wait: few of them are run again after a block, and nobody waits for it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from soliton.chain import microblocks
from soliton.chain.addresses import address_text, from_public_key, parse_address
from soliton.chain.function_calls import FunctionCall
from soliton.chain.transactions.invoke_script import TYPE as INVOKE
from soliton.chain.transactions.invoke_script import InvokeScript
from soliton.chain.transactions.mass_transfer import TYPE as MASS_TRANSFER
from soliton.chain.transactions.mass_transfer import MassTransfer, TransferItem
from soliton.chain.transactions.model import AnyTransaction
from soliton.chain.transactions.set_script import TYPE as SET_SCRIPT
from soliton.chain.transactions.set_script import SetScript
from soliton.crypto.keys import key_pair
from soliton.ledger import invocation
from soliton.ledger.state_changes import Invoked
from soliton.node import node as node_module
from soliton.node import turns
from soliton.ride.compiler import compile_source
from tests.api.chain import RICH, RICH_ADDRESS, WITH_KEY, PrivateChain
from tests.node import forging

SOURCE = """{-# STDLIB_VERSION 6 #-}
{-# CONTENT_TYPE DAPP #-}
func of(key: String) = match getInteger(this, key) { case n: Int => n case _ => 0 }
@Callable(i)
func countAll() = [IntegerEntry("all", of("all") + 1)]
@Callable(i)
func countMine() = {
  let key = toBase58String(i.caller.bytes)
  [IntegerEntry(key, of(key) + 1)]
}
@Callable(i)
func keepHeight() = [IntegerEntry("height", height)]
"""
PEOPLE = [key_pair(f"caller {number}") for number in range(10)]
IN_A_MICROBLOCK = 5


class Counted:
    """How many calls of dApps have been run."""

    def __init__(self) -> None:
        self.count = 0

    def since(self) -> int:
        """How many since the last question."""
        count, self.count = self.count, 0
        return count


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> Counted:
    counted, invoke = Counted(), invocation.invoke

    def noted(*arguments: Any) -> Invoked:
        counted.count += 1
        return invoke(*arguments)

    monkeypatch.setattr(invocation, "invoke", noted)
    return counted


@pytest.fixture
def dapp(tmp_path: Path) -> Iterator[PrivateChain]:
    """A chain with a dApp and people who have coins, and a first block that takes microblocks."""
    chain = PrivateChain(tmp_path)
    script = compile_source(SOURCE).script.source
    chain.send(chain.sign(SET_SCRIPT, SetScript(script), 2, fee=10_000_000))
    chain_id = chain.node.network.chain_id
    items = tuple(
        TransferItem(from_public_key(each.public_key, chain_id), 10**9) for each in PEOPLE
    )
    chain.send(chain.sign(MASS_TRANSFER, MassTransfer(None, items, b""), 1, fee=10_000_000))
    chain.mine()
    chain.tick()
    chain.node.mine(RICH, empty=True)
    yield chain
    chain.node.close()


def invoke(chain: PrivateChain, name: str, number: int) -> AnyTransaction:
    to = parse_address(RICH_ADDRESS, chain.node.network.chain_id)
    call = InvokeScript(to, FunctionCall(name, ()), ())
    return chain.sign(INVOKE, call, 2, fee=500_000, keys=PEOPLE[number % len(PEOPLE)])


def of_five(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(microblocks, "MAX_TRANSACTIONS", IN_A_MICROBLOCK)


@pytest.mark.parametrize("name", ["countAll", "countMine", "keepHeight"])
async def test_a_microblock_has_no_call_run_again_that_finds_what_it_expected(
    dapp: PrivateChain, runs: Counted, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    of_five(monkeypatch)
    for number in range(40):
        assert (await dapp.broadcast(invoke(dapp, name, number))).status == 200
    assert runs.since() == 40
    for left in (35, 30):
        forging.mine_micro(dapp.node, RICH)
        assert runs.since() == IN_A_MICROBLOCK
        size: Any = (await dapp.get("/transactions/unconfirmed/size")).json()
        assert size["size"] == left


async def test_a_block_has_those_run_again_that_ask_for_the_height(
    dapp: PrivateChain, runs: Counted
) -> None:
    for number in range(8):
        await dapp.broadcast(invoke(dapp, "keepHeight", number))
        await dapp.broadcast(invoke(dapp, "countMine", number))
    runs.since()
    dapp.tick()
    dapp.node.mine(RICH, empty=True)
    assert runs.since() == 8


async def test_who_finds_something_else_is_run_again(
    dapp: PrivateChain, runs: Counted, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What pays more comes first into the block: those it passes count from there."""
    of_five(monkeypatch)
    for number in range(10):
        await dapp.broadcast(invoke(dapp, "countAll", number % 5))
    paying = invoke(dapp, "countAll", 5)
    dear = dapp.sign(INVOKE, paying.payload, 2, fee=9_000_000, keys=PEOPLE[5])
    await dapp.broadcast(dear)
    runs.since()
    forging.mine_micro(dapp.node, RICH)
    mined = dapp.node.chain.last_block.transactions
    assert mined[0] == dear and len(mined) == IN_A_MICROBLOCK
    # Five are mined. Each of those that wait finds one more counted, as it was behind them before.
    assert runs.since() == IN_A_MICROBLOCK + 6
    forging.mine_micro(dapp.node, RICH)
    forging.mine_micro(dapp.node, RICH)
    shown: Any = (await dapp.get(f"/addresses/data/{RICH_ADDRESS}/all")).json()
    assert shown["value"] == 11


async def test_requests_are_answered_while_the_pool_follows(
    dapp: PrivateChain, runs: Counted, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(node_module, "SETTLING_SECONDS", 0.0)
    monkeypatch.setattr(node_module, "PAUSES", 0)
    for number in range(8):
        await dapp.broadcast(invoke(dapp, "keepHeight", number))
    runs.since()
    dapp.tick()
    await dapp.node.mine_in_steps(RICH, empty=True)
    node, answered, most = dapp.node, 0, 0
    while not node.pool.is_settled:
        assert (await dapp.get("/blocks/height")).status == 200
        # Whoever comes meanwhile is let in, and mining goes on.
        if answered == 3:
            assert (await dapp.broadcast(invoke(dapp, "countMine", 9))).status == 200
            assert await node.mine_micro_in_steps(RICH) == 9
        answered += 1
        most = max(most, runs.since())
        await asyncio.sleep(0)
    # Never more than one call in one go, but for the block with its nine, and what was asked for.
    assert answered >= 4 and most <= 11
    await node.settled()
    assert len(node.pool) == 0


async def test_what_a_rollback_returns_is_there_when_it_is_answered(
    dapp: PrivateChain, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(node_module, "SETTLING_SECONDS", 0.0)
    sent = [invoke(dapp, "countMine", number) for number in range(20)]
    for each in sent:
        await dapp.broadcast(each)
    dapp.mine()
    height = dapp.node.chain.height
    body = {"rollbackTo": height - 1, "returnTransactionsToUtx": True}
    assert (await dapp.post("/debug/rollback", body, WITH_KEY)).status == 200
    assert dapp.node.pool.transactions() == sent


async def test_a_block_waits_for_what_a_rollback_returns(
    dapp: PrivateChain, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those that came later may need it."""
    monkeypatch.setattr(node_module, "SETTLING_SECONDS", 0.0)
    poor = key_pair("who has nothing yet")
    to = address_text(from_public_key(poor.public_key, dapp.node.network.chain_id))
    sent = [dapp.send(dapp.transfer(to=to, amount=number + 1)) for number in range(5)]
    sent.append(dapp.send(dapp.transfer(to=to, amount=2 * 10**6)))
    dapp.mine()
    spends = dapp.send(dapp.transfer(amount=10**6, keys=poor, fee=900_000))
    height = dapp.node.chain.height
    body = {"rollbackTo": height - 1, "returnTransactionsToUtx": True}
    answer = asyncio.create_task(dapp.post("/debug/rollback", body, WITH_KEY))
    while dapp.node.chain.height == height:  # noqa: ASYNC110 - nothing here could set an event
        await asyncio.sleep(0)
    assert not dapp.node.pool.is_settled
    block = await dapp.node.mine_in_steps(RICH)
    assert {each.id for each in block.transactions} == {each.id for each in (*sent, spends)}
    assert (await answer).status == 200


PAYING = """{-# STDLIB_VERSION 6 #-}
{-# CONTENT_TYPE DAPP #-}
func sums(x: Int) = SUM
@Callable(i)
func pay(to: String) = {
  strict spent = SPENT
  [ScriptTransfer(addressFromStringValue(to), 100000000, unit), IntegerEntry("spent", spent)]
}
"""
POOR = key_pair("somebody without coins")


@pytest.mark.parametrize("sums", [1, 18], ids=["cheap", "dear"])
@pytest.mark.parametrize("mines", [False, True], ids=["waits", "mines"])
async def test_what_comes_back_from_a_removed_block_is_not_lost_with_what_needs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sums: int, mines: bool
) -> None:
    """A call pays somebody who spends that; the call comes back in turns, and somebody mines."""
    chain = PrivateChain(tmp_path)
    node, chain_id = chain.node, chain.node.network.chain_id
    spent = " + ".join(f"sums({number})" for number in range(sums))
    source = PAYING.replace("SUM", "+".join(["x"] * 400)).replace("SPENT", spent)
    script = compile_source(source).script.source
    chain.send(chain.sign(SET_SCRIPT, SetScript(script), 2, fee=100_000_000))
    chain.mine()
    dapp = parse_address(RICH_ADDRESS, chain_id)
    poor = address_text(from_public_key(POOR.public_key, chain_id))
    payment = InvokeScript(dapp, FunctionCall("pay", (poor,)), ())
    call = chain.send(chain.sign(INVOKE, payment, 2, fee=500_000))
    spending = MassTransfer(None, (TransferItem(dapp, 1),), b"")
    spent_at_once = chain.send(chain.sign(MASS_TRANSFER, spending, 1, fee=200_000, keys=POOR))
    height = node.chain.height
    chain.mine()
    assert len(node.chain.last_block.transactions) == 2
    # Each pause of a script ends a turn.
    monkeypatch.setattr(turns, "TURN_SECONDS", 0.0)
    rollback = asyncio.create_task(node.roll_back_in_steps(height, keep=True))
    while not len(node.turns):  # noqa: ASYNC110 - the queue sets no event
        await asyncio.sleep(0)
    assert not len(node.pool)
    chain.tick()
    if mines:
        await node.mine_in_steps(RICH)
    await rollback
    await node.settled()
    found = {each.id for each in node.pool.transactions()}
    if mines:
        found |= {each.id for each in node.chain.last_block.transactions}
    assert found == {call.id, spent_at_once.id}
    node.close()
