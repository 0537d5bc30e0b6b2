"""Pairs: the trades of the last 24 hours.

What lives here: finding them, their JSON. What does not: making them (``soliton.export``).

Source: wavesplatform/data-service ``src/services/pairs``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from soliton.data_service.assets import Assets, like_prefix
from soliton.data_service.candles import Market
from soliton.data_service.errors import NotFound, WrongValue
from soliton.data_service.formats import NATIVE, Format, listed, one, scaled
from soliton.data_service.parameters import Query, cursor
from soliton.data_service.pool import Pool, Row
from soliton.web.parameters import MAX_SHOWN_CHARS

MAX_LIMIT: Final = 1_000
_PRICE: Final = 8
_COIN: Final = 8

_BY_NAMES: Final = """
SELECT p.* FROM pairs p
JOIN unnest(%(amounts)s::varchar[], %(prices)s::varchar[]) AS w (amount, price)
    ON p.amount_asset_id = w.amount AND p.price_asset_id = w.price
WHERE p.matcher_address = %(matcher)s
"""
_SEARCH: Final = """
SELECT p.* FROM pairs p
WHERE p.matcher_address = %(matcher)s AND ({})
ORDER BY p.volume_waves DESC NULLS LAST, p.amount_asset_id, p.price_asset_id
LIMIT %(limit)s
"""
_FITS: Final = """
p.{column} IN (
    SELECT a.asset_id FROM assets a
    WHERE a.asset_id = %({name})s OR CASE WHEN %({name}_exact)s
        THEN lower(a.ticker) = lower(%({name})s) OR lower(a.asset_name) = lower(%({name})s)
        ELSE a.ticker ILIKE %({name}_prefix)s OR a.asset_name ILIKE %({name}_prefix)s END
)
"""


def read_pairs(texts: Sequence[str] | None) -> list[tuple[str, str]] | None:
    """Parse pairs of assets, written ``A/P``; ``None`` if one is invalid."""
    found = [tuple(each.split("/")) for each in texts or ()]
    if texts is None or any(len(each) != 2 or not all(each) for each in found):
        return None
    return [(amount, price) for amount, price in found]


def wrong_pairs(texts: Sequence[str] | None) -> WrongValue:
    """Return the error for pairs that ``read_pairs`` cannot read, or that are missing."""
    value = None if texts is None else ",".join(texts[:MAX_SHOWN_CHARS])
    allowed = "ids of two assets, amount/price; several with commas"
    return WrongValue("Pairs are incorrect or are not set", "pairs", value, allowed)


class Pairs:
    """The pairs of one database."""

    def __init__(self, pool: Pool, assets: Assets) -> None:
        self._pool = pool
        self._assets = assets

    async def one(self, market: Market, shape: Format) -> object:
        """Return a pair at a matcher."""
        found = await self._find([(market.amount, market.price)], market.matcher)
        if not found:
            raise NotFound("this pair has no trades")
        return (await self._shown(list(found.values()), shape))[0]

    async def _find(
        self, pairs: Sequence[tuple[str, str]], matcher: str
    ) -> dict[tuple[str, str], Row]:
        rows = await self._pool.fetch(
            _BY_NAMES,
            {
                "amounts": [amount for amount, _ in pairs],
                "prices": [price for _, price in pairs],
                "matcher": matcher,
            },
        )
        return {(row["amount_asset_id"], row["price_asset_id"]): row for row in rows}

    async def many(self, matcher: str, query: Query, shape: Format, *, by_names: bool) -> object:
        """Return pairs ``by_names``, or those that match a search."""
        names = query.listed("pairs")
        if by_names and names is not None:
            pairs = read_pairs(names)
            if pairs is None:
                raise wrong_pairs(names)
            found = await self._find(pairs, matcher)
            shown = dict(zip(found, await self._shown(list(found.values()), shape), strict=True))
            return listed([shown.get(pair) or one("pair", None) for pair in pairs])
        return await self._search(matcher, query, shape)

    async def _search(self, matcher: str, query: Query, shape: Format) -> object:
        limit = query.limit(MAX_LIMIT)
        exact = query.flags("match_exactly")
        texts = query.listed("search_by_assets")
        single = query.text("search_by_asset")
        values: Row = {"matcher": matcher, "limit": limit + 1}
        condition = "true"
        if texts is not None and len(texts) == 2:
            for name, text, at in (("first", texts[0], 0), ("second", texts[1], -1)):
                values |= _names(name, text, is_exact=bool(exact) and exact[at])
            first, second = ("amount_asset_id", "price_asset_id")
            condition = " OR ".join(
                f"({_FITS.format(column=one_, name='first')} AND "
                f"{_FITS.format(column=other, name='second')})"
                for one_, other in ((first, second), (second, first))
            )
        elif single is not None:
            values |= _names("first", single, is_exact=bool(exact) and exact[0])
            condition = " OR ".join(
                _FITS.format(column=column, name="first")
                for column in ("amount_asset_id", "price_asset_id")
            )
        rows = await self._pool.fetch(_SEARCH.format(condition), values)
        meta: Row = {"isLastPage": len(rows) <= limit}
        if rows[:limit]:
            last = rows[:limit][-1]
            meta["lastCursor"] = cursor(f"{last['amount_asset_id']}:{last['price_asset_id']}")
        return listed(await self._shown(rows[:limit], shape), **meta)

    async def _shown(self, rows: Sequence[Row], shape: Format) -> list[dict[str, object]]:
        names = {row[name] for row in rows for name in ("amount_asset_id", "price_asset_id")}
        decimals = await self._assets.decimals(names)
        return [
            one(
                "pair",
                _json(
                    row, shape, decimals[row["amount_asset_id"]], decimals[row["price_asset_id"]]
                ),
                amountAsset=row["amount_asset_id"],
                priceAsset=row["price_asset_id"],
            )
            for row in rows
        ]


def _names(name: str, text: str, *, is_exact: bool) -> Row:
    return {name: text, f"{name}_exact": is_exact, f"{name}_prefix": like_prefix(text)}


def _json(row: Row, shape: Format, amount: int, price: int) -> Row:
    def shown(name: str, scale: int) -> object:
        if row[name] is None:
            return None
        return shape.number(row[name] if shape.long else scaled(row[name], scale))

    by_price, by_quote = amount - price - _PRICE, -price - _PRICE
    in_coins = by_quote if row["price_asset_id"] == NATIVE else -_COIN
    if row["amount_asset_id"] == NATIVE:
        in_coins = -_COIN
    return {
        "firstPrice": shown("first_price", by_price),
        "lastPrice": shown("last_price", by_price),
        "low": shown("low", by_price),
        "high": shown("high", by_price),
        "weightedAveragePrice": shown("weighted_average_price", by_price),
        "volume": shown("volume", -amount),
        "quoteVolume": shown("quote_volume", by_quote),
        "volumeWaves": shown("volume_waves", in_coins),
        "txsCount": row["txs_count"],
    }
