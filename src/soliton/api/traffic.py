"""What an API has been asked: how often each route answered, and with which errors; and what the
processes that serve it use.

What lives here: the counts, which all processes of the API share. What does not: counting
(``asgi``), showing them (``metrics``), the memory (``soliton.web.tallies``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from enum import IntEnum
from typing import TYPE_CHECKING, Final

from soliton.errors import InvariantBroken
from soliton.web import exposition
from soliton.web.tallies import NUMBERS, Tallies

if TYPE_CHECKING:
    from soliton.api.routes import CompiledRoute

_STATUSES: Final = range(600)
"""Where the errors are counted, each at its status."""
_ROUTES: Final = 640
"""Where the first route is counted."""
_MICRO: Final = 1_000_000


class Resource(IntEnum):
    """What a process uses, and where it is counted."""

    CPU_MICROSECONDS = 600
    RESIDENT_BYTES = 601
    OPEN_FILES = 602
    FILE_LIMIT = 603


LENT: Final = (Resource.RESIDENT_BYTES, Resource.OPEN_FILES, Resource.FILE_LIMIT)
"""What a process uses only as long as it lives."""

_READ: Final[dict[Resource, Callable[[], int | None]]] = {
    Resource.CPU_MICROSECONDS: lambda: round(exposition.cpu_seconds() * _MICRO),
    Resource.RESIDENT_BYTES: exposition.resident_bytes,
    Resource.OPEN_FILES: exposition.open_files,
    Resource.FILE_LIMIT: exposition.file_limit,
}


class Traffic:
    """The counts of one application; each of its routes has its own."""

    __slots__ = ("_cpu_before", "_routes", "calls", "tallies")

    def __init__(self, tallies: Tallies | None = None, *, counts_calls: bool = True) -> None:
        """Without ``counts_calls`` requests have been counted in the process they came from."""
        self.tallies = Tallies() if tallies is None else tallies
        own = self.tallies.own[_ROUTES:]
        self.calls = own if counts_calls else memoryview(bytearray(own.nbytes)).cast("q")
        self._routes: Sequence[CompiledRoute] = ()
        # Another process may have had this lane.
        self._cpu_before = self.tallies.own[Resource.CPU_MICROSECONDS]

    def count_routes(self, routes: Sequence[CompiledRoute]) -> None:
        """Say which routes there are: each has the place in ``calls`` that it has here."""
        if len(routes) > NUMBERS - _ROUTES:
            raise InvariantBroken("there are more routes than can be counted")
        self._routes = routes

    def count_error(self, status: int) -> None:
        """One more request has ended in an error with a code."""
        self.tallies.own[status] += 1

    def called(self) -> Iterator[tuple[CompiledRoute, int]]:
        """The routes that have been asked, and how often, in all processes."""
        for number, route in enumerate(self._routes, _ROUTES):
            if calls := self.tallies.sum(number):
                yield route, calls

    def errors(self) -> Iterator[tuple[int, int]]:
        """Statuses of errors, and how often there was one, in all processes."""
        for status in _STATUSES:
            if count := self.tallies.sum(status):
                yield status, count

    def used(self, resource: Resource) -> int | None:
        """What all processes use, the others as they noted it last; ``None`` where the system
        does not tell.
        """
        known = self._note(resource)
        return self.tallies.sum(resource) if known else None

    def note_use(self) -> None:
        """Note what this process uses, for the others."""
        for resource in Resource:
            self._note(resource)

    def _note(self, resource: Resource) -> bool:
        found = _READ[resource]()
        if found is not None:
            before = self._cpu_before if resource is Resource.CPU_MICROSECONDS else 0
            self.tallies.own[resource] = before + found
        return found is not None
