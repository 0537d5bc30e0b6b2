"""``soliton balance``, ``transfer`` and the like, at a running node: amounts, units, bad input."""

from __future__ import annotations

import json
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from soliton import Account, Node
from tests.blocks import blocks
from tests.cli.here import Ended, run_here
from tests.e2e.programs import PROGRAM, Program, devnet

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


@pytest.fixture(scope="module")
def market() -> Iterator[Program]:
    with devnet("--scenario", "dex", "--no-maker") as started:
        yield started


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


def test_a_transaction_from_a_file(node: Node, tmp_path: Path) -> None:
    file = tmp_path / "transaction.json"
    fields = {"type": 12, "version": 2, "fee": 100_000}
    file.write_text(json.dumps(fields | {"data": [{"key": "a", "type": "integer", "value": 7}]}))
    tried = run_here("send", str(file), "--dry-run", "--json")
    assert tried.returncode == 0 and json.loads(tried.stdout)["valid"], tried.stderr
    done = run_here("send", str(file), "--wait", "0")
    assert done.returncode == 0, done.stderr
    assert node.data_entry(ALICE, "a") == 7
    file.write_text(json.dumps(BOB.transfer(ALICE, 1).to_json()))
    assert run_here("send", str(file), "--wait", "0").returncode == 0
    for text in ("", "[]", "{}", '{"type": 99}', json.dumps(fields), "[" * 100_000):
        file.write_text(text)
        done = run_here("send", str(file))
        assert done.returncode == 1 and done.stderr.startswith("soliton: "), text[:20]


def test_the_line_of_the_page(node: Node, tmp_path: Path) -> None:
    (line,) = blocks("docs/reference/commands.md")
    echo, words = shlex.split(line)[1], line.rpartition("|")[2].split()[2:]
    file = tmp_path / "data.json"
    file.write_text(echo)
    assert words[0] == "-"
    done = run_here("send", str(file), *words[1:], "--wait", "0")
    assert done.returncode == 0, done.stderr
    assert node.data_entry(ALICE, "a") == 1


def test_fees_have_a_limit(node: Node) -> None:
    done = transfer("1", "--fee", "0.002", "--wait", "0", "--json")
    assert json.loads(done.stdout)["fee"] == 200_000, done.stderr
    done = transfer("1", "--fee", "300000 wavelets", "--dry-run", "--json")
    assert json.loads(done.stdout)["fee"] == 300_000, done.stderr
    done = transfer("1", "--fee", "0.0001", "--dry-run")
    assert done.returncode == 1 and "100000" in done.stderr and node.unconfirmed() == []
    assert transfer("1", "--fee", "1 BTC").returncode == 1


def test_the_console_has_the_library(program: Program) -> None:
    done = subprocess.run(
        [str(PROGRAM), "console", "--node", program.node_url],
        input="print(node.chain_id, units('1.5'))\n",
        capture_output=True,
        text=True,
        check=False,
    )
    assert "82 150000000" in done.stdout, done.stderr


def test_orders_by_codes_that_the_matcher_vouches_for(
    market: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOLITON_NODE", market.node_url)
    monkeypatch.setenv("SOLITON_MATCHER", market.matcher_url)
    shown = json.loads(run_here("book", "WAVES/USD", "--json").stdout)
    assert shown["bids"] and shown["asks"]
    assert "price USD" in run_here("book", "WAVES/USD").stdout
    done = run_here("order", "sell", "5.5", "WAVES/USD", "1000.25", "--json")
    assert done.returncode == 0, done.stderr
    placed = json.loads(done.stdout)
    assert placed["status"] == "Accepted"
    (line,) = [each for each in run_here("orders").stdout.splitlines() if placed["id"] in each]
    assert line.split()[:6] == ["sell", "5.5", "0", "WAVES/USD", "1000.25", "Accepted"]
    assert json.loads(run_here("cancel", placed["id"], "--json").stdout)["status"] == "Cancelled"
    assert placed["id"] not in run_here("orders", "WAVES/USD").stdout
    assert placed["id"] in run_here("orders", "WAVES/USD", "--all").stdout
    with Node(market.node_url) as node:
        # A stranger's asset with the name of a known one is not taken for it.
        node.send(ALICE.issue("US Dollar", 1_000, decimals=2)).wait()
    for words, message in (
        (("book", "USD/WAVES"), "the market is WAVES/USD"),
        (("book", "WAVES"), "is not a pair"),
        (("book", "WAVES/US Dollar"), ""),
        (("order", "sell", "1", "WAVES/USD", "1,5"), "is not a number"),
        (("order", "sell", "1", "WAVES/USD", "0.123456789"), "decimals"),
        (("order", "hold", "1", "WAVES/USD", "1"), "buy"),
        (("cancel",), "which order?"),
        (("cancel", "7"), ""),
    ):
        done = run_here(*words)
        assert done.returncode in (1, 2) and message in done.stderr, (words, done.stderr)
    assert run_here("cancel", "--all").returncode == 0
