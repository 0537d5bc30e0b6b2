"""Fair limits: the working time of each client, and the number of concurrent long answers.

Each client has a token bucket of working time (``soliton.web.budgets``), shared by all processes of
an API. A request over it is refused with ``Retry-After``. Clients whose keys collide share a
bucket, but emptying the bucket of another client takes working time, which is limited: with the
default limits a core has the time of four buckets.

What lives here: which clients are limited, slots for long answers. What does not: measuring a
request (``application``), and telling clients apart (``soliton.web.clients``).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from soliton.api.errors import (
    TOO_MANY_LONG_ANSWERS,
    TOO_MANY_OF_CLIENT,
    TOO_MANY_REQUESTS,
    TOO_MANY_WAITING,
)
from soliton.node.rest_settings import ApiLimits
from soliton.web.budgets import Budgets
from soliton.web.clients import LOCAL
from soliton.web.shared_counters import IDLE, LONG, SharedCounters

LEAST_COST_SECONDS: Final = 50e-6
"""The cost of a request without its handler: parsing it and sending the response."""
SECONDS_PER_BYTE: Final = 30e-9
"""The cost of a long answer: encoding and sending JSON."""
IDLE_SHARE: Final = 0.75
"""Of all connections, those that may wait for events: the rest is for requests."""
UNCOUNTED: Final = "-"
"""The client of a forwarded request, which the forwarding process has counted."""


class FairLimits:
    """The limits of one API, over all of its processes."""

    __slots__ = ("_budgets", "_idle", "_limits", "_long")

    def __init__(
        self,
        limits: ApiLimits,
        counters: SharedCounters,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """``clock`` returns monotonic seconds, the same in all processes."""
        self._limits = limits
        self._budgets: Budgets | None = None
        if limits.client_percent:
            rate, burst = limits.client_percent / 100, limits.client_burst_ms / 1000
            self._budgets = Budgets(rate, burst, counters, clock)
        self._long = counters.counts(LONG)
        self._idle = counters.counts(IDLE)

    def counts(self, client: str) -> bool:
        """Whether this client is limited."""
        return client not in (LOCAL, UNCOUNTED) or (client == LOCAL and self._limits.local_clients)

    def admit(self, client: str) -> None:
        """Raise ``ApiError`` 429 when the client's bucket is empty."""
        wait = 0.0 if self._budgets is None else self._budgets.wait(client)
        if wait > 0:
            raise TOO_MANY_REQUESTS.error().after(wait)

    def charge(self, client: str, seconds: float) -> None:
        """Take working time out of the client's bucket."""
        if self._budgets is not None and self.counts(client):
            self._budgets.charge(client, seconds)

    def enter(self, client: str, *, idle: bool = False) -> None:
        """Begin a long answer; raises ``ApiError`` 503 or 429. The caller must call ``leave``.

        An ``idle`` one waits for an event, and holds its connection meanwhile.
        """
        slots, counted = self._idle if idle else self._long, self.counts(client)
        # Counted first, compared then: two processes cannot both take the last slot.
        slots.add(client if counted else None)
        if not idle and slots.total() > self._limits.long_answers:
            error = TOO_MANY_LONG_ANSWERS
        elif idle and counted and slots.total() > IDLE_SHARE * self._limits.connections:
            error = TOO_MANY_WAITING
        elif counted and slots.of(client) > self._limits.long_answers_per_client:
            error = TOO_MANY_OF_CLIENT
        else:
            return
        self.leave(client, idle=idle)
        raise error.error()

    def leave(self, client: str, *, idle: bool = False) -> None:
        """End a long answer."""
        slots = self._idle if idle else self._long
        slots.add(client if self.counts(client) else None, -1)
