"""A store that is cut, overwritten or not to be used: one line that says so and what to do, and
``soliton verify``, which finds it.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from soliton.node.chain_writer import ChainWriter
from soliton.node.verify import verify
from soliton.storage import layout
from soliton.storage.errors import DamagedStore, StorageProblem
from soliton.storage.store import Store
from tests.api.chain import RICH_ADDRESS, PrivateChain
from tests.e2e.programs import run
from tests.mounts import mounted
from tests.node.chains import DEVNET, RICH, data, mine, open_chain, person, transfer
from tests.storage.rows import change_rows, read_rows, tables

HEIGHT = 30
REPAIR_HINT = "`soliton verify` says where"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of a chain with blocks, transfers and data of many pages."""
    place = tmp_path_factory.mktemp("made")
    chain = open_chain(place / "data", DEVNET)
    for number in range(2, HEIGHT + 1):
        entries = {f"key_{number}_{each}": bytes(90) for each in range(9)}
        mine(
            chain,
            [
                transfer(chain, RICH, person(f"friend {number}"), number * 10**6),
                data(chain, RICH, **entries),
            ],
        )
    chain.store.close()
    return place


@pytest.fixture
def place(made: Path, tmp_path: Path) -> Path:
    shutil.copytree(made, tmp_path / "node")
    return tmp_path / "node"


def commands(place: Path, tmp_path: Path) -> list[subprocess.CompletedProcess[str]]:
    """All that open a store."""
    where = ("--network", "devnet", "--data-dir", place)
    (tmp_path / "blocks.bin").write_bytes(b"")
    return [
        run("verify", *where),
        run("state-hash", 5, *where),
        run("rollback", "--to-height", 5, *where),
        run("export", tmp_path / "out.bin", *where),
        run("import", tmp_path / "blocks.bin", *where),
        run("run", *where),
    ]


def refused(ended: subprocess.CompletedProcess[str], words: str) -> None:
    assert ended.returncode == 1, (ended.args, ended.returncode, ended.stderr)
    assert "Traceback" not in ended.stderr
    last = ended.stderr.splitlines()[-1]
    assert last.startswith("soliton: "), last
    assert words in last


@pytest.mark.slow
def test_a_file_that_is_cut(place: Path, tmp_path: Path) -> None:
    [table] = tables(place / "data")
    os.truncate(table, 5_000)
    for ended in commands(place, tmp_path):
        refused(ended, "the store is damaged: ")
        assert REPAIR_HINT in ended.stderr


@pytest.mark.parametrize(
    ("pattern", "left"),
    [
        *(("*.sst", left) for left in (0, 100, 4_096, -4_096, -1)),
        *(("MANIFEST-*", left) for left in (0, 100)),
        ("CURRENT", 0),
    ],
)
def test_a_file_that_is_cut_wherever(place: Path, pattern: str, left: int) -> None:
    [file] = (place / "data").glob(pattern)
    os.truncate(file, left if left >= 0 else file.stat().st_size + left)
    for exclusive in (False, True):
        with pytest.raises(DamagedStore, match=REPAIR_HINT):
            Store(place / "data", DEVNET.name, exclusive=exclusive)


@pytest.mark.parametrize("pattern", ["*.sst", "MANIFEST-*"])
def test_a_file_that_is_missing(place: Path, pattern: str) -> None:
    [file] = (place / "data").glob(pattern)
    file.unlink()
    for exclusive in (False, True):
        with pytest.raises(DamagedStore, match=REPAIR_HINT):
            Store(place / "data", DEVNET.name, exclusive=exclusive)


@pytest.mark.slow
def test_a_file_that_is_something_else(place: Path, tmp_path: Path) -> None:
    [table] = tables(place / "data")
    table.write_bytes(b"no database " * 5_000)
    for ended in commands(place, tmp_path)[:2]:
        refused(ended, "the store is damaged: ")


@pytest.mark.slow
def test_a_file_where_the_directory_should_be(tmp_path: Path) -> None:
    (tmp_path / "node").mkdir()
    (tmp_path / "node" / "data").write_text("in the way")
    where = ("--network", "devnet", "--data-dir", tmp_path / "node")
    refused(run("run", *where), f"the store in {tmp_path}/node/data cannot be opened: ")
    refused(run("verify", *where), f"{tmp_path}/node/data")


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="mounts as Linux does")
def test_a_disk_that_may_only_be_read(made: Path, tmp_path: Path) -> None:
    with mounted(made, "--bind") as place:
        subprocess.run(["mount", "-o", "remount,bind,ro", place], check=True)
        for ended in commands(place, tmp_path):
            refused(ended, "Read-only file system")


def test_a_store_is_in_order(place: Path) -> None:
    ended = run("verify", "--data-dir", place)
    assert ended.returncode == 0, ended.stderr
    chain = open_chain(place / "data", DEVNET)
    transactions = sum(chain.meta(height).transaction_count for height in range(1, HEIGHT + 1))
    chain.store.close()
    assert transactions > 2 * (HEIGHT - 1)
    assert ended.stdout.startswith(f"{HEIGHT} blocks, {transactions} transactions and ")


@pytest.mark.skipif(sys.platform == "darwin", reason="names are UTF-8 there")
def test_names_of_directories_are_text(place: Path, tmp_path: Path) -> None:
    named = tmp_path / os.fsdecode(b"\xff")
    place.rename(named)
    refused(run("verify", "--data-dir", named, "--network", "devnet"), "is not UTF-8")


def outcome(directory: Path) -> str:
    """What reading everything comes to."""
    try:
        store = Store(directory, DEVNET.name, durable=False, exclusive=False)
        try:
            verify(ChainWriter(DEVNET, store))
        finally:
            store.close()
    except DamagedStore:
        return "damaged"
    except StorageProblem:
        return "refused"
    return "in order"


ROUNDS = 200


def test_no_flipped_bit_goes_unnoticed(place: Path) -> None:
    """Wherever it is in the files of the chain."""
    [table] = tables(place / "data")
    before = read_rows(place / "data")
    whole, choices = table.read_bytes(), random.Random(1)
    for _ in range(ROUNDS):
        at, bit = choices.randrange(len(whole)), 1 << choices.randrange(8)
        table.write_bytes(whole[:at] + bytes((whole[at] ^ bit,)) + whole[at + 1 :])
        found = outcome(place / "data")
        if found == "in order":
            # Some bytes of a table have no meaning, such as statistics of it.
            assert read_rows(place / "data") == before, at
        else:
            assert found == "damaged", at


@pytest.mark.parametrize("kind", ["zeros", "noise"])
def test_parts_that_are_overwritten(place: Path, kind: str) -> None:
    [table] = tables(place / "data")
    whole, choices = table.read_bytes(), random.Random(2)
    for _ in range(20):
        at = choices.randrange(len(whole) - 4_096)
        wrong = bytes(4_096) if kind == "zeros" else choices.randbytes(4_096)
        table.write_bytes(whole[:at] + wrong + whole[at + 4_096 :])
        assert outcome(place / "data") == "damaged", at


RECORDS = {
    b"W": b"123",
    b"D": b"\x77",
    b"h": b"12",
    b"b": b"\x05no block",
    b"m": b"\xc1",
    b"i": b"\0\0\0\x63",
    b"t": b"1",
    b"a": b"nothing",
    b"z": b"\xc1",
    b"u": b"\xc1",
}


@pytest.mark.parametrize("prefix", RECORDS)
@pytest.mark.parametrize("missing", [False, True])
def test_records_that_are_wrong_or_missing(place: Path, prefix: bytes, missing: bool) -> None:
    key = sorted(key for key in read_rows(place / "data") if key.startswith(prefix))[3]
    change_rows(place / "data", {key: None if missing else RECORDS[prefix]})
    store = Store(place / "data", DEVNET.name, durable=False)
    try:
        if missing and prefix in b"WDha":
            # Of these nothing else says that they have to be there.
            verify(ChainWriter(DEVNET, store))
            return
        with pytest.raises(DamagedStore) as caught:
            verify(ChainWriter(DEVNET, store))
    finally:
        store.discard_pending()
        store.close()
    assert REPAIR_HINT in str(caught.value)
    if not missing and prefix not in b"ih":
        assert layout.KINDS[prefix] in str(caught.value)


async def test_clients_are_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    chain = PrivateChain(tmp_path)
    chain.send(chain.transfer())
    chain.mine()
    store = chain.node.store
    address = chain.node.wallet.accounts(chain.node.network.chain_id)[0]
    for key in (b"W" + address, layout.height_key(b"b", 1), layout.height_key(b"m", 1)):
        store.database.write({key: b"\xc1"})
    chain.node.chain._forget()
    for path in (
        f"/addresses/balance/{RICH_ADDRESS}",
        "/blocks/at/1",
        "/blocks/headers/at/1",
        "/debug/stateHash/1",
    ):
        answer = await chain.get(path)
        assert answer.status == 503, (path, answer.body)
        assert msgspec.json.decode(answer.body)["error"] == 5037
    assert (await chain.get("/blocks/height")).status == 200
    # What has begun breaks off where it meets what is wrong.
    answer = await chain.get("/events?from=1")
    assert (answer.status, answer.chunks) == (200, [b"retry: 2000\n\n"])
    assert "an answer broke off: the store is damaged: the bytes of a block" in caplog.text
    store.close()
