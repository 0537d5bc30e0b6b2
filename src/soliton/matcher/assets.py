"""A cache of the chain's assets and active features.

What lives here: descriptions of assets, active features, whether the matcher's own account has a
script. What does not: balances (``accounts``).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from soliton.chain.addresses import Address
from soliton.chain.features import Feature
from soliton.chain.orders import Order
from soliton.chain.values import AssetId
from soliton.matcher.exchanges import NATIVE, ExchangeContext
from soliton.matcher.node_client import Asset, NodeClient, NodeUpdate
from soliton.matching import errors
from soliton.matching.errors import MatcherError
from soliton.matching.pairs import asset_text
from soliton.matching.rates import NATIVE_DECIMALS

_FEATURES = (
    Feature.SMART_ACCOUNT_TRADING,
    Feature.SMART_ASSETS,
    Feature.ORDER_V3,
    Feature.BLOCK_V5,
    Feature.RIDE_V6,
    Feature.CONSENSUS_IMPROVEMENTS,
    Feature.LIGHT_NODE,
)
_MAX_CONTEXTS = 1_024
"""The maximum number of cached combinations of assets."""


class ChainKnowledge:
    """Use from one event loop. Coroutines raise ``NodeUnavailable``."""

    def __init__(self, node: NodeClient, own_address: Address) -> None:
        self._node = node
        self._own_address = own_address
        self.assets: dict[AssetId | None, Asset] = {None: NATIVE}
        # Executions must be settled even while their asset is rolled back.
        self._described: dict[AssetId | None, Asset] = {None: NATIVE}
        self._doubtful: set[AssetId | None] = set()
        self._contexts: dict[tuple[AssetId | None, ...], ExchangeContext] = {}
        self.features: frozenset[int] = frozenset()
        self.matcher_scripted = False
        self.height = 0

    async def asset(self, asset_id: AssetId | None) -> Asset:
        """An asset; raises ``MatcherError`` if it does not exist."""
        await self.learn((asset_id,))
        found = self.assets.get(asset_id)
        if found is None:
            raise MatcherError(errors.ASSET_NOT_FOUND, assetId=asset_text(asset_id))
        return found

    def knows(self, order: Order) -> bool:
        """Whether all assets of an order are cached and up to date."""
        known = self.assets
        assets = order.amount_asset, order.price_asset, order.matcher_fee_asset
        return (
            assets[0] in known
            and assets[1] in known
            and assets[2] in known
            and not (self._doubtful and self._doubtful.intersection(assets))
        )

    def scripted(self, order: Order) -> Collection[AssetId]:
        """The scripted assets of an order; all of its assets must be known."""
        known = self.assets
        assets = order.amount_asset, order.price_asset, order.matcher_fee_asset
        return {each for each in assets if each is not None and known[each].scripted}

    async def learn(self, assets: Iterable[AssetId | None]) -> None:
        """Load these assets into the cache, if they exist."""
        for asset_id in assets:
            doubtful = asset_id in self._doubtful
            if asset_id is None or (asset_id in self.assets and not doubtful):
                continue
            found = await self._node.asset(asset_id)
            self._doubtful.discard(asset_id)
            if found is not None:
                self.assets[asset_id] = self._described[asset_id] = found
                self._contexts.clear()
            else:
                self.assets.pop(asset_id, None)

    def decimals(self, asset_id: AssetId | None) -> int:
        """The decimals of a known asset, 8 for others."""
        found = self._described.get(asset_id)
        return NATIVE_DECIMALS if found is None else found.decimals

    async def refresh(self) -> None:
        """Reload what changes with the height: features, and the matcher's script."""
        active = [each for each in _FEATURES if await self._node.feature_active(each)]
        scripted = await self._node.has_script(self._own_address)
        self.features, self.matcher_scripted = frozenset(active), scripted
        self._contexts.clear()
        self.height = (await self._node.status()).height

    async def follow(self, update: NodeUpdate) -> None:
        """Process an update of the node."""
        if update.rolled_back_to is not None:
            # Assets may be gone, or have an earlier name or script: the next order reloads them.
            self._doubtful = {each for each in self.assets if each is not None}
        moved = update.status.height != self.height
        changed = update.changed
        if moved or changed is None or self._own_address in changed:
            await self.refresh()

    def exchange_context(self, first: Order, second: Order) -> ExchangeContext:
        """The context of an exchange of two orders; their assets must be known."""
        fee_assets = first.matcher_fee_asset, second.matcher_fee_asset
        key = (first.amount_asset, first.price_asset, *fee_assets)
        known = self._contexts.get(key)
        if known is not None:
            return known
        if len(self._contexts) >= _MAX_CONTEXTS:
            self._contexts.clear()
        found = self._contexts[key] = ExchangeContext(
            amount_asset=self._described[first.amount_asset],
            price_asset=self._described[first.price_asset],
            fee_assets=tuple(self._described[each] for each in set(fee_assets)),
            matcher_scripted=self.matcher_scripted,
            order_v2_active=Feature.SMART_ACCOUNT_TRADING in self.features,
            protobuf_active=Feature.BLOCK_V5 in self.features,
        )
        return found
