"""Writing snapshots of the books while commands are being applied.

What lives here: when a snapshot is written, what must be on the disk before it, and truncating the
journal after it. What does not: its bytes (``soliton.matching.snapshots``) and its file
(``journal.snapshots``).
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
"""The interval at which the orders database is flushed; until then the journal has the changes."""
_RETRY_SECONDS: Final = 1.0
_CHECK_SECONDS: Final = 1.0
_RETRY_SNAPSHOT_SECONDS: Final = 60.0

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
        """No snapshot is written unless ``is_certain`` returns true for the engine's state."""
        self._engine = engine
        self._snapshots = snapshots
        self._journal = journal
        self._database = database
        self._is_certain = is_certain
        self._lock = asyncio.Lock()
        self.offsets: tuple[int, ...] = ()
        """The offsets of the existing snapshots, ascending."""

    @property
    def newest(self) -> int:
        """The offset of the newest snapshot, -1 if there is none."""
        return max(self.offsets, default=-1)

    def set_aside_ahead(self) -> None:
        """Set aside snapshots beyond the journal's end, which belong to another journal. Raises
        ``JournalProblem``.
        """
        end = self._engine.last_offset
        self._snapshots.set_aside_after(end)
        self.offsets = tuple(offset for offset in self.offsets if offset <= end)

    async def every(self, commands: int) -> None:
        """Write a snapshot after each ``commands`` commands, forever."""
        while True:
            await asyncio.sleep(_CHECK_SECONDS)
            if self._engine.last_offset - self.newest >= commands:
                try:
                    await self.save()
                except (JournalProblem, DatabaseProblem) as error:
                    _log.error("no snapshot: %s", error)
                    await asyncio.sleep(_RETRY_SNAPSHOT_SECONDS)

    async def at_the_end(self) -> None:
        """Write a snapshot if a command was applied since the last one."""
        if self._engine.last_offset > self.newest:
            try:
                await self.save()
            except (JournalProblem, DatabaseProblem) as error:
                _log.warning("no snapshot at the end: %s", error)

    async def save(self) -> None:
        """Write a snapshot now; raises ``JournalProblem`` or ``DatabaseProblem``."""
        async with self._lock:
            if not self._is_certain():
                # A command has failed half way: the books are about to be restored.
                return
            with self._engine.begin_snapshot() as writing:
                offset = writing.last_offset
                if offset < 0:
                    return
                for _ in writing.slices():
                    await asyncio.sleep(0)
            # The snapshot must not be newer than the database, which has the finalized orders.
            await self._database.flush()
            await asyncio.to_thread(self._snapshots.save, offset, writing.pieces)
            self.offsets = tuple(sorted({*self.offsets, offset})[-KEPT:])
            if len(self.offsets) == KEPT:
                # The older snapshot stays usable, in case the newest file is damaged.
                await self._journal.truncate_before(self.offsets[0] + 1)


async def keep_flushed(database: OrdersDatabase) -> None:
    """Flush the database periodically, forever."""
    while True:
        await asyncio.sleep(FLUSH_SECONDS)
        try:
            await database.flush()
        except (JournalProblem, DatabaseProblem) as error:
            _log.error("%s", error)
            await asyncio.sleep(_RETRY_SECONDS)
