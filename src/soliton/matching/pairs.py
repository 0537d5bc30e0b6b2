"""Pairs of assets, and which of the two is the price asset.

What lives here: the value, its text forms and the ordering rule. What does not: which pairs may be
traded (``validation``).

Source: wavesplatform/matcher
``dex/src/main/scala/com/wavesplatform/dex/model/AssetPairBuilder.scala`` and
``waves-integration/src/main/scala/com/wavesplatform/dex/domain/asset/AssetPair.scala``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from soliton.chain.errors import FormatError
from soliton.chain.layouts import DIGEST_LENGTH, take
from soliton.chain.orders import Order, Side
from soliton.chain.values import AssetId
from soliton.crypto import base58
from soliton.crypto.errors import Base58Error

NATIVE_TEXT: Final = "WAVES"
MAX_ASSET_CHARS: Final = 44
"""Base58 of 32 bytes is never longer."""

Asset = AssetId | None
"""``None`` is the native coin."""


class AssetPair(msgspec.Struct, frozen=True, gc=False):
    """Amounts are in ``amount_asset``, prices in ``price_asset`` per unit of it."""

    amount_asset: Asset
    price_asset: Asset

    @property
    def key(self) -> str:
        """``AMOUNT-PRICE``, as in the URLs of market data."""
        return f"{asset_text(self.amount_asset)}-{asset_text(self.price_asset)}"

    def reversed(self) -> AssetPair:
        """The pair with its assets swapped."""
        return AssetPair(self.price_asset, self.amount_asset)

    def to_json(self) -> dict[str, str]:
        """Both assets as text."""
        return {
            "amountAsset": asset_text(self.amount_asset),
            "priceAsset": asset_text(self.price_asset),
        }


def pair_of(order: Order) -> AssetPair:
    """The pair an order trades."""
    return AssetPair(order.amount_asset, order.price_asset)


def spent_asset(pair: AssetPair, side: Side) -> Asset:
    """The asset that an order of a side spends."""
    return pair.price_asset if side is Side.BUY else pair.amount_asset


def received_asset(pair: AssetPair, side: Side) -> Asset:
    """The asset that an order of a side receives."""
    return pair.amount_asset if side is Side.BUY else pair.price_asset


def asset_text(asset: Asset) -> str:
    """``WAVES`` or base58."""
    return NATIVE_TEXT if asset is None else base58.encode(asset)


def parse_asset(text: str) -> Asset:
    """The inverse of ``asset_text``, for bytes of any length; raises ``FormatError``."""
    if text == NATIVE_TEXT:
        return None
    if not 0 < len(text) <= MAX_ASSET_CHARS:
        raise FormatError(f"an asset is {NATIVE_TEXT} or at most {MAX_ASSET_CHARS} characters")
    try:
        return base58.decode(text)
    except Base58Error as error:
        raise FormatError(str(error)) from error


def is_correctly_ordered(pair: AssetPair, price_assets: Sequence[Asset]) -> bool:
    """Whether the pair has the right price asset.

    A listed asset is the price asset, the earlier one if both are listed. Of two assets that are
    not listed it is the one with the lesser bytes, the native coin being the least.
    """
    price = _position(pair.price_asset, price_assets)
    amount = _position(pair.amount_asset, price_assets)
    if price is not None and amount is not None:
        return price < amount
    if price is None and amount is None:
        return (pair.price_asset or b"") < (pair.amount_asset or b"")
    return price is not None


def _position(asset: Asset, listed: Sequence[Asset]) -> int | None:
    return listed.index(asset) if asset in listed else None


def asset_to_bytes(asset: Asset) -> bytes:
    """``0``, or ``1`` and the 32 bytes of the id."""
    return b"\0" if asset is None else b"\1" + asset


def pair_to_bytes(pair: AssetPair) -> bytes:
    """Amount asset, then price asset."""
    return asset_to_bytes(pair.amount_asset) + asset_to_bytes(pair.price_asset)


def read_asset(data: bytes, offset: int) -> tuple[Asset, int]:
    """Inverse of ``asset_to_bytes``, and the offset after it; raises ``FormatError``."""
    match take(data, offset, 1)[0]:
        case 0:
            return None, offset + 1
        case 1:
            return take(data, offset + 1, DIGEST_LENGTH), offset + 1 + DIGEST_LENGTH
        case mark:
            raise FormatError(f"an asset begins with 0 or 1, not {mark}")


def pair_end(data: bytes, offset: int) -> int:
    """The offset after a pair that ``pair_to_bytes`` wrote."""
    for _ in range(2):
        offset += 1 + DIGEST_LENGTH * data[offset]
    return offset


def read_pair(data: bytes, offset: int) -> tuple[AssetPair, int]:
    """Inverse of ``pair_to_bytes``, and the offset after it; raises ``FormatError``."""
    amount_asset, offset = read_asset(data, offset)
    price_asset, offset = read_asset(data, offset)
    return AssetPair(amount_asset, price_asset), offset
