"""Threads for what takes long: others are served meanwhile, deadlines and places hold."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from soliton.api.errors import SERVER_REQUEST_TIMEOUT, ApiError
from soliton.api.thread_pool import ThreadPool, Watch
from soliton.chain.transactions.set_script import TYPE as SET_SCRIPT
from soliton.chain.transactions.set_script import SetScript
from soliton.node.blockchain import Blockchain
from soliton.ride.compiler import compile_source
from soliton.ride.errors import Interrupted
from soliton.storage import retrying
from soliton.storage.below import Items
from soliton.storage.errors import BelowProblem
from tests.api.chain import (
    AMOUNT,
    OTHER,
    RICH_ADDRESS,
    PrivateChain,
    address_of,
)
from tests.storage.test_retrying import WHOM, Far

MOST_TRIES = 1_000
SOURCE = """{-# STDLIB_VERSION 6 #-}
{-# CONTENT_TYPE DAPP #-}
@Callable(i)
func done() = []
"""
DOUBLING = "".join(f"func d{n}(x: Int) = d{n - 1}(x) + d{n - 1}(x)\n" for n in range(1, 60))
HEAVY = {"expr": f"func d0(x: Int) = x + 1\n{DOUBLING}d59(1)"}
LIGHT = {"expr": "1 + 1"}
EVALUATE = f"/utils/script/evaluate/{RICH_ADDRESS}"


@pytest.fixture
def chain(tmp_path: Path) -> Iterator[PrivateChain]:
    made = PrivateChain(tmp_path)
    yield made
    made.node.close()


@pytest.fixture
def dapp(chain: PrivateChain) -> PrivateChain:
    script = compile_source(SOURCE).script.source
    chain.send(chain.sign(SET_SCRIPT, SetScript(script), 2, fee=10_000_000))
    chain.mine()
    return chain


@pytest.fixture
def held() -> Iterator[Callable[[Watch], int]]:
    """Work that lasts until the test is over."""
    over = threading.Event()

    def work(_watch: Watch) -> int:
        over.wait()
        return 1

    yield work
    over.set()


def until_stopped(_chain: Blockchain, watch: Watch) -> int:
    while True:
        watch()


def free(_seconds: float) -> None:
    """Nobody pays."""


def given(number: int, _watch: Watch) -> int:
    return number


async def test_results_and_errors_come_back() -> None:
    workers = ThreadPool()
    assert await workers.run(lambda _watch: 42) == 42
    assert await asyncio.gather(*(workers.run(partial(given, n)) for n in range(9))) == [*range(9)]
    with pytest.raises(ZeroDivisionError):
        await workers.run(lambda _watch: 1 // 0)


async def test_others_are_served_while_an_expression_is_evaluated(dapp: PrivateChain) -> None:
    running = asyncio.create_task(dapp.post(EVALUATE, HEAVY))
    served = 0
    while not running.done():
        assert (await dapp.get("/blocks/height")).status == 200
        served += 1
        # Asking without a pause would take from the evaluation the time that it has.
        await asyncio.sleep(0.01)
    assert served > 1
    answer = running.result()
    assert answer.status == 200
    assert b"Calculation complexity limit exceeded" in answer.body
    light = (await dapp.post(EVALUATE, LIGHT)).json()
    assert isinstance(light, dict)
    assert light["result"] == {"type": "Int", "value": 2}


async def test_who_takes_too_long_is_stopped(chain: PrivateChain) -> None:
    workers = ThreadPool(threads=1, seconds=0.05)
    for _ in range(3):
        # One thread is enough for all of them: each comes to its end.
        with pytest.raises(ApiError) as caught:
            await workers.ask(chain.node, until_stopped, free)
        assert caught.value.kind is SERVER_REQUEST_TIMEOUT
    assert await workers.run(lambda _watch: 1) == 1


async def test_more_than_there_are_places_for_are_refused(held: Callable[[Watch], int]) -> None:
    workers = ThreadPool(threads=1, places=2, seconds=60)
    waiting = [asyncio.create_task(workers.run(held)) for _ in range(2)]
    await asyncio.sleep(0)
    with pytest.raises(ApiError) as caught:
        await workers.run(held)
    assert caught.value.kind is SERVER_REQUEST_TIMEOUT
    assert caught.value.hint is not None
    for each in waiting:
        each.cancel()


async def test_places_are_free_again_when_clients_leave(chain: PrivateChain) -> None:
    workers = ThreadPool(threads=1, places=1, seconds=60)
    running = asyncio.create_task(workers.ask(chain.node, until_stopped, free))
    await asyncio.sleep(0)
    running.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await running
    while True:
        with contextlib.suppress(ApiError):
            assert await workers.run(lambda _watch: 1) == 1
            return
        await asyncio.sleep(0.001)


async def test_work_sees_the_chain_as_it_was(chain: PrivateChain) -> None:
    workers = ThreadPool(seconds=60)
    begun, changed = threading.Event(), threading.Event()
    to = address_of(OTHER, chain)

    def work(seen: Blockchain, _watch: Watch) -> list[tuple[int, int]]:
        found = [(seen.height, seen.balance(to))]
        begun.set()
        changed.wait()
        return [*found, (seen.height, seen.balance(to))]

    running = asyncio.create_task(workers.ask(chain.node, work, free))
    await asyncio.to_thread(begun.wait)
    chain.send(chain.transfer())
    chain.mine()
    changed.set()
    before = chain.node.chain.height - 1
    assert await running == [(before, 0)] * 2
    assert (chain.node.chain.height, chain.node.chain.balance(to)) == (before + 1, AMOUNT)


async def test_closing_the_store_ends_what_reads_it(tmp_path: Path) -> None:
    chain = PrivateChain(tmp_path)
    workers = ThreadPool(seconds=60)
    begun = threading.Event()

    def work(_chain: Blockchain, watch: Watch) -> int:
        begun.set()
        while True:
            watch()

    running = asyncio.create_task(workers.ask(chain.node, work, free))
    await asyncio.to_thread(begun.wait)
    chain.node.close()
    with pytest.raises(ApiError) as caught:
        await running
    assert isinstance(caught.value.__cause__, Interrupted)


async def test_a_long_source_does_not_hold_others_up(chain: PrivateChain) -> None:
    text = {"content-type": "text/plain"}
    source = "{-# STDLIB_VERSION 6 #-}\n" + "let a = 1 + 1\n" * 3_000
    running = asyncio.create_task(chain.post("/utils/script/compileCode", source.encode(), text))
    served = 0
    while not running.done():
        assert (await chain.get("/blocks/height")).status == 200
        served += 1
        # Asking without a pause would take from the evaluation the time that it has.
        await asyncio.sleep(0.01)
    assert served > 1
    assert running.result().status == 400


async def test_work_of_threads_is_charged(chain: PrivateChain) -> None:
    def work(_chain: Blockchain, _watch: Watch) -> None:
        until = time.thread_time() + 0.2
        while time.thread_time() < until:
            pass

    charged: list[float] = []
    await ThreadPool(seconds=60).ask(chain.node, work, charged.append)
    assert len(charged) == 1
    assert 0.2 <= charged[0] < 1


async def test_busy_threads_let_the_event_loop_pass(chain: PrivateChain) -> None:
    """While the loop has something to do, they wait for its round to end."""
    over = threading.Event()
    used: dict[int, float] = {}

    def work(_chain: Blockchain, watch: Watch) -> None:
        while not over.is_set():
            watch()
            used[threading.get_ident()] = time.thread_time()

    workers = ThreadPool()
    tasks = [asyncio.create_task(workers.ask(chain.node, work, lambda _: None)) for _ in range(2)]
    while len(used) < 2:  # noqa: ASYNC110 - threads tell nobody
        await asyncio.sleep(0.01)
    own, others = 0.0, 0.0
    for _ in range(5):
        await asyncio.sleep(0)
        own_before, others_before = time.thread_time(), sum(used.values())
        while time.thread_time() < own_before + 0.1:
            pass
        own += time.thread_time() - own_before
        others += sum(used.values()) - others_before
    over.set()
    await asyncio.gather(*tasks)
    assert others < own / 2, (own, others)


# --- a chain that is read from afar ---------------------------------------------------------------


class Nothing:
    """Below a store: there is something, which has no records."""

    def get(self, _key: bytes, /) -> bytes | None:
        return None

    def scan(self, _prefix: bytes, _start: bytes, /) -> Items:
        return iter(())

    def scan_back(self, _prefix: bytes, _before: bytes, /) -> Items:
        return iter(())


@pytest.fixture
def far(chain: PrivateChain) -> Far:
    chain.node.store.below = Nothing()
    return Far()


async def test_who_waits_for_what_is_below_holds_no_thread(chain: PrivateChain, far: Far) -> None:
    workers = ThreadPool(threads=1, places=1, seconds=60)
    tries: list[int] = []

    def work(_chain: Blockchain, _watch: Watch) -> str:
        tries.append(1)
        return far.get("a") + far.get("b")

    far.may_answer.clear()
    waiting = asyncio.create_task(workers.ask(chain.node, work, free))
    for _ in range(MOST_TRIES):
        await asyncio.sleep(0.01)
        if tries:
            with contextlib.suppress(ApiError):
                assert await workers.run(lambda _watch: 1) == 1
                break
    else:
        raise AssertionError("its thread or its place is not free")
    assert not waiting.done()
    far.may_answer.set()
    assert await waiting == "AB"
    assert far.asked == ["a", "b"]


async def test_it_waits_only_for_so_long(
    chain: PrivateChain, far: Far, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retrying, "RETRY_SECONDS", 0.01)
    far.may_answer.clear()
    with pytest.raises(BelowProblem, match=WHOM):
        await ThreadPool(seconds=60).ask(chain.node, lambda _chain, _watch: far.get("a"), free)
    far.may_answer.set()


async def test_within_work_that_begins_again_all_of_it_does(chain: PrivateChain, far: Far) -> None:
    workers = ThreadPool(seconds=60)
    begun: list[str] = []

    async def handler() -> str:
        begun.append(far.get("first"))
        return await workers.ask(chain.node, lambda _chain, _watch: far.get("then"), free)

    assert await retrying.retry_until_read(handler) == "THEN"
    assert begun == ["FIRST"] * 2 and far.asked == ["first", "then"]


async def test_a_fault_of_what_is_below_comes_back(chain: PrivateChain, far: Far) -> None:
    far.faulty = "a"
    with pytest.raises(BelowProblem, match="a fault"):
        await ThreadPool(seconds=60).ask(chain.node, lambda _chain, _watch: far.get("a"), free)
