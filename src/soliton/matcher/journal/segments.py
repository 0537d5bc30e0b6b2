"""The file format of the embedded journal.

A segment is a header followed by records:

    header:  magic 8 | base offset 8 | identity 32 | crc32 4
    record:  magic 2 | length 4 | crc32 4 | offset 8 | timestamp 8 | settled 4 | payload

All integers are unsigned and big-endian. ``length`` is that of the payload; the checksum covers
everything after it. ``settled`` is the length of the file at the last sync. It distinguishes a torn
tail from damage: a record beyond the synced length was never reported as stored, so if a power
failure left holes there, truncating the file at the first one loses nothing. A record before a
later one's ``settled`` was reported as stored; if it is unreadable, that is an error.

What lives here: encoding and decoding records, and scanning a whole file. What does not: when files
are created, written and deleted (``embedded``).
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import msgspec

from soliton.matcher.journal import MAX_PAYLOAD_BYTES, Record
from soliton.matcher.journal.errors import JournalDamaged, WrongJournal

SEGMENT_MAGIC: Final = b"SLTNJNL1"
RECORD_MAGIC: Final = b"\xa5\x4a"
IDENTITY_BYTES: Final = 32
READ_BYTES: Final = 1024 * 1024
"""The size of a read: a batch of some thousand commands."""

_SEGMENT: Final = struct.Struct(">8sQ32s")
_CHECKSUM: Final = struct.Struct(">I")
_RECORD: Final = struct.Struct(">2sIIQQI")
_COVERED: Final = struct.Struct(">QQI")
SEGMENT_HEADER_BYTES: Final = _SEGMENT.size + _CHECKSUM.size
RECORD_HEADER_BYTES: Final = _RECORD.size


def segment_header(base_offset: int, identity: bytes) -> bytes:
    """The header of a segment whose first record has ``base_offset``."""
    head = _SEGMENT.pack(SEGMENT_MAGIC, base_offset, identity)
    return head + _CHECKSUM.pack(zlib.crc32(head))


def read_segment_header(path: Path, identity: bytes) -> int:
    """The base offset of a segment of this journal. Raises ``WrongJournal`` for any other file."""
    with path.open("rb") as file:
        raw = file.read(SEGMENT_HEADER_BYTES)
    if len(raw) < SEGMENT_HEADER_BYTES or raw[:8] != SEGMENT_MAGIC:
        raise WrongJournal(f"{path} is no journal file of this version")
    (checksum,) = _CHECKSUM.unpack_from(raw, _SEGMENT.size)
    if checksum != zlib.crc32(raw[: _SEGMENT.size]):
        raise WrongJournal(f"{path} has a damaged header")
    _, base_offset, found = _SEGMENT.unpack_from(raw)
    if found != identity:
        raise WrongJournal(f"{path} belongs to another matcher or another network")
    return int(base_offset)


def encode_records(
    first_offset: int, timestamp: int, settled: int, payloads: Sequence[bytes]
) -> bytes:
    """Records of payloads with one timestamp and consecutive offsets from ``first_offset``."""
    parts = []
    for offset, payload in enumerate(payloads, first_offset):
        checksum = zlib.crc32(payload, zlib.crc32(_COVERED.pack(offset, timestamp, settled)))
        parts.append(_RECORD.pack(RECORD_MAGIC, len(payload), checksum, offset, timestamp, settled))
        parts.append(payload)
    return b"".join(parts)


class _Fault(Exception):
    """The bytes at a position are not a complete record."""


def _record_at(
    data: bytes, start: int, expected_offset: int | None
) -> tuple[int, int, int, bytes, int]:
    """Offset, timestamp, settled, payload and end of the record at a position of ``data``."""
    if start + RECORD_HEADER_BYTES > len(data):
        raise _Fault("it ends inside a record's head")
    magic, length, checksum, offset, timestamp, settled = _RECORD.unpack_from(data, start)
    end = start + RECORD_HEADER_BYTES + length
    if magic != RECORD_MAGIC or length > MAX_PAYLOAD_BYTES:
        raise _Fault("no record begins there")
    if end > len(data):
        raise _Fault("it ends inside a record")
    if expected_offset is not None and offset != expected_offset:
        raise _Fault(f"a record with offset {offset} stands there")
    # The checksum also covers the header from the offset on.
    if zlib.crc32(data[start + RECORD_HEADER_BYTES - _COVERED.size : end]) != checksum:
        raise _Fault("a checksum is wrong")
    return offset, timestamp, settled, data[start + RECORD_HEADER_BYTES : end], end


def read_segment(path: Path, base_offset: int, end: int | None = None) -> Iterator[list[Record]]:
    """The records of a segment in batches, up to the position ``end`` (or the end of the file).

    Raises ``JournalDamaged`` at the first incomplete record.
    """
    offset = base_offset
    with path.open("rb") as file:
        file.seek(SEGMENT_HEADER_BYTES)
        left = (path.stat().st_size if end is None else end) - SEGMENT_HEADER_BYTES
        rest = b""
        while left > 0:
            chunk = file.read(min(READ_BYTES, left))
            left = left - len(chunk) if chunk else 0
            data = rest + chunk
            batch = []
            start = 0
            # Unless this is the last chunk, a record that may extend beyond it has to wait.
            limit = len(data) if left == 0 else len(data) - RECORD_HEADER_BYTES - MAX_PAYLOAD_BYTES
            while start < limit:
                try:
                    _, timestamp, _, payload, start = _record_at(data, start, offset)
                except _Fault as fault:
                    raise JournalDamaged(str(path), offset, str(fault)) from None
                batch.append(Record(offset, timestamp, payload))
                offset += 1
            rest = data[start:]
            if batch:
                yield batch


class Scan(msgspec.Struct, frozen=True):
    """The content of the newest segment: ``end`` is the end of its complete records, ``size`` that
    of the file; ``next_offset`` follows the last record, whose time is ``timestamp``.
    """

    end: int
    size: int
    next_offset: int
    timestamp: int


def scan_segment(path: Path, base_offset: int) -> Scan:
    """Find the end of the complete records of a segment.

    Raises ``JournalDamaged`` if a record after that end shows that more had been synced.
    """
    data = path.read_bytes()
    offset, timestamp, start = base_offset, 0, SEGMENT_HEADER_BYTES
    fault: str | None = None
    while start < len(data) and fault is None:
        try:
            _, timestamp, _, _, start = _record_at(data, start, offset)
            offset += 1
        except _Fault as problem:
            fault = str(problem)
    if fault is not None and _settled_after(data, start, offset) > start:
        raise JournalDamaged(str(path), offset, fault)
    return Scan(start, len(data), offset, timestamp)


def _settled_after(data: bytes, start: int, offset: int) -> int:
    """The highest synced length in complete records after a position of ``data``, 0 if there are
    none.
    """
    highest = 0
    position = data.find(RECORD_MAGIC, start + 1)
    while position >= 0:
        try:
            found, _, settled, _, end = _record_at(data, position, None)
        except _Fault:
            end = position + 1
        else:
            if found >= offset:
                highest = max(highest, settled)
        position = data.find(RECORD_MAGIC, end)
    return highest
