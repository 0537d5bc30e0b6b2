"""The metrics and the readiness of the data service.

What lives here: the list, and why the service is not ready. What does not: the metrics that every
service has, and the answers (``soliton.web.monitoring``).
"""

from __future__ import annotations

import time
from typing import Final, NamedTuple

from soliton.data_service.errors import DatabaseAway, QueryTimeout
from soliton.data_service.pool import Pool
from soliton.web.monitoring import Health, Metric, one
from soliton.web.prometheus import GAUGE, Sample

_NEWEST: Final = """
    SELECT height, extract(epoch FROM time_stamp)::float8 AS at FROM blocks_microblocks
    WHERE time_stamp IS NOT NULL ORDER BY height DESC LIMIT 1
"""


class Newest(NamedTuple):
    """The newest block of the database, and its time in seconds since 1970."""

    height: int = 0
    at: float = 0.0


class Monitored:
    """What is read: the pool, and the newest block as of the last check of readiness."""

    def __init__(self, pool: Pool, max_block_age: float) -> None:
        """``max_block_age`` in seconds; 0 means no limit."""
        self.pool = pool
        self.newest = Newest()
        self.is_reachable = False
        self._max_age = max_block_age

    async def check(self) -> Health:
        """Not ready: the database does not answer, is empty, or its newest block is too old."""
        self.is_reachable = False
        try:
            rows = await self.pool.fetch(_NEWEST)
        except (DatabaseAway, QueryTimeout) as error:
            return Health([f"the database: {error}"])
        self.is_reachable = True
        if not rows:
            return Health(["the database has no blocks: run soliton export postgres"])
        self.newest = Newest(rows[0]["height"], rows[0]["at"])
        age = max(0.0, time.time() - self.newest.at)
        facts = {"height": self.newest.height, "lastBlockAge": int(age)}
        if 0 < self._max_age < age:
            reason = (
                f"the newest block is {age:.0f} s old, and --max-block-age is {self._max_age:g} s: "
                "the export or its node is behind"
            )
            return Health([reason], facts)
        return Health([], facts)


METRICS: Final[tuple[Metric[Monitored], ...]] = (
    Metric("soliton_data_service_database_up", GAUGE,
           "1 if the database answered the last check of readiness",
           one(lambda it: int(it.is_reachable))),
    Metric("soliton_data_service_height", GAUGE,
           "Height of the newest block of the database, as of the last check of readiness",
           one(lambda it: it.newest.height)),
    Metric("soliton_data_service_last_block_timestamp_seconds", GAUGE, "Time of that block",
           lambda it: (Sample(it.newest.at),) if it.newest.height else ()),
    Metric("soliton_data_service_connections", GAUGE, "Open connections to the database",
           one(lambda it: it.pool.connections)),
    Metric("soliton_data_service_queries_waiting", GAUGE,
           "Queries that wait for a connection to the database", one(lambda it: it.pool.waiting)),
)  # fmt: skip
