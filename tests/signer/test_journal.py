"""The audit log: lines that chain, what a start finds after crashes, damage, and full disks."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Final

import msgspec
import pytest

from soliton.signer import journal as journal_module
from soliton.signer.boot_clock import BootClock
from soliton.signer.journal import (
    AuditProblem,
    AuditUnavailable,
    Journal,
    read_all,
    segments,
)
from soliton.signer.records import FIRST_BEFORE, Entry, Event, line_hash
from soliton.signer.state import SignerState
from soliton.signer.windows import Charge, Windows

FILE: Final = "audit-00000001.jsonl"


def entry(caller: str = "bot", **more: object) -> Entry:
    return Entry(0, "", 1_000, 5, Event.SIGN, caller=caller, **more)  # type: ignore[arg-type]


def opened(directory: Path, *, durable: bool = False) -> tuple[Journal, list[Entry]]:
    journal, found = Journal(directory, durable=durable), list[Entry]()
    try:
        journal.load(lambda each, _segment: found.append(each))
    except BaseException:
        journal.close()
        raise
    return journal, found


def write(journal: Journal, *entries: Entry) -> list[OSError | None]:
    problems: list[OSError | None] = []
    for each in entries:
        journal.append(each, problems.append)
    return problems


def test_lines_chain_and_come_again(tmp_path: Path) -> None:
    journal, found = opened(tmp_path)
    assert found == []
    assert write(journal, entry("a"), entry("b"), entry("c")) == [None] * 3
    head = journal.head
    journal.close()
    lines = (tmp_path / FILE).read_bytes().splitlines()
    before = FIRST_BEFORE
    for number, line in enumerate(lines, 1):
        shown = msgspec.json.decode(line)
        assert (shown["number"], shown["before"]) == (number, before)
        before = line_hash(line)
    assert head == (3, before)
    journal, found = opened(tmp_path)
    assert [each.caller for each in found] == ["a", "b", "c"]
    assert journal.head == head
    write(journal, entry("d"))
    journal.close()
    assert [each.caller for each, _ in read_all(tmp_path)] == ["a", "b", "c", "d"]
    assert (tmp_path / FILE).stat().st_mode & 0o777 == 0o600


async def test_lines_that_come_together_share_a_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal, _ = opened(tmp_path, durable=True)
    syncs: list[int] = []
    real = os.fdatasync

    def counted(file: int) -> None:
        syncs.append(file)
        real(file)

    monkeypatch.setattr(os, "fdatasync", counted)
    all_done = asyncio.Event()
    problems: list[OSError | None] = []

    def done(problem: OSError | None) -> None:
        problems.append(problem)
        if len(problems) == 100:
            all_done.set()

    for number in range(100):
        journal.append(entry(str(number)), done)
    await asyncio.wait_for(all_done.wait(), 60)
    assert problems == [None] * 100
    assert len(syncs) == 1
    journal.close()
    assert [each.caller for each, _ in read_all(tmp_path)] == [str(n) for n in range(100)]


def test_a_line_without_an_end_is_dropped_wherever_it_was_cut(tmp_path: Path) -> None:
    journal, _ = opened(tmp_path / "whole")
    write(journal, entry("a"), entry("b"))
    journal.close()
    data = (tmp_path / "whole" / FILE).read_bytes()
    ends = [0, *(at + 1 for at, byte in enumerate(data) if byte == 10)]
    for length in range(len(data) + 1):
        for tail in (b"", b"\0" * 20):
            place = tmp_path / f"{length}-{len(tail)}"
            place.mkdir()
            (place / FILE).write_bytes(data[:length] + tail)
            journal, found = opened(place)
            whole = sum(end <= length for end in ends[1:])
            assert len(found) == whole
            write(journal, entry("z"))
            journal.close()
            assert len(list(read_all(place))) == whole + 1


def test_damage_stops_the_start_and_names_the_line(tmp_path: Path) -> None:
    journal, _ = opened(tmp_path)
    write(journal, *(entry(str(number)) for number in range(5)))
    journal.close()
    path = tmp_path / FILE
    lines = path.read_bytes().splitlines(keepends=True)
    changed = [
        ([*lines[:2], lines[2].replace(b'"2"', b'"9"'), *lines[3:]], 4),
        ([*lines[:2], *lines[3:]], 3),
        ([*lines[:2], lines[1], *lines[2:]], 3),
        ([lines[0], lines[2], lines[1], *lines[3:]], 2),
        ([*lines[:2], b"{}\n", *lines[3:]], 3),
        ([*lines[:2], b"\xff\n", *lines[3:]], 3),
        ([*lines[:2], b"\n", *lines[2:]], 3),
        (lines[1:], 1),
    ]
    for damaged, place in changed:
        path.write_bytes(b"".join(damaged))
        with pytest.raises(AuditProblem, match=rf"{FILE}:{place}: "):
            opened(tmp_path)
        with pytest.raises(AuditProblem, match=rf"{FILE}:{place}: "):
            list(read_all(tmp_path))
    path.write_bytes(b"".join(lines))
    journal, found = opened(tmp_path)
    journal.close()
    assert len(found) == 5


def test_a_second_process_is_refused(tmp_path: Path) -> None:
    journal, _ = opened(tmp_path)
    with pytest.raises(AuditUnavailable, match="another signer uses"):
        Journal(tmp_path)
    journal.close()
    Journal(tmp_path).close()


def test_a_full_disk_fails_lines_and_goes_on_when_there_is_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal, _ = opened(tmp_path)
    write(journal, entry("a"))
    room = 40
    real = os.write

    def short_of_room(file: int, data: bytes) -> int:
        nonlocal room
        if room <= 0:
            raise OSError(28, "No space left on device")
        written = real(file, bytes(data)[:room])
        room -= written
        return written

    monkeypatch.setattr(os, "write", short_of_room)
    assert [type(each) for each in write(journal, entry("b"), entry("c"))] == [OSError] * 2
    # A part of the line is in the file; the line that there is room for takes its place.
    room = 10_000
    assert write(journal, entry("d")) == [None]
    journal.close()
    assert [each.caller for each, _ in read_all(tmp_path)] == ["a", "d"]


async def test_lines_behind_one_that_fails_fail_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal, _ = opened(tmp_path, durable=True)

    def fails(_file: int, _data: bytes) -> int:
        raise OSError(28, "No space left on device")

    def appended(caller: str) -> asyncio.Future[OSError | None]:
        future: asyncio.Future[OSError | None] = asyncio.get_running_loop().create_future()
        journal.append(entry(caller), future.set_result)
        return future

    with monkeypatch.context() as patched:
        patched.setattr(os, "write", fails)
        waiting = [appended(str(number)) for number in range(5)]
        problems = await asyncio.wait_for(asyncio.gather(*waiting), 60)
    assert all(isinstance(each, OSError) for each in problems)
    assert await asyncio.wait_for(appended("z"), 60) is None
    journal.close()
    assert [(each.number, each.caller) for each, _ in read_all(tmp_path)] == [(1, "z")]


def clock(at: list[int], boot: str = "first") -> BootClock:
    return BootClock(lambda: at[0], lambda: boot)


def reopened(directory: Path, book: SignerState) -> Journal:
    journal = Journal(directory, durable=False)
    journal.load(book.replay)
    book.resume()
    return journal


def test_a_full_file_is_followed_by_another_that_remembers_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal_module, "SEGMENT_BYTES", 600)
    at = [1_000]
    book = SignerState(clock(at))
    journal = reopened(tmp_path, book)
    for number in range(30):
        if journal.is_full:
            journal.append(book.checkpoint(1), lambda _problem: None)
        charge = Charge("rule", 3_600_000, 10)
        line = entry(
            request=f"id-{number}", digest="d", charges=(charge,), proofs=("p",), stamps=(1,)
        )
        line = msgspec.structs.replace(line, time=book.clock.now())
        segment = journal.segment
        book.windows.charge([charge], line.time)
        journal.append(line, lambda _problem: None)
        book.apply(line, segment)
        at[0] += 1
    waiting = entry(pending="w", request_json="{}", expires=10**12, approvers=("a",), needed=1)
    waiting = msgspec.structs.replace(waiting, event=Event.ASK)
    journal.append(waiting, lambda _problem: None)
    journal.append(book.checkpoint(1), lambda _problem: None)
    journal.close()
    assert len(segments(tmp_path)) > 3
    assert len(list(read_all(tmp_path))) > 30
    again = SignerState(clock(at))
    reopened(tmp_path, again).close()
    assert again.windows.spent("rule", 3_600_000, again.clock.now()) == 300
    assert [name for _, name in again.used] == [f"id-{number}" for number in range(30)]
    # Older files may be put away; one from the middle may not.
    second = tmp_path / "audit-00000002.jsonl"
    kept = second.read_bytes()
    second.unlink()
    with pytest.raises(AuditProblem, match="a file of the audit log is missing"):
        opened(tmp_path)
    second.write_bytes(kept)
    (tmp_path / FILE).unlink()
    assert next(iter(read_all(tmp_path)))[0].event is Event.CHECKPOINT


def test_a_file_that_was_begun_and_has_no_line_is_forgotten(tmp_path: Path) -> None:
    journal, _ = opened(tmp_path)
    write(journal, entry("a"))
    journal.close()
    (tmp_path / "audit-00000002.jsonl").write_bytes(b'{"number":2,"bef')
    journal, found = opened(tmp_path)
    assert [each.caller for each in found] == ["a"]
    write(journal, entry("b"))
    journal.close()
    assert [each.caller for each, _ in read_all(tmp_path)] == ["a", "b"]


# --- time -----------------------------------------------------------------------------------------


def test_the_time_goes_on_over_a_restart_and_stands_still_over_a_boot() -> None:
    at = [50_000]
    first = clock(at)
    assert first.now() == 0
    at[0] += 700
    assert first.now() == 700
    at[0] -= 600
    assert first.now() == 700
    at[0] = 60_000
    same = clock(at)
    same.resume(9_000, 700, "first", 50_700)
    assert same.now() == 10_000
    other = clock(at, "second")
    other.resume(9_000, 700, "first", 50_700)
    assert other.now() == 9_000
    at[0] += 5
    assert other.now() == 9_005
    unknown = clock(at, "")
    unknown.resume(9_000, 700, "", 50_700)
    assert unknown.now() == 9_000


def test_what_is_taken_back_counts_no_more_and_never_less_than_nothing() -> None:
    windows = Windows()
    charge = Charge("a", 64_000, 10)
    windows.charge([charge], 0)
    windows.charge([charge], 30_000)
    windows.take_back([charge], 0)
    assert windows.spent("a", 64_000, 30_000) == 10
    windows.take_back([charge], 30_000)
    assert windows.spent("a", 64_000, 30_000) == 0
    windows.charge([charge], 30_000)
    for now in range(30_000, 94_000, 500):
        assert windows.spent("a", 64_000, now) == 10
    assert windows.spent("a", 64_000, 96_000) == 0
