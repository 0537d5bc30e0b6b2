"""The embedded journal: files in a directory of the matcher.

Commands that arrive while the disk is busy are written together in the next step (group commit), so
that they share one fsync. A failed step leaves nothing behind: the file is truncated to its former
length, and the commands are rejected.

What lives here: opening, appending, reading, deleting old files. What does not: the format of the
files (``segments``), snapshots (``snapshots``).
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from bisect import bisect_right
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from enum import Enum
from pathlib import Path
from typing import Final

import msgspec

from soliton.errors import InvariantBroken
from soliton.matcher.journal import Position, Record, time_after
from soliton.matcher.journal.errors import (
    JournalDamaged,
    JournalGap,
    JournalInUse,
    JournalProblem,
    JournalUnavailable,
    LeadershipLost,
)
from soliton.matcher.journal.groups import Group, Waiting
from soliton.matcher.journal.pace import Pace
from soliton.matcher.journal.segments import (
    IDENTITY_BYTES,
    SEGMENT_HEADER_BYTES,
    Scan,
    encode_records,
    read_segment,
    read_segment_header,
    scan_segment,
    segment_header,
)
from soliton.storage.directories import lock_file
from soliton.storage.files import replace_file

SEGMENT_BYTES: Final = 64 * 1024 * 1024
"""A file that is longer is followed by a new one: some 200,000 commands."""
GROUP_BYTES: Final = 1024 * 1024
"""The maximum size of one step (unless a single call has more)."""
GROUP_COUNT: Final = 4_096
"""The maximum number of commands in one step, likewise."""
_SUFFIX: Final = ".journal"

_log = logging.getLogger(__name__)


class Sync(Enum):
    """When a command counts as stored."""

    ALWAYS = "always"
    """Once it is synced to the disk: it survives a power failure."""
    INTERVAL = "interval"
    """Once the operating system has it: it survives the end of the process. The file is synced at
    an interval.
    """
    NEVER = "never"
    """As ``INTERVAL``, but the operating system decides when to sync."""


class EmbeddedSettings(msgspec.Struct, frozen=True):
    """How the journal uses its disk. ``sync_interval`` is in seconds, for ``Sync.INTERVAL``."""

    sync: Sync = Sync.ALWAYS
    sync_interval: float = 0.1
    segment_bytes: int = SEGMENT_BYTES


class _Segment(msgspec.Struct):
    base_offset: int
    path: Path


class EmbeddedJournal:
    """A ``Journal`` in a directory. It leads while it is open and its disk works."""

    def __init__(
        self,
        directory: Path,
        identity: bytes,
        clock: Callable[[], int],
        settings: EmbeddedSettings | None = None,
    ) -> None:
        """Open or create the journal of the matcher with this ``identity`` (32 bytes).

        A tail torn by a crash is truncated. ``clock`` returns milliseconds. Raises
        ``JournalInUse``, ``WrongJournal``, ``JournalDamaged`` or ``JournalProblem``.
        """
        if len(identity) != IDENTITY_BYTES:
            raise InvariantBroken(f"the identity of a journal has {IDENTITY_BYTES} bytes")
        self._directory = directory
        self._identity = identity
        self._clock = clock
        self._settings = settings or EmbeddedSettings()
        self._waiting = Waiting()
        self._pace = Pace()
        self._writing: asyncio.Task[None] | None = None
        self._syncing: asyncio.Task[None] | None = None
        self._broken: BaseException | None = None
        self._ended = asyncio.Event()
        try:
            directory.mkdir(parents=True, exist_ok=True)
            owner = lock_file(directory / "LOCK")
            if owner is None:
                raise JournalInUse(f"another process uses the journal in {directory}")
            self._owner = owner
            try:
                self._open()
            except BaseException:
                os.close(self._owner)
                raise
        except OSError as error:
            raise JournalProblem(f"cannot open the journal in {directory}: {error}") from error
        # One thread, so that steps run one after the other.
        self._disk = ThreadPoolExecutor(1, "journal")

    def _open(self) -> None:
        for leftover in self._directory.glob(f"*{_SUFFIX}.new"):
            leftover.unlink()
        self._segments = [
            _Segment(read_segment_header(path, self._identity), path)
            for path in sorted(self._directory.glob(f"*{_SUFFIX}"))
        ]
        if not self._segments:
            self._segments.append(self._new_segment(0))
        newest = self._segments[-1]
        scan = scan_segment(newest.path, newest.base_offset)
        self._next_offset = scan.next_offset
        self._timestamp = scan.timestamp or self._timestamp_before(newest)
        self._end = self._settled = scan.end
        self._file = os.open(newest.path, os.O_RDWR)
        self._cut_tail(newest, scan)

    def _cut_tail(self, newest: _Segment, scan: Scan) -> None:
        if scan.size > scan.end:
            _log.warning(
                "%s: cut %d bytes that a crash left behind offset %d",
                *(newest.path, scan.size - scan.end, scan.next_offset - 1),
            )
            os.ftruncate(self._file, scan.end)
        # What was read may not have been synced yet.
        os.fsync(self._file)

    def _timestamp_before(self, newest: _Segment) -> int:
        """The time of the last record before an empty segment."""
        for segment in reversed(self._segments):
            if segment is not newest:
                return scan_segment(segment.path, segment.base_offset).timestamp
        return 0

    # --- reading ----------------------------------------------------------------------------------

    @property
    def first_offset(self) -> int:
        """The lowest readable offset; the next one if the journal is empty."""
        return self._segments[0].base_offset

    @property
    def last_offset(self) -> int:
        """The highest stored offset, -1 if there is none."""
        return self._next_offset - 1

    async def records(self, from_offset: int) -> AsyncIterator[list[Record]]:
        """The commands from an offset to the last one; may raise ``JournalGap``."""
        last = self.last_offset
        if not self.first_offset <= from_offset <= last + 1:
            raise JournalGap(from_offset, self.first_offset, last)
        bases = [segment.base_offset for segment in self._segments]
        segments = self._segments[bisect_right(bases, from_offset) - 1 :]
        try:
            for batch in _read_all(segments, self._end):
                if batch[0].offset > last:
                    return
                selected = [each for each in batch if from_offset <= each.offset <= last]
                if selected:
                    yield selected
                    await asyncio.sleep(0)
        except FileNotFoundError:
            raise JournalGap(from_offset, self.first_offset, self.last_offset) from None
        except OSError as error:
            raise JournalProblem(f"cannot read {error.filename}: {error.strerror}") from error

    async def follow(self, from_offset: int) -> AsyncIterator[list[Record]]:
        """All commands from an offset to the last one, since there is no other writer."""
        self._require_whole()
        async for batch in self.records(from_offset):
            yield batch

    async def term_ended(self) -> None:
        """Wait until a disk failure leaves the end of the journal unknown."""
        await self._ended.wait()

    # --- writing ----------------------------------------------------------------------------------

    async def append(self, payloads: Sequence[bytes]) -> list[Position]:
        """Append commands in this order; returns once they count as stored."""
        self._require_whole()
        future = self._waiting.add(payloads)
        if self._writing is None:
            started = time.perf_counter()
            if self._pace.is_quick(started) and self._end < self._settings.segment_bytes:
                self._write_here(started)
            else:
                self._writing = asyncio.create_task(self._write_groups())
        return await future

    def _require_whole(self) -> None:
        if self._broken is not None:
            raise LeadershipLost(f"the journal in {self._directory} is closed: {self._broken}")

    def _write_here(self, started: float) -> None:
        """Store waiting commands, blocking the event loop."""
        group = self._waiting.take(GROUP_BYTES, GROUP_COUNT)
        timestamp = time_after(self._timestamp, self._clock())
        try:
            self._store(self._next_offset, timestamp, group.payloads)
        except JournalProblem as problem:
            group.refuse(problem)
            self._end_if_broken()
        else:
            self._was_stored(group, timestamp)
        self._pace.note(started, time.perf_counter())

    async def _write_groups(self) -> None:
        """Store waiting commands, and those that arrive meanwhile, in a thread."""
        loop = asyncio.get_running_loop()
        try:
            while self._waiting and self._broken is None:
                group = self._waiting.take(GROUP_BYTES, GROUP_COUNT)
                timestamp = time_after(self._timestamp, self._clock())
                try:
                    await loop.run_in_executor(
                        self._disk, self._store, self._next_offset, timestamp, group.payloads
                    )
                except JournalProblem as problem:
                    group.refuse(problem)
                except Exception as fault:  # noqa: BLE001 - any error
                    # The file's content is uncertain, and callers must not wait forever.
                    _log.exception("the journal could not be written")
                    self._broken = fault
                    group.refuse(LeadershipLost(f"the journal is closed: {fault!r}"))
                else:
                    self._was_stored(group, timestamp)
        finally:
            self._writing = None
            self._end_if_broken()

    def _was_stored(self, group: Group, timestamp: int) -> None:
        first, count = self._next_offset, len(group.payloads)
        self._next_offset, self._timestamp = first + count, timestamp
        if self._settings.sync is Sync.INTERVAL and self._syncing is None:
            self._syncing = asyncio.create_task(self._sync_later())
        group.stored(range(first, first + count), timestamp)

    def _end_if_broken(self) -> None:
        if self._broken is not None:
            self._ended.set()
            self._waiting.refuse(LeadershipLost(f"the journal is closed: {self._broken}"))

    def _store(self, first_offset: int, timestamp: int, payloads: Sequence[bytes]) -> None:
        """One step: write to the newest file, and sync it if the settings require that."""
        if self._end >= self._settings.segment_bytes:
            self._begin_segment(first_offset)
        data = encode_records(first_offset, timestamp, self._settled, payloads)
        try:
            written = 0
            while written < len(data):
                written += os.pwrite(self._file, data[written:], self._end + written)
            if self._settings.sync is Sync.ALWAYS:
                os.fdatasync(self._file)
        except OSError as error:
            self._undo_step(error)
            raise JournalUnavailable(f"cannot write the journal: {error.strerror}") from error
        self._end += len(data)
        if self._settings.sync is Sync.ALWAYS:
            self._settled = self._end

    def _undo_step(self, error: OSError) -> None:
        """Truncate what a failed step has left: no caller was told that it is stored."""
        try:
            os.ftruncate(self._file, self._end)
            os.fsync(self._file)
        except OSError as second:
            self._broken = second
            raise LeadershipLost(f"cannot write the journal: {error.strerror}") from second
        self._settled = self._end

    def _begin_segment(self, base_offset: int) -> None:
        path = self._path_of(base_offset)
        try:
            os.fsync(self._file)
            segment = self._new_segment(base_offset)
            file = os.open(path, os.O_RDWR)
        except OSError as error:
            try:
                path.unlink(missing_ok=True)
            except OSError as second:
                self._broken = second
                raise LeadershipLost(f"cannot remove {path}: {second.strerror}") from error
            raise JournalUnavailable(f"cannot begin a journal file: {error.strerror}") from error
        os.close(self._file)
        self._file = file
        self._segments.append(segment)
        self._end = self._settled = SEGMENT_HEADER_BYTES

    def _new_segment(self, base_offset: int) -> _Segment:
        path = self._path_of(base_offset)
        replace_file(path, (segment_header(base_offset, self._identity),))
        return _Segment(base_offset, path)

    def _path_of(self, base_offset: int) -> Path:
        return self._directory / f"{base_offset:020}{_SUFFIX}"

    async def confirm(self) -> None:
        """Sync the file, if it is synced at an interval."""
        if self._settings.sync is Sync.INTERVAL and self._broken is None:
            await asyncio.get_running_loop().run_in_executor(self._disk, self._confirm)
            if self._broken is not None:
                self._ended.set()
                raise LeadershipLost(f"the disk did not confirm the journal: {self._broken}")

    async def _sync_later(self) -> None:
        """Sync the file after the interval."""
        await asyncio.sleep(self._settings.sync_interval)
        self._syncing = None
        if self._broken is None:
            await asyncio.get_running_loop().run_in_executor(self._disk, self._confirm)
        if self._broken is not None:
            self._ended.set()

    def _confirm(self) -> None:
        end = self._end
        try:
            os.fdatasync(self._file)
        except OSError as error:
            # The disk may lack commands reported as stored: only reopening the journal can tell.
            self._broken = error
            _log.error("the disk did not confirm the journal: %s", error.strerror)
            return
        self._settled = max(self._settled, end)

    # --- old commands, and the end ----------------------------------------------------------------

    async def truncate_before(self, offset: int) -> None:
        """Delete the files that contain only commands below an offset."""
        bases = [segment.base_offset for segment in self._segments]
        count = max(0, bisect_right(bases, offset) - 1)
        old, self._segments[:count] = self._segments[:count], []
        for segment in old:
            try:
                segment.path.unlink(missing_ok=True)
            except OSError as error:
                raise JournalProblem(f"cannot remove {segment.path}: {error.strerror}") from error

    async def close(self) -> None:
        """Finish pending writes, and release the directory."""
        if self._writing is not None:
            await asyncio.wait([self._writing])
        if self._syncing is not None:
            self._syncing.cancel()
        if self._broken is None:
            await asyncio.get_running_loop().run_in_executor(self._disk, self._confirm)
        self._disk.shutdown()
        os.close(self._file)
        os.close(self._owner)
        self._broken = self._broken or JournalProblem("it was closed")


def stored(directory: Path, identity: bytes) -> tuple[int, Iterator[list[Record]]]:
    """The first offset of a journal and all of its commands, without owning it.

    Read-only; a writer may be active, and commands up to the current end are returned. Raises
    ``JournalProblem`` and ``WrongJournal``; the iterator raises ``JournalDamaged``.
    """
    try:
        paths = sorted(directory.glob(f"*{_SUFFIX}"))
        segments = [_Segment(read_segment_header(path, identity), path) for path in paths]
        if not segments:
            raise JournalProblem(f"there is no journal in {directory}")
        newest = segments[-1]
        end = scan_segment(newest.path, newest.base_offset).end
    except OSError as error:
        raise JournalProblem(f"cannot read the journal in {directory}: {error}") from error
    return segments[0].base_offset, _read_all(segments, end)


def _read_all(segments: Sequence[_Segment], end: int) -> Iterator[list[Record]]:
    """The commands of consecutive files; ``end`` is the length of the last one to read. Raises
    ``OSError`` and ``JournalDamaged``.
    """
    for number, segment in enumerate(segments, 1):
        offset = segment.base_offset
        limit = end if number == len(segments) else None
        for batch in read_segment(segment.path, offset, limit):
            offset = batch[-1].offset + 1
            yield batch
        if number < len(segments) and segments[number].base_offset != offset:
            raise JournalDamaged(str(segment.path), offset, "the file ends before its last")
