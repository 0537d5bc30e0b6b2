"""``soliton notify`` as a user runs it, ended with ``SIGKILL`` again and again: what the receiver
holds in the end is what the chain does.
"""

from __future__ import annotations

import json
import random
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.amounts import times
from tests.cli.here import run_here
from tests.e2e.programs import (
    API_KEY,
    Program,
    call,
    devnet,
    eventually,
    height,
    is_mined,
    run,
    signed_transfer,
)
from tests.export.receiver import Receiver, folded, receiving

ROUNDS = times(2, 40)
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the node has its data."""
    return tmp_path_factory.mktemp("chain")


@pytest.fixture(scope="module")
def node(directory: Path) -> Iterator[Program]:
    with devnet("--data-dir", directory, heartbeat=0.5) as program:
        yield program


def pay(url: str, sender: str, recipient: str, amount: int) -> str:
    body = signed_transfer(url, sender, recipient, amount)
    answer = call(f"{url}/transactions/broadcast", body)
    assert answer.status == 200, answer.body
    return str(body["id"])


def payments(url: str, recipient: str) -> list[tuple[str, int, int]]:
    """What the node's own blocks hold, in their order."""
    found, top = [], height(url)
    for first in range(1, top + 1, 100):
        for block in call(f"{url}/blocks/seq/{first}/{min(top, first + 99)}").json():
            found += [
                (each["id"], block["height"], each["amount"])
                for each in block["transactions"]
                if each["type"] in (1, 4) and each["recipient"] == recipient
            ]
    return found


def held(receiver: Receiver) -> list[tuple[str, int, int]]:
    found = folded(receiver.got).values()
    return [(each["transaction"], each["height"], each["amount"]) for each in found]


def mined(url: str, names: list[str]) -> None:
    eventually(lambda: all(is_mined(url, each) for each in names), "blocks")


def told_of(receiver: Receiver, names: list[str]) -> list[str]:
    return [
        name
        for name in names
        if any(each.notice.get("transaction") == name for each in receiver.got)
    ]


@pytest.mark.parametrize("over_http", [False, True])
def test_nothing_is_lost_whoever_is_killed(
    node: Program, directory: Path, tmp_path: Path, over_http: bool
) -> None:
    url, chance = node.node_url, random.Random(ROUNDS + over_http)
    sender, *_, recipient = call(f"{url}/addresses").json()
    cursor, secret = tmp_path / "cursor", tmp_path / "secret"
    secret.write_text(SECRET)
    where = ("--from-node", url) if over_http else ("--data-dir", directory)
    with receiving(SECRET) as receiver:
        told = ("--url", receiver.url, "--secret-file", secret, "--payments-to", recipient)
        arguments = ("notify", *told, "--cursor", cursor, "--from-height", 1, *where)
        statuses: list[int] = [200]
        receiver.behave = lambda _notice: chance.choice(statuses)
        programs = [Program(arguments, {})]
        try:
            for number in range(1, ROUNDS + 1):
                statuses[:] = [200] if number % 2 else [200, 500, 503]
                names = [pay(url, sender, recipient, 1_000 * number + n) for n in range(3)]
                if number % 2:
                    mined(url, names)
                    eventually(lambda: bool(told_of(receiver, names)), "a notice")  # noqa: B023
                programs[-1].kill()
                if number % 2 == 0 and height(url) > 4:
                    body: Any = {"rollbackTo": height(url) - 2, "returnTransactionsToUtx": False}
                    call(f"{url}/debug/rollback", body, key=API_KEY)
                programs.append(Program(arguments, {}))
            statuses[:] = [200]
            mined(url, [pay(url, sender, recipient, 7)])
            eventually(lambda: held(receiver) == payments(url, recipient), "what the chain holds")
            programs[-1].wait_for("caught up with the chain")
            programs[-1].send(signal.SIGTERM)
            assert programs[-1].wait() == 0, programs[-1].output
        finally:
            for each in programs:
                each.close()
        assert not receiver.wrong


def test_a_program_once(node: Program, tmp_path: Path) -> None:
    url = node.node_url
    sender, *_, recipient = call(f"{url}/addresses").json()
    name = pay(url, sender, recipient, 12_345)
    eventually(lambda: is_mined(url, name), "a block")
    lines = tmp_path / "lines"
    writes = f"import sys; open({str(lines)!r}, 'a').write(sys.stdin.read())"
    command = f'{sys.executable} -c "{writes}"'
    options = ("--notify-cmd", command, "--payments-to", recipient, "--cursor", tmp_path / "cursor")
    for _ in range(2):
        done = run("notify", *options, "--from-height", 1, "--from-node", url, "--once")
        assert done.returncode == 0, done.stdout + done.stderr
    found = [json.loads(line) for line in lines.read_text().splitlines()]
    told = [(each["transaction"], each["height"], each["amount"]) for each in found]
    assert told == payments(url, recipient)
    assert told[-1][0] == name


def test_a_wrong_address_is_named(node: Program, tmp_path: Path) -> None:
    wrong = "3M4qwDomRabJKLZxuXhwfqLApQkU592nWxE"
    arguments = ("--cursor", tmp_path / "cursor", "--notify-cmd", "true", "--payments-to", wrong)
    done = run_here("notify", *arguments, "--from-node", node.node_url)
    assert done.returncode == 1
    assert f"{wrong}: Bad address checksum" in done.stderr


def test_what_is_wrong_with_a_command_is_said(tmp_path: Path) -> None:
    cursor = ("--cursor", tmp_path / "cursor")
    payment = ("--payments-to", "3M4qwDomRabJKLZxuXhwfqLApQkU592nWxF")
    for arguments, words in (
        ((*cursor, *payment), "one of --url and --notify-cmd is needed"),
        ((*cursor, *payment, "--url", "http://localhost/"), "--secret-file needs --url"),
        ((*cursor, "--notify-cmd", "true"), "no filters"),
        ((*cursor, *payment, "--notify-cmd", "'"), "No closing quotation"),
        (
            (*cursor, *payment, "--url", "x", "--secret-file", tmp_path / "made"),
            "an address should look like",
        ),
    ):
        done = run_here("notify", *arguments)
        assert done.returncode == 1, done.stdout + done.stderr
        assert words in done.stderr
