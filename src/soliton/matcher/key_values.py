"""A key-value store on RocksDB with write-behind.

Changes are collected in memory, where readers see them, and written by a thread. The changes of a
step take effect together when the step is kept, or not at all.

What lives here: opening and closing, reading and writing. What does not: changes that are not
written yet (``unwritten``), the keys (``orders_db``), and RocksDB itself
(``soliton.storage.engine``).
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from pathlib import Path
from typing import Final, TypeVar

from rocksdict import DbClosedError, Rdict

from soliton.matcher.errors import DatabaseProblem
from soliton.matcher.unwritten import Changes, Unwritten, merged
from soliton.storage.damage import UNREADABLE
from soliton.storage.directories import LMDB_NAME, lock_file
from soliton.storage.engine import check_space, open_primary, open_unchanged, problem_of, write
from soliton.storage.errors import DamagedStore, StorageProblem

BUFFER_BYTES: Final = 4 * 1024 * 1024
"""The size at which a buffer of new values becomes a table."""
ALL: Final = 1 << 62
"""A limit for reading everything."""

_REMEDY: Final = (
    "move the directory away: it is made again from a journal that reaches back to its beginning; "
    "else take a copy"
)

T = TypeVar("T")


def reading(what: str, decode: Callable[[bytes], T]) -> Callable[[bytes], T]:
    """Return a decoder of stored values that raises ``DatabaseProblem`` for damaged ones."""

    def read(value: bytes) -> T:
        try:
            return decode(value)
        except UNREADABLE as error:
            raise DatabaseProblem(
                f"{what} in the orders database cannot be read: {type(error).__name__} {error}; "
                f"{_REMEDY}"
            ) from error

    return read


class KeyValues:
    """One database. Use from one event loop; a thread writes to the disk."""

    def __init__(
        self,
        directory: Path,
        *,
        durable: bool,
        before_write: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        """Open or create it. ``before_write`` is called before changes are written, so that the
        journal is on the disk first. Raises ``DatabaseProblem``.
        """
        self._fresh = Unwritten(self.group_of)
        # What the thread writes, or could not write.
        self._writing = Unwritten(self.group_of)
        self._is_writing = False
        # The changes of the current command, which take effect together or not at all.
        self._step = Unwritten(self.group_of)
        self._before_write = before_write
        self.complete: Callable[[], None] = lambda: None
        """Called before writing and some reads: adds values that are still being computed."""
        self._directory = directory
        self._durable = durable
        self._failed = False
        try:
            directory.mkdir(parents=True, exist_ok=True)
            lock = lock_file(directory / "owner.lock")
            if lock is None:
                raise DatabaseProblem(f"another matcher has the orders in {directory} open")
        except OSError as error:
            raise DatabaseProblem(f"cannot open the orders in {directory}: {error}") from error
        self._lock = lock
        try:
            if (directory / LMDB_NAME).exists():
                raise DatabaseProblem(
                    f"the orders in {directory} were written by a version that used LMDB; {_REMEDY}"
                )
            self._data = self._opened()
        except BaseException:
            os.close(lock)
            raise
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="orders-db")

    def _opened(self) -> Rdict:
        """Open the database; raises ``DatabaseProblem``."""
        try:
            return open_primary(self._directory, BUFFER_BYTES)
        except Exception as error:
            problem = problem_of(error, self._directory, "opened")
            if isinstance(problem, DamagedStore):
                raise DatabaseProblem(
                    f"the orders in {self._directory} are damaged: {problem.what}; {_REMEDY}"
                ) from error
            raise DatabaseProblem(
                f"cannot open the orders in {self._directory}: {error}"
            ) from error

    @staticmethod
    def group_of(key: bytes) -> bytes | None:
        """The prefix by which ``scan`` finds a key, ``None`` for a key that is only read alone."""
        return key[:1]

    # --- changes ----------------------------------------------------------------------------------

    def keep_step(self) -> None:
        """Make the changes of this step effective."""
        if self._step:
            self._fresh.add(self._step)
            self._step.clear()

    def drop_step(self) -> None:
        """Discard the changes of this step."""
        self._step.clear()

    @property
    def unwritten(self) -> int:
        """The number of changes that are not on the disk yet."""
        return len(self._fresh) + len(self._writing)

    def is_unwritten(self, key: bytes) -> bool:
        """Whether a change of this key is not on the disk yet."""
        return key in self._fresh.values or key in self._writing.values

    async def flush(self) -> None:
        """Write all changes made so far to the disk; raises ``DatabaseProblem``. Those that could
        not be written are tried again at the next call.
        """
        loop = asyncio.get_running_loop()
        while self._is_writing:
            await loop.run_in_executor(self._thread, int)
        if self._writing:
            await self._flush_group()
        self.complete()
        self.keep_step()
        if self._fresh:
            self._writing, self._fresh = self._fresh, Unwritten(self.group_of)
            await self._flush_group()

    async def _flush_group(self) -> None:
        loop = asyncio.get_running_loop()
        self._is_writing = True
        try:
            if self._before_write is not None:
                await self._before_write()
            await loop.run_in_executor(self._thread, self._write, self._writing.values)
            self._writing = Unwritten(self.group_of)
        finally:
            self._is_writing = False

    def _write(self, changes: Changes) -> None:
        size = sum(len(key) + len(value or b"") for key, value in changes.items())
        try:
            check_space(self._directory, 2 * size)
            if self._failed:
                self._open_again()
            write(self._data, changes, durable=self._durable)
        except (DatabaseProblem, StorageProblem) as error:
            raise DatabaseProblem(f"the orders cannot be written: {error}") from error
        except Exception as error:
            self._failed = True
            raise DatabaseProblem(f"the orders cannot be written: {error}") from error

    def _open_again(self) -> None:
        """Reopen the database: after a failure RocksDB refuses all writes. Readers always have an
        open one.
        """
        readable = open_unchanged(self._directory)
        failed, self._data = self._data, readable
        failed.close()
        self._data = self._opened()
        readable.close()
        self._failed = False

    async def close(self) -> None:
        """Write the remaining changes and close the files."""
        try:
            await self.flush()
        finally:
            self._release()

    def _release(self) -> None:
        self._thread.shutdown()
        self._data.close()
        os.close(self._lock)

    # --- reading ----------------------------------------------------------------------------------

    def _get(self, key: bytes) -> bytes | None:
        for changes in (self._step, self._fresh, self._writing):
            if key in changes.values:
                return changes.values[key]
        try:
            try:
                value: bytes | None = self._data.get(key)
            except DbClosedError:
                # The writing thread has opened it again.
                value = self._data.get(key)
        except Exception as error:
            raise _unreadable(error) from error
        return value

    def _scan(
        self,
        group: bytes,
        start: bytes | None = None,
        *,
        limit: int = ALL,
        backwards: bool = False,
    ) -> list[tuple[bytes, bytes]]:
        """Up to ``limit`` keys of a group and their values, in order of the keys from ``start``
        on, or the last ones.
        """
        found = list(islice(self._rows(group, start, backwards=backwards), limit))
        return found[::-1] if backwards else found

    def _rows(
        self, group: bytes, start: bytes | None = None, *, backwards: bool = False
    ) -> Iterator[tuple[bytes, bytes]]:
        """The keys of a group from ``start`` on, or from the last backwards, each read when it is
        needed. To be read before there are further changes.
        """
        start = group if start is None else start
        layers: list[Iterator[tuple[bytes, bytes | None]]] = [
            changes.rows(group, start, backwards=backwards)
            for changes in (self._step, self._fresh, self._writing)
        ]
        layers.append(self._stored(group, start, backwards=backwards))
        yield from merged(layers, backwards=backwards)

    def _stored(
        self, prefix: bytes, start: bytes, *, backwards: bool = False
    ) -> Iterator[tuple[bytes, bytes]]:
        """The rows on the disk under a prefix, from ``start`` on, or from the last backwards."""
        try:
            try:
                rows = self._data.iter()
            except DbClosedError:
                rows = self._data.iter()
            if backwards:
                rows.seek_for_prev(prefix + b"\xff" * 16)
            else:
                rows.seek(start)
            step = rows.prev if backwards else rows.next
            while rows.valid() and (key := rows.key()).startswith(prefix):
                yield key, rows.value()
                step()
            rows.status()
        except Exception as error:
            raise _unreadable(error) from error


def _unreadable(error: Exception) -> DatabaseProblem:
    return DatabaseProblem(f"the orders cannot be read: {error}; {_REMEDY}")
