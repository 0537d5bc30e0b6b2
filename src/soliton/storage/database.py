"""The database: consistent reads, and writes in atomic batches.

What lives here: snapshots, following another process, reopening after a disk failure. What does
not: records and blocks (``reader``, ``store``), single calls of RocksDB (``engine``).
"""

from __future__ import annotations

import copy
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from rocksdict import Rdict, RdictIter, Snapshot

from soliton.errors import InvariantBroken
from soliton.storage.damage import unreadable
from soliton.storage.directories import ReaderFiles, remove_readers_files, take_ownership
from soliton.storage.engine import (
    CURRENT_NAME,
    WRITE_BUFFER_BYTES,
    Range,
    Sequence,
    check_space,
    estimated_rows,
    manifest_state,
    open_primary,
    open_secondary,
    open_unchanged,
    translate_errors,
    used_bytes,
    write,
)
from soliton.storage.errors import StorageProblem, StoreBusy
from soliton.storage.timeline import Timeline

MAX_SNAPSHOTS: Final = 32
"""The number of snapshots that one process may have open."""
FIRST_ROWS: Final = 4
MAX_ROWS: Final = 256
"""How many rows a scan reads at once: few at first, since many callers want one."""
MAX_ROW_BYTES: Final = 1024 * 1024
"""A scan reads no further row at once when the values so far have this size."""
OPENING_TRIES: Final = 10
"""How often a reader tries to open a database whose writer changes the set of its files."""
_ABSENT: Final = "key not found"
"""What a snapshot of RocksDB raises for a key that it lacks; the error has no class of its own."""
_LAST: Final = b"\xff" * 33
"""Above every end of a key."""


class Closed:
    """A placeholder for a closed database; reading from it raises ``StoreBusy``."""

    __slots__ = ()

    def get(self, _key: bytes) -> bytes | None:
        """Raise ``StoreBusy``."""
        raise StoreBusy("the store is not being read: it was closed, or too many read it")

    def iter(self) -> RdictIter:
        """Raise ``StoreBusy``."""
        self.get(b"")
        raise AssertionError

    def close(self) -> None:
        """Do nothing."""


CLOSED: Final = Closed()


class _Instance:
    """An open database, which is closed when the last one that reads it is done."""

    __slots__ = ("_directory", "_lock", "_manifest", "_own_files", "_users", "data")

    def __init__(
        self,
        directory: Path,
        opening: Callable[[Path], Rdict] | None = None,
        like: _Instance | None = None,
    ) -> None:
        """Open it with one of the functions of ``engine``, by default for reading what another
        process writes; ``like`` is an instance of the same database. Raises errors of RocksDB and
        the operating system.
        """
        self._directory = directory
        self._users = 1
        self._lock = threading.Lock()
        self._own_files: ReaderFiles | None = None
        if opening is not None:
            self.data: Rdict = opening(directory)
            return
        if not (directory / CURRENT_NAME).exists():
            raise StorageProblem(f"{directory} holds no chain")
        self._own_files = ReaderFiles()
        try:
            known = None if like is None else like._manifest
            self._open_secondary(directory, self._own_files.path, known)
        except BaseException:
            self._own_files.remove()
            raise

    def _open_secondary(
        self, directory: Path, own_files: Path, known: tuple[bytes, int] | None
    ) -> None:
        """Open it for reading; the writer may delete files meanwhile, so it is tried again. The
        tables of the ``known`` list have been checked.
        """
        for _ in range(OPENING_TRIES):
            self._manifest = manifest_state(directory)
            try:
                # A reader that follows passes over tables that are damaged or missing.
                if self._manifest != known:
                    open_unchanged(directory).close()
                self.data = open_secondary(directory, own_files)
            except Exception:
                if manifest_state(directory) == self._manifest:
                    raise
                continue
            # Otherwise a log may be gone whose records are in a table that was not seen.
            if manifest_state(directory) == self._manifest:
                return
            self.data.close()
        raise StoreBusy("the store's files change too fast for this reader")

    @property
    def is_shared(self) -> bool:
        """Whether views of the past read it, beside the database."""
        return self._users > 1

    def catch_up(self) -> bool:
        """Read what the writer has appended to its log. Return false if the instance cannot see
        all: views of the past need it as it is, or what the writer has moved to tables hides behind
        older records in memory.
        """
        if self.is_shared or manifest_state(self._directory) != self._manifest:
            return False
        self.data.try_catch_up_with_primary()
        return manifest_state(self._directory) == self._manifest

    def use(self) -> _Instance:
        """Count one more reader."""
        with self._lock:
            self._users += 1
        return self

    def close(self) -> None:
        """Count one reader less."""
        with self._lock:
            self._users -= 1
            if self._users:
                return
        self.data.close()
        if self._own_files is not None:
            self._own_files.remove()


class Database:
    """The database of a directory. It is not thread-safe; other threads may read a ``snapshot``,
    other processes the same directory. A snapshot is ``revoked`` when it has to be closed.
    """

    __slots__ = (
        "_compacting",
        "_durable",
        "_exclusive",
        "_failed",
        "_get",
        "_instance",
        "_iter",
        "_origin",
        "_owner",
        "_seen",
        "_sequence",
        "_spare",
        "directory",
        "moment",
        "revoked",
        "snapshots",
        "timeline",
    )

    def __init__(self, directory: Path, *, durable: bool, exclusive: bool) -> None:
        """Open the database, creating it if necessary; raise ``StorageProblem``."""
        self.directory = directory
        self._durable = durable
        self._exclusive = exclusive
        self._failed = False
        self._owner: int | None = None
        self._instance: Any = CLOSED
        self._spare: Any = CLOSED
        self._compacting = threading.Lock()
        self._sequence: Sequence | None = None
        self._get: Any = CLOSED.get
        self._iter: Any = CLOSED.iter
        self._seen = 0
        self.moment = 0
        """The number of the last change that is visible."""
        self.revoked = False
        self._origin: Database | None = None
        self.snapshots = Snapshots()
        self.timeline = Timeline()
        with translate_errors(directory, "opened"):
            if exclusive:
                directory.mkdir(parents=True, exist_ok=True)
                self._owner = take_ownership(directory)
            else:
                remove_readers_files()
            try:
                self._open()
            except BaseException:
                self.close()
                raise

    def _open(self) -> None:
        self._instance = _Instance(self.directory, open_primary if self._exclusive else None)
        if self._sequence is None:
            self._sequence = Sequence(self.directory, writes=self._exclusive)
        self._read_latest()
        if self._exclusive:
            self._sequence.publish(self.moment)

    def _read_latest(self) -> None:
        data = self._instance.data
        self._get, self._iter = data.get, data.iter
        self.moment = data.latest_sequence_number()

    # --- reading ----------------------------------------------------------------------------------

    def get(self, key: bytes) -> bytes | None:
        """Return the value of a key."""
        try:
            value: bytes | None = self._get(key)
        except StorageProblem:
            raise
        except Exception as error:
            raise unreadable(key, error) from error
        return value

    def scan(self, prefix: bytes, start: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Yield the keys and values of a prefix in ascending order, from ``start`` on."""
        rows, count = self._rows(prefix), FIRST_ROWS
        while True:
            found, is_last = self._read(rows.seek, rows, rows.next, prefix, start, count)
            yield from found
            if is_last:
                return
            start, count = found[-1][0] + b"\0", min(2 * count, MAX_ROWS)

    def scan_back(self, prefix: bytes, before: bytes = b"") -> Iterator[tuple[bytes, bytes]]:
        """The same in descending order, below ``prefix + before``, or from the last one."""
        rows, count = self._rows(prefix), FIRST_ROWS
        end = prefix + (before or _LAST)
        while True:
            # One more, since the first may be the end itself.
            found, is_last = self._read(rows.seek_for_prev, rows, rows.prev, prefix, end, count + 1)
            last = found[-1][0] if found else end
            if found and found[0][0] == end:
                del found[0]
            yield from found
            if is_last:
                return
            end, count = last, min(2 * count, MAX_ROWS)

    def _rows(self, prefix: bytes) -> RdictIter:
        try:
            rows: RdictIter = self._iter()
        except StorageProblem:
            raise
        except Exception as error:
            raise unreadable(prefix, error) from error
        return rows

    def _read(
        self,
        seek: Callable[[bytes], None],
        rows: RdictIter,
        step: Callable[[], None],
        prefix: bytes,
        at: bytes,
        count: int,
    ) -> tuple[list[tuple[bytes, bytes]], bool]:
        """Read some rows at once, since the scans of a snapshot share its iterator. Return them,
        and whether they are the last ones.
        """
        found, size = [], 0
        try:
            seek(at)
            while rows.valid() and (key := rows.key()).startswith(prefix):
                value = rows.value()
                found.append((key, value))
                size += len(value)
                # Two rows are progress in a descending scan too, whose first is the end itself.
                if len(found) == count or (size >= MAX_ROW_BYTES and len(found) > 1):
                    return found, False
                step()
            rows.status()
        except Exception as error:
            raise unreadable(prefix, error) from error
        return found, True

    def used_bytes(self) -> int:
        """Return the size of the files of the database."""
        return used_bytes(self.directory)

    def estimated_rows(self) -> int:
        """Return about how many rows there are, for reports of progress."""
        return estimated_rows(self._instance.data)

    def follow(self) -> bool:
        """Read what another process has written meanwhile; return whether anything is new."""
        if self._exclusive or self._sequence is None or self._origin is not None:
            return False
        published = self._sequence.read()
        if published == self._seen:
            return False
        before = self.moment
        with translate_errors(self.directory, "read"):
            self._catch_up(published)
        return self.moment != before

    def _catch_up(self, published: int) -> None:
        """Make all changes up to a number visible. Views of the past stay as they are: the tables
        that they need are open, and an instance that has caught up cannot go back.

        So an instance with views gives way to another one, and is the spare one from then on:
        opening a third takes some 20 ms for each 16 MB of the log, catching up takes one.
        """
        before, spare = self._instance, self._spare
        # An instance that has caught up in vain shows a mixture: nobody reads it if no other one
        # can be opened.
        self._get, self._iter = CLOSED.get, CLOSED.iter
        if not before.catch_up():
            if spare is not CLOSED and spare.catch_up():
                self._instance, self._spare = spare, before
            else:
                self._instance = _Instance(self.directory, like=before)
                self._spare = before if before.is_shared else CLOSED
                spare.close()
                if self._spare is CLOSED:
                    before.close()
        self._read_latest()
        if self.moment >= published:
            self._seen = published

    def snapshot(self) -> Database:
        """Return a snapshot, which one other thread may read.

        That thread must close it soon after ``revoked`` is set. Raises ``StoreBusy`` if too many
        are open.
        """
        self.snapshots.check_room()
        snapshot = copy.copy(self)
        data = self._instance.data
        # Iterators that a snapshot of RocksDB makes are not those of its moment.
        snapshot._get, rows = _getter(data.snapshot()), data.iter()
        snapshot._iter = lambda: rows
        snapshot._instance = self._instance.use()
        snapshot._owner = None
        snapshot._origin = self
        self.snapshots.add(snapshot)
        return snapshot

    # --- writing ----------------------------------------------------------------------------------

    def write(
        self,
        items: dict[bytes, bytes | None],
        ranges: tuple[Range, ...] = (),
        *,
        soon: bool = True,
    ) -> None:
        """Delete ranges, write values and delete keys (``None``) atomically; raise
        ``StorageProblem``. Unless it is needed ``soon``, a crash of the machine may take it back.

        In both cases later reads see the present content of the database. Ranges are not for
        databases with moments, which would not bring them back.
        """
        if self._origin is not None:
            raise InvariantBroken("a snapshot of the store is not written")
        if self._sequence is None or not self._exclusive:
            raise InvariantBroken("the store is written by another process")
        self.timeline.record(items, self.get)
        # In loops of the interpreter's own: a batch may have 80,000 records.
        size = sum(map(len, items)) + sum(map(len, filter(None, items.values())))
        check_space(self.directory, 2 * size)
        with translate_errors(self.directory, "written"):
            if self._failed:
                self._open_again()
            self._sequence.publish(self.moment + len(items) + len(ranges))
            try:
                write(self._instance.data, items, ranges, durable=self._durable and soon)
            except BaseException:
                self._failed = True
                raise
        self.moment = self._instance.data.latest_sequence_number()

    def flush(self) -> None:
        """Write what is in the log to tables."""
        with translate_errors(self.directory, "written"):
            self._instance.data.flush()

    def compact(self, kinds: tuple[bytes, ...] = ()) -> None:
        """Rewrite the tables without what was deleted or replaced, all of them, or those with
        records of some kinds. Another thread may do it; closing the database ends it.
        """
        data = self._instance.data
        ranges: list[tuple[bytes | None, bytes | None]] = [(None, None)]
        if kinds:
            ranges = [(kind, bytes((kind[0] + 1,))) for kind in kinds]
        with self._compacting, translate_errors(self.directory, "compacted"):
            data.flush()
            for start, end in ranges:
                if self._instance is CLOSED:
                    return
                data.compact_range(start, end)

    def _end_compaction(self) -> None:
        """Wait until no other thread compacts; nothing is written after that."""
        instance, self._instance = self._instance, CLOSED
        if self._compacting.acquire(blocking=False):
            self._compacting.release()
        elif instance is not CLOSED:
            instance.data.cancel_all_background(False)
            with self._compacting:
                pass
        instance.close()

    def _open_again(self) -> None:
        """Reopen the database: after a failure RocksDB refuses all writes. Opening writes what is
        in the log to a table. Where that fails, the database can be read all the same.
        """
        check_space(self.directory, WRITE_BUFFER_BYTES)
        self.snapshots.revoke()
        self._get, self._iter = CLOSED.get, CLOSED.iter
        self._end_compaction()
        try:
            self._open()
        except Exception:
            self._instance = _Instance(self.directory, open_unchanged)
            self._read_latest()
            raise
        self._failed = False

    def close(self) -> None:
        """Close the database, or only this snapshot."""
        self._get, self._iter = CLOSED.get, CLOSED.iter
        if self._origin is not None:
            instance, self._instance = self._instance, CLOSED
            origin, self._origin = self._origin, None
            instance.close()
            origin.snapshots.remove(self)
            return
        self.snapshots.revoke()
        self._end_compaction()
        self._spare.close()
        self._spare = CLOSED
        if self._sequence is not None:
            self._sequence.close()
            self._sequence = None
        if self._owner is not None:
            os.close(self._owner)
            self._owner = None


def _getter(view: Snapshot) -> Callable[[bytes], bytes | None]:
    """Return the function that reads a key of a view."""
    read = view.__getitem__

    def get(key: bytes) -> bytes | None:
        try:
            value: bytes = read(key)
        except Exception as error:
            if str(error) == _ABSENT:
                return None
            raise
        return value

    return get


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
