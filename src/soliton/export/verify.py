"""Verifying a database against the chain: every row is made again and compared, in order.

The first difference is reported with height, table, row and column. The chain may change meanwhile:
the database is compared as of the beginning, up to its last block that is complete on the chain.

What lives here: the comparison. What does not: making rows (``rows``, ``assets``), printing.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from itertools import islice, zip_longest
from typing import Any, Final, NamedTuple

import psycopg
from psycopg import sql

from soliton.export import rows
from soliton.export.assets import UPDATE_COLUMNS, Asset, AssetRows
from soliton.export.database import Database, away_or_refused
from soliton.export.errors import Difference, SourceAway
from soliton.export.rows import Lookup, Place, Row, moment
from soliton.export.schema import check_version
from soliton.export.sources import ChainBlock, Source

PAGE: Final = 100
"""Blocks that are compared in one batch."""
_JSON: Final = frozenset(("order1", "order2", "arg_value_list", "body"))
_UID_OF: Final = ("uid", "tx_uid")
_ASSET_COLUMNS: Final = UPDATE_COLUMNS[3:]
_TRADES: Final = """
SELECT amount_asset_id, price_asset_id, sender, sum(amount), count(*) FROM txs_7
WHERE status = 'succeeded' GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
"""
_CANDLES: Final = """
SELECT amount_asset_id, price_asset_id, matcher_address, sum(volume), sum(txs_count) FROM candles
WHERE interval = %s GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
"""
_LOOSE: Final = """
SELECT t.height, t.id FROM txs t JOIN blocks_microblocks b ON b.uid = t.block_uid
WHERE t.height <> b.height LIMIT 1
"""
_INTERVALS: Final = (
    *("1m", "5m", "15m", "30m", "1h", "2h", "3h", "4h", "6h", "12h", "1d", "1w", "1M"),
)


class Compared(NamedTuple):
    """The numbers of equal blocks, transactions and rows."""

    blocks: int
    transactions: int
    rows: int


def verify(
    source: Source, dsn: str, on_progress: Callable[[str], None] = lambda _text: None
) -> Compared:
    """Compare a database with a chain; raises ``Difference`` for the first difference."""
    connection = Database.connect(dsn)
    try:
        with away_or_refused():
            check_version(connection)
            connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
            return _Comparison(source, connection).run(on_progress)
    finally:
        connection.close()


class _Comparison:
    """One comparison, on a snapshot of the database."""

    def __init__(self, source: Source, connection: psycopg.Connection) -> None:
        self._source = source
        self._connection = connection
        self._assets: dict[str, Asset] = {}
        self._supply: int | None = None
        self._count = 0
        self._transactions = 0

    def run(self, on_progress: Callable[[str], None]) -> Compared:
        """Compare all blocks, then the tables derived from them."""
        height = self._last_height()
        self._beyond(height)
        for first in range(1, height + 1, PAGE):
            last = min(height, first + PAGE - 1)
            blocks = list(self._source.blocks(first, last))
            while blocks and blocks[-1].height < last:
                blocks += self._source.blocks(blocks[-1].height + 1, last)
            if not blocks:
                raise SourceAway("the chain changed while it was read")
            self._compare(blocks)
            on_progress(f"{last} of {height} blocks")
        self._compare_trades()
        for found in self._connection.execute(_LOOSE):
            raise Difference(f"height {found[0]}: {found[1]} belongs to a block of another height")
        return Compared(height, self._transactions, self._count)

    def _last_height(self) -> int:
        """Return the height up to which the database can be compared. Raises ``Difference``."""
        found = self._connection.execute(
            "SELECT height, id FROM blocks_microblocks ORDER BY uid DESC LIMIT 1"
        ).fetchone()
        # The first query fixes the snapshot of the database: refresh the chain after it.
        top = self._source.refresh()
        if found is None:
            raise Difference("the database is empty")
        height, name = found
        if height > top:
            raise Difference(f"the database has height {height}, the chain ends at {top}")
        # The last block may have grown since.
        return int(height) - int(self._source.block_id(height) != name)

    def _beyond(self, height: int) -> None:
        """Check that no row is without a block."""
        for table in (*rows.columns(), "asset_origins"):
            column = "issue_height" if table == "asset_origins" else "height"
            found = self._connection.execute(
                sql.SQL("SELECT {0} FROM {1} WHERE {0} < 1 OR {0} > %s LIMIT 1").format(
                    sql.Identifier(column), sql.Identifier(table)
                ),
                (height + 1,),
            ).fetchone()
            if found is not None:
                raise Difference(f"height {found[0]}: {table} has a row without a block")

    def _compare(self, blocks: Sequence[ChainBlock]) -> None:
        first, last = blocks[0].height, blocks[-1].height
        self._compare_blocks(blocks, first, last)
        expected: dict[str, list[Row]] = {name: [] for name in rows.columns()}
        lookup = Lookup(self._source.address_of, self._lease_uid)
        made = AssetRows(self._assets, self._next_asset(), self._source.chain_id)
        for block in blocks:
            for at, each in enumerate(block.transactions):
                place = Place(block.height * rows.PLACES + at, block.height, 0)
                made.add(each, block.height, 0)
                for table, row in rows.transaction_rows(each.members, place, lookup):
                    expected[table].append(row)
                self._transactions += 1
        for table, columns in rows.columns().items():
            compared = [name for name in columns if name != "block_uid"]
            indexes = [columns.index(name) for name in compared]
            found = self._read(table, compared, first, last)
            wanted = (tuple(row[at] for at in indexes) for row in expected[table])
            self._equal(table, compared, wanted, found)
        self._compare_assets(made, first, last)

    def _compare_blocks(self, blocks: Sequence[ChainBlock], first: int, last: int) -> None:
        found = self._connection.execute(
            "SELECT height, (array_agg(id ORDER BY uid DESC))[1], min(time_stamp), "
            "(SELECT quantity FROM waves_data w WHERE w.height <= b.height "
            "ORDER BY w.height DESC LIMIT 1) "
            "FROM blocks_microblocks b WHERE height BETWEEN %s AND %s "
            "GROUP BY height ORDER BY height",
            (first, last),
        )
        wanted = [
            (each.height, each.id, moment(each.timestamp), each.total_waves) for each in blocks
        ]
        columns = ("height", "id", "time_stamp", "quantity of the coin")
        self._equal("blocks_microblocks", columns, wanted, found)

    def _compare_assets(self, made: AssetRows, first: int, last: int) -> None:
        columns = sql.SQL(", ").join(sql.Identifier("u", name) for name in _ASSET_COLUMNS)
        found = self._connection.execute(
            sql.SQL(
                "SELECT {} FROM asset_updates u JOIN blocks_microblocks b ON b.uid = u.block_uid "
                "WHERE b.height BETWEEN %s AND %s ORDER BY u.uid"
            ).format(columns),
            (first, last),
        )
        self._equal("asset_updates", _ASSET_COLUMNS, (row[3:] for row in made.updates), found)
        origins = self._connection.execute(
            "SELECT asset_id, origin_transaction_id, issuer, issue_height, issue_time_stamp "
            "FROM asset_origins WHERE issue_height BETWEEN %s AND %s ORDER BY asset_id",
            (first, last),
        )
        wanted = sorted((row[0], *row[2:]) for row in made.origins)
        self._equal(
            "asset_origins",
            ("asset_id", "transaction", "issuer", "height", "time"),
            wanted,
            sorted(origins),
        )
        for asset_id in {row[3] for row in made.updates}:
            current = self._connection.execute(
                "SELECT count(*) FROM asset_updates WHERE asset_id = %s AND superseded_by = "
                "9223372036854775806",
                (asset_id,),
            ).fetchone()
            if current != (1,):
                raise Difference(f"asset_updates: {asset_id} has {current} current rows")

    def _compare_trades(self) -> None:
        trades = self._connection.execute(_TRADES).fetchall()
        for interval in _INTERVALS:
            found = self._connection.execute(_CANDLES, (interval,))
            columns = ("amount_asset_id", "price_asset_id", "matcher", "volume", "count")
            self._equal(f"candles of {interval}", columns, trades, found)

    def _next_asset(self) -> int:
        return max((asset.uid for asset in self._assets.values()), default=0) + 1

    def _lease_uid(self, lease_id: str) -> int | None:
        found = self._connection.execute(
            "SELECT uid FROM txs_8 WHERE id = %s", (lease_id,)
        ).fetchone()
        return None if found is None else int(found[0])

    def _read(self, table: str, columns: Sequence[str], first: int, last: int) -> Iterable[Row]:
        by = next(name for name in _UID_OF if name in columns)
        order = [by, *(name for name in columns if name.startswith("position_"))]
        return self._connection.execute(
            sql.SQL("SELECT {} FROM {} WHERE height BETWEEN %s AND %s ORDER BY {}").format(
                sql.SQL(", ").join(map(sql.Identifier, columns)),
                sql.Identifier(table),
                sql.SQL(", ").join(map(sql.Identifier, order)),
            ),
            (first, last),
        )

    def _equal(
        self, table: str, columns: Sequence[str], wanted: Iterable[Row], found: Iterable[Row]
    ) -> None:
        for expected, row in zip_longest(wanted, found):
            self._count += 1
            if row is None:
                raise Difference(f"{table}: the database has no row {_row_text(columns, expected)}")
            if expected is None:
                raise Difference(f"{table}: the chain has nothing like {_row_text(columns, row)}")
            for column, one, other in zip(columns, expected, row, strict=True):
                if _plain(column, one) != _plain(column, other):
                    raise Difference(
                        f"{table}: {_row_text(columns, row)}: {column} is {_brief(other)} in the "
                        f"database and {_brief(one)} on the chain"
                    )


def _plain(column: str, value: Any) -> Any:  # noqa: ANN401 - any value of a column
    """Convert a value to a form that both sides have in common."""
    if isinstance(value, Decimal):
        return int(value) if value == value.to_integral_value() else value
    if column in _JSON and isinstance(value, str):
        return json.loads(value)
    return bytes(value) if isinstance(value, memoryview) else value


def _row_text(columns: Sequence[str], row: Row) -> str:
    names = dict(zip(columns, row, strict=True))
    known = ("height", "id", "tx_uid", "uid", "asset_id")
    found = [f"{name} {names[name]}" for name in known if name in names]
    if not found:
        found = [f"{name} {value}" for name, value in islice(names.items(), 3)]
    return ", ".join(found)


def _brief(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 100 else text[:97] + "..."
