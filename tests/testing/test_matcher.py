"""Orders in tests: the fixture ``matcher``, in the tests' process and on a devnet that runs."""

from __future__ import annotations

import pytest

from tests.amounts import only_long
from tests.e2e.programs import devnet
from tests.testing.test_plugin import NO_OTHERS, run

pytest_plugins = ["pytester"]

TRADING = """
import pytest
from soliton import Asset
from soliton.testing import refused

@pytest.fixture(scope="module")
def gold(alice, node):
    return Asset(node.send(alice.issue("Gold", "1000.00", 2)).wait().asset_id, 2)

@pytest.fixture(scope="module")
def ask(matcher, alice, gold):
    order = alice.sell("1", gold, "0.5", matcher=matcher.public_key())
    matcher.place(order)
    return order

@pytest.mark.parametrize("time", ["first", "second"])
def test_a_fill_is_on_the_chain(time, matcher, alice, bob, node, gold, ask):
    before = node.balance(alice)
    assert [(each.price, each.amount) for each in matcher.book(gold, None).asks] == [
        (ask.price, 100)
    ]
    bid = bob.buy("0.4", gold, "0.6", matcher=matcher.public_key())
    matcher.place(bid)
    (exchange,) = matcher.order_transactions(bid.id)
    node.wait(exchange.id)
    assert matcher.order_status(bid).status == "Filled"
    assert matcher.order_status(ask).filled_amount == 40
    assert [each.balance for each in node.asset_balances(bob)] == [40]
    # 0.4 at the price of who came first, less 0.4 of a fee of 0.003.
    assert node.balance(alice) == before + 20_000_000 - 120_000

def test_a_fill_is_undone(matcher, bob, node, gold, ask):
    assert node.asset_balances(bob) == []
    assert matcher.order_status(ask).status == "Accepted"
    assert matcher.trades(gold, None) == []

def test_refusals(matcher, bob, gold, ask):
    with refused("Not enough tradable balance"):
        matcher.place(bob.sell("1", gold, "0.5", matcher=matcher.public_key()))
    matcher.place(bid := bob.buy("1", gold, "0.1", matcher=matcher.public_key()))
    matcher.cancel(bob, bid)
    assert matcher.orders(bob, active=True) == []
"""
CHAIN = """
from datetime import timedelta
import pytest

def test_orders_follow_the_chain(matcher, alice, carol, node, gold, ask, chain):
    kept = chain.snapshot()
    node.send(alice.transfer(carol, 99_950, gold)).wait()
    assert matcher.order_status(ask).status == "Cancelled"
    moved = chain.snapshot()
    chain.revert(kept)
    assert matcher.order_status(ask).status == "Accepted"
    chain.revert(moved)
    assert matcher.order_status(ask).status == "Cancelled"

def test_orders_expire(matcher, bob, gold, ask, chain):
    with chain.isolated():
        chain.travel(timedelta(days=28))
        assert matcher.order_status(ask).status == "Accepted"
        chain.travel(timedelta(days=2))
        assert matcher.order_status(ask).status == "Cancelled"
    assert matcher.order_status(ask).status == "Accepted"

@pytest.mark.parametrize("above", [0, 150])
def test_a_block_that_goes_takes_nothing_back(
    above, matcher, bob, node, gold, ask, chain, caplog
):
    matcher.place(bob.buy("1", gold, "0.5", matcher=matcher.public_key()))
    assert matcher.order_status(ask).status == "Filled"
    if above:
        chain.mine(above)
        assert matcher.order_status(ask).status == "Filled"
    chain.reorganize(1 + above, keep=False)
    assert node.asset_balances(bob) == []
    # What was settled in it is settled again.
    assert matcher.order_status(ask).status == "Filled"
    assert [each.balance for each in node.asset_balances(bob)] == [100]
    assert "no fork reaches" not in caplog.text

def test_blocks_by_hand(matcher, bob, node, gold, ask, chain):
    chain.mining("manual")
    matcher.place(bob.buy("1", gold, "0.5", matcher=matcher.public_key()))
    assert node.asset_balances(bob) == []
    chain.mine()
    assert [each.balance for each in node.asset_balances(bob)] == [100]

@pytest.mark.parametrize("time", ["first", "second"])
def test_ids(time, matcher, bob, node, gold, ask, seen=set()):
    matcher.place(bid := bob.buy("1", gold, "0.5", matcher=matcher.public_key()))
    (exchange,) = matcher.order_transactions(bid.id)
    seen.add((bid.id, exchange.id, node.last_header().id))
    assert len(seen) == 1

def test_in_coroutines(matcher, bob, gold, ask):
    import asyncio

    async def main():
        matcher.place(bid := bob.buy("1", gold, "0.5", matcher=matcher.public_key()))
        await asyncio.sleep(0)
        return matcher.order_status(bid).status

    assert asyncio.run(main()) == "Filled"

def test_streams_tell_what_changes(matcher, alice, bob, gold, ask, chain):
    from soliton.client.streams import BookUpdate

    stream = matcher.stream([(gold, None)], account=bob)
    def book(condition):
        while True:
            update = next(stream)
            if isinstance(update, BookUpdate) and condition(update):
                return sorted(map(float, update.book.asks.values()))

    assert book(lambda update: update.is_whole) == [1]
    taken = chain.snapshot()
    matcher.place(bid := bob.buy("0.4", gold, "0.6", matcher=matcher.public_key()))
    orders = []
    while not any(each.id == bid.id and each.status == "Filled" for each in orders):
        orders += getattr(next(stream), "orders", ())
    other = matcher.stream([(gold, None)])
    assert [float(each) for each in next(other).book.asks.values()] == [0.6]
    with pytest.raises(Exception, match="the stream has no further updates"):
        next(other)
    chain.revert(taken)
    assert book(lambda update: update.is_whole) == [1]
"""


def test_orders_need_no_port_and_no_process(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_market=TRADING + CHAIN)
    pytester.makeconftest(NO_OTHERS)
    run(pytester).assert_outcomes(passed=13)


def test_without_a_matcher_such_tests_are_skipped(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("""
        import pytest
        from soliton.testing.kit import Kit

        @pytest.fixture(scope="session")
        def soliton_kit():
            return type("Kit", (), {"matcher": None})()

        def test_orders(matcher):
            raise AssertionError
    """)
    run(pytester).assert_outcomes(skipped=1)


@pytest.mark.slow
@only_long
def test_the_same_file_runs_on_a_devnet(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_market=TRADING.replace('["first", "second"]', '["once"]'))
    with devnet() as program:
        places = ("--soliton-url", program.node_url, "--soliton-matcher-url", program.matcher_url)
        # A matcher that runs by itself settles again what is taken off its chain.
        result = run(pytester, *places, "-k", "not undone")
        result.assert_outcomes(passed=2, deselected=1)
