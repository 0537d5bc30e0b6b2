"""Type 7, exchange: executes two orders, and pays the matcher's fees.

Source: wavesplatform/Waves
``node/src/main/scala/com/wavesplatform/state/diffs/ExchangeTransactionDiff.scala``,
``TransactionDiffer.scala`` (funds) and ``transaction/smart/Verifier.scala``.
"""

from __future__ import annotations

from typing import Final

from soliton.chain.addresses import address_text
from soliton.chain.features import Feature
from soliton.chain.orders import Order, PriceMode
from soliton.chain.transactions.exchange import Exchange
from soliton.chain.transactions.model import AnyTransaction
from soliton.chain.values import AssetId
from soliton.crypto import base58
from soliton.crypto.curve25519 import SignedMessage
from soliton.ledger import orders
from soliton.ledger.balances import check_portfolio
from soliton.ledger.context import Context, PoolRules, TypeRules
from soliton.ledger.errors import TransactionRejected
from soliton.ledger.portfolio import Portfolio
from soliton.ledger.rules import common
from soliton.ledger.rules_at import Rules
from soliton.ledger.scripts import account_script
from soliton.ledger.state import ASSET_SCRIPTS, ASSETS, Overlay, State

_FIXED_PRICE_VERSION: Final = 3
_FEE_ASSET_ORDER_VERSION: Final = 3
_PRICE_MODE_ORDER_VERSION: Final = 4


def _activation(transaction: AnyTransaction, context: Context) -> None:
    if transaction.version == 1:
        return
    common.require_feature(Feature.SMART_ACCOUNT_TRADING, context.rules)
    payload: Exchange = transaction.payload
    if any(order.version >= _FEE_ASSET_ORDER_VERSION for order in payload.orders):
        common.require_feature(Feature.ORDER_V3, context.rules)


# --- proofs and assets ----------------------------------------------------------------------------


def _proofs(transaction: AnyTransaction, state: State, context: Context, verify: bool) -> int:
    payload: Exchange = transaction.payload
    return sum(
        orders.check_proof(order, state, context, verify)
        for order in (payload.sell_order, payload.buy_order)
    )


def _signed(transaction: AnyTransaction) -> tuple[SignedMessage, ...] | None:
    payload: Exchange = transaction.payload
    found = []
    for order in payload.orders:
        # The sender follows from an Ethereum signature, so there is nothing to verify.
        if order.eip712_signature is None:
            if len(order.proofs) != 1:
                return None
            found.append(orders.signed_message(order))
    return tuple(found)


def _pair(payload: Exchange) -> tuple[AssetId, ...]:
    order = payload.order1
    pair = (order.price_asset, order.amount_asset)
    return tuple(asset for asset in pair if asset is not None)


def _assets(transaction: AnyTransaction, _state: State) -> tuple[AssetId, ...]:
    return _pair(transaction.payload)


def _fee_assets(transaction: AnyTransaction) -> tuple[AssetId, ...]:
    payload: Exchange = transaction.payload
    found = (payload.buy_order.matcher_fee_asset, payload.sell_order.matcher_fee_asset)
    return tuple(dict.fromkeys(asset for asset in found if asset is not None))


def _purpose(transaction: AnyTransaction, asset_id: AssetId) -> str:
    first: Order = transaction.payload.order1
    return "orderAmount" if first.amount_asset == asset_id else "orderPrice"


def _signers(transaction: AnyTransaction) -> tuple[bytes, ...]:
    return tuple(order.sender_public_key for order in transaction.payload.orders)


def _ends(transaction: AnyTransaction) -> int:
    payload: Exchange = transaction.payload
    return min(order.expiration for order in payload.orders)


# --- funds ----------------------------------------------------------------------------------------


def _funds(transaction: AnyTransaction, state: State, context: Context) -> None:
    payload: Exchange = transaction.payload
    rules = context.rules
    _check_matcher_fee(payload.buy_order, payload.buy_matcher_fee, state, rules)
    _check_matcher_fee(payload.sell_order, payload.sell_matcher_fee, state, rules)
    if rules.exchange_funds_checked:
        portfolio = Portfolio()
        _move(transaction, state, portfolio, rules)
        portfolio.add(common.sender_of(transaction), None, -transaction.fee)
        check_portfolio(portfolio, state, rules)


def _check_matcher_fee(order: Order, fee: int, state: State, rules: Rules) -> None:
    asset_id = order.matcher_fee_asset
    if asset_id is not None and state.get(ASSETS, asset_id) is None:
        raise TransactionRejected(
            f"Asset {base58.encode(asset_id)} should be issued before it can be traded"
        )
    portfolio = Portfolio()
    portfolio.add(orders.owner_of(order, rules), asset_id, -fee)
    check_portfolio(portfolio, state, rules)


# --- the exchange ---------------------------------------------------------------------------------


def _check_smart(payload: Exchange, state: State, rules: Rules) -> None:
    scripted = any(state.get(ASSET_SCRIPTS, asset) is not None for asset in _pair(payload))
    if scripted and not rules.has(Feature.SMART_ASSETS):
        raise TransactionRejected(
            "Smart assets can't participate in ExchangeTransactions (SmartAssetsFeature is "
            "disabled)"
        )
    if rules.has(Feature.SMART_ACCOUNT_TRADING):
        return
    for who, order in (("Buyer", payload.buy_order), ("Seller", payload.sell_order)):
        owner = orders.owner_of(order, rules)
        if account_script(owner, state) is not None:
            raise TransactionRejected(
                f"{who} {address_text(owner)} can't participate in ExchangeTransaction because it "
                "has assigned Script (SmartAccountsTrades is disabled)"
            )


def _check_volumes(payload: Exchange, state: State) -> None:
    buy, sell, amount = payload.buy_order, payload.sell_order, payload.amount
    orders.check_fill(buy, amount, state)
    orders.check_fill(sell, amount, state)
    orders.check_fee(buy, amount, payload.buy_matcher_fee, state)
    orders.check_fee(sell, amount, payload.sell_matcher_fee, state)


def _check_later_forms(payload: Exchange, rules: Rules) -> None:
    modes = any(
        order.version >= _PRICE_MODE_ORDER_VERSION and order.price_mode is not PriceMode.DEFAULT
        for order in payload.orders
    )
    if modes and not rules.has(Feature.RIDE_V6):
        raise TransactionRejected("Legacy price mode is only available after RideV6 activation")
    attached = any(order.attachment is not None for order in payload.orders)
    if attached and not rules.has(Feature.LIGHT_NODE):
        raise TransactionRejected("Attachment field for orders is not supported yet")


def _check_price(transaction: AnyTransaction, amount_decimals: int, price_decimals: int) -> None:
    payload: Exchange = transaction.payload
    buy, sell = payload.buy_order, payload.sell_order
    limits = [
        orders.fixed_price(order, amount_decimals, price_decimals)
        if transaction.version >= _FIXED_PRICE_VERSION
        else order.price
        for order in (buy, sell)
    ]
    price = _grouped(payload.price)
    if payload.price > limits[0]:
        raise TransactionRejected(
            f"exchange.price = {price} should be <= buyOrder.price = {_limit(buy, limits[0])}"
        )
    if payload.price < limits[1]:
        raise TransactionRejected(
            f"exchange.price = {price} should be >= sellOrder.price = {_limit(sell, limits[1])}"
        )


def _limit(order: Order, fixed: int) -> str:
    raw = "" if order.price == fixed else f" (assetDecimals price = {_grouped(order.price)})"
    return f"{_grouped(fixed)}{raw}"


def _grouped(number: int) -> str:
    return f"{number:_}"


def _move(transaction: AnyTransaction, state: State, portfolio: Portfolio, rules: Rules) -> None:
    """Add all movements except the transaction's fee; raise ``TransactionRejected``."""
    payload: Exchange = transaction.payload
    buy, sell = payload.buy_order, payload.sell_order
    if payload.buy_matcher_fee < 0 or payload.sell_matcher_fee < 0:
        raise TransactionRejected("Matcher fee can not be negative")
    if any(state.get(ASSETS, asset) is None for asset in _pair(payload)):
        raise TransactionRejected("Assets should be issued before they can be traded")
    amount_decimals = price_decimals = orders.NATIVE_DECIMALS
    if transaction.version >= _FIXED_PRICE_VERSION:
        amount_decimals = orders.decimals_of(buy.amount_asset, state)
        price_decimals = orders.decimals_of(buy.price_asset, state)
    _check_price(transaction, amount_decimals, price_decimals)
    cost = orders.price_amount(payload.amount, payload.price, amount_decimals, price_decimals)
    buyer, seller = orders.owner_of(buy, rules), orders.owner_of(sell, rules)
    matcher = common.sender_of(transaction)
    portfolio.add(buyer, buy.price_asset, -orders.spent_by_buyer(buy, cost))
    portfolio.add(seller, buy.price_asset, orders.received_by_seller(cost))
    portfolio.add(buyer, buy.amount_asset, payload.amount)
    portfolio.add(seller, buy.amount_asset, -payload.amount)
    for owner, order, fee in (
        (buyer, buy, payload.buy_matcher_fee),
        (seller, sell, payload.sell_matcher_fee),
    ):
        portfolio.add(owner, order.matcher_fee_asset, -fee)
        portfolio.add(matcher, order.matcher_fee_asset, fee)


def _apply(
    transaction: AnyTransaction, overlay: Overlay, portfolio: Portfolio, context: Context
) -> None:
    payload: Exchange = transaction.payload
    rules = context.rules
    orders.check_recovery(payload.order1, rules)
    orders.check_recovery(payload.order2, rules)
    _check_smart(payload, overlay, rules)
    _check_volumes(payload, overlay)
    _check_later_forms(payload, rules)
    _move(transaction, overlay, portfolio, rules)
    orders.fill(payload.buy_order, payload.amount, payload.buy_matcher_fee, overlay)
    orders.fill(payload.sell_order, payload.amount, payload.sell_matcher_fee, overlay)


RULES = TypeRules(
    _activation,
    common.base_fee,
    None,
    _apply,
    assets=_assets,
    fee_assets=_fee_assets,
    funds=_funds,
    proofs=_proofs,
    signed=_signed,
    may_fail=True,
    purpose=_purpose,
    pool=PoolRules(signers=_signers, ends=_ends, runs_scripts=False),
)
