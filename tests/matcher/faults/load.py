"""How much happens between two faults, and waiting until it has.

``SOLITON_FAULT_ROUNDS`` sets how often each thing breaks in one run; the default keeps the tests
short. ``SOLITON_FAULT_ORDERS`` sets how many orders are accepted between two faults.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Sequence

from tests.amounts import times
from tests.e2e.programs import eventually
from tests.matcher.faults.world import World

ROUNDS = int(os.environ.get("SOLITON_FAULT_ROUNDS", times(1, 3)))
ORDERS = int(os.environ.get("SOLITON_FAULT_ORDERS", times(30, 100)))


def names(value: Sequence[Callable[..., None]] | int) -> str:
    """What a run is called: the names of its faults, or a number of processes."""
    return str(value) if isinstance(value, int) else " ".join(each.__name__ for each in value)


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
