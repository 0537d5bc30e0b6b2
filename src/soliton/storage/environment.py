"""Calls of LMDB: opening an environment, read transactions, writing, and its errors.

LMDB keeps a table of readers in its lock file. Each read transaction occupies a slot there as long
as its object lives, even after it has ended, so ended transactions must be deleted.

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
"""Concurrent read transactions of all processes. A store uses two, and each snapshot two more; the
maximum number of workers needs half of it.
"""
SPARE_READERS: Final = 4
"""Slots that a process keeps in reserve, which makes new read transactions cheap."""
FIRST_MAP_SIZE: Final = 256 * 1024 * 1024
MAX_MAP_SIZE: Final = 1 << 42

MIN_FREE_BYTES: Final = 1024 * 1024
"""A disk with less free space counts as full; a failed write may have used up the rest."""
_SLOT_BYTES: Final = 64
"""The size of a reader slot; LMDB's header takes the first ones."""
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
    """Open the environment of a directory, creating it if necessary; raise errors of LMDB and the
    operating system.
    """
    map_size, max_readers = map_size or FIRST_MAP_SIZE, max_readers or MAX_READERS
    check_length(directory, mend=exclusive)
    if exclusive:
        _reserve(directory / "lock.mdb", max_readers * _SLOT_BYTES)
    environment = lmdb.open(
        os.fsencode(directory),
        map_size=map_size,
        sync=durable,
        metasync=durable,
        max_readers=max_readers,
        max_spare_txns=SPARE_READERS,
        # Most reads are of random keys: a disk that reads ahead would read megabytes for each.
        readahead=False,
    )
    try:
        # Another process may have enlarged the map.
        environment.set_mapsize(max(map_size, environment.info()["map_size"]))
        if exclusive:
            environment.reader_check()
    except BaseException:
        environment.close()
        raise
    return environment


def _reserve(lock_file: Path, length: int) -> None:
    """Allocate the disk space of the reader table. The table is memory-mapped: writing it on a full
    disk would kill the process.

    Call it before opening the environment: closing a file releases all locks of the process on it.
    """
    if not hasattr(os, "posix_fallocate"):
        return
    descriptor = os.open(lock_file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        os.posix_fallocate(descriptor, 0, length)
    except OSError as error:
        # Some file systems do not support it; only a full disk is an error.
        if error.errno in _NO_SPACE:
            raise
    finally:
        os.close(descriptor)


class Closed:
    """A placeholder for an ended transaction; reading from it raises ``StoreBusy``."""

    __slots__ = ()

    def id(self) -> int:
        """Lower than the number of any transaction."""
        return -1

    def abort(self) -> None:
        """Do nothing."""

    def get(self, _key: bytes) -> NoReturn:
        """Raise ``StoreBusy``."""
        raise StoreBusy("the store is not being read: it was closed, or too many read it")

    def cursor(self) -> NoReturn:
        """Raise ``StoreBusy``."""
        self.get(b"")


CLOSED: Final = Closed()


def begin_reading(environment: lmdb.Environment) -> tuple[lmdb.Transaction, lmdb.Transaction]:
    """Begin two read transactions of the same moment; the second one returns buffers."""
    while True:
        read = environment.begin()
        try:
            views = environment.begin(buffers=True)
        except lmdb.Error:
            read.abort()
            # The exception keeps the frame and its variables alive.
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
    """Atomically write records, which are sorted by key, and delete others."""
    with environment.begin(write=True) as transaction:
        with transaction.cursor() as cursor:
            cursor.putmulti(puts)
        for key in deletes:
            transaction.delete(key)


def grow(environment: lmdb.Environment) -> None:
    """Double the size of the map; this process must not have open read transactions."""
    size = environment.info()["map_size"] * 2
    if size > MAX_MAP_SIZE:
        raise StorageProblem("the store is larger than this program can map")
    environment.set_mapsize(size)


def problem_of(error: Exception, directory: Path, doing: str) -> StorageProblem:
    """Translate an error of LMDB or the operating system; ``doing`` names the operation."""
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
    # LMDB has a class for one of these errors; the others are recognized by their message.
    if isinstance(error, lmdb.DiskError) or str(error).endswith(_NO_SPACE_WORDS):
        return True
    # After a partial write LMDB reports an I/O error.
    return str(error).endswith(os.strerror(errno.EIO)) and _free_bytes(directory) < MIN_FREE_BYTES


def _free_bytes(directory: Path) -> int:
    try:
        status = os.statvfs(directory)
    except OSError:
        return MIN_FREE_BYTES
    return status.f_bavail * status.f_frsize


@contextlib.contextmanager
def translate_errors(directory: Path, doing: str) -> Iterator[None]:
    """Translate errors of LMDB and the operating system to ``StorageProblem``."""
    try:
        yield
    except (OSError, lmdb.Error) as error:
        raise problem_of(error, directory, doing) from error
