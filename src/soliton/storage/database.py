"""The database: consistent reads, and writes in atomic batches.

What lives here: renewing read transactions, growing the map, reopening after a disk failure,
snapshots. What does not: records and blocks (``reader``, ``store``), single calls of LMDB
(``environment``).
"""

from __future__ import annotations

import copy
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import lmdb

from soliton.errors import InvariantBroken
from soliton.storage.damage import unreadable
from soliton.storage.directories import take_ownership
from soliton.storage.environment import (
    CLOSED,
    MAX_MAP_SIZE,
    begin_reading,
    grow,
    open_environment,
    problem_of,
    translate_errors,
    write,
)
from soliton.storage.errors import StoreBusy
from soliton.storage.timeline import Timeline

MAX_SNAPSHOTS: Final = 32
"""The number of snapshots that one process may have open."""


class Database:
    """The database of a directory. It is not thread-safe; other threads may read a ``snapshot``,
    other processes the same directory. A snapshot is ``revoked`` when it has to be closed.
    """

    __slots__ = (
        "_durable",
        "_env",
        "_map_size",
        "_origin",
        "_owner",
        "_read",
        "_views",
        "directory",
        "revoked",
        "snapshots",
        "timeline",
    )

    def __init__(
        self, directory: Path, *, durable: bool, exclusive: bool, outgrows: bool = True
    ) -> None:
        """Open the database, creating it if necessary; raise ``StorageProblem``.

        Without ``outgrows`` the map has its maximum size, so that snapshots of this process can
        stay open while another process enlarges the database.
        """
        self.directory = directory
        self._map_size = None if outgrows else MAX_MAP_SIZE
        self._durable = durable
        self._owner: int | None = None
        # LMDB's types do not distinguish transactions that return bytes from those with buffers.
        self._read: Any = CLOSED
        self._views: Any = CLOSED
        self.revoked = False
        self._origin: Database | None = None
        self.snapshots = Snapshots()
        self.timeline = Timeline()
        with translate_errors(directory, "opened"):
            directory.mkdir(parents=True, exist_ok=True)
            self._owner = take_ownership(directory) if exclusive else None
            try:
                self._env = open_environment(
                    directory, durable=durable, exclusive=exclusive, map_size=self._map_size
                )
            except BaseException:
                self._release()
                raise
        try:
            self.refresh("opened")
        except BaseException:
            self.close()
            raise

    # --- reading ----------------------------------------------------------------------------------

    def get(self, key: bytes) -> bytes | None:
        """Return the value of a key."""
        try:
            value: bytes | None = self._read.get(key)
        except lmdb.Error as error:
            raise unreadable(key, error) from error
        return value

    def view(self, key: bytes) -> memoryview | None:
        """The same without copying; the buffer is valid until the next refresh."""
        try:
            value: memoryview | None = self._views.get(key)
        except lmdb.Error as error:
            raise unreadable(key, error) from error
        return value

    def scan(self, prefix: bytes, start: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Yield the keys and values of a prefix in ascending order, from ``start`` on."""
        try:
            with self._read.cursor() as cursor:
                found = cursor.set_range(start)
                while found and cursor.key().startswith(prefix):
                    yield cursor.key(), cursor.value()
                    found = cursor.next()
        except lmdb.Error as error:
            raise unreadable(prefix, error) from error

    def scan_back(self, prefix: bytes, before: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
        """The same in descending order, below ``prefix + before``, or from the last one."""
        try:
            with self._read.cursor() as cursor:
                found = cursor.set_range(prefix + (before or b"\xff" * 33))
                found = cursor.prev() if found else cursor.last()
                while found and cursor.key().startswith(prefix):
                    yield cursor.key(), cursor.value()
                    found = cursor.prev()
        except lmdb.Error as error:
            raise unreadable(prefix, error) from error

    @property
    def moment(self) -> int:
        """The number of the last write that is visible."""
        number: int = self._read.id()
        return number

    def used_bytes(self) -> int:
        """Return the size of the used part of the database file."""
        info, page = self._env.info(), self._env.stat()["psize"]
        used: int = (info["last_pgno"] + 1) * page
        return used

    def reader_slots(self) -> int:
        """Return the number of occupied reader slots, of all processes."""
        return sum(1 for line in self._env.readers().splitlines()[1:] if line.strip())

    def forget_dead_readers(self) -> None:
        """Free the reader slots of processes that were killed."""
        self._env.reader_check()

    def follow(self) -> bool:
        """Read what another process has written meanwhile; return whether anything is new."""
        before = self.moment
        try:
            self.refresh("read")
        except lmdb.MapResizedError:
            self.snapshots.revoke()
            self._stop_reading()
            # 0 adopts the map size that the other process has set.
            self._env.set_mapsize(0)
            self.refresh("read")
        return self.moment != before

    def snapshot(self) -> Database:
        """Return a snapshot, which one other thread may read.

        That thread must close it soon after ``revoked`` is set, because the database cannot grow
        before. Raises ``StoreBusy`` if too many are open.
        """
        self.snapshots.check_room()
        snapshot = copy.copy(self)
        snapshot._read = snapshot._views = CLOSED
        try:
            snapshot.refresh("read")
        except lmdb.MapResizedError as error:
            raise StoreBusy("the store has just grown") from error
        snapshot._owner = None
        snapshot._origin = self
        self.snapshots.add(snapshot)
        return snapshot

    def refresh(self, doing: str = "read") -> None:
        """Begin new read transactions, which see the latest write."""
        self._stop_reading()
        try:
            self._read, self._views = begin_reading(self._env)
        except lmdb.MapResizedError:
            raise
        except lmdb.ReadersFullError:
            # Slots of killed processes may be freed.
            self._env.reader_check()
            with translate_errors(self.directory, doing):
                self._read, self._views = begin_reading(self._env)
        except lmdb.PanicError:
            self._open_again(doing)
        except lmdb.Error as error:
            raise problem_of(error, self.directory, doing) from error

    def _stop_reading(self) -> None:
        self._read.abort()
        self._views.abort()
        # An ended transaction holds its reader slot until its object is deleted.
        self._read = self._views = CLOSED

    # --- writing ----------------------------------------------------------------------------------

    def write(self, items: dict[bytes, bytes | None]) -> None:
        """Write values and delete keys (``None``) atomically; raise ``StorageProblem``.

        In both cases later reads see the present content of the database.
        """
        if self._origin is not None:
            raise InvariantBroken("a snapshot of the store is not written")
        self.timeline.record(items, self.get)
        # Sorted keys let the database append to pages instead of searching for each key.
        deletes = [key for key, value in items.items() if value is None]
        puts = [(key, value) for key in sorted(items) if (value := items[key]) is not None]
        try:
            while True:
                try:
                    # The read transactions stay open, so that this process keeps its reader slots.
                    write(self._env, puts, deletes)
                    break
                except lmdb.MapFullError:
                    self._grow()
        except (OSError, lmdb.Error) as error:
            self.refresh()
            raise problem_of(error, self.directory, "written") from error
        self.refresh()

    def _grow(self) -> None:
        self.snapshots.revoke()
        self._stop_reading()
        try:
            grow(self._env)
        finally:
            self.refresh()

    def _open_again(self, doing: str) -> None:
        """Reopen the database: after a disk failure during a commit LMDB refuses all operations."""
        self.snapshots.revoke()
        with translate_errors(self.directory, doing):
            self._env.close()
            self._env = open_environment(
                self.directory,
                durable=self._durable,
                exclusive=self._owner is not None,
                map_size=self._map_size,
            )
            self._read, self._views = begin_reading(self._env)

    def close(self) -> None:
        """Close the database, or only this snapshot."""
        self._stop_reading()
        if self._origin is not None:
            self._origin.snapshots.remove(self)
            return
        self.snapshots.revoke()
        self._env.close()
        self._release()

    def _release(self) -> None:
        if self._owner is not None:
            os.close(self._owner)
            self._owner = None


class Snapshots:
    """The open snapshots of a database."""

    __slots__ = ("_change", "_open")

    def __init__(self) -> None:
        self._open: set[Database] = set()
        self._change = threading.Condition()

    def __len__(self) -> int:
        return len(self._open)

    def check_room(self) -> None:
        """Raise ``StoreBusy`` if no more snapshots can be opened."""
        if len(self._open) >= MAX_SNAPSHOTS:
            raise StoreBusy("too many look at the chain as it was a moment ago")

    def add(self, snapshot: Database) -> None:
        """Register an opened snapshot."""
        with self._change:
            self._open.add(snapshot)

    def remove(self, snapshot: Database) -> None:
        """Remove a closed snapshot."""
        with self._change:
            self._open.discard(snapshot)
            self._change.notify_all()

    def revoke(self) -> None:
        """Request all snapshots to be closed, and wait until they are."""
        with self._change:
            for each in self._open:
                each.revoked = True
            while self._open:
                self._change.wait()
