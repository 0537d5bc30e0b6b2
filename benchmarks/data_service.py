"""A page of an account's transfers by the data service, among many: ``/v0/transactions/transfer``.

Run ``.venv/bin/python benchmarks/data_service.py [--rows N] [--accounts N] [--requests N]``. A
PostgreSQL server is started for it where one is installed, and filled with made-up transfers; then
pages of accounts at random are asked for, one after the other. Prints the median, the 99th
percentile, and the CPU time of the service for a page (the server's own is not counted). On a busy
machine either waits for a core; beside it is what there would be without.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import sys
import time
from pathlib import Path

import psycopg

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from soliton.data_service.app import DataService, DataServiceSettings
from soliton.data_service.pool import Pool
from soliton.export.schema import migrate
from soliton.web.answers import Awaited, Whole
from soliton.web.request import Request
from tests.export.postgres import find_program, server

STEP = 1_000_000
SETTINGS = ("fsync=off", "max_wal_size=4GB", "shared_buffers=512MB", "maintenance_work_mem=512MB")
_FILL = """
INSERT INTO txs_4 (
    uid, tx_type, sender, sender_public_key, time_stamp, height, id, proofs, tx_version, fee,
    status, block_uid, asset_id, amount, recipient_address, fee_asset_id, attachment
)
SELECT
    100000::bigint * (g / 100 + 1) + g %% 100, 4,
    '3P' || md5('s' || (hashint4(g) & 2147483647) %% %(accounts)s) || 'x',
    md5('p' || g) || '0123456789', '2020-01-01'::timestamptz + g * interval '1 second',
    g / 100 + 1, md5('i' || g) || 'abcdefghijk',
    ARRAY[md5('q' || g) || md5('r' || g) || '0123456789012345678901'], 2, 100000, 'succeeded', 1,
    'WAVES', g, '3P' || md5('t' || g %% 5000) || 'y', 'WAVES', ''
FROM generate_series(%(first)s::int, %(last)s::int) g
"""
_BLOCKS = """
INSERT INTO blocks_microblocks (uid, id, height, time_stamp)
SELECT h, 'b' || h, h, '2020-01-01'::timestamptz + h * 100 * interval '1 second'
FROM generate_series(1, %(last)s::int) h
"""
_INDEXES = """
SELECT indexname, indexdef FROM pg_indexes
WHERE tablename = 'txs_4' AND indexname <> 'txs_4_pkey'
"""


def fill(dsn: str, rows: int, accounts: int) -> None:
    """Make the tables and so many transfers; indexes come last, that is quicker."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        migrate(connection)
        connection.execute(_BLOCKS, {"last": rows // 100 + 1})
        indexes = connection.execute(_INDEXES).fetchall()
        for name, _ in indexes:
            connection.execute(f'DROP INDEX "{name}"'.encode())
        for first in range(0, rows, STEP):
            last = min(rows, first + STEP) - 1
            connection.execute(_FILL, {"accounts": accounts, "first": first, "last": last})
        for _, definition in indexes:
            connection.execute(definition.encode())
        connection.execute("VACUUM ANALYZE txs_4")


def waited(*process_ids: int) -> float:
    """Milliseconds that processes have waited for a core so far."""
    tasks = [task for number in process_ids for task in Path(f"/proc/{number}/task").iterdir()]
    return sum(int((task / "schedstat").read_text().split()[1]) for task in tasks) / 1e6


async def ask(dsn: str, requests: int) -> tuple[list[float], list[float], float]:
    """The milliseconds of each page, in order of size; the same without waiting for a core; CPU
    milliseconds of one.
    """
    pool = Pool(dsn, 1)
    service = DataService(pool, DataServiceSettings())
    found = await pool.fetch("SELECT DISTINCT sender FROM (SELECT sender FROM txs_4 LIMIT 50000) t")
    senders, chance = [row["sender"] for row in found], random.Random(1)
    [server_process] = await pool.fetch("SELECT pg_backend_pid() AS id")
    both = os.getpid(), server_process["id"]
    times, own = [], []
    cpu = time.process_time()
    for _ in range(requests):
        query = b"sender=" + chance.choice(senders).encode()
        waiting, start = waited(*both), time.perf_counter()
        answer = service.respond(
            Request("GET", "/transactions/transfer", query, {}, b"", "127.0.0.1")
        )
        assert isinstance(answer, Awaited)
        page = await answer.work
        times.append((time.perf_counter() - start) * 1_000)
        own.append(times[-1] - (waited(*both) - waiting))
        assert isinstance(page, Whole) and page.status == 200
    cpu = (time.process_time() - cpu) * 1_000 / requests
    await pool.close()
    return sorted(times), sorted(own), cpu


def main() -> None:
    """Fill a database and ask."""
    parser = argparse.ArgumentParser(description="pages of transfers by the data service")
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--accounts", type=int, default=10_000)
    parser.add_argument("--requests", type=int, default=1_000)
    options = parser.parse_args()
    if find_program("initdb") is None:
        print("data service: skipped, PostgreSQL is not here")
        return
    with server(*SETTINGS) as postgres:
        dsn = postgres.database()
        fill(dsn, options.rows, options.accounts)
        for what in ("first", "again"):
            times, own, cpu = asyncio.run(ask(dsn, options.requests))
            at = int(len(times) * 0.99)
            print(
                f"{what}: {options.rows} rows, median {times[len(times) // 2]:.1f} ms, "
                f"p99 {times[at]:.1f} ms (without waiting for a core {own[at]:.1f}), "
                f"{cpu:.2f} ms CPU"
            )


if __name__ == "__main__":
    main()
