"""Something breaks under load: nothing accepted is lost, nothing is executed twice, and the books
are what the journal says.

``SOLITON_FAULT_ROUNDS`` sets how often each thing breaks in one run; the default keeps the tests
short. ``SOLITON_FAULT_ORDERS`` sets how many orders are accepted between two faults.
"""

from __future__ import annotations

import os
import random
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.programs import eventually
from tests.matcher.faults.world import ACCOUNT, RICH, TRADERS, World
from tests.matcher.kafka.broker import Broker, running, unavailable

pytestmark = pytest.mark.slow

ROUNDS = int(os.environ.get("SOLITON_FAULT_ROUNDS", "1"))
ORDERS = int(os.environ.get("SOLITON_FAULT_ORDERS", "100"))
ROLLBACK = 50
HOUR_MS = 3_600_000
CLOCK_STEPS_MS = (3 * HOUR_MS, -3 * HOUR_MS, 0)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    try:
        yield made
    finally:
        made.close()


def progress(world: World, orders: int = ORDERS) -> None:
    """Wait until more orders were accepted, and a moment of chance."""
    goal = len(world.notes.accepted) + orders
    eventually(lambda: len(world.notes.accepted) >= goal, "accepted orders")
    time.sleep(random.random() / 3)


def wait_for_blocks(world: World, count: int) -> None:
    """Wait for more blocks."""
    goal = world.blocks() + count
    eventually(lambda: world.blocks() > goal, "blocks")


def refusals(world: World, count: int = 20) -> None:
    """Wait until more orders were refused."""
    goal = world.notes.refused.total() + count
    eventually(lambda: world.notes.refused.total() >= goal, "refused orders")


@pytest.mark.parametrize("workers", [0, 1])
def test_a_matcher_is_killed_under_load(world: World, workers: int) -> None:
    world.start_matcher("one", workers=workers)
    with world.trading(1):
        for _ in range(ROUNDS):
            progress(world)
            world.matchers["one"].kill()
            world.tear_tail("one", random.randrange(1, 330))
            world.start_matcher("one")
        progress(world)
    world.finish("one", f"{ROUNDS} kills with torn tails, {workers} workers")


@pytest.mark.skipif(sys.platform != "linux", reason="children of another process")
def test_a_worker_is_killed_under_load(world: World) -> None:
    world.start_matcher("one", workers=1)
    with world.trading(5):
        for _ in range(ROUNDS):
            progress(world)
            world.kill_workers("one")
        progress(world)
    world.finish("one", f"{ROUNDS} workers killed")


@pytest.mark.skipif(sys.platform != "linux", reason="limits of another process")
def test_the_disk_is_full_for_a_while(world: World) -> None:
    world.start_matcher("one")
    with world.trading(4):
        for _ in range(ROUNDS):
            progress(world)
            world.fill_disk("one")
            refusals(world)
            world.free_disk("one")
        progress(world)
    world.finish("one", f"{ROUNDS} times full")


def test_the_node_rolls_back_hangs_and_dies(world: World) -> None:
    world.start_matcher("one")
    with world.trading(2):
        for number in range(ROUNDS):
            eventually(lambda: world.blocks() > ROLLBACK + 10, "blocks")
            progress(world)
            world.roll_back(ROLLBACK, keep=number % 2 == 0)
            progress(world, ORDERS // 3)
        world.pause_node(2)
        progress(world, ORDERS // 3)
        world.kill_node()
        progress(world, ORDERS // 3)
    world.finish("one", f"{ROUNDS} rollbacks of {ROLLBACK} blocks, 1 pause, 1 kill")


@pytest.mark.parametrize("events", [True, False])
def test_connections_are_cut_and_late(world: World, events: bool) -> None:
    """In the middle of events and answers, while the node rolls back: by its events, by polling."""
    world.proxy.events = events
    world.proxy.jitter = 0.02
    world.start_matcher("one")
    with world.trading(6):
        for number in range(ROUNDS):
            progress(world)
            world.proxy.cut()
            if number % 4 == 3:
                world.roll_back(20, keep=False)
                world.proxy.cut()
        progress(world)
    world.finish("one", f"{ROUNDS} times cut, {'events' if events else 'polling'}")


@pytest.mark.parametrize("events", [True, False])
def test_the_node_rolls_back_below_the_start_of_the_matcher(world: World, events: bool) -> None:
    world.proxy.events = events
    world.start_matcher("one")
    with world.trading(7):
        for number in range(ROUNDS):
            eventually(lambda: world.blocks() > ROLLBACK + 10, "blocks")
            progress(world)
            world.matchers["one"].kill()
            world.start_matcher("one")
            world.roll_back(ROLLBACK, keep=number % 2 == 1)
        progress(world)
    source = "events" if events else "polling"
    world.finish("one", f"{ROUNDS} rollbacks below the start, {source}")


def test_the_clock_of_the_matcher_jumps(world: World) -> None:
    world.start_matcher("one")
    with world.trading(8):
        for number in range(ROUNDS):
            progress(world)
            world.turn_clock("one", CLOCK_STEPS_MS[number % 3])
            progress(world, ORDERS // 3)
            if number % 5 == 4:
                world.matchers["one"].kill()
                world.start_matcher("one")
        progress(world)
    world.finish("one", f"{ROUNDS} clock steps of 3 h")


def test_nothing_is_taken_until_its_time_is_over(world: World) -> None:
    """A proxy refuses all transactions, and goes on doing so for three hours of the chain."""
    world.start_matcher("one")
    ahead = 0
    for number in range(ROUNDS):
        with world.trading(100 + number):
            progress(world)
            world.proxy.refusing = (403, 404, 413, 502)[number % 4]
            progress(world, ORDERS // 3)
        ahead += 3 * HOUR_MS
        world.turn_clock("node", ahead)
        world.turn_clock("one", ahead)
        wait_for_blocks(world, 101)
        assert world.unsettled("one")
        world.proxy.refusing = None
        world.settled("one")
    assert world.proxy.refused
    world.finish("one", f"{ROUNDS} times refused by a proxy for 3 h")


def test_the_money_is_gone_for_a_while(world: World) -> None:
    """Traders spend elsewhere what they have traded, and the matcher cannot pay its fees."""
    world.start_matcher("one")
    with world.trading(9):
        for number in range(ROUNDS):
            progress(world)
            trader = TRADERS[number % len(TRADERS)]
            places = ((trader, None), (ACCOUNT, None), (trader, world.usd))
            taken = [(*place, world.take_money(*place)) for place in places]
            progress(world, ORDERS // 3)
            for keys, asset, amount in taken:
                if amount:
                    world.pay(RICH, keys, asset, amount)
        progress(world)
    world.finish("one", f"{ROUNDS} times without money")


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    if (reason := unavailable()) is not None:
        pytest.skip(reason)
    with running(tmp_path / "kafka") as started:
        yield started


def queue(broker: Broker, name: str) -> str:
    timing = "lease = 2s, delivery-timeout = 3s"
    kafka = f'servers = "{broker.servers}", topic = orders, group = {name}, {timing}'
    return f"{{ type = kafka, kafka {{ {kafka} }} }}"


def test_a_master_is_killed_and_a_standby_goes_on(world: World, broker: Broker) -> None:
    world.start_matcher("one", queue(broker, "one"))
    world.start_matcher("two", queue(broker, "two"), wait=False, workers=1)
    master, standby = "one", "two"
    with world.trading(3):
        for _ in range(ROUNDS):
            progress(world)
            world.matchers[master].kill()
            world.matchers[standby].wait_for("the matcher takes orders")
            progress(world)
            world.start_matcher(master, wait=False)
            master, standby = standby, master
        broker.kill()
        broker.start()
        progress(world)
    master = world.leader()
    standby = "one" if master == "two" else "two"
    world.settled(master)
    book = world.book(master)
    world.matchers[master].close()
    # It may have said before that it takes orders.
    eventually(lambda: bool(world.book(standby) == book), "the same books")
    world.end(standby, f"{ROUNDS} masters killed, 1 broker restart, 1 resigned")


def test_the_broker_hangs(world: World, broker: Broker) -> None:
    """Nobody waits longer than the delivery timeout, and what was refused is never executed."""
    world.start_matcher("one", queue(broker, "one"))
    with world.trading(10):
        for _ in range(ROUNDS):
            progress(world)
            broker.pause()
            refusals(world, 1)
            broker.go_on()
        progress(world)
    world.finish("one", f"{ROUNDS} times hung")


def test_a_matcher_with_other_settings_stops(world: World, broker: Broker) -> None:
    world.start_matcher("one", queue(broker, "one"))
    fees = 'order-fee."-1" { mode = fixed, fixed { asset = WAVES, min-fee = 400000 } }'
    other = world.start_matcher("two", queue(broker, "two"), wait=False, more=fees)
    assert other.wait() != 0
    assert "one leads on this topic with other settings of trading than two has" in other.output
