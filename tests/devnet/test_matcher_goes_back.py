"""A devnet's matcher goes where its chain goes: back, forward to a branch that was left, to the
beginning. What counts is what its clients see, and that it brings nothing back by itself.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from soliton import Account, Asset, Matcher, Node
from soliton.client.order import Order
from soliton.client.streams import BookUpdate
from soliton.matcher.renewal import FINAL_DEPTH
from soliton.testing.chain import Chain
from tests.e2e.programs import Program, call, devnet, eventually

pytestmark = pytest.mark.slow


class Market:
    """A devnet with a token that two trade."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.node = Node(program.node_url)
        self.matcher = Matcher(program.matcher_url)
        self.chain = Chain(self.node)
        self.alice, self.bob = (
            Account.from_seed(f"soliton devnet account {number}", self.node.chain_id)
            for number in (1, 2)
        )
        issued = self.node.send(self.alice.issue("Gold", "1000.00", 2)).wait()
        self.gold = Asset(str(issued.asset_id), 2)
        self.key = self.matcher.public_key()

    def ask(self, amount: str = "1") -> Order:
        order = self.alice.sell(amount, self.gold, "0.5", matcher=self.key)
        self.matcher.place(order)
        return order

    def bid(self, amount: str = "0.4", *, waits: bool = False) -> Order:
        order = self.bob.buy(amount, self.gold, "0.6", matcher=self.key)
        self.matcher.place(order)
        for exchange in self.matcher.order_transactions(order.id):
            if not waits:
                self.node.wait(exchange.id)
        return order

    def reset(self) -> None:
        call(f"{self.node.url}/devnet/reset", "")

    def asks(self) -> list[int]:
        return [each.amount for each in self.matcher.book(self.gold, None).asks]

    def held(self) -> list[int]:
        return [each.balance for each in self.node.asset_balances(self.bob)]


@pytest.fixture(params=[False, True], ids=["in memory", "on a disk"])
def market(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Market]:
    options = ("--data-dir", tmp_path) if request.param else ()
    # What a generator has committed to is final at once: no history leaves it out.
    with devnet("--generation-period", 1_000, *options) as program:
        yield Market(program)


def test_it_goes_back_and_forward(market: Market) -> None:
    ask = market.ask()
    before = market.chain.snapshot()
    bid = market.bid()
    after = market.chain.snapshot()
    assert (market.asks(), market.held()) == ([60], [40])
    for _ in range(2):
        market.chain.revert(before)
        assert (market.asks(), market.held()) == ([100], [])
        assert market.matcher.order_status(ask).status == "Accepted"
        assert market.matcher.order_status(bid).status == "NotFound"
        # Nobody makes the exchange again.
        market.chain.mine(3)
        assert market.held() == []
        market.chain.revert(after)
        assert (market.asks(), market.held()) == ([60], [40])
        assert market.matcher.order_status(bid).status == "Filled"
    market.chain.revert(before)
    other = market.bid("0.7")
    assert (market.asks(), market.held()) == ([30], [70])
    assert market.matcher.order_status(other).status == "Filled"
    market.chain.revert(after)
    assert (market.asks(), market.held()) == ([60], [40])


def test_nothing_is_left_of_it_when_the_chain_begins_anew(market: Market) -> None:
    ask = market.ask()
    market.bid()
    place = f"{market.node.url}/devnet/state"
    state = httpx.get(place).content
    market.reset()
    assert market.matcher.order_status(ask).status == "NotFound"
    assert httpx.post(place, content=state).status_code == 200
    assert market.held() == [40] and market.asks() == []


def _nothing_is_wrong(market: Market) -> None:
    assert "no fork reaches" not in market.program.output
    assert "ERROR" not in market.program.output


def test_a_chain_goes_further_back_than_forks_do(market: Market) -> None:
    ask = market.ask()
    before = market.chain.snapshot()
    for _ in range(2):
        market.chain.mine(FINAL_DEPTH + 50)
        market.chain.revert(before)
        assert (market.asks(), market.held()) == ([100], [])
        assert market.matcher.order_status(ask).status == "Accepted"
    bid = market.bid()
    market.chain.mine(FINAL_DEPTH + 50)
    market.chain.revert(before)
    assert market.matcher.order_status(bid).status == "NotFound"
    market.chain.mine(FINAL_DEPTH + 50)
    market.reset()
    assert market.matcher.order_status(ask).status == "NotFound"
    market.chain.mine(2)
    _nothing_is_wrong(market)


def test_it_goes_back_below_what_votes_have_made_final() -> None:
    with devnet("--generation-period", 5) as program:
        market = Market(program)
        market.chain.mine(12)
        market.ask()
        before = market.chain.snapshot()
        market.bid()
        market.chain.mine(8)
        assert market.node.finalized_height() == market.node.height() - 2
        assert market.held() == [40]
        market.chain.revert(before)
        assert (market.asks(), market.held()) == ([100], [])
        # An exchange that waits at the mark is made once more, although a final block had it.
        market.chain.mining("manual")
        order = market.bid(waits=True)
        eventually(lambda: len(market.node.unconfirmed()) > 0, "an exchange waits")
        before = market.chain.snapshot()
        market.chain.mine(8)
        assert market.held() == [40]
        market.chain.revert(before)
        market.chain.drop()
        assert market.matcher.order_status(order).status == "Filled"

        def again() -> bool:
            market.chain.mine()
            return market.held() == [40]

        eventually(again, "the exchange is on the chain again")
        _nothing_is_wrong(market)


def test_it_goes_so_far_back_in_pieces(market: Market) -> None:
    ask = market.ask()
    marks = []
    for _ in range(3):
        marks.append(market.chain.snapshot())
        market.chain.mine(FINAL_DEPTH - 20)
    for mark in reversed(marks):
        market.chain.revert(mark)
        # It is told of the chain before it answers.
        market.chain.mine()
        assert market.matcher.order_status(ask).status == "Accepted"
    _nothing_is_wrong(market)


def test_an_exchange_that_waited_then_is_made_once_more(market: Market) -> None:
    market.ask()
    market.chain.mining("manual")
    order = market.bid(waits=True)
    eventually(lambda: len(market.node.unconfirmed()) > 0, "an exchange waits")
    before = market.chain.snapshot()
    market.chain.mine(FINAL_DEPTH + 50)
    assert market.held() == [40]
    market.chain.revert(before)
    market.chain.drop()
    assert market.matcher.order_status(order).status == "Filled"

    def again() -> bool:
        market.chain.mine()
        return market.held() == [40]

    eventually(again, "the exchange is on the chain again")
    _nothing_is_wrong(market)


def test_what_another_history_leaves_out_is_brought_back(market: Market) -> None:
    market.ask()
    order = market.bid()
    market.chain.mine(FINAL_DEPTH + 50)
    market.chain.reorganize(FINAL_DEPTH + 51, keep=False)
    assert market.matcher.order_status(order).status == "Filled"
    eventually(lambda: market.held() == [40], "the exchange is on the chain again")
    _nothing_is_wrong(market)


def test_many_at_once_end_where_the_last_one_led(market: Market) -> None:
    """Before a matcher has begun anew, it is told to be another one."""
    marks = [market.chain.snapshot()]
    for _ in range(3):
        market.ask()
        marks.append(market.chain.snapshot())
    for place in (0, 3, 1, 2, 0, 1):
        market.chain.revert(marks[place])
    assert sum(market.asks()) == 100
    market.chain.revert(marks[3])
    assert sum(market.asks()) == 300


def test_streams_begin_again(market: Market) -> None:
    market.ask()
    before = market.chain.snapshot()
    told: list[BookUpdate] = []

    def listen() -> None:
        for update in market.matcher.stream([(market.gold, None)]):
            assert isinstance(update, BookUpdate)
            told.append(update)
            if update.is_whole and sold and sum(update.book.asks.values()) == 1:
                return

    sold = False
    follower = threading.Thread(target=listen, daemon=True)
    follower.start()
    eventually(lambda: len(told) > 0, "the book")
    market.bid()
    eventually(lambda: sum(told[-1].book.asks.values()) < 1, "a part of it is gone")
    sold = True
    market.chain.revert(before)
    follower.join(60)
    assert not follower.is_alive(), "all of it"


def test_a_disk_keeps_where_it_went(tmp_path: Path) -> None:
    with devnet("--data-dir", tmp_path) as program:
        market = Market(program)
        ask = market.ask()
        before = market.chain.snapshot()
        market.bid()
        market.chain.revert(before)
        assert market.asks() == [100]
    with devnet("--data-dir", tmp_path) as program:
        again = Matcher(program.matcher_url)
        assert again.order_status(ask).status == "Accepted"
        assert [each.amount for each in again.book(market.gold, None).asks] == [100]


@pytest.mark.parametrize("left", ["some of the old one", "none of the old one"])
def test_who_was_killed_while_it_went_back_has_lost_nothing(left: str, tmp_path: Path) -> None:
    with devnet("--data-dir", tmp_path) as program:
        market = Market(program)
        ask = market.ask()
    # Its new directory is whole, and the old one about to be removed.
    (place,) = tmp_path.rglob("matcher")
    place.rename(place.with_name("matcher.next"))
    if left == "some of the old one":
        place.mkdir()
        (place / "journal").mkdir()
    with devnet("--data-dir", tmp_path) as program:
        assert Matcher(program.matcher_url).order_status(ask).status == "Accepted"


def test_the_market_of_a_scenario_is_there_again() -> None:
    with devnet("--scenario", "dex", "--no-maker") as program:
        matcher = Matcher(program.matcher_url)
        pairs = [(each.amount_asset, each.price_asset) for each in matcher.markets()]

        def books() -> list[int]:
            return sorted(len(matcher.book(*pair).asks) for pair in pairs)

        opened = books()
        assert opened and all(opened)
        call(f"{program.node_url}/devnet/reset", "")
        eventually(lambda: books() == opened, "the books are filled")
