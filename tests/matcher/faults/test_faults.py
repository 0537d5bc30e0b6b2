"""The matcher, its disk, its clock or its money breaks under load: nothing accepted is
lost, nothing is executed twice, and the books are what the journal says.

All of it happens to one matcher by turns; in a long run each of it also happens alone, repeatedly.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable

import pytest

from tests.amounts import if_long
from tests.matcher.faults.load import ORDERS, ROUNDS, names, progress, refusals
from tests.matcher.faults.world import ACCOUNT, RICH, TRADERS, World

pytestmark = pytest.mark.slow

HOUR_MS = 3_600_000
CLOCK_STEPS_MS = (3 * HOUR_MS, -3 * HOUR_MS, 0)

Fault = Callable[[World, int], None]


def matcher_killed(world: World, _number: int) -> None:
    """With a torn tail of its journal."""
    world.matchers["one"].kill()
    world.tear_tail("one", random.randrange(1, 330))
    world.start_matcher("one")


def worker_killed(world: World, _number: int) -> None:
    world.kill_workers("one")


def disk_full(world: World, _number: int) -> None:
    """For a while."""
    world.fill_disk("one")
    refusals(world)
    world.free_disk("one")


def clock_turned(world: World, number: int) -> None:
    """Ahead, back, and right again."""
    for step in CLOCK_STEPS_MS:
        world.turn_clock("one", step)
        progress(world, ORDERS // 3)
        if number % 5 == 4:
            world.matchers["one"].kill()
            world.start_matcher("one")


def money_gone(world: World, number: int) -> None:
    """Traders spend elsewhere what they have traded, and the matcher cannot pay its fees."""
    trader = TRADERS[number % len(TRADERS)]
    places = ((trader, None), (ACCOUNT, None), (trader, world.usd))
    taken = [(*place, world.take_money(*place)) for place in places]
    progress(world, ORDERS // 3)
    for keys, asset, amount in taken:
        if amount:
            world.pay(RICH, keys, asset, amount)


FAULTS: tuple[Fault, ...] = (matcher_killed, clock_turned, money_gone)
if sys.platform == "linux":
    # These reach into another process.
    FAULTS += (worker_killed, disk_full)


@pytest.mark.parametrize(
    ("faults", "workers"),
    [
        (FAULTS, 1),
        *(if_long((fault,), int(fault is worker_killed)) for fault in FAULTS),
        if_long((matcher_killed,), 1),
    ],
    ids=names,
)
def test_under_load(world: World, faults: tuple[Fault, ...], workers: int) -> None:
    world.start_matcher("one", workers=workers)
    with world.trading(len(faults)):
        for number in range(ROUNDS):
            for fault in faults:
                progress(world)
                fault(world, number)
        progress(world)
    world.finish("one", f"{ROUNDS} times with {workers} workers: {names(faults)}")
