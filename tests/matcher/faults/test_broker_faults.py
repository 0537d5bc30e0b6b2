"""A master, a standby or their broker breaks under load: nothing accepted is
lost, nothing is executed twice, and the books are what the journal says.
"""

from __future__ import annotations

import secrets

import pytest

from tests.amounts import only_long
from tests.e2e.programs import eventually
from tests.matcher.faults.load import ROUNDS, progress, refusals
from tests.matcher.faults.world import World
from tests.matcher.kafka.broker import Broker

pytestmark = pytest.mark.slow


@pytest.fixture
def topic() -> str:
    """A new one."""
    return f"orders-{secrets.token_hex(4)}"


def queue(broker: Broker, topic: str, name: str) -> str:
    timing = "lease = 2s, delivery-timeout = 3s"
    kafka = f'servers = "{broker.servers}", topic = {topic}, group = {name}, {timing}'
    return f"{{ type = kafka, kafka {{ {kafka} }} }}"


def test_a_master_is_killed_and_a_standby_goes_on(world: World, broker: Broker, topic: str) -> None:
    world.start_matcher("one", queue(broker, topic, "one"))
    world.start_matcher("two", queue(broker, topic, "two"), wait=False, workers=1)
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


@only_long
def test_the_broker_hangs(world: World, broker: Broker, topic: str) -> None:
    """Nobody waits longer than the delivery timeout, and what was refused is never executed."""
    world.start_matcher("one", queue(broker, topic, "one"))
    with world.trading(10):
        for _ in range(ROUNDS):
            progress(world)
            broker.pause()
            refusals(world, 1)
            broker.go_on()
        progress(world)
    world.finish("one", f"{ROUNDS} times hung")


@only_long
def test_a_matcher_with_other_settings_stops(world: World, broker: Broker, topic: str) -> None:
    world.start_matcher("one", queue(broker, topic, "one"))
    fees = 'order-fee."-1" { mode = fixed, fixed { asset = WAVES, min-fee = 400000 } }'
    other = world.start_matcher("two", queue(broker, topic, "two"), wait=False, more=fees)
    assert other.wait() != 0
    assert "one leads on this topic with other settings of trading than two has" in other.output
