"""What unconfirmed transactions take from accounts; and when orders expire."""

from __future__ import annotations

import pytest

from soliton.chain.orders import Side
from soliton.chain.transactions import codec
from soliton.chain.transactions.burn import TYPE as BURN
from soliton.chain.transactions.burn import Burn
from soliton.chain.transactions.exchange import TYPE as EXCHANGE
from soliton.chain.transactions.exchange import Exchange
from soliton.chain.transactions.invoke_script import TYPE as INVOKE
from soliton.chain.transactions.invoke_script import InvokeScript, Payment
from soliton.chain.transactions.lease import TYPE as LEASE
from soliton.chain.transactions.lease import Lease
from soliton.chain.transactions.mass_transfer import TYPE as MASS_TRANSFER
from soliton.chain.transactions.mass_transfer import MassTransfer, TransferItem
from soliton.chain.transactions.model import TransactionType
from soliton.chain.transactions.transfer import TYPE as TRANSFER
from soliton.chain.transactions.transfer import Transfer
from soliton.matcher.expirations import Expirations
from soliton.matcher.pending_outflows import outflows_of
from soliton.matching.model import limit_order
from tests.matcher.kit import ALICE, BOB, CHAIN_ID, COIN, MATCHER, USD, address_of, make_order

FEE = 500_000
GOLD = b"\3" * 32
TO = address_of(BOB)


def decimals(asset: bytes | None) -> int:
    return {USD: 2}.get(asset or b"", 8)


@pytest.mark.parametrize(
    ("kind", "version", "payload", "taken"),
    [
        (TRANSFER, 2, Transfer(TO, None, 7, b""), {None: FEE + 7}),
        (TRANSFER, 2, Transfer(TO, GOLD, 7, b""), {None: FEE, GOLD: 7}),
        (
            MASS_TRANSFER,
            1,
            MassTransfer(GOLD, (TransferItem(TO, 3), TransferItem(TO, 4)), b""),
            {None: FEE, GOLD: 7},
        ),
        (LEASE, 2, Lease(TO, 9), {None: FEE + 9}),
        (BURN, 2, Burn(GOLD, 5), {None: FEE, GOLD: 5}),
        (
            INVOKE,
            1,
            InvokeScript(TO, None, (Payment(1, None), Payment(2, GOLD))),
            {None: FEE + 1, GOLD: 2},
        ),
    ],
)
def test_what_a_sender_loses(
    kind: TransactionType, version: int, payload: object, taken: dict[bytes | None, int]
) -> None:
    transaction = codec.build(
        kind,
        payload,
        version=version,
        chain_id=CHAIN_ID,
        sender_public_key=ALICE.public_key,
        fee=FEE,
        timestamp=1,
    )
    assert outflows_of(transaction, decimals) == {address_of(ALICE): taken}


@pytest.mark.parametrize(("version", "price"), [(2, 250), (3, 250 * 10**6)])
def test_what_an_exchange_takes_from_everybody(version: int, price: int) -> None:
    buy = make_order(ALICE, Side.BUY, 4 * COIN, 250)
    sell = make_order(BOB, Side.SELL, 4 * COIN, 250)
    exchange = codec.build(
        EXCHANGE,
        Exchange(buy, sell, 3 * COIN, price, 30, 20),
        version=version,
        chain_id=CHAIN_ID,
        sender_public_key=MATCHER.public_key,
        fee=300_000,
        timestamp=buy.timestamp,
    )
    assert outflows_of(exchange, decimals) == {
        address_of(MATCHER): {None: 300_000},
        address_of(ALICE): {USD: 750, None: 30},
        address_of(BOB): {None: 3 * COIN + 20},
    }


def test_orders_are_due_by_time_unless_they_are_gone() -> None:
    orders = [
        limit_order(make_order(ALICE, Side.SELL, COIN, 250, timestamp=1_000, lifetime_ms=life))
        for life in (300, 100, 200, 400)
    ]
    expirations = Expirations()
    for order in orders:
        expirations.add(order)
    expirations.add(orders[0])
    expirations.remove(orders[2].id)
    assert expirations.take_due(1_099) == []
    assert expirations.take_due(1_300) == [orders[1], orders[0]]


def test_places_of_orders_that_are_gone_are_given_back() -> None:
    expirations = Expirations()
    for step in range(3_000):
        order = limit_order(make_order(ALICE, Side.SELL, COIN, 250 + step))
        expirations.add(order)
        expirations.remove(order.id)
    assert len(expirations._heap) <= 1_024
