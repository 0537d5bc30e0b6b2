"""Snapshots of the store: a request in a thread closes its own, and more than a process may have
are refused for a while.
"""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from soliton.api.thread_pool import PLACES, ThreadPool, Watch
from soliton.chain.transactions.set_script import TYPE as SET_SCRIPT
from soliton.chain.transactions.set_script import SetScript
from soliton.crypto import base58
from soliton.node.blockchain import Blockchain
from soliton.ride.compiler import compile_source
from soliton.storage.database import MAX_SNAPSHOTS
from soliton.storage.errors import StoreBusy
from tests.api.chain import OTHER_ADDRESS, RICH, RICH_ADDRESS, PrivateChain

ROUNDS = 40
"""Twice as many requests, more than the snapshots of one process."""
DAPP = """{-# STDLIB_VERSION 6 #-}
{-# CONTENT_TYPE DAPP #-}
@Callable(i)
func done() = []
"""
EVALUATE = f"/utils/script/evaluate/{RICH_ADDRESS}"
EXPRESSION = {"expr": "1 + 1"}
TRANSFER = {
    "type": 4,
    "version": 3,
    "senderPublicKey": base58.encode(RICH.public_key),
    "recipient": OTHER_ADDRESS,
    "amount": 1,
}


@pytest.fixture
def uncollected() -> Iterator[None]:
    """Only what nobody refers to is freed."""
    gc.disable()
    yield
    gc.enable()


@pytest.fixture
def chain(tmp_path: Path) -> Iterator[PrivateChain]:
    made = PrivateChain(tmp_path)
    script = compile_source(DAPP).script.source
    made.send(made.sign(SET_SCRIPT, SetScript(script), 2, fee=10_000_000))
    made.mine()
    yield made
    made.node.close()


async def asked(chain: PrivateChain) -> None:
    for url, body in ((EVALUATE, EXPRESSION), ("/transactions/simulate", TRANSFER)):
        answer = await chain.post(url, body)
        assert answer.status == 200, answer.body


@pytest.mark.usefixtures("uncollected")
async def test_requests_leave_no_snapshot_behind(chain: PrivateChain) -> None:
    for _ in range(ROUNDS):
        await asked(chain)
    assert len(chain.node.store.database.snapshots) == 0
    height_before = chain.node.chain.height
    chain.mine()
    assert chain.node.chain.height == height_before + 1


@pytest.mark.usefixtures("uncollected")
async def test_a_view_that_an_error_keeps_is_closed(chain: PrivateChain) -> None:
    """Errors keep frames, and frames keep the chain that they read."""
    kept: list[Blockchain] = []

    def work(seen: Blockchain, _watch: Watch) -> int:
        pending = seen.store.scan(b"", b"")
        next(pending)
        kept.append(seen)
        raise ZeroDivisionError

    workers = ThreadPool()
    for _ in range(20):
        with pytest.raises(ZeroDivisionError):
            await workers.ask(chain.node, work, free)
    assert len(chain.node.store.database.snapshots) == 0
    for each in kept:
        with pytest.raises(StoreBusy):
            next(each.store.scan(b"", b""))


async def test_more_snapshots_than_there_may_be(chain: PrivateChain) -> None:
    taken = [chain.node.store.snapshot() for _ in range(MAX_SNAPSHOTS)]
    # More often than there are places: none is lost.
    for _ in range(PLACES + 1):
        answer = await chain.post(EVALUATE, EXPRESSION)
        assert (answer.status, answer.headers[b"retry-after"]) == (503, b"1")
        assert answer.json() == {
            "error": 5035,
            "message": "Too many requests read the chain at the same time",
        }
    chain.mine()
    while taken:
        taken.pop().close()
        await asked(chain)


async def test_who_leaves_before_its_turn_holds_nothing(
    chain: PrivateChain,
) -> None:
    """The threads are busy, and stay so."""
    over = threading.Event()
    workers = ThreadPool(threads=1, places=3, seconds=60)
    running = asyncio.create_task(workers.run(lambda _watch: over.wait()))
    await asyncio.sleep(0)
    for _ in range(5):
        waiting = [asyncio.create_task(workers.ask(chain.node, nothing, free)) for _ in range(2)]
        await asyncio.sleep(0)
        assert len(chain.node.store.database.snapshots) == 2
        for each in waiting:
            each.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        assert len(chain.node.store.database.snapshots) == 0
    over.set()
    assert await running is True
    assert await workers.ask(chain.node, nothing, free) == 0


def free(_seconds: float) -> None:
    """Nobody pays."""


def nothing(_chain: Blockchain, _watch: Watch) -> int:
    """Work that is soon done."""
    return 0
