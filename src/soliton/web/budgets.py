"""Rate limits of clients: token buckets.

Each client has a bucket that fills at a steady rate and from which the cost of its requests is
taken. Light use is not affected; a heavy client gets its share of the service. The buckets are
cells of a table of fixed size (``shared_counters``), which processes may share. A collision of two
clients is rare, and matters only while one of them is throttled.

What lives here: the buckets. What does not: costs and refusals (the services), and the identity of
clients (``soliton.web.clients``).
"""

from __future__ import annotations

import time
from collections.abc import Callable

from soliton.web.shared_counters import SharedCounters


class Budgets:
    """The buckets of all clients."""

    __slots__ = ("_cell", "_clock", "_full_at", "_rate", "_saved")

    def __init__(
        self,
        rate: float,
        burst: float,
        counters: SharedCounters,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """A bucket gets ``rate`` a second (above 0) and holds ``burst``. ``clock`` returns
        monotonic seconds, the same in all processes.
        """
        self._rate = rate
        # The time to fill an empty bucket.
        self._saved = burst / rate
        self._clock = clock
        self._cell = counters.cell
        self._full_at = counters.times

    def wait(self, client: str) -> float:
        """Return the seconds until the client may send a request; 0 or less if it may now."""
        return self._full_at[self._cell(client)] - self._clock() - self._saved

    def charge(self, client: str, cost: float) -> None:
        """Take a cost from the client's bucket."""
        cell, full_at = self._cell(client), self._full_at
        full_at[cell] = max(self._clock(), full_at[cell]) + cost / self._rate
