"""The matcher, its disk, its clock or its money breaks under load: nothing accepted is
lost, nothing is executed twice, and the books are what the journal says.
"""

from __future__ import annotations

import random
import sys

import pytest

from tests.matcher.faults.load import ORDERS, ROUNDS, progress, refusals
from tests.matcher.faults.world import ACCOUNT, RICH, TRADERS, World

pytestmark = pytest.mark.slow

HOUR_MS = 3_600_000
CLOCK_STEPS_MS = (3 * HOUR_MS, -3 * HOUR_MS, 0)


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
