"""Snapshots on disk: the newest whole one counts."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from soliton.matcher.journal.errors import JournalProblem
from soliton.matcher.journal.snapshots import Snapshot, SnapshotStore

IDENTITY = b"i" * 32


def test_the_newest_counts_and_few_are_kept(tmp_path: Path) -> None:
    store = SnapshotStore(tmp_path, IDENTITY)
    assert next(store.all(), None) is None
    for offset in (5, 100, 20_000):
        store.save(offset, [b"state ", b"at %d" % offset])
    assert list(store.all()) == [
        Snapshot(20_000, b"state at 20000"),
        Snapshot(100, b"state at 100"),
    ]


def test_what_cannot_be_read_takes_nobodys_place(tmp_path: Path) -> None:
    """The journal is cut behind the older of two: both have to be there, and whole."""
    store = SnapshotStore(tmp_path, IDENTITY)
    for offset in (1, 2):
        store.save(offset, [b"at %d" % offset])
    (tmp_path / f"{2:020}.snapshot").write_bytes(bytes(100))
    (tmp_path / f"{9:020}.snapshot").write_bytes(b"")
    (tmp_path / "zz.snapshot").write_bytes(b"no number")
    store.save(3, [b"at 3"])
    assert list(store.all()) == [Snapshot(3, b"at 3"), Snapshot(1, b"at 1")]
    store.save(4, [b"at 4"])
    assert list(store.all()) == [Snapshot(4, b"at 4"), Snapshot(3, b"at 3")]


def test_a_snapshot_with_any_byte_changed_is_left_aside(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = SnapshotStore(tmp_path, IDENTITY)
    store.save(1, [b"older"])
    store.save(2, [b"newer"])
    path = max(tmp_path.glob("*.snapshot"))
    whole = path.read_bytes()
    spoilt = [whole[:n] + bytes([whole[n] ^ 1]) + whole[n + 1 :] for n in range(len(whole))]
    with caplog.at_level(logging.ERROR):
        for data in [*spoilt, b"", whole[:-1], whole + b"x"]:
            path.write_bytes(data)
            assert next(store.all(), None) == Snapshot(1, b"older")
    path.write_bytes(whole)
    assert next(store.all(), None) == Snapshot(2, b"newer")
    assert next(SnapshotStore(tmp_path, b"o" * 32).all(), None) is None


def test_half_a_snapshot_is_cleared_away(tmp_path: Path) -> None:
    (tmp_path / "00000000000000000007.snapshot.new").write_bytes(b"half")
    assert next(SnapshotStore(tmp_path, IDENTITY).all(), None) is None
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "file").touch()
    with pytest.raises(JournalProblem):
        SnapshotStore(tmp_path / "file", IDENTITY)
