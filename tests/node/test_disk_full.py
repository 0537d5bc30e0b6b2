"""The disk is full: what cannot be written has not happened, and everything goes on by itself."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from soliton.crypto import base58
from soliton.node.blockchain import Blockchain
from soliton.node.chain_writer import ChainWriter
from soliton.node.disk import LONGEST_PAUSE_SECONDS, Disk, WritingPaused
from soliton.node.events import NodeEvent, PoolAccepted
from soliton.storage.errors import StoreFull
from soliton.storage.store import Store
from tests.api.chain import AMOUNT, OTHER, RICH, PrivateChain, address_of
from tests.node import forging
from tests.node.chains import DEVNET, mine, transfer
from tests.node.chains import address_of as owner
from tests.node.full_disk import broken_log, full

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="/dev/full")


class Seconds:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def seconds() -> Seconds:
    return Seconds()


@pytest.fixture
def chain(tmp_path: Path, seconds: Seconds) -> Iterator[PrivateChain]:
    made = PrivateChain(tmp_path)
    made.node.disk = Disk(seconds)
    made.send(made.transfer())
    made.mine()
    yield made
    made.node.close()


def stored(chain: PrivateChain) -> tuple[object, ...]:
    """What is there for whoever opens the store at this moment, and what the node says."""
    node = chain.node
    fresh = Blockchain(node.network, node.store.snapshot())
    found = (
        fresh.height,
        fresh.last_block.id,
        fresh.rules.activations(),
        fresh.balance(address_of(OTHER, chain)),
    )
    fresh.store.close()
    return found


def remembered(chain: PrivateChain) -> tuple[object, ...]:
    own = chain.node.chain
    return (
        own.height,
        own.last_block.id,
        own.rules.activations(),
        own.balance(address_of(OTHER, chain)),
    )


async def test_a_block_that_cannot_be_written_is_not_there(
    chain: PrivateChain, seconds: Seconds
) -> None:
    node = chain.node
    told: list[NodeEvent] = []
    node.events.subscribe(told.append)
    sent = chain.send(chain.transfer())
    before = stored(chain)
    told.clear()
    name = base58.encode(sent.id)
    with full(node.store):
        for _ in range(3):
            with pytest.raises(StoreFull, match="no space left in "):
                chain.mine()
            seconds.now += LONGEST_PAUSE_SECONDS
            assert remembered(chain) == stored(chain) == before
            assert told == []
        height = (await chain.get("/blocks/height")).json()
        assert height == {"height": before[0]}
        assert (await chain.get(f"/transactions/info/{name}")).status == 404
        status = (await chain.get(f"/transactions/status/{name}")).json()
        assert isinstance(status, dict) and status["status"] == "unconfirmed"
        # The pool is in memory: what comes waits for the block that will be.
        another = chain.transfer(amount=7)
        assert (await chain.broadcast(another)).status == 200
        ready = await chain.get("/readyz")
        assert ready.status == 503
        assert b"the disk cannot be written, mining pauses: no space left" in ready.body
        figures = (await chain.get("/metrics")).body
        assert b"\nsoliton_store_writable 0\n" in figures
        assert b"\nsoliton_store_write_failures_total 3\n" in figures
    # Too early: nothing is tried.
    seconds.now -= LONGEST_PAUSE_SECONDS
    with pytest.raises(WritingPaused):
        chain.mine()
    seconds.now += LONGEST_PAUSE_SECONDS
    chain.mine()
    assert remembered(chain) == stored(chain)
    assert chain.node.chain.height == int(str(before[0])) + 1
    assert len(node.pool) == 0
    assert [type(event).__name__ for event in told if not isinstance(event, PoolAccepted)] == [
        "BlockAppended",
        "PoolDropped",
        "PoolDropped",
    ]
    assert (await chain.get("/readyz")).status == 200
    assert (await chain.get(f"/transactions/info/{name}")).status == 200


def test_a_write_that_fails(tmp_path: Path) -> None:
    """RocksDB writes nothing more after that: it is opened anew."""
    chain = ChainWriter(DEVNET, Store(tmp_path, DEVNET.name))
    mine(chain, [transfer(chain, RICH, OTHER, AMOUNT)])
    before = chain.height, chain.last_block.id, chain.balance(owner(OTHER))
    read = chain.store.snapshot()
    with broken_log(chain.store), pytest.raises(StoreFull):
        mine(chain, [transfer(chain, RICH, OTHER, AMOUNT)])
    assert (chain.height, chain.last_block.id, chain.balance(owner(OTHER))) == before
    assert Blockchain(DEVNET, read).balance(owner(OTHER)) == before[2]
    with full(chain.store), pytest.raises(StoreFull):
        mine(chain, [transfer(chain, RICH, OTHER, AMOUNT)])
    closing = threading.Timer(0.2, read.close)
    closing.start()
    assert (chain.height, chain.last_block.id, chain.balance(owner(OTHER))) == before
    mine(chain, [transfer(chain, RICH, OTHER, AMOUNT)])
    # A thread that was reading has closed its snapshot before.
    assert read.revoked
    closing.join()
    after = chain.height, chain.last_block.id, chain.balance(owner(OTHER))
    assert after == (3, chain.last_block.id, 2 * AMOUNT)
    chain.store.close()
    again = ChainWriter(DEVNET, Store(tmp_path, DEVNET.name))
    assert (again.height, again.last_block.id, again.balance(owner(OTHER))) == after
    again.store.close()


async def test_a_microblock_that_cannot_be_written_is_not_there(
    chain: PrivateChain, seconds: Seconds
) -> None:
    node = chain.node
    chain.tick()
    node.mine(RICH, empty=True)
    chain.send(chain.transfer())
    chain.tick()
    assert forging.mine_micro(node, RICH) == 1
    first = stored(chain)
    chain.send(chain.transfer())
    with full(node.store):
        with pytest.raises(StoreFull):
            forging.mine_micro(node, RICH)
        assert remembered(chain) == stored(chain) == first
        assert len(node.pool) == 1
        # A key block on top of it neither.
        seconds.now += LONGEST_PAUSE_SECONDS
        with pytest.raises(StoreFull):
            chain.mine()
        assert remembered(chain) == stored(chain) == first
        # Nor can it be made shorter.
        with pytest.raises(StoreFull):
            node.chain.shorten(node.chain.liquid_ids()[0])
        assert remembered(chain) == stored(chain) == first
    seconds.now += LONGEST_PAUSE_SECONDS
    # The block grows as if nothing had been.
    assert forging.mine_micro(node, RICH) == 1
    assert len(node.chain.shorten(node.chain.liquid_ids()[0])) == 2
    assert remembered(chain) == stored(chain)


async def test_a_rollback_that_cannot_be_written_is_not_there(chain: PrivateChain) -> None:
    node = chain.node
    key = {"x-api-key": "the api key"}
    before = stored(chain)
    body = {"rollbackTo": 1, "returnTransactionsToUtx": True}
    with full(node.store):
        answer = await chain.post("/debug/rollback", body, key)
        assert (answer.status, answer.headers[b"retry-after"]) == (503, b"10")
        assert answer.json() == {
            "error": 5036,
            "message": "There is no space left on the node's disk",
        }
        assert remembered(chain) == stored(chain) == before
        assert len(node.pool) == 0
    answer = await chain.post("/debug/rollback", body, key)
    assert answer.status == 200, answer.body
    assert remembered(chain) == stored(chain)
    assert (node.chain.height, len(node.pool)) == (1, 1)


def test_a_store_that_cannot_be_written_is_closed_all_the_same(tmp_path: Path) -> None:
    store = Store(tmp_path, "net")
    with full(store), pytest.raises(StoreFull):
        # The name of the chain is still to be written.
        store.close()
    again = Store(tmp_path, "net")
    again.close()


def test_the_log_is_told_once_in_a_while(caplog: pytest.LogCaptureFixture) -> None:
    clock = Seconds()
    disk = Disk(clock)
    attempts = 0
    while clock.now < 600:
        try:
            disk.check()
        except WritingPaused:
            clock.now += 0.25
            continue
        attempts += 1
        disk.failed(StoreFull("no space left in /data: the store cannot be written"))
    assert 600 / LONGEST_PAUSE_SECONDS <= attempts <= 600 / LONGEST_PAUSE_SECONDS + 6
    assert 8 <= len(caplog.records) <= 11
    assert "no space left in /data" in caplog.records[0].message
