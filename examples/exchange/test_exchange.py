"""The exchange and its treasury, on a chain of their own for each test."""

from pathlib import Path

import pytest

from soliton.testing import refused

HERE = Path(__file__).parent


class Pool:
    """Both dApps, and a token that alice has."""

    def __init__(self, deploy, node, alice):
        self.treasury = deploy(HERE / "treasury.ride")
        self.exchange = deploy(HERE / "exchange.ride")
        self.token = node.send(alice.issue("Token", 10**9, 0)).wait().asset_id
        self.exchange.call(self.exchange.account, "init", self.token, str(self.treasury.address))


@pytest.fixture(scope="module")
def pool(deploy, node, alice):
    return Pool(deploy, node, alice)


@pytest.fixture
def filled(pool, alice):
    pool.exchange.call(alice, "fill", payments=[(10**6, None), (4 * 10**6, pool.token)])
    return pool


def test_coins_become_tokens(filled, bob, node):
    filled.exchange.call(bob, "swap", 1, payments=[(1000, None)])
    # 3 of 1000 are the treasury's; 997 coins at 4 tokens, a little less for their own weight.
    assert node.asset_balances(bob)[0].balance == 3984
    assert filled.exchange.data() | {} == {
        "token": filled.token,
        "treasury": str(filled.treasury.address),
        "coins": 10**6 + 997,
        "tokens": 4 * 10**6 - 3984,
    }
    assert filled.treasury.data() == {"volume": 1000, "fees": 3}


def test_tokens_become_coins(filled, alice):
    filled.exchange.call(alice, "swap", 200, payments=[(1000, filled.token)])
    assert filled.exchange.data("tokens") == 4 * 10**6 + 997
    assert filled.exchange.data("coins") == 10**6 - 248


def test_a_price_can_be_asked_for(filled, bob):
    with refused("that gives 3984", function="swap"):
        filled.exchange.call(bob, "swap", 4000, payments=[(1000, None)])


def test_an_empty_pool_trades_nothing(pool, bob):
    with refused("there is nothing in the pool", function="swap"):
        pool.exchange.call(bob, "swap", 1, payments=[(1000, None)])


def test_payments_have_to_be_the_right_ones(pool, alice, bob, node):
    other = node.send(bob.issue("Other", 1000, 0)).wait().asset_id
    for payments in ([], [(1, None), (1, pool.token)]):
        with refused("one payment"):
            pool.exchange.call(alice, "swap", 1, payments=payments)
    with refused("no such token here"):
        pool.exchange.call(bob, "swap", 1, payments=[(1, other)])
    for payments in ([(1, None)], [(1, pool.token), (1, None)]):
        with refused("two payments"):
            pool.exchange.call(alice, "fill", payments=payments)
    with refused("two payments"):
        pool.exchange.call(bob, "fill", payments=[(1, None), (1, other)])


def test_only_the_owners_set_things_up(pool, alice):
    with refused("only the exchange itself"):
        pool.exchange.call(alice, "init", "a", "b")
    with refused("only the treasury itself"):
        pool.treasury.call(alice, "setShare", 1)


def test_the_share_is_set(filled, bob):
    owner = filled.treasury.account
    filled.treasury.call(owner, "setShare", 100)
    filled.exchange.call(bob, "swap", 1, payments=[(1000, None)])
    assert filled.treasury.data("fees") == 100
    for wrong in (-1, 101):
        with refused("a share is 0 to 100"):
            filled.treasury.call(owner, "setShare", wrong)
