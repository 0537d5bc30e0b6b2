"""What a private chain is started with: its accounts, its description, its file."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest

from soliton.chain.genesis import genesis_block
from soliton.chain.networks.presets import load
from soliton.controls.mining import MANUAL
from soliton.devnet.accounts import (
    MAX_ACCOUNTS,
    Funding,
    FundingRefused,
    funded_accounts,
    network_with,
)
from soliton.devnet.options import OptionsRefused, Rhythm
from tests.e2e.programs import Program, balance, call, devnet, height, run, signed_transfer

NETWORK = load("devnet")
COIN = 10**8
FREE = ("--port", 0, "--signer-port", 0, "--matcher-port", 0)


def test_usual_accounts_are_those_of_the_preset() -> None:
    assert network_with(NETWORK, Funding()) == NETWORK


def test_other_accounts_are_in_the_genesis_block() -> None:
    funding = Funding(count=MAX_ACCOUNTS, balance=3 * COIN, seed="mine")
    network = network_with(NETWORK, funding)
    block = genesis_block(network)
    given = [each.payload.amount for each in block.transactions]
    assert given == [NETWORK.genesis.transactions[0].amount, *[3 * COIN] * MAX_ACCOUNTS]
    assert block.id == genesis_block(network_with(NETWORK, funding)).id
    assert block.id != genesis_block(NETWORK).id
    seeds = [each.seed for each in funded_accounts(82, funding)]
    assert seeds[:2] == ["mine 1", "mine 2"]


@pytest.mark.parametrize(
    ("funding", "words"),
    [
        (Funding(count=0), "0 accounts: 1 to 200"),
        (Funding(count=201), "201 accounts: 1 to 200"),
        (Funding(balance=0), "a balance of 0"),
        (Funding(balance=2**63 - 1), "at most"),
        (Funding(seed="x" * 1_001), "1000 characters"),
    ],
)
def test_what_the_genesis_block_cannot_have(funding: Funding, words: str) -> None:
    with pytest.raises(FundingRefused, match=words):
        network_with(NETWORK, funding)


def test_blocks_come_by_themselves_or_not() -> None:
    assert Rhythm(None, 10, manual=True).mode() == MANUAL
    with pytest.raises(OptionsRefused, match="--no-mining"):
        Rhythm(5.0, 10, manual=True).mode()


@pytest.mark.slow
def test_it_describes_itself_to_programs(tmp_path: Path) -> None:
    told = tmp_path / "devnet.json"
    options = ("--accounts", 3, "--balance", "5.5", "--seed", "mine", "--json")
    arguments = ("devnet", *FREE, *options, "--config-out", told, "--no-mining")
    program = Program(arguments, {})
    try:
        line = program.wait_for("\n").splitlines()[0]
        described = json.loads(line)
        assert described == json.loads(told.read_text())
        assert told.stat().st_mode & 0o077 == 0
        assert described["mining"]["mode"] == "manual"
        assert [each["seed"] for each in described["accounts"]] == ["mine 1", "mine 2", "mine 3"]
        url, first = described["node"], described["accounts"][0]["address"]
        assert balance(url, first) == 550_000_000
        in_wallet = call(f"{url}/addresses").json()
        assert {each["address"] for each in described["accounts"]} < set(in_wallet)
        before = height(url)
        sent = signed_transfer(url, first, in_wallet[0], COIN)
        assert call(f"{url}/transactions/broadcast", sent).status == 200
        assert call(f"{url}/devnet/mine", "").json()["height"] == before + 1
        assert balance(url, first) == 449_900_000
    finally:
        program.close()


@pytest.mark.slow
def test_it_goes_on_from_its_file(tmp_path: Path) -> None:
    state = tmp_path / "chain.state"
    with devnet("--state", state) as program:
        assert call(f"{program.node_url}/devnet/mine?blocks=5", "").status == 200
        last = call(f"{program.node_url}/blocks/headers/last").json()["id"]
        program.send(signal.SIGINT)
        assert program.wait() == 0
    with devnet("--state", state) as program:
        assert call(f"{program.node_url}/blocks/headers/last").json()["id"] == last
    refused = run("devnet", *FREE, "--state", state, "--accounts", 2)
    assert refused.returncode == 1 and "another genesis block" in refused.stderr
    state.write_bytes(b"no state")
    refused = run("devnet", *FREE, "--state", state)
    assert refused.returncode == 1 and "no state of a devnet" in refused.stderr
    assert state.read_bytes() == b"no state"
    refused = run("devnet", *FREE, "--state", state, "--data-dir", tmp_path)
    assert refused.returncode == 1 and "--data-dir" in refused.stderr


@pytest.mark.slow
def test_a_directory_keeps_its_accounts(tmp_path: Path) -> None:
    with devnet("--data-dir", tmp_path / "chain"):
        pass
    refused = run("devnet", *FREE, "--data-dir", tmp_path / "chain", "--accounts", 2)
    assert refused.returncode == 1 and "began with other accounts" in refused.stderr


@pytest.mark.parametrize(
    "coins", ["0.000000001", "NaN", "much", "-1", "1e999999999", "1e999990", "9" * 20]
)
def test_coins_that_are_none(coins: str) -> None:
    refused = run("devnet", *FREE, "--balance", coins)
    assert refused.returncode == 2 and "is not a number of coins" in refused.stderr
