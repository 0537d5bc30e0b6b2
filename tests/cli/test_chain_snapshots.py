"""``soliton snapshot``: created beside a running node, checked, restored; parts that lie."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import http.server
import json
import os
import random
import re
import shutil
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from soliton.cli import part_sources, snapshot_files
from soliton.cli.part_sources import DownloadProblem, source_of
from soliton.cli.snapshot_checks import check_chain, read_trusted
from soliton.crypto import base58
from soliton.errors import InputError
from soliton.node.chain_writer import ChainWriter
from soliton.storage.keeping import Keeping
from soliton.storage.parts import MAX_MANIFEST_BYTES, SnapshotProblem, decode_manifest
from tests.e2e.programs import PROGRAM, run
from tests.node.chains import DEVNET, RICH, data, mine, open_chain, person, transfer
from tests.storage.rows import read_rows

HEIGHT = 40
FLIPS = int(os.environ.get("SOLITON_FLIPS", "12"))
KILLS = int(os.environ.get("SOLITON_KILLS", "3"))


def grow(chain: ChainWriter, blocks: int) -> None:
    for number in range(chain.height, chain.height + blocks):
        entries = {f"key_{number}_{each}": bytes(90) for each in range(9)}
        mine(
            chain,
            [transfer(chain, RICH, person(f"f{number}"), 10**6), data(chain, RICH, **entries)],
        )


@pytest.fixture(scope="module")
def chain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ChainWriter]:
    """A chain that is open for writing, with some of its records in tables and some in the log."""
    made = open_chain(tmp_path_factory.mktemp("node") / "data", DEVNET)
    grow(made, HEIGHT // 2)
    made.store.database.flush()
    grow(made, HEIGHT - made.height)
    yield made
    made.store.close()


@pytest.fixture(scope="module")
def taken(chain: ChainWriter, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A snapshot of that chain, whose tables are no links."""
    target = tmp_path_factory.mktemp("taken") / "snapshot"
    snapshot_files.create_snapshot(chain.store.database.directory, target, DEVNET, links=False)
    return target


@pytest.fixture
def snapshot(taken: Path, tmp_path: Path) -> Path:
    shutil.copytree(taken, tmp_path / "snapshot")
    return tmp_path / "snapshot"


def restore(source: object, place: Path, *more: object) -> subprocess.CompletedProcess[str]:
    return run("snapshot", "restore", "--from", source, "--data-dir", place, *more)


def test_a_chain_that_is_written_is_taken_and_restored(chain: ChainWriter, tmp_path: Path) -> None:
    source = chain.store.database.directory
    rows = dict(chain.store.scan(b"", b""))
    taken = run("snapshot", "create", tmp_path / "snapshot", "--data-dir", source.parent)
    assert taken.returncode == 0, taken.stderr
    assert f"height {HEIGHT}\n" in taken.stdout
    again = run("snapshot", "create", tmp_path / "snapshot", "--data-dir", source.parent)
    assert (again.returncode, again.stderr) == (1, f"soliton: {tmp_path}/snapshot is not empty\n")
    manifest = json.loads((tmp_path / "snapshot" / "manifest.json").read_bytes())
    meta = chain.meta(HEIGHT)
    assert manifest["block"] == base58.encode(meta.id)
    assert (manifest["network"], manifest["chain_id"], manifest["mode"]) == (
        *("devnet", ord("R")),
        "archive",
    )
    names = {part["name"] for part in manifest["parts"]}
    assert {each.name for each in (tmp_path / "snapshot").iterdir()} == {*names, "manifest.json"}
    # Tables are links: no space is needed.
    tables = [each for each in (tmp_path / "snapshot").glob("*.sst") if each.stat().st_nlink > 1]
    assert tables
    checked = run("snapshot", "verify", tmp_path / "snapshot")
    assert checked.returncode == 0, checked.stderr
    assert "are in order" in checked.stdout
    trust = f"{HEIGHT - 5}:{base58.encode(chain.meta(HEIGHT - 5).id)}"
    restored = restore(tmp_path / "snapshot", tmp_path / "new", "--trust", trust)
    assert restored.returncode == 0, restored.stderr
    assert f"the block at height {HEIGHT - 5} is the trusted one" in restored.stdout
    assert read_rows(tmp_path / "new" / "data") == rows
    assert [each.name for each in (tmp_path / "new").iterdir()] == ["data"]
    verified = run("verify", "--network", "devnet", "--data-dir", tmp_path / "new")
    assert verified.returncode == 0, verified.stderr
    other = open_chain(tmp_path / "new" / "data", DEVNET)
    grow(other, 2)
    assert other.height == HEIGHT + 2
    other.store.close()
    refused = restore(tmp_path / "snapshot", tmp_path / "new")
    assert (refused.returncode, refused.stderr) == (
        1,
        f"soliton: {tmp_path}/new/data is not empty\n",
    )


def test_a_chain_that_grows_is_taken_at_a_block_boundary(tmp_path: Path) -> None:
    """Whatever the writer does meanwhile, the copy is the chain as it was after some block."""
    chain = open_chain(tmp_path / "data", DEVNET)
    ends = threading.Event()
    problems: list[BaseException] = []

    def take() -> None:
        try:
            number = 0
            while not ends.is_set() or number < 3:
                target = tmp_path / f"snapshot-{number}"
                made = snapshot_files.create_snapshot(tmp_path / "data", target, DEVNET, links=True)
                snapshot_files.check_directory(target, made)
                number += 1
        except BaseException as error:  # noqa: BLE001 - raised below
            problems.append(error)

    thread = threading.Thread(target=take)
    thread.start()
    for number in range(60):
        grow(chain, 1)
        if number % 7 == 0:
            chain.store.database.flush()
        if number % 20 == 0:
            chain.store.database.compact()
    ends.set()
    thread.join()
    assert not problems, problems
    expected = {height: chain.meta(height).id for height in range(1, chain.height + 1)}
    chain.store.close()
    for target in tmp_path.glob("snapshot-*"):
        manifest = decode_manifest((target / "manifest.json").read_bytes())
        assert manifest.block == base58.encode(expected[manifest.height])
        snapshot_files.check_files_elsewhere(target, manifest, DEVNET, None)


@pytest.mark.parametrize("mode", ["full", "pruned"])
def test_a_chain_of_another_mode_is_taken_and_restored(tmp_path: Path, mode: str) -> None:
    chain = open_chain(tmp_path / "data", DEVNET, keeping=Keeping(mode))
    grow(chain, 3)
    chain.store.close()
    target = tmp_path / "snapshot"
    made = snapshot_files.create_snapshot(tmp_path / "data", target, DEVNET, links=False)
    assert made.mode == mode
    restore_here(target, tmp_path / "new")
    assert read_rows(tmp_path / "new") == read_rows(target)
    change_manifest(target, _set("mode", "archive"))
    with pytest.raises(SnapshotProblem, match=f"mode of the snapshot is {mode}"):
        restore_here(target, tmp_path / "other")


def change_manifest(snapshot: Path, change: Callable[[dict[str, Any]], None]) -> None:
    path = snapshot / "manifest.json"
    manifest = json.loads(path.read_bytes())
    change(manifest)
    path.write_text(json.dumps(manifest))


def _rename_part(name: str) -> Callable[[dict[str, Any]], None]:
    def change(manifest: dict[str, Any]) -> None:
        manifest["parts"][0]["name"] = name

    return change


def _set(key: str, value: object) -> Callable[[dict[str, Any]], None]:
    return lambda manifest: manifest.__setitem__(key, value)


def _part(key: str, value: object) -> Callable[[dict[str, Any]], None]:
    return lambda manifest: manifest["parts"][0].__setitem__(key, value)


def _twice(manifest: dict[str, Any]) -> None:
    manifest["parts"].append(manifest["parts"][0])


def _many(manifest: dict[str, Any]) -> None:
    manifest["parts"] += [
        {"name": f"{number:09}.sst", "size": 1, "sha256": "0" * 64} for number in range(66_000)
    ]


LIES: dict[str, tuple[Callable[[dict[str, Any]], None], str]] = {
    "folder": (_rename_part("../../etc/cron.d/x"), "which is no part"),
    "absolute": (_rename_part("/etc/passwd"), "which is no part"),
    "library": (_rename_part("000001.so"), "which is no part"),
    "nul": (_rename_part("000009.sst\0"), "which is no part"),
    "line": (_rename_part("000009.sst\n"), "which is no part"),
    "huge": (_part("size", 1 << 62), "the limit is"),
    "negative": (_part("size", -1), "the limit is"),
    "no number": (_part("size", "1"), "cannot be read"),
    "long": (_part("size", 1), "longer than its manifest says: 1"),
    "no hash": (_part("sha256", "é" * 64), "is none"),
    "other hash": (_part("sha256", "0" * 64), "damaged"),
    "twice": (_twice, "twice"),
    "too many": (_many, "lists more than"),
    "no parts": (_set("parts", []), "has to list one CURRENT"),
    "format": (_set("format", 2), "has the format 2, and this version reads 1"),
    "layout": (_set("layout", 9), "has the layout 9"),
    "network": (_set("network", "waves-mainnet"), "not of"),
    "chain id": (_set("chain_id", 87), "with chain id 87, not of devnet"),
    "genesis": (_set("genesis", "1" * 32), "genesis block"),
    "height": (_set("height", HEIGHT + 1), "height of the snapshot"),
    "block": (_set("block", "1" * 32), "last block of the snapshot"),
    "state hash": (_set("state_hash", "0" * 64), "state hash of the snapshot"),
    "escape": (_set("program", "\x1b[2J"), "not printable"),
}


@pytest.mark.parametrize("lie", LIES)
def test_a_manifest_that_lies_is_refused(snapshot: Path, tmp_path: Path, lie: str) -> None:
    change, expected = LIES[lie]
    change_manifest(snapshot, change)
    with pytest.raises(SnapshotProblem) as refused:
        restore_here(snapshot, tmp_path / "data")
    assert expected in str(refused.value)
    assert not (tmp_path / "data").exists()


def restore_here(source: object, target: Path) -> None:
    """As the command does."""
    asyncio.run(
        snapshot_files.restore_snapshot(source_of(str(source)), target, DEVNET, trusted=None)
    )


def test_the_commands_refuse_a_lie(snapshot: Path, tmp_path: Path) -> None:
    change_manifest(snapshot, _rename_part("../../etc/cron.d/x"))
    for ended in (run("snapshot", "verify", snapshot), restore(snapshot, tmp_path / "new")):
        assert ended.returncode == 1 and "which is no part" in ended.stderr
        assert "Traceback" not in ended.stderr


def test_other_files_links_and_no_manifest(snapshot: Path, tmp_path: Path) -> None:
    (snapshot / "more").write_text("x")
    ended = run("snapshot", "verify", snapshot)
    assert f"{snapshot}/more is no part" in ended.stderr
    (snapshot / "more").unlink()
    table = next(snapshot.glob("*.sst"))
    table.rename(tmp_path / "elsewhere")
    manifest = decode_manifest((snapshot / "manifest.json").read_bytes())
    for linked in (True, False):
        if linked:
            table.symlink_to(tmp_path / "elsewhere")
        with pytest.raises(SnapshotProblem, match=table.name):
            restore_here(snapshot, tmp_path / "data")
        with pytest.raises(SnapshotProblem, match=table.name):
            snapshot_files.check_directory(snapshot, manifest)
        if linked:
            table.unlink()
    for content in (b"", b"{", b"[" * 100_000, b"\xff", b'{"format": 1}'):
        with pytest.raises(SnapshotProblem, match=r"the manifest cannot be read|has the format"):
            decode_manifest(content)
    with pytest.raises(SnapshotProblem, match="more than"):
        decode_manifest(bytes(MAX_MANIFEST_BYTES + 1))
    with pytest.raises(SnapshotProblem, match="holds no snapshot"):
        restore_here(tmp_path, tmp_path / "data")


@pytest.mark.parametrize("trust", ["7", "7:", "0:abc", "99999999999:abc", "7:0OIl", "x:y"])
def test_a_trust_that_cannot_be_read(trust: str) -> None:
    with pytest.raises(InputError, match="--trust should look like HEIGHT:HASH"):
        read_trusted(trust)


def test_what_the_user_trusts(chain: ChainWriter, snapshot: Path, tmp_path: Path) -> None:
    meta = chain.meta(9)
    manifest = decode_manifest((snapshot / "manifest.json").read_bytes())
    for value in (base58.encode(meta.id), meta.state_hash.hex(), meta.snapshot_hash.hex()):
        trusted = read_trusted(f"9:{value}")
        checks: list[int] = []
        check_chain(snapshot, manifest, DEVNET, trusted, checks.append)
        assert checks
    other = base58.encode(chain.meta(8).id)
    refused = restore(snapshot, tmp_path / "new", "--trust", f"9:{other}")
    assert refused.returncode == 1
    assert "the block at height 9 is not the trusted one" in refused.stderr
    assert not (tmp_path / "new" / "data").exists()
    above = restore(snapshot, tmp_path / "new", "--trust", f"{HEIGHT + 1}:{other}")
    assert "below the trusted" in above.stderr
    # A node does not begin another chain beside what is being restored.
    ended = run(
        "import", snapshot / "CURRENT", "--network", "devnet", "--data-dir", tmp_path / "new"
    )
    assert ended.returncode == 1 and "soliton snapshot restore" in ended.stderr
    assert restore(snapshot, tmp_path / "new").returncode == 0


def test_flipped_bits_are_noticed(taken: Path, snapshot: Path) -> None:
    """In a part or in the manifest, wherever they are. The manifest's own words, which nothing
    depends on, may change: the time and version of its making.
    """
    chosen = random.Random(34)
    manifest = decode_manifest((taken / "manifest.json").read_bytes())
    for _ in range(FLIPS):
        part = chosen.choice(manifest.parts)
        path = snapshot / part.name
        content = bytearray(path.read_bytes())
        content[chosen.randrange(len(content))] ^= 1 << chosen.randrange(8)
        path.write_bytes(content)
        with pytest.raises(SnapshotProblem, match="damaged"):
            snapshot_files.check_directory(snapshot, manifest)
        shutil.copy(taken / part.name, path)


def test_a_snapshot_whose_hashes_are_right_and_whose_files_are_not(
    snapshot: Path, tmp_path: Path
) -> None:
    """Whoever writes the files writes the hashes as well."""
    table = next(snapshot.glob("*.sst"))
    content = bytearray(table.read_bytes())
    middle = len(content) // 2
    content[middle : middle + 64] = bytes(64)
    for changed in (bytes(content), bytes(content[:200]), b"", bytes(len(content))):
        table.write_bytes(changed)

        def lie(manifest: dict[str, Any], data: bytes = changed) -> None:
            for part in manifest["parts"]:
                if part["name"] == table.name:
                    part["size"], part["sha256"] = len(data), hashlib.sha256(data).hexdigest()

        change_manifest(snapshot, lie)
        ended = restore(snapshot, tmp_path / "new")
        if ended.returncode == 0:
            # The damage is in records that are not read at once.
            ended = run("verify", "--network", "devnet", "--data-dir", tmp_path / "new")
            shutil.rmtree(tmp_path / "new")
        assert ended.returncode == 1, ended.stdout
        assert "Traceback" not in ended.stderr


# --- over HTTP ------------------------------------------------------------------------------------


class Server(http.server.ThreadingHTTPServer):
    """A static server, with or without ranges, that may break off after some bytes."""

    knows_ranges = True
    breaks_after: int | None = None
    daemon_threads = True
    lies: dict[str, bytes] = {}

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.ranges: list[str] = []
        self.stalls = threading.Event()
        self.stalls.set()
        super().__init__(("127.0.0.1", 0), _Handler)


class _Handler(http.server.BaseHTTPRequestHandler):
    server: Server

    def log_message(self, *_values: object) -> None:
        """Print nothing."""

    def do_GET(self) -> None:
        name = self.path.rpartition("/")[2]
        path = self.server.directory / name
        if name not in self.server.lies and not path.is_file():
            self.send_error(404)
            return
        body = self.server.lies.get(name) or path.read_bytes()
        start, status = 0, 200
        asked = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", ""))
        if asked and self.server.knows_ranges:
            start, status = int(asked[1]), 206
            self.server.ranges.append(name)
        self.send_response(status)
        self.send_header("Content-Length", str(len(body) - start))
        if status == 206:
            self.send_header("Content-Range", f"bytes {start}-{len(body) - 1}/{len(body)}")
        self.end_headers()
        limit = self.server.breaks_after
        end = len(body) if limit is None or name == "manifest.json" else start + limit
        with contextlib.suppress(OSError):
            self.wfile.write(body[start:end])
        if end < len(body):
            self.server.stalls.wait()
            self.close_connection = True


@pytest.fixture
def server(snapshot: Path) -> Iterator[Server]:
    made = Server(snapshot)
    threading.Thread(target=made.serve_forever, daemon=True).start()
    yield made
    made.shutdown()
    made.server_close()


def url_of(server: Server) -> str:
    return f"http://127.0.0.1:{server.server_port}/some/where"


@pytest.mark.parametrize("knows_ranges", [True, False])
def test_a_server_that_breaks_off(
    server: Server,
    snapshot: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    knows_ranges: bool,
) -> None:
    monkeypatch.setattr(part_sources, "FIRST_PAUSE_SECONDS", 0.0)
    largest = max(each.stat().st_size for each in snapshot.iterdir())
    server.knows_ranges, server.breaks_after = knows_ranges, largest // 2 + 1
    if not knows_ranges:
        with pytest.raises(DownloadProblem, match="it goes on from there"):
            restore_here(url_of(server), tmp_path / "data")
        server.breaks_after = None
    restore_here(url_of(server), tmp_path / "data")
    assert bool(server.ranges) == knows_ranges


def test_a_server_that_begins_anew_for_ever(
    server: Server, snapshot: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same bytes again are no progress, however many they are."""
    monkeypatch.setattr(part_sources, "FIRST_PAUSE_SECONDS", 0.0)
    monkeypatch.setattr(part_sources, "PROGRESS_BYTES", 1)
    largest = max(each.stat().st_size for each in snapshot.iterdir())
    server.knows_ranges, server.breaks_after = False, largest // 2 + 1
    with pytest.raises(DownloadProblem, match="it goes on from there"):
        restore_here(url_of(server), tmp_path / "data")


def test_a_server_that_is_checked_and_does_not_have_all(server: Server, snapshot: Path) -> None:
    ended = run("snapshot", "verify", url_of(server))
    assert ended.returncode == 0, ended.stderr
    next(snapshot.glob("*.sst")).unlink()
    ended = run("snapshot", "verify", url_of(server))
    assert ended.returncode == 1 and "is answered with status 404" in ended.stderr


@pytest.mark.parametrize("lie", ["longer", "shorter", "other"])
def test_a_server_that_lies(server: Server, snapshot: Path, tmp_path: Path, lie: str) -> None:
    table = next(snapshot.glob("*.sst"))
    data = table.read_bytes()
    sent = {"longer": data + b"x", "shorter": data[:-1], "other": bytes(len(data))}[lie]
    server.lies = {table.name: sent}
    expected = {"longer": "longer than", "shorter": "ends early", "other": "damaged"}[lie]
    with pytest.raises(SnapshotProblem, match=expected):
        restore_here(url_of(server), tmp_path / "data")
    assert not (tmp_path / "data").exists()


def test_a_server_that_stalls(
    server: Server, snapshot: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(part_sources, "IDLE_SECONDS", 0.2)
    monkeypatch.setattr(part_sources, "FIRST_PAUSE_SECONDS", 0.0)
    monkeypatch.setattr(part_sources, "TRIES", 2)
    server.breaks_after = 100
    server.stalls.clear()
    try:
        with pytest.raises(DownloadProblem, match="too slowly"):
            restore_here(url_of(server), tmp_path / "data")
    finally:
        server.stalls.set()
    assert not (tmp_path / "data").exists()


def test_what_is_left_beside_a_finished_one_is_cleared(snapshot: Path, tmp_path: Path) -> None:
    restore_here(snapshot, tmp_path / "data")
    left = tmp_path / "data.restoring"
    left.mkdir()
    (left / "manifest.json").write_bytes(b"")
    with pytest.raises(snapshot_files.TargetInUse):
        restore_here(snapshot, tmp_path / "data")
    assert not left.exists()


# --- killed ---------------------------------------------------------------------------------------


def kill_at_some_moment(arguments: list[object], seconds: float) -> bool:
    """Start the program and kill it after some time; return whether it had ended before."""
    process = subprocess.Popen(
        [str(PROGRAM), *map(str, arguments)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        return process.wait(seconds) == 0
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGKILL)
        process.wait()
        return False


def test_killed_at_any_moment(chain: ChainWriter, taken: Path, tmp_path: Path) -> None:
    """The place is empty or complete, and the same command ends the work."""
    source = chain.store.database.directory
    # Reading a store adds a file to its directory, which other tests use.
    rows = read_rows(shutil.copytree(taken, tmp_path / "taken"))
    chosen = random.Random(9)
    for number in range(KILLS):
        place, target = tmp_path / f"node-{number}", tmp_path / f"snapshot-{number}"
        create: list[object] = ["snapshot", "create", target, "--data-dir", source.parent]
        again: list[object] = ["snapshot", "restore", "--from", taken, "--data-dir", place]
        for arguments, made in ((create, target / "manifest.json"), (again, place / "data")):
            kill_at_some_moment(arguments, chosen.uniform(0.2, 1.4))
            if made.exists():
                continue
            ended = run(*arguments)
            assert ended.returncode == 0, ended.stderr
        assert read_rows(place / "data") == rows
        assert run("snapshot", "verify", target).returncode == 0
        shutil.rmtree(place)
        shutil.rmtree(target)
