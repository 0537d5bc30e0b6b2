"""Queries about orders, pairs, fees and accounts.

What lives here: queries that combine several parts of the service. What does not: queries that one
part answers alone (``orders_db``, ``settlement``, ``quarantine``, the engine).
"""

from __future__ import annotations

from soliton.chain.addresses import Address
from soliton.chain.orders import Side
from soliton.chain.values import AssetId
from soliton.matcher.accounts import Account
from soliton.matcher.errors import NodeUnavailable
from soliton.matcher.node_client import Asset, Balances
from soliton.matcher.records import AddressReport, OrderInfo, describe
from soliton.matcher.replica import Replica
from soliton.matching import errors
from soliton.matching.errors import MatcherError
from soliton.matching.minimum_fees import (
    SCRIPT_FEE,
    Offer,
    discount_of,
    fee_assets,
    minimum_fee,
    script_fees,
)
from soliton.matching.pairs import AssetPair
from soliton.matching.placement import PlacementSettings
from soliton.matching.rates import Rates
from soliton.matching.validation import VERSION_FEATURES, check_asset, check_pair, is_allowed

Fee = tuple[AssetId | None, int]
"""An asset and an amount of it."""


class Queries:
    """Use from one event loop. Client errors raise ``MatcherError``."""

    def __init__(self, replica: Replica, placement: PlacementSettings, rates: Rates) -> None:
        self._session = replica.session
        self._effects = replica.effects
        self._engine = replica.engine
        self._chain = replica.chain
        self._database = replica.database
        self._placement = placement
        self._rates = rates

    # --- orders -----------------------------------------------------------------------------------

    def order_info(self, order_id: bytes) -> OrderInfo | None:
        """An order, active or finalised."""
        active = self._engine.order(order_id)
        return self._database.order(order_id) if active is None else describe(active, active.status)

    def history(
        self, owner: Address, pair: AssetPair | None, *, active: bool, closed: bool
    ) -> list[OrderInfo]:
        """The orders of an account: the active ones (limit orders only), then the last finalised
        ones, each newest first.
        """
        accounts = self._session.accounts
        account = None if accounts is None or not active else accounts.peek(owner)
        shown = [
            describe(order, order.status)
            for order in (() if account is None else account.balances.orders.values())
            if not order.is_market and (pair is None or order.pair == pair)
        ]
        finalized = self._database.history(owner, pair) if closed else []
        return [*sorted(shown, key=_newest_first), *sorted(finalized, key=_newest_first)]

    # --- pairs and fees ---------------------------------------------------------------------------

    def pairs(self) -> dict[AssetPair, int]:
        """All books, with their creation time in milliseconds."""
        return dict(self._effects.books)

    def listed_pairs(self) -> dict[AssetPair, int]:
        """As ``pairs``, without those that the settings have ceased to allow."""
        books = self._effects.books.items()
        return {pair: at for pair, at in books if is_allowed(pair, self._placement)}

    async def check_pair(self, pair: AssetPair) -> None:
        """Raise ``MatcherError`` if a pair is not traded here, or lacks an asset on the chain."""
        check_pair(pair, self._placement, None)
        for asset_id in (pair.price_asset, pair.amount_asset):
            await self.asset(asset_id)
        check_pair(pair, self._placement, self._chain.assets)

    async def check_asset(self, asset_id: AssetId | None) -> None:
        """Raise ``MatcherError`` if an asset does not exist or is blacklisted."""
        await self.asset(asset_id)
        check_asset(asset_id, self._placement, self._chain.assets)

    async def asset(self, asset_id: AssetId | None) -> Asset:
        """An asset; raises ``MatcherError`` if none has this id."""
        try:
            return await self._chain.asset(asset_id)
        except NodeUnavailable as error:
            raise MatcherError(errors.WAVES_NODE_CONNECTION_BROKEN) from error

    def order_versions(self) -> tuple[int, ...]:
        """The order versions allowed by the settings, active on the chain, and started in the
        journal.
        """
        v4_started = self._engine.last_offset >= self._engine.settings.order_v4_start_offset
        return tuple(
            version
            for version in sorted(self._placement.allowed_versions)
            if version not in VERSION_FEATURES
            or (VERSION_FEATURES[version] in self._chain.features and (version != 4 or v4_started))
        )

    def account_fee(self) -> int:
        """What the script of the matcher's account adds to dynamic fees."""
        return SCRIPT_FEE * self._chain.matcher_scripted

    async def minimum_fee(
        self, pair: AssetPair, side: Side, amount: int, price: int
    ) -> tuple[Fee | None, Fee | None]:
        """The usual minimum fee of an order, and the discounted one. Only the latter exists if the
        usual fee asset is the discounted one. Raises ``MatcherError``, also for a missing rate.
        """
        for asset_id in (pair.amount_asset, pair.price_asset):
            await self.asset(asset_id)
        chain = self._chain
        fee = self._engine.settings.order_fee_at(self._engine.last_offset + 1)
        choices, discount = fee_assets(fee, pair, side), discount_of(fee)
        await chain.learn(choices)
        extra = script_fees(pair, chain.assets, chain.matcher_scripted)
        usual: Fee | None = None
        discounted: Fee | None = None
        for asset_id in choices:
            offer = Offer(pair, side, amount, price, asset_id)
            least = asset_id, minimum_fee(offer, fee, chain.assets, self._rates, extra).fee
            if discount is not None and discount.asset == asset_id:
                discounted = least
            else:
                usual = least
        return usual, discounted

    # --- accounts ---------------------------------------------------------------------------------

    async def tradable(self, owner: Address, pair: AssetPair) -> Balances:
        """What new orders of an account can offer in a pair; positive amounts only."""
        assets = (pair.amount_asset, pair.price_asset)
        account = await self._loaded(owner, assets)
        found = {each: account.balances.tradable(each) for each in assets}
        return {asset_id: amount for asset_id, amount in found.items() if amount > 0}

    def reserved(self, owner: Address) -> Balances:
        """The amounts reserved for the orders of an account."""
        account = self._session.require_accounts().peek(owner)
        return {} if account is None else account.balances.reserved

    async def report(self, owner: Address) -> AddressReport:
        """The whole state of an account."""
        account = await self._loaded(owner, None)
        balances = account.balances
        return AddressReport(
            regular=dict(balances.regular),
            reserved=balances.reserved,
            tradable=balances.all_tradable(),
            unconfirmed=dict(balances.unconfirmed),
            leased_out=balances.leased_out or 0,
            not_observed_transactions=balances.not_observed,
            placement_queue=(*account.placing, *(account.queued - account.placing)),
        )

    async def _loaded(self, owner: Address, assets: tuple[AssetId | None, ...] | None) -> Account:
        accounts = self._session.require_accounts()
        account = accounts.get(owner)
        try:
            await accounts.ensure(account, assets)
        except NodeUnavailable as error:
            raise MatcherError(errors.WAVES_NODE_CONNECTION_BROKEN) from error
        return account


def _newest_first(info: OrderInfo) -> tuple[int, bytes]:
    return -info.timestamp, info.id
