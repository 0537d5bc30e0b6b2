"""The cache of a fork, and the threads that read from its node.

What lives here: caching records for any number of threads, and a small pool of reader threads. What
does not: the requests (``chain``).
"""

from __future__ import annotations

import contextlib
import sqlite3
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from queue import Full, Queue
from typing import Final, TypeVar

from soliton.storage.errors import BelowProblem

T = TypeVar("T")

THREADS: Final = 4
"""Limit on concurrent requests."""
MAX_WAITING: Final = 256
"""Limit on queued requests; more are refused."""
CACHE_NAME: Final = "records.sqlite"
BUSY_SECONDS: Final = 10.0
"""How long to wait for another process that writes the cache."""
_LAST: Final = b"\xff" * 64
"""Above every end of a key."""


class RecordCache:
    """A cache of records on disk; ``None`` is the record of an entry that does not exist.

    Several devnets may share it. It is an SQLite database, since the store of a chain has one
    writer. Raises ``BelowProblem``.
    """

    def __init__(self, directory: Path) -> None:
        self._path = directory / CACHE_NAME
        self._lock = threading.Lock()
        self._data: sqlite3.Connection | None = None
        with self._translated():
            directory.mkdir(parents=True, exist_ok=True)
            self._data = sqlite3.connect(self._path, timeout=BUSY_SECONDS, check_same_thread=False)
            self._data.execute("PRAGMA journal_mode = WAL")
            # What a power failure takes can be read again.
            self._data.execute("PRAGMA synchronous = OFF")
            self._data.execute(
                "CREATE TABLE IF NOT EXISTS records "
                "(key BLOB PRIMARY KEY, value BLOB) WITHOUT ROWID"
            )

    def get(self, key: bytes) -> tuple[bytes | None] | None:
        """Return the cached record of a key in a tuple, ``None`` if there is none."""
        with self._reading() as data:
            found: tuple[bytes | None] | None = data.execute(
                "SELECT value FROM records WHERE key = ?", (key,)
            ).fetchone()
        return found

    def put(self, records: dict[bytes, bytes | None]) -> None:
        """Add records."""
        with self._reading() as data, data:
            data.executemany("INSERT OR REPLACE INTO records VALUES (?, ?)", records.items())

    def under(self, prefix: bytes) -> list[tuple[bytes, bytes]]:
        """Return all cached entries under a prefix, in key order."""
        with self._reading() as data:
            return data.execute(
                "SELECT key, value FROM records "
                "WHERE key >= ? AND key < ? AND value IS NOT NULL ORDER BY key",
                (prefix, prefix + _LAST),
            ).fetchall()

    @contextlib.contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        with self._lock, self._translated():
            if self._data is None:
                raise BelowProblem("the chain of the fork is closed")
            yield self._data

    @contextlib.contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except (OSError, sqlite3.Error) as error:
            raise BelowProblem(f"the cache {self._path} cannot be used: {error}") from error

    def close(self) -> None:
        """Close it; later reads raise ``BelowProblem``."""
        with self._lock:
            if self._data is not None:
                self._data.close()
                self._data = None


class Readers:
    """A pool of daemon threads, which are started as needed."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._questions: Queue[Callable[[], None]] = Queue(MAX_WAITING)
        self._started = 0

    def submit(self, read: Callable[[], T]) -> Future[T]:
        """Call ``read`` in another thread. For one event loop. Raises ``BelowProblem`` if too many
        calls are queued.
        """
        answer: Future[T] = Future()
        try:
            self._questions.put_nowait(partial(_answer, answer, read))
        except Full:
            raise BelowProblem(
                f"{self._name} has not answered yet: {MAX_WAITING} requests are pending; try again"
            ) from None
        if self._started < THREADS:
            name = f"fork-{self._started}"
            threading.Thread(target=self._serve, name=name, daemon=True).start()
            self._started += 1
        return answer

    def _serve(self) -> None:
        while True:
            self._questions.get()()


def _answer(answer: Future[T], read: Callable[[], T]) -> None:
    # A cancelled future needs no result.
    if not answer.set_running_or_notify_cancel():
        return
    try:
        answer.set_result(read())
    except BaseException as error:  # noqa: BLE001 - it is raised in the waiting thread
        answer.set_exception(error)
