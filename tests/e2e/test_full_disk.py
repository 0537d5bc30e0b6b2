"""The disk of a node, its wallet and its signer's node is full at moments of chance: nothing that
anybody was told is lost, and everything goes on by itself when there is room.

``SOLITON_FAULT_ROUNDS`` sets how often it is full in one run; the default keeps the tests short.
"""

from __future__ import annotations

import base64
import contextlib
import http.client
import json
import os
import random
import resource
import secrets
import sys
import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from soliton.devnet.accounts import RICH_SEED
from soliton.node.settings import api_key_hash_text
from tests.amounts import if_long, times
from tests.api.chain import RICH_ADDRESS
from tests.e2e.programs import (
    API_KEY,
    Program,
    call,
    devnet,
    eventually,
    height,
    is_mined,
    run,
)
from tests.mounts import mounted
from tests.ports import free_port

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="small disks and limits of other processes"),
]

ROUNDS: Final = int(os.environ.get("SOLITON_FAULT_ROUNDS", times(1, 3)))
DISK_BYTES: Final = (64 + 12 * ROUNDS) * 1024 * 1024
FILL_BYTES: Final = 256 * 1024
VALUE_BYTES: Final = 4_000
BROKEN: Final = (OSError, http.client.HTTPException, urllib.error.URLError, ValueError)
"""What a request meets while its server is killed."""


@pytest.fixture
def disk() -> Iterator[Path]:
    """A small disk."""
    with mounted("tmpfs", "-t", "tmpfs", "-o", f"size={DISK_BYTES}") as place:
        yield place


class Notes:
    """What clients were told, and what else they saw."""

    def __init__(self) -> None:
        self.blocks: dict[int, str] = {}
        self.transactions: dict[str, int] = {}
        self.events: dict[str, int] = {}
        self.addresses: set[str] = set()
        self.statuses: Counter[tuple[str, int]] = Counter()
        self.wrong: list[str] = []

    def answered(self, what: str, status: int, body: bytes) -> None:
        self.statuses[what, status] += 1
        code = json.loads(body)["error"] if status >= 500 and body[:1] == b"{" else None
        # The node is killed again and again: whoever stands before it says that it is away.
        if status == 500 or (status == 503 and code not in (5033, 5034, 5036, 5038)):
            self.wrong.append(f"{what}: {status} {body[:200]!r}")


class Load:
    """Clients that never stop: each in a thread of its own."""

    def __init__(self, node: str, signer: str, wallet: str, notes: Notes) -> None:
        self._node, self._signer, self._wallet, self._notes = node, signer, wallet, notes
        self._over = threading.Event()
        works = (self._send, self._sign, self._look, self._add_account, self._listen)
        self._threads = [threading.Thread(target=self._repeat, args=(work,)) for work in works]
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()

    def _repeat(self, work: Callable[[], None]) -> None:
        while not self._over.is_set():
            try:
                work()
            except BROKEN:
                time.sleep(0.02)

    def _ask(self, what: str, url: str, body: object = None, key: str | None = None) -> Any:
        answer = call(url, body, key=key)
        self._notes.answered(what, answer.status, answer.body)
        return answer.json() if answer.status == 200 else None

    def _send(self) -> None:
        """A data transaction that takes room, signed by the node's wallet; wait for its block."""
        value = "base64:" + base64.b64encode(secrets.token_bytes(VALUE_BYTES)).decode()
        entry = {"key": "k", "type": "binary", "value": value}
        unsigned = {"type": 12, "version": 2, "sender": RICH_ADDRESS, "data": [entry]}
        unsigned["fee"] = 10_000_000
        signed = self._ask("sign", f"{self._node}/transactions/sign", unsigned, API_KEY)
        sent = signed and self._ask("send", f"{self._node}/transactions/broadcast", signed)
        if sent:
            self._wait(sent["id"])

    def _sign(self) -> None:
        """The same through the signer."""
        data = [{"key": "s", "value": list(secrets.token_bytes(64))}]
        sent = self._ask("signer", f"{self._signer}/data", {"seed": RICH_SEED, "data": data})
        name = sent and (sent.get("id") or sent.get("tx", {}).get("id"))
        if name:
            self._wait(name)

    def _wait(self, name: str) -> None:
        found = self._ask("wait", f"{self._node}/transactions/wait/{name}?timeout=2")
        if found and found["status"] == "confirmed":
            self._notes.transactions[name] = found["height"]

    def _look(self) -> None:
        found = self._ask("look", f"{self._node}/blocks/headers/last")
        if found:
            self._notes.blocks[found["height"]] = found["id"]
        time.sleep(0.02)

    def _add_account(self) -> None:
        found = self._ask("account", f"{self._wallet}/addresses", "", API_KEY)
        if found:
            self._notes.addresses.add(found["address"])
        time.sleep(0.1)

    def _listen(self) -> None:
        with urllib.request.urlopen(f"{self._node}/events", timeout=2) as stream:
            name = b""
            for line in stream:
                if self._over.is_set():
                    return
                if line.startswith(b"event: "):
                    name = line[7:].strip()
                elif line.startswith(b"data: ") and name == b"block":
                    block = json.loads(line[6:])
                    self._notes.blocks[block["height"]] = block["id"]
                elif line.startswith(b"data: ") and name == b"transaction":
                    told = json.loads(line[6:])
                    self._notes.events[told["transaction"]["id"]] = told["height"]


class Programs:
    """A devnet whose disk is small, and a node with a wallet on the same disk."""

    def __init__(self, disk: Path, elsewhere: Path, workers: int) -> None:
        self.disk = disk
        self.workers = workers
        self.ports = free_port(), free_port(), free_port(), free_port()
        self.config = elsewhere / "wallet.conf"
        self.config.write_text(
            f"""soliton {{
              directory = "{disk}/second"
              blockchain.type = devnet
              wallet {{ file = "{disk}/wallet/wallet.dat", password = "{API_KEY}" }}
              rest-api {{ port = {self.ports[3]}, api-key-hash = "{api_key_hash_text(API_KEY)}" }}
            }}"""
        )
        self.node = self.second = self._none()
        self.start()

    def _none(self) -> Program:
        """Until they are started."""
        return None  # type: ignore[return-value]

    def start(self) -> None:
        node, signer, matcher, _ = self.ports
        options = ("--port", node, "--signer-port", signer, "--matcher-port", matcher)
        more = ("--data-dir", self.disk / "node", "--workers", self.workers)
        self.node = Program(("devnet", *options, *more), {})
        self.second = Program(("run", "--config", self.config), {})
        self.node.wait_for("Ready.")
        self.second.wait_for("REST API on")

    def url(self, number: int) -> str:
        return f"http://127.0.0.1:{self.ports[number]}"

    def kill(self) -> None:
        for program in (self.node, self.second):
            program.process.kill()
        for program in (self.node, self.second):
            program.close()

    def reasons(self) -> str:
        with contextlib.suppress(*BROKEN):
            return str(call(f"{self.url(0)}/readyz").json()["reasons"])
        return ""

    def fill(self) -> None:
        """Until not a byte more goes on the disk, however that is used meanwhile."""
        with (self.disk / "filler").open("ab", buffering=0) as file:
            size = FILL_BYTES
            while size:
                try:
                    file.write(bytes(size))
                except OSError:
                    size //= 2
                if random.random() < 0.005:
                    time.sleep(0.01)

    def free(self) -> None:
        (self.disk / "filler").unlink(missing_ok=True)

    def used(self) -> int:
        return sum(file.stat().st_size for file in (self.disk / "node" / "data").glob("*"))


@pytest.mark.parametrize("workers", [if_long(0), 1])
def test_nothing_that_was_told_is_lost(disk: Path, tmp_path: Path, workers: int) -> None:
    notes, programs = Notes(), Programs(disk, tmp_path, workers)
    load = Load(programs.url(0), programs.url(1), programs.url(3), notes)
    outputs = []
    refused = Counter[str]()
    try:
        for number in range(ROUNDS):
            goal = len(notes.transactions) + 5
            eventually(lambda: len(notes.transactions) >= goal, "confirmed transactions")  # noqa: B023
            time.sleep(random.random() / 2)
            programs.fill()
            eventually(lambda: "no space left" in programs.reasons(), "a full disk")
            before = call(f"{programs.url(0)}/blocks/height").json()
            time.sleep(random.random())
            assert call(f"{programs.url(0)}/blocks/height").json() == before
            refused["wallet"] = notes.statuses["account", 503]
            if number % 2:
                # It goes on by itself, and is killed at some time after that.
                programs.free()
                stood = before["height"]
                eventually(
                    lambda: height(programs.url(0)) > stood,  # noqa: B023
                    "a block after there was room",
                )
                eventually(lambda: programs.reasons() == "[]", "a ready node")
                time.sleep(random.random() / 4)
            programs.kill()
            outputs.append(programs.node.output)
            outputs.append(programs.second.output)
            programs.free()
            programs.start()
        eventually(lambda: programs.reasons() == "[]", "a ready node")
    finally:
        load.stop()
        programs.free()
    lost = _lost(programs, notes)
    programs.kill()
    outputs += [programs.node.output, programs.second.output]
    print(
        f"\n{ROUNDS} times full, {workers} workers: {len(notes.blocks)} blocks told, "
        f"{len(notes.transactions)} transactions confirmed, {len(notes.events)} by events, "
        f"{len(notes.addresses)} accounts; lost {len(lost)}; answers "
        f"{ {f'{what} {status}': count for (what, status), count in notes.statuses.items()} }"
    )
    assert lost == []
    assert notes.wrong == []
    for output in outputs:
        # Nor has a worker whose node is killed, which breaks off the streams that it passes on.
        assert "Traceback" not in output
    assert sum("no space left in " in output for output in outputs) >= ROUNDS
    ended = run("verify", "--data-dir", disk / "node", "--network", "devnet")
    assert ended.returncode == 0, ended.stderr


def _lost(programs: Programs, notes: Notes) -> list[str]:
    """What somebody was told and is not so."""
    url, lost = programs.url(0), []
    for at, name in notes.blocks.items():
        if call(f"{url}/blocks/headers/at/{at}").json().get("id") != name:
            lost.append(f"block {at}")
    for name, at in (notes.events | notes.transactions).items():
        if call(f"{url}/transactions/info/{name}").json().get("height") != at:
            lost.append(f"transaction {name}")
    known = set(call(f"{programs.url(3)}/addresses").json())
    return lost + sorted(notes.addresses - known)


def test_an_import_ends_and_goes_on(shared: Path, disk: Path) -> None:
    path = shared / "data" / "waves-mainnet-blocks-2-10000.bin"
    options = ("--network", "waves-mainnet", "--data-dir", disk / "chain")
    filler = disk / "filler"
    with filler.open("wb") as file:
        file.truncate(0)
        os.posix_fallocate(file.fileno(), 0, DISK_BYTES - 6 * 1024 * 1024)
    ended = run("import", path, *options, "--to-height", 4_500)
    assert ended.returncode == 1, ended.stderr
    last = ended.stderr.splitlines()[-1]
    assert last.startswith(f"soliton: no space left in {disk}/chain/data: "), last
    assert "make room and import again: it goes on after height " in last
    assert "Traceback" not in ended.stderr
    stood = int(ended.stdout.splitlines()[0].removeprefix("height "))
    assert f"after height {stood}" in last
    ended = run("rollback", "--to-height", 1, "--data-dir", disk / "chain")
    assert ended.returncode == 1 or ended.stdout.startswith("height 1\n")
    assert "Traceback" not in ended.stderr
    filler.unlink()
    ended = run("import", path, *options, "--to-height", 4_500)
    assert ended.returncode == 0, ended.stderr
    rows = (shared / "data" / "waves-mainnet-statehash-1-5000.tsv").read_text().splitlines()
    found = dict(line.rsplit(" ", 1) for line in ended.stdout.splitlines())
    assert found["height"] == "4500"
    assert any(row.split("\t")[0] == "4500" and found["state hash"] in row for row in rows)


def test_files_that_may_not_grow(tmp_path: Path) -> None:
    """The same without a disk of its own: the system lets no file of the node grow."""
    with devnet("--data-dir", tmp_path / "node") as program:
        url = program.node_url
        entry = {"key": "k", "type": "binary", "value": "base64:" + "A" * 8_000}
        unsigned = {"type": 12, "version": 2, "sender": RICH_ADDRESS, "data": [entry]}

        def send() -> str:
            signed = call(f"{url}/transactions/sign", unsigned | {"fee": 10_000_000}, key=API_KEY)
            answer = call(f"{url}/transactions/broadcast", signed.json())
            assert answer.status == 200, answer.body
            return str(answer.json()["id"])

        def limit(size: int) -> None:
            infinite = resource.RLIM_INFINITY
            resource.prlimit(program.process.pid, resource.RLIMIT_FSIZE, (size, infinite))

        first = send()
        eventually(lambda: is_mined(url, first), "a block")
        limit(0)
        sent: list[str] = []

        def paused() -> bool:
            sent.append(send())
            return call(f"{url}/readyz").status == 503

        eventually(paused, "a node that cannot write")
        assert not is_mined(url, sent[-1])
        stands = height(url)
        assert call(f"{url}/readyz").json()["height"] == stands
        limit(resource.RLIM_INFINITY)
        eventually(lambda: all(is_mined(url, each) for each in sent), "all of them in blocks")
        assert height(url) > stands
        assert program.output.count("mining pauses until this is mended") == 1
        program.wait_for("the disk can be written again: mining goes on")
        assert "Traceback" not in program.output
