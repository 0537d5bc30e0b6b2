"""Keys and values on a disk, with the changes that are not there yet in front of them.

Changes are collected in memory, where readers find them, and written behind by a thread. Those of a
step count as a whole, when it is kept, or not at all.

What lives here: the database's life, its changes, reading and writing. What does not: which keys
there are (``orders_db``), LMDB's own side (``soliton.storage.environment``).
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final, cast

import lmdb

from soliton.matcher.errors import DatabaseProblem
from soliton.storage.damage import DATABASE_DAMAGE
from soliton.storage.directories import lock_file
from soliton.storage.environment import open_environment, write
from soliton.storage.errors import DamagedStore

MAP_BYTES: Final = 1 << 36
"""How large the database may become; the address space is reserved, not the disk."""
MAX_READERS: Final = 16
ALL: Final = 1 << 62
"""A limit for who reads all there is."""

_REMEDY: Final = (
    "move the directory away: it is made again from a journal that reaches back to its beginning; "
    "else take a copy"
)

Changes = dict[bytes, bytes | None]
"""New values by their keys; ``None`` for a key that goes."""


class KeyValues:
    """One database. Use from one event loop; the disk is written by a thread."""

    def __init__(
        self,
        directory: Path,
        *,
        durable: bool,
        before_write: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        """Open or make it; ``before_write`` is called before changes go to the disk: what they come
        from has to be there first. Raises ``DatabaseProblem``.
        """
        self._fresh: Changes = {}
        self._writing: Changes = {}
        # What the command in hand leads to: it counts as a whole, or not at all.
        self._step: Changes = {}
        self._before_write = before_write
        self.complete: Callable[[], None] = lambda: None
        """Called before all is written: puts what is still being made."""
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
        """What was put in this step counts from now on."""
        if self._step:
            self._fresh.update(self._step)
            self._step.clear()

    def drop_step(self) -> None:
        """Forget what was put in this step."""
        self._step.clear()

    @property
    def unwritten(self) -> int:
        """How many changes wait for the disk."""
        return len(self._fresh) + len(self._writing)

    async def flush(self) -> None:
        """Bring everything that was put before to the disk; raises ``DatabaseProblem``."""
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
        """Write what is left and let go of the files."""
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
        """What was read so far was the state before a write, which ``_writing`` made up for."""
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

    def _scan(
        self,
        prefix: bytes,
        start: bytes | None = None,
        *,
        limit: int = ALL,
        backwards: bool = False,
    ) -> list[tuple[bytes, bytes]]:
        """Up to ``limit`` keys with a prefix and their values, in order of the keys from ``start``
        on, or the last ones.
        """
        start = prefix if start is None else start
        found: dict[bytes, bytes] = {}
        newer = (self._writing, self._fresh, self._step)
        for key, value in self._stored(prefix, start, backwards=backwards):
            if not any(key in changes for changes in newer):
                found[key] = value
                if len(found) == limit:
                    break
        for changes in newer:
            for key, changed in changes.items():
                if key.startswith(prefix) and key >= start:
                    if changed is not None:
                        found[key] = changed
                    else:
                        found.pop(key, None)
        ordered = sorted(found.items())
        return ordered[-limit:] if backwards else ordered[:limit]

    def _stored(
        self, prefix: bytes, start: bytes, *, backwards: bool = False
    ) -> Iterator[tuple[bytes, bytes]]:
        """What the disk has under a prefix, from ``start`` on, or from the last one backwards."""
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
