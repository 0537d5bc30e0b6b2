"""``soliton import``, ``rollback`` and ``state-hash`` as a user runs them: text in, text and exit
code out.
"""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
from pathlib import Path
from typing import BinaryIO

import pytest

from soliton.chain import blocks
from soliton.cli import chain_commands, progress
from soliton.node.chain_writer import ChainWriter
from soliton.node.settings import load_settings
from tests.e2e.programs import PROGRAM, run
from tests.export.durable import Disk
from tests.node.chains import DEVNET, RICH, mine, open_chain, person, record, transfer

HEIGHT = 12
MAINNET_HEIGHT = 600


@pytest.fixture(scope="module")
def blocks_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Blocks 2 to 12 of a private chain, as an import file."""
    place = tmp_path_factory.mktemp("blocks")
    chain = open_chain(place / "chain", DEVNET)
    for number in range(2, HEIGHT + 1):
        mine(chain, [transfer(chain, RICH, person("ann"), number * 10**6)])
    path = place / "blocks.bin"
    made = [chain.block_at(height) for height in range(2, HEIGHT + 1)]
    path.write_bytes(b"".join(map(record, made)))
    chain.store.close()
    return path


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "node"


def do_import(path: Path, place: Path, *options: object) -> subprocess.CompletedProcess[str]:
    return run("import", path, "--network", "devnet", "--data-dir", place, *options)


def tip(ended: subprocess.CompletedProcess[str]) -> dict[str, str]:
    """What a command has printed about the last block."""
    assert ended.returncode == 0, ended.stderr
    return dict(line.rsplit(" ", 1) for line in ended.stdout.splitlines())


def offsets(path: Path) -> list[int]:
    """Where each record of the file begins: the first one is of height 2."""
    data, found, offset = path.read_bytes(), list[int](), 0
    while offset < len(data):
        found.append(offset)
        offset += 4 + int.from_bytes(data[offset : offset + 4], "big")
    return found


def test_import_ends_with_height_block_and_state_hash(blocks_file: Path, place: Path) -> None:
    ended = do_import(blocks_file, place)
    found = tip(ended)
    assert list(found) == ["height", "block", "state hash"]
    assert found["height"] == str(HEIGHT)
    assert len(bytes.fromhex(found["state hash"])) == 32
    assert f"importing {blocks_file} into devnet from height 1" in ended.stderr
    assert f"{HEIGHT - 1} blocks in " in ended.stderr
    assert "\x1b" not in ended.stdout + ended.stderr


def test_import_goes_on_where_it_stopped(blocks_file: Path, place: Path) -> None:
    once = tip(do_import(blocks_file, place))
    other = place.with_name("other")
    for height in (3, 3, 7):
        assert tip(do_import(blocks_file, other, "--to-height", height))["height"] == str(height)
    last = do_import(blocks_file, other)
    assert tip(last) == once
    assert f"{HEIGHT - 7} blocks in " in last.stderr
    again = do_import(blocks_file, other)
    assert tip(again) == once
    assert "0 blocks in " in again.stderr


def test_rollback_and_import_again_give_the_same_hashes(blocks_file: Path, place: Path) -> None:
    before = tip(do_import(blocks_file, place))
    at_five = run("state-hash", 5, "--data-dir", place).stdout
    rolled = tip(run("rollback", "--to-height", 5, "--data-dir", place))
    assert rolled["height"] == "5"
    assert rolled["state hash"] == json.loads(at_five)["stateHash"]
    assert run("state-hash", 6, "--data-dir", place).returncode == 1
    assert tip(do_import(blocks_file, place)) == before


def test_state_hash_is_that_of_the_rest_interface(blocks_file: Path, place: Path) -> None:
    last = tip(do_import(blocks_file, place))
    ended = run("state-hash", HEIGHT, "--data-dir", place)
    found = json.loads(ended.stdout)
    assert found["stateHash"] == last["state hash"]
    assert found["blockId"] == last["block"]
    assert found["height"] == HEIGHT
    sections = {name for name in found if name.endswith("Hash")}
    assert {"wavesBalanceHash", "assetBalanceHash", "dataEntryHash", "snapshotHash"} <= sections
    assert "version" in found and "baseTarget" in found
    assert ended.stderr == ""


def test_export_writes_what_import_reads(blocks_file: Path, place: Path) -> None:
    before = tip(do_import(blocks_file, place))
    copy = place.with_name("copy.bin")
    assert run("export", copy, "--data-dir", place).returncode == 0
    assert copy.read_bytes() == blocks_file.read_bytes()
    part = place.with_name("part.bin")
    assert run("export", part, "--data-dir", place, "--to-height", 5).returncode == 0
    assert blocks_file.read_bytes().startswith(part.read_bytes())
    assert tip(do_import(part, place.with_name("other")))["height"] == "5"
    assert tip(do_import(copy, place.with_name("other"))) == before
    assert run("export", copy, "--data-dir", place.with_name("nothing")).returncode == 1
    assert copy.read_bytes() == blocks_file.read_bytes()


def test_an_export_is_on_the_disk_before_it_has_its_name(
    blocks_file: Path, place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    do_import(blocks_file, place)
    disk, path = Disk(monkeypatch), tmp_path / "file"
    chain_commands.run_export(path, None, "devnet", place, None)
    assert path.read_bytes() == blocks_file.read_bytes()
    disk.check(path, tmp_path / "file.new")


def test_interrupted_import_tells_what_was_stored(
    blocks_file: Path,
    place: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    tip(do_import(blocks_file, place, "--to-height", 5))

    def interrupted(chain: ChainWriter, file: BinaryIO, *_: object) -> int:
        """As Ctrl-C in the middle of a batch: blocks are on the chain, but not yet on disk."""
        data = file.read()
        for offset in offsets(blocks_file)[4:7]:
            length = int.from_bytes(data[offset : offset + 4], "big")
            chain.append(blocks.decode(data[offset + 4 : offset + 4 + length], DEVNET.chain_id))
        raise KeyboardInterrupt

    monkeypatch.setattr(chain_commands, "import_blocks", interrupted)
    settings = load_settings(network="devnet", data_dir=place)
    with pytest.raises(KeyboardInterrupt):
        chain_commands.run_import(blocks_file, settings, None)
    captured = capsys.readouterr()
    assert captured.out.startswith("height 5\n")
    assert "0 blocks in " in captured.err
    found = json.loads(run("state-hash", 5, "--data-dir", place).stdout)
    assert f"state hash {found['stateHash']}\n" in captured.out


@pytest.mark.parametrize("damage", ["flipped", "cut", "cut length", "too long"])
def test_bad_file_names_height_and_offset(
    blocks_file: Path, place: Path, tmp_path: Path, damage: str
) -> None:
    data, offset = bytearray(blocks_file.read_bytes()), offsets(blocks_file)[6]
    match damage:
        case "flipped":
            data[offset + 300] ^= 1
        case "cut":
            del data[offset + 100 :]
        case "cut length":
            del data[offset + 2 :]
        case _:
            data[offset : offset + 4] = b"\xff\xff\xff\xff"
    path = tmp_path / "bad.bin"
    path.write_bytes(data)
    ended = do_import(path, place)
    assert ended.returncode == 1
    assert f"soliton: height 8, offset {offset}: " in ended.stderr
    assert "Traceback" not in ended.stderr
    assert ended.stdout.startswith("height 7\n")
    assert tip(do_import(blocks_file, place))["height"] == str(HEIGHT)


def test_foreign_file_is_refused(blocks_file: Path, place: Path, tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_text("this is no block file, but long enough to look like one " * 100)
    ended = do_import(path, place)
    assert ended.returncode == 1
    assert "soliton: height 2, offset 0: a record of 1952999795 bytes is no block" in ended.stderr
    assert ended.stdout.startswith("height 1\n")


def test_directory_of_another_network_is_refused(blocks_file: Path, place: Path) -> None:
    tip(do_import(blocks_file, place))
    before = tip(run("rollback", "--to-height", HEIGHT, "--data-dir", place))
    for command in (
        ("import", blocks_file, "--network", "waves-mainnet"),
        ("rollback", "--to-height", 2, "--network", "waves-mainnet"),
        ("state-hash", 2, "--network", "waves-mainnet"),
    ):
        ended = run(*command, "--data-dir", place)
        assert ended.returncode == 1
        assert "holds the chain devnet, not waves-mainnet" in ended.stderr
        assert ended.stdout == ""
    assert tip(run("rollback", "--to-height", HEIGHT, "--data-dir", place)) == before


def test_directory_without_a_chain_is_told_and_left_alone(tmp_path: Path) -> None:
    for command in (("rollback", "--to-height", 1), ("state-hash", 1)):
        ended = run(*command, "--data-dir", tmp_path / "nothing")
        assert ended.returncode == 1
        assert "there is no chain in" in ended.stderr
    assert list(tmp_path.iterdir()) == []


def test_heights_that_are_not_there(blocks_file: Path, place: Path) -> None:
    tip(do_import(blocks_file, place))
    for command in ("rollback --to-height", "state-hash"):
        ended = run(*command.split(), 13, "--data-dir", place)
        assert ended.returncode == 1
        assert ended.stderr == "soliton: the chain is at height 12, below 13\n"
        for wrong in (0, -1, "x"):
            assert run(*command.split(), wrong, "--data-dir", place).returncode == 2


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("import", "/no/such/file"), "does not exist"),
        (("import",), "Missing argument 'FILE'"),
        (("rollback", "--data-dir", "/tmp"), "Missing option '--to-height'"),
        (("import", __file__, "--network", "moon"), "moon"),
        (("state-hash", "1", "--config", "/no/such/file"), "does not exist"),
        (("dig",), "No such command 'dig'"),
    ],
)
def test_wrong_calls_are_told_in_one_line(arguments: tuple[str, ...], words: str) -> None:
    ended = run(*arguments)
    assert ended.returncode in {1, 2}
    assert words in ended.stderr
    assert "Traceback" not in ended.stderr
    assert ended.stdout == ""


def test_progress_is_a_bar_on_a_terminal(blocks_file: Path, place: Path) -> None:
    ours, theirs = pty.openpty()
    options = ("--network", "devnet", "--data-dir", str(place))
    command = [str(PROGRAM), "import", str(blocks_file), *options]
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100"}
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=theirs, env=environment
    ) as process:
        os.close(theirs)
        shown = b""
        while True:
            try:
                piece = os.read(ours, 65_536)
            except OSError:
                break
            if not piece:
                break
            shown += piece
        assert process.wait() == 0
    os.close(ours)
    text = shown.decode()
    assert "MB/s" in text and f"height {HEIGHT}" in text and "━" in text


def test_progress_is_plain_lines_elsewhere(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress, "PLAIN_INTERVAL_SECONDS", 0.0)
    with progress.progress("import", 10, "blocks") as report:
        report(5, "height 6")
        report(10)
    first, second = capsys.readouterr().err.splitlines()
    assert re.fullmatch(
        r"import: height 6, 5 of 10 blocks, [0-9,]+ blocks/s, 0:00:\d\d left", first
    )
    assert re.fullmatch(r"import: 10 of 10 blocks, [0-9,]+ blocks/s, 0:00:00 left", second)


def test_the_time_that_is_left() -> None:
    assert progress.time_left(25, 100, 50.0) == "0:02:30"
    assert progress.time_left(1, 7_301, 1.0) == "2:01:40"
    # Estimates of a total may be too low.
    assert progress.time_left(30, 20, 9.0) == "0:00:00"


def test_mainnet_blocks_give_the_recorded_hash(shared: Path, place: Path) -> None:
    path = shared / "data" / "waves-mainnet-blocks-2-10000.bin"
    options = ("--network", "waves-mainnet", "--data-dir", place, "--to-height", MAINNET_HEIGHT)
    ended = run("import", path, *options)
    found = tip(ended)
    rows = (shared / "data" / "waves-mainnet-statehash-1-5000.tsv").read_text().splitlines()
    assert rows[MAINNET_HEIGHT].split("\t")[:3] == list(found.values())
    for line in ended.stderr.splitlines():
        assert "\x1b" not in line and "\r" not in line
