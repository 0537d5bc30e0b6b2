"""Stores of earlier versions: refused by all other commands, and upgraded in place.

``layouts`` has a store of each layout that a version of the program has written, in the form that
it had on the disk. Its chain has 20 blocks.
"""

from __future__ import annotations

import lzma
import os
import random
import shutil
from pathlib import Path

import pytest

from soliton.storage import upgrade as upgrading
from soliton.storage.directories import take_ownership
from soliton.storage.errors import DamagedStore, StoreInUse, WrongStore
from soliton.storage.lmdb_file import lmdb_file
from soliton.storage.store import Store
from soliton.storage.upgrade import upgrade
from tests.blocks import blocks, typed
from tests.cli.test_chain_snapshots import KILLS, kill_at_some_moment
from tests.e2e.programs import run
from tests.node.chains import DEVNET
from tests.storage.rows import read_rows

HEIGHT = 20
STATE_HASH = "d80fc13ba56dc450151af3c0910d53a8e00ad1e539f14bc3cea220b05cfee669"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """The data directory of a node of layout 2."""
    directory = tmp_path / "node" / "data"
    directory.mkdir(parents=True)
    packed = (Path(__file__).parent / "layouts" / "layout-2.mdb.xz").read_bytes()
    (directory / "data.mdb").write_bytes(lzma.decompress(packed))
    return directory


def nothing(_done: int, _total: int) -> None:
    """Nobody looks at the progress."""


def test_a_node_upgrades_its_store(data: Path) -> None:
    where = ("--network", "devnet", "--data-dir", data.parent)
    for command in (("verify",), ("state-hash", 5), ("run",)):
        refused = run(*command, *where)
        assert refused.returncode == 1
        assert f"`soliton db upgrade {data}`" in refused.stderr
    done = run("db", "upgrade", data)
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith(" records are upgraded\n")
    assert not list(data.glob("*.mdb"))
    # Read as records: the rules of the devnet are others by now.
    store = Store(data, DEVNET.name)
    last = store.meta(HEIGHT)
    assert (store.height, last and last.state_hash.hex()) == (HEIGHT, STATE_HASH)
    assert store.block_data(HEIGHT) is not None
    store.close()
    again = run("db", "upgrade", data)
    assert again.returncode == 1
    assert "has no store of an earlier version" in again.stderr


def test_an_upgrade_goes_on_where_it_was(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with lmdb_file(data / "data.mdb") as file:
        rows = dict(file.rows())
        assert file.count == len(rows)
        keys = sorted(rows)
        for after in (keys[0], keys[len(keys) // 2], keys[-1], keys[3] + b"\0"):
            assert [key for key, _ in file.rows(after)] == [key for key in keys if key > after]
    monkeypatch.setattr(upgrading, "BATCH_BYTES", 2_000)
    reports = 0

    class Killed(BaseException):
        pass

    def kill(_done: int, _total: int) -> None:
        nonlocal reports
        reports += 1
        if reports % 3 == 0:
            raise Killed

    for _ in range(100):
        try:
            upgrade(data, kill)
        except Killed:
            with pytest.raises(WrongStore):
                Store(data, DEVNET.name)
            continue
        break
    assert reports > 10
    assert read_rows(data) == {**rows, b"!layout": b"\3"}


def test_two_do_not_upgrade(data: Path) -> None:
    descriptor = take_ownership(data)
    with pytest.raises(StoreInUse):
        upgrade(data, nothing)
    os.close(descriptor)
    assert upgrade(data, nothing) > 100


def test_what_cannot_be_upgraded(data: Path) -> None:
    whole = (data / "data.mdb").read_bytes()
    for wrong in (b"", b"no database" * 900, whole[: len(whole) // 2]):
        (data / "data.mdb").write_bytes(wrong)
        with pytest.raises(DamagedStore):
            upgrade(data, nothing)
        assert (data / "data.mdb").read_bytes() == wrong
    (data / "data.mdb").write_bytes(whole)
    assert upgrade(data, nothing) > 100


def test_killed_at_any_moment(data: Path) -> None:
    packed = (data / "data.mdb").read_bytes()
    upgrade(data, nothing)
    expected = read_rows(data)
    chosen = random.Random(34)
    for number in range(KILLS):
        place = data.with_name(f"data-{number}")
        place.mkdir()
        (place / "data.mdb").write_bytes(packed)
        kill_at_some_moment(["db", "upgrade", place], chosen.uniform(0.2, 1.4))
        if (place / "data.mdb").exists():
            ended = run("db", "upgrade", place)
            assert ended.returncode == 0, ended.stderr
        assert read_rows(place) == expected
        shutil.rmtree(place)


def test_the_page_is_walked(data: Path, tmp_path: Path) -> None:
    (upgrading,) = blocks("docs/how-to/upgrade.md")
    told = typed(upgrading.partition("soliton verify")[0], tmp_path)
    assert "records are upgraded" in told
    # The rules of the devnet are others by now: only a chain of today is verified as a whole.
    assert "soliton verify" in upgrading
    assert data.is_dir()
