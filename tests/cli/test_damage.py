"""A store that is cut, overwritten or not to be used: one line that says so and what to do, and
``soliton verify``, which finds it.
"""

from __future__ import annotations

import faulthandler
import os
import random
import shutil
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import lmdb
import msgspec
import pytest

from soliton.node.chain_writer import ChainWriter
from soliton.node.verify import verify
from soliton.storage import layout
from soliton.storage.errors import DamagedStore, StorageProblem
from soliton.storage.pages import _free_pages, _newest_head
from soliton.storage.store import Store
from tests.api.chain import RICH_ADDRESS, PrivateChain
from tests.e2e.programs import run
from tests.mounts import mounted
from tests.node.chains import DEVNET, RICH, data, mine, open_chain, person, transfer

PAGE = 4_096
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
    os.truncate(place / "data" / "data.mdb", 7 * PAGE + 1)
    for ended in commands(place, tmp_path):
        refused(ended, "the store is damaged: ")
        assert REPAIR_HINT in ended.stderr


@pytest.mark.parametrize("left", [100, PAGE, 2 * PAGE, -PAGE, -1])
def test_a_file_that_is_cut_wherever(place: Path, left: int) -> None:
    file = place / "data" / "data.mdb"
    os.truncate(file, left if left > 0 else file.stat().st_size + left)
    for exclusive in (False, True):
        with pytest.raises(DamagedStore, match=REPAIR_HINT):
            Store(place / "data", DEVNET.name, exclusive=exclusive)


@pytest.mark.slow
def test_a_file_that_is_something_else(place: Path, tmp_path: Path) -> None:
    (place / "data" / "data.mdb").write_bytes(b"no database " * 5_000)
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


def test_free_pages_at_the_end_may_be_missing(tmp_path: Path) -> None:
    """The last transaction may have taken and freed them: nothing is lost, and nothing is said."""
    store = Store(tmp_path, "net", durable=False)
    store.flush()
    with store.database._env.begin(write=True) as transaction:
        transaction.put(b"!large", bytes(50 * PAGE))
    with store.database._env.begin(write=True) as transaction:
        transaction.delete(b"!large")
    store.database.refresh()
    for number in range(8):
        # What is written takes the first pages that are free.
        with store.database._env.begin(write=True) as transaction:
            transaction.put(b"!small", bytes((number,)))
        store.database.refresh()
    store.close()
    file = tmp_path / "data.mdb"
    full, whole = file.stat().st_size, file.read_bytes()
    verdicts = []
    for missing in range(60):
        file.write_bytes(whole[: full - missing * PAGE])
        child = os.fork()
        if child == 0:
            code = 1
            try:
                again = Store(tmp_path, "net", durable=False)
                assert file.stat().st_size == full
                assert again.database._read.get(b"!small") == bytes((7,))
                code = 0
            finally:
                os._exit(code)
        status = os.waitpid(child, 0)[1]
        assert not os.WIFSIGNALED(status), missing
        verdicts.append(status == 0)
    # Up to some page all are free; from there on some are not.
    assert verdicts == sorted(verdicts, reverse=True)
    assert 5 < sum(verdicts) < 60


def test_a_store_is_in_order(place: Path) -> None:
    ended = run("verify", "--data-dir", place)
    assert ended.returncode == 0, ended.stderr
    chain = open_chain(place / "data", DEVNET)
    transactions = sum(chain.meta(height).transaction_count for height in range(1, HEIGHT + 1))
    chain.store.close()
    assert transactions > 2 * (HEIGHT - 1)
    assert ended.stdout.startswith(f"{HEIGHT} blocks, {transactions} transactions and ")


@pytest.mark.skipif(sys.platform == "darwin", reason="names are UTF-8 there")
def test_names_of_directories_need_not_be_text(place: Path, tmp_path: Path) -> None:
    named = tmp_path / os.fsdecode(b"\xff")
    place.rename(named)
    ended = run("verify", "--data-dir", named, "--network", "devnet")
    assert ended.returncode == 0, ended.stderr
    assert "in order" in ended.stdout


def outcome(directory: Path) -> str:
    """What reading everything comes to, in a process that may be ended by it."""
    child = os.fork()
    if child == 0:
        code = 4
        try:
            # LMDB may abort: that is no fault of this process.
            faulthandler.disable()
            store = Store(directory, DEVNET.name, durable=False, exclusive=False)
            chain = ChainWriter(DEVNET, store)
            # What is found once is found again: LMDB ends the transaction that has met it.
            with suppress(DamagedStore):
                verify(chain)
            verify(chain)
            code = 0
        except DamagedStore:
            code = 1
        except StorageProblem:
            code = 2
        finally:
            os._exit(code)
    status = os.waitpid(child, 0)[1]
    if os.WIFSIGNALED(status):
        return "ended"
    return ("in order", "damaged", "refused", "", "untyped")[os.WEXITSTATUS(status)]


@pytest.mark.parametrize("kind", ["zeros", "noise"])
def test_pages_that_are_overwritten(place: Path, kind: str) -> None:
    """Each in turn: it is found, unless the page is a free one."""
    file = place / "data" / "data.mdb"
    whole = file.read_bytes()
    random.seed(1)
    pages = random.sample(range(len(whole) // PAGE), 40)
    with file.open("rb") as opened:
        head = _newest_head(opened)
        assert head is not None
        free = _free_pages(opened, head)
    found: dict[str, list[int]] = {}
    for page in pages:
        wrong = bytes(PAGE) if kind == "zeros" else random.randbytes(PAGE)
        changed = bytearray(whole)
        changed[page * PAGE : (page + 1) * PAGE] = wrong
        file.write_bytes(changed)
        found.setdefault(outcome(place / "data"), []).append(page)
    print(f"\n{kind}: { {name: len(each) for name, each in found.items()} }")
    assert not found.keys() & {"untyped", "refused"}, found
    assert "damaged" in found
    assert set(found.get("in order", ())) <= free


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
    with (
        lmdb.open(str(place / "data"), map_size=1 << 28) as environment,
        environment.begin(write=True) as transaction,
        transaction.cursor() as cursor,
    ):
        assert cursor.set_range(prefix)
        for _ in range(3):
            cursor.next()
        key = cursor.key()
        assert key.startswith(prefix)
        if missing:
            cursor.delete()
        else:
            cursor.put(key, RECORDS[prefix])
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
        with store.database._env.begin(write=True) as transaction:
            transaction.put(key, b"\xc1")
    store.database.refresh()
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
