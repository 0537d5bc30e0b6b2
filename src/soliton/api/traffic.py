"""Counters of an API: requests by route, errors by status, and the resources of its processes.

What lives here: the counters, which all processes of the API share. What does not: counting
(``application``), exporting (``metrics``), shared memory (``soliton.web.shared_counters``).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from enum import IntEnum
from typing import Final

from soliton.errors import InvariantBroken
from soliton.web import prometheus
from soliton.web.shared_counters import NUMBERS, SharedCounters

_STATUSES: Final = 600
"""Slots below this number count errors; the slot is the status."""
_ROUTES: Final = 640
"""The slot of the first route."""
_MICRO: Final = 1_000_000


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


class Traffic:
    """The counters of one application."""

    __slots__ = ("_cpu_before", "_known", "_refresh_at", "_routes", "calls", "counters")

    def __init__(
        self, counters: SharedCounters | None = None, *, counts_calls: bool = True
    ) -> None:
        """Without ``counts_calls`` requests are not counted: the worker that forwards them does."""
        self.counters = SharedCounters() if counters is None else counters
        own = self.counters.own[_ROUTES:]
        self.calls = own if counts_calls else memoryview(bytearray(own.nbytes)).cast("q")
        self._routes: Sequence[tuple[str, str]] = ()
        self._refresh_at = dict.fromkeys(Resource, 0.0)
        self._known = dict.fromkeys(Resource, False)
        # An earlier process may have used these counters.
        self._cpu_before = self.counters.own[Resource.CPU_MICROSECONDS]

    def count_routes(self, routes: Sequence[tuple[str, str]]) -> None:
        """Set the methods and paths of the routes, in the order of ``calls``."""
        if len(routes) > NUMBERS - _ROUTES:
            raise InvariantBroken("there are more routes than can be counted")
        self._routes = routes

    def count_error(self, status: int) -> None:
        """Count an error response."""
        self.counters.own[status] += 1

    def called(self) -> Iterator[tuple[str, str, int]]:
        """Methods, path and number of requests of each route with any, over all processes."""
        for number, (methods, path) in enumerate(self._routes, _ROUTES):
            if calls := self.counters.sum(number):
                yield methods, path, calls

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
