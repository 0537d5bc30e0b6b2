"""Long lists out of the store, a page at a time: it may be written between two pages, not within
one, and other requests get their turn there.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from itertools import islice
from typing import TypeVar

T = TypeVar("T")
P = TypeVar("P")


async def in_pages(
    read: Callable[[P | None], Iterable[T]],
    place_of: Callable[[T], P],
    size: int,
    start: P | None = None,
) -> AsyncIterator[list[T]]:
    """Pages of what ``read`` gives after a place; ``place_of`` is the place of an item."""
    while True:
        page = list(islice(read(start), size))
        yield page
        if len(page) < size:
            return
        start = place_of(page[-1])
        await asyncio.sleep(0)
