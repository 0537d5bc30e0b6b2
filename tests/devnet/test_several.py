"""``soliton devnet --nodes N``: a network of processes that mine, agree, and are killed.

``SOLITON_KILLS`` says how many times a node of five is killed; the suite is content with a few.
"""

from __future__ import annotations

import json
import os
import random
import re
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from soliton.devnet.accounts import funded_accounts
from soliton.devnet.several import MAX_FAILED_STARTS
from tests.e2e.programs import (
    Program,
    balance,
    call,
    eventually,
    height,
    is_mined,
    run,
    signed_transfer,
    started,
)

ACCOUNTS = funded_accounts(ord("R"))
KILLS = int(os.environ.get("SOLITON_KILLS", "3"))
NODES = 5 if KILLS > 3 else 3

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    directory = tmp_path_factory.mktemp("several")
    ports = [f"--{name}={0}" for name in ("port", "signer-port", "matcher-port")]
    arguments = ["devnet", f"--nodes={NODES}", "--block-time=1", f"--data-dir={directory}", *ports]
    with started(*arguments, until="Ready.") as program:
        yield program


def urls(network: Program) -> list[str]:
    return re.findall(r"^  node +(http://\S+)", network.output, re.MULTILINE)


def pids(network: Program) -> list[int]:
    """Of the nodes as they are now, in their order."""
    found = {}
    for each in Path("/proc").iterdir():
        try:
            words = (each / "cmdline").read_bytes().split(b"\0")
            parent = int((each / "stat").read_text().rpartition(")")[2].split()[1])
        except (OSError, ValueError, IndexError):
            continue
        if parent == network.process.pid and b"soliton.devnet.member" in words:
            found[json.loads(words[-2])["number"]] = int(each.name)
    return [found[number] for number in sorted(found)]


def block_id(url: str, at: int) -> str:
    found: str = call(f"{url}/blocks/headers/at/{at}").json()["id"]
    return found


def state_hash(url: str, at: int) -> str:
    found: str = call(f"{url}/debug/stateHash/{at}").json()["stateHash"]
    return found


def answers(url: str) -> bool:
    try:
        return height(url) > 0
    except (OSError, KeyError):
        return False


def agree_at(nodes: list[str], at: int) -> bool:
    try:
        return len({block_id(each, at) for each in nodes}) == 1
    except (OSError, KeyError):
        return False


def all_agree(nodes: list[str], above: int) -> int:
    """Wait until all have the same block higher than that, two below the last one; its height."""
    found = 0

    def same() -> bool:
        nonlocal found
        try:
            found = min(map(height, nodes)) - 2
        except OSError:
            return False
        return found > above and agree_at(nodes, found)

    eventually(same, f"one chain above {above}")
    return found


def everywhere(nodes: list[str], name: str) -> None:
    """Wait until a transaction is in a block of all nodes."""

    def there() -> bool:
        try:
            return all(is_mined(each, name) for each in nodes)
        except OSError:
            return False

    eventually(there, f"transaction {name} everywhere")


def send(url: str, number: int) -> str:
    sender, recipient = ACCOUNTS[number].address, ACCOUNTS[number + 1].address
    signed = signed_transfer(url, sender, recipient, 1)
    answer = call(f"{url}/transactions/broadcast", signed)
    assert answer.status == 200, answer.body
    name: str = answer.json()["id"]
    return name


def test_nodes_mine_and_transactions_of_each_come_to_all(network: Program) -> None:
    nodes = urls(network)
    assert len(nodes) == NODES
    at = all_agree(nodes, 5)
    sent = [send(each, number) for number, each in enumerate(nodes)]
    for name in sent:
        everywhere(nodes, name)
    at = all_agree(nodes, at)
    assert len({state_hash(each, at) for each in nodes}) == 1
    makers: set[str] = set()

    def several_mine() -> bool:
        nonlocal at
        while at < height(nodes[0]):
            at += 1
            makers.add(call(f"{nodes[0]}/blocks/headers/at/{at}").json()["generator"])
        return len(makers) > 1

    # On a busy machine one begins long before the others.
    eventually(several_mine, "blocks of two nodes")
    assert call(f"{network.matcher_url}/matcher").status == 200


def test_all_commit_and_make_blocks_final(network: Program) -> None:
    nodes = urls(network)

    def final(url: str) -> tuple[int, int]:
        """The height of the last final block that is not so by its age, and who generates."""
        found = call(f"{url}/blockchain/finality").json()
        by_age = found["height"] - 100
        return max(0, found["finalizedHeight"] - max(1, by_age)), len(found["currentGenerators"])

    for _ in range(2):
        at = height(nodes[0])
        eventually(
            lambda: all(final(each) > (0, NODES - 1) for each in nodes), "final blocks of all"
        )
        # After a while, in which nothing else happens, it is still so.
        all_agree(nodes, at + 5)


def test_controls_are_refused_with_a_reason(network: Program) -> None:
    nodes = urls(network)
    for path in ("devnet/mine?blocks=1", "devnet/clock?travel=1000", "devnet/snapshots/1/revert"):
        answer = call(f"{nodes[1]}/{path}", {})
        assert (answer.status, answer.json()["error"]) == (404, 4040), answer.body
        assert "proof of stake" in answer.json()["message"]
    assert call(f"{nodes[0]}/devnet").status == 404


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="no /proc to find processes in")
def test_a_node_that_is_killed_comes_back_and_all_end_equal(network: Program) -> None:
    nodes = urls(network)
    chance = random.Random(1)
    at = all_agree(nodes, 3)
    since = time.monotonic()
    for number in range(KILLS):
        eventually(lambda: len(pids(network)) == NODES, "all processes")
        victim = chance.randrange(NODES)
        name = send(nodes[(victim + 1) % NODES], number % 5)
        time.sleep(chance.random())  # whenever it happens to be
        process = pids(network)[victim]
        os.kill(process, signal.SIGKILL)
        # Each part of the way has its own time, which may be long on a busy machine.
        eventually(lambda process=process: process not in pids(network), "its end")  # type: ignore[misc]
        eventually(lambda: len(pids(network)) == NODES, "all processes")
        eventually(lambda: all(map(answers, nodes)), "answers of all")
        at = all_agree(nodes, at)
        everywhere(nodes, name)
    print(f"{KILLS} kills of {NODES} nodes in {time.monotonic() - since:.0f} s, height {at}")
    assert len({state_hash(each, at) for each in nodes}) == 1
    some = ACCOUNTS[3].address
    at = all_agree(nodes, at)
    assert len({balance(each, some) for each in nodes}) == 1


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="no /proc to find processes in")
def test_a_node_may_be_killed_as_often_as_one_likes(network: Program) -> None:
    last = urls(network)[-1]
    for _ in range(MAX_FAILED_STARTS + 1):
        eventually(lambda: len(pids(network)) == NODES, "all processes")
        process = pids(network)[-1]
        os.kill(process, signal.SIGKILL)
        eventually(lambda process=process: process not in pids(network), "its end")  # type: ignore[misc]
    eventually(lambda: answers(last), "its answers")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (
            ("--port=16800", "--signer-port=16801"),
            "--signer-port 16801 is the port of node 2: the nodes take 16800 to 16801",
        ),
        (
            ("--port=16800", "--matcher-port=16800"),
            "--matcher-port 16800 is the port of node 1: the nodes take 16800 to 16801",
        ),
        (
            ("--signer-port=16900", "--matcher-port=16900"),
            "--signer-port and --matcher-port are both 16900",
        ),
    ],
)
def test_ports_that_clash_are_named(options: tuple[str, ...], words: str) -> None:
    ended = run("devnet", "--nodes=2", *options)
    assert ended.returncode != 0
    assert words in ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_node_that_does_not_start_is_named(tmp_path: Path) -> None:
    (tmp_path / "node-2").mkdir()
    (tmp_path / "node-2" / "data").write_text("in the way")
    places = ("--port=0", "--signer-port=0", "--matcher-port=0")
    ended = run("devnet", "--nodes=2", f"--data-dir={tmp_path}", *places)
    assert ended.returncode != 0
    assert "node 2 does not start; see " in ended.stderr
    assert "Traceback" not in ended.stderr


def test_what_does_not_go_together_is_refused() -> None:
    for option in ("--no-mining", "--workers=1", "--block-time=0.5", "--state=x"):
        ended = run("devnet", "--nodes=2", option)
        assert ended.returncode != 0
        assert "Traceback" not in ended.stderr
