"""Candles and pairs: the tables derived from trades, in SQL.

Each interval is made from a shorter one, the shortest from the transactions. After a batch with
trades, and after a rollback, everything from a time on is made again; older rows do not change.

What lives here: the statements. What does not: their timing (``database``), the tables
(``migrations``).

Source: wavesplatform/blockchain-postgres-sync ``src/lib/consumer/repo/pg.rs``,
wavesplatform/data-service ``src/daemons/pairs``. Unlike there, failed trades do not count, and a
rollback removes every candle of the trades that are gone.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

import psycopg

STEPS: Final = (
    *(("5m", "1m"), ("15m", "5m"), ("30m", "15m"), ("1h", "30m"), ("2h", "1h"), ("3h", "1h")),
    *(("4h", "2h"), ("6h", "3h"), ("12h", "6h"), ("1d", "12h"), ("1w", "1d"), ("1M", "1d")),
)
"""Each interval with the one that it is made from, in order of dependency."""

_DELETE: Final = """
DELETE FROM candles
WHERE time_start >= _to_raw_timestamp(%(since)s AT TIME ZONE 'UTC', interval)
"""
_FROM_TRADES: Final = """
INSERT INTO candles
SELECT
    time_start, amount_asset_id, price_asset_id, min(price), max(price), sum(amount),
    sum(amount * price), max(height), count(*), floor(sum(amount * price) / sum(amount)),
    (array_agg(price ORDER BY uid))[1], (array_agg(price ORDER BY uid DESC))[1], '1m', sender
FROM (
    SELECT
        _to_raw_timestamp(t.time_stamp AT TIME ZONE 'UTC', '1m') AS time_start,
        t.uid, t.sender, t.height, t.amount_asset_id, t.price_asset_id,
        t.amount::numeric AS amount,
        soliton_price(t.price, t.tx_version, ad.decimals, pd.decimals) AS price
    FROM txs_7 t
    JOIN decimals ad ON ad.asset_id = t.amount_asset_id
    JOIN decimals pd ON pd.asset_id = t.price_asset_id
    WHERE t.time_stamp >= date_trunc('minute', %(since)s::timestamptz, 'UTC')
        AND t.status = 'succeeded'
) trades
GROUP BY time_start, amount_asset_id, price_asset_id, sender
"""
_FROM_CANDLES: Final = """
INSERT INTO candles
SELECT
    _to_raw_timestamp(time_start, %(interval)s) AS start, amount_asset_id, price_asset_id,
    min(low), max(high), sum(volume), sum(quote_volume), max(max_height), sum(txs_count),
    floor(sum(quote_volume) / sum(volume)), (array_agg(open ORDER BY time_start))[1],
    (array_agg(close ORDER BY time_start DESC))[1], %(interval)s, matcher_address
FROM candles
WHERE interval = %(shorter)s
    AND time_start >= _to_raw_timestamp(%(since)s AT TIME ZONE 'UTC', %(interval)s)
GROUP BY start, amount_asset_id, price_asset_id, matcher_address
"""
_PAIRS: Final = """
INSERT INTO pairs
WITH trades AS (
    SELECT
        t.uid, t.sender, t.amount_asset_id, t.price_asset_id, t.amount::numeric AS amount,
        soliton_price(t.price, t.tx_version, ad.decimals, pd.decimals) AS price
    FROM txs_7 t
    JOIN decimals ad ON ad.asset_id = t.amount_asset_id
    JOIN decimals pd ON pd.asset_id = t.price_asset_id
    WHERE t.time_stamp >= now() - interval '1 day' AND t.time_stamp <= now()
        AND t.status = 'succeeded'
), sums AS (
    SELECT
        amount_asset_id, price_asset_id, sender AS matcher,
        (array_agg(price ORDER BY uid))[1] AS first_price,
        (array_agg(price ORDER BY uid DESC))[1] AS last_price,
        sum(amount) AS volume, sum(amount * price) AS quote_volume, max(price) AS high,
        min(price) AS low, floor(sum(amount * price) / sum(amount)) AS average, count(*) AS count
    FROM trades
    GROUP BY amount_asset_id, price_asset_id, sender
)
SELECT
    s.amount_asset_id, s.price_asset_id, s.first_price, s.last_price, s.volume,
    CASE
        WHEN s.amount_asset_id = 'WAVES' THEN s.volume
        WHEN s.price_asset_id = 'WAVES' THEN s.quote_volume
        WHEN over.average > 0 THEN floor(s.quote_volume / over.average)
        ELSE floor(s.quote_volume * under.average / power(10::numeric, 16))
    END,
    s.quote_volume, s.high, s.low, s.average, s.count, s.matcher
FROM sums s
LEFT JOIN sums over ON over.amount_asset_id = 'WAVES'
    AND over.price_asset_id = s.price_asset_id AND over.matcher = s.matcher
LEFT JOIN sums under ON under.amount_asset_id = s.price_asset_id
    AND under.price_asset_id = 'WAVES' AND under.matcher = s.matcher
"""


def make_candles(connection: psycopg.Connection, since: datetime) -> None:
    """Make all candles again that contain trades since a time."""
    connection.execute(_DELETE, {"since": since})
    connection.execute(_FROM_TRADES, {"since": since})
    for interval, shorter in STEPS:
        names = {"since": since, "interval": interval, "shorter": shorter}
        connection.execute(_FROM_CANDLES, names)


def make_pairs(connection: psycopg.Connection) -> None:
    """Make the pairs of the last 24 hours again."""
    with connection.transaction():
        connection.execute("DELETE FROM pairs")
        connection.execute(_PAIRS)
