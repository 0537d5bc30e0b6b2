"""From an execution to the exchange transaction that settles it.

The same execution always gives the same transaction id, so that making it again after a crash, or
on another matcher with the same account, does no harm.

What lives here: the transaction and its fee. What does not: its signature (``signing``), and
sending it (``settlement``).

Source: wavesplatform/matcher
``dex/src/main/scala/com/wavesplatform/dex/model/ExchangeTransactionCreator.scala``.
"""

from __future__ import annotations

from typing import Final

import msgspec

from soliton.chain.errors import ValueRuleError
from soliton.chain.orders import MAX_AMOUNT, Order
from soliton.chain.transactions import codec
from soliton.chain.transactions.exchange import TYPE, Exchange
from soliton.chain.transactions.model import AnyTransaction
from soliton.matcher.node_client import Asset
from soliton.matching.arithmetic import fixed_price
from soliton.matching.events import OrderExecuted
from soliton.matching.minimum_fees import SCRIPT_FEE
from soliton.matching.rules import MatchingSettings

BASE_FEE: Final = 300_000
"""The least fee of an exchange transaction, in native coins."""
NATIVE: Final = Asset("WAVES", 8, scripted=False)

_FIXED_PRICE_VERSION: Final = 3
_PARAMETER_ORDER_VERSION: Final = 3


class Surroundings(msgspec.Struct, frozen=True):
    """What a transaction depends on besides the execution: the assets of both orders (with those of
    their fees), and what is so on the chain.
    """

    amount_asset: Asset
    price_asset: Asset
    fee_assets: tuple[Asset, ...]
    matcher_scripted: bool = False
    order_v2_active: bool = True
    protobuf_active: bool = True


def exchange_version(matching: MatchingSettings, offset: int, around: Surroundings) -> int:
    """The version of the transactions of a command: as the settings say, if the chain has it."""
    if not around.order_v2_active:
        return 1
    version = matching.exchange_version_at(offset)
    return version if around.protobuf_active else min(version, 2)


def transaction_fee(around: Surroundings, base_fee: int = BASE_FEE) -> int:
    """What the matcher pays, in native coins."""
    scripts = around.matcher_scripted + around.amount_asset.scripted + around.price_asset.scripted
    scripts += sum(asset.scripted for asset in around.fee_assets)
    return base_fee + scripts * SCRIPT_FEE


def transaction_price(price: int, version: int, around: Surroundings) -> int:
    """A price of the books as a transaction of this version holds it."""
    if version < _FIXED_PRICE_VERSION:
        return price
    return fixed_price(price, around.amount_asset.decimals, around.price_asset.decimals)


def make_exchange(
    executed: OrderExecuted,
    matching: MatchingSettings,
    around: Surroundings,
    sender_public_key: bytes,
    base_fee: int = BASE_FEE,
) -> AnyTransaction:
    """The transaction of an execution, not signed yet.

    Raises a ``ChainError`` for one that no chain would take, such as a price that leaves 64 bits.
    """
    version = exchange_version(matching, executed.offset, around)
    price = transaction_price(executed.price, version, around)
    if not 0 < price <= MAX_AMOUNT:
        raise ValueRuleError(f"a price of {price} is in no exchange transaction")
    buy, sell = (
        _with_parameters(active.order, matching, executed)
        for active in (executed.buyer, executed.seller)
    )
    return codec.build(
        TYPE,
        Exchange(
            order1=buy,
            order2=sell,
            amount=executed.amount,
            price=price,
            buy_matcher_fee=executed.buy_fee,
            sell_matcher_fee=executed.sell_fee,
        ),
        version=version,
        chain_id=buy.chain_id,
        sender_public_key=sender_public_key,
        fee=transaction_fee(around, base_fee),
        timestamp=executed.timestamp,
    )


def _with_parameters(order: Order, matching: MatchingSettings, executed: OrderExecuted) -> Order:
    """An order of a listed account tells that account's script what was executed, with the price in
    the decimals of the pair, whatever those of the transaction are.
    """
    if order.version < _PARAMETER_ORDER_VERSION or not matching.passes_parameters_at(
        executed.offset, order.sender_public_key
    ):
        return order
    more = tuple(number.to_bytes(8, "big") for number in (executed.amount, executed.price))
    return msgspec.structs.replace(order, proofs=order.proofs + more)
