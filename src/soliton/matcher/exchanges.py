"""The exchange transaction that settles an execution.

The same execution gives the same transaction id with the same settings and the same state of the
chain. Where these may differ, after a crash or on another matcher of the same account, the
settlement takes care that only one is sent.

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
"""The minimum fee of an exchange transaction, in units of the native coin."""
NATIVE: Final = Asset("WAVES", 8, scripted=False)

_FIXED_PRICE_VERSION: Final = 3
_PARAMETER_ORDER_VERSION: Final = 3
_PARAMETERS: Final = 2


class ExchangeContext(msgspec.Struct, frozen=True):
    """What a transaction depends on besides the execution: the assets of both orders and of their
    fees, and the state of the chain.
    """

    amount_asset: Asset
    price_asset: Asset
    fee_assets: tuple[Asset, ...]
    matcher_scripted: bool = False
    order_v2_active: bool = True
    protobuf_active: bool = True


def exchange_version(matching: MatchingSettings, offset: int, context: ExchangeContext) -> int:
    """The version of a command's transactions: by the settings, if active on the chain."""
    if not context.order_v2_active:
        return 1
    version = matching.exchange_version_at(offset)
    return version if context.protobuf_active else min(version, 2)


def transaction_fee(context: ExchangeContext, base_fee: int = BASE_FEE) -> int:
    """The fee that the matcher pays, in units of the native coin."""
    scripts = (
        context.matcher_scripted + context.amount_asset.scripted + context.price_asset.scripted
    )
    scripts += sum(asset.scripted for asset in context.fee_assets)
    return base_fee + scripts * SCRIPT_FEE


def transaction_price(price: int, version: int, context: ExchangeContext) -> int:
    """A normalised price in the form of a transaction of this version."""
    if version < _FIXED_PRICE_VERSION:
        return price
    return fixed_price(price, context.amount_asset.decimals, context.price_asset.decimals)


def make_exchange(
    executed: OrderExecuted,
    matching: MatchingSettings,
    context: ExchangeContext,
    sender_public_key: bytes,
    base_fee: int = BASE_FEE,
) -> AnyTransaction:
    """The unsigned transaction of an execution.

    Raises a ``ChainError`` if no chain would accept it, for example if a price exceeds 64 bits.
    """
    version = exchange_version(matching, executed.offset, context)
    price = transaction_price(executed.price, version, context)
    if not 0 < price <= MAX_AMOUNT:
        raise ValueRuleError(f"a price of {price} is in no exchange transaction")
    buy, sell = (
        with_parameters(active.order, matching, executed.offset, executed.amount, executed.price)
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
        fee=transaction_fee(context, base_fee),
        timestamp=executed.timestamp,
    )


def with_parameters(
    order: Order, matching: MatchingSettings, offset: int, amount: int, price: int
) -> Order:
    """An order of a listed account passes the executed amount and price to the account's script.
    The price has the decimals of the pair, whatever those of the transaction are.
    """
    if order.version < _PARAMETER_ORDER_VERSION or not matching.passes_parameters_at(
        offset, order.sender_public_key
    ):
        return order
    more = tuple(number.to_bytes(8, "big") for number in (amount, price))
    return msgspec.structs.replace(order, proofs=order.proofs + more)


def without_parameters(order: Order, matching: MatchingSettings, offset: int) -> Order:
    """The order as it was placed: the inverse of ``with_parameters``."""
    if order.version < _PARAMETER_ORDER_VERSION or not matching.passes_parameters_at(
        offset, order.sender_public_key
    ):
        return order
    return msgspec.structs.replace(order, proofs=order.proofs[:-_PARAMETERS])
