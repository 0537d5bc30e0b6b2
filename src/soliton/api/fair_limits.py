"""Fair limits: how much of the node one client may take, and how many long answers there are.

Each client has a budget of working time (``soliton.web.budgets``), which all processes of an API
share. A request over it is refused, and told when to come again. To empty the bucket of somebody
else's cell takes working time of the node, of which there is so much and no more: with the usual
limits four buckets for each core.

What lives here: whose time counts, the places for long answers. What does not: what a request costs
(``application`` measures), and who a client is (``soliton.web.clients``).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from soliton.api.errors import TOO_MANY_LONG_ANSWERS, TOO_MANY_OF_CLIENT, TOO_MANY_REQUESTS
from soliton.node.rest_settings import ApiLimits
from soliton.web.budgets import Budgets
from soliton.web.clients import LOCAL
from soliton.web.shared_counters import IDLE, LONG, SharedCounters

LEAST_COST_SECONDS: Final = 50e-6
"""What a request costs besides its handler: reading it, sending the answer."""
SECONDS_PER_BYTE: Final = 30e-9
"""What a long answer costs: making and sending JSON."""
UNCOUNTED: Final = "-"
"""In place of a client: who asks has been counted before."""


class FairLimits:
    """What the clients of one API have taken, of all of its processes."""

    __slots__ = ("_budgets", "_idle", "_limits", "_long")

    def __init__(
        self,
        limits: ApiLimits,
        counters: SharedCounters,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """``clock`` gives seconds that never go back, the same in all processes."""
        self._limits = limits
        self._budgets: Budgets | None = None
        if limits.client_percent:
            rate, burst = limits.client_percent / 100, limits.client_burst_ms / 1000
            self._budgets = Budgets(rate, burst, counters, clock)
        self._long = counters.counts(LONG)
        self._idle = counters.counts(IDLE)

    def counts(self, client: str) -> bool:
        """Whether this client has limits of its own."""
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
