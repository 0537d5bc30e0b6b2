"""What an API has been asked: how often each route answered, and with which errors; and what the
processes that serve it use.

What lives here: the counts, which all processes of the API share. What does not: counting
(``application``), showing them (``metrics``), the memory (``soliton.web.shared_counters``).
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
"""Below this number the errors are counted, each at its status."""
_ROUTES: Final = 640
"""Where the first route is counted."""
_MICRO: Final = 1_000_000


class Resource(IntEnum):
    """What a process uses, and where it is counted."""

    CPU_MICROSECONDS = 600
    RESIDENT_BYTES = 601
    OPEN_FILES = 602
    FILE_LIMIT = 603


GAUGES: Final = (Resource.RESIDENT_BYTES, Resource.OPEN_FILES, Resource.FILE_LIMIT)
"""What a process uses only as long as it lives."""
_FRESH_SECONDS: Final = 0.5
"""How long that is taken for true: to ask the system costs as much as all other figures."""

_READ: Final[dict[Resource, Callable[[], int | None]]] = {
    Resource.CPU_MICROSECONDS: lambda: round(prometheus.cpu_seconds() * _MICRO),
    Resource.RESIDENT_BYTES: prometheus.resident_bytes,
    Resource.OPEN_FILES: prometheus.open_files,
    Resource.FILE_LIMIT: prometheus.file_limit,
}


class Traffic:
    """The counts of one application; each of its routes has its own."""

    __slots__ = ("_cpu_before", "_known", "_look_again_at", "_routes", "calls", "counters")

    def __init__(
        self, counters: SharedCounters | None = None, *, counts_calls: bool = True
    ) -> None:
        """Without ``counts_calls`` requests have been counted in the process they came from."""
        self.counters = SharedCounters() if counters is None else counters
        own = self.counters.own[_ROUTES:]
        self.calls = own if counts_calls else memoryview(bytearray(own.nbytes)).cast("q")
        self._routes: Sequence[tuple[str, str]] = ()
        self._look_again_at = dict.fromkeys(Resource, 0.0)
        self._known = dict.fromkeys(Resource, False)
        # Another process may have had this slot.
        self._cpu_before = self.counters.own[Resource.CPU_MICROSECONDS]

    def count_routes(self, routes: Sequence[tuple[str, str]]) -> None:
        """Say which routes there are, by methods and path: each has the place in ``calls`` that it
        has here.
        """
        if len(routes) > NUMBERS - _ROUTES:
            raise InvariantBroken("there are more routes than can be counted")
        self._routes = routes

    def count_error(self, status: int) -> None:
        """One more request has ended in an error with a code."""
        self.counters.own[status] += 1

    def called(self) -> Iterator[tuple[str, str, int]]:
        """Methods and path of what has been asked, and how often, in all processes."""
        for number, (methods, path) in enumerate(self._routes, _ROUTES):
            if calls := self.counters.sum(number):
                yield methods, path, calls

    def errors(self) -> Iterator[tuple[int, int]]:
        """Statuses of errors, and how often there was one, in all processes."""
        for status, count in enumerate(self.counters.sums(_STATUSES)):
            if count:
                yield status, count

    def used(self, resource: Resource) -> int | None:
        """What all processes use, the others as they noted it last; ``None`` where the system
        does not tell.
        """
        now = time.monotonic()
        if now >= self._look_again_at[resource]:
            self._known[resource] = self._note(resource)
            if resource in GAUGES:
                self._look_again_at[resource] = now + _FRESH_SECONDS
        known = self._known[resource]
        return self.counters.sum(resource) if known else None

    def note_use(self) -> None:
        """Note what this process uses, for the others."""
        for resource in Resource:
            self._note(resource)

    def _note(self, resource: Resource) -> bool:
        found = _READ[resource]()
        if found is not None:
            before = self._cpu_before if resource is Resource.CPU_MICROSECONDS else 0
            self.counters.own[resource] = before + found
        return found is not None
