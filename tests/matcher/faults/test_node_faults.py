"""The node, or the way to it, breaks under load: nothing accepted is
lost, nothing is executed twice, and the books are what the journal says.
"""

from __future__ import annotations

import pytest

from tests.amounts import if_long, times
from tests.e2e.programs import eventually
from tests.matcher.faults.load import ORDERS, ROUNDS, progress, wait_for_blocks
from tests.matcher.faults.world import World

pytestmark = pytest.mark.slow

ROLLBACK = times(20, 50)
HOUR_MS = 3_600_000


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


@pytest.mark.parametrize("events", [True, if_long(False)])
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


@pytest.mark.parametrize("events", [if_long(True), False])
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
