"""Long lists from the store, page by page. Between two pages the store may be written, and other
requests are served.
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
    """Pages of ``size`` items. ``read`` returns the items after a place, ``place_of`` an item's."""
    while True:
        page = list(islice(read(start), size))
        yield page
        if len(page) < size:
            return
        start = place_of(page[-1])
        await asyncio.sleep(0)
