"""The audit log on the disk: a write-ahead log, synced before the signatures in it are returned.

Requests that arrive together share one ``fsync``, on a separate thread. An incomplete last line is
dropped at the start, since its result was never returned; any other damage stops the start with a
message that names its place. When the disk is full, the requests whose lines could not be written
fail, the file is truncated to its last good line, and the next request tries again.

What lives here: the files, their lock, appending and reading. What does not: what lines mean
(``records``, ``state``).
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from soliton.errors import EnvironmentProblem, InputError
from soliton.signer.records import FIRST_BEFORE, Entry, Event, from_line, line_hash, to_line
from soliton.storage.files import sync_directory

FILE_MODE: Final = 0o600
DIRECTORY_MODE: Final = 0o700
LOCK_NAME: Final = "lock"
RESTORED_NAME: Final = "restored-from-a-backup"
"""A file beside a log that was restored from a backup, and lacks what was signed since."""
SEGMENT_BYTES: Final = 32 * 1024 * 1024
"""Size, plus one group of lines, at which the log is rotated. A file begins with a checkpoint of
the state, so a start reads the last file, and those with ids of the last day.
"""
MAX_LINE_BYTES: Final = 256 * 1024 * 1024
MAX_SEGMENTS: Final = 1_000_000
_NAME: Final = re.compile(r"audit-([0-9]{8})\.jsonl")

Done = Callable[[OSError | None], None]


class AuditProblem(InputError):
    """The audit log is damaged or was changed; the message has the file and the line."""


class AuditUnavailable(EnvironmentProblem):
    """The directory of the log cannot be used, or another process has locked it."""


class _Item(NamedTuple):
    line: bytes
    done: Done
    segment: int
    """The segment that it begins, 0 for none."""
    number: int
    hash: str


class Journal:
    """The log in one directory, which is locked against other processes."""

    def __init__(self, directory: Path, *, durable: bool = True) -> None:
        """Lock the directory; raises ``AuditUnavailable``. With ``durable`` off, lines survive a
        crash of the process, but not of the machine.
        """
        self.directory = directory
        self._durable = durable
        self._lock = _lock(directory)
        if (directory / RESTORED_NAME).exists():
            os.close(self._lock)
            raise AuditUnavailable(
                f"the log in {directory} is from a backup: it does not know what was signed since, "
                "and may sign it twice. If the original is stopped for ever and the network's last "
                f"block is newer than its last signature, delete {directory / RESTORED_NAME}"
            )
        self._file = -1
        self._segment = 0
        self._length = 0
        """The length of the file up to its last synced line."""
        self._number, self._before = 0, FIRST_BEFORE
        self._sure = (0, FIRST_BEFORE, 0)
        self._size = 0
        self._queue: list[_Item] = []
        self._is_writing = False
        """Whether a group is being written, or scheduled for the next turn of the event loop."""
        self.is_broken = False
        """Whether the last attempt to write failed."""
        self.appended: Counter[Event] = Counter()
        """The number of lines since the start, by kind."""
        self._thread = ThreadPoolExecutor(1, "audit")

    # --- the start --------------------------------------------------------------------------------

    def load(self, apply: Callable[[Entry, int], None]) -> None:
        """Pass every line that is still needed to ``apply``, with its segment, and open the log for
        appending. Raises ``AuditProblem``, ``AuditUnavailable``.
        """
        try:
            numbers = segments(self.directory)
            while numbers and not _has_line(segment_path(self.directory, numbers[-1])):
                # The process ended between creating the file and syncing its first line.
                segment_path(self.directory, numbers.pop()).unlink()
            begin = self._oldest(numbers)
            before = self._hash_before(begin)
            for number in (each for each in numbers if each >= begin):
                path = segment_path(self.directory, number)
                if number == numbers[-1]:
                    _drop_tail(path)
                for entry, line in read_lines(path, before):
                    before = line_hash(line)
                    self._number, self._before = entry.number, before
                    apply(entry, number)
            self._open(numbers[-1] if numbers else 1)
        except OSError as error:
            raise AuditUnavailable(f"{self.directory}: {error.strerror}") from error

    def _oldest(self, numbers: list[int]) -> int:
        if not numbers:
            return 1
        first, _ = next(read_lines(segment_path(self.directory, numbers[-1]), None))
        _check_numbers(self.directory, numbers)
        return max(numbers[0], min(first.oldest or numbers[-1], numbers[-1]))

    def _hash_before(self, segment: int) -> str | None:
        """Return the hash of the last line before a file; ``None`` if older files were removed."""
        if segment == 1:
            return FIRST_BEFORE
        path = segment_path(self.directory, segment - 1)
        if not path.exists():
            return None
        return line_hash(_last_line(path))

    def _open(self, segment: int) -> None:
        path = segment_path(self.directory, segment)
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        self._file = os.open(path, flags, FILE_MODE)
        sync_directory(self.directory)
        self._segment = segment
        self._length = self._size = os.fstat(self._file).st_size
        self._sure = self._number, self._before, segment

    # --- lines ------------------------------------------------------------------------------------

    @property
    def head(self) -> tuple[int, str]:
        """The number of the last appended line and its hash."""
        return self._number, self._before

    @property
    def written(self) -> tuple[int, str]:
        """The number of the last synced line and its hash."""
        number, line, _ = self._sure
        return number, line

    @property
    def segment(self) -> int:
        """The number of the file that the next line goes to."""
        return self._segment

    @property
    def is_full(self) -> bool:
        """Whether the next line should be a checkpoint, which begins a new file."""
        return self._size >= SEGMENT_BYTES

    def append(self, entry: Entry, done: Done) -> None:
        """Append a line, whose ``number`` and ``before`` are filled in here. ``done`` is called
        once it is synced, or with the error. A checkpoint begins a new file.
        """
        self.appended[entry.event] += 1
        begins = 0
        if entry.event is Event.CHECKPOINT and self._number:
            self._segment += 1
            self._size, begins = 0, self._segment
        number = self._number + 1
        line = to_line(msgspec.structs.replace(entry, number=number, before=self._before))
        self._number, self._before = number, line_hash(line)
        self._size += len(line) + 1
        self._queue.append(_Item(line, done, begins, number, self._before))
        if not self._durable:
            self._write_some()
        elif not self._is_writing:
            # Group commit: further lines of this turn of the event loop join it.
            self._is_writing = True
            asyncio.get_running_loop().call_soon(self._write_some)

    def append_now(self, entry: Entry) -> None:
        """Append a line synchronously, before there is an event loop. Raises
        ``AuditUnavailable``.
        """
        number = self._number + 1
        line = to_line(msgspec.structs.replace(entry, number=number, before=self._before))
        item = _Item(line, _nothing, 0, number, line_hash(line))
        problem = self._attempt([item])
        if problem is not None:
            raise AuditUnavailable(f"{self.directory} cannot be written: {problem.strerror}")
        self._number, self._before, self._size = number, item.hash, self._length
        self._sure = number, item.hash, self._segment

    def _write_some(self) -> None:
        """Pass the queue to the thread, up to the next beginning of a file."""
        count = next((i for i, each in enumerate(self._queue) if each.segment and i), None)
        group, self._queue = self._queue[:count], self._queue[count:] if count else []
        if not self._durable:
            self._written(group, self._attempt(group))
            return
        loop = asyncio.get_running_loop()
        future = loop.run_in_executor(self._thread, self._attempt, group)
        future.add_done_callback(partial(self._after, group))

    def _after(self, group: list[_Item], future: asyncio.Future[OSError | None]) -> None:
        self._written(group, future.result())
        if self._queue:
            self._write_some()
        else:
            self._is_writing = False

    def _written(self, group: list[_Item], problem: OSError | None) -> None:
        if problem is None:
            last = group[-1]
            self._sure = last.number, last.hash, group[0].segment or self._sure[2]
        else:
            # The queued lines contain the hashes of lines that were not written.
            group, self._queue = group + self._queue, []
            self._number, self._before, self._segment = self._sure
            self._size = self._length
        for each in group:
            each.done(problem)

    def _attempt(self, group: list[_Item]) -> OSError | None:
        try:
            self._write(group)
        except OSError as error:
            self.is_broken = True
            return error
        return None

    def _write(self, group: list[_Item]) -> None:
        if self.is_broken:
            # Remove the partly written lines.
            os.ftruncate(self._file, self._length)
            os.fsync(self._file)
            self.is_broken = False
        data = b"".join(each.line + b"\n" for each in group)
        begins = group[0].segment
        if begins:
            self._begin(begins, data)
            return
        _write_all(self._file, data)
        if self._durable:
            os.fdatasync(self._file)
        self._length += len(data)

    def _begin(self, segment: int, data: bytes) -> None:
        path = segment_path(self.directory, segment)
        path.unlink(missing_ok=True)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC
        file = os.open(path, flags, FILE_MODE)
        try:
            _write_all(file, data)
            os.fsync(file)
            sync_directory(self.directory)
        except OSError:
            os.close(file)
            path.unlink(missing_ok=True)
            raise
        os.close(self._file)
        self._file, self._length = file, len(data)

    def close(self) -> None:
        """Finish writing, and unlock the directory. Idempotent."""
        self._thread.shutdown()
        for descriptor in (self._file, self._lock):
            if descriptor >= 0:
                os.close(descriptor)
        self._file = self._lock = -1


# --- reading --------------------------------------------------------------------------------------


def segments(directory: Path) -> list[int]:
    """Return the numbers of the log's files, in order; raises ``OSError``."""
    names = (_NAME.fullmatch(each.name) for each in directory.iterdir())
    return sorted(int(match[1]) for match in names if match is not None)


def read_all(directory: Path) -> Iterator[tuple[Entry, bytes]]:
    """Yield every line of a log, checked: the entry and its bytes. An incomplete last line is left
    out. Raises ``AuditProblem``, ``AuditUnavailable``.
    """
    try:
        numbers = segments(directory)
        _check_numbers(directory, numbers)
        before = FIRST_BEFORE if numbers[:1] == [1] else None
        for number in numbers:
            path = segment_path(directory, number)
            for entry, line in read_lines(path, before, ends_early=number == numbers[-1]):
                yield entry, line
                before = line_hash(line)
    except OSError as error:
        raise AuditUnavailable(f"{directory}: {error.strerror}") from error


def read_lines(
    path: Path, before: str | None, *, ends_early: bool = False
) -> Iterator[tuple[Entry, bytes]]:
    """Yield the lines of a file, each checked against the previous one. ``before`` is the hash of
    the last line of the previous file, if known. Raises ``AuditProblem``, ``OSError``.
    """
    number: int | None = None
    with path.open("rb") as file:
        for place, raw in enumerate(iter(partial(file.readline, MAX_LINE_BYTES), b""), 1):
            if not raw.endswith(b"\n"):
                if ends_early:
                    return
                raise AuditProblem(f"{path}:{place}: the line is not complete")
            line = raw[:-1]
            try:
                entry = from_line(line)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                raise AuditProblem(f"{path}:{place}: this is no line of an audit log") from None
            if before is not None and entry.before != before:
                raise AuditProblem(
                    f"{path}:{place}: the hash is not that of the line before: a line was changed, "
                    "left out or put in"
                )
            if number is not None and entry.number != number + 1:
                raise AuditProblem(f"{path}:{place}: line {entry.number} follows line {number}")
            number, before = entry.number, line_hash(line)
            yield entry, line


def _nothing(_problem: OSError | None) -> None:
    """The callback of a line without a waiter."""


def _check_numbers(directory: Path, numbers: list[int]) -> None:
    """Refuse gaps. The oldest files may have been removed."""
    if numbers and numbers != list(range(numbers[0], numbers[-1] + 1)):
        raise AuditProblem(f"{directory}: a file of the audit log is missing")


def _last_line(path: Path) -> bytes:
    """Return the last line of a file that is complete."""
    size, length = path.stat().st_size, 65_536
    with path.open("rb") as file:
        while True:
            file.seek(max(0, size - length))
            data = file.read()
            if not data.endswith(b"\n"):
                raise AuditProblem(f"{path}: the last line is not complete")
            start = data.rfind(b"\n", 0, -1)
            if start >= 0 or length >= size:
                return data[start + 1 : -1]
            length *= 16


def _has_line(path: Path) -> bool:
    with path.open("rb") as file:
        return file.readline(MAX_LINE_BYTES).endswith(b"\n")


def _drop_tail(path: Path) -> None:
    """Truncate an incomplete last line."""
    size = path.stat().st_size
    with path.open("rb+") as file:
        at = size
        while at > 0:
            start = max(0, at - 65_536)
            file.seek(start)
            found = file.read(at - start).rfind(b"\n")
            if found >= 0:
                at = start + found + 1
                break
            at = start
        if at < size:
            file.truncate(at)
            file.flush()
            os.fsync(file.fileno())


def segment_path(directory: Path, segment: int) -> Path:
    """Return the path of a file of the log."""
    return directory / f"audit-{segment:08d}.jsonl"


def _lock(directory: Path) -> int:
    """Lock the directory for this process, and return the descriptor that holds the lock."""
    try:
        directory.mkdir(mode=DIRECTORY_MODE, parents=True, exist_ok=True)
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
        descriptor = os.open(directory / LOCK_NAME, flags, FILE_MODE)
    except OSError as error:
        raise AuditUnavailable(f"{directory}: {error.strerror}") from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise AuditUnavailable(f"another signer uses {directory}") from None
    return descriptor


def _write_all(file: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(file, view) :]
