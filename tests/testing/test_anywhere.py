"""One file of tests in this process, on a devnet, and on a private node of the reference."""

from __future__ import annotations

import os

import pytest

from tests.e2e.programs import devnet
from tests.testing.test_plugin import PRICES, SHOP, run

pytest_plugins = ["pytester"]

PRIVATE_NODE = os.environ.get("SOLITON_PRIVATE_NODE")
"""The URL of a private node of the reference whose rich account is the usual one."""
COUNT = 8
TESTS = """
from pathlib import Path

import pytest
from soliton import Asset
from soliton.testing import NotObeying, refused

@pytest.fixture
def shop(deploy):
    return deploy(Path(__file__).parent / "shop.ride")

def test_transfers(new_account, node):
    one, other = new_account("2"), new_account("0")
    sent = node.send(one.transfer(other, "1.5", attachment="for you")).wait()
    assert sent.height <= node.height()
    assert (node.balance(one), node.balance(other)) == (49_900_000, 150_000_000)
    assert node.transaction(sent.id).sender == one.address

def test_assets(new_account, alice, node):
    other = new_account("0")
    gold = Asset(node.send(alice.issue("Gold", "10.00", 2)).wait().asset_id, 2)
    node.send(alice.transfer(other, "2.5", gold)).wait()
    assert [each.balance for each in node.asset_balances(other)] == [250]
    assert node.asset(gold.asset_id).decimals == 2

def test_data(new_account, node):
    account = new_account()
    entries = {"n": 1, "b": True, "s": "x", "d": b"y"}
    node.send(account.data(entries)).wait()
    assert node.data(account) == entries
    assert node.data_entry(account, "other") is None

def test_calls(shop, alice, bob, node):
    before = node.balance(shop)
    shop.call(alice, "buy", 3, payments=[(15, None)])
    shop.call(bob, "buy", 2, payments=[(10, None)])
    assert shop.data() == {"sold": 5}
    assert node.balance(shop) == before + 25
    assert shop.data("sold") == 5
    assert shop.complexities().keys() == {"buy", "open", "late"}
    assert shop.evaluate("price * 2").value == 10

def test_refusals_of_scripts(shop, alice):
    with refused("not enough: 14") as refusal:
        shop.call(alice, "buy", 3, payments=[(14, None)])
    assert "14" in refusal.message
    assert shop.data() == {}
    shop.call(alice, "open")
    with refused("too early"):
        shop.call(alice, "late")

def test_refusals_of_the_chain(new_account, bob, node):
    poor = new_account("1")
    with refused(code=112):
        node.send(poor.transfer(bob, "2"))
    with refused("non-positive"):
        poor.transfer(bob, -1)

def test_time_goes_on(chain, node):
    assert chain.height == node.height()
    assert chain.time > node.last_header().timestamp - 7_200_000

def test_who_obeys_goes_forward(chain):
    if not chain.obeys:
        with pytest.raises(NotObeying):
            chain.mine()
    else:
        height = chain.height
        assert chain.mine(3) == height + 3
"""


@pytest.fixture(autouse=True)
def files(pytester: pytest.Pytester) -> None:
    pytester.makefile(".ride", shop=SHOP, prices=PRICES)
    pytester.makepyfile(test_anywhere=TESTS)


def test_in_this_process(pytester: pytest.Pytester) -> None:
    run(pytester).assert_outcomes(passed=COUNT)


@pytest.mark.slow
def test_on_a_devnet(pytester: pytest.Pytester) -> None:
    with devnet() as program:
        run(pytester, "--soliton-url", program.node_url).assert_outcomes(passed=COUNT)


@pytest.mark.slow
@pytest.mark.skipif(not PRIVATE_NODE, reason="SOLITON_PRIVATE_NODE names no node")
def test_on_a_node_of_the_reference(pytester: pytest.Pytester) -> None:
    # Twice: what the first run has left there disturbs nobody.
    for _ in range(2):
        run(pytester, "--soliton-url", PRIVATE_NODE).assert_outcomes(passed=COUNT)
