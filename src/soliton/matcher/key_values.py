"""A key-value store on LMDB with write-behind.

Changes are collected in memory, where readers see them, and written by a thread. The changes of a
step take effect together when the step is kept, or not at all.

What lives here: opening and closing, changes, reading and writing. What does not: the keys
(``orders_db``), and LMDB itself (``soliton.storage.environment``).
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final, TypeVar, cast

import lmdb

from soliton.matcher.errors import DatabaseProblem
from soliton.storage.damage import DATABASE_DAMAGE, UNREADABLE
from soliton.storage.directories import lock_file
from soliton.storage.environment import open_environment, write
from soliton.storage.errors import DamagedStore

MAP_BYTES: Final = 1 << 36
"""The maximum size of the database; this reserves address space, not disk space."""
MAX_READERS: Final = 16
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


Changes = dict[bytes, bytes | None]
"""New values by key; ``None`` for a deleted key."""


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
        self._fresh: Changes = {}
        self._writing: Changes = {}
        # The changes of the current command, which take effect together or not at all.
        self._step: Changes = {}
        self._before_write = before_write
        self.complete: Callable[[], None] = lambda: None
        """Called before writing and some reads: adds values that are still being computed."""
        self._reader: lmdb.Transaction | None = None
        try:
            directory.mkdir(parents=True, exist_ok=True)
            lock = lock_file(directory / "owner.lock")
            if lock is None:
                raise DatabaseProblem(f"another matcher has the orders in {directory} open")
            self._lock = lock
            try:
                self._env = open_environment(
                    directory,
                    durable=durable,
                    exclusive=True,
                    map_size=MAP_BYTES,
                    max_readers=MAX_READERS,
                )
            except BaseException:
                os.close(lock)
                raise
        except (DamagedStore, *DATABASE_DAMAGE) as error:
            what = error.what if isinstance(error, DamagedStore) else error
            raise DatabaseProblem(
                f"the orders in {directory} are damaged: {what}; {_REMEDY}"
            ) from error
        except (OSError, lmdb.Error) as error:
            raise DatabaseProblem(f"cannot open the orders in {directory}: {error}") from error
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="orders-db")

    # --- changes ----------------------------------------------------------------------------------

    def keep_step(self) -> None:
        """Make the changes of this step effective."""
        if self._step:
            self._fresh.update(self._step)
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
        return key in self._fresh or key in self._writing

    async def flush(self) -> None:
        """Write all changes made so far to the disk; raises ``DatabaseProblem``."""
        loop = asyncio.get_running_loop()
        while self._writing:
            await loop.run_in_executor(self._thread, int)
        self.complete()
        self.keep_step()
        if not self._fresh:
            return
        self._writing, self._fresh = self._fresh, {}
        try:
            if self._before_write is not None:
                await self._before_write()
            await loop.run_in_executor(self._thread, self._write, self._writing)
        except BaseException:
            self._fresh = self._writing | self._fresh
            raise
        finally:
            self._writing = {}
            self._forget_reader()

    def _write(self, changes: Changes) -> None:
        puts = sorted((key, value) for key, value in changes.items() if value is not None)
        try:
            write(self._env, puts, [key for key, value in changes.items() if value is None])
        except (OSError, lmdb.Error) as error:
            raise DatabaseProblem(f"the orders cannot be written: {error}") from error

    async def close(self) -> None:
        """Write the remaining changes and close the files."""
        try:
            await self.flush()
        finally:
            self._release()

    def _release(self) -> None:
        self._thread.shutdown()
        self._forget_reader()
        self._env.close()
        os.close(self._lock)

    def _forget_reader(self) -> None:
        """End the read transaction: it shows the state before the write just finished."""
        if self._reader is not None:
            self._reader.abort()
            self._reader = None

    # --- reading ----------------------------------------------------------------------------------

    def _get(self, key: bytes) -> bytes | None:
        if key in self._step:
            return self._step[key]
        if key in self._fresh:
            return self._fresh[key]
        if key in self._writing:
            return self._writing[key]
        try:
            if self._reader is None:
                self._reader = self._env.begin()
            return cast("bytes | None", self._reader.get(key))
        except lmdb.Error as error:
            raise _unreadable(error) from error

    def _unwritten(self, prefix: bytes) -> Changes:
        """The changes under a prefix that are not on the disk yet."""
        return {
            key: value
            for changes in (self._writing, self._fresh, self._step)
            for key, value in changes.items()
            if key.startswith(prefix)
        }

    def _scan(
        self,
        prefix: bytes,
        start: bytes | None = None,
        *,
        limit: int = ALL,
        backwards: bool = False,
        unwritten: Changes | None = None,
    ) -> list[tuple[bytes, bytes]]:
        """Up to ``limit`` keys with a prefix and their values, in order of the keys from ``start``
        on, or the last ones. ``unwritten`` are the changes under the prefix, if known.
        """
        start = prefix if start is None else start
        unwritten = self._unwritten(prefix) if unwritten is None else unwritten
        found: dict[bytes, bytes] = {}
        for key, value in self._stored(prefix, start, backwards=backwards):
            if key not in unwritten:
                found[key] = value
                if len(found) == limit:
                    break
        found |= {key: new for key, new in unwritten.items() if new is not None and key >= start}
        ordered = sorted(found.items())
        return ordered[-limit:] if backwards else ordered[:limit]

    def _stored(
        self, prefix: bytes, start: bytes, *, backwards: bool = False
    ) -> Iterator[tuple[bytes, bytes]]:
        """The rows on the disk under a prefix, from ``start`` on, or from the last backwards."""
        try:
            with self._env.begin() as txn, txn.cursor() as cursor:
                if backwards:
                    found = cursor.set_range(prefix + b"\xff" * 16)
                    found = cursor.prev() if found else cursor.last()
                else:
                    found = cursor.set_range(start)
                while found and (key := bytes(cursor.key())).startswith(prefix):
                    yield key, bytes(cursor.value())
                    found = cursor.prev() if backwards else cursor.next()
        except lmdb.Error as error:
            raise _unreadable(error) from error


def _unreadable(error: lmdb.Error) -> DatabaseProblem:
    return DatabaseProblem(f"the orders cannot be read: {error}; {_REMEDY}")
