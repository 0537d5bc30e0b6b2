"""Requests that share a write of the audit log: none of them is answered before it is on the disk.

What lives here: several connections with many requests behind one another, power that fails, and a
process that is killed in the midst of it. The disk of these tests has what was synchronised and
nothing more.
"""

from __future__ import annotations

import asyncio
import json
import mmap
import os
import random
import re
import signal
import socket
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from soliton.signer.journal import read_all
from soliton.signer.records import Event
from soliton.web.server import RunningServer, serve_locally
from tests.signer.kept import HOT, KEYS, TRANSFER, Place, entries
from tests.signer.test_crashes import FORKS, MOST, RULES
from tests.web.test_later_answers import bodies

FILE: Final = "audit-00000001.jsonl"
CONNECTIONS: Final = 4
BEHIND: Final = 32
_ID: Final = re.compile(rb'"id":"([1-9A-HJ-NP-Za-km-z]+)"')


def _request(amount: int = 1, **more: Any) -> bytes:
    """A whole request to sign a transfer."""
    body = json.dumps({"key": "hot", "transaction": {**TRANSFER, "amount": amount}, **more})
    head = f"POST /sign HTTP/1.1\r\nHost: localhost\r\nX-API-Key: {KEYS['bot']}\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n{body}".encode()


def _real_time() -> int:
    return time.time_ns() // 1_000_000


@asynccontextmanager
async def _served(place: Place, path: Path) -> AsyncIterator[RunningServer]:
    """A signer on a socket, its key unlocked."""
    app = place.app(clock=_real_time)
    assert app._keys is not None
    app._keys.pipeline.keyring.find("hot").unlock(HOT, 2**62)
    running = await serve_locally(app, str(path), close=app.close)
    try:
        yield running
    finally:
        await running.stop()


class Disk:
    """Counts what is synchronised of the log, and can wait or fail."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.syncs = 0
        self.surely = 0
        self.seconds = 0.0
        self.fails = False
        monkeypatch.setattr(os, "fdatasync", self.sync)

    def sync(self, file: int) -> None:
        size = os.fstat(file).st_size
        time.sleep(self.seconds)
        if self.fails:
            raise OSError(28, "No space left on device")
        self.syncs += 1
        self.surely = size


async def test_those_who_wait_share_a_write_and_none_is_told_before_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = Disk(monkeypatch)
    place = Place(tmp_path)
    path = tmp_path / "socket"
    async with _served(place, path):
        before = disk.syncs
        disk.seconds = 0.02

        async def ask() -> list[bytes]:
            reader, writer = await asyncio.open_unix_connection(str(path))
            writer.write(_request() * BEHIND)
            ids = []
            for _ in range(BEHIND):
                (answer,) = await bodies(reader, 1)
                sure = (place.state / FILE).read_bytes()[: disk.surely]
                (id_,) = _ID.findall(answer)
                assert id_ in sure
                ids.append(id_)
            writer.close()
            return ids

        given = await asyncio.gather(*(ask() for _ in range(CONNECTIONS)))
    together = CONNECTIONS * BEHIND
    assert len({id_ for ids in given for id_ in ids}) == together
    assert disk.syncs - before <= together // 4


async def test_a_disk_that_fails_refuses_all_of_a_write_and_gives_back_what_they_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = Disk(monkeypatch)
    most = CONNECTIONS * BEHIND
    place = Place(tmp_path, RULES.replace(f"most = {MOST}", f"most = {most}"))
    path = tmp_path / "socket"
    async with _served(place, path):

        async def ask() -> list[int]:
            reader, writer = await asyncio.open_unix_connection(str(path))
            writer.write(_request() * BEHIND)
            answers = [json.loads(each) for each in await bodies(reader, BEHIND)]
            writer.close()
            return [answer.get("error", 0) for answer in answers]

        async def ask_all() -> list[int]:
            found = await asyncio.gather(*(ask() for _ in range(CONNECTIONS)))
            return [each for some in found for each in some]

        disk.fails = True
        assert set(await ask_all()) == {7032}
        disk.fails = False
        # The whole window is there: nothing of what was refused counts.
        assert set(await ask_all()) == {0}
        assert set(await ask_all()) == {7028}
    signed = [each for each in entries(place) if each.event is Event.SIGN]
    assert len(signed) == most


# --- the power fails, the process is killed -------------------------------------------------------


def _serve(place: Place, path: Path, surely: mmap.mmap, chance: random.Random) -> None:
    """In a process of its own: sign on a disk that takes its time."""

    def sync(file: int) -> None:
        size = os.fstat(file).st_size
        time.sleep(chance.random() * 0.004)
        surely[:8] = size.to_bytes(8, "big")

    os.fdatasync = sync  # type: ignore[assignment] # mypy knows it as a function of two systems

    async def run() -> None:
        async with _served(place, path):
            await asyncio.Event().wait()

    asyncio.run(run())


def _in_a_child(work: Callable[[], None]) -> int:
    child = os.fork()
    if child == 0:
        try:
            work()
        finally:
            os._exit(1)
    return child


def _connected(path: Path) -> socket.socket:
    """A connection to the child, once it listens."""
    for _ in range(2_000):
        plug = socket.socket(socket.AF_UNIX)
        try:
            plug.connect(str(path))
        except OSError:
            plug.close()
            time.sleep(0.005)
        else:
            return plug
    raise AssertionError("the signer does not listen")


def _given(plug: socket.socket) -> list[str]:
    """The ids of the whole answers that came."""
    data = b""
    with plug:
        try:
            while more := plug.recv(65_536):
                data += more
        except ConnectionResetError:
            pass
    found = []
    while (at := data.find(b"\r\n\r\n")) >= 0:
        length = int(data[:at].lower().split(b"content-length: ")[1].split(b"\r\n")[0])
        body, data = data[at + 4 : at + 4 + length], data[at + 4 + length :]
        if len(body) == length:
            found += _ID.findall(body)
    return [each.decode() for each in found]


def _round(place: Place, surely: mmap.mmap, chance: random.Random, *, power: bool) -> list[str]:
    """What clients of several connections were given of a signer that is killed meanwhile."""
    path = place.directory / "socket"
    path.unlink(missing_ok=True)
    seed = chance.random()
    child = _in_a_child(lambda: _serve(place, path, surely, random.Random(seed)))
    try:
        plugs = [_connected(path) for _ in range(CONNECTIONS)]
        for plug in plugs:
            plug.sendall(_request() * BEHIND)
        # From the first answer on, so that a busy machine does not kill it before each.
        plugs[0].recv(1, socket.MSG_PEEK)
        time.sleep(chance.random() * 0.05)
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    given = [id_ for plug in plugs for id_ in _given(plug)]
    if power:
        # Of what was not synchronised the disk has some, or nothing.
        log = max(place.state.glob("audit-*.jsonl"))
        size = log.stat().st_size
        sure = min(int.from_bytes(surely[:8], "big"), size)
        os.truncate(log, chance.randint(sure, size))
    return given


@pytest.mark.slow
@pytest.mark.parametrize("power", [False, True], ids=["killed", "power fails"])
def test_no_end_gives_more_than_the_window(tmp_path: Path, *, power: bool) -> None:
    chance = random.Random(19)
    most = 20 * FORKS
    place = Place(tmp_path, RULES.replace(f"most = {MOST}", f"most = {most}"))
    given: list[str] = []
    with mmap.mmap(-1, 8) as surely:
        for _ in range(FORKS):
            given += _round(place, surely, chance, power=power)
    signed = [each for each, _ in read_all(place.state) if each.event is Event.SIGN]
    spent = sum(amount for each in signed for _, _, amount in each.charges)
    # Equal requests are transactions of their own, across the ends, too.
    assert len(given) == len(set(given))
    # Whatever was given stands in the log, and the log keeps to the window.
    assert set(given) <= {id_ for each in signed for id_ in each.ids}
    assert given
    assert spent <= most
    print(f"{FORKS} ends: {len(given)} given, {spent} spent of {most}")
