"""Chains that are exported, and what a database holds then, in a form that can be compared.

What lives here: following a chain on a disk, dumps. What does not: any check.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import psycopg

from soliton.export import rows
from soliton.export.assets import CURRENT
from soliton.export.database import ChainFacts, Database
from soliton.export.follower import Follower
from soliton.export.running import Export
from soliton.export.sources import Source, StoreSource
from soliton.node.chain_writer import ChainWriter

Dump = dict[str, list[tuple[Any, ...]]]


class OwnChain(StoreSource):
    """A chain that this process writes: there is nothing to be followed."""

    def __init__(self, chain: ChainWriter) -> None:
        super().__init__(chain)
        self.chain = chain

    def refresh(self) -> int:
        return self.chain.height

    def close(self) -> None:
        """The chain is its writer's."""


def facts_of(source: StoreSource, asset_storage: str = "") -> ChainFacts:
    return ChainFacts(source.network, source.chain_id, source.address_of, asset_storage)


@contextmanager
def following(chain: ChainWriter, dsn: str, asset_storage: str = "") -> Iterator[Follower]:
    """A follower of a chain."""
    source = OwnChain(chain)
    database = Database.open(dsn, facts_of(source, asset_storage))
    try:
        yield Follower(source, database)
    finally:
        database.close()


def catch_up(follower: Follower) -> None:
    """Make steps until there are none."""
    while follower.step():
        pass


def export_once(chain: ChainWriter, dsn: str) -> None:
    """Bring a database to where a chain is."""
    run_once(OwnChain(chain), dsn)


def run_once(source: Source, dsn: str) -> None:
    """Bring a database to where a source is."""
    facts = ChainFacts(source.network, source.chain_id, source.address_of)
    Export(source, lambda: Database.open(dsn, facts), threading.Event(), once=True).run()


_BLOCKS = """
SELECT height, (array_agg(id ORDER BY uid DESC))[1], min(time_stamp) FROM blocks_microblocks
GROUP BY height ORDER BY height
"""
_UPDATES = f"""
SELECT asset_id, decimals, name, description, reissuable, volume, script, sponsorship, nft,
    superseded_by = {CURRENT},
    lead(uid) OVER (PARTITION BY asset_id ORDER BY uid) IS NOT DISTINCT FROM
        nullif(superseded_by, {CURRENT})
FROM asset_updates ORDER BY asset_id, uid
"""
_TICKERS = f"""
SELECT asset_id, ticker, superseded_by = {CURRENT} FROM asset_tickers ORDER BY asset_id, uid
"""
_ORIGINS = """
SELECT asset_id, origin_transaction_id, issuer, issue_height, issue_time_stamp,
    first_asset_update_uid = (SELECT min(uid) FROM asset_updates u WHERE u.asset_id = o.asset_id)
FROM asset_origins o ORDER BY asset_id
"""


def dump(dsn: str) -> Dump:
    """All that a database holds, but for numbers that depend on the way it came there."""
    statements = {
        "blocks": _BLOCKS,
        "asset_updates": _UPDATES,
        "asset_tickers": _TICKERS,
        "asset_origins": _ORIGINS,
        "waves_data": "SELECT height, quantity FROM waves_data ORDER BY height",
        "candles": "SELECT * FROM candles ORDER BY interval, time_start, amount_asset_id, "
        "price_asset_id, matcher_address",
    }
    for table, columns in rows.columns().items():
        kept = ", ".join(name for name in columns if name != "block_uid")
        order = "1" if "uid" in columns else kept
        statements[table] = f"SELECT {kept} FROM {table} ORDER BY {order}"
    with psycopg.connect(dsn) as connection:
        return {
            name: connection.execute(text.encode()).fetchall() for name, text in statements.items()
        }
