"""Time slices: one in each round of the event loop, in the order of asking."""

from __future__ import annotations

import asyncio
import time
from itertools import pairwise

import pytest

from soliton.api.time_slices import SLICE_SECONDS, TimeSlices


async def test_first_come_first_served_and_others_in_between() -> None:
    slices, log = TimeSlices(), []

    async def work(name: str) -> None:
        for _ in range(3):
            await slices.take()
            log.append(name)

    async def other() -> None:
        for _ in range(12):
            log.append(".")
            await asyncio.sleep(0)

    await asyncio.gather(work("a"), work("b"), other())
    assert [item for item in log if item != "."] == ["a", "a", "b", "a", "b", "b"]
    for one, next_one in pairwise(log):
        assert "." in (one, next_one), log


async def test_who_has_gone_is_passed_over() -> None:
    slices, log = TimeSlices(), []

    async def work(name: str) -> None:
        await slices.take()
        log.append(name)

    tasks = [asyncio.create_task(work(name)) for name in "abcd"]
    await asyncio.sleep(0)
    tasks[1].cancel()
    tasks[2].cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert log == ["a", "d"]
    await asyncio.sleep(0)
    await work("e")
    assert log[-1] == "e"


async def test_a_long_list_is_mapped_in_several_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    slices, taken = TimeSlices(), 0
    take = slices.take

    async def counted() -> float:
        nonlocal taken
        taken += 1
        return await take()

    monkeypatch.setattr(TimeSlices, "take", lambda _self: counted())

    def slow(item: int) -> int:
        time.sleep(SLICE_SECONDS)
        return item * item

    assert await slices.map(slow, range(5)) == [0, 1, 4, 9, 16]
    assert taken >= 4
