"""``/livez``, ``/readyz`` and ``/metrics`` of every service, and the metrics that all of them have.

``/livez`` reports that the process answers; ``/readyz`` whether the service can do its work, with
the reasons if it cannot, and status 503 then; ``/metrics`` is in Prometheus's text format. Names
follow https://prometheus.io/docs/practices/naming/.

What lives here: declaring metrics, the answers, and the metrics of requests and of the process.
What does not: the metrics and the readiness of one service (a module ``metrics`` of each).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from typing import Final, Generic, NamedTuple, TypeVar

import msgspec

from soliton import __version__
from soliton.web.answers import APPLICATION_JSON, Answer, Awaited, BodyLimits, Unread, Whole
from soliton.web.cors import CLOSED
from soliton.web.prometheus import (
    CONTENT_TYPE,
    COUNTER,
    GAUGE,
    HISTOGRAM,
    Figure,
    Sample,
    histogram_samples,
    text_form,
)
from soliton.web.request import Request
from soliton.web.traffic import BUCKETS, Resource, RouteName, Traffic

LIVEZ: Final = "/livez"
READYZ: Final = "/readyz"
METRICS: Final = "/metrics"
PATHS: Final = (LIVEZ, READYZ, METRICS)
ROUTES: Final = tuple(RouteName("GET", path) for path in PATHS)
"""The names of the routes, for ``Traffic``."""
READY: Final = "ready"
UNREADY: Final = "unready"
UNAVAILABLE: Final = 503
FRESH_SECONDS: Final = 1.0
"""Readiness is checked at most so often, however many clients ask."""
CHECK_SECONDS: Final = 5.0
"""The timeout of a check."""
_MICRO: Final = 1_000_000
_NO_METHOD: Final = Whole(b"", status=405, headers=((b"allow", b"GET, HEAD"),))
_NOT_FOUND: Final = Whole(b"/livez, /readyz and /metrics are here.", status=404)
_TOO_LONG: Final = Whole(b"A request has no body here.", status=413)

S = TypeVar("S")


class Metric(NamedTuple, Generic[S]):
    """A metric, and how it is read from the subject of its table. ``kind`` as of ``Figure``."""

    name: str
    kind: str
    help: str
    read: Callable[[S], Iterable[Sample]]
    labels: tuple[str, ...] = ()


def figures(metrics: Iterable[Metric[S]], subject: S) -> Iterator[Figure]:
    """The current values of metrics."""
    for metric in metrics:
        yield Figure(metric.name, metric.kind, metric.help, metric.read(subject))


def one(read: Callable[[S], float]) -> Callable[[S], Iterable[Sample]]:
    """Read a metric that is one value."""
    return lambda subject: (Sample(read(subject)),)


# --- requests and processes -----------------------------------------------------------------------


def _requests(traffic: Traffic) -> Iterator[Sample]:
    for route, calls in traffic.called():
        yield Sample(calls, {"methods": route.methods, "route": route.path})


def _times(traffic: Traffic) -> Iterator[Sample]:
    for route, counts, seconds in traffic.times():
        labels = {"methods": route.methods, "route": route.path}
        yield from histogram_samples(BUCKETS, counts, seconds, labels)


def _errors(traffic: Traffic) -> Iterator[Sample]:
    for status, count in traffic.errors():
        yield Sample(count, {"status": str(status)})


def _used(resource: Resource, unit: int = 1) -> Callable[[Traffic], Iterable[Sample]]:
    def read(traffic: Traffic) -> Iterable[Sample]:
        used = traffic.used(resource)
        if used is not None:
            yield Sample(used / unit if unit > 1 else used)

    return read


HTTP_METRICS: Final[tuple[Metric[Traffic], ...]] = (
    Metric("soliton_http_requests_total", COUNTER, "Requests, by route", _requests,
           ("methods", "route")),
    Metric("soliton_http_request_duration_seconds", HISTOGRAM,
           "Time from a request to the beginning of its answer, by route; without a route what "
           "matches none", _times, ("methods", "route", "le")),
    Metric("soliton_http_errors_total", COUNTER, "Requests that got an error, by HTTP status",
           _errors, ("status",)),
)  # fmt: skip
PROCESS_METRICS: Final[tuple[Metric[Traffic], ...]] = (
    Metric("process_cpu_seconds_total", COUNTER, "CPU time of the process, user and system",
           _used(Resource.CPU_MICROSECONDS, _MICRO)),
    Metric("process_resident_memory_bytes", GAUGE, "Memory in use, pages of the store included",
           _used(Resource.RESIDENT_BYTES)),
    Metric("process_open_fds", GAUGE, "Open files and connections", _used(Resource.OPEN_FILES)),
    Metric("process_max_fds", GAUGE, "Limit on open files", _used(Resource.FILE_LIMIT)),
)  # fmt: skip


class _Started(NamedTuple):
    """A service: its name, and the time of its start in seconds."""

    service: str
    at: float


SERVICE_METRICS: Final[tuple[Metric[_Started], ...]] = (
    Metric("soliton_build_info", GAUGE, "Always 1; the labels are the service and its version",
           lambda it: (Sample(1, {"version": __version__, "service": it.service}),),
           ("version", "service")),
    Metric("soliton_start_time_seconds", GAUGE, "Start time of the service, seconds since 1970",
           one(lambda it: it.at)),
)  # fmt: skip


# --- the answers ----------------------------------------------------------------------------------


class Health(NamedTuple):
    """Why a service is not ready, nothing if it is, and facts for the operator."""

    reasons: list[str]
    facts: Mapping[str, object] = {}


class Monitor:
    """Answers the three paths for one service. Use from one event loop."""

    def __init__(
        self,
        service: str,
        traffic: Traffic,
        check: Callable[[], Awaitable[Health]],
        read: Callable[[], Iterable[Figure]],
        first_route: int = 1,
    ) -> None:
        """``check`` returns the health, ``read`` the service's own metrics; the paths have the
        numbers from ``first_route`` on in ``traffic``.
        """
        self._started = _Started(service, time.time())
        self._traffic = traffic
        self._check = check
        self._read = read
        self._first = first_route
        self._found: asyncio.Task[Health] | None = None
        self._checked_at = 0.0

    def respond(self, request: Request) -> Answer | None:
        """The answer to a request for one of the paths, ``None`` for another."""
        if request.path not in PATHS:
            return None
        request.route = self._first + PATHS.index(request.path)
        self._traffic.begin(request.route)
        if request.method not in ("GET", "HEAD"):
            return _NO_METHOD
        if request.path == LIVEZ:
            return self.alive
        return self.metrics() if request.path == METRICS else Awaited(self.readiness())

    alive: Final = Whole(b'{"status":"alive"}', APPLICATION_JSON)

    def metrics(self) -> Whole:
        """All metrics of the service. Some are what the check of readiness finds, which begins anew
        if it is old, whether anybody asks for readiness or not.
        """
        self._checked()
        return Whole(text_form(self.all_figures()), CONTENT_TYPE)

    def all_figures(self) -> Iterator[Figure]:
        """The common metrics, and those of the service."""
        yield from figures(SERVICE_METRICS, self._started)
        yield from self._read()
        yield from figures(HTTP_METRICS, self._traffic)
        yield from figures(PROCESS_METRICS, self._traffic)

    async def readiness(self) -> Whole:
        """Whether the service is ready, as of at most ``FRESH_SECONDS`` ago."""
        reasons, facts = await asyncio.shield(self._checked())
        body = {"status": UNREADY if reasons else READY, "reasons": reasons, **facts}
        return Whole(msgspec.json.encode(body), APPLICATION_JSON, UNAVAILABLE if reasons else 200)

    def _checked(self) -> asyncio.Task[Health]:
        """The last check, or a new one if that is old."""
        is_old = time.monotonic() - self._checked_at > FRESH_SECONDS
        if self._found is None or (self._found.done() and is_old):
            self._found = asyncio.create_task(self._look())
        return self._found

    async def _look(self) -> Health:
        try:
            async with asyncio.timeout(CHECK_SECONDS):
                return await self._check()
        except TimeoutError:
            return Health([f"the check of readiness has not ended in {CHECK_SECONDS:g} s"])
        finally:
            self._checked_at = time.monotonic()


class MonitorService:
    """A service that has the three paths alone, for a program that serves nothing else."""

    request_class = Request
    cors = CLOSED
    body_limits = BodyLimits(0)

    def __init__(
        self,
        service: str,
        check: Callable[[], Awaitable[Health]],
        read: Callable[[], Iterable[Figure]],
    ) -> None:
        self.traffic = Traffic(routes=ROUTES)
        self._monitor = Monitor(service, self.traffic, check, read)

    def respond(self, request: Request) -> Answer:
        """See ``soliton.web.answers.Service``."""
        return self._monitor.respond(request) or _NOT_FOUND

    def refuse(self, _request: Request, _reason: Unread) -> Whole:
        """See ``soliton.web.answers.Service``."""
        return _TOO_LONG
