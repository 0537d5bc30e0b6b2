"""Fair limits: how much of the node one client may take, and how many long answers there are.

Each client has a bucket of working time that fills at a steady rate and that its requests empty by
what they cost. A request that finds an empty bucket is refused, and told when to come again. Those
who ask for little never notice; who asks for much gets a part of the node and not all of it.

What lives here: the buckets, the places for long answers. What does not: what a request costs
(``asgi`` measures), and who a client is (``soliton.web.clients``).
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from typing import Final

from soliton.api.errors import TOO_MANY_LONG_ANSWERS, TOO_MANY_OF_CLIENT, TOO_MANY_REQUESTS
from soliton.node.rest_settings import ApiLimits
from soliton.web.clients import LOCAL

LEAST_COST_SECONDS: Final = 50e-6
"""What a request costs besides its handler: reading it, sending the answer."""
SECONDS_PER_BYTE: Final = 30e-9
"""What a long answer costs: making and sending JSON."""
MAX_CLIENTS: Final = 65_536
"""Clients whose buckets are not full; with more, those who came first get a full one."""


class FairLimits:
    """What the clients of one API have taken."""

    __slots__ = ("_burst", "_clock", "_full_at", "_idle", "_limits", "_long", "_rate")

    def __init__(self, limits: ApiLimits, clock: Callable[[], float] = time.monotonic) -> None:
        """``clock`` gives seconds that never go back."""
        self._limits = limits
        self._clock = clock
        self._rate = limits.client_percent / 100
        # How long an empty bucket takes to be full again.
        self._burst = limits.client_burst_ms / 1000 / self._rate if self._rate else 0.0
        self._full_at: dict[str, float] = {}
        self._long: Counter[str] = Counter()
        self._idle: Counter[str] = Counter()

    def counts(self, client: str) -> bool:
        """Whether this client has limits of its own."""
        return client != LOCAL or self._limits.local_clients

    def admit(self, client: str) -> None:
        """Raise ``ApiError`` 429 when the client's bucket is empty."""
        full_at = self._full_at.get(client)
        if full_at is None or not self._rate:
            return
        wait = full_at - self._clock() - self._burst
        if wait > 0:
            raise TOO_MANY_REQUESTS.error().after(wait)

    def charge(self, client: str, seconds: float) -> None:
        """Take working time out of the client's bucket."""
        if not self._rate or not self.counts(client):
            return
        now = self._clock()
        known = self._full_at.get(client)
        if known is None and len(self._full_at) >= MAX_CLIENTS:
            self._make_room(now)
        self._full_at[client] = max(now, known or now) + seconds / self._rate

    def _make_room(self, now: float) -> None:
        self._full_at = {name: full for name, full in self._full_at.items() if full > now}
        while len(self._full_at) >= MAX_CLIENTS:
            del self._full_at[next(iter(self._full_at))]

    def enter(self, client: str, *, idle: bool = False) -> None:
        """Begin a long answer; raises ``ApiError`` 503 or 429. ``leave`` has to follow.

        One that is ``idle`` waits for something to happen. How many of these there may be of all
        clients together is not decided here.
        """
        places = self._idle if idle else self._long
        if not idle and places.total() >= self._limits.long_answers:
            raise TOO_MANY_LONG_ANSWERS.error()
        if self.counts(client) and places[client] >= self._limits.long_answers_per_client:
            raise TOO_MANY_OF_CLIENT.error()
        places[client] += 1

    def leave(self, client: str, *, idle: bool = False) -> None:
        """End a long answer."""
        places = self._idle if idle else self._long
        places[client] -= 1
        if not places[client]:
            del places[client]
