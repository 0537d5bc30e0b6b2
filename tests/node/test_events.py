"""What a node tells its listeners: everything, once, in order, when the store holds it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from soliton.node.events import (
    BlockAppended,
    BlockExtended,
    NodeEvent,
    PoolAccepted,
    PoolDropped,
    RolledBack,
    Stopping,
)
from soliton.node.node import Node
from soliton.node.pool import UtxPool
from soliton.node.settings import load_settings
from soliton.node.wallet import Wallet
from soliton.storage import indexes
from tests.node import forging
from tests.node.chains import FEE, RICH, address_of, person, transfer

ANN, BOB = person("ann"), person("bob")
COIN = 10**8


class Told:
    """A node, and what it has told; the time is that of the last block and a bit."""

    def __init__(self, directory: Path) -> None:
        wallet = Wallet.open(None, None, b"waves private node seed with waves tokens")
        settings = load_settings(None, "devnet", data_dir=directory)
        self.node = Node(settings, wallet, clock=self.clock, durable=False)
        self.events: list[NodeEvent] = []
        self.node.events.subscribe(self.events.append)

    def clock(self) -> int:
        node = getattr(self, "node", None)
        return 0 if node is None else node.chain.last_block.header.timestamp + 1_000

    def names(self) -> list[str]:
        found = [_name(event) for event in self.events]
        self.events.clear()
        return found


def _name(event: NodeEvent) -> str:
    match event:
        case BlockAppended(height=height, block=block):
            return f"block {height} {len(block.transactions)}"
        case BlockExtended(height=height, block=block, added=added):
            return f"longer {height} {len(block.transactions)} {added}"
        case RolledBack(height=height, block=block):
            return f"back {height} {len(block.transactions)}"
        case PoolAccepted():
            return "in"
        case PoolDropped(departure=departure, reason=reason):
            return f"out {departure.value}" + (f" {reason[:12]}" if reason else "")
        case Stopping():
            return "stop"


@pytest.fixture
def told(tmp_path: Path) -> Iterator[Told]:
    made = Told(tmp_path)
    yield made
    made.node.close()


def test_a_transaction_from_the_pool_to_the_chain(told: Told) -> None:
    node = told.node
    assert node.broadcast(transfer(node.chain, RICH, ANN, COIN))
    assert told.names() == ["in"]
    node.mine(RICH)
    assert told.names() == ["block 2 1", "out mined"]


def test_what_is_there_already_is_no_news(told: Told) -> None:
    transaction = transfer(told.node.chain, RICH, ANN, COIN)
    told.node.broadcast(transaction)
    told.node.broadcast(transaction)
    assert told.names() == ["in"]


def test_a_block_that_grows(told: Told) -> None:
    node = told.node
    node.mine(RICH)
    node.broadcast(transfer(node.chain, RICH, ANN, COIN))
    node.broadcast(transfer(node.chain, RICH, BOB, COIN))
    told.names()
    assert forging.mine_micro(node, RICH) == 2
    assert told.names() == ["longer 2 2 2", "out mined", "out mined"]
    assert forging.mine_micro(node, RICH) == 0
    assert told.names() == []


def test_a_rollback_and_what_falls_with_it(told: Told) -> None:
    node = told.node
    node.broadcast(transfer(node.chain, RICH, ANN, COIN))
    node.mine(RICH)
    node.broadcast(transfer(node.chain, ANN, BOB, COIN - FEE))
    told.names()
    forging.roll_back(node, 1, keep=False)
    assert told.names() == ["back 1 11", "out invalid Attempt to t"]
    forging.roll_back(node, 1, keep=False)
    assert told.names() == []


def test_a_rollback_that_keeps(told: Told) -> None:
    node = told.node
    node.broadcast(transfer(node.chain, RICH, ANN, COIN))
    node.mine(RICH)
    told.names()
    forging.roll_back(node, 1, keep=True)
    assert told.names() == ["back 1 11", "in"]


def test_a_microblock_that_is_taken_off(told: Told) -> None:
    node = told.node
    shorter = node.mine(RICH)
    node.broadcast(transfer(node.chain, RICH, ANN, COIN))
    forging.mine_micro(node, RICH)
    told.names()
    node.chain.shorten(shorter.id)
    node.chain.shorten(shorter.id)
    node.mine(RICH)
    assert told.names() == ["back 2 0", "block 3 0"]


def test_listeners_find_the_change_in_the_store(told: Told) -> None:
    node, heights = told.node, []

    def look(event: NodeEvent) -> None:
        if isinstance(event, BlockAppended):
            # Listings see what is flushed.
            found = list(indexes.address_transactions(node.store, address_of(ANN)))
            heights.append((event.height, node.chain.height, len(found)))

    node.events.subscribe(look)
    node.broadcast(transfer(node.chain, RICH, ANN, COIN))
    node.mine(RICH)
    assert heights == [(2, 2, 1)]


def test_whose_balances_a_transaction_of_the_pool_moves(told: Told) -> None:
    node = told.node
    node.broadcast(transfer(node.chain, RICH, ANN, COIN))
    (event,) = told.events
    assert isinstance(event, PoolAccepted)
    assert set(event.moved.waves) == {address_of(RICH), address_of(ANN)}
    assert set(event.moved.accounts) == set(event.moved.waves)
    assert event.moved.assets == ()
    assert node.pool.moved(event.transaction.id) == event.moved


def test_who_left_is_told_no_more(told: Told) -> None:
    told.node.events.unsubscribe(told.events.append)
    told.node.broadcast(transfer(told.node.chain, RICH, ANN, COIN))
    assert told.names() == []


def test_stopping_is_told_once(told: Told) -> None:
    told.node.request_stop()
    told.node.request_stop()
    assert told.names() == ["stop"]


def test_what_rests_on_a_block_that_comes_back_stays(told: Told) -> None:
    node = told.node
    node.broadcast(transfer(node.chain, RICH, ANN, COIN))
    node.mine(RICH)
    second = transfer(node.chain, ANN, BOB, COIN - FEE)
    node.broadcast(second)
    told.names()
    forging.roll_back(node, 1, keep=True)
    assert told.names() == ["back 1 11", "in"]
    assert node.pool.transactions()[1:] == [second]


def test_what_comes_back_has_its_place_before_what_came_later(told: Told) -> None:
    node = told.node
    node.pool = UtxPool(node.chain, node.clock, 2, 100_000, node.events.publish)
    first = transfer(node.chain, RICH, ANN, COIN)
    node.broadcast(first)
    node.mine(RICH)
    later = [transfer(node.chain, RICH, BOB, COIN + number) for number in range(2)]
    for each in later:
        node.broadcast(each)
    told.names()
    forging.roll_back(node, 1, keep=True)
    assert told.names() == ["back 1 11", "in", "out invalid Transaction "]
    assert node.pool.transactions() == [first, later[0]]
