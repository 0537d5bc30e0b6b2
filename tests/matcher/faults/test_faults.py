"""Something breaks under load: nothing accepted is lost, nothing is executed twice, and the books
are what the journal says.

``SOLITON_KILLS`` sets how often each thing breaks in one run; the default keeps the tests short.
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
from tests.matcher.faults.world import World
from tests.matcher.kafka.broker import Broker, running, unavailable

pytestmark = pytest.mark.slow

ROUNDS = int(os.environ.get("SOLITON_KILLS", "1"))
ROLLBACK = 50


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    try:
        yield made
    finally:
        made.close()


def progress(world: World, orders: int = 150) -> None:
    """Wait until more orders were accepted, and a moment of chance."""
    goal = len(world.notes.accepted) + orders
    eventually(lambda: len(world.notes.accepted) >= goal, "accepted orders")
    time.sleep(random.random() / 3)


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
    world.settled("one")
    world.matchers["one"].close()
    print(f"\n{ROUNDS} kills with torn tails, {workers} workers: {world.check('one')}")


@pytest.mark.skipif(sys.platform != "linux", reason="children of another process")
def test_a_worker_is_killed_under_load(world: World) -> None:
    world.start_matcher("one", workers=1)
    with world.trading(5):
        for _ in range(ROUNDS):
            progress(world)
            world.kill_workers("one")
        progress(world)
    world.settled("one")
    world.matchers["one"].close()
    print(f"\n{ROUNDS} workers killed: {world.check('one')}")


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
    world.settled("one")
    world.matchers["one"].close()
    print(f"\n{ROUNDS} times full: {world.check('one')}")


def test_the_node_rolls_back_hangs_and_dies(world: World) -> None:
    world.start_matcher("one")
    with world.trading(2):
        for number in range(ROUNDS):
            eventually(lambda: world.blocks() > ROLLBACK + 10, "blocks")
            progress(world)
            world.roll_back(ROLLBACK, keep=number % 2 == 0)
            progress(world, 50)
        world.pause_node(2)
        progress(world, 50)
        world.kill_node()
        progress(world, 50)
    world.settled("one")
    world.matchers["one"].close()
    print(f"\n{ROUNDS} rollbacks of {ROLLBACK} blocks, 1 pause, 1 kill: {world.check('one')}")


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    if (reason := unavailable()) is not None:
        pytest.skip(reason)
    with running(tmp_path / "kafka") as started:
        yield started


def test_a_master_is_killed_and_a_standby_goes_on(world: World, broker: Broker) -> None:
    def queue(name: str) -> str:
        kafka = f'servers = "{broker.servers}", topic = orders, group = {name}, lease = 2s'
        return f"{{ type = kafka, kafka {{ {kafka} }} }}"

    world.start_matcher("one", queue("one"))
    world.start_matcher("two", queue("two"), wait=False, workers=1)
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
    world.matchers[standby].wait_for("the matcher takes orders")
    assert world.book(standby) == book
    world.matchers[standby].close()
    print(f"\n{ROUNDS} masters killed, 1 broker restart, 1 resigned: {world.check(standby)}")
