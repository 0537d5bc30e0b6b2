"""Accounts that did not have the funds for their executions.

Whoever takes an order and moves the funds away before the exchange is mined costs the other side a
trade, at the price of one transaction. After each such default the account's orders are rejected
for a time, twice as long as after the one before.

What lives here: who of two traders lacks what an exchange spends, and the pause after it. What does
not: giving up the exchange (``broadcasting``).
"""

from __future__ import annotations

from typing import Final

import msgspec

from soliton.chain.addresses import Address, from_public_key
from soliton.chain.transactions.exchange import Exchange
from soliton.chain.transactions.model import AnyTransaction
from soliton.matcher.node_client import NodeClient
from soliton.matcher.pending_outflows import Decimals, outflows_of

MAX_PAUSE_MS: Final = 24 * 60 * 60 * 1_000
"""The longest time for which the orders of an account are rejected after a default."""
FORGET_MS: Final = 30 * 24 * 60 * 60 * 1_000
"""After so long without another one, defaults do not count any more."""


class Default(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """The defaults of an account: their number, the time (ms) of the last one, and the time until
    which its orders are rejected.
    """

    count: int
    last: int
    until: int


def after_another(known: Default | None, now: int, pause_ms: int) -> Default:
    """The record after one more default; the first pause is ``pause_ms``."""
    count = 1 if known is None or now - known.last > FORGET_MS else known.count + 1
    pause = min(MAX_PAUSE_MS, pause_ms << min(count - 1, MAX_PAUSE_MS.bit_length()))
    return Default(count, now, now + pause)


async def without_funds(
    transaction: AnyTransaction, node: NodeClient, decimals: Decimals
) -> list[Address]:
    """The traders of an exchange whose balances on the chain do not suffice for it; raises
    ``NodeUnavailable``.
    """
    exchange = transaction.payload
    assert isinstance(exchange, Exchange), "only exchanges are settled"
    buy, sell = exchange.buy_order, exchange.sell_order
    buyer, seller = (
        from_public_key(order.sender_public_key, transaction.chain_id) for order in (buy, sell)
    )
    if buyer == seller:
        return []
    spent = outflows_of(transaction, decimals)
    lacking = []
    for trader, asset, income in (
        (buyer, buy.amount_asset, exchange.amount),
        # The buyer's fee may be in it: in doubt, nobody is blamed.
        (seller, buy.price_asset, spent.get(buyer, {}).get(buy.price_asset, 0)),
    ):
        needed = dict(spent.get(trader, {}))
        if asset in needed:
            needed[asset] -= income
        state = await node.account(trader, tuple(needed))
        owned = dict(state.balances)
        if None in owned:
            owned[None] -= state.leased_out
        if any(owned.get(each, 0) < amount for each, amount in needed.items()):
            lacking.append(trader)
    return lacking
