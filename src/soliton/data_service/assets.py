"""Assets and aliases.

What lives here: finding them, their JSON, the decimals of assets. What does not: their tables
(``soliton.export``).

Source: wavesplatform/data-service ``src/services/assets``, ``src/services/aliases``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from soliton.data_service.errors import BadRequest, NotFound
from soliton.data_service.formats import NATIVE, NATIVE_DECIMALS, Format, listed, moment, one
from soliton.data_service.parameters import Query, cursor
from soliton.data_service.pool import Pool, Row

MAX_KEPT: Final = 100_000
MIN_ADDRESS: Final = 31
"""Shorter texts are aliases, longer ones addresses."""
MAX_ALIASES: Final = 1_000

_ASSETS: Final = "SELECT * FROM assets WHERE asset_id = ANY(%s)"
_BY_TICKER: Final = """
SELECT a.* FROM assets a
WHERE CASE WHEN %(ticker)s = '*' THEN a.ticker IS NOT NULL AND a.ticker <> ''
    ELSE a.ticker = %(ticker)s END
ORDER BY a.ticker
"""
_SEARCH: Final = """
WITH ranked AS (
    SELECT a.*, CASE
        WHEN lower(a.asset_id) = lower(%(text)s)
            THEN CASE WHEN a.ticker IS NULL THEN 128 ELSE 256 END
        WHEN a.ticker ILIKE %(prefix)s THEN 64
        WHEN a.asset_name ILIKE %(prefix)s THEN 32
        ELSE 16 END AS rank
    FROM assets a
    LEFT JOIN assets_metadata m ON m.asset_id = a.asset_id
    WHERE lower(a.asset_id) = lower(%(text)s) OR a.ticker ILIKE %(prefix)s
        OR a.asset_name ILIKE %(prefix)s OR m.asset_name ILIKE %(prefix)s
        OR to_tsvector('simple', a.asset_name) @@ to_tsquery('simple', %(words)s)
), numbered AS (
    SELECT *, row_number() OVER (ORDER BY rank DESC, issue_height, asset_id) AS number FROM ranked
)
SELECT * FROM numbered
WHERE number > coalesce((SELECT number FROM numbered WHERE asset_id = %(after)s), 0)
ORDER BY number LIMIT %(limit)s
"""
_ALIASES: Final = """
SELECT alias, (array_agg(sender ORDER BY uid))[1] AS address, count(*) AS count, min(uid) AS uid
FROM txs_10 WHERE {} GROUP BY alias
HAVING min(uid) > coalesce((SELECT min(uid) FROM txs_10 WHERE alias = %(after)s), 0)
ORDER BY min(uid) LIMIT %(limit)s
"""
_OF_ADDRESSES_OR_NAMES: Final = """
alias IN (
    SELECT alias FROM txs_10 WHERE sender = ANY(%(addresses)s)
    UNION SELECT unnest(%(names)s::varchar[])
)
"""
"""A union, since a condition with OR goes through all aliases."""
_ALIAS_OWNERS: Final = "SELECT sender FROM txs_10 WHERE alias = %s ORDER BY uid LIMIT 1"


class Assets:
    """The assets of one database, with a cache of their decimals, which never change."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._decimals: dict[str, int] = {NATIVE: NATIVE_DECIMALS}

    async def find(self, ids: Sequence[str]) -> dict[str, Row]:
        """Return assets by their ids."""
        names = [each for each in dict.fromkeys(ids) if each]
        if not names:
            return {}
        return {row["asset_id"]: row for row in await self._pool.fetch(_ASSETS, (names,))}

    async def decimals(self, ids: Iterable[str]) -> dict[str, int]:
        """Return the decimals of assets, 0 for unknown ones."""
        names = set(ids)
        missing = list(names - self._decimals.keys())
        if missing:
            rows = await self._pool.fetch(
                "SELECT asset_id, decimals FROM decimals WHERE asset_id = ANY(%s)", (missing,)
            )
            if len(self._decimals) > MAX_KEPT:
                self._decimals = {NATIVE: NATIVE_DECIMALS}
            found = {row["asset_id"]: int(row["decimals"]) for row in rows}
            self._decimals |= found
        return {name: self._decimals.get(name, 0) for name in names}

    async def one(self, asset_id: str, shape: Format) -> object:
        """Return an asset."""
        found = await self.find([asset_id])
        if asset_id not in found:
            raise NotFound(asset_id)
        return one("asset", asset_json(found[asset_id], shape))

    async def many(self, query: Query, shape: Format) -> object:
        """Return assets by ids, by ticker or by a search."""
        ids = query.listed("ids")
        if ids is not None:
            found = await self.find(ids)
            items = [one("asset", asset_json(found[i], shape) if i in found else None) for i in ids]
            return listed(items)
        ticker = query.text("ticker")
        if ticker is not None:
            rows = await self._pool.fetch(_BY_TICKER, {"ticker": ticker})
            return listed([one("asset", asset_json(row, shape)) for row in rows])
        search = query.text("search")
        if search is None:
            raise BadRequest("There is neither ticker nor search query")
        return await self._search(search, query, shape)

    async def _search(self, search: str, query: Query, shape: Format) -> object:
        limit = query.limit()
        rows = await self._pool.fetch(
            _SEARCH,
            {
                "text": search,
                "prefix": like_prefix(search),
                "words": words_query(search),
                "after": query.after(),
                "limit": limit + 1,
            },
        )
        meta: Row = {"isLastPage": len(rows) <= limit}
        if rows[:limit]:
            meta["lastCursor"] = cursor(rows[:limit][-1]["asset_id"])
        return listed([one("asset", asset_json(row, shape)) for row in rows[:limit]], **meta)


def like_prefix(text: str) -> str:
    """Return the LIKE pattern for texts that begin with ``text``."""
    escaped = text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return escaped + "%"


def words_query(text: str) -> str:
    """Return a full-text query for the words of a text, the last of them as a prefix."""
    words = "".join(each if each.isalnum() else " " for each in text).split()
    return " & ".join([*words[:-1], words[-1] + ":*"]) if words else ""


def asset_json(row: Row, shape: Format) -> Row:
    """Return the JSON of an asset."""
    return {
        "ticker": row["ticker"] or None,
        "id": row["asset_id"],
        "name": row["asset_name"],
        "precision": row["decimals"],
        "description": row["description"],
        "height": row["issue_height"],
        "timestamp": moment(row["issue_timestamp"]),
        "sender": row["sender"],
        "quantity": shape.number(row["total_quantity"] or 0),
        "reissuable": row["reissuable"],
        "hasScript": row["has_script"],
        "minSponsoredFee": shape.optional(row["min_sponsored_asset_fee"]),
    }


class Aliases:
    """The aliases of one database."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def address_of(self, recipient: str) -> str | None:
        """Return the address of a recipient, an address or an alias."""
        if len(recipient) >= MIN_ADDRESS:
            return recipient
        rows = await self._pool.fetch(_ALIAS_OWNERS, (recipient,))
        return rows[0]["sender"] if rows else None

    async def one(self, alias: str, _shape: Format) -> object:
        """Return an alias."""
        found = await self._by_names([alias])
        if alias not in found or found[alias]["count"] > 1:
            raise NotFound(alias)
        return _alias(found[alias])

    async def _by_names(self, names: Sequence[str]) -> dict[str, Row]:
        statement = _ALIASES.format("alias = ANY(%(names)s)")
        rows = await self._pool.fetch(
            statement, {"names": list(names), "limit": len(names), "after": None}
        )
        return {row["alias"]: row for row in rows}

    async def many(self, query: Query, _shape: Format) -> object:
        """Return aliases by names, or of accounts."""
        names = query.listed("aliases")
        if names is not None:
            found = await self._by_names(names)
            return listed(
                [_alias(found[each]) if each in found else one("alias", None) for each in names]
            )
        given = [name for name in ("address", "addresses", "queries") if name in query]
        if len(given) > 1:
            raise BadRequest(
                "Request contains a conflict between exclusive peers [address, addresses, queries]",
                names=given,
            )
        if not given:
            raise BadRequest("Neither `address` nor `addresses` nor `queries` were not provided")
        broken = query.flag("showBroken")
        values = query.listed(given[0]) or []
        aliases = {each for each in values if given == ["queries"] and len(each) < MIN_ADDRESS}
        parameters = {
            "addresses": [each for each in values if each not in aliases],
            "names": list(aliases),
            "limit": MAX_ALIASES + 1,
            "after": query.after(),
        }
        rows = await self._pool.fetch(_ALIASES.format(_OF_ADDRESSES_OR_NAMES), parameters)
        chosen = rows[:MAX_ALIASES]
        meta: Row = {"isLastPage": len(rows) <= MAX_ALIASES}
        if chosen:
            meta["lastCursor"] = cursor(chosen[-1]["alias"])
        shown = [row for row in chosen if row["count"] == 1 or broken]
        return listed([_alias(row) for row in shown], **meta)


def _alias(row: Row) -> dict[str, object]:
    address = row["address"] if row["count"] == 1 else None
    return one("alias", {"alias": row["alias"], "address": address})
