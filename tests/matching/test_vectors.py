"""Orders and exchanges recorded from the reference matcher: the same orders, given to the engine,
make the same transactions, and our ledger takes them.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from soliton.chain import orders
from soliton.chain.addresses import from_public_key
from soliton.chain.orders import Order, Side
from soliton.chain.transactions import codec
from soliton.chain.transactions.exchange import TYPE, Exchange
from soliton.chain.transactions.model import AnyTransaction
from soliton.crypto import base58, curve25519
from soliton.ledger.rules_at import RuleBook
from soliton.ledger.state import ASSET_BALANCES, ASSETS, WAVES, AssetInfo
from soliton.ledger.transactions import apply_transaction
from soliton.matching.account_checks import signature_to_verify
from soliton.matching.commands import PlaceOrder, decode, encode
from soliton.matching.engine import Engine
from soliton.matching.events import OrderExecuted
from soliton.matching.rules import MatchingSettings
from soliton.matching.validity import order_fault
from tests.ledger.cases import DEVNET, context_at
from tests.ledger.memory import MemoryState
from tests.vectors import report

CHAIN_ID = ord("D")
DECIMALS = 8
RICH = 10**15
HEIGHT = 10
RULES = RuleBook(msgspec.structs.replace(DEVNET, chain_id=CHAIN_ID)).at(HEIGHT)


def read_order(obj: dict[str, Any]) -> Order:
    """An order as the matcher prints it."""
    return orders.from_json(obj, CHAIN_ID)


@pytest.fixture
def material(shared: Path) -> dict[str, Any]:
    text = (shared / "vectors" / "matcher-orders.json").read_text(encoding="utf-8")
    loaded: dict[str, Any] = json.loads(text)
    return loaded


def test_recorded_orders(material: dict[str, Any]) -> None:
    """Ids, bodies and signatures, and what a journal keeps of them."""
    for recorded in material["orders"]:
        order = read_order(recorded)
        assert base58.encode(order.id) == recorded["id"]
        assert base58.encode(order.body) == recorded["_body"]
        claim = signature_to_verify(order)
        assert claim is not None
        assert curve25519.verify(*claim)
        assert order_fault(order, order.timestamp) is None
        assert decode(encode(PlaceOrder(order))) == PlaceOrder(order)
    report.ran("matcher-orders", len(material["orders"]))


def exchange_of(executed: OrderExecuted, recorded: dict[str, Any]) -> AnyTransaction:
    """The transaction of an execution, with the recorded version, time and matcher's proofs."""
    taker, maker = executed.taker.order, executed.maker.order
    buys = taker.side is Side.BUY
    return codec.build(
        TYPE,
        Exchange(
            order1=taker if buys else maker,
            order2=maker if buys else taker,
            amount=executed.amount,
            price=executed.price,
            buy_matcher_fee=executed.buy_fee,
            sell_matcher_fee=executed.sell_fee,
        ),
        version=recorded["version"],
        chain_id=CHAIN_ID,
        sender_public_key=taker.matcher_public_key,
        fee=recorded["fee"],
        timestamp=recorded["timestamp"],
        proofs=tuple(map(base58.decode, recorded["proofs"])),
    )


def ledger_state(placed: list[Order]) -> MemoryState:
    """Everybody is rich."""
    state = MemoryState()
    matcher = from_public_key(placed[0].matcher_public_key, CHAIN_ID)
    state.put(WAVES, matcher, RICH)
    for order in placed:
        address = from_public_key(order.sender_public_key, CHAIN_ID)
        state.put(WAVES, address, RICH)
        for asset in (order.amount_asset, order.price_asset, order.matcher_fee_asset):
            if asset is not None:
                issuer = order.matcher_public_key
                state.put(ASSETS, asset, AssetInfo(issuer, DECIMALS, False, asset, 1, 1))
                state.put(ASSET_BALANCES, (address, asset), RICH)
    return state


def test_recorded_exchanges(material: dict[str, Any]) -> None:
    """One book for the cases with the same version of transactions: makers last over several."""
    engines: dict[int, Engine] = {}
    count = 0
    for case in material["transactions"]:
        recorded = case["txs"]
        engine = engines.setdefault(recorded[0]["version"], Engine(MatchingSettings()))
        events = [
            event
            for order in map(read_order, case["orders"])
            for event in engine.apply(
                engine.last_offset + 1, recorded[0]["timestamp"], PlaceOrder(order)
            )
        ]
        executions = [event for event in events if isinstance(event, OrderExecuted)]
        for executed, expected in zip(executions, recorded, strict=True):
            transaction = exchange_of(executed, expected)
            assert base58.encode(transaction.id) == expected["id"]
            codec.validate(transaction)
            state = ledger_state([executed.taker.order, executed.maker.order])
            now = transaction.timestamp
            apply_transaction(transaction, state, context_at(HEIGHT, now, now - 1_000, RULES))
            count += 1
    assert count == 7
    report.ran("matcher-orders", count)
