"""When blocks are made: a failure to make one is told, and mining goes on."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from soliton.chain import networks
from soliton.crypto.keys import KeyPair
from soliton.ledger.errors import BlockRejected
from soliton.node import key_blocks, miner, mining
from soliton.node.miner import CannotMine
from soliton.node.mining import mine_by_schedule, mine_in_rhythm, mine_on_demand
from soliton.node.node import Node
from soliton.node.settings import load_settings
from soliton.node.wallet import Wallet
from tests.node import forging
from tests.node.chains import RICH, address_of, open_chain, person, transfer

DAY_MS = 86_400_000


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    settings = load_settings(network="devnet", data_dir=tmp_path)
    wallet = Wallet.open(None, None, b"waves private node seed with waves tokens")
    node = Node(settings, wallet, durable=False)
    node.mine(RICH)
    yield node
    node.close()


@pytest.fixture(autouse=True)
def _without_delay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mining, "RETRY_SECONDS", 0.01)


@contextlib.asynccontextmanager
async def running(work: Coroutine[None, None, None]) -> AsyncIterator[asyncio.Task[None]]:
    task = asyncio.create_task(work)
    await asyncio.sleep(0)
    try:
        yield task
        assert not task.done()
    finally:
        task.cancel()


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not condition():  # noqa: ASYNC110 - nothing here could set an event
            await asyncio.sleep(0.002)


def fail_first(node: Node, monkeypatch: pytest.MonkeyPatch, times: int = 2) -> list[str]:
    """Let the node fail to make its next blocks; the list has one entry for each failure."""
    mine, failed = node.mine_in_steps, list[str]()

    async def failing(*_arguments: object, **options: Any) -> object:
        if len(failed) < times:
            failed.append("failed")
            raise CannotMine("not now")
        return await mine(RICH, **options)

    monkeypatch.setattr(node, "mine_in_steps", failing)
    return failed


async def test_on_demand_goes_on_after_failures(
    node: Node, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    failed = fail_first(node, monkeypatch)
    async with running(mine_on_demand(node, RICH)):
        node.broadcast(transfer(node.chain, RICH, person("ann"), 10**8))
        await until(lambda: node.chain.height == 3)
    assert len(failed) == 2
    assert caplog.messages.count("cannot make a block: not now") == 2
    assert len(node.pool) == 0
    assert len(node.chain.last_block.transactions) == 1


async def test_on_demand_many_transactions_come_in_many_blocks(node: Node) -> None:
    ann = person("ann")
    count = 2 * mining.MOST_TOGETHER + 10
    for number in range(count):
        node.broadcast(transfer(node.chain, RICH, ann, number + 1))
    first = node.chain.height + 1
    async with running(mine_on_demand(node, RICH)):
        await until(lambda: len(node.pool) == 0)
    blocks = [node.chain.block_at(height) for height in range(first, node.chain.height + 1)]
    made = [len(block.transactions) for block in blocks]
    assert made == [mining.MOST_TOGETHER, mining.MOST_TOGETHER, 10]


async def test_rhythm_goes_on_after_failures(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    failed = fail_first(node, monkeypatch)
    async with running(mine_in_rhythm(node, RICH, 0.01)):
        await until(lambda: node.chain.height >= 5)
    assert len(failed) == 2


async def test_schedule_goes_on_after_failures(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    mine, failed = key_blocks.mine_key_block, list[str]()

    def failing(_node: object, _account: object) -> object:
        if len(failed) < 2:
            failed.append("failed")
            raise CannotMine("not now")
        return mine(node, RICH)

    monkeypatch.setattr(key_blocks, "mine_key_block", failing)
    async with running(mine_by_schedule(node)):
        await until(lambda: node.chain.height >= 4)
    assert len(failed) == 2


async def test_others_get_their_turn_while_a_block_is_made(node: Node) -> None:
    ann = person("ann")
    sent = [transfer(node.chain, RICH, ann, number + 1) for number in range(100)]
    for transaction in sent[:90]:
        node.broadcast(transaction)
    making = asyncio.create_task(node.mine_in_steps(RICH))
    await asyncio.sleep(0)
    assert not making.done()
    for transaction in sent[90:]:
        node.broadcast(transaction)
    block = await making
    assert node.chain.last_block is block
    assert list(block.transactions) == sent[:90]
    assert node.pool.transactions() == sent[90:]
    assert list((await node.mine_in_steps(RICH)).transactions) == sent[90:]


async def test_a_block_that_came_too_late(node: Node) -> None:
    for number in range(90):
        node.broadcast(transfer(node.chain, RICH, person("ann"), number + 1))
    making = asyncio.create_task(node.mine_in_steps(RICH))
    await asyncio.sleep(0)
    rival = node.mine(RICH)
    with pytest.raises(BlockRejected, match="another block came first"):
        await making
    assert node.chain.last_block is rival
    assert len(rival.transactions) == 90


async def test_schedule_rests_on_an_old_block(
    node: Node, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    now = node.clock()
    monkeypatch.setattr(node, "clock", lambda: now + DAY_MS + 60_000)
    caplog.set_level(logging.WARNING)
    async with running(mine_by_schedule(node)):
        await asyncio.sleep(0.1)
        assert node.chain.height == 2
        told = [words for words in caplog.messages if "no mining" in words]
        assert len(told) == 1
        assert "miner.interval-after-last-block-then-generation-is-allowed" in told[0]
        monkeypatch.setattr(node, "clock", lambda: now + 60_000)
        await until(lambda: node.chain.height > 2)


async def test_schedule_begins_on_an_old_genesis_block(tmp_path: Path) -> None:
    settings = load_settings(network="devnet", data_dir=tmp_path)
    wallet = Wallet.open(None, None, b"waves private node seed with waves tokens")
    node = Node(settings, wallet, durable=False)
    assert node.clock() - networks.load("devnet").genesis.block_timestamp > DAY_MS
    async with running(mine_by_schedule(node)):
        await until(lambda: node.chain.height > 1)
    node.close()


async def test_schedule_rests_without_an_interval(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``miner.micro-block-interval = 0`` must not keep the processor busy until the next slot."""
    section = msgspec.structs.replace(node.settings.miner, micro_block_interval_ms=0)
    node.settings = msgspec.structs.replace(node.settings, miner=section)
    slot = mining.next_turn(node)
    assert slot is not None
    later = msgspec.structs.replace(slot, earliest=node.clock() + DAY_MS)
    monkeypatch.setattr(mining, "next_turn", lambda _node: later)
    pauses, timeout = list[float | None](), asyncio.timeout

    def noted(seconds: float | None) -> asyncio.Timeout:
        pauses.append(seconds)
        return timeout(seconds)

    monkeypatch.setattr(asyncio, "timeout", noted)
    async with running(mine_by_schedule(node)):
        await asyncio.sleep(0.05)
    assert pauses and all(pauses)


async def test_schedule_without_funds_makes_nothing(tmp_path: Path) -> None:
    settings = load_settings(network="devnet", data_dir=tmp_path)
    node = Node(settings, Wallet.open(None, None, b"an account without funds"), durable=False)
    async with running(mine_by_schedule(node)):
        await asyncio.sleep(0.1)
        assert node.chain.height == 1
    node.close()


async def test_others_get_their_turn_after_each_transaction_that_takes_long(
    node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a clock in which each of them takes a second."""
    clock = itertools.count()
    monkeypatch.setattr(miner, "perf_counter", lambda: float(next(clock)))
    monkeypatch.setattr("soliton.node.node.STEP_SECONDS", 0)
    node.mine(RICH, empty=True)
    ways: tuple[Callable[[KeyPair], Coroutine[object, object, object]], ...]
    ways = (node.mine_in_steps, node.mine_micro_in_steps)
    for round_, make in enumerate(ways):
        for number in range(5):
            node.broadcast(transfer(node.chain, RICH, person("ann"), 10 * round_ + number + 1))
        turns = 0
        making = asyncio.create_task(make(RICH))
        while not making.done():
            await asyncio.sleep(0)
            turns += 1
        await making
        assert turns > 5
        assert len(node.chain.last_block.transactions) == 5 * (round_ + 1)


async def test_a_microblock_that_came_too_late(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("soliton.node.node.STEP_SECONDS", 0)
    node.mine(RICH, empty=True)
    for number in range(90):
        node.broadcast(transfer(node.chain, RICH, person("ann"), number + 1))
    making = asyncio.create_task(node.mine_micro_in_steps(RICH))
    await asyncio.sleep(0)
    assert forging.mine_micro(node, RICH) == 90
    with pytest.raises(BlockRejected, match="another block came first"):
        await making
    assert len(node.chain.last_block.transactions) == 90 and len(node.pool) == 0


def test_a_block_that_grew_here_is_the_same_elsewhere(node: Node, tmp_path: Path) -> None:
    """Microblocks made here are not applied again; whoever gets the whole block does that."""
    node.mine(RICH, empty=True)
    for number in range(6):
        node.broadcast(transfer(node.chain, RICH, person("ann"), number + 1))
        if number % 2:
            assert forging.mine_micro(node, RICH) == 2
    other = open_chain(tmp_path / "other")
    for height in range(2, node.chain.height + 1):
        other.append(node.chain.block_at(height), now=node.clock() + 10**12)
    assert other.meta(other.height) == node.chain.meta(node.chain.height)
    ann = address_of(person("ann"))
    assert other.balance(ann) == node.chain.balance(ann) == sum(range(1, 7))
    other.store.close()
