"""The database below the store: opening it, reading one moment of it, writing it, and its errors.

LMDB keeps a table of readers in its lock file. Each read transaction has a slot there for as long
as its object lives: ending it is not enough. Who ends one here also lets go of it.

What lives here: LMDB and its limits. What does not: records and blocks (``store``, ``layout``), the
pages of the file (``pages``).
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, NoReturn

import lmdb

from soliton.storage.damage import DATABASE_DAMAGE
from soliton.storage.errors import DamagedStore, StorageProblem, StoreBusy, StoreFull
from soliton.storage.pages import check_length

MAX_READERS: Final = 8_192
"""Read transactions under way at the same time, of all processes. A store takes two, and two for
each snapshot; with the most workers that there can be that is half of it.
"""
SPARE_READERS: Final = 4
"""Slots that a process keeps at hand, so that to read anew costs little."""
FIRST_MAP_SIZE: Final = 256 * 1024 * 1024
MAX_MAP_SIZE: Final = 1 << 42

LITTLE_BYTES: Final = 1024 * 1024
"""A disk with less room is full; what could not be written may have taken the rest of it."""
_SLOT_BYTES: Final = 64
"""What LMDB takes for each of them; the first ones are its head."""
_NO_SPACE: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_NO_SPACE_WORDS: Final = tuple(os.strerror(number) for number in _NO_SPACE)


def open_environment(
    directory: Path,
    *,
    durable: bool,
    exclusive: bool,
    map_size: int | None = None,
    max_readers: int | None = None,
) -> lmdb.Environment:
    """The database of a directory, made where there is none; raises as LMDB and the system do."""
    map_size, max_readers = map_size or FIRST_MAP_SIZE, max_readers or MAX_READERS
    check_length(directory, mend=exclusive)
    if exclusive:
        _reserve(directory / "lock.mdb", max_readers * _SLOT_BYTES)
    environment = lmdb.open(
        str(directory),
        map_size=map_size,
        sync=durable,
        metasync=durable,
        max_readers=max_readers,
        max_spare_txns=SPARE_READERS,
    )
    try:
        # Another process may have let the map grow beyond our first guess.
        environment.set_mapsize(max(map_size, environment.info()["map_size"]))
        if exclusive:
            environment.reader_check()
    except BaseException:
        environment.close()
        raise
    return environment


def _reserve(lock_file: Path, length: int) -> None:
    """Give the table of readers its place on the disk. It is written through memory: where a full
    disk has no page for it the system ends the process.

    Only before the database is opened: closing a file gives up all locks of the process on it.
    """
    if not hasattr(os, "posix_fallocate"):
        return
    descriptor = os.open(lock_file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        os.posix_fallocate(descriptor, 0, length)
    except OSError as error:
        # Some systems cannot; those that have no room say so.
        if error.errno in _NO_SPACE:
            raise
    finally:
        os.close(descriptor)


class Nothing:
    """Stands where a transaction was; reading from it raises ``StoreBusy``."""

    __slots__ = ()

    def id(self) -> int:
        """Before every transaction that there is."""
        return -1

    def abort(self) -> None:
        """There is nothing to end."""

    def get(self, _key: bytes) -> NoReturn:
        """There is nothing to read."""
        raise StoreBusy("the store is not being read: it was closed, or too many read it")

    def cursor(self) -> NoReturn:
        """There is nothing to read."""
        self.get(b"")


NOTHING: Final = Nothing()


def begin_reading(environment: lmdb.Environment) -> tuple[lmdb.Transaction, lmdb.Transaction]:
    """Two read transactions of the same moment; the second one gives memory in place of bytes."""
    while True:
        read = environment.begin()
        try:
            views = environment.begin(buffers=True)
        except lmdb.Error:
            read.abort()
            # The frame stays as long as the exception does.
            del read
            raise
        if views.id() == read.id():
            return read, views
        # Another process has written between the two.
        read.abort()
        views.abort()
        del read, views


def write(
    environment: lmdb.Environment, puts: list[tuple[bytes, bytes]], deletes: Iterable[bytes]
) -> None:
    """Write records, in the order of their keys, and delete others, all or nothing."""
    with environment.begin(write=True) as transaction:
        with transaction.cursor() as cursor:
            cursor.putmulti(puts)
        for key in deletes:
            transaction.delete(key)


def grow(environment: lmdb.Environment) -> None:
    """Make room in the map for twice as much; nobody in this process may read meanwhile."""
    size = environment.info()["map_size"] * 2
    if size > MAX_MAP_SIZE:
        raise StorageProblem("the store is larger than this program can map")
    environment.set_mapsize(size)


def problem_of(error: Exception, directory: Path, doing: str) -> StorageProblem:
    """What an error of LMDB or of the system means; ``doing`` is what could not be done."""
    if isinstance(error, StorageProblem):
        return error
    if _is_no_space(error, directory):
        return StoreFull(f"no space left in {directory}: the store cannot be {doing} ({error})")
    if isinstance(error, lmdb.ReadersFullError):
        return StoreBusy(f"too many read the store in {directory} at the same time")
    if isinstance(error, DATABASE_DAMAGE):
        return DamagedStore(f"{directory} cannot be {doing} ({error})")
    return StorageProblem(f"the store in {directory} cannot be {doing}: {error}")


def _is_no_space(error: Exception, directory: Path) -> bool:
    if isinstance(error, OSError):
        return error.errno in _NO_SPACE
    # LMDB has an own class for one of them, and only the words for the others.
    if isinstance(error, lmdb.DiskError) or str(error).endswith(_NO_SPACE_WORDS):
        return True
    # Where a part of what is to be written finds room it speaks of a fault of the disk.
    return str(error).endswith(os.strerror(errno.EIO)) and _free_bytes(directory) < LITTLE_BYTES


def _free_bytes(directory: Path) -> int:
    try:
        found = os.statvfs(directory)
    except OSError:
        return LITTLE_BYTES
    return found.f_bavail * found.f_frsize


@contextlib.contextmanager
def typed(directory: Path, doing: str) -> Iterator[None]:
    """Errors of LMDB and of the system as problems of the store."""
    try:
        yield
    except (OSError, lmdb.Error) as error:
        raise problem_of(error, directory, doing) from error
