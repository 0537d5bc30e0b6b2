"""``soliton balance``, ``transfer`` and the like, at a running node: amounts, units, bad input."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from soliton import Account, Node
from tests.cli.here import Ended, run_here
from tests.e2e.programs import Program, devnet

SEED = "soliton devnet account 1"
ALICE = Account.from_seed(SEED, "R")
BOB = Account.from_seed("soliton devnet account 2", "R")


@pytest.fixture(scope="module")
def program() -> Iterator[Program]:
    with devnet() as started:
        yield started


@pytest.fixture(scope="module")
def node(program: Program) -> Iterator[Node]:
    with Node(program.node_url) as connected:
        yield connected


@pytest.fixture(autouse=True)
def environment(program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "seed"
    file.write_text(f"{SEED}\n")
    file.chmod(0o600)
    monkeypatch.setenv("SOLITON_NODE", program.node_url)
    monkeypatch.setenv("SOLITON_SEED_FILE", str(file))


def transfer(*words: str) -> Ended:
    return run_here("transfer", BOB.address, *words)


def test_a_transfer_and_what_can_be_read(node: Node) -> None:
    before = node.balance(BOB)
    done = transfer("0.5 WAVES", "--dry-run")
    assert done.returncode == 0, done.stderr
    assert "not sent: 0.5 WAVES to" in done.stdout and node.unconfirmed() == []
    done = transfer("0.5", "--wait", "0", "--json", "--attachment", "thanks")
    assert done.returncode == 0, done.stderr
    sent = json.loads(done.stdout)
    assert node.balance(BOB) == before + 50_000_000
    shown = json.loads(run_here("tx", sent["id"], "--json").stdout)
    assert (shown["amount"], shown["height"]) == (50_000_000, sent["height"])
    assert run_here("block", sent["height"]).stdout.startswith("version")
    (coin,) = json.loads(run_here("balance", BOB.address, "--json").stdout)
    assert coin["balance"] == before + 50_000_000
    told = run_here("account", BOB.address)
    assert told.returncode == 0 and "regular" in told.stdout and BOB.address in told.stdout


def test_assets_by_name_and_id(node: Node) -> None:
    first = node.send(ALICE.issue("Gold", 1_000, decimals=2)).wait().asset_id
    assert first is not None
    done = transfer("1.25 Gold", "--wait", "0")
    assert done.returncode == 0, done.stderr
    assert f"sent: 1.25 Gold ({first}) to " in done.stdout
    assert node.balance(BOB, first) == 125
    assert "1.25" in run_here("balance", BOB.address, "--all").stdout
    assert "quantity" in run_here("asset", first).stdout
    second = node.send(ALICE.issue("Gold", 1_000, decimals=2)).wait().asset_id
    done = transfer("1 Gold")
    assert done.returncode == 1 and first in done.stderr and str(second) in done.stderr
    assert transfer(f"1 {second}", "--wait", "0").returncode == 0
    assert node.balance(BOB, second) == 100


@pytest.mark.parametrize(
    ("amount", "words"),
    [
        ("0.123456789 WAVES", "more than 8 decimals"),
        ("1,5 WAVES", "is not a number"),
        ("1e3 WAVES", "is not a number"),
        ("1_000", "is not a number"),
        ("٣ WAVES", "is not a number"),
        ("0 WAVES", "not an amount above 0"),
        ("-1", ""),
        ("nan", "is not a number"),
        ("10 Silver", "holds no asset"),
        ("10 waves", "holds no asset"),
        ("99999999999999999999", ""),
        ("", "is not a number"),
    ],
)
def test_amounts_that_are_none(node: Node, amount: str, words: str) -> None:
    done = run_here("transfer", BOB.address, "--", amount)
    assert done.returncode in (1, 2)
    assert words in done.stderr
    assert node.unconfirmed() == []


def test_who_signs_and_for_which_chain(
    program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "seed").chmod(0o644)
    done = transfer("1")
    assert done.returncode == 1 and "chmod 600" in done.stderr
    monkeypatch.delenv("SOLITON_SEED_FILE")
    monkeypatch.delenv("SOLITON_SEED", raising=False)
    assert "who signs?" in transfer("1").stderr
    done = transfer("1", "--account", "1", "--node", "http://node.example")
    assert done.returncode == 1 and "--chain-id" in done.stderr
    assert transfer("1", "--account", "1", "--chain-id", "W").returncode == 1
    assert transfer("1", "--account", "1", "--dry-run").returncode == 0


def test_aliases_and_leases(node: Node) -> None:
    done = run_here("alias", "alice-the-first", "--wait", "0")
    assert done.returncode == 0, done.stderr
    assert node.address_by_alias("alice-the-first") == ALICE.address
    done = run_here("lease", BOB.address, "12.5 WAVES", "--wait", "0", "--json")
    assert done.returncode == 0, done.stderr
    name = json.loads(done.stdout)["id"]
    assert node.lease(name).amount == 1_250_000_000
    assert run_here("lease-cancel", name, "--wait", "0").returncode == 0
    assert node.lease(name).status == "canceled"
    for words in (("lease", BOB.address, "1,5"), ("alias", "x"), ("lease-cancel", "7")):
        done = run_here(*words)
        assert done.returncode == 1 and done.stderr.startswith("soliton: "), words


def test_a_node_does_not_decide_whose_an_alias_is(node: Node) -> None:
    """What is signed has the alias, not the address that the node tells."""
    bob = "soliton devnet account 2"
    node.send(Account.from_seed(bob, "R").alias("bob-himself")).wait()
    done = run_here("transfer", "alias:bob-himself", "0.25", "--wait", "0", "--json")
    assert done.returncode == 0, done.stderr
    shown = json.loads(run_here("tx", json.loads(done.stdout)["id"], "--json").stdout)
    assert shown["recipient"] == "alias:R:bob-himself"


def test_entries(node: Node) -> None:
    node.send(ALICE.data({"a": 5, "text \x1b": "x", "bytes": b"\1"})).wait()
    assert json.loads(run_here("data", ALICE.address, "a", "--json").stdout) == {"a": 5}
    done = run_here("data", ALICE.address)
    assert "0x01" in done.stdout and "\x1b" not in done.stdout


def test_what_is_not_there() -> None:
    for command in (("tx", "1" * 44), ("asset", "1" * 44), ("block", "999999"),
                    ("balance", "nobody"), ("balance", "alias:nobody-here"),
                    ("data", ALICE.address, "missing")):  # fmt: skip
        done = run_here(*command)
        assert done.returncode == 1, command
        assert done.stderr.startswith("soliton: "), command
