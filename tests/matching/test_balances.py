"""Balances of accounts: each step by a table, and a small exchange that must not lose a unit."""

from __future__ import annotations

from random import Random

import pytest

from soliton.chain.orders import Order, Side
from soliton.crypto.hashes import blake2b256
from soliton.errors import InvariantBroken
from soliton.matching.account_checks import available_for_spending, check_account
from soliton.matching.balances import AccountBalances, uncovered
from soliton.matching.commands import (
    CancelOrder,
    CancelSource,
    Command,
    PlaceMarketOrder,
    PlaceOrder,
)
from soliton.matching.engine import Engine
from soliton.matching.errors import MatcherError
from soliton.matching.events import Event, OrderAdded, OrderCanceled, OrderExecuted
from soliton.matching.fees import DynamicFee
from soliton.matching.model import ActiveOrder, limit_order, market_order
from soliton.matching.pairs import Asset
from soliton.matching.rules import MatchingSettings
from tests.matching.makers import AMOUNT_ASSET, FEE_ASSET, NOW, PAIR, PRICE_ASSET, make_order
from tests.matching.test_validation import ASSETS

COIN = 10**8
TX = blake2b256(b"transaction")


def account(**regular: int) -> AccountBalances:
    """An account with so much of ``native``, ``amount``, ``price`` and ``fee``."""
    names = {"native": None, "amount": AMOUNT_ASSET, "price": PRICE_ASSET, "fee": FEE_ASSET}
    made = AccountBalances()
    made.update({names[name]: units for name, units in regular.items()}, 0)
    return made


def sell(amount: int, *, timestamp: int = NOW, fee: int = 1, paid: Asset = None) -> ActiveOrder:
    """A limit order at 200."""
    return limit_order(
        make_order(Side.SELL, amount, 200, timestamp=timestamp, fee=fee, fee_asset=paid)
    )


def partly(order: ActiveOrder, amount: int, fee: int) -> ActiveOrder:
    """The order with so much left."""
    return ActiveOrder(order.order, order.is_market, amount, fee)


def test_placing_and_cancelling() -> None:
    mine = account(amount=5 * COIN, native=10)
    order = sell(2 * COIN, fee=3)
    assert mine.place(order) == {AMOUNT_ASSET, None}
    assert mine.reserved == {AMOUNT_ASSET: 2 * COIN, None: 3}
    assert mine.all_tradable() == {AMOUNT_ASSET: 3 * COIN, None: 7}
    assert mine.place(order) == frozenset()
    assert mine.release(order.id) == {AMOUNT_ASSET, None}
    assert mine.reserved == {}
    assert mine.release(order.id) == frozenset()
    assert mine.tradable(AMOUNT_ASSET) == 5 * COIN


def test_the_fee_may_be_in_the_asset_that_is_spent() -> None:
    mine = account(amount=5 * COIN)
    mine.place(sell(2 * COIN, fee=3, paid=AMOUNT_ASSET))
    assert mine.reserved == {AMOUNT_ASSET: 2 * COIN + 3}
    buyer = account(price=500)
    buyer.place(limit_order(make_order(Side.BUY, COIN, 200, fee=5, fee_asset=AMOUNT_ASSET)))
    # What a buyer gets is not counted to what he owes.
    assert buyer.reserved == {PRICE_ASSET: 200, AMOUNT_ASSET: 5}


@pytest.mark.parametrize(
    ("spend", "reserved"), [(120, {PRICE_ASSET: 120, None: 7}), (0, {None: 7})]
)
def test_of_a_market_order_what_it_may_spend_is_reserved(
    spend: int, reserved: dict[Asset, int]
) -> None:
    mine = account(price=500, native=10)
    mine.place(market_order(make_order(Side.BUY, COIN, 200, fee=7), spend))
    assert mine.reserved == reserved


def test_leased_coins_are_not_tradable() -> None:
    mine = account(native=10, amount=5)
    mine.update(leased_out=4, unconfirmed={None: -1, AMOUNT_ASSET: -2})
    assert (mine.tradable(None), mine.tradable(AMOUNT_ASSET)) == (5, 3)
    mine.update(unconfirmed={None: -9})
    assert (mine.tradable(None), mine.node_balance(None)) == (0, -3)


def test_an_execution_counts_until_its_transaction_is_seen() -> None:
    mine = account(amount=5 * COIN, native=10)
    order = sell(2 * COIN, fee=4)
    mine.place(order)
    mine.executed(TX, [(partly(order, COIN, 2), False)])
    assert mine.not_observed == 1
    assert mine.reserved == {AMOUNT_ASSET: COIN, None: 2}
    # Nothing became free, though less is reserved.
    assert mine.all_tradable() == {AMOUNT_ASSET: 3 * COIN, None: 6}
    mine.update(unconfirmed={AMOUNT_ASSET: -COIN, None: -2})
    assert mine.observed(TX) == {AMOUNT_ASSET, None}
    assert mine.all_tradable() == {AMOUNT_ASSET: 3 * COIN, None: 6}
    assert mine.not_observed == 0
    assert mine.observed(TX) == frozenset()


def test_dust_is_free_at_the_end() -> None:
    mine = account(amount=5 * COIN, native=10)
    order = sell(2 * COIN, fee=4)
    mine.place(order)
    mine.executed(None, [(partly(order, 7, 1), True)])
    assert mine.reserved == {}
    assert mine.orders == {}


def test_no_execution_counts_twice() -> None:
    mine = account(amount=5 * COIN)
    order = sell(2 * COIN)
    mine.place(order)
    mine.executed(TX, [(partly(order, COIN, 0), False)])
    with pytest.raises(InvariantBroken):
        mine.executed(TX, [(partly(order, 0, 0), True)])


# amounts that are sold, oldest first; what is left of the asset; which of them have to go
UNCOVERED = """
5 3 2   | 10 |
5 3 2   | 9  | 2
5 3 2   | 7  | 1
5 3 2   | 4  | 0 2
5 3 2   | 0  | 0 1 2
1 1 1   | 2  | 2
9 1 1   | 2  | 0
"""


@pytest.mark.parametrize("row", UNCOVERED.strip().splitlines())
def test_what_is_no_longer_covered(row: str) -> None:
    amounts, balance, gone = (list(map(int, cell.split())) for cell in row.split("|"))
    orders = [sell(amount * COIN, timestamp=NOW + n) for n, amount in enumerate(amounts)]
    expected = [orders[n] for n in gone]
    assert list(uncovered(reversed(orders), {AMOUNT_ASSET: balance[0] * COIN})) == expected
    market = market_order(orders[0].order, 1)
    assert uncovered([market], {AMOUNT_ASSET: 0}) == ()


def test_orders_are_cancelled_when_a_balance_falls() -> None:
    mine = account(amount=5 * COIN, native=10, price=7)
    older, younger = sell(2 * COIN, timestamp=NOW, fee=4), sell(3 * COIN, timestamp=NOW + 1, fee=6)
    mine.place(younger)
    mine.place(older)
    assert mine.update(regular={AMOUNT_ASSET: 9 * COIN}) == ()
    assert mine.update(regular={AMOUNT_ASSET: 5 * COIN}) == ()
    assert mine.update(regular={PRICE_ASSET: 0}) == ()
    assert mine.update(regular={AMOUNT_ASSET: 5 * COIN - 1}) == (younger,)
    # What rose, or stayed, is no reason.
    assert mine.update(regular={AMOUNT_ASSET: 5 * COIN - 1}) == ()
    assert mine.update(unconfirmed={None: -7}) == (older, younger)
    assert mine.update(leased_out=10) == (older, younger)


# --- a small exchange -----------------------------------------------------------------------------


class Exchange:
    """Accounts, the engine, and a chain that learns of executions late."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.engine = Engine(
            MatchingSettings(order_fees=((-1, DynamicFee(300, 100)), (50, DynamicFee(100, 300))))
        )
        self.names = ("alice", "bob", "carol")
        assets: tuple[Asset, ...] = (None, AMOUNT_ASSET, PRICE_ASSET, FEE_ASSET)
        self.chain: dict[str, dict[Asset, int]] = {
            name: {asset: self.random.randint(0, 10**10) for asset in assets} for name in self.names
        }
        self.chain["matcher"] = dict.fromkeys(assets, 0)
        self.accounts = {name: AccountBalances() for name in self.names}
        for name, mine in self.accounts.items():
            mine.update(self.chain[name], 0)
        self.owners: dict[bytes, str] = {}
        self.unseen: list[tuple[bytes, OrderExecuted]] = []
        self.supply = self.total()
        self.executions = self.refused = 0

    def total(self) -> dict[Asset, int]:
        """How much there is of everything."""
        return {
            asset: sum(owned[asset] for owned in self.chain.values())
            for asset in self.chain["matcher"]
        }

    def step(self) -> None:
        """One command, or the chain takes a transaction."""
        draw = self.random.random()
        if self.unseen and draw < 0.3:
            self.settle()
        elif self.owners and draw < 0.4:
            order_id = self.random.choice(list(self.owners)[-20:])
            self.apply(CancelOrder(PAIR, order_id, CancelSource.REQUEST))
        else:
            self.place()
        self.check()

    def place(self) -> None:
        """A random order, if its owner can afford it."""
        name = self.random.choice(self.names)
        mine = self.accounts[name]
        version = self.random.randint(1, 4)
        order = make_order(
            self.random.choice((Side.BUY, Side.SELL)),
            self.random.randint(1, 10 ** self.random.randint(2, 10)),
            self.random.randint(90, 110) * 10 ** self.random.choice((0, 5, 6, 7)),
            sender=name,
            version=version,
            fee=self.random.randint(1, 10**6),
            fee_asset=self.random.choice((None, AMOUNT_ASSET, PRICE_ASSET, FEE_ASSET))
            if version > 2
            else None,
            timestamp=NOW + len(self.owners),
        )
        command: Command
        if self.random.random() < 0.2:
            spend = available_for_spending(order, mine.tradable)
            active, command = market_order(order, spend), PlaceMarketOrder(order, spend)
        else:
            active, command = limit_order(order), PlaceOrder(order)
        try:
            # The depth does not matter here: an order that does not reach ends earlier.
            check_account(active, mine.tradable, (), ASSETS)
        except MatcherError:
            self.refused += 1
            return
        # A market order's spending and fee share one balance: the fee is kept whole.
        if active.is_market and any(
            mine.tradable(asset) < units for asset, units in active.reservable_balance().items()
        ):
            return
        self.owners[order.id] = name
        mine.place(active)
        self.apply(command)

    def apply(self, command: Command) -> None:
        """Run a command and tell the accounts."""
        for event in self.engine.apply(self.engine.last_offset + 1, NOW, command):
            self.tell(event)

    def tell(self, event: Event) -> None:
        """An event reaches the accounts of its orders."""
        match event:
            case OrderAdded(order=order):
                assert order.id in self.accounts[self.owners[order.id]].orders
            case OrderCanceled(order=order):
                self.accounts[self.owners[order.id]].release(order.id)
            case OrderExecuted():
                self.executions += 1
                transaction_id = blake2b256(b"tx%d" % self.executions)
                self.unseen.append((transaction_id, event))
                states = [
                    (event.taker, event.taker_is_done),
                    (event.maker, event.maker_is_done),
                ]
                for name in {self.owners[state.id] for state, _ in states}:
                    own = [entry for entry in states if self.owners[entry[0].id] == name]
                    self.accounts[name].executed(transaction_id, own)
            case _:
                pass

    def settle(self) -> None:
        """The chain takes the oldest transaction; the accounts see it and their new balances."""
        transaction_id, event = self.unseen.pop(0)
        taker, maker = event.taker.order, event.maker.order
        buys = taker.side is Side.BUY
        sides = ((taker, event.taker_fee, buys), (maker, event.maker_fee, not buys))
        for order, fee, is_buyer in sides:
            self.pay(order, fee, event, 1 if is_buyer else -1)
        for name in {self.owners[taker.id], self.owners[maker.id]}:
            self.accounts[name].observed(transaction_id)
            assert self.accounts[name].update(regular=self.chain[name]) == ()

    def pay(self, order: Order, fee: int, event: OrderExecuted, sign: int) -> None:
        """What one side gets, gives and pays."""
        owned = self.chain[self.owners[order.id]]
        owned[AMOUNT_ASSET] += sign * event.amount
        owned[PRICE_ASSET] -= sign * event.price_volume
        owned[order.matcher_fee_asset] -= fee
        self.chain["matcher"][order.matcher_fee_asset] += fee

    def check(self) -> None:
        """Nothing is lost, nobody owes, and what is reserved is what the orders need."""
        assert self.total() == self.supply
        for name, mine in self.accounts.items():
            assert min(self.chain[name].values()) >= 0
            reserved: dict[Asset, int] = {}
            for order in mine.orders.values():
                for asset, units in order.reservable_balance().items():
                    reserved[asset] = reserved.get(asset, 0) + units
            assert {asset: units for asset, units in reserved.items() if units} == mine.reserved
            for asset, units in mine.reserved.items():
                assert mine.node_balance(asset) >= units
        book = self.engine.book(PAIR)
        resting = {order.id: order for order in book.orders()} if book else {}
        active = {
            key: order for mine in self.accounts.values() for key, order in mine.orders.items()
        }
        assert resting == active


@pytest.mark.parametrize("seed", range(8))
def test_a_small_exchange(seed: int) -> None:
    exchange = Exchange(seed)
    for _ in range(400):
        exchange.step()
    while exchange.unseen:
        exchange.settle()
        exchange.check()
    assert exchange.executions > 20
    for name, mine in exchange.accounts.items():
        assert mine.not_observed == 0
        for asset, units in exchange.chain[name].items():
            assert mine.tradable(asset) == units - mine.reserved.get(asset, 0)
