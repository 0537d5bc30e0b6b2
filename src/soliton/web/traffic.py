"""Counters of a service: requests, answers and their times by route, errors, and resources.

What lives here: the counters, which all processes of a service share. What does not: exporting
(``monitoring``), shared memory (``shared_counters``).
"""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from enum import IntEnum
from typing import Final, NamedTuple

from soliton.errors import InvariantBroken
from soliton.web import prometheus
from soliton.web.shared_counters import NUMBERS, SharedCounters

BUCKETS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Upper bounds of the times that are told apart, in seconds: from an answer of the cache to half of
the longest handler.
"""
MAX_ROUTES: Final = 512
UNCOUNTED: Final = -1
"""The route of a request that another process counts."""

_MICRO: Final = 1_000_000
_STATUSES: Final = 600
"""Numbers below this one count errors; the number is the status."""
_CALLS: Final = 640
"""The number of requests of the first route."""
_TIMES: Final = _CALLS + MAX_ROUTES
"""The first number about the answers of the first route: one for each bucket, one for longer
answers, and the sum of microseconds.
"""
_TIMES_OF_ROUTE: Final = len(BUCKETS) + 2
_SUM: Final = len(BUCKETS) + 1
assert _TIMES + MAX_ROUTES * _TIMES_OF_ROUTE <= NUMBERS


class Resource(IntEnum):
    """A resource of a process; the value is its slot."""

    CPU_MICROSECONDS = 600
    RESIDENT_BYTES = 601
    OPEN_FILES = 602
    FILE_LIMIT = 603


GAUGES: Final = (Resource.RESIDENT_BYTES, Resource.OPEN_FILES, Resource.FILE_LIMIT)
"""Resources that count only while the process lives."""
_FRESH_SECONDS: Final = 0.5
"""Gauges are cached for this long: reading them costs as much as all other metrics."""

_READ: Final[dict[Resource, Callable[[], int | None]]] = {
    Resource.CPU_MICROSECONDS: lambda: round(prometheus.cpu_seconds() * _MICRO),
    Resource.RESIDENT_BYTES: prometheus.resident_bytes,
    Resource.OPEN_FILES: prometheus.open_files,
    Resource.FILE_LIMIT: prometheus.file_limit,
}


class RouteName(NamedTuple):
    """The methods and the path template of a route, as labels."""

    methods: str
    path: str


NO_ROUTE: Final = RouteName("", "")
"""Requests that no route matches."""


class RouteTimes(NamedTuple):
    """The answers of a route: their numbers by bucket, with the longer ones last, and the sum of
    their times in seconds.
    """

    route: RouteName
    counts: tuple[int, ...]
    seconds: float


class Traffic:
    """The counters of one service."""

    __slots__ = ("_cpu_before", "_known", "_numbers", "_refresh_at", "_routes", "counters")

    def __init__(
        self,
        counters: SharedCounters | None = None,
        routes: Sequence[RouteName] = (),
        *,
        counts_calls: bool = True,
    ) -> None:
        """Without ``counts_calls`` requests are not counted: the worker that forwards them does."""
        self.counters = SharedCounters() if counters is None else counters
        own = self.counters.own
        self._numbers = own if counts_calls else memoryview(bytearray(own.nbytes)).cast("q")
        self._routes: tuple[RouteName, ...] = (NO_ROUTE,)
        self._refresh_at = dict.fromkeys(Resource, 0.0)
        self._known = dict.fromkeys(Resource, False)
        # An earlier process may have used these counters.
        self._cpu_before = self.counters.own[Resource.CPU_MICROSECONDS]
        self.count_routes(routes)

    def count_routes(self, routes: Sequence[RouteName]) -> None:
        """Set the routes; the first has the number 1, and 0 is for requests without a route."""
        self._routes = (NO_ROUTE, *routes)
        if len(self._routes) > MAX_ROUTES:
            raise InvariantBroken("there are more routes than can be counted")

    def begin(self, route: int) -> None:
        """Count a request of a route."""
        self._numbers[_CALLS + route] += 1

    def answer(self, route: int, seconds: float, status: int) -> None:
        """Count the answer to a request of a route, which began so long ago."""
        numbers = self._numbers
        at = _TIMES + route * _TIMES_OF_ROUTE
        numbers[at + bisect_left(BUCKETS, seconds)] += 1
        numbers[at + _SUM] += int(seconds * _MICRO)
        if 400 <= status < _STATUSES:
            numbers[status] += 1

    def called(self) -> Iterator[tuple[RouteName, int]]:
        """Each route with any requests, and their number, over all processes."""
        for number, route in enumerate(self._routes[1:], _CALLS + 1):
            if calls := self.counters.sum(number):
                yield route, calls

    def times(self) -> Iterator[RouteTimes]:
        """The times of each route with any answers, over all processes."""
        for number, route in enumerate(self._routes):
            at = _TIMES + number * _TIMES_OF_ROUTE
            *counts, micros = map(self.counters.sum, range(at, at + _TIMES_OF_ROUTE))
            if any(counts):
                yield RouteTimes(route, tuple(counts), micros / _MICRO)

    def errors(self) -> Iterator[tuple[int, int]]:
        """Statuses of errors and their numbers, over all processes."""
        for status, count in enumerate(self.counters.sums(_STATUSES)):
            if count:
                yield status, count

    def used(self, resource: Resource) -> int | None:
        """The use of a resource over all processes (of other processes, as of their last
        ``note_use``); ``None`` where the system does not report it.
        """
        now = time.monotonic()
        if now >= self._refresh_at[resource]:
            self._known[resource] = self._note(resource)
            if resource in GAUGES:
                self._refresh_at[resource] = now + _FRESH_SECONDS
        return self.counters.sum(resource) if self._known[resource] else None

    def note_use(self) -> None:
        """Publish the resources of this process to the others."""
        for resource in Resource:
            self._note(resource)

    def _note(self, resource: Resource) -> bool:
        found = _READ[resource]()
        if found is not None:
            before = self._cpu_before if resource is Resource.CPU_MICROSECONDS else 0
            self.counters.own[resource] = before + found
        return found is not None
