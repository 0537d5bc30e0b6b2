"""The slots of a store's readers: whoever asks for the chain's state in a thread gives its own
back, and where there are none left that is said, and mended by itself.
"""

from __future__ import annotations

import asyncio
import base64
import gc
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import lmdb
import pytest

from soliton.api.thread_pool import PLACES, ThreadPool, Watch
from soliton.chain.transactions.set_script import TYPE as SET_SCRIPT
from soliton.chain.transactions.set_script import SetScript
from soliton.crypto import base58
from soliton.node.blockchain import Blockchain
from soliton.ride.compiler import compile_source
from soliton.storage.database import MAX_SNAPSHOTS
from soliton.storage.environment import MAX_READERS
from tests.api.chain import OTHER_ADDRESS, RICH, RICH_ADDRESS, PrivateChain
from tests.e2e.programs import API_KEY, Answer, call, devnet, eventually, height, signed_transfer

ROUNDS = 310
"""Twice as many requests: more than there were slots, when each left two behind."""
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


def taken(environment: lmdb.Environment) -> int:
    """How many slots of the lock file are taken, as LMDB itself tells: a line each."""
    return sum(1 for line in environment.readers().splitlines()[1:] if line.strip())


def slots(directory: Path) -> int:
    """Those of the store of another process."""
    with lmdb.open(str(directory), readonly=True, create=False) as environment:
        return taken(environment)


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
async def test_requests_leave_no_slot_behind(chain: PrivateChain) -> None:
    await asked(chain)
    before = taken(chain.node.store.database._env)
    for _ in range(ROUNDS):
        await asked(chain)
    assert taken(chain.node.store.database._env) == before
    height_before = chain.node.chain.height
    chain.mine()
    assert chain.node.chain.height == height_before + 1


@pytest.mark.usefixtures("uncollected")
async def test_whoever_keeps_a_snapshot_keeps_no_slot(chain: PrivateChain) -> None:
    """Errors keep frames, frames keep what they see: closed is closed all the same."""
    kept: list[object] = []

    def work(seen: Blockchain, _watch: Watch) -> int:
        pending = seen.store.scan(b"", b"")
        next(pending)
        kept.extend((seen, seen.store, pending))
        raise ZeroDivisionError

    workers = ThreadPool()
    before = taken(chain.node.store.database._env)
    for _ in range(20):
        with pytest.raises(ZeroDivisionError):
            await workers.ask(chain.node, work, free)
    assert taken(chain.node.store.database._env) <= before + 4
    assert len(kept) == 60


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


@pytest.mark.slow
@pytest.mark.parametrize("workers", [0, 1])
def test_a_running_node_keeps_its_slots(tmp_path: Path, workers: int) -> None:
    with devnet("--data-dir", tmp_path / "node", "--workers", workers) as program:
        url = program.node_url
        script = {
            "type": 13,
            "version": 2,
            "sender": RICH_ADDRESS,
            "script": "base64:" + base64.b64encode(compile_source(DAPP).script.source).decode(),
            "fee": 10_000_000,
        }
        signed = call(f"{url}/transactions/sign", script, key=API_KEY).json()
        assert call(f"{url}/transactions/broadcast", signed).status == 200
        eventually(lambda: call(f"{url}/addresses/scriptInfo/{RICH_ADDRESS}").json()["script"])

        def ask(_number: int) -> set[int]:
            return {
                call(url + EVALUATE, EXPRESSION).status,
                call(f"{url}/transactions/simulate", TRANSFER).status,
            }

        with ThreadPoolExecutor(4) as clients:
            assert set().union(*clients.map(ask, range(20))) == {200}
            before = slots(tmp_path / "node" / "data")
            assert set().union(*clients.map(ask, range(ROUNDS))) == {200}
        # Each process keeps a few at hand.
        assert slots(tmp_path / "node" / "data") <= before + 4 * (workers + 1)
        top = height(url)
        sent = signed_transfer(url, RICH_ADDRESS, OTHER_ADDRESS, 1)
        assert call(f"{url}/transactions/broadcast", sent).status == 200
        eventually(lambda: height(url) > top, "a block")
        assert "Traceback" not in program.output


ALL_SLOTS = """
import sys, lmdb
environment, taken = lmdb.open(sys.argv[1]), []
try:
    while True:
        taken.append(environment.begin())
except lmdb.ReadersFullError:
    print(len(taken), flush=True)
sys.stdin.read()
"""


@pytest.mark.slow
@pytest.mark.parametrize("workers", [0, 1])
def test_no_slot_is_left_for_a_while(tmp_path: Path, workers: int) -> None:
    """Another program takes all of them: whoever has some goes on, others are told to wait."""
    with devnet("--data-dir", tmp_path / "node", "--workers", workers) as program:
        url = program.node_url

        def ask(number: int) -> Answer:
            return call(f"{url}/transactions/simulate", TRANSFER | {"amount": number + 1})

        with (
            ThreadPoolExecutor(24) as clients,
            subprocess.Popen(
                [sys.executable, "-c", ALL_SLOTS, str(tmp_path / "node" / "data")],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
            ) as taking,
        ):
            assert taking.stdout and taking.stdin
            assert int(taking.stdout.readline()) > MAX_READERS / 2
            answers = list(clients.map(ask, range(200)))
            refused = [answer for answer in answers if answer.status != 200]
            assert refused
            assert {answer.json()["error"] for answer in refused} <= {5031, 5035}
            assert {answer.headers["retry-after"] for answer in refused if b"5035" in answer.body}
            # A worker that has lost its own answers nothing until there is one again.
            if not workers:
                top = height(url)
                sent = signed_transfer(url, RICH_ADDRESS, OTHER_ADDRESS, 1)
                assert call(f"{url}/transactions/broadcast", sent).status == 200
                eventually(lambda: height(url) > top, "a block")
            taking.stdin.close()
            taking.wait()
            assert {answer.status for answer in clients.map(ask, range(30))} <= {200, 503}
        eventually(lambda: call(f"{url}/blocks/height").status == 200, "the height")
        for number in range(20):
            assert ask(number).status == 200
        figures = call(f"{url}/metrics").body.decode()
        assert f"soliton_store_reader_slots_max {MAX_READERS}" in figures
        assert "soliton_snapshots 0" in figures
        assert "Traceback" not in program.output
