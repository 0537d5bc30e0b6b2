"""``soliton db``: counts, copies and compaction of a store."""

from __future__ import annotations

from pathlib import Path

import pytest

from soliton.node.pruning import prune_all
from soliton.storage import keeping
from soliton.storage.store import Store
from tests.cli.test_damage import HEIGHT
from tests.e2e.programs import run
from tests.node.chains import DEVNET, RICH, mine, open_chain, person, transfer
from tests.storage.rows import read_rows


@pytest.fixture
def store(tmp_path: Path) -> Store:
    chain = open_chain(tmp_path / "node" / "data", DEVNET)
    for number in range(2, HEIGHT + 1):
        mine(chain, [transfer(chain, RICH, person(f"friend {number}"), number)])
    assert isinstance(chain.store, Store)
    return chain.store


def test_a_store_in_use_is_counted_and_copied(store: Store, tmp_path: Path) -> None:
    data, target = tmp_path / "node" / "data", tmp_path / "copy" / "data"
    counted = run("db", "stats", data)
    assert counted.returncode == 0, counted.stderr
    assert f"{HEIGHT:>14,}" in counted.stdout
    for kind in ("a balance", "the bytes of a block", "bytes  all", "on the disk"):
        assert kind in counted.stdout
    copied = run("db", "copy", data, target)
    assert copied.returncode == 0, copied.stderr
    assert read_rows(target) == dict(store.scan(b"", b""))
    again = run("db", "copy", data, target)
    assert (again.returncode, again.stderr) == (1, f"soliton: {target} is not empty\n")
    refused = run("db", "compact", data)
    assert refused.returncode == 1
    assert "another process writes to the chain" in refused.stderr
    store.close()
    checked = run("verify", "--network", "devnet", "--data-dir", tmp_path / "copy")
    assert checked.returncode == 0, checked.stderr


def test_a_store_is_compacted(store: Store, tmp_path: Path) -> None:
    rows = dict(store.scan(b"", b""))
    store.close()
    compacted = run("db", "compact", tmp_path / "node" / "data")
    assert compacted.returncode == 0, compacted.stderr
    assert "bytes after" in compacted.stdout
    assert read_rows(tmp_path / "node" / "data") == rows


def test_what_is_no_store(tmp_path: Path) -> None:
    for command in (("stats",), ("copy",), ("compact",)):
        more = [tmp_path / "target"] if command == ("copy",) else []
        ended = run("db", *command, tmp_path / "none", *more)
        assert ended.returncode in (1, 2)
        assert "Traceback" not in ended.stderr
        assert "none" in ended.stderr


def test_commands_know_the_mode_of_a_store(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keeping, "LEAST_BLOCKS", 2)
    store._keep(keeping.Keeping("pruned", blocks=4, rollback_depth=2))
    prune_all(store)
    kept = store.kept
    assert kept.blocks_from > 2
    store.close()
    node = ("--network", "devnet", "--data-dir", tmp_path / "node")
    assert run("db", "stats", tmp_path / "node" / "data").stdout.startswith(f"{kept.text}\n")
    verified = run("verify", *node)
    assert (verified.returncode, f"{HEIGHT} blocks" in verified.stdout) == (0, True)
    refused = run("export", tmp_path / "blocks.bin", *node)
    assert refused.returncode == 1 and "db.mode = full" in refused.stderr
    assert not [each for each in tmp_path.iterdir() if each.name.startswith("blocks.bin")]
