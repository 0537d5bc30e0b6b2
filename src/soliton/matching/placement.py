"""What validation of an order reads: the operator's settings, and the state at the moment.

What lives here: the records that ``validation`` reads. What does not: their names in a
configuration file (``soliton.matcher``), and settings that executions depend on (``rules``).

Source: wavesplatform/matcher
``dex/src/main/scala/com/wavesplatform/dex/settings/MatcherSettings.scala``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Protocol

import msgspec

from soliton.chain.addresses import Address
from soliton.matching import errors
from soliton.matching.arithmetic import decimal_text, denormalize_amount, denormalize_price
from soliton.matching.book import MarketStatus
from soliton.matching.errors import Amount, Balance, MatcherError
from soliton.matching.pairs import Asset, AssetPair, asset_text
from soliton.matching.rates import Rates
from soliton.matching.rules import MatchingSettings


class AssetDescription(Protocol):
    """An asset on the chain."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def decimals(self) -> int:
        """The number of decimal places of its amounts."""

    @property
    def scripted(self) -> bool:
        """Whether it has a script."""


Assets = Mapping[Asset, AssetDescription]
"""The existing assets that are needed; ``None`` (the native coin) must be among them."""


class Restrictions(msgspec.Struct, frozen=True):
    """Bounds and steps of amounts and prices of a pair, in whole assets."""

    step_amount: Decimal = Decimal("0.00000001")
    min_amount: Decimal = Decimal("0.00000001")
    max_amount: Decimal = Decimal(1_000_000_000)
    step_price: Decimal = Decimal("0.00000001")
    min_price: Decimal = Decimal("0.00000001")
    max_price: Decimal = Decimal(1_000_000)


class Deviations(msgspec.Struct, frozen=True):
    """The maximum deviations in percent: of a price from the market, to the order's profit or loss,
    and of a fee below the fee at the best counter order's price.
    """

    max_price_profit: Decimal = Decimal(1_000_000)
    max_price_loss: Decimal = Decimal(1_000_000)
    max_fee_deviation: Decimal = Decimal(1_000_000)


class PlacementSettings(msgspec.Struct, frozen=True):
    """What the operator allows. ``blacklisted_names`` match anywhere in an asset's name."""

    matcher_public_key: bytes
    price_assets: tuple[Asset, ...] = ()
    blacklisted_assets: frozenset[Asset] = frozenset()
    blacklisted_names: tuple[re.Pattern[str], ...] = ()
    blacklisted_addresses: frozenset[Address] = frozenset()
    white_list_only: bool = False
    allowed_pairs: frozenset[AssetPair] = frozenset()
    allowed_versions: tuple[int, ...] = (1, 2, 3, 4)
    deviations: Deviations | None = None
    restrictions: Mapping[AssetPair, Restrictions] = msgspec.field(default_factory=dict)
    max_active_orders: int = 400


class PlacementContext(msgspec.Struct, frozen=True):
    """The state when an order arrives.

    ``last_offset`` is the offset of the last applied command; ``now`` is in milliseconds;
    ``assets`` describes the order's assets; ``features`` are those active on the chain; ``market``
    is needed only if deviations are limited.
    """

    settings: PlacementSettings
    matching: MatchingSettings
    last_offset: int
    now: int
    assets: Assets
    rates: Rates
    features: frozenset[int]
    matcher_is_scripted: bool = False
    market: MarketStatus | None = None


def description(asset: Asset, assets: Assets) -> AssetDescription:
    """An asset's description; raises ``MatcherError`` if there is none."""
    known = assets.get(asset)
    if known is None:
        raise MatcherError(errors.ASSET_NOT_FOUND, assetId=asset_text(asset))
    return known


def amount_param(units: int, asset: Asset, assets: Assets) -> Amount:
    """An amount as a parameter of an error."""
    decimals = description(asset, assets).decimals
    return Amount(decimal_text(denormalize_amount(units, decimals)), asset_text(asset))


def balance_param(units: Mapping[Asset, int], assets: Assets) -> Balance:
    """Amounts as a parameter of an error, sorted by the text of the asset."""
    amounts = [amount_param(amount, asset, assets) for asset, amount in units.items()]
    return Balance(tuple(sorted(amounts, key=lambda amount: amount.asset)))


def price_param(price: int, pair: AssetPair, assets: Assets) -> str:
    """A price as a parameter of an error."""
    amount_decimals = description(pair.amount_asset, assets).decimals
    price_decimals = description(pair.price_asset, assets).decimals
    return decimal_text(denormalize_price(price, amount_decimals, price_decimals))
