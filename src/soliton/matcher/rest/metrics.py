"""``/livez``, ``/readyz`` and ``/metrics`` of a matcher.

What lives here: the list of metrics, and why a matcher is not ready. What does not: counting (each
part does its own), the metrics that every service has, and the answers
(``soliton.web.monitoring``).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from soliton.matcher.market_data import MarketData
from soliton.matcher.records import ServiceStatus
from soliton.matcher.rest.answers import Answer
from soliton.matcher.rest.http_gate import FAILURES, OVER_LIMIT, REQUESTS
from soliton.matcher.rest.requests import Request
from soliton.matcher.rest.routes import Route, row, table
from soliton.matcher.service import Matcher
from soliton.matcher.websocket.hub import Hub
from soliton.web.answers import Whole
from soliton.web.monitoring import Health, Metric, Monitor, figures, one
from soliton.web.prometheus import COUNTER, GAUGE, Figure, Sample
from soliton.web.traffic import Traffic


class Monitored(NamedTuple):
    """What is read: the service, its market data and its WebSockets, and the counters that its
    processes share.
    """

    core: Matcher
    data: MarketData
    hub: Hub
    traffic: Traffic

    def figures(self) -> Iterator[Figure]:
        """The metrics of the matcher itself."""
        return figures(METRICS, self)

    async def check(self) -> Health:
        """Not ready: it starts or stops, its node is silent or on another chain, or stored commands
        are not applied yet.
        """
        core, reasons = self.core, []
        if core.status is ServiceStatus.STARTING:
            reasons.append(
                "the matcher starts: it waits for its node, or reads its journal; the log has which"
            )
        elif core.status is ServiceStatus.STOPPING:
            reasons.append("the matcher stops")
        elif not core.session.trusted.is_set():
            reasons.append("the node lacks blocks that were seen before: see node.url")
        elif core.is_node_silent:
            reasons.append("the node does not answer, orders are rejected: see node.url")
        offsets = core.offsets
        facts = {"offset": offsets.current, "lastOffset": offsets.last}
        return Health(reasons, facts)


def _counted(number: int) -> Metric[Monitored]:
    name, meaning = _COUNTED[number]
    return Metric(name, COUNTER, meaning, one(lambda it: it.traffic.counters.sum(number)))


_COUNTED: Final = {
    REQUESTS: ("soliton_matcher_requests_total", "Requests answered"),
    FAILURES: ("soliton_matcher_failures_total", "Internal errors"),
    OVER_LIMIT: ("soliton_matcher_limited_total", "Requests over a limit"),
}


def _unsettled(it: Monitored) -> Iterator[Sample]:
    yield Sample(it.core.settlement.unsettled_counts()[0])


def _given_up(it: Monitored) -> Iterator[Sample]:
    yield Sample(it.core.settlement.unsettled_counts()[1])


METRICS: Final[tuple[Metric[Monitored], ...]] = (
    Metric("soliton_matcher_up", GAUGE, "1 while the matcher accepts orders",
           one(lambda it: int(it.core.status is ServiceStatus.WORKING))),
    Metric("soliton_matcher_node_up", GAUGE,
           "1 while the node answers and has the blocks that were seen before",
           one(lambda it: int(not it.core.is_node_silent))),
    Metric("soliton_matcher_offset_applied", GAUGE, "The last applied command of the journal",
           one(lambda it: it.core.offsets.current)),
    Metric("soliton_matcher_offset_stored", GAUGE, "The last stored command of the journal",
           one(lambda it: it.core.offsets.last)),
    Metric("soliton_matcher_offset_snapshot", GAUGE, "The command of the newest snapshot",
           one(lambda it: it.core.offsets.newest_snapshot)),
    Metric("soliton_matcher_commands_waiting", GAUGE, "Commands that wait for the journal",
           one(lambda it: it.core.commands_waiting)),
    Metric("soliton_matcher_commands_quarantined", GAUGE,
           "Commands that could not be applied and were skipped",
           one(lambda it: len(it.core.quarantine))),
    Metric("soliton_matcher_executions_unsettled", GAUGE,
           "Executions neither executed on the chain nor in the node's pool", _unsettled),
    Metric("soliton_matcher_executions_given_up", GAUGE, "Executions that will not be settled",
           _given_up),
    Metric("soliton_matcher_books", GAUGE, "Order books",
           one(lambda it: len(it.core.engine.books()))),
    Metric("soliton_matcher_orders_resting", GAUGE, "Orders in books",
           one(lambda it: sum(map(len, it.core.engine.books())))),
    *map(_counted, (REQUESTS, FAILURES, OVER_LIMIT)),
    Metric("soliton_matcher_executions_total", COUNTER, "Executions",
           one(lambda it: it.data.executions)),
    Metric("soliton_matcher_websockets", GAUGE, "Open WebSocket connections",
           one(lambda it: len(it.hub))),
)  # fmt: skip


def _answer(found: Whole) -> Answer:
    return Answer(found.body, found.status, found.content_type, found.headers)


def monitoring_routes(monitored: Monitored) -> tuple[Route, ...]:
    """The routes of one matcher."""
    monitor = Monitor("matcher", monitored.traffic, monitored.check, monitored.figures)

    async def livez(_request: Request) -> Answer:
        """Report that the process answers requests."""
        return _answer(monitor.alive)

    async def readyz(_request: Request) -> Answer:
        """Whether orders are accepted, and the node is there."""
        return _answer(await monitor.readiness())

    async def metrics(_request: Request) -> Answer:
        """All metrics."""
        return _answer(monitor.metrics())

    return table("debug", "",
        row("GET /livez when=always", livez, "Whether the process answers", {"status": "alive"}),
        row("GET /readyz when=always", readyz,
            "Whether the matcher accepts orders; else 503 with the reasons",
            {"status": "ready", "reasons": [], "offset": 1024, "lastOffset": 1024}),
        row("GET /metrics when=always", metrics, "Metrics, for Prometheus",
            "soliton_matcher_up 1\n", content_type="text/plain"),
    )  # fmt: skip
