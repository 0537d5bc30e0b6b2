"""``soliton backup`` and ``soliton restore``: the services' files, beside the services and back."""

from __future__ import annotations

import json
import os
import random
import shutil
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from soliton.cli import backup_files
from soliton.cli.backup_files import Kind, Place, back_up, put_back, read_backup
from soliton.cli.snapshot_files import TargetInUse
from soliton.signer.journal import RESTORED_NAME, AuditUnavailable, Journal
from soliton.storage.parts import SnapshotProblem
from tests.blocks import blocks, typed
from tests.cli.test_chain_snapshots import KILLS, grow, kill_at_some_moment
from tests.e2e.programs import run
from tests.node.chains import DEVNET, open_chain
from tests.storage.rows import read_rows

FLIPS = int(os.environ.get("SOLITON_FLIPS", "12"))


@pytest.fixture
def node(tmp_path: Path) -> Path:
    """The files of all services, with a configuration that names them."""
    node = tmp_path / "node"
    for store in (node / "data", node / "matcher" / "orders"):
        chain = open_chain(store, DEVNET)
        grow(chain, 5)
        chain.store.close()
    for name, content in {
        "wallet/wallet.dat": b"encrypted",
        "endorsed.json": b"{}",
        "keys/one.key.json": b"{}",
        "keys/lock": b"",
        "policy.toml": b"version = 1\n",
        "signer/audit-00000001.jsonl": b'{"a":1}\n' * 50,
        "signer/lock": b"",
        "matcher/journal/00000000000000000000.journal": b"journal",
        "matcher/snapshots/00000000000000000001.snapshot": b"snapshot",
        "matcher/quarantine.jsonl": b"{}\n",
        "secret": b"of a caller",
    }.items():
        (node / name).parent.mkdir(parents=True, exist_ok=True)
        (node / name).write_bytes(content)
    (node / "node.conf").write_text(
        f"""soliton {{
          directory = "{node}"
          blockchain.type = devnet
          wallet {{ file = "{node}/wallet/wallet.dat", password = "some password" }}
          signer {{
            keys-directory = "{node}/keys"
            policy-file = "{node}/policy.toml"
          }}
        }}
        """
    )
    return node


def options_of(node: Path) -> list[object]:
    return ["--network", "devnet", "--config", node / "node.conf", "--include", node / "secret"]


def places_in(node: Path) -> list[Place]:
    """What the settings of ``node`` and of a matcher there name."""
    return [
        Place("node/data", node / "data", Kind.STORE),
        Place("node/wallet.dat", node / "wallet" / "wallet.dat", Kind.FILE),
        Place("signer/keys", node / "keys", Kind.FILES),
        Place("signer/policy", node / "policy.toml", Kind.FILE),
        Place("signer/state", node / "signer", Kind.FILES),
        Place("matcher/snapshots", node / "matcher" / "snapshots", Kind.FILES),
        Place("matcher/orders", node / "matcher" / "orders", Kind.STORE),
        Place("matcher/journal", node / "matcher" / "journal", Kind.FILES),
        Place("matcher/quarantine.jsonl", node / "matcher" / "quarantine.jsonl", Kind.FILE),
    ]


def test_node_and_signer_are_backed_up_and_restored(node: Path, tmp_path: Path) -> None:
    rows = read_rows(node / "data")
    made = run("backup", tmp_path / "backup", *options_of(node))
    assert made.returncode == 0, made.stderr
    files = [each for each in (tmp_path / "backup").rglob("*") if each.is_file()]
    assert {stat.S_IMODE(each.stat().st_mode) for each in files} == {0o600}
    assert stat.S_IMODE((tmp_path / "backup").stat().st_mode) == 0o700
    assert not [each for each in files if each.name in ("lock", "endorsed.json")]
    checked = run("restore", tmp_path / "backup", "--check")
    assert checked.returncode == 0, checked.stderr
    refused = run("restore", tmp_path / "backup", *options_of(node))
    assert refused.returncode == 1 and "Traceback" not in refused.stderr
    assert "is not empty" in refused.stderr
    # The machine is lost, but for the settings.
    config = (node / "node.conf").read_text()
    shutil.rmtree(node)
    node.mkdir()
    (node / "node.conf").write_text(config + "\n")
    restored = run("restore", tmp_path / "backup", *options_of(node))
    assert restored.returncode == 0, restored.stderr
    assert read_rows(node / "data") == rows
    assert (node / "wallet" / "wallet.dat").read_bytes() == b"encrypted"
    assert (node / "secret").read_bytes() == b"of a caller"
    assert stat.S_IMODE((node / "keys" / "one.key.json").stat().st_mode) == 0o600
    assert not (node / "endorsed.json").exists()
    # The signer does not start with a log that was set back.
    assert "does not know what it has signed since" in restored.stdout
    with pytest.raises(AuditUnavailable, match="may sign it twice"):
        Journal(node / "signer")
    again = run("restore", tmp_path / "backup", *options_of(node))
    assert again.returncode == 0, again.stderr
    (node / "signer" / RESTORED_NAME).unlink()
    Journal(node / "signer").close()


def test_a_matcher_is_backed_up_and_restored(node: Path, tmp_path: Path) -> None:
    places = places_in(node)
    manifest = back_up(places, tmp_path / "backup", "devnet")
    assert read_backup(tmp_path / "backup") == manifest
    put_back(places_in(tmp_path / "new"), tmp_path / "backup", manifest, "devnet")
    for name in ("journal/00000000000000000000.journal", "quarantine.jsonl"):
        new = tmp_path / "new" / "matcher" / name
        assert new.read_bytes() == (node / "matcher" / name).read_bytes()
    assert read_rows(tmp_path / "new" / "matcher" / "orders") == read_rows(
        node / "matcher" / "orders"
    )
    with pytest.raises(SnapshotProblem, match="is of devnet"):
        put_back(places_in(tmp_path / "other"), tmp_path / "backup", manifest, "waves-mainnet")
    with pytest.raises(SnapshotProblem, match="no place for matcher/"):
        put_back(places_in(tmp_path / "other")[:5], tmp_path / "backup", manifest, "devnet")
    assert not (tmp_path / "other").exists()


def test_one_place_that_is_used_keeps_all_from_being_written(node: Path, tmp_path: Path) -> None:
    manifest = back_up(places_in(node), tmp_path / "backup", "devnet")
    other = tmp_path / "other"
    (other / "matcher" / "journal").mkdir(parents=True)
    (other / "matcher" / "journal" / "x").write_bytes(b"")
    with pytest.raises(TargetInUse):
        put_back(places_in(other), tmp_path / "backup", manifest, "devnet")
    assert [each.name for each in other.iterdir()] == ["matcher"]


def test_a_log_that_is_rotated_meanwhile_is_copied_again(
    node: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Old files of a journal are deleted when there is a newer snapshot, which a copy lacks."""
    directory = node / "matcher"
    copy, turns = backup_files._copy_file, iter((True,))

    def copying(source: Path, target: Path) -> None:
        copy(source, target)
        if source.parent == directory / "snapshots" and next(turns, False):
            (directory / "journal" / "00000000000000000000.journal").unlink()
            (directory / "journal" / "00000000000000000007.journal").write_bytes(b"later")
            (directory / "snapshots" / "00000000000000000006.snapshot").write_bytes(b"newer")

    monkeypatch.setattr(backup_files, "_copy_file", copying)
    back_up(places_in(node), tmp_path / "backup", "devnet")
    copied = {each.name for each in (tmp_path / "backup" / "matcher").rglob("*.*")}
    assert {"00000000000000000006.snapshot", "00000000000000000007.journal"} <= copied


def test_flipped_bits_of_a_backup_are_noticed(node: Path, tmp_path: Path) -> None:
    manifest = back_up(places_in(node), tmp_path / "backup", "devnet")
    chosen = random.Random(7)
    parts = [part for part in manifest.parts if part.size]
    for _ in range(FLIPS):
        path = tmp_path / "backup" / chosen.choice(parts).name
        before = path.read_bytes()
        content = bytearray(before)
        content[chosen.randrange(len(content))] ^= 1 << chosen.randrange(8)
        path.write_bytes(content)
        with pytest.raises(SnapshotProblem, match="damaged"):
            put_back(places_in(tmp_path / "new"), tmp_path / "backup", manifest, "devnet")
        path.write_bytes(before)
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda found: found["parts"][0].update(name="../../x"), "which is no part"),
        (lambda found: found["parts"][0].update(name="node/../../../x"), "which is no part"),
        (lambda found: found["parts"][0].update(name="/etc/passwd"), "which is no part"),
        (lambda found: found["parts"][0].update(size=1 << 50), "the limit is"),
        (lambda found: found.update(kind="soliton-snapshot"), "reads 'soliton-backup'"),
        (lambda found: found.update(format=2), "of format 2"),
        (lambda found: found.update(parts="x"), "cannot be read"),
    ],
)
def test_a_manifest_of_a_backup_that_lies(
    node: Path, tmp_path: Path, change: Callable[[dict[str, Any]], None], expected: str
) -> None:
    back_up(places_in(node)[1:2], tmp_path / "backup", "devnet")
    path = tmp_path / "backup" / "manifest.json"
    found = json.loads(path.read_bytes())
    change(found)
    path.write_text(json.dumps(found))
    with pytest.raises(SnapshotProblem, match=expected):
        read_backup(tmp_path / "backup")


def test_a_backup_killed_at_any_moment(node: Path, tmp_path: Path) -> None:
    rows = read_rows(node / "data")
    chosen = random.Random(3)
    config = (node / "node.conf").read_text()
    for number in range(KILLS):
        target = tmp_path / f"backup-{number}"
        command: list[object] = ["backup", target, *options_of(node)]
        kill_at_some_moment(command, chosen.uniform(0.2, 1.4))
        if not target.exists():
            ended = run(*command)
            assert ended.returncode == 0, ended.stderr
        assert run("restore", target, "--check").returncode == 0
        shutil.rmtree(node)
        node.mkdir()
        (node / "node.conf").write_text(config)
        command = ["restore", target, *options_of(node)]
        kill_at_some_moment(command, chosen.uniform(0.2, 1.4))
        ended = run(*command)
        assert ended.returncode == 0, ended.stderr
        assert read_rows(node / "data") == rows
        assert (node / "signer" / RESTORED_NAME).exists()


def test_the_page_is_walked(node: Path, tmp_path: Path) -> None:
    making, restoring = blocks("docs/how-to/back-up-and-restore.md")
    made = run("matcher", "init", "--network", "devnet", "--data-dir", tmp_path)
    assert made.returncode == 0, made.stderr
    place = tmp_path / "place"
    place.mkdir()
    shutil.copy(node / "node.conf", place)
    shutil.copy(tmp_path / "matcher" / "matcher.conf", place)
    (node / "secret").rename(place / "caller.secret")
    assert "files are in order" in typed(making, place)
    assert (place / "backup" / "config" / "matcher.conf").is_file()
    rows = read_rows(node / "data")
    shutil.rmtree(node)
    told = typed(restoring, place)
    assert "does not know what it has signed since" in told
    assert read_rows(node / "data") == rows
