"""Answers to questions about orders, fees and accounts, from what the service holds.

What lives here: putting answers together. What does not: keeping the answers' parts.
"""

from __future__ import annotations

from soliton.chain.addresses import Address
from soliton.chain.features import Feature
from soliton.chain.orders import Order
from soliton.chain.values import AssetId
from soliton.matcher.accounts import Account
from soliton.matcher.assets import ChainKnowledge
from soliton.matcher.exchanges import SCRIPT_FEE
from soliton.matcher.orders_db import OrdersDatabase
from soliton.matcher.records import AddressReport, OrderInfo, describe
from soliton.matching.engine import Engine
from soliton.matching.fees import DynamicFee, mode_of
from soliton.matching.minimum_fees import Offer, fee_assets, minimum_fee, script_fees
from soliton.matching.model import ActiveOrder
from soliton.matching.pairs import AssetPair
from soliton.matching.placement import PlacementSettings
from soliton.matching.rates import Rates

Fee = tuple[AssetId | None, int]
"""An asset and an amount of it."""

_VERSION_FEATURES = {
    1: None,
    2: Feature.SMART_ACCOUNT_TRADING,
    3: Feature.ORDER_V3,
    4: Feature.RIDE_V6,
}


def active_order(order_id: bytes, engine: Engine) -> ActiveOrder | None:
    """An order that rests in a book."""
    found = (book.get(order_id) for book in engine.books())
    return next((order for order in found if order is not None), None)


def order_info(order_id: bytes, engine: Engine, database: OrdersDatabase) -> OrderInfo | None:
    """An order, active or finalised."""
    active = active_order(order_id, engine)
    if active is not None:
        return describe(active, active.status)
    return database.order(order_id)


def history(
    owner: Address,
    pair: AssetPair | None,
    active: Account | None,
    database: OrdersDatabase,
    *,
    closed: bool,
) -> list[OrderInfo]:
    """Active limit orders of an account, then its finalised ones; each with the newest first."""
    resting = [] if active is None else list(active.balances.orders.values())
    shown = [
        describe(order, order.status)
        for order in resting
        if not order.is_market and (pair is None or order.pair == pair)
    ]
    finalized = database.history(owner, pair) if closed else []
    return [*sorted(shown, key=_newest_first), *sorted(finalized, key=_newest_first)]


def _newest_first(info: OrderInfo) -> tuple[int, bytes]:
    return -info.timestamp, info.id


def order_versions(
    placement: PlacementSettings, engine: Engine, chain: ChainKnowledge
) -> tuple[int, ...]:
    """The versions that are allowed, in force on the chain, and begun in the journal."""
    begun = engine.last_offset >= engine.settings.order_v4_start_offset
    return tuple(
        version
        for version in sorted(placement.allowed_versions)
        if _VERSION_FEATURES[version] is None
        or (_VERSION_FEATURES[version] in chain.features and (version != 4 or begun))
    )


def base_fee(engine: Engine, chain: ChainKnowledge) -> int:
    """The least fee of orders where fees are dynamic, in native coins."""
    fee = engine.settings.order_fee_at(engine.last_offset + 1)
    mode = mode_of(fee, AssetPair(None, None))
    least = mode.base_fee if isinstance(mode, DynamicFee) else 0
    return least + SCRIPT_FEE * chain.matcher_scripted


async def minimum_fees(
    pair: AssetPair, order: Order, engine: Engine, chain: ChainKnowledge, rates: Rates
) -> tuple[Fee, Fee | None]:
    """The usual fee of an order, and the one with discount where there is one. Raises
    ``MatcherError`` for a missing rate.
    """
    fee = engine.settings.order_fee_at(engine.last_offset + 1)
    found: list[Fee] = []
    choices = fee_assets(fee, pair, order.side)
    await chain.learn(choices)
    extra = script_fees(pair, chain.assets, chain.matcher_scripted)
    for asset_id in choices:
        offer = Offer(pair, order.side, order.amount, order.price, asset_id)
        found.append((asset_id, minimum_fee(offer, fee, chain.assets, rates, extra).fee))
    return found[0], found[1] if len(found) > 1 else None


def report(account: Account) -> AddressReport:
    """All about an account."""
    balances = account.balances
    return AddressReport(
        regular=dict(balances.regular),
        reserved=balances.reserved,
        tradable=balances.all_tradable(),
        unconfirmed=dict(balances.unconfirmed),
        leased_out=balances.leased_out or 0,
        not_created_transactions=len(balances.not_created),
        not_observed_transactions=len(balances.not_observed),
        placement_queue=(*account.placing, *(account.queued - account.placing)),
    )
