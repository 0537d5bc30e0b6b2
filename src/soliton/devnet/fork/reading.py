"""The cache of a fork, and the threads that read from its node.

What lives here: caching records for any number of threads, and a small pool of reader threads. What
does not: the requests (``chain``).
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from queue import Full, Queue
from typing import Final, TypeVar

from soliton.storage.database import Database
from soliton.storage.errors import BelowProblem

T = TypeVar("T")

THREADS: Final = 4
"""Limit on concurrent requests."""
MAX_WAITING: Final = 256
"""Limit on queued requests; more are refused."""
_THERE: Final = b"\1"
_ABSENT: Final = b"\0"


class RecordCache:
    """A cache of records on disk; ``None`` is the record of an entry that does not exist."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        # Several devnets may share it.
        self._database = Database(directory, durable=False, exclusive=False, outgrows=False)
        self._lock = threading.Lock()
        self._is_open = True

    def get(self, key: bytes) -> tuple[bytes | None] | None:
        """Return the cached record of a key in a tuple, ``None`` if there is none."""
        with self._lock:
            found = self._opened().get(key)
        if found is None:
            return None
        return (found[1:] if found[:1] == _THERE else None,)

    def put(self, records: dict[bytes, bytes | None]) -> None:
        """Add records."""
        marked: dict[bytes, bytes | None] = {
            key: _ABSENT if value is None else _THERE + value for key, value in records.items()
        }
        with self._lock:
            self._opened().write(marked)

    def under(self, prefix: bytes) -> list[tuple[bytes, bytes]]:
        """Return all cached entries under a prefix, in key order."""
        with self._lock:
            found = list(self._opened().scan(prefix, prefix))
        return [(key, value[1:]) for key, value in found if value[:1] == _THERE]

    def _opened(self) -> Database:
        if not self._is_open:
            raise BelowProblem("the chain of the fork is closed")
        return self._database

    def close(self) -> None:
        """Close it; later reads raise ``BelowProblem``."""
        with self._lock:
            if self._is_open:
                self._is_open = False
                self._database.close()


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
