"""The node, or the way to it, breaks under load: nothing accepted is
lost, nothing is executed twice, and the books are what the journal says.

All of it happens to one matcher by turns; in a long run each of it also happens alone, repeatedly.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.amounts import if_long, times
from tests.e2e.programs import eventually
from tests.matcher.faults.load import ORDERS, ROUNDS, names, progress, wait_for_blocks
from tests.matcher.faults.world import World

pytestmark = pytest.mark.slow

ROLLBACK = times(20, 50)
HOUR_MS = 3_600_000

Fault = Callable[[World, int], None]


def rolled_back(world: World, number: int) -> None:
    eventually(lambda: world.blocks() > ROLLBACK + 10, "blocks")
    progress(world)
    world.roll_back(ROLLBACK, keep=number % 2 == 0)
    progress(world, ORDERS // 3)


def hung_and_killed(world: World, _number: int) -> None:
    world.pause_node(2)
    progress(world, ORDERS // 3)
    world.kill_node()
    progress(world, ORDERS // 3)


def connections_cut(world: World, number: int) -> None:
    """In the middle of events and answers, all of which are late, while the node rolls back."""
    world.proxy.jitter = 0.02
    progress(world)
    world.proxy.cut()
    if number % 4 == 3:
        world.roll_back(20, keep=False)
        world.proxy.cut()
    progress(world)
    world.proxy.jitter = 0


def rolled_back_below_the_start(world: World, number: int) -> None:
    """Of a matcher that starts again."""
    eventually(lambda: world.blocks() > ROLLBACK + 10, "blocks")
    progress(world)
    world.matchers["one"].kill()
    world.start_matcher("one")
    world.roll_back(ROLLBACK, keep=number % 2 == 1)
    progress(world)


def no_events_any_more(world: World, _number: int) -> None:
    """The matcher finds out when it asks again, and polls."""
    world.proxy.events = False
    world.matchers["one"].kill()
    world.start_matcher("one")


FAULTS: tuple[Fault, ...] = (
    *(rolled_back, hung_and_killed, connections_cut, no_events_any_more),
    rolled_back_below_the_start,
)


@pytest.mark.parametrize(
    "faults",
    [
        FAULTS,
        if_long((rolled_back, hung_and_killed)),
        if_long((connections_cut,)),
        if_long((rolled_back_below_the_start,)),
        if_long((no_events_any_more, connections_cut)),
        if_long((no_events_any_more, rolled_back_below_the_start)),
    ],
    ids=names,
)
def test_under_load(world: World, faults: tuple[Fault, ...]) -> None:
    world.start_matcher("one")
    with world.trading(20 + len(faults)):
        for number in range(ROUNDS):
            for fault in faults:
                fault(world, number)
        progress(world)
    world.finish("one", f"{ROUNDS} times: {names(faults)}")


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
