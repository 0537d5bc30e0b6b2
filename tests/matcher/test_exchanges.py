"""Exchange transactions of executions: those that the reference made of the same orders, and what
the ledger says to those of random trading.
"""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

import msgspec
import pytest

from soliton.chain import orders
from soliton.chain.addresses import from_public_key
from soliton.chain.orders import Order, PriceMode, Side
from soliton.chain.transactions import codec
from soliton.chain.transactions.exchange import Exchange
from soliton.chain.transactions.model import AnyTransaction
from soliton.crypto import base58, keys
from soliton.ledger.rules_at import RuleBook
from soliton.ledger.state import ASSET_BALANCES, ASSETS, WAVES, AssetInfo
from soliton.ledger.transactions import apply_transaction
from soliton.matcher.exchanges import NATIVE, ExchangeContext, make_exchange, transaction_fee
from soliton.matcher.node_client import Asset
from soliton.matching.commands import PlaceMarketOrder, PlaceOrder
from soliton.matching.engine import Engine
from soliton.matching.events import OrderExecuted
from soliton.matching.fees import DynamicFee
from soliton.matching.pairs import Asset as AssetOrNone
from soliton.matching.rules import MatchingSettings
from tests.ledger.cases import DEVNET, context_at
from tests.ledger.memory import MemoryState
from tests.vectors import report

CHAIN_ID = ord("D")
HEIGHT = 10
RULES = RuleBook(msgspec.structs.replace(DEVNET, chain_id=CHAIN_ID)).at(HEIGHT)
NOW = 1_700_000_000_000
RICH = 10**18
MATCHER = keys.key_pair("matcher")
TRADERS = [keys.key_pair(name) for name in ("alice", "bob", "carol")]
AMOUNT, PRICE, FEE = b"a" * 32, b"p" * 32, b"f" * 32


def around(amount_decimals: int = 8, price_decimals: int = 8) -> ExchangeContext:
    """Plain assets."""
    amount, price = Asset("a", amount_decimals, False), Asset("p", price_decimals, False)
    return ExchangeContext(amount, price, (NATIVE, NATIVE))


def state_of(decimals: dict[AssetOrNone, int], owners: list[bytes]) -> MemoryState:
    """Everybody has plenty of everything."""
    state = MemoryState()
    for key in owners:
        address = from_public_key(key, CHAIN_ID)
        state.put(WAVES, address, RICH)
        for asset, digits in decimals.items():
            if asset is not None:
                info = AssetInfo(MATCHER.public_key, digits, False, asset, 1, 1)
                state.put(ASSETS, asset, info)
                state.put(ASSET_BALANCES, (address, asset), RICH)
    return state


def take(state: MemoryState, transaction: AnyTransaction) -> None:
    """The ledger applies a transaction, or raises."""
    now = transaction.timestamp
    apply_transaction(transaction, state, context_at(HEIGHT, now, now - 1_000, RULES))


def executions(engine: Engine, *placed: Order, now: int = NOW) -> list[OrderExecuted]:
    """What comes of placing limit orders."""
    return [
        event
        for order in placed
        for event in engine.apply(engine.last_offset + 1, now, PlaceOrder(order))
        if isinstance(event, OrderExecuted)
    ]


def test_recorded_exchanges(shared: Path) -> None:
    material = json.loads((shared / "vectors" / "matcher-orders.json").read_text(encoding="utf-8"))
    engines: dict[int, Engine] = {}
    for case in material["transactions"]:
        version = case["txs"][0]["version"]
        settings = MatchingSettings(order_v4_start_offset=0 if version == 3 else 10**9)
        engine = engines.setdefault(version, Engine(settings))
        placed = [orders.from_json(obj, CHAIN_ID) for obj in case["orders"]]
        found = executions(engine, *placed, now=case["txs"][0]["timestamp"])
        for executed, recorded in zip(found, case["txs"], strict=True):
            made = make_exchange(executed, settings, around(), MATCHER.public_key)
            assert base58.encode(made.id) == recorded["id"]
            assert (made.fee, made.version) == (recorded["fee"], recorded["version"])
    report.ran("matcher-orders", 7)


def signed_order(random: Random, price_digits: int, *, oldest: int, newest: int) -> Order:
    """An order of somebody, of one of these versions, at a price that ends in zeros."""
    trader = random.choice(TRADERS)
    version = random.randint(oldest, newest)
    draft = Order(
        version=version,
        chain_id=CHAIN_ID,
        sender_public_key=trader.public_key,
        matcher_public_key=MATCHER.public_key,
        amount_asset=AMOUNT,
        price_asset=PRICE,
        side=random.choice((Side.BUY, Side.SELL)),
        amount=random.randint(1, 10 ** random.randint(2, 10)),
        price=random.randint(90, 110)
        * 10 ** random.randint(max(price_digits, 3), price_digits + 5),
        timestamp=NOW + random.randint(0, 10**6),
        expiration=NOW + 10**8,
        matcher_fee=random.randint(1, 10 ** random.randint(1, 9)),
        matcher_fee_asset=random.choice((None, AMOUNT, PRICE, FEE)) if version > 2 else None,
        price_mode=PriceMode.ASSET_DECIMALS if version > 3 else PriceMode.DEFAULT,
    )
    return orders.sign(orders.build(draft), trader.private_key, bytes(64))


@pytest.mark.parametrize(
    ("amount_decimals", "price_decimals"), [(8, 8), (2, 8), (8, 2), (0, 8), (8, 0), (6, 5)]
)
@pytest.mark.parametrize("protobuf", [False, True])
def test_the_ledger_takes_what_comes_of_random_trading(
    amount_decimals: int, price_decimals: int, protobuf: bool
) -> None:
    """Orders of all versions, executed part by part: amounts, prices and fees are what the chain
    allows, and nothing is lost there.
    """
    random = Random(amount_decimals * 10 + price_decimals)
    settings = MatchingSettings(
        order_fees=((-1, DynamicFee(300_000, 300_000)), (150, DynamicFee(100_000, 300_000))),
        order_v4_start_offset=0 if protobuf else 10**9,
    )
    engine = Engine(settings)
    decimals: dict[AssetOrNone, int] = {AMOUNT: amount_decimals, PRICE: price_decimals, FEE: 4}
    owners = [MATCHER.public_key, *(trader.public_key for trader in TRADERS)]
    state = state_of(decimals, owners)
    where = around(amount_decimals, price_decimals)
    digits = max(0, price_decimals - amount_decimals)
    versions: set[int] = set()
    count = 0
    for _ in range(300):
        order = signed_order(random, digits, oldest=1, newest=4 if protobuf else 3)
        command = PlaceOrder(order)
        if random.random() < 0.2:
            events = engine.apply(
                engine.last_offset + 1, NOW, PlaceMarketOrder(order, random.randint(0, 10**12))
            )
        else:
            events = engine.apply(engine.last_offset + 1, NOW, command)
        for event in events:
            if isinstance(event, OrderExecuted):
                made = make_exchange(event, settings, where, MATCHER.public_key)
                take(state, codec.sign(made, MATCHER.private_key))
                versions |= {event.taker.order.version, event.maker.order.version}
                count += 1
    assert count > 60
    assert versions == set(range(1, 5 if protobuf else 4))


def test_prices_of_later_transactions_have_eight_decimals() -> None:
    settings = MatchingSettings(order_v4_start_offset=0)
    made = _one(settings, around(8, 2))
    assert isinstance(made.payload, Exchange)
    assert (made.version, made.payload.price) == (3, 100 * 10**6 * 10**6)


def _one(settings: MatchingSettings, where: ExchangeContext, version: int = 3) -> AnyTransaction:
    random = Random(1)
    taker = maker = signed_order(random, 6, oldest=version, newest=version)
    while taker.side is maker.side:
        taker = signed_order(random, 6, oldest=version, newest=version)
    both = [
        orders.build(msgspec.structs.replace(order, price=10**8, amount=10**10, matcher_fee=10**6))
        for order in (maker, taker)
    ]
    (executed,) = executions(Engine(settings), *both)
    return make_exchange(executed, settings, where, MATCHER.public_key)


def test_orders_of_listed_accounts_tell_what_was_executed() -> None:
    """In the decimals of the pair, also where the transaction has others. The reference compares
    with ``offset > since-offset``; these are executed at offset 1.
    """
    keys_of = frozenset(trader.public_key for trader in TRADERS)
    settings = MatchingSettings(
        order_v4_start_offset=0, pass_execution_parameters_start_offset=0, lp_accounts=keys_of
    )
    payload = _one(settings, around(8, 2)).payload
    assert isinstance(payload, Exchange)
    told = ((10**10).to_bytes(8, "big"), (10**8).to_bytes(8, "big"))
    for order in payload.orders:
        assert order.proofs[-2:] == told
    older = _one(settings, around(8, 2), version=2).payload
    assert isinstance(older, Exchange)
    assert [len(order.proofs) for order in older.orders] == [1, 1]
    later = msgspec.structs.replace(settings, pass_execution_parameters_start_offset=1)
    payload = _one(later, around(8, 2)).payload
    assert isinstance(payload, Exchange)
    assert [len(order.proofs) for order in payload.orders] == [1, 1]


def test_fees_of_transactions() -> None:
    smart = Asset("s", 8, True)
    assert transaction_fee(around()) == 300_000
    scripted = ExchangeContext(smart, smart, (smart, NATIVE), matcher_scripted=True)
    assert transaction_fee(scripted) == 300_000 + 4 * 400_000
    assert transaction_fee(around(), 500_000) == 500_000
