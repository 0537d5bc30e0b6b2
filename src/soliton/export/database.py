"""The database as a sink: one connection, and one transaction for each step of the export.

A step removes blocks, extends the last one, or adds some, atomically. Each step first checks that
the database is where the previous one left it, so a step whose outcome is unknown is neither lost
nor repeated.

What lives here: connecting, the position, writing. What does not: choosing the next step
(``follower``), rows (``rows``, ``assets``), candles (``candles``).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any, Final, NamedTuple

import psycopg
from psycopg import sql

from soliton.export import rows, schema
from soliton.export.assets import (
    CURRENT,
    MAX_KEPT,
    ORIGIN_COLUMNS,
    UPDATE_COLUMNS,
    Asset,
    AssetRows,
    named_assets,
)
from soliton.export.candles import make_candles, make_pairs
from soliton.export.errors import (
    AnotherExport,
    DatabaseAway,
    DatabaseProblem,
    WrongChain,
)
from soliton.export.rows import Lookup, Place, Row, moment
from soliton.export.sources import ChainBlock, ChainTransaction
from soliton.export.steps import Position, Step, Stored
from soliton.export.tickers import TICKER_COLUMNS, ticker_rows

_LOCK: Final = 5_701_889_132_071
"""The advisory lock of the export that writes to a database."""
_AWAY: Final = ("08", "40", "53", "55", "57", "58")
"""Classes of temporary errors: connections, conflicts, resources, locks, shutdown, disks."""
_READ_ONLY: Final = "25006"
PAIRS_SECONDS: Final = 2.5
_TRADE: Final = 7


@contextmanager
def away_or_refused() -> Iterator[None]:
    """Convert the driver's exceptions."""
    try:
        yield
    except psycopg.Error as error:
        code = error.sqlstate or ""
        text = " ".join(str(error).split())
        passes = isinstance(error, psycopg.OperationalError | psycopg.InterfaceError)
        if passes or code[:2] in _AWAY or code == _READ_ONLY:
            raise DatabaseAway(f"the database: {text}") from error
        raise DatabaseProblem(f"the database refused: {text}") from error


class ChainFacts(NamedTuple):
    """The chain's data that rows need: its identity (a node over HTTP does not report the network's
    name), the addresses of aliases, and the account with the tickers, if any.
    """

    network: str
    chain_id: int
    address_of: Callable[[str], str]
    asset_storage: str = ""


class Database:
    """A connection to the database of an export."""

    def __init__(self, connection: psycopg.Connection, facts: ChainFacts) -> None:
        self._connection = connection
        self._facts = facts
        self._known: dict[str, Asset] = {}
        self._next_pairs = 0.0

    @staticmethod
    def connect(dsn: str) -> psycopg.Connection:
        """Connect; raises ``DatabaseAway`` or ``DatabaseProblem``."""
        with away_or_refused():
            connection = psycopg.connect(dsn, autocommit=True, application_name="soliton-export")
            connection.execute("SET timezone TO 'UTC'")
            connection.execute("SET client_encoding TO 'UTF8'")
        return connection

    @classmethod
    def open(cls, dsn: str, facts: ChainFacts, *, migrates: bool = False) -> Database:
        """Connect as the writer; creates the tables in an empty database, and with ``migrates``
        migrates them to this program's version.

        Raises ``DatabaseAway``, ``DatabaseProblem``, ``WrongSchema``, ``WrongChain`` or
        ``AnotherExport``.
        """
        connection = cls.connect(dsn)
        try:
            with away_or_refused():
                _take_lock(connection)
                if migrates or schema.found_version(connection) is None:
                    schema.migrate(connection)
                schema.check_version(connection)
                _check_chain(connection, facts.network, facts.chain_id)
        except BaseException:
            connection.close()
            raise
        return cls(connection, facts)

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def position(self) -> Position:
        """See ``Sink``."""
        with away_or_refused(), self._connection.transaction():
            return read_position(self._connection)

    def ids(self, top: int, count: int) -> list[Stored]:
        """See ``Sink``."""
        with away_or_refused():
            found = self._connection.execute(
                "SELECT uid, id, height FROM blocks_microblocks WHERE height <= %s "
                "ORDER BY uid DESC LIMIT %s",
                (top, count),
            )
            return [Stored(uid, name, height, 0) for uid, name, height in found]

    def idle(self) -> None:
        """Make the pairs of the last 24 hours again, every ``PAIRS_SECONDS``."""
        now = time.monotonic()
        if now < self._next_pairs:
            return
        with away_or_refused():
            make_pairs(self._connection)
        self._next_pairs = now + PAIRS_SECONDS

    def write(self, step: Step, before: Position) -> Position:
        """See ``Sink``. Raises ``DatabaseAway``, also if the database is not at ``before``."""
        try:
            with away_or_refused(), self._connection.transaction():
                return _Writer(self._connection, self._known, self._facts).write(step, before)
        except BaseException:
            # The cached assets include changes of the failed transaction.
            self._known.clear()
            raise


def _take_lock(connection: psycopg.Connection) -> None:
    row = connection.execute("SELECT pg_try_advisory_lock(%s)", (_LOCK,)).fetchone()
    if row is None or not row[0]:
        raise AnotherExport("another export writes to this database, or has not yet ended")


def _check_chain(connection: psycopg.Connection, network: str, chain_id: int) -> None:
    with connection.transaction():
        connection.execute(
            "INSERT INTO soliton_export (network, chain_id) VALUES (%s, %s) ON CONFLICT DO NOTHING",
            (network, chain_id),
        )
        row = connection.execute("SELECT network, chain_id FROM soliton_export").fetchone()
    assert row is not None
    if network and not row[0]:
        connection.execute("UPDATE soliton_export SET network = %s", (network,))
        row = (network, row[1])
    if row[1] != chain_id or (network and row[0] != network):
        raise WrongChain(
            f"the database holds the chain {row[0] or chr(row[1])}, not {network or chr(chain_id)}"
        )


def read_position(connection: psycopg.Connection) -> Position:
    """Return the position of a database."""
    found = connection.execute(
        "SELECT b.uid, b.id, b.height FROM blocks_microblocks b "
        "WHERE b.height = (SELECT max(height) FROM blocks_microblocks) ORDER BY b.uid"
    ).fetchall()
    if not found:
        return Position([], [], None)
    height = found[0][2]
    placed = connection.execute(
        "SELECT id, block_uid FROM txs WHERE height = %s ORDER BY uid", (height,)
    ).fetchall()
    last = [
        Stored(uid, name, height, sum(block_uid <= uid for _, block_uid in placed))
        for uid, name, height in found
    ]
    row = connection.execute("SELECT block_key FROM soliton_export").fetchone()
    return Position(last, [name for name, _ in placed], None if row is None else row[0])


class _Writer:
    """One step, in an open transaction."""

    def __init__(
        self, connection: psycopg.Connection, known: dict[str, Asset], facts: ChainFacts
    ) -> None:
        self._connection = connection
        self._known = known
        self._facts = facts
        self._execute = connection.execute

    def write(self, step: Step, before: Position) -> Position:
        """Write it and return the new position."""
        self._check(before)
        position, since = before, None
        if step.cut is not None:
            since = self._cut(step.cut)
            position = self._cut_position(before, step.cut)
        if step.renamed is not None:
            top = position.last[-1]
            self._execute(
                "UPDATE blocks_microblocks SET id = %s WHERE uid = %s", (step.renamed, top.uid)
            )
            position.last[-1] = top._replace(id=step.renamed)
        next_uid = self._next("blocks_microblocks")
        added: list[tuple[ChainBlock, int, int]] = []
        if step.grown is not None:
            block, top = step.grown, position.last[-1]
            self._put_blocks([(next_uid, block.id, block.height, None)])
            added.append((block, next_uid, top.size))
            count = len(block.transactions)
            position = Position(
                [*position.last, Stored(next_uid, block.id, block.height, count)],
                _names(block),
                block.key,
            )
        elif step.blocks:
            self._squash(position.last)
            added = [(block, next_uid + at, 0) for at, block in enumerate(step.blocks)]
            self._put_blocks(
                [(uid, each.id, each.height, moment(each.timestamp)) for each, uid, _ in added]
            )
            block, uid, _ = added[-1]
            stored = Stored(uid, block.id, block.height, len(block.transactions))
            position = Position([stored], _names(block), block.key)
        first = self._put_transactions(added)
        times = [time for time in (since, first) if time is not None]
        if times:
            make_candles(self._connection, min(times))
        self._execute("UPDATE soliton_export SET block_key = %s", (position.key,))
        return position

    def _check(self, before: Position) -> None:
        row = self._execute(
            "SELECT uid, id FROM blocks_microblocks ORDER BY uid DESC LIMIT 1"
        ).fetchone()
        top = before.top
        if (None if row is None else tuple(row)) != (None if top is None else (top.uid, top.id)):
            raise DatabaseAway("the position of the database has changed")

    def _next(self, table: str) -> int:
        row = self._execute(
            sql.SQL("SELECT coalesce(max(uid), 0) + 1 FROM {}").format(sql.Identifier(table))
        ).fetchone()
        return 1 if row is None else int(row[0])

    # --- rollback ---------------------------------------------------------------------------------

    def _cut(self, to: Stored) -> datetime | None:
        """Remove everything above a row; return the time of the first trade removed."""
        self._known.clear()
        row = self._execute(
            "SELECT min(time_stamp) FROM txs_7 WHERE block_uid > %s", (to.uid,)
        ).fetchone()
        for table in ("asset_updates", "asset_tickers"):
            name = sql.Identifier(table)
            gone = self._execute(
                sql.SQL("DELETE FROM {} WHERE block_uid > %s RETURNING uid").format(name),
                (to.uid,),
            ).fetchall()
            self._execute(
                sql.SQL("UPDATE {} SET superseded_by = %s WHERE superseded_by = ANY(%s)").format(
                    name
                ),
                (CURRENT, [uid for (uid,) in gone]),
            )
        self._execute("DELETE FROM waves_data WHERE height > %s", (to.height,))
        self._execute("DELETE FROM blocks_microblocks WHERE uid > %s", (to.uid,))
        return None if row is None else row[0]

    def _cut_position(self, before: Position, to: Stored) -> Position:
        if before.last[0].height != to.height:
            found = read_position(self._connection)
            # The key was that of another block.
            found.key = None
            return found
        rows_left = [row for row in before.last if row.uid <= to.uid]
        return Position(rows_left, before.ids[: rows_left[-1].size], before.key)

    def _squash(self, last: Sequence[Stored]) -> None:
        """The last block is complete: merge its microblocks into it."""
        if len(last) < 2:
            return
        key = last[0].uid
        for table in ("txs", "asset_updates", "asset_tickers"):
            self._execute(
                sql.SQL("UPDATE {} SET block_uid = %s WHERE block_uid > %s").format(
                    sql.Identifier(table)
                ),
                (key, key),
            )
        self._execute("DELETE FROM blocks_microblocks WHERE uid > %s", (key,))
        self._execute("UPDATE blocks_microblocks SET id = %s WHERE uid = %s", (last[-1].id, key))

    # --- append -----------------------------------------------------------------------------------

    def _put_blocks(self, blocks: Sequence[Row]) -> None:
        self._copy("blocks_microblocks", ("uid", "id", "height", "time_stamp"), blocks)

    def _put_transactions(self, added: Sequence[tuple[ChainBlock, int, int]]) -> datetime | None:
        """Write the transactions of blocks, each from an index on; return the time of the first
        trade.
        """
        new = [
            (each, Place(block.height * rows.PLACES + at, block.height, uid))
            for block, uid, first in added
            for at, each in enumerate(block.transactions[first:], first)
        ]
        self._put_assets(new)
        lookup = Lookup(self._facts.address_of, self._leases(new).get)
        filled: dict[str, list[Row]] = {}
        for transaction, place in new:
            for table, row in rows.transaction_rows(transaction.members, place, lookup):
                filled.setdefault(table, []).append(row)
        for table, columns in rows.columns().items():
            self._copy(table, columns, filled.get(table, ()))
        self._put_supply([block for block, _, _ in added])
        trades = [
            moment(each.members["timestamp"]) for each, _ in new if each.members["type"] == _TRADE
        ]
        return min(trades, default=None)

    def _put_assets(self, new: Sequence[tuple[ChainTransaction, Place]]) -> None:
        named = named_assets(each for each, _ in new)
        if named:
            self._cache_assets(named)
            made = AssetRows(self._known, self._next("asset_updates"), self._facts.chain_id)
            for each, place in new:
                made.add(each, place.height, place.block_uid)
            self._supersede("asset_updates", made.superseded)
            self._copy("asset_updates", UPDATE_COLUMNS, made.updates)
            self._execute("CREATE TEMPORARY TABLE IF NOT EXISTS new_origins (LIKE asset_origins)")
            self._execute("TRUNCATE new_origins")
            self._copy("new_origins", ORIGIN_COLUMNS, made.origins)
            self._execute(
                "INSERT INTO asset_origins SELECT * FROM new_origins ON CONFLICT DO NOTHING"
            )
        if self._facts.asset_storage:
            found = ticker_rows(new, self._facts.asset_storage, self._next("asset_tickers"))
            self._supersede("asset_tickers", found.superseded)
            self._copy("asset_tickers", TICKER_COLUMNS, found.rows)

    def _supersede(self, table: str, by_asset: dict[str, int]) -> None:
        if not by_asset:
            return
        self._execute(
            sql.SQL(
                "UPDATE {} AS old SET superseded_by = new.uid "
                "FROM unnest(%s::varchar[], %s::bigint[]) AS new (asset_id, uid) "
                "WHERE old.superseded_by = %s AND old.asset_id = new.asset_id"
            ).format(sql.Identifier(table)),
            (list(by_asset), list(by_asset.values()), CURRENT),
        )

    def _cache_assets(self, named: set[str]) -> None:
        if len(self._known) > MAX_KEPT:
            self._known.clear()
        missing = list(named - self._known.keys())
        for asset_id, *values in self._execute(
            "SELECT asset_id, uid, decimals, name, description, reissuable, volume, script, "
            "sponsorship, nft FROM asset_updates WHERE superseded_by = %s AND asset_id = ANY(%s)",
            (CURRENT, missing),
        ):
            values[5] = int(values[5])
            self._known[asset_id] = Asset(*values)

    def _leases(self, new: Sequence[tuple[ChainTransaction, Place]]) -> dict[str, int]:
        """Return the uids of the leases that are cancelled."""
        cancelled = {each.members["leaseId"] for each, _ in new if "leaseId" in each.members}
        if not cancelled:
            return {}
        stored = self._execute("SELECT id, uid FROM txs_8 WHERE id = ANY(%s)", (list(cancelled),))
        found = {name: int(uid) for name, uid in stored}
        found |= {
            each.members["id"]: place.uid for each, place in new if each.members["id"] in cancelled
        }
        return found

    def _put_supply(self, blocks: Sequence[ChainBlock]) -> None:
        """Write the total supply where it has changed."""
        supply = {each.total_waves: each.height for each in reversed(blocks) if each.total_waves}
        if supply:
            self._execute(
                "INSERT INTO waves_data (quantity, height) "
                "SELECT * FROM unnest(%s::numeric[], %s::integer[]) ON CONFLICT DO NOTHING",
                (list(supply), list(supply.values())),
            )

    def _copy(self, table: str, columns: Iterable[str], content: Sequence[Row]) -> None:
        if not content:
            return
        statement = sql.SQL("COPY {} ({}) FROM STDIN").format(
            sql.Identifier(table), sql.SQL(", ").join(map(sql.Identifier, columns))
        )
        cursor: psycopg.Cursor[Any]
        with self._connection.cursor() as cursor, cursor.copy(statement) as copy:
            for row in content:
                copy.write_row(row)


def _names(block: ChainBlock) -> list[str]:
    return [each.members["id"] for each in block.transactions]
