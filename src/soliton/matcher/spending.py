"""What an unconfirmed transaction takes from accounts, as far as it can be told without its chain.

Only what is taken counts, not what is given: a transaction may be dropped, and with it what it
would have brought.

What lives here: amounts by account. What does not: whose they are subtracted from (``accounts``).
What scripts of dApps do is not known before they ran; their payments are.

Source: wavesplatform/matcher
``dex/src/main/scala/com/wavesplatform/dex/grpc/integration/clients/combined`` and
``docs/glossary.md`` (pessimistic portfolio).
"""

from __future__ import annotations

from collections.abc import Callable

from soliton.chain.addresses import Address, from_public_key
from soliton.chain.orders import PRICE_CONSTANT
from soliton.chain.transactions.burn import Burn
from soliton.chain.transactions.ethereum import Ethereum, EthereumTransfer
from soliton.chain.transactions.exchange import Exchange
from soliton.chain.transactions.invoke_script import InvokeScript
from soliton.chain.transactions.lease import Lease
from soliton.chain.transactions.mass_transfer import MassTransfer
from soliton.chain.transactions.model import AnyTransaction
from soliton.chain.transactions.payment import Payment
from soliton.chain.transactions.transfer import Transfer
from soliton.chain.values import AssetId

Spending = dict[Address, dict[AssetId | None, int]]
"""Positive amounts that leave accounts, by asset."""
Decimals = Callable[[AssetId | None], int]

_FIXED_PRICE_VERSION = 3


def spending_of(transaction: AnyTransaction, decimals: Decimals) -> Spending:
    """What a transaction takes; ``decimals`` are those of an asset (8 where it is not known)."""
    spent: Spending = {}
    sender = from_public_key(transaction.sender_public_key, transaction.chain_id)
    _add(spent, sender, transaction.fee_asset_id, transaction.fee)
    match transaction.payload:
        case Transfer(asset_id=asset_id, amount=amount):
            _add(spent, sender, asset_id, amount)
        case MassTransfer(asset_id=asset_id, transfers=transfers):
            _add(spent, sender, asset_id, sum(item.amount for item in transfers))
        case Lease(amount=amount) | Payment(amount=amount):
            _add(spent, sender, None, amount)
        case Burn(asset_id=asset_id, quantity=quantity):
            _add(spent, sender, asset_id, quantity)
        case InvokeScript(payments=payments):
            for payment in payments:
                _add(spent, sender, payment.asset_id, payment.amount)
        case Ethereum(action=EthereumTransfer(token=None, amount=amount)):
            _add(spent, sender, None, amount)
        case Exchange() as exchange:
            _exchange(spent, transaction, exchange, decimals)
        case _:
            pass
    return spent


def _exchange(
    spent: Spending, transaction: AnyTransaction, exchange: Exchange, decimals: Decimals
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


def _add(spent: Spending, address: Address, asset_id: AssetId | None, amount: int) -> None:
    if amount > 0:
        amounts = spent.setdefault(address, {})
        amounts[asset_id] = amounts.get(asset_id, 0) + amount
