"""Cooperative long-running work on the event loop, and cancelling tasks.

What lives here: iterating with pauses, and cancelling tasks. What does not: the work itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from typing import Any, Final, TypeVar

SLICE: Final = 200
"""Items between two pauses. Each takes some 10 µs at most, so that other tasks wait only briefly.
"""

T = TypeVar("T")


async def in_slices(items: Iterable[T], size: int = SLICE) -> AsyncIterator[T]:
    """All items in order; other tasks run after each ``size`` of them, so they must not change
    ``items``.
    """
    for count, item in enumerate(items, 1):
        yield item
        if count % size == 0:
            await asyncio.sleep(0)


async def end_all(tasks: Iterable[asyncio.Task[Any]]) -> None:
    """Cancel tasks and wait until they have ended."""
    running = list(tasks)
    for task in running:
        task.cancel()
    await asyncio.gather(*running, return_exceptions=True)


async def first_end(work: asyncio.Task[None], jobs: Iterable[asyncio.Task[Any]]) -> None:
    """Wait until ``work`` or one of the jobs ends, and raise its exception, if any. The jobs should
    run as long as the work does: when one ends, the work is cancelled.
    """
    tasks = [work, *jobs]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        await end_all([work])
