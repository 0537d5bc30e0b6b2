"""The embedded journal: order, group commit, segments, torn tails, damage, full disks."""

from __future__ import annotations

import asyncio
import itertools
import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from soliton.matcher.journal import Journal, Position, Record, embedded
from soliton.matcher.journal.embedded import EmbeddedJournal, EmbeddedSettings, Sync
from soliton.matcher.journal.errors import (
    JournalDamaged,
    JournalGap,
    JournalInUse,
    JournalUnavailable,
    LeadershipLost,
    WrongJournal,
)
from soliton.matcher.journal.pace import Pace
from soliton.matcher.journal.segments import (
    SEGMENT_HEADER_BYTES,
    encode_records,
    read_segment_header,
    scan_segment,
)

IDENTITY = bytes(range(32))
SMALL = EmbeddedSettings(segment_bytes=1_000)


def opened(directory: Path, settings: EmbeddedSettings | None = None) -> EmbeddedJournal:
    ticks = itertools.count(1_000)
    return EmbeddedJournal(directory, IDENTITY, lambda: next(ticks), settings)


async def read(journal: Journal, start: int = 0) -> list[Record]:
    return [record async for batch in journal.records(start) for record in batch]


def files(directory: Path) -> list[Path]:
    return sorted(directory.glob("*.journal"))


@pytest.mark.parametrize("sync", list(Sync))
async def test_what_is_appended_is_read_again(tmp_path: Path, sync: Sync) -> None:
    settings = EmbeddedSettings(sync=sync, sync_interval=0.01)
    journal = opened(tmp_path, settings)
    assert (journal.first_offset, journal.last_offset, journal._broken) == (0, -1, None)
    positions = await journal.append([b"a", b"", b"c" * 5_000])
    assert [position.offset for position in positions] == [0, 1, 2]
    await asyncio.sleep(0.02)
    await journal.append([b"d"])
    await journal.close()

    again = opened(tmp_path, settings)
    records = await read(again)
    assert [record.payload for record in records] == [b"a", b"", b"c" * 5_000, b"d"]
    assert [Position(r.offset, r.timestamp) for r in records[:3]] == positions
    assert [each.payload async for batch in again.follow(2) for each in batch][1:] == [b"d"]
    await again.close()


async def test_calls_at_once_are_answered_in_their_order(tmp_path: Path) -> None:
    journal = opened(tmp_path, SMALL)
    answers = await asyncio.gather(
        *(journal.append([b"%d-%d" % (call, i) for i in range(call % 4)]) for call in range(200))
    )
    flat = [position for answer in answers for position in answer]
    assert [position.offset for position in flat] == list(range(300))
    assert [position.timestamp for position in flat] == sorted(p.timestamp for p in flat)
    written = [b"%d-%d" % (call, i) for call in range(200) for i in range(call % 4)]
    assert [record.payload for record in await read(journal)] == written
    await journal.close()


async def test_a_clock_that_goes_back_does_not_take_time_back(tmp_path: Path) -> None:
    times = iter([500, 300, 700])
    journal = EmbeddedJournal(tmp_path, IDENTITY, lambda: next(times))
    stamps = [(await journal.append([b"x"]))[0].timestamp for _ in range(3)]
    await journal.close()
    assert stamps == [500, 500, 700]
    late = EmbeddedJournal(tmp_path, IDENTITY, lambda: 1)
    assert (await late.append([b"x"]))[0].timestamp == 700
    await late.close()


async def test_files_are_begun_read_across_and_dropped(tmp_path: Path) -> None:
    journal = opened(tmp_path, SMALL)
    for number in range(60):
        await journal.append([b"%03d" % number * 20])
    assert len(files(tmp_path)) > 3
    for start in (0, 13, 59, 60):
        assert [r.offset for r in await read(journal, start)] == list(range(start, 60))
    await journal.truncate_before(30)
    first = journal.first_offset
    assert 20 < first <= 30
    with pytest.raises(JournalGap):
        await read(journal, first - 1)
    with pytest.raises(JournalGap):
        await read(journal, 61)
    await journal.close()
    again = opened(tmp_path, SMALL)
    assert (again.first_offset, again.last_offset) == (first, 59)
    assert (await again.append([b"x"]))[0].offset == 60
    await again.close()


async def test_an_empty_newest_file_keeps_the_time(tmp_path: Path) -> None:
    """The end of the process between a new file and its first command."""
    journal = EmbeddedJournal(tmp_path, IDENTITY, lambda: 900, EmbeddedSettings(segment_bytes=60))
    await journal.append([b"x" * 100])
    await journal.append([b"y"])
    await journal.close()
    newest = files(tmp_path)[-1]
    os.truncate(newest, SEGMENT_HEADER_BYTES)
    leftover = tmp_path / "00000000000000000009.journal.new"
    leftover.write_bytes(b"half")
    again = EmbeddedJournal(tmp_path, IDENTITY, lambda: 5)
    assert await again.append([b"z"]) == [Position(1, 900)]
    assert not leftover.exists()
    await again.close()


async def test_only_one_process_and_one_matcher(tmp_path: Path) -> None:
    journal = opened(tmp_path)
    with pytest.raises(JournalInUse):
        opened(tmp_path)
    await journal.close()
    with pytest.raises(LeadershipLost):
        await journal.append([b"x"])
    with pytest.raises(WrongJournal):
        EmbeddedJournal(tmp_path, bytes(32), lambda: 0)
    path = files(tmp_path)[0]
    data = bytearray(path.read_bytes())
    data[9] ^= 1
    path.write_bytes(data)
    with pytest.raises(WrongJournal):
        opened(tmp_path)
    path.write_bytes(b"something else")
    with pytest.raises(WrongJournal):
        opened(tmp_path)


async def test_a_tail_torn_at_any_byte_is_cut(tmp_path: Path) -> None:
    journal = opened(tmp_path)
    ends = []
    for number in range(4):
        await journal.append([b"command %d" % number])
        ends.append(files(tmp_path)[0].stat().st_size)
    await journal.close()
    whole = files(tmp_path)[0].read_bytes()
    for length in range(SEGMENT_HEADER_BYTES, len(whole) + 1):
        files(tmp_path)[0].write_bytes(whole[:length])
        journal = opened(tmp_path)
        kept = sum(end <= length for end in ends)
        assert journal.last_offset == kept - 1
        assert [p.offset for p in await journal.append([b"next"])] == [kept]
        assert (await read(journal))[-1].payload == b"next"
        await journal.close()


@given(hole=st.integers(0, 199), width=st.integers(1, 60), fill=st.binary(min_size=1, max_size=1))
def test_holes_in_what_nobody_was_answered_for_are_cut(hole: int, width: int, fill: bytes) -> None:
    """After a power failure any part of an unconfirmed group may be missing."""
    confirmed = encode_records(0, 1, SEGMENT_HEADER_BYTES, [b"first" * 3])
    end = SEGMENT_HEADER_BYTES + len(confirmed)
    group = encode_records(1, 2, end, [b"%d" % n * 10 for n in range(5)])
    torn = group[:hole] + (fill * width)[: len(group) - hole] + group[hole + width :]
    path = _Scratch.path
    path.write_bytes(bytes(SEGMENT_HEADER_BYTES) + confirmed + torn)
    scan = scan_segment(path, 0)
    assert scan.end >= end
    assert scan.next_offset >= 1
    assert torn == group or scan.end < end + len(group)


@given(st.binary(max_size=300))
def test_any_bytes_behind_a_header_are_scanned(data: bytes) -> None:
    path = _Scratch.path
    path.write_bytes(bytes(SEGMENT_HEADER_BYTES) + data)
    scan = scan_segment(path, 0)
    assert (scan.end, scan.next_offset) == (SEGMENT_HEADER_BYTES, 0)
    with pytest.raises(WrongJournal):
        read_segment_header(path, IDENTITY)


class _Scratch:
    path: Path


@pytest.fixture(autouse=True)
def _scratch(tmp_path_factory: pytest.TempPathFactory) -> None:
    _Scratch.path = tmp_path_factory.getbasetemp() / "scratch"


async def test_damage_to_what_was_answered_for_is_told(tmp_path: Path) -> None:
    journal = opened(tmp_path)
    ends = [SEGMENT_HEADER_BYTES]
    for number in range(3):
        await journal.append([b"command %d" % number])
        ends.append(files(tmp_path)[0].stat().st_size)
    await journal.close()
    path = files(tmp_path)[0]
    whole = path.read_bytes()
    for position in range(SEGMENT_HEADER_BYTES, ends[2]):
        path.write_bytes(whole[:position] + bytes([whole[position] ^ 0x40]) + whole[position + 1 :])
        with pytest.raises(JournalDamaged) as told:
            opened(tmp_path)
        assert told.value.offset == sum(end <= position for end in ends) - 1


async def test_damage_in_an_older_file_is_told_when_it_is_read(tmp_path: Path) -> None:
    journal = opened(tmp_path, SMALL)
    for number in range(40):
        await journal.append([b"%03d" % number * 20])
    await journal.close()
    oldest = files(tmp_path)[0]
    whole = oldest.read_bytes()
    for spoilt in (whole[:-1], whole[:-100] + b"X" + whole[-99:], whole[:SEGMENT_HEADER_BYTES]):
        oldest.write_bytes(spoilt)
        journal = opened(tmp_path, SMALL)
        with pytest.raises(JournalDamaged):
            await read(journal)
        await journal.close()


@contextmanager
def largest_file(size: int) -> Iterator[None]:
    """No file may become longer: for the writer the same as a disk that is full at this place."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


async def test_a_full_disk_refuses_and_goes_on_later(tmp_path: Path) -> None:
    journal = opened(tmp_path)
    await journal.append([b"before" * 10])
    size = files(tmp_path)[0].stat().st_size
    with largest_file(size + 50):
        outcomes = await asyncio.gather(
            *(journal.append([b"refused" * 10]) for _ in range(3)), return_exceptions=True
        )
        assert [type(outcome) for outcome in outcomes] == [JournalUnavailable] * 3
        assert files(tmp_path)[0].stat().st_size == size
        assert (await journal.append([b"small"]))[0].offset == 1
    assert (await journal.append([b"after" * 10]))[0].offset == 2
    assert [r.payload for r in await read(journal)] == [b"before" * 10, b"small", b"after" * 10]
    await journal.close()


async def test_no_room_for_a_new_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = opened(tmp_path, EmbeddedSettings(segment_bytes=100))
    await journal.append([b"x" * 200])
    with largest_file(20), pytest.raises(JournalUnavailable):
        await journal.append([b"y"])
    assert (await journal.append([b"z"]))[0].offset == 1
    assert [r.payload for r in await read(journal)] == [b"x" * 200, b"z"]
    await journal.close()


async def test_whoever_waits_hears_of_a_writer_that_fails_unforeseen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thread writes where the disk is slow: nobody would wait for it in vain."""
    journal = opened(tmp_path)
    await journal.append([b"a"])

    def failing(*_: object) -> bytes:
        raise MemoryError("there is none left")

    with monkeypatch.context() as patch:
        patch.setattr(Pace, "is_quick", lambda *_: False)
        patch.setattr(embedded, "encode_records", failing)
        waiting = [asyncio.create_task(journal.append([each])) for each in (b"b", b"c")]
        done, late = await asyncio.wait(waiting, timeout=60)
        assert not late
        assert {type(each.exception()) for each in done} == {LeadershipLost}
        await asyncio.wait_for(journal.term_ended(), 60)
    await journal.close()


async def test_a_disk_that_does_not_confirm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = opened(tmp_path)
    await journal.append([b"a"])

    def failing(_descriptor: int) -> None:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fdatasync", failing)
        with pytest.raises(JournalUnavailable):
            await journal.append([b"b"])
        assert journal._broken is None
        patch.setattr(os, "ftruncate", lambda *_: failing(0))
        outcomes = await asyncio.gather(
            journal.append([b"c"]), journal.append([b"d"]), return_exceptions=True
        )
        assert [type(outcome) for outcome in outcomes] == [LeadershipLost, LeadershipLost]
        await asyncio.wait_for(journal.term_ended(), 60)
        assert journal._broken is not None
        with pytest.raises(LeadershipLost):
            await journal.append([b"e"])
    await journal.close()
    again = opened(tmp_path)
    assert [record.payload for record in await read(again)][:1] == [b"a"]
    await again.close()


async def test_a_late_confirmation_that_fails_ends_the_term(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = opened(tmp_path, EmbeddedSettings(sync=Sync.INTERVAL, sync_interval=0.005))

    def failing(_descriptor: int) -> None:
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fdatasync", failing)
        await journal.append([b"a"])
        await asyncio.wait_for(journal.term_ended(), 60)
    assert journal._broken is not None
    await journal.close()


async def test_a_cancelled_call_is_stored_all_the_same(tmp_path: Path) -> None:
    journal = opened(tmp_path)
    task = asyncio.create_task(journal.append([b"a"]))
    await asyncio.sleep(0)
    task.cancel()
    assert (await journal.append([b"b"]))[0].offset == 1
    await journal.close()
