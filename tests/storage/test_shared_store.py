"""A store that another process writes: what is read belongs together, whenever that writes."""

from __future__ import annotations

import copy
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lmdb
import pytest

from soliton.storage.database import Snapshots
from soliton.storage.environment import CLOSED
from soliton.storage.store import Store
from tests.storage.test_store import FOLLOWER, block


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = Store(tmp_path, "net", durable=False)
    yield opened
    opened.close()


class _Meanwhile:
    """An environment where something happens between the first reading and the second."""

    def __init__(self, environment: lmdb.Environment, happens: Iterator[None]) -> None:
        self._environment = environment
        self._happens = happens

    def begin(self, **options: Any) -> lmdb.Transaction:
        if options.get("buffers"):
            next(self._happens, None)
        return self._environment.begin(**options)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._environment, name)


def test_what_is_read_together_is_of_one_time(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process may write at any moment; here this one does, between two readings."""
    store.append(block(1))
    store.flush()
    environment = store.database._env

    def writing() -> Iterator[None]:
        with environment.begin(write=True) as other:
            other.put(b"zz", b"1")
        yield

    monkeypatch.setattr(store.database, "_env", _Meanwhile(environment, writing()))
    assert store.follow() is True
    assert store.database._read.id() == store.database._views.id()
    monkeypatch.setattr(store.database, "_env", _Meanwhile(environment, writing()))
    snapshot = store.snapshot()
    assert snapshot.database._read.id() == snapshot.database._views.id()
    snapshot.close()


def test_a_snapshot_has_the_height_of_what_it_reads(tmp_path: Path, store: Store) -> None:
    """The process that writes may have gone on since this one looked."""
    for height in (1, 2, 3):
        store.append(block(height))
    store.flush()
    copied = copy.copy(store)
    copied._db = copy.copy(store.database)
    copied.database.snapshots = Snapshots()
    store.rollback(1)
    # What a process sees that has not looked again: it is still at height 3.
    copied.database._read = copied.database._views = CLOSED
    copied.database.refresh()
    snapshot = copied.snapshot()
    assert snapshot.height == 1
    assert snapshot.meta(3) is None
    snapshot.close()
    copied.database._stop_reading()


def test_what_a_killed_process_read_is_let_go_when_the_next_one_writes(tmp_path: Path) -> None:
    """Pages that it saw could not be reused before."""
    store = Store(tmp_path, "net", durable=False)
    store.append(block(1))
    store.close()
    command = [sys.executable, "-c", FOLLOWER, str(tmp_path)]
    pipe = subprocess.PIPE
    # As long as one of them lives, nobody begins with an empty list of readers.
    with (
        subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as stays,
        subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as goes,
    ):
        for process in (stays, goes):
            assert process.stdin and process.stdout
            process.stdin.write("\n")
            process.stdin.flush()
            assert process.stdout.readline().startswith("False 1 ")
        goes.kill()
        goes.wait()
        store = Store(tmp_path, "net", durable=False)
        reading = {int(line.split()[0]) for line in store.database._env.readers().splitlines()[1:]}
        assert stays.pid in reading
        assert goes.pid not in reading
        store.close()
        stays.kill()
