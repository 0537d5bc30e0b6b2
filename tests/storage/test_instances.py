"""What readers of another process's store cost: instances of the database, and files."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from rocksdict import Rdict

from soliton.storage import database, engine
from soliton.storage.database import Database
from soliton.storage.store import Store
from tests.storage.test_store import block

ROUNDS = 20

READER = """
import sys
from pathlib import Path
from soliton.storage.database import Database

database = Database(Path(sys.argv[1]), durable=False, exclusive=False)
print("open", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store(tmp_path / "chain", "net", durable=False)
    opened.append(block(1))
    opened.flush()
    _write(opened, 0)
    yield opened
    opened.close()


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory for temporary files."""
    found = tmp_path / "temporary"
    found.mkdir()
    monkeypatch.setenv("TMPDIR", str(found))
    monkeypatch.setattr("tempfile.tempdir", None)
    return found


@pytest.fixture
def openings(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is opened: instances that follow, and checks of all tables."""
    found: list[str] = []

    def noted(kind: str, name: str) -> None:
        opening = getattr(engine, name)

        def open_one(*arguments: Path) -> Rdict:
            found.append(kind)
            opened: Rdict = opening(*arguments)
            return opened

        monkeypatch.setattr(database, name, open_one)

    noted("follow", "open_secondary")
    noted("check", "open_unchanged")
    return found


@pytest.fixture
def reader(store: Store, openings: list[str], temporary: Path) -> Iterator[Database]:
    opened = Database(store.database.directory, durable=False, exclusive=False)
    assert openings == ["check", "follow"]
    openings.clear()
    yield opened
    opened.close()
    assert not list(temporary.iterdir())


def _write(store: Store, number: int) -> None:
    store.database.write({b"k": b"%d" % number})


def test_nobody_looks_at_the_past(store: Store, reader: Database, openings: list[str]) -> None:
    for number in range(1, ROUNDS):
        _write(store, number)
        assert reader.follow()
        assert reader.get(b"k") == b"%d" % number
    assert openings == []


def test_one_slow_reader_costs_one_instance(
    store: Store, reader: Database, openings: list[str]
) -> None:
    slow = reader.snapshot()
    for number in range(1, ROUNDS):
        _write(store, number)
        assert reader.follow()
        assert (reader.get(b"k"), slow.get(b"k")) == (b"%d" % number, b"0")
    assert openings == ["follow"]
    slow.close()


@pytest.mark.parametrize("slow", [0, 1, 3])
def test_whoever_compares_each_moment_with_the_last_costs_one_more(
    store: Store, reader: Database, openings: list[str], slow: int
) -> None:
    """So do the events of gRPC: the view of the last event is open until the next one."""
    held: list[tuple[int, Database]] = []
    last = reader.snapshot()
    for number in range(1, ROUNDS):
        _write(store, number)
        assert reader.follow()
        after = reader.snapshot()
        assert (last.get(b"k"), after.get(b"k")) == (b"%d" % (number - 1), b"%d" % number)
        if len(held) < slow:
            held.append((number, reader.snapshot()))
        for then, view in held:
            assert view.get(b"k") == b"%d" % then
        last.close()
        last = after
    assert openings == ["follow"] * (1 + slow)
    for _, view in held:
        view.close()
    last.close()


def test_other_tables_are_checked_once(store: Store, reader: Database, openings: list[str]) -> None:
    slow = reader.snapshot()
    store.database.flush()
    for number in range(1, ROUNDS):
        _write(store, number)
        assert reader.follow()
        last = reader.snapshot()
        assert (last.get(b"k"), slow.get(b"k")) == (b"%d" % number, b"0")
        last.close()
    assert openings == ["check", "follow"]
    slow.close()


def test_files_of_killed_readers_go_with_the_next_start(store: Store, temporary: Path) -> None:
    def start() -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-c", READER, str(store.database.directory)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert process.stdout is not None
        assert process.stdout.readline() == "open\n"
        return process

    def left() -> set[str]:
        return {each.name for each in temporary.iterdir()}

    with start() as killed, start() as alive:
        both = left()
        assert len(both) == 2
        killed.kill()
        killed.wait()
        assert left() == both
        with start() as third:
            assert len(left()) == 2
            assert len(left() & both) == 1
            third.kill()
        alive.kill()
    elsewhere = temporary / "soliton-reader-link"
    elsewhere.symlink_to(store.database.directory)
    Database(store.database.directory, durable=False, exclusive=False).close()
    assert left() == {"soliton-reader-link"}
    assert any(store.database.directory.iterdir())
