"""Tickers: short names of assets, stored in the data of one account.

What lives here: the rows of data entries. What does not: writing them (``database``).

Source: wavesplatform/blockchain-postgres-sync ``src/lib/consumer/mod.rs``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from soliton.export.rows import Place, Row, text
from soliton.export.sources import ChainTransaction

PREFIX: Final = "%s%s__assetId2ticker__"
"""The prefix of the keys; the asset's id follows."""
TICKER_COLUMNS: Final = ("uid", "superseded_by", "block_uid", "asset_id", "ticker")
_CURRENT: Final = 9_223_372_036_854_775_806


class TickerRows(NamedTuple):
    """The rows of a batch, and by asset the row that supersedes the stored one."""

    rows: list[Row]
    superseded: dict[str, int]


def ticker_rows(
    new: Sequence[tuple[ChainTransaction, Place]], storage: str, next_uid: int
) -> TickerRows:
    """Return the rows for data entries of the account ``storage``; a deleted entry leaves an empty
    ticker.
    """
    last: dict[str, int] = {}
    found: list[list[object]] = []
    first: dict[str, int] = {}
    for transaction, place in new:
        for account in transaction.data:
            if account["address"] != storage:
                continue
            for entry in account["data"]:
                if not entry["key"].startswith(PREFIX) or entry.get("type") not in (None, "string"):
                    continue
                asset_id, uid = entry["key"].removeprefix(PREFIX), next_uid + len(found)
                if asset_id in last:
                    found[last[asset_id] - next_uid][1] = uid
                else:
                    first[asset_id] = uid
                last[asset_id] = uid
                ticker = text(entry.get("value") or "")
                found.append([uid, _CURRENT, place.block_uid, asset_id, ticker])
    return TickerRows([tuple(row) for row in found], first)
