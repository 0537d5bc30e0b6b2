"""``soliton doctor``: each check with what it finds wrong, the advice, and the exit code."""

from __future__ import annotations

import json
import os
import resource
import shutil
import socket
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from soliton.cli import diagnosis
from soliton.cli.diagnosis import is_clock_synchronized
from soliton.crypto import base58
from soliton.node.network_time import Answer, NoTime
from soliton.node.settings import api_key_hash_text
from tests.cli.fake_nodes import FakeNode, served
from tests.cli.here import run_here
from tests.cli.test_compare import chain
from tests.node.chains import mine, open_chain
from tests.ports import free_port

CONFIGURATION = """
waves {{
  blockchain.type = STAGENET
  directory = "{directory}"
  wallet {{ file = "{directory}/wallet.dat", password = "secret" }}
  network {{ bind-address = "127.0.0.1", port = {peers}, known-peers = [{known}] }}
  rest-api {{ bind-address = "{host}", port = {port}, api-key-hash = "{key}" }}
  {more}
}}
"""
GOOD_KEY = "".join(str(each) for each in range(20))
OWN: dict[str, object] = {
    "/node/version": {"version": "Waves v1.6.6"},
    "/peers/connected": {"peers": [{"address": "/1.2.3.4:6868", "applicationVersion": "1.6.6"}]},
    "/activation/status": {"features": [], "height": 9},
    "/utils/time": {"system": 1, "NTP": 1},
}


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """The disk is measured with less than by operators."""
    monkeypatch.setattr(diagnosis, "SYNCS", 2)
    monkeypatch.setattr(diagnosis, "WRITE_BYTES", 64 * 1024)


class Told(NamedTuple):
    """The findings by their checks."""

    code: int
    states: dict[str, list[str]]
    texts: str


def diagnosed(*options: object) -> Told:
    done = run_here("doctor", "--json", "--offline", *options)
    told: dict[str, Any] = json.loads(done.stdout)
    states: dict[str, list[str]] = {}
    for each in told["findings"]:
        states.setdefault(each["check"], []).append(each["state"])
        assert each["state"] in ("ok", "note") or each["advice"]
    assert told["faults"] == sum(each.count("fault") for each in states.values())
    assert done.returncode == (1 if told["faults"] else 0)
    return Told(done.returncode, states, done.stdout)


def configuration(directory: Path, **changes: object) -> Path:
    values: dict[str, object] = {
        "directory": directory,
        "host": "127.0.0.1",
        "port": free_port(),
        "peers": free_port(),
        "known": "",
        "key": api_key_hash_text(GOOD_KEY),
        "more": "",
    }
    path = directory / "node.conf"
    path.write_text(CONFIGURATION.format(**(values | changes)))
    path.chmod(0o600)
    return path


def test_a_good_machine(tmp_path: Path) -> None:
    told = diagnosed("--config", configuration(tmp_path), "--api-key", GOOD_KEY)
    assert told.code == 0, told.texts
    assert told.states["settings"] == ["ok"]
    assert told.states["key files"] == ["ok"] and told.states["API key"] == ["ok"]
    assert told.states["node"] == ["note"] and told.states["chain"] == ["note"]
    text = run_here("doctor", "--offline", "--config", tmp_path / "node.conf").stdout
    assert "-> start it: soliton run --config" in text and " checks: 0 faults" in text


def test_settings_that_are_wrong(tmp_path: Path) -> None:
    told = diagnosed("--config", configuration(tmp_path, more="miner.quorum = many"))
    assert told.code == 1 and told.states["settings"] == ["fault"]
    assert "quorum" in told.texts
    assert diagnosed("--network", "nowhere").states == {"settings": ["fault"]}


def test_files_with_keys(tmp_path: Path) -> None:
    path = configuration(tmp_path)
    wallet = tmp_path / "wallet.dat"
    wallet.write_bytes(b"x")
    wallet.chmod(0o600)
    for each in (path, wallet):
        each.chmod(0o640)
        told = diagnosed("--config", path)
        assert told.states["key files"] == ["fault"], told.texts
        assert f"chmod 600 {each}" in told.texts
        each.chmod(0o600)
    assert diagnosed("--config", path).states["key files"] == ["ok"]


def test_api_keys(tmp_path: Path) -> None:
    public = api_key_hash_text("ridethewaves!")
    for host, state in (("127.0.0.1", "warning"), ("0.0.0.0", "fault")):
        path = configuration(tmp_path, key=public, host=host)
        told = diagnosed("--config", path)
        assert told.states["API key"] == [state], told.texts
    path = configuration(tmp_path)
    told = diagnosed("--config", path, "--api-key", "short")
    # It is another key than that of the settings, and too short.
    assert told.states["API key"] == ["ok", "warning", "warning"]


def test_a_port_that_another_program_has(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        told = diagnosed("--config", configuration(tmp_path, port=port), "--timeout", "0.2")
    assert told.states[f"port {port}"] == ["fault"]
    assert "set rest-api.port" in told.texts


@pytest.mark.parametrize(
    ("free", "state"), [(2**30 - 1, "fault"), (2**31, "warning"), (2**40, "ok")]
)
def test_room_on_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, free: int, state: str
) -> None:
    usage = shutil.disk_usage(tmp_path)._replace(free=free)
    monkeypatch.setattr(shutil, "disk_usage", lambda _path: usage)
    told = diagnosed("--network", "devnet", "--data-dir", tmp_path / "not" / "there")
    assert told.states["disk"] == [state]
    assert list(tmp_path.iterdir()) == []


def test_a_disk_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", refuse)
    told = diagnosed("--network", "devnet", "--data-dir", tmp_path)
    assert told.states["disk speed"] == ["fault"]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("limit", "state"), [(64, "fault"), (4_096, "warning"), (8_192, "ok")])
def test_limits_on_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: int, state: str
) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _which: (limit, limit))
    told = diagnosed("--network", "devnet", "--data-dir", tmp_path)
    assert told.states["open files"] == [state]


@pytest.mark.parametrize(
    ("offset", "state"), [(0.05, "ok"), (-0.5, "warning"), (61, "fault"), (None, "warning")]
)
def test_a_time_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, offset: float | None, state: str
) -> None:
    async def ask(_server: str) -> Answer:
        if offset is None:
            raise NoTime
        return Answer(offset, 0.01)

    monkeypatch.setattr(diagnosis, "ask_server", ask)
    path = configuration(tmp_path, more='ntp-server = "time.example"')
    done = run_here("doctor", "--json", "--config", path)
    told: dict[str, Any] = json.loads(done.stdout)
    found = {each["check"]: each["state"] for each in told["findings"]}
    assert found["time server"] == state
    # A private chain has no peers; nobody is dialled.
    assert found["peers"] == "note"


@pytest.mark.skipif(sys.platform != "linux", reason="asks the kernel of Linux")
def test_the_kernel_says_whether_its_clock_is_synchronized() -> None:
    assert is_clock_synchronized() in (True, False)


@pytest.mark.parametrize("state", [None, True, False])
def test_a_clock_that_nobody_sets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, state: bool | None
) -> None:
    monkeypatch.setattr(diagnosis, "is_clock_synchronized", lambda: state)
    told = diagnosed("--network", "devnet", "--data-dir", tmp_path)
    expected = {None: None, True: ["ok"], False: ["warning"]}[state]
    assert told.states.get("clock") == expected


def test_known_peers(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as peer:
        there = f'"127.0.0.1:{peer.getsockname()[1]}"'
        gone = f'"127.0.0.1:{free_port()}"'
        for known, state in ((there, "ok"), (gone, "fault"), (f"{there}, {gone}, {gone}", "")):
            path = configuration(tmp_path, known=known, more='ntp-server = ""')
            told = json.loads(run_here("doctor", "--json", "--config", path).stdout)
            found = {each["check"]: each["state"] for each in told["findings"]}
            assert found["peers"] == (state or "warning")


# --- a running node -------------------------------------------------------------------------------


def at_node(tmp_path: Path, answers: dict[str, object], *options: object) -> Told:
    with served(FakeNode(chain(9), answers=OWN | answers)) as url:
        return diagnosed("--node", url, "--data-dir", tmp_path, *options)


def test_a_running_node(tmp_path: Path) -> None:
    told = at_node(tmp_path, {})
    assert told.code == 0, told.texts
    assert (told.states["node"], told.states["peers"]) == (["ok"], ["ok"])
    assert told.states["features"] == ["ok"]
    assert "versions 1.6.6: 1" in told.texts
    told = at_node(tmp_path, {"/peers/connected": 500})
    assert told.states["peers"] == ["warning"]


def test_a_node_of_another_chain(tmp_path: Path) -> None:
    with served(FakeNode(chain(9), answers=OWN)) as url:
        path = configuration(tmp_path)
        told = diagnosed("--config", path, "--node", url)
    assert told.states["node"] == ["fault"] and "its chain is R, not S" in told.texts


def test_a_node_that_is_named_and_not_there(tmp_path: Path) -> None:
    told = diagnosed("--node", f"http://127.0.0.1:{free_port()}", "--data-dir", tmp_path)
    assert told.states["node"] == ["fault"]


WINDOW = {"height": 1_500, "votingInterval": 1_000, "votingThreshold": 800, "nextCheck": 2_000}


def voting(status: str, votes: int = 0, feature: int = 27, **more: object) -> dict[str, object]:
    row = {
        "id": feature,
        "description": "Finality \x1b[31mImprovements",
        "blockchainStatus": status,
        "nodeStatus": "NOT_IMPLEMENTED",
        "supportingBlocks": votes,
    }
    return {"/activation/status": WINDOW | {"features": [row | more]}}


@pytest.mark.parametrize(
    ("answers", "state", "words"),
    [
        (voting("VOTING", 0), "ok", ""),
        (voting("VOTING", 10), "note", "2 % of 500 blocks"),
        (voting("VOTING", 400), "warning", "80 % of 500 blocks vote for it, 80 % approve it by "),
        (voting("VOTING", 400), "warning", "height 2000; active from 3000 on then, about 20"),
        (voting("APPROVED", activationHeight=3_000), "fault", "active from 3000 on"),
        (voting("ACTIVATED", activationHeight=900), "fault", "is active since height 900"),
        (voting("ACTIVATED", feature=25, activationHeight=900), "ok", ""),
        # A node that counts wrongly, or far ahead.
        (voting("VOTING", 10**18), "warning", "vote for it"),
        (voting("APPROVED", activationHeight=2**62), "fault", "about 9999-12-3"),
        ({"/activation/status": {"features": "none"}}, "warning", "invalid"),
    ],
)
def test_features(tmp_path: Path, answers: dict[str, object], state: str, words: str) -> None:
    told = at_node(tmp_path, answers)
    assert told.states["features"] == [state], told.texts
    assert words in told.texts


def test_forks(tmp_path: Path) -> None:
    own, other, third = FakeNode(chain(30), answers=OWN), chain(30, 5), chain(45)
    with served(own) as here, served(FakeNode(other, answers=OWN)) as there:
        told = diagnosed("--node", here, "--against", there, "--data-dir", tmp_path)
        assert told.code == 1 and told.states[f"chain against {there}"] == ["fault"]
        assert "the block at height 5 differs" in told.texts
        with served(FakeNode(third, answers=OWN)) as judge:
            against = ("--against", there, "--against", judge)
            told = diagnosed("--node", here, *against, "--data-dir", tmp_path)
        assert "a third node agrees with the own" in told.texts
        assert told.states[f"chain against {judge}"] == ["warning"]
        assert "15 blocks behind" in told.texts


def test_the_chain_of_a_node_that_does_not_run(tmp_path: Path) -> None:
    own = open_chain(tmp_path / "data")
    for _ in range(5):
        mine(own, ())
    ids = [base58.encode(own.meta(at).id) for at in range(1, own.height + 1)]
    own.store.close()
    where = ("--network", "devnet", "--data-dir", tmp_path)
    for names, state in ((ids, "ok"), ([*ids[:3], "x", "y", "z"], "fault"), (ids[:4], "ok")):
        with served(FakeNode(names, answers=OWN)) as url:
            told = diagnosed(*where, "--against", url, "--node", "http://127.0.0.1:1")
        assert told.states[f"chain against {url}"] == [state], told.texts
