"""Scenarios: files that are refused, what comes of a file, and the market that is built in."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from soliton.chain.addresses import parse_address
from soliton.controls.clock import DevClock
from soliton.controls.control import Controls
from soliton.crypto import base58
from soliton.crypto.keys import key_pair
from soliton.devnet.accounts import RICH_SEED, Funding
from soliton.devnet.market import price_assets
from soliton.devnet.playing import Playing
from soliton.devnet.scenario import ScenarioRefused, built_in, load_scenario, read_scenario
from soliton.ledger.state import ALIASES, ASSET_BALANCES, DATA, LEASES, WAVES
from soliton.node.node import Node
from soliton.node.settings import load_settings
from soliton.node.wallet import Wallet
from tests.blocks import blocks
from tests.e2e.programs import Program, call, devnet, eventually, run

FUNDING = Funding(count=3)
FREE = ("--port", 0, "--signer-port", 0, "--matcher-port", 0)
SHOP = """
[[accounts]]
name = "owner"
coins = "50"

[[tokens]]
ticker = "GLD"
name = "Gold"
decimals = 2
quantity = "1000.5"
issuer = "owner"
sponsored = "0.01"
give = { all = "10", "account 2" = "20.25" }

[[dapps]]
name = "shop"
account = "owner"
file = "shop.ride"

[[history]]
do = "invoke"
by = "account 1"
dapp = "shop"
function = "buy"
args = [3, "red", true]
payments = [["2.5", "GLD"], ["0.1", "WAVES"]]

[[history]]
do = "transfer"
by = "account 2"
to = "shop"
amount = "1.25"
asset = "GLD"

[[history]]
do = "alias"
by = "owner"
alias = "the-owner"

[[history]]
do = "data"
by = "account 3"
entries = { n = 5, yes = true, text = "x" }

[[history]]
do = "lease"
by = "account 3"
to = "owner"
amount = "7"

[[history]]
do = "mine"
blocks = 10
interval = 3600
"""
TRANSFER = """
name = "x"
[[history]]
do = "transfer"
by = "account 1"
to = "?"
amount = "1"
"""
RIDE = """
{-# STDLIB_VERSION 6 #-}
{-# CONTENT_TYPE DAPP #-}
{-# SCRIPT_TYPE ACCOUNT #-}
{-# IMPORT words.ride #-}

@Callable(i)
func buy(count: Int, colour: String, gift: Boolean) =
  [StringEntry(word, colour), IntegerEntry("count", count), BooleanEntry("gift", gift)]
"""
WORDS = """
{-# STDLIB_VERSION 6 #-}
{-# CONTENT_TYPE LIBRARY #-}
{-# SCRIPT_TYPE ACCOUNT #-}
let word = "colour"
"""


class World:
    """A chain that is to begin with a scenario."""

    def __init__(self, directory: Path, text: str, files: Path | None = None) -> None:
        self.now = 1_795_174_397_440
        settings = load_settings(network="devnet", data_dir=directory)
        clock = DevClock(lambda: self.now)
        self.node = Node(settings, Wallet.in_memory(b"rich"), clock=clock, durable=False)
        self.controls = Controls(self.node, key_pair(RICH_SEED), clock)
        self.playing = Playing(read_scenario(text, 3, files), self.controls, FUNDING)


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[World]:
    (tmp_path / "shop.ride").write_text(RIDE)
    (tmp_path / "words.ride").write_text(WORDS)
    world = World(tmp_path / "chain", 'name = "shop"\n' + SHOP, tmp_path)
    world.playing.play()
    yield world
    world.node.close()


def test_what_a_file_says_is_there(shop: World) -> None:
    store, people = shop.node.store, shop.playing.people
    gold = base58.decode(str(shop.playing.tokens["GLD"].id))
    owner, *others = (
        people[each].address_bytes for each in ("owner", "account 1", "account 2", "account 3")
    )
    held = [store.get(ASSET_BALANCES, (each, gold)) for each in others]
    assert held == [1_000 - 250, 2_025 - 125, 1_000]
    assert store.get(ASSET_BALANCES, (owner, gold)) == 100_050 - 1_000 - 2_025 - 1_000 + 375
    data = [store.get(DATA, (owner, key)) for key in ("colour", "count", "gift")]
    assert data == ["red", 3, True]
    assert [store.get(DATA, (others[2], key)) for key in ("n", "yes", "text")] == [5, True, "x"]
    assert store.get(ALIASES, "the-owner") == owner
    assert store.get(LEASES, owner).lease_in == 7 * 10**8
    assert store.get(WAVES, others[0]) == FUNDING.balance - 10**7 - 500_000
    chain = shop.node.chain
    times = [chain.block_at(at).header.timestamp for at in range(1, chain.height + 1)]
    assert times == sorted(times) and times[-1] - times[-10] == 9 * 3_601_000
    # All of it is of the genesis block's time, and nothing of it by hand: any node takes it.
    assert store.first_by_hand() is None


def test_what_a_file_says_is_told(shop: World) -> None:
    played = shop.playing.played()
    assert [each.name for each in played.accounts] == ["owner"]
    address = played.accounts[0].address
    assert played.dapps == {"shop": address}
    assert parse_address(address, ord("R")) == shop.playing.people["owner"].address_bytes
    assert {each.ticker: each.decimals for each in played.tokens} == {"WAVES": 8, "GLD": 2}


def test_the_page_about_them_shows_one_that_can_be_played(tmp_path: Path) -> None:
    (text,) = blocks("docs/reference/scenarios.md", "toml")
    world = World(tmp_path, text)
    world.playing.play()
    assert list(world.playing.dapps) == ["shop"]
    world.node.close()


def test_the_same_scenario_gives_the_same_blocks(shop: World, tmp_path: Path) -> None:
    other = World(tmp_path / "other", 'name = "shop"\n' + SHOP, tmp_path)
    other.now += 86_400_000
    other.playing.play()
    assert other.node.chain.last_block.id == shop.node.chain.last_block.id
    other.controls.reset()
    other.playing.play()
    assert other.node.chain.last_block.id == shop.node.chain.last_block.id
    other.node.close()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("name = ", "cannot be read"),
        ('name = "x"\ncolour = "red"', "colour"),
        ('name = "x"\n[[accounts]]\nname = "account 1"', "'account 1' is there twice"),
        (TOKEN := 'name = "x"\n[[tokens]]\nticker = "A"\nname = "Aaaa"\n', "quantity"),
        (f'{TOKEN}quantity = "1"\nissuer = "nobody"', "'nobody' is not an account"),
        (f'{TOKEN}quantity = "-1"\nissuer = "rich"', "quantity"),
        (f'{TOKEN}quantity = "1"\nissuer = "rich"\ndecimals = 9', "decimals"),
        ('name = "x"\n[[dapps]]\nname = "d"\naccount = "rich"', "wants a `file` or a `source`"),
        ('name = "x"\n[[dapps]]\nname = "d"\naccount = "rich"\nfile = "no.ride"', "cannot read"),
        ('name = "x"\n[[history]]\ndo = "nothing"', "nothing"),
        ('name = "x"\n[[history]]\ndo = "mine"\nblocks = 1000000', "blocks"),
        (
            'name = "x"\n[[history]]\ndo = "invoke"\nby = "rich"\ndapp = "d"',
            "'d' is not a dApp",
        ),
        (
            'name = "x"\n[[markets]]\namount = "WAVES"\nprice = "WAVES"\nstart = "1"',
            "against itself",
        ),
    ],
)  # fmt: skip
def test_files_that_are_refused(text: str, words: str, tmp_path: Path) -> None:
    with pytest.raises(ScenarioRefused, match=words):
        read_scenario(text, 3, tmp_path)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (f'{TOKEN}quantity = "1"\nissuer = "rich"\ngive = {{ all = "1" }}', "the token A"),
        (f'{TOKEN}quantity = "0.5"\nissuer = "rich"\ndecimals = 0', "the token A"),
        (
            'name = "x"\n[[dapps]]\nname = "d"\naccount = "rich"\nsource = "let"',
            "the dApp d: line 1",
        ),
        (
            TRANSFER,
            "step 1 of the history",
        ),
        (
            TRANSFER.replace('"?"', '"rich"').replace('"1"', '"999999999"'),
            "step 1 of the history",
        ),
    ],
)
def test_scenarios_that_cannot_be_carried_out(text: str, words: str, tmp_path: Path) -> None:
    world = World(tmp_path, text)
    try:
        with pytest.raises(ScenarioRefused, match=words):
            world.playing.play()
    finally:
        world.node.close()


def test_prices_are_in_the_assets_that_markets_name(tmp_path: Path) -> None:
    markets = "".join(
        f'[[markets]]\namount = "{amount}"\nprice = "{price}"\nstart = "1"\n'
        for amount, price in (("A", "B"), ("B", "WAVES"), ("A", "WAVES"))
    )
    tokens = "".join(
        f'[[tokens]]\nticker = "{each}"\nname = "Aaaa"\nquantity = "1"\nissuer = "rich"\n'
        for each in "AB"
    )
    world = World(tmp_path / "good", f'name = "x"\n{tokens}{markets}')
    world.playing.play()
    second = base58.decode(str(world.playing.tokens["B"].id))
    assert price_assets(world.playing) == (None, second)
    world.node.close()
    circle = '[[markets]]\namount = "WAVES"\nprice = "A"\nstart = "1"\n'
    world = World(tmp_path / "bad", f'name = "x"\n{tokens}{markets}{circle}')
    world.playing.play()
    with pytest.raises(ScenarioRefused, match="contradict"):
        price_assets(world.playing)
    world.node.close()


def test_those_that_are_built_in_can_be_read() -> None:
    assert built_in() == ["dex"]
    assert load_scenario("dex", 10).scenario.markets
    with pytest.raises(ScenarioRefused, match="unknown scenario 'nothing': dex"):
        load_scenario("nothing", 10)


# --- as a program ---------------------------------------------------------------------------------


def described(program: Program) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(program.wait_for("}\n").splitlines()[0])
    return found


def book(told: dict[str, Any], market: str) -> dict[str, Any]:
    ids = {each["ticker"]: each["id"] or "WAVES" for each in told["scenario"]["tokens"]}
    first, second = (ids[each] for each in market.split("/"))
    answer = call(f"{told['matcher']}/matcher/orderbook/{first}/{second}")
    assert answer.status == 200, answer.body
    found: dict[str, Any] = answer.json()
    return found


@pytest.mark.slow
def test_a_market_from_the_first_second() -> None:
    # Nobody takes from the books while they are looked at.
    program = Program(("devnet", *FREE, "--scenario", "dex", "--no-maker", "--json"), {})
    try:
        told = described(program)
        for market in told["scenario"]["markets"]:
            found = book(told, market)
            assert len(found["bids"]) == len(found["asks"]) == 5, market
            assert found["bids"][0]["price"] < found["asks"][0]["price"]
    finally:
        program.close()


@pytest.mark.slow
def test_the_market_maker_lets_trades_happen() -> None:
    with devnet("--scenario", "dex") as program:
        eventually(lambda: "exchange of" in program.output, "a trade of the market maker")


@pytest.mark.slow
def test_the_market_maker_can_be_switched_off(tmp_path: Path) -> None:
    state = tmp_path / "dex.state"
    options = ("--scenario", "dex", "--no-maker", "--state", state)
    with devnet(*options) as program:
        assert "markets: BTC/USD, ETH/USD, ETH/BTC, WAVES/USD, EUR/USD" in program.output
        top = call(f"{program.node_url}/blocks/height").json()["height"]
        assert call(f"{program.node_url}/devnet/reset", "").status == 200
        assert call(f"{program.node_url}/blocks/height").json()["height"] == top
        assert call(f"{program.node_url}/devnet").json()["marketMaker"] is False
        url = f"{program.node_url}/devnet/maker?on="
        assert call(f"{url}true", "").json() == {"working": True}
        program.wait_for("exchange of")
        assert call(f"{url}false", "").json() == {"working": False}
        assert call(f"{program.node_url}/devnet").json()["marketMaker"] is False
        program.wait_for("the market maker rests")
        assert call(f"{program.node_url}/devnet/maker", "").status == 400
    with devnet() as program:
        none = call(f"{program.node_url}/devnet/maker?on=true", "")
        assert none.status == 400 and "no market maker" in none.json()["message"]
    refused = run("devnet", *FREE, "--scenario", "dex", "--data-dir", tmp_path / "chain")
    assert refused.returncode == 1 and "--scenario and --data-dir" in refused.stderr
