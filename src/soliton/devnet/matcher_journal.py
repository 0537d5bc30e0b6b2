"""The journal of a private chain's matcher: in memory, so that it can be cut at any command.

What lives here: the commands, and marks in them. What does not: journals on a disk
(``soliton.matcher.journal``), the matcher.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import NamedTuple

from soliton.matcher.journal import Journal, Position, Record, time_after
from soliton.matching.pairs import Asset


class Mark(NamedTuple):
    """A point that a matcher can be rolled back to: its commands up to a length, and its rates.

    Lists that have grown from one another share their records: if the last record is the same, so
    are all before it.
    """

    kept: list[Record]
    length: int
    rates: Mapping[Asset, float]

    def records(self) -> list[Record]:
        """Return the commands."""
        return self.kept[: self.length]

    def is_like(self, other: Mark) -> bool:
        """Whether nothing has happened between the two marks."""
        if other.length != self.length or dict(other.rates) != dict(self.rates):
            return False
        last = self.length - 1
        return last < 0 or other.kept[last] is self.kept[last]


AT_THE_BEGINNING = Mark([], 0, {})


class MemoryJournal:
    """A ``Journal`` of the growing list ``kept``; ``below`` also writes the records to a disk."""

    def __init__(
        self, clock: Callable[[], int], kept: list[Record], below: Journal | None = None
    ) -> None:
        """``clock`` returns milliseconds."""
        self._clock, self._below = clock, below
        self.kept = kept
        self.first_offset = 0

    @property
    def last_offset(self) -> int:
        """See ``Journal``."""
        return len(self.kept) - 1

    async def append(self, payloads: Sequence[bytes]) -> list[Position]:
        """See ``Journal``."""
        if self._below is not None:
            positions = await self._below.append(payloads)
            self.kept += (Record(*at, data) for at, data in zip(positions, payloads, strict=True))
            return positions
        last = self.kept[-1].timestamp if self.kept else 0
        now = time_after(last, self._clock())
        first = len(self.kept)
        self.kept += (Record(first + each, now, data) for each, data in enumerate(payloads))
        return [Position(each, now) for each in range(first, len(self.kept))]

    async def records(self, from_offset: int) -> AsyncIterator[list[Record]]:
        """See ``Journal``."""
        if found := self.kept[from_offset:]:
            yield found

    async def follow(self, from_offset: int) -> AsyncIterator[list[Record]]:
        """See ``Journal``."""
        async for batch in self.records(from_offset):
            yield batch

    async def term_ended(self) -> None:
        """See ``Journal``."""
        if self._below is None:
            await asyncio.Event().wait()
        else:
            await self._below.term_ended()

    async def confirm(self) -> None:
        """See ``Journal``."""
        if self._below is not None:
            await self._below.confirm()

    async def truncate_before(self, offset: int) -> None:
        """See ``Journal``; nothing is removed."""

    async def close(self) -> None:
        """See ``Journal``."""
        if self._below is not None:
            await self._below.close()
