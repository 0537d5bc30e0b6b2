"""What was read from the node that a chain is forked from, and the threads that read.

What lives here: keeping records for any number of threads, and asking on one of a few. What does
not: what is asked (``chain``).
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
"""Questions that are under way at the same time."""
MAX_WAITING: Final = 256
"""Questions that wait for one of the threads; more are not asked."""
_THERE: Final = b"\1"
_ABSENT: Final = b"\0"


class Kept:
    """Records on a disk; ``None`` is one, too."""

    def __init__(self, directory: Path) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        # Several devnets may have the same one.
        self._database = Database(directory, durable=False, exclusive=False, outgrows=False)
        self._lock = threading.Lock()
        self._is_open = True

    def get(self, key: bytes) -> tuple[bytes | None] | None:
        """What is kept of a key, ``None`` where nothing is."""
        with self._lock:
            found = self._opened().get(key)
        if found is None:
            return None
        return (found[1:] if found[:1] == _THERE else None,)

    def put(self, records: dict[bytes, bytes | None]) -> None:
        """Keep records."""
        marked: dict[bytes, bytes | None] = {
            key: _ABSENT if value is None else _THERE + value for key, value in records.items()
        }
        with self._lock:
            self._opened().write(marked)

    def under(self, prefix: bytes) -> list[tuple[bytes, bytes]]:
        """All that there is under a prefix, in key order."""
        with self._lock:
            found = list(self._opened().scan(prefix, prefix))
        return [(key, value[1:]) for key, value in found if value[:1] == _THERE]

    def _opened(self) -> Database:
        if not self._is_open:
            raise BelowProblem("the chain of the fork is closed")
        return self._database

    def close(self) -> None:
        """Close it; who asks still reads an error."""
        with self._lock:
            if self._is_open:
                self._is_open = False
                self._database.close()


class Readers:
    """A few threads, which begin when they are needed and do not keep the program from ending."""

    def __init__(self, whom: str) -> None:
        self._whom = whom
        self._questions: Queue[Callable[[], None]] = Queue(MAX_WAITING)
        self._started = 0

    def begin(self, read: Callable[[], T]) -> Future[T]:
        """Ask on another thread. One event loop may call this. Raises ``BelowProblem`` where too
        many wait.
        """
        answer: Future[T] = Future()
        try:
            self._questions.put_nowait(partial(_answer, answer, read))
        except Full:
            raise BelowProblem(
                f"{self._whom} has not answered yet: {MAX_WAITING} questions wait; try again"
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
    # Somebody who has gone meanwhile wants no answer.
    if not answer.set_running_or_notify_cancel():
        return
    try:
        answer.set_result(read())
    except BaseException as error:  # noqa: BLE001 - it is raised where somebody waits
        answer.set_exception(error)
