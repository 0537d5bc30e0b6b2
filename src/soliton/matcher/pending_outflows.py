"""The amounts that an unconfirmed transaction spends, as far as the transaction alone tells.

Only outflows count, not inflows: the transaction may be dropped. Outflows caused by dApp scripts
are unknown before the script runs; the payments of an invocation are included.

What lives here: amounts by account. What does not: subtracting them from balances (``accounts``).

Source: wavesplatform/matcher
``dex/src/main/scala/com/wavesplatform/dex/grpc/integration/clients/combined`` and
``docs/glossary.md`` (pessimistic portfolio).
"""

from __future__ import annotations

from collections.abc import Callable

from soliton.chain.addresses import Address, from_public_key
from soliton.chain.orders import PRICE_CONSTANT
from soliton.chain.transactions.exchange import Exchange
from soliton.chain.transactions.model import AnyTransaction
from soliton.chain.transactions.table import type_by_id
from soliton.chain.values import AssetId

Outflows = dict[Address, dict[AssetId | None, int]]
"""Positive amounts by account and asset."""
Decimals = Callable[[AssetId | None], int]

_FIXED_PRICE_VERSION = 3


def outflows_of(transaction: AnyTransaction, decimals: Decimals) -> Outflows:
    """What a transaction spends; ``decimals`` returns an asset's decimals (8 if unknown)."""
    spent: Outflows = {}
    sender = from_public_key(transaction.sender_public_key, transaction.chain_id)
    _add(spent, sender, transaction.fee_asset_id, transaction.fee)
    payload = transaction.payload
    for asset_id, amount in type_by_id(transaction.type_id).spends(payload):
        _add(spent, sender, asset_id, amount)
    if isinstance(payload, Exchange):
        _exchange(spent, transaction, payload, decimals)
    return spent


def _exchange(
    spent: Outflows, transaction: AnyTransaction, exchange: Exchange, decimals: Decimals
) -> None:
    buy, sell = exchange.buy_order, exchange.sell_order
    volume = exchange.amount * exchange.price // PRICE_CONSTANT
    if transaction.version >= _FIXED_PRICE_VERSION:
        shift = decimals(buy.price_asset) - decimals(buy.amount_asset)
        scaled = exchange.amount * exchange.price * 10 ** max(shift, 0)
        volume = scaled // (PRICE_CONSTANT * 10 ** max(-shift, 0))
    buyer = from_public_key(buy.sender_public_key, transaction.chain_id)
    seller = from_public_key(sell.sender_public_key, transaction.chain_id)
    _add(spent, buyer, buy.price_asset, volume)
    _add(spent, buyer, buy.matcher_fee_asset, exchange.buy_matcher_fee)
    _add(spent, seller, sell.amount_asset, exchange.amount)
    _add(spent, seller, sell.matcher_fee_asset, exchange.sell_matcher_fee)


def _add(spent: Outflows, address: Address, asset_id: AssetId | None, amount: int) -> None:
    if amount > 0:
        amounts = spent.setdefault(address, {})
        amounts[asset_id] = amounts.get(asset_id, 0) + amount
