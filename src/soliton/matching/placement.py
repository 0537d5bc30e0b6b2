"""What decides whether an order is taken: the operator's settings, and what is known at the moment.

What lives here: the records that ``validation`` reads. What does not: their names in a
configuration file (``soliton.matcher``), and rules that executions depend on (``rules``).

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
    """An asset that exists on the chain."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def decimals(self) -> int:
        """How many digits of its amounts stand behind the point."""

    @property
    def scripted(self) -> bool:
        """Whether a script decides on its transfers."""


Assets = Mapping[Asset, AssetDescription]
"""The assets that exist, as far as they are needed; ``None`` has to be among them."""


class Restrictions(msgspec.Struct, frozen=True):
    """Bounds and steps of amounts and prices of a pair, in whole assets."""

    step_amount: Decimal = Decimal("0.00000001")
    min_amount: Decimal = Decimal("0.00000001")
    max_amount: Decimal = Decimal(1_000_000_000)
    step_price: Decimal = Decimal("0.00000001")
    min_price: Decimal = Decimal("0.00000001")
    max_price: Decimal = Decimal(1_000_000)


class Deviations(msgspec.Struct, frozen=True):
    """How far, in percent, a price may be from the market to the order's profit or loss, and a fee
    below what the best counter order would make it.
    """

    max_price_profit: Decimal = Decimal(1_000_000)
    max_price_loss: Decimal = Decimal(1_000_000)
    max_fee_deviation: Decimal = Decimal(1_000_000)


class PlacementSettings(msgspec.Struct, frozen=True):
    """What the operator allows. ``blacklisted_names`` are found anywhere in an asset's name."""

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
    """What is known when an order arrives.

    ``last_offset`` is that of the last command that was applied; ``now`` is in milliseconds;
    ``assets`` describes those of the order; ``features`` are those in force on the chain;
    ``market`` is needed only where there are deviations.
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
    """An asset's description; raises ``MatcherError`` where there is none."""
    known = assets.get(asset)
    if known is None:
        raise MatcherError(errors.ASSET_NOT_FOUND, assetId=asset_text(asset))
    return known


def amount_param(units: int, asset: Asset, assets: Assets) -> Amount:
    """An amount as errors show it."""
    decimals = description(asset, assets).decimals
    return Amount(decimal_text(denormalize_amount(units, decimals)), asset_text(asset))


def balance_param(units: Mapping[Asset, int], assets: Assets) -> Balance:
    """Amounts as errors show them: by the text of their assets."""
    amounts = [amount_param(amount, asset, assets) for asset, amount in units.items()]
    return Balance(tuple(sorted(amounts, key=lambda amount: amount.asset)))


def price_param(price: int, pair: AssetPair, assets: Assets) -> str:
    """A price as errors show it."""
    amount_decimals = description(pair.amount_asset, assets).decimals
    price_decimals = description(pair.price_asset, assets).decimals
    return decimal_text(denormalize_price(price, amount_decimals, price_decimals))
