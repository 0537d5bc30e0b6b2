"""Budgets: how much each client of a service may take in the long run.

Each client has a bucket that fills at a steady rate and that its requests empty by what they cost.
Those who ask for little never notice; who asks for much gets a part of the service and not all of
it. The buckets are cells of a table of fixed size (``shared_counters``), which processes may share.
That two clients have the same cell is rare, and matters only while one of them has emptied
it.

What lives here: the buckets. What does not: what a request costs and how it is refused (the
services say that), and who a client is (``soliton.web.clients``).
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
        """A bucket gets ``rate`` a second (above 0) and holds ``burst``. ``clock`` gives seconds
        that never go back, the same in all processes.
        """
        self._rate = rate
        # How long an empty bucket takes to be full again.
        self._saved = burst / rate
        self._clock = clock
        self._cell = counters.cell
        self._full_at = counters.times

    def wait(self, client: str) -> float:
        """In how many seconds the client may ask again; not above 0 if it may now."""
        return self._full_at[self._cell(client)] - self._clock() - self._saved

    def charge(self, client: str, cost: float) -> None:
        """Take something out of the client's bucket."""
        cell, full_at = self._cell(client), self._full_at
        full_at[cell] = max(self._clock(), full_at[cell]) + cost / self._rate
