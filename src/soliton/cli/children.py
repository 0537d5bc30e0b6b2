"""Work on files that may be damaged or made by anybody, in a process of its own.

A file that is truncated while it is read, or that claims a terabyte of memory, ends only that
process, and this one can report it.

What lives here: that process, its limit of memory, and its answers. What does not: the work.
"""

from __future__ import annotations

import multiprocessing
import resource
import signal
import sys
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any, Final, NamedTuple, TypeVar

from soliton.errors import SolitonError
from soliton.storage.errors import DamagedStore, StorageProblem
from soliton.storage.parts import SnapshotProblem

T = TypeVar("T")

MEMORY_BYTES: Final = 8 * 1024 * 1024 * 1024
"""Limit on the addresses of such a process, several times what reading a large store takes."""
_WAIT_SECONDS: Final = 5.0

Notes = Callable[[tuple[Any, ...]], None]


class _Done(NamedTuple):
    result: object


class _Failed(NamedTuple):
    """Exceptions of others may not be picklable: their texts are."""

    is_problem_of_snapshot: bool
    text: str


def in_child(
    what: str, work: Callable[..., T], arguments: tuple[Any, ...], notes: Callable[..., None]
) -> T:
    """Return ``work(*arguments, send)`` of a process. What it passes to ``send`` becomes the
    arguments of ``notes``. Raises its errors, and ``DamagedStore`` if reading ``what`` ends it.
    """
    own, other = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(
        target=_serve, args=(work, arguments, other)
    )
    process.start()
    other.close()
    try:
        found = _result(own, notes)
    except BaseException:
        process.terminate()
        raise
    process.join(_WAIT_SECONDS)
    if isinstance(found, _Done):
        result: T = found.result  # type: ignore[assignment] # what ``work`` has returned
        return result
    if found is not None:
        raise (SnapshotProblem if found.is_problem_of_snapshot else StorageProblem)(found.text)
    code = process.exitcode or 0
    how = signal.Signals(-code).name if code < 0 else f"exit code {code}"
    raise DamagedStore(f"reading {what} ends the process that does it ({how})")


def _result(pipe: Connection, notes: Callable[..., None]) -> _Done | _Failed | None:
    """Pass on the child's notes and return its result, ``None`` if it crashed."""
    try:
        while True:
            found = pipe.recv()
            if isinstance(found, _Done | _Failed):
                return found
            notes(*found)
    except EOFError:
        return None


def _serve(work: Callable[..., object], arguments: tuple[Any, ...], pipe: Connection) -> None:
    """The program of the child process."""
    if sys.platform == "linux":
        # Elsewhere systems have no such limit, or ignore it.
        hard = resource.getrlimit(resource.RLIMIT_AS)[1]
        limit = MEMORY_BYTES if hard == resource.RLIM_INFINITY else min(MEMORY_BYTES, hard)
        resource.setrlimit(resource.RLIMIT_AS, (limit, hard))
    try:
        pipe.send(_Done(work(*arguments, lambda *note: pipe.send(note))))
    except SolitonError as error:
        pipe.send(_Failed(isinstance(error, SnapshotProblem), str(error)))
    except MemoryError:
        pipe.send(_Failed(True, "its files need more memory than a store does"))
