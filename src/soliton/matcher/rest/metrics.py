"""``/metrics``: metrics of the running matcher.

What lives here: the list of metrics. What does not: counting (each part does its own), and the text
format (``soliton.web.prometheus``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from soliton.matcher.records import ServiceStatus
from soliton.matcher.rest.answers import Answer
from soliton.matcher.rest.requests import Request
from soliton.matcher.rest.routes import Route, row, table
from soliton.matcher.service import Matcher
from soliton.web.prometheus import CONTENT_TYPE, GAUGE, Figure, Sample, text_form


def figure(name: str, kind: str, meaning: str, value: float) -> Figure:
    """A metric with one value."""
    return Figure(name, kind, meaning, (Sample(value),))


def core_metrics(core: Matcher) -> list[Figure]:
    """The metrics of the service itself."""
    offsets, books = core.offsets, core.engine.books()
    waiting, given_up = core.settlement.unsettled_counts()
    working = core.status is ServiceStatus.WORKING
    return [
        figure("soliton_matcher_up", GAUGE, "1 while the matcher works", int(working)),
        figure("soliton_matcher_offset_applied", GAUGE, "last command applied", offsets.current),
        figure("soliton_matcher_offset_stored", GAUGE, "last command stored", offsets.last),
        figure(
            "soliton_matcher_offset_snapshot", GAUGE, "newest snapshot", offsets.newest_snapshot
        ),
        figure(
            "soliton_matcher_commands_quarantined",
            *(GAUGE, "commands that could not be applied and were skipped"),
            len(core.quarantine),
        ),
        figure(
            "soliton_matcher_executions_unsettled",
            *(GAUGE, "executions neither executed on the chain nor in the node's pool", waiting),
        ),
        figure(
            "soliton_matcher_executions_given_up",
            *(GAUGE, "executions that will not be settled", given_up),
        ),
        figure(
            "soliton_matcher_finalized_height",
            *(GAUGE, "height of the last block that no fork replaces", core.settlement.final),
        ),
        figure("soliton_matcher_books", GAUGE, "order books", len(books)),
        figure("soliton_matcher_orders_resting", GAUGE, "orders in books", sum(map(len, books))),
    ]


def metrics_route(more: Callable[[], Iterable[Figure]]) -> Route:
    """The route; ``more`` returns further metrics."""

    async def metrics(request: Request) -> Answer:
        """All metrics."""
        body = text_form([*core_metrics(request.core), *more()])
        return Answer(body, content_type=CONTENT_TYPE)

    (route,) = table("debug", "",
        row("GET /metrics when=always", metrics, "Prometheus metrics",
            "soliton_matcher_up 1\n", content_type="text/plain"),
    )  # fmt: skip
    return route
