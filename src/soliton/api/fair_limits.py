"""Fair limits: how much of the node one client may take, and how many long answers there are.

Each client has a bucket of working time that fills at a steady rate and that its requests empty by
what they cost. A request that finds an empty bucket is refused, and told when to come again. Those
who ask for little never notice; who asks for much gets a part of the node and not all of it.

The buckets are cells of a table of fixed size (``soliton.web.tallies``), which all processes of an
API share. That two clients have the same cell is rare, and matters only while one of them has
emptied it; but to empty buckets takes working time of the node, of which there is so much and no
more: with the usual limits four for each core.

What lives here: the buckets, the places for long answers. What does not: what a request costs
(``asgi`` measures), and who a client is (``soliton.web.clients``).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from soliton.api.errors import TOO_MANY_LONG_ANSWERS, TOO_MANY_OF_CLIENT, TOO_MANY_REQUESTS
from soliton.node.rest_settings import ApiLimits
from soliton.web.clients import LOCAL
from soliton.web.tallies import IDLE, LONG, Tallies

LEAST_COST_SECONDS: Final = 50e-6
"""What a request costs besides its handler: reading it, sending the answer."""
SECONDS_PER_BYTE: Final = 30e-9
"""What a long answer costs: making and sending JSON."""
UNCOUNTED: Final = "-"
"""In place of a client: who asks has been counted before."""


class FairLimits:
    """What the clients of one API have taken, of all of its processes."""

    __slots__ = ("_burst", "_cell", "_clock", "_full_at", "_idle", "_limits", "_long", "_rate")

    def __init__(
        self, limits: ApiLimits, tallies: Tallies, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """``clock`` gives seconds that never go back, the same in all processes."""
        self._limits = limits
        self._clock = clock
        self._rate = limits.client_percent / 100
        # How long an empty bucket takes to be full again.
        self._burst = limits.client_burst_ms / 1000 / self._rate if self._rate else 0.0
        self._cell = tallies.cell
        self._full_at = tallies.times
        self._long = tallies.counts(LONG)
        self._idle = tallies.counts(IDLE)

    def counts(self, client: str) -> bool:
        """Whether this client has limits of its own."""
        return client not in (LOCAL, UNCOUNTED) or (client == LOCAL and self._limits.local_clients)

    def admit(self, client: str) -> None:
        """Raise ``ApiError`` 429 when the client's bucket is empty."""
        if not self._rate:
            return
        wait = self._full_at[self._cell(client)] - self._clock() - self._burst
        if wait > 0:
            raise TOO_MANY_REQUESTS.error().after(wait)

    def charge(self, client: str, seconds: float) -> None:
        """Take working time out of the client's bucket."""
        if not self._rate or not self.counts(client):
            return
        cell, full_at = self._cell(client), self._full_at
        full_at[cell] = max(self._clock(), full_at[cell]) + seconds / self._rate

    def enter(self, client: str, *, idle: bool = False) -> None:
        """Begin a long answer; raises ``ApiError`` 503 or 429. ``leave`` has to follow.

        One that is ``idle`` waits for something to happen. How many of these there may be of all
        clients together is not decided here.
        """
        places, counted = self._idle if idle else self._long, self.counts(client)
        if not idle and places.total() >= self._limits.long_answers:
            raise TOO_MANY_LONG_ANSWERS.error()
        if counted and places.of(client) >= self._limits.long_answers_per_client:
            raise TOO_MANY_OF_CLIENT.error()
        places.add(client if counted else None)

    def leave(self, client: str, *, idle: bool = False) -> None:
        """End a long answer."""
        places = self._idle if idle else self._long
        places.add(client if self.counts(client) else None, -1)
