"""A store that another process writes: what is read belongs together, whenever that writes."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from soliton.storage.errors import StorageProblem
from soliton.storage.store import Store
from tests.storage.test_store import FOLLOWER, block

ROUNDS = 100
KEYS = 50

READER = """
import sys
from pathlib import Path
from soliton.storage.database import Database

database = Database(Path(sys.argv[1]), durable=False, exclusive=False)
views = []

def numbers(view):
    got = {view.get(b"k%d" % key) for key in range(int(sys.argv[2]))}
    scanned = {value for _, value in view.scan(b"k", b"k")}
    back = {value for _, value in view.scan_back(b"k")}
    assert got == scanned == back and len(got) == 1, (got, scanned, back)
    return got.pop()

for line in sys.stdin:
    news = database.follow()
    if line.strip() == "keep":
        views.append((database.snapshot(), numbers(database)))
    if line.strip() == "drop" and views:
        views.pop(0)[0].close()
    for view, number in views:
        assert numbers(view) == number
    print(numbers(database).decode(), news, flush=True)
"""


class Reader:
    """Another process that reads a store."""

    def __init__(self, directory: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", READER, str(directory), str(KEYS)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def look(self, order: str = "") -> str:
        assert self._process.stdin and self._process.stdout
        self._process.stdin.write(order + "\n")
        self._process.stdin.flush()
        return self._process.stdout.readline().strip()

    def end(self) -> None:
        with self._process:
            self._process.kill()


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store(tmp_path, "net", durable=False)
    yield opened
    opened.close()


@pytest.fixture
def reader(store: Store, tmp_path: Path) -> Iterator[Reader]:
    _write(store, 0)
    opened = Reader(tmp_path)
    assert opened.look().startswith("0 ")
    yield opened
    opened.end()


def _write(store: Store, number: int) -> None:
    items: dict[bytes, bytes | None] = {b"k%d" % key: b"%d" % number for key in range(KEYS)}
    store.database.write(items)


def test_readers_see_the_last_batch_whole(store: Store, reader: Reader) -> None:
    """Whatever the writer has moved to tables, and whichever views of the past are open."""
    moves = random.Random(3)
    data = store.database._instance.data
    for number in range(1, ROUNDS):
        _write(store, number)
        if moves.random() < 0.2:
            data.flush()
        if moves.random() < 0.05:
            data.compact_range(None, None)
        assert reader.look(moves.choice(("", "", "keep", "drop"))) == f"{number} True"
        if moves.random() < 0.1:
            data.flush()
            assert reader.look() == f"{number} False"


def test_a_reader_needs_a_chain(tmp_path: Path) -> None:
    with pytest.raises(StorageProblem, match="holds no chain"):
        Store(tmp_path / "none", "net", exclusive=False)
    assert not (tmp_path / "none").exists()


def test_readers_go_on_when_the_writer_is_killed(tmp_path: Path) -> None:
    store = Store(tmp_path, "net", durable=False)
    store.append(block(1))
    store.close()
    with subprocess.Popen(
        [sys.executable, "-c", FOLLOWER, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as follower:
        assert follower.stdin and follower.stdout
        for height in (2, 3, 4):
            program = (
                "import os, sys; from pathlib import Path\n"
                "from soliton.storage.store import Store\n"
                "from tests.storage.test_store import block\n"
                "store = Store(Path(sys.argv[1]), 'net', durable=False)\n"
                "store.append(block(int(sys.argv[2]))); store.flush(); os.kill(os.getpid(), 9)"
            )
            subprocess.run([sys.executable, "-c", program, str(tmp_path), str(height)], check=False)
            follower.stdin.write("\n")
            follower.stdin.flush()
            assert follower.stdout.readline().startswith(f"True {height} ")
        follower.kill()
