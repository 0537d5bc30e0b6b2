"""Asset rates: the price of one native coin in each asset.

What lives here: the last two values of each rate, and conversions. What does not: where they are
stored and who may set them (``soliton.matcher``).

Sources: wavesplatform/matcher ``dex/src/main/scala/com/wavesplatform/dex/caches/RateCache.scala``
and ``model/MatcherModel.scala``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Final

from soliton.matching import errors
from soliton.matching.arithmetic import EXACT
from soliton.matching.errors import MatcherError
from soliton.matching.pairs import Asset, asset_text

NATIVE_RATE: Final = 1.0
NATIVE_DECIMALS: Final = 8


class Rates:
    """The rates in force. Each keeps its last two values, so that a client that has not seen a
    change yet may still offer a fee by the older one.
    """

    __slots__ = ("_last_two", "_on_change")

    def __init__(
        self,
        stored: Mapping[Asset, float] | None = None,
        on_change: Callable[[bytes, float | None], None] | None = None,
    ) -> None:
        """``on_change`` is called with each new rate, and with ``None`` for a deleted one."""
        self._last_two: dict[Asset, tuple[float, ...]] = {
            asset: (rate,) for asset, rate in (stored or {}).items()
        }
        self._on_change = on_change

    def put(self, asset: Asset, rate: float) -> float | None:
        """Set a rate and return the previous one. Raises ``MatcherError`` for the native coin, and
        for a rate that is not positive and finite.
        """
        asset = _not_native(asset)
        if not (rate > 0 and math.isfinite(rate)):
            raise MatcherError(errors.INVALID_ASSET_RATE)
        known = self._last_two.get(asset)
        self._last_two[asset] = (rate,) if known is None else (known[-1], rate)
        if self._on_change is not None:
            self._on_change(asset, rate)
        return None if known is None else known[-1]

    def delete(self, asset: Asset) -> float:
        """Delete a rate and return it. Raises ``MatcherError`` if there is none."""
        asset = _not_native(asset)
        known = self._last_two.pop(asset, None)
        if known is None:
            raise _not_found(asset)
        if self._on_change is not None:
            self._on_change(asset, None)
        return known[-1]

    def latest(self) -> dict[Asset, float]:
        """All rates, the native coin's first."""
        return {None: NATIVE_RATE, **{asset: known[-1] for asset, known in self._last_two.items()}}

    def least(self, asset: Asset) -> Decimal:
        """The lesser of the last two values, as a multiplier; raises ``MatcherError`` if none."""
        return _decimal(min(self._known(asset)))

    def most(self, asset: Asset) -> Decimal:
        """The greater of the last two values, as a divisor; raises ``MatcherError`` if none."""
        return _decimal(max(self._known(asset)))

    def _known(self, asset: Asset) -> tuple[float, ...]:
        if asset is None:
            return (NATIVE_RATE,)
        known = self._last_two.get(asset)
        if known is None:
            raise _not_found(asset)
        return known


def in_units(rate: Decimal, decimals: int) -> Decimal:
    """The rate in smallest units: of the native coin and of an asset with these decimals."""
    return rate.scaleb(decimals - NATIVE_DECIMALS, EXACT)


def _decimal(rate: float) -> Decimal:
    return Decimal(repr(rate))


def _not_native(asset: Asset) -> bytes:
    if asset is None:
        raise MatcherError(errors.WAVES_IMMUTABLE_RATE, assetId=asset_text(None))
    return asset


def _not_found(asset: Asset) -> MatcherError:
    return MatcherError(errors.RATE_NOT_FOUND, assetId=asset_text(asset))
