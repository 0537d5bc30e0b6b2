"""The database as one moment of it is read, and as it is written: in atomic batches.

What lives here: beginning to read anew, growing, opening again after a failed disk, snapshots. What
does not: records and blocks (``reader``, ``store``), the calls of LMDB one by one
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
    MAX_MAP_SIZE,
    NOTHING,
    begin_reading,
    grow,
    open_environment,
    problem_of,
    typed,
    write,
)
from soliton.storage.errors import StoreBusy
from soliton.storage.timeline import Timeline

MAX_SNAPSHOTS: Final = 32
"""Snapshots that one process may have open."""


class Database:
    """One database in a directory. Use from one thread; others may read a ``snapshot``, and other
    processes the same directory.

    A snapshot is ``revoked`` when the database waits for it to be closed.
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
        """Open or make it; raises ``StorageProblem``.

        A database that never ``outgrows`` this process' map of it is read there with snapshots that
        stay open while another process lets it grow.
        """
        self.directory = directory
        self._map_size = None if outgrows else MAX_MAP_SIZE
        self._durable = durable
        self._owner: int | None = None
        # The types of LMDB do not tell which one gives bytes, and which one memory.
        self._read: Any = NOTHING
        self._views: Any = NOTHING
        self.revoked = False
        self._origin: Database | None = None
        self.snapshots = Snapshots()
        self.timeline = Timeline()
        with typed(directory, "opened"):
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
        """The value of a key."""
        try:
            value: bytes | None = self._read.get(key)
        except lmdb.Error as error:
            raise unreadable(key, error) from error
        return value

    def view(self, key: bytes) -> memoryview | None:
        """The same as memory that is not copied; to be used at once."""
        try:
            value: memoryview | None = self._views.get(key)
        except lmdb.Error as error:
            raise unreadable(key, error) from error
        return value

    def scan(self, prefix: bytes, start: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Keys and values under a prefix, in key order, from ``start`` on."""
        try:
            with self._read.cursor() as cursor:
                found = cursor.set_range(start)
                while found and cursor.key().startswith(prefix):
                    yield cursor.key(), cursor.value()
                    found = cursor.next()
        except lmdb.Error as error:
            raise unreadable(prefix, error) from error

    def scan_back(self, prefix: bytes, before: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
        """The same in falling key order, from below ``prefix + before`` on, or from the last."""
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
        """The number of the last write that is seen."""
        number: int = self._read.id()
        return number

    def used_bytes(self) -> int:
        """How much of the database file is in use."""
        info, page = self._env.info(), self._env.stat()["psize"]
        used: int = (info["last_pgno"] + 1) * page
        return used

    def reader_slots(self) -> int:
        """The slots of the table of readers that are taken, by all processes."""
        return sum(1 for line in self._env.readers().splitlines()[1:] if line.strip())

    def forget_dead_readers(self) -> None:
        """Let go of what processes were reading when they were killed."""
        self._env.reader_check()

    def follow(self) -> bool:
        """See what another process has written since: whether there is anything new."""
        before = self.moment
        try:
            self.refresh("read")
        except lmdb.MapResizedError:
            self.snapshots.revoke()
            self._stop_reading()
            # 0 takes over the size that the other process has given the map.
            self._env.set_mapsize(0)
            self.refresh("read")
        return self.moment != before

    def snapshot(self) -> Database:
        """What it holds now, for one other thread to read while this one goes on.

        That thread closes it, soon after ``revoked`` is set: the database cannot grow before.
        Raises ``StoreBusy`` when too many are open.
        """
        self.snapshots.check_room()
        taken = copy.copy(self)
        taken._read = taken._views = NOTHING
        try:
            taken.refresh("read")
        except lmdb.MapResizedError as error:
            raise StoreBusy("the store has just grown") from error
        taken._owner = None
        taken._origin = self
        self.snapshots.add(taken)
        return taken

    def refresh(self, doing: str = "read") -> None:
        """Read what it holds now."""
        self._stop_reading()
        try:
            self._read, self._views = begin_reading(self._env)
        except lmdb.MapResizedError:
            raise
        except lmdb.ReadersFullError:
            # Those of processes that were killed count as well.
            self._env.reader_check()
            with typed(self.directory, doing):
                self._read, self._views = begin_reading(self._env)
        except lmdb.PanicError:
            self._open_again(doing)
        except lmdb.Error as error:
            raise problem_of(error, self.directory, doing) from error

    def _stop_reading(self) -> None:
        self._read.abort()
        self._views.abort()
        # A transaction that has ended holds its slot until nobody knows it.
        self._read = self._views = NOTHING

    # --- writing ----------------------------------------------------------------------------------

    def write(self, items: dict[bytes, bytes | None]) -> None:
        """Write values and delete keys (``None``), all or nothing; raises ``StorageProblem``.

        Whatever happens, what the database holds is read afterwards.
        """
        if self._origin is not None:
            raise InvariantBroken("a snapshot of the store is not written")
        self.timeline.note(items, self.get)
        # Sorted keys let the database append to pages instead of searching for each key.
        deletes = [key for key, value in items.items() if value is None]
        puts = [(key, value) for key in sorted(items) if (value := items[key]) is not None]
        try:
            while True:
                try:
                    # Reading goes on meanwhile: its slots stay taken, whoever else wants some.
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
        """After a disk that failed in the middle of a commit LMDB does nothing more."""
        self.snapshots.revoke()
        with typed(self.directory, doing):
            self._env.close()
            self._env = open_environment(
                self.directory,
                durable=self._durable,
                exclusive=self._owner is not None,
                map_size=self._map_size,
            )
            self._read, self._views = begin_reading(self._env)

    def close(self) -> None:
        """Let go of it; a snapshot lets go of its moment alone."""
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
    """The snapshots of a store that are open."""

    __slots__ = ("_change", "_open")

    def __init__(self) -> None:
        self._open: set[Database] = set()
        self._change = threading.Condition()

    def __len__(self) -> int:
        return len(self._open)

    def check_room(self) -> None:
        """Raise ``StoreBusy`` where there is no room for another one."""
        if len(self._open) >= MAX_SNAPSHOTS:
            raise StoreBusy("too many look at the chain as it was a moment ago")

    def add(self, snapshot: Database) -> None:
        """One more is open."""
        with self._change:
            self._open.add(snapshot)

    def remove(self, snapshot: Database) -> None:
        """It is closed."""
        with self._change:
            self._open.discard(snapshot)
            self._change.notify_all()

    def revoke(self) -> None:
        """Ask all to be closed, and wait until they are."""
        with self._change:
            for each in self._open:
                each.revoked = True
            while self._open:
                self._change.wait()
