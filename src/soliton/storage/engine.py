"""Calls of RocksDB: options, opening, batches, and its errors.

One process writes a directory. Other processes read it through instances of their own
(``secondary``), which see whole batches when they catch up. ``Sequence`` is how readers know that
there are new ones, and ``manifest_state`` that catching up is not enough.

What lives here: RocksDB and its limits. What does not: consistent views (``database``), records and
blocks (``store``, ``layout``).
"""

from __future__ import annotations

import contextlib
import errno
import os
import struct
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from rocksdict import (
    AccessType,
    BlockBasedIndexType,
    BlockBasedOptions,
    Cache,
    DBCompressionType,
    DBRecoveryMode,
    Options,
    Rdict,
    WriteBatch,
    WriteOptions,
)

from soliton.storage.errors import DamagedStore, StorageProblem, StoreFull

BLOCK_CACHE_BYTES: Final = 64 * 1024 * 1024
"""Memory for blocks, indexes and filters, of all databases of this process together."""
WRITE_BUFFER_BYTES: Final = 16 * 1024 * 1024
"""The size at which a buffer of new records becomes a table; two exist at a time. As much is
reserved on the disk for the log.
"""
TABLE_BYTES: Final = 128 * 1024 * 1024
"""The size of a table: large chains have hundreds of files, not thousands."""
BLOCK_BYTES: Final = 8 * 1024
FILTER_BITS: Final = 10
"""Bits for each key; 1 % of the searches for an unknown key read from the disk."""
MAX_OPEN_FILES: Final = 512
"""Open tables of the writing process. Readers keep all of them open, so that tables stay readable
that the writer has deleted.
"""
LOG_BYTES: Final = 256 * 1024
"""The size of RocksDB's own log file, of which one old one is kept."""

MIN_FREE_BYTES: Final = 1024 * 1024
"""A disk with less free space beside a batch counts as full."""
_NO_SPACE: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_NO_SPACE_WORDS: Final = tuple(os.strerror(number) for number in _NO_SPACE)
BYTES_PER_DISK_BLOCK: Final = 512
_IO_ERROR: Final = "IO error"
_DAMAGE: Final = ("Corruption", "Not implemented", "Invalid argument")
"""How messages about files begin that are not as they were written."""
_MISSING: Final = os.strerror(errno.ENOENT)

CURRENT_NAME: Final = "CURRENT"
"""The file that every database has."""
_SEQUENCE_NAME: Final = "sequence"
_SEQUENCE: Final = struct.Struct("<Q")

_cache: Final = Cache(BLOCK_CACHE_BYTES)


def open_primary(directory: Path, buffer_bytes: int = WRITE_BUFFER_BYTES) -> Rdict:
    """Open a database for writing, creating it if necessary; raises errors of RocksDB.

    A buffer of new records becomes a table at ``buffer_bytes``.
    """
    options = _options()
    options.set_write_buffer_size(buffer_bytes)
    options.create_if_missing(True)
    options.set_max_open_files(MAX_OPEN_FILES)
    return Rdict(_text(directory), options)


def open_secondary(directory: Path, own_files: Path) -> Rdict:
    """Open a database that another process may be writing; ``own_files`` is an empty directory."""
    options = _options()
    options.set_max_open_files(-1)
    access = AccessType.secondary(_text(own_files))
    return Rdict(_text(directory), options, access_type=access)


def open_unchanged(directory: Path) -> Rdict:
    """Open a database as it is now, for a few reads."""
    return Rdict(_text(directory), _options(), access_type=AccessType.read_only())


def settle(directory: Path) -> None:
    """Write what is in the log of a database to a table, change nothing else, and close it."""
    options = _options()
    options.set_disable_auto_compactions(True)
    options.create_if_missing(False)
    options.set_max_open_files(MAX_OPEN_FILES)
    Rdict(_text(directory), options).close()


def estimated_rows(database: Rdict) -> int:
    """Return about how many rows a database has."""
    return database.property_int_value("rocksdb.estimate-num-keys") or 0


def _text(directory: Path) -> str:
    """Return the name of a directory, which RocksDB needs as UTF-8; raise ``StorageProblem``."""
    name = os.fspath(directory)
    try:
        name.encode()
    except UnicodeEncodeError:
        raise StorageProblem(
            f"the name of the directory {os.fsencode(name)!r} is not UTF-8"
        ) from None
    return name


def _options() -> Options:
    blocks = BlockBasedOptions()
    blocks.set_block_cache(_cache)
    blocks.set_block_size(BLOCK_BYTES)
    blocks.set_bloom_filter(FILTER_BITS, False)
    # Indexes and filters of a large state are larger than the cache.
    blocks.set_index_type(BlockBasedIndexType.two_level_index_search())
    blocks.set_partition_filters(True)
    blocks.set_cache_index_and_filter_blocks(True)
    blocks.set_format_version(5)
    options = Options(raw_mode=True)
    options.set_block_based_table_factory(blocks)
    options.set_compression_type(DBCompressionType.lz4())
    options.set_bottommost_compression_type(DBCompressionType.zstd())
    options.set_target_file_size_base(TABLE_BYTES)
    options.set_max_background_jobs(2)
    options.set_level_compaction_dynamic_level_bytes(True)
    # A batch is whole or absent; the last one may have been cut by a power failure.
    options.set_wal_recovery_mode(DBRecoveryMode.tolerate_corrupted_tail_records())
    options.set_max_log_file_size(LOG_BYTES)
    options.set_keep_log_file_num(2)
    options.set_stats_dump_period_sec(0)
    options.set_stats_persist_period_sec(0)
    options.set_skip_stats_update_on_db_open(True)
    return options


def manifest_state(directory: Path) -> tuple[bytes, int]:
    """Return what changes whenever the set of a database's tables does: the name and the length of
    the list of tables. Raises ``OSError``.
    """
    name = (directory / CURRENT_NAME).read_bytes().strip()
    try:
        return name, (directory / os.fsdecode(name)).stat().st_size
    except FileNotFoundError:
        # The writer has just begun another list, or this one is lost.
        return name, -1


Range = tuple[bytes, bytes]
"""The keys from the first one on, below the second one."""


def write(
    database: Rdict,
    items: Mapping[bytes, bytes | None],
    ranges: Iterable[Range] = (),
    *,
    durable: bool,
) -> None:
    """Atomically delete ranges, and then write values and delete keys (``None``)."""
    batch = WriteBatch(raw_mode=True)
    put, delete = batch.put, batch.delete
    for start, end in ranges:
        batch.delete_range(start, end)
    for key, value in items.items():
        if value is None:
            delete(key)
        else:
            put(key, value)
    options = WriteOptions()
    options.sync = durable
    database.write(batch, options)


class Sequence:
    """The file with the number of the last change that the writer has begun to write."""

    __slots__ = ("_descriptor", "_path")

    def __init__(self, directory: Path, *, writes: bool) -> None:
        """A writer creates the file; raises ``OSError``."""
        self._path = directory / _SEQUENCE_NAME
        self._descriptor: int | None = None
        if writes:
            flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
            self._descriptor = os.open(self._path, flags, 0o644)

    def read(self) -> int:
        """Return the number; 0 if there is none, as in databases without readers that follow."""
        if self._descriptor is None:
            try:
                self._descriptor = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
            except FileNotFoundError:
                return 0
        data = os.pread(self._descriptor, _SEQUENCE.size, 0)
        return int(_SEQUENCE.unpack(data)[0]) if len(data) == _SEQUENCE.size else 0

    def publish(self, number: int) -> None:
        """Write the number."""
        assert self._descriptor is not None
        os.pwrite(self._descriptor, _SEQUENCE.pack(number), 0)

    def close(self) -> None:
        """Close the file."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def check_space(directory: Path, needed: int) -> None:
    """Raise ``StoreFull`` unless a disk has room for a batch. RocksDB refuses all further writes
    once one has failed, so the disk is not filled to the last byte.
    """
    if free_bytes(directory) < needed + MIN_FREE_BYTES:
        raise StoreFull(f"no space left in {directory}: the store cannot be written")


def used_bytes(directory: Path) -> int:
    """Return the disk space of a directory's files; the log reserves more than its length."""
    total = 0
    with contextlib.suppress(OSError), os.scandir(directory) as entries:
        for entry in entries:
            with contextlib.suppress(OSError):
                total += entry.stat().st_blocks * BYTES_PER_DISK_BLOCK
    return total


def free_bytes(directory: Path) -> int:
    """Return the free space of a directory's disk; much if that is unknown."""
    try:
        status = os.statvfs(directory)
    except OSError:
        return 1 << 62
    return status.f_bavail * status.f_frsize


def is_damage(error: Exception) -> bool:
    """Whether RocksDB has found files that are not as they were written."""
    text = str(error)
    return text.startswith(_DAMAGE) or (text.startswith(_IO_ERROR) and _MISSING in text)


def problem_of(error: Exception, directory: Path, doing: str) -> StorageProblem:
    """Translate an error of RocksDB or the operating system; ``doing`` names the operation."""
    if isinstance(error, StorageProblem):
        return error
    if _is_no_space(error, directory):
        return StoreFull(f"no space left in {directory}: the store cannot be {doing} ({error})")
    # Messages of RocksDB may have several lines.
    text = " ".join(str(error).split())
    if is_damage(error):
        return DamagedStore(f"{directory} cannot be {doing} ({text})")
    return StorageProblem(f"the store in {directory} cannot be {doing}: {text}")


def _is_no_space(error: Exception, directory: Path) -> bool:
    if isinstance(error, OSError):
        return error.errno in _NO_SPACE
    text = str(error)
    if not text.startswith(_IO_ERROR):
        return False
    return text.endswith(_NO_SPACE_WORDS) or free_bytes(directory) < MIN_FREE_BYTES


@contextlib.contextmanager
def translate_errors(directory: Path, doing: str) -> Iterator[None]:
    """Translate errors of RocksDB and the operating system to ``StorageProblem``."""
    try:
        yield
    except StorageProblem:
        raise
    except Exception as error:
        # RocksDB's errors have no class of their own.
        if type(error) is not Exception and not isinstance(error, OSError):
            raise
        raise problem_of(error, directory, doing) from error
