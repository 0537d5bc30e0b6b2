"""Clocks that jump: what is executed can be settled, and nothing expires before its time."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from soliton.chain.orders import Side
from soliton.matcher import clock as clocks
from soliton.matcher.clock import MAX_STEP_MS, SteadyClock
from soliton.matcher.journal import MAX_AHEAD_MS, time_after
from soliton.matcher.service import Matcher
from soliton.matching.model import OrderStatus
from soliton.web.clock import wall_clock
from tests.matcher.kit import (
    ALICE,
    BOB,
    COIN,
    FakeNode,
    eventually,
    make_order,
    running,
    settings_in,
)

HOUR_MS = 3_600_000
SLACK_MS = 60_000


class Machine:
    """A machine whose clock somebody moves."""

    def __init__(self) -> None:
        self.ahead_ms = 0

    def wall(self) -> int:
        return wall_clock() + self.ahead_ms


@pytest.fixture
def machine() -> Machine:
    return Machine()


@pytest.fixture
def node(monkeypatch: pytest.MonkeyPatch) -> FakeNode:
    monkeypatch.setattr(clocks, "COMPARE_SECONDS", 0.01)
    node = FakeNode()
    for keys in (ALICE, BOB):
        node.fund(keys)
    return node


async def trade(matcher: Matcher, node: FakeNode, timestamp: int | None = None) -> int:
    """The time of the transaction by which an execution is settled."""
    before = len(node.sent)
    for keys, side in ((ALICE, Side.SELL), (BOB, Side.BUY)):
        order = make_order(keys, side, COIN, 250 + before, timestamp=timestamp)
        await matcher.placing.place(order, market=False)
    await eventually(lambda: len(node.sent) > before)
    return node.sent[before].timestamp


@pytest.mark.parametrize("hours", [3, -3])
async def test_a_clock_that_jumps_stamps_nothing(
    tmp_path: Path, machine: Machine, node: FakeNode, hours: int
) -> None:
    settings = settings_in(tmp_path, clock=SteadyClock(machine.wall))
    async with running(settings, node) as matcher:
        resting = make_order(ALICE, Side.SELL, COIN, 900, lifetime_ms=HOUR_MS)
        await matcher.placing.place(resting, market=False)
        for ahead in (hours * HOUR_MS, 0):
            machine.ahead_ms = ahead
            assert abs(await trade(matcher, node) - wall_clock()) < SLACK_MS
        info = matcher.queries.order_info(resting.id)
        assert info is not None and info.status is OrderStatus.ACCEPTED


@pytest.mark.parametrize("hours", [3, -3])
async def test_a_clock_that_is_wrong_from_the_start_is_put_right(
    tmp_path: Path, machine: Machine, node: FakeNode, hours: int
) -> None:
    machine.ahead_ms = hours * HOUR_MS
    settings = settings_in(tmp_path, clock=SteadyClock(machine.wall))
    async with running(settings, node) as matcher:
        assert abs(await trade(matcher, node) - wall_clock()) < SLACK_MS


async def test_one_command_stamped_ahead_is_alone(
    tmp_path: Path, machine: Machine, node: FakeNode
) -> None:
    """The node's clock was ahead, too, and both were put right."""
    machine.ahead_ms = node.ahead_ms = 3 * HOUR_MS
    settings = settings_in(tmp_path, clock=SteadyClock(machine.wall))
    async with running(settings, node) as matcher:
        there = matcher.now()
        assert abs(await trade(matcher, node, there) - there) < SLACK_MS
        machine.ahead_ms = node.ahead_ms = 0
        await eventually(lambda: abs(matcher.now() - wall_clock()) < SLACK_MS)
        assert abs(await trade(matcher, node) - wall_clock()) < SLACK_MS


def times(steps: Sequence[tuple[int, int, int | None]]) -> list[int]:
    """What a clock shows at steps of (its own time, time passed, the node's time)."""
    now = [0, 0]
    clock = SteadyClock(lambda: now[0], lambda: now[1] / 1000)
    shown = []
    for wall, passed, node in steps:
        now[:] = wall, passed
        if node is not None:
            clock.compare(node)
        shown.append(clock())
    return shown


def test_what_a_clock_shows() -> None:
    far = 10 * MAX_STEP_MS
    # Small corrections are followed at once, and add up.
    assert times([(5, 0, None), (MAX_STEP_MS, 1, None), (2 * MAX_STEP_MS, 2, None)])[1:] == [
        MAX_STEP_MS, 2 * MAX_STEP_MS
    ]  # fmt: skip
    # A jump is followed when the node has made it, too.
    assert times([(far, 7, None), (far, 8, 9), (far, 9, far)]) == [7, 8, far]
    # Neither this clock nor the one of the machine is that of the node.
    assert times([(far, 0, 2 * far), (far + 5, 5, None)]) == [2 * far, 2 * far + 5]


def test_the_time_of_the_next_command() -> None:
    assert time_after(1_000, 2_000) == 2_000
    assert time_after(2_000, 1_000) == 2_000
    assert time_after(MAX_AHEAD_MS + 1_001, 1_000) == 1_000
