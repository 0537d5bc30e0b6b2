"""Long work on the event loop, taken in turns with everybody else's.

What lives here: going through many things with pauses, and ending tasks. What does not: the work.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from typing import Any, Final, TypeVar

SLICE: Final = 200
"""Things between two pauses. Each takes some 10 µs at most, so that nobody waits long."""

T = TypeVar("T")


async def in_slices(things: Iterable[T]) -> AsyncIterator[T]:
    """All things in their order; others go on after each ``SLICE`` of them. What they change in the
    meantime is seen, so ``things`` should be nobody else's.
    """
    for count, thing in enumerate(things, 1):
        yield thing
        if count % SLICE == 0:
            await asyncio.sleep(0)


async def end_all(tasks: Iterable[asyncio.Task[Any]]) -> None:
    """Cancel tasks and wait for their end."""
    running = list(tasks)
    for task in running:
        task.cancel()
    await asyncio.gather(*running, return_exceptions=True)


async def first_end(work: asyncio.Task[None], jobs: Iterable[asyncio.Task[Any]]) -> None:
    """Wait for a work, and for the jobs beside it that should run as long: raises what ended one of
    them. Nothing goes on without a job that has ended; the work is cancelled then.
    """
    tasks = [work, *jobs]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        await end_all([work])
