"""Snapshots of the books, written while commands go on being applied.

What lives here: when one is written, what has to be on the disk before it, and which part of the
journal is not needed after it. What does not: its bytes (``soliton.matching.snapshots``) and its
file (``journal.snapshots``).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Final

from soliton.matcher.errors import DatabaseProblem
from soliton.matcher.journal import Journal
from soliton.matcher.journal.errors import JournalProblem
from soliton.matcher.journal.snapshots import KEPT, SnapshotStore
from soliton.matcher.log_throttle import throttled
from soliton.matcher.orders_db import OrdersDatabase
from soliton.matching.engine import Engine

FLUSH_SECONDS: Final = 0.5
"""How long what became of orders stays in memory only; the journal has it all the same."""
_RETRY_SECONDS: Final = 1.0
_LOOK_SECONDS: Final = 1.0
_AFTER_TROUBLE_SECONDS: Final = 60.0

_log = throttled(logging.getLogger(__name__))


class SnapshotWriter:
    """Use from one event loop."""

    def __init__(
        self,
        engine: Engine,
        snapshots: SnapshotStore,
        journal: Journal,
        database: OrdersDatabase,
        is_certain: Callable[[], bool],
    ) -> None:
        """While the state of the engine is not ``is_certain``, none is written."""
        self._engine = engine
        self._snapshots = snapshots
        self._journal = journal
        self._database = database
        self._is_certain = is_certain
        self._lock = asyncio.Lock()
        self.offsets: tuple[int, ...] = ()
        """Of the snapshots that there are, in ascending order."""

    @property
    def newest(self) -> int:
        """The offset of the newest snapshot, -1 without one."""
        return max(self.offsets, default=-1)

    def set_aside_ahead(self) -> None:
        """The journal ends here for certain: snapshots of what comes later are of another one.
        Raises ``JournalProblem``.
        """
        end = self._engine.last_offset
        self._snapshots.set_aside_after(end)
        self.offsets = tuple(offset for offset in self.offsets if offset <= end)

    async def every(self, commands: int) -> None:
        """For ever: one after so many commands."""
        while True:
            await asyncio.sleep(_LOOK_SECONDS)
            if self._engine.last_offset - self.newest >= commands:
                try:
                    await self.save()
                except (JournalProblem, DatabaseProblem) as error:
                    _log.error("no snapshot: %s", error)
                    await asyncio.sleep(_AFTER_TROUBLE_SECONDS)

    async def at_the_end(self) -> None:
        """One, if anything has happened since the last."""
        if self._engine.last_offset > self.newest:
            try:
                await self.save()
            except (JournalProblem, DatabaseProblem) as error:
                _log.warning("no snapshot at the end: %s", error)

    async def save(self) -> None:
        """Write one now; raises ``JournalProblem`` or ``DatabaseProblem``."""
        async with self._lock:
            if not self._is_certain():
                # A command has failed half way: the books are about to be read anew.
                return
            with self._engine.begin_snapshot() as writing:
                offset = writing.last_offset
                if offset < 0:
                    return
                for _ in writing.slices():
                    await asyncio.sleep(0)
            # The books must not be newer than what became of the orders that left them.
            await self._database.flush()
            await asyncio.to_thread(self._snapshots.save, offset, writing.pieces)
            self.offsets = tuple(sorted({*self.offsets, offset})[-KEPT:])
            if len(self.offsets) == KEPT:
                # With an older one at hand, so that a damaged file on the disk is not the end.
                await self._journal.truncate_before(self.offsets[0] + 1)


async def keep_flushed(database: OrdersDatabase) -> None:
    """Bring for ever to the disk what became of orders."""
    while True:
        await asyncio.sleep(FLUSH_SECONDS)
        try:
            await database.flush()
        except (JournalProblem, DatabaseProblem) as error:
            _log.error("%s", error)
            await asyncio.sleep(_RETRY_SECONDS)
