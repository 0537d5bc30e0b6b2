"""The audit log over HTTP: its last lines, and the verification of the whole log.

What lives here: reading the files while this process appends to them, within limits, and the JSON
of a line. What does not: the files (``journal``), and permissions (``audit_routes``).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, Final

import msgspec

from soliton.signer.journal import (
    AuditProblem,
    AuditUnavailable,
    Journal,
    read_all,
    segment_path,
    segments,
)
from soliton.signer.records import Entry, Event, from_line, line_hash

MAX_LINES: Final = 200
"""Lines of one answer."""
MAX_READ_BYTES: Final = 64 * 1024 * 1024
"""How far back an answer reads; ``soliton signer audit export`` has no such limit."""
_CHUNK: Final = 256 * 1024
_NUMBER: Final = b'{"number":'
_HEAD_BYTES: Final = 64
"""A line's number is among its first bytes."""


class AuditLog:
    """Reads the log of a running signer. Its methods block: call them on a thread."""

    def __init__(self, journal: Journal, clock: Callable[[], int]) -> None:
        self._journal = journal
        self._clock = clock
        self.verified: dict[str, Any] | None = None
        """The result of the last verification."""

    def recent(self, before: int | None, count: int) -> list[dict[str, Any]]:
        """Return the last lines, or those before a number, the newest first. Raises
        ``AuditUnavailable``.
        """
        found: list[dict[str, Any]] = []
        try:
            for line in _backwards(self._journal.directory, before):
                number = _number(line)
                if number is None or (before is not None and number >= before):
                    continue
                entry = from_line(line)
                if entry.event is not Event.CHECKPOINT:
                    found.append(shown(entry))
                if len(found) >= count:
                    break
        except (OSError, msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise AuditUnavailable(f"the log cannot be read: {error}") from error
        return found

    def verify(self, written: tuple[int, str]) -> dict[str, Any]:
        """Check the whole log, and that it contains the last line that this process has
        ``written``: its number and hash.
        """
        at = self._clock()
        try:
            self.verified = {"sound": True, "at": at, **self._checked(written)}
        except (AuditProblem, AuditUnavailable) as error:
            self.verified = {"sound": False, "at": at, "message": str(error)}
        return self.verified

    def _checked(self, written: tuple[int, str]) -> dict[str, Any]:
        first = last = signatures = 0
        head = ""
        found = False
        for entry, line in read_all(self._journal.directory):
            first, last, head = first or entry.number, entry.number, line_hash(line)
            found = found or (last, head) == written
            signatures += len(entry.ids) if entry.event is Event.SIGN else 0
        if not found:
            raise AuditProblem(f"line {written[0]} is not the one that this process has written")
        return {"first": first, "lines": last, "signatures": signatures, "head": head}


def shown(entry: Entry) -> dict[str, Any]:
    """Return the JSON of a line."""
    return {
        "number": entry.number,
        "at": entry.at,
        "event": entry.event.value,
        "caller": entry.caller,
        "key": entry.key,
        "rule": entry.rule,
        "lines": list(entry.lines),
        "reason": entry.reason,
        "told": list(entry.sentences),
        "ids": list(entry.ids),
        "pending": entry.pending,
    }


def _number(line: bytes) -> int | None:
    digits = line[len(_NUMBER) : len(_NUMBER) + 20].partition(b",")[0]
    return int(digits) if line.startswith(_NUMBER) and digits.isdigit() else None


def _backwards(directory: Path, before: int | None) -> Iterator[bytes]:
    """Yield the complete lines of all files from the last one back, up to ``MAX_READ_BYTES``; with
    ``before`` beginning not far behind the line with this number.
    """
    left = MAX_READ_BYTES
    for segment in reversed(segments(directory)):
        with segment_path(directory, segment).open("rb") as file:
            at = file.seek(0, os.SEEK_END)
            if before is not None:
                at = _end_before(file, at, before)
            rest, size = b"", _CHUNK
            is_last = True
            while at > 0 and left > 0:
                size = min(size, at)
                at = file.seek(at - size)
                left -= size
                rest, *lines = (file.read(size) + rest).split(b"\n")
                # A long line is joined from chunks of doubling size: linear time.
                size = _CHUNK if lines else 2 * size
                if is_last and lines:
                    # The text after the last newline is an incomplete line.
                    lines.pop()
                    is_last = False
                yield from reversed(lines)
            if at == 0 and not is_last:
                yield rest
        if left <= 0:
            return


def _end_before(file: BinaryIO, size: int, before: int) -> int:
    """Return the place of a line from which on no number is less than ``before``, or the end of
    the file. Numbers ascend: a binary search, down to ``_CHUNK`` bytes.
    """
    low, high = 0, size
    while high - low > _CHUNK:
        middle = (low + high) // 2
        file.seek(middle)
        file.readline(high - middle)
        place = file.tell()
        if place >= high:
            # A line that reaches from there to the end of what is searched.
            break
        number = _number(file.readline(_HEAD_BYTES))
        if number is None or number < before:
            low = place
        else:
            high = place
    return high
