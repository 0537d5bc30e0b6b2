"""No sequence of requests and crashes spends more than a window allows.

What lives here: a signer whose process ends at any moment, in random sequences and as a real
process that is killed. What counts as signed is what a client was given, and what the log tells.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import shutil
import signal
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from http.client import HTTPException
from pathlib import Path
from typing import Any, Final

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from soliton.crypto import base58
from soliton.crypto.hashes import secure_hash
from soliton.signer.boot_clock import BootClock
from soliton.signer.journal import Journal, read_all
from soliton.signer.measures import Kind
from soliton.signer.policy import Allowed, Question
from soliton.signer.policy_file import parse_policy, policy_hash
from soliton.signer.records import Entry, Event
from soliton.signer.signable import ReadContext, read_signable
from soliton.signer.state import SignerState
from tests.e2e.programs import started
from tests.signer.kept import (
    BOT,
    CHAIN_ID,
    COLD_ADDRESS,
    HOT,
    KEYS,
    NOW,
    PASSWORD,
    TRANSFER,
    Place,
)
from tests.web.memory import MemoryHttp

HOUR: Final = 3_600_000
MOST: Final = 100
RULES: Final = f"""
[[rule]]
name = "hour"
signs = ["transfer"]
keys = "any"
callers = "any"
recipients = "any"
amounts = "any"
fees = "any"
windows = [{{ amounts = "WAVES", most = {MOST}, within = "1h" }}]
"""


class World:
    """A disk, a machine's clock, and a signer that may end at any moment."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.policy = parse_policy(RULES.encode(), "policy.toml", CHAIN_ID)
        self.since_boot = 1_000
        self.boots = 0
        self.true_time = 0
        self.given: list[tuple[int, int]] = []
        """When a signature left, in time that nobody can turn, and for how much."""
        self.start()

    def start(self) -> None:
        self.book = SignerState(BootClock(lambda: self.since_boot, lambda: f"boot {self.boots}"))
        self.journal = Journal(self.directory, durable=False)
        self.journal.load(self.book.replay)
        self.book.resume()
        clock = self.book.clock
        self.journal.append_now(
            Entry(
                *(0, "", 0, clock.now(), Event.START),
                boot=clock.boot,
                since_boot=clock.since_boot(),
            )
        )

    def sign(self, amount: int, *, disk_is_full: bool = False) -> None:
        request = {"type": 4, "version": 3, "recipient": COLD_ADDRESS, "fee": 1, "amount": amount}
        reading = ReadContext(HOT.public_key, CHAIN_ID, NOW, None, {})
        asked = read_signable(Kind.TRANSACTION, request, reading).measures
        now, windows = self.book.clock.now(), self.book.windows
        question = Question(asked, "hot", HOT.public_key, "bot", CHAIN_ID, NOW)
        decided = self.policy.decide(question, windows, now)
        if not isinstance(decided, Allowed):
            return
        windows.charge(decided.charges, now)
        if disk_is_full:
            windows.take_back(decided.charges, now)
            return
        entry = Entry(0, "", 0, now, Event.SIGN, charges=decided.charges)
        if self.journal.is_full:
            self.journal.append(self.book.checkpoint(0), lambda _problem: None)
        self.journal.append(entry, lambda _problem: None)
        self.given.append((self.true_time, amount))

    def crash(self, torn: int) -> None:
        """The process ends; the beginning of a line that nobody was told of may be there."""
        self.journal.close()
        last = max(self.directory.glob("audit-*.jsonl"))
        with last.open("ab") as file:
            file.write(b'{"number":12345,"before":"abc'[:torn])
        self.start()

    def reboot(self, off: int) -> None:
        self.journal.close()
        self.boots += 1
        self.true_time += off
        self.since_boot = 50
        self.start()

    def pass_time(self, milliseconds: int) -> None:
        self.since_boot += milliseconds
        self.true_time += milliseconds

    def check(self) -> None:
        for begin, _ in self.given:
            spent = sum(amount for at, amount in self.given if begin <= at < begin + HOUR)
            assert spent <= MOST


STEPS: Final = st.lists(
    st.one_of(
        st.tuples(st.just("sign"), st.integers(1, MOST)),
        st.tuples(st.just("fail"), st.integers(1, MOST)),
        st.tuples(st.just("crash"), st.integers(0, 29)),
        st.tuples(st.just("reboot"), st.integers(0, 3 * HOUR)),
        st.tuples(st.just("wait"), st.integers(0, 2 * HOUR)),
    ),
    max_size=40,
)


@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(steps=STEPS)
def test_no_sequence_spends_more_than_a_window_allows(
    steps: list[tuple[str, int]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    directory = tmp_path_factory.mktemp("world")
    world = World(directory)
    try:
        does: dict[str, Callable[[int], None]] = {
            "sign": world.sign,
            "fail": lambda amount: world.sign(amount, disk_is_full=True),
            "crash": world.crash,
            "reboot": world.reboot,
            "wait": world.pass_time,
        }
        for name, number in steps:
            does[name](number)
        world.check()
    finally:
        world.journal.close()
        shutil.rmtree(directory)


def test_a_window_is_used_to_its_end_and_opens_again(tmp_path: Path) -> None:
    world = World(tmp_path)
    for _ in range(3):
        world.sign(40)
    world.crash(20)
    world.sign(40)
    assert [amount for _, amount in world.given] == [40, 40]
    world.sign(20)
    world.pass_time(HOUR + HOUR // 64 + 1_000)
    world.crash(0)
    world.sign(100)
    assert [amount for _, amount in world.given] == [40, 40, 20, 100]
    world.check()
    world.journal.close()


# --- a real process, killed many times ------------------------------------------------------------

FORKS: Final = int(
    os.environ.get(
        "SOLITON_SIGNER_FORKS", "1000" if os.environ.get("SOLITON_TESTS") == "long" else "5"
    )
)
"""A process that is forked has no modules to import, so that many can be killed."""


def _spend(place: Place, told: int) -> None:
    """In a process of its own: have one unit after the other signed, and tell what was given."""

    async def run() -> None:
        app = place.app(clock=lambda: time.time_ns() // 1_000_000)
        assert app._keys is not None
        app._keys.pipeline.keyring.find("hot").unlock(HOT, 2**62)
        transport = MemoryHttp(app)
        async with httpx.AsyncClient(
            transport=transport, base_url="http://signer.test", timeout=60
        ) as client:
            while True:
                body = {"key": "hot", "transaction": {**TRANSFER, "amount": 1}}
                answer = await client.post("/sign", json=body, headers=BOT)
                if answer.status_code == 403:
                    # It is asked on: what was spent before a kill stays spent behind it.
                    assert answer.json()["condition"] == "windows"
                    os.write(told, b"end\n")
                    continue
                os.write(told, answer.json()["signed"]["id"].encode() + b"\n")

    asyncio.run(run())


def _fork_and_kill(place: Place, after: float) -> list[str]:
    """What a signer gave that was killed after so many seconds; ``end`` is what it refused."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.close(reading)
            _spend(place, writing)
            code = 0
        finally:
            os._exit(code)
    os.close(writing)
    with os.fdopen(reading, "rb") as told:
        first = told.readline()
        time.sleep(after)
        os.kill(child, signal.SIGKILL)
        rest = told.read()
    os.waitpid(child, 0)
    return (first + rest).decode().split("\n")[:-1]


@pytest.mark.slow
def test_many_processes_that_are_killed_never_give_more(tmp_path: Path) -> None:
    chance = random.Random(11)
    most = 3 * FORKS
    place = Place(tmp_path, RULES.replace(f"most = {MOST}", f"most = {most}"))
    given: list[str] = []
    for _ in range(FORKS):
        told = _fork_and_kill(place, chance.random() * 0.05)
        given += [each for each in told if each != "end"]
    assert len(given) == len(set(given)) <= most
    signed = [each for each, _ in read_all(place.state) if each.event is Event.SIGN]
    assert set(given) <= {id_ for each in signed for id_ in each.ids}
    spent = sum(amount for each in signed for _, _, amount in each.charges)
    assert spent <= most
    print(f"{FORKS} kills: {len(given)} given, {spent} spent of {most}")


# --- the program, killed --------------------------------------------------------------------------

KILLS: Final = int(os.environ.get("SOLITON_SIGNER_KILLS", "3"))
"""More of them, where somebody has the time: each takes a second."""
PER_ROUND: Final = 4


def _config(place: Place, port: int) -> str:
    hashed = base58.encode(secure_hash(KEYS["bot"].encode()))
    return f"""soliton {{
  blockchain.type = devnet
  signer {{
    port = {port}
    keys-directory = "{place.keys}"
    policy-file = "{place.rules}"
    policy-hash = "{policy_hash(place.rules.read_bytes())}"
    state-directory = "{place.state}"
    callers = [{{ name = bot, key-hash = "{hashed}", may = [sign, unlock] }}]
  }}
}}
"""


def post(url: str, body: dict[str, Any]) -> tuple[int, Any]:
    """Status and answer; raises ``OSError`` where none comes."""
    headers = {**BOT, "Content-Type": "application/json"}
    request = urllib.request.Request(url, json.dumps(body).encode(), headers)
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, json.loads(answer.read())
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.loads(error.read())


@pytest.mark.slow
def test_a_process_that_is_killed_never_gives_more(tmp_path: Path) -> None:
    most = KILLS * PER_ROUND * 2
    rules = RULES.replace(f"most = {MOST}", f"most = {most}")
    place = Place(tmp_path, rules)
    config = tmp_path / "signer.conf"
    config.write_text(_config(place, 0), encoding="utf-8")
    chance, given = random.Random(7), list[str]()
    for round_ in range(KILLS + 1):
        with started("signer", "--config", config, until="signer on http://") as program:
            url = program.signer_url
            assert post(f"{url}/keys/unlock", {"password": PASSWORD})[0] == 200
            killer = threading.Timer(chance.random() * 0.3, program.process.kill)
            if round_ < KILLS:
                killer.start()
            while True:
                request = {"type": 4, "version": 3, "recipient": COLD_ADDRESS, "fee": 1}
                body = {"key": "hot", "transaction": {**request, "amount": 1}}
                try:
                    status, told = post(f"{url}/sign", body)
                except (OSError, HTTPException, ValueError):
                    break
                if status == 403:
                    assert told["condition"] == "windows"
                    break
                assert status == 200, told
                given.append(told["signed"]["id"])
            killer.cancel()
    assert len(given) == len(set(given)) <= most
    signed = [each for each, _ in read_all(place.state) if each.event is Event.SIGN]
    # Every signature that was given stands in the log, and the log itself keeps to the window.
    assert set(given) <= {id_ for each in signed for id_ in each.ids}
    assert sum(amount for each in signed for _, _, amount in each.charges) <= most
