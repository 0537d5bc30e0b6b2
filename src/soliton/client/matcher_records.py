"""The responses of matchers, as typed records.

Amounts and prices are ``int`` where the matcher sends integers in the units of orders, and
``Decimal`` where it sends decimal text (streams and market data).

What lives here: the records of matchers. What does not: the requests that return them
(``matcher_routes``), and the messages of streams (``streams``).
"""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import msgspec

from soliton.client.records import Record


class AssetPair(Record, frozen=True):
    """Two assets as a matcher names them; the coin is ``WAVES``."""

    amount_asset: str = "WAVES"
    price_asset: str = "WAVES"


class AssetDecimals(Record, frozen=True):
    """The number of decimals of an asset."""

    decimals: int


class MatchingRules(Record, frozen=True):
    """The price step of a pair."""

    tick_size: Decimal


class Market(Record, frozen=True):
    """A pair with an order book."""

    amount_asset: str
    price_asset: str
    amount_asset_name: str
    price_asset_name: str
    amount_asset_info: AssetDecimals | None = None
    price_asset_info: AssetDecimals | None = None
    created: int = 0
    matching_rules: MatchingRules | None = None
    restrictions: dict[str, Any] | None = None


class Level(msgspec.Struct, frozen=True):
    """The total amount offered at a price."""

    price: int
    amount: int


class Book(msgspec.Struct, frozen=True):
    """An order book, the best levels first."""

    pair: AssetPair
    timestamp: int
    bids: tuple[Level, ...]
    asks: tuple[Level, ...]


class BookStatus(Record, frozen=True):
    """The best levels of a book, and its last trade."""

    bid: int | None = None
    bid_amount: int | None = None
    ask: int | None = None
    ask_amount: int | None = None
    last_price: int | None = None
    last_amount: int | None = None
    last_side: str | None = None


class OrderStatus(Record, frozen=True):
    """The status of an order: ``Accepted``, ``PartiallyFilled``, ``Filled``, ``Cancelled`` or
    ``NotFound``.
    """

    status: str
    filled_amount: int | None = None
    filled_fee: int | None = None


class OrderInfo(Record, frozen=True):
    """An order with its present state, as a matcher reports it."""

    id: str
    side: str = msgspec.field(name="type")
    amount: int
    price: int
    timestamp: int
    status: str
    asset_pair: AssetPair
    order_type: str = "limit"
    filled: int = 0
    fee: int = 0
    filled_fee: int = 0
    fee_asset: str | None = None
    version: int = 0
    avg_weighed_price: int | None = None
    total_executed_price_assets: int | None = None

    @property
    def amount_asset(self) -> str:
        """The asset that is bought or sold."""
        return self.asset_pair.amount_asset

    @property
    def price_asset(self) -> str:
        """The asset that the price is in."""
        return self.asset_pair.price_asset


class MatcherSettings(Record, frozen=True):
    """A matcher's requirements for orders. ``tickers`` are the ids of assets by the codes that the
    operator vouches for.
    """

    matcher_public_key: str
    matcher_version: str = ""
    price_assets: tuple[str, ...] = ()
    rates: dict[str, float] = msgspec.field(default_factory=dict)
    order_fee: dict[str, Any] = msgspec.field(default_factory=dict)
    order_versions: tuple[int, ...] = ()
    network_byte: int | None = None
    tickers: dict[str, str] = msgspec.field(default_factory=dict)


class Ticker(Record, frozen=True):
    """The last 24 hours of a pair. ``name`` consists of the codes that the matcher's operator
    vouches for, ``BTC/USD``; ``None`` if an asset has none.
    """

    symbol: str
    amount_asset: str
    price_asset: str
    timestamp: int
    name: str | None = None
    bid: Decimal | None = None
    bid_amount: Decimal | None = None
    ask: Decimal | None = None
    ask_amount: Decimal | None = None
    open: Decimal | None = None
    high: Decimal | None = None
    low: Decimal | None = None
    last: Decimal | None = None
    volume: Decimal | None = None
    price_volume: Decimal | None = None
    trades: int = 0


class Trade(Record, frozen=True):
    """An execution."""

    id: str
    timestamp: int
    price: Decimal
    amount: Decimal
    side: str
    taker_order_id: str | None = None
    maker_order_id: str | None = None
    transaction_id: str | None = None


class Candle(msgspec.Struct, frozen=True, array_like=True):
    """The trades of an interval; ``timestamp`` is its beginning."""

    timestamp: int
    open: Decimal
    high: Decimal
    low: Decimal
    close: Decimal
    volume: Decimal
    price_volume: Decimal
    trades: int


class MarketList(Record, frozen=True):
    """All markets of a matcher."""

    markets: list[Market]
