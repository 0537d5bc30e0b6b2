"""``/metrics``: figures about the running matcher, in the format of Prometheus.

What lives here: which figures there are. What does not: counting (each part counts for itself).

Source: https://prometheus.io/docs/instrumenting/exposition_formats/
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from soliton.matcher.core import MatcherCore
from soliton.matcher.records import ServiceStatus
from soliton.matcher.rest.answers import Answer
from soliton.matcher.rest.requests import Request
from soliton.matcher.rest.routes import Route

CONTENT_TYPE: Final = b"text/plain; version=0.0.4; charset=utf-8"


class Metric(NamedTuple):
    """One figure."""

    name: str
    kind: str
    help: str
    value: int | float


def core_metrics(core: MatcherCore) -> list[Metric]:
    """What the service itself knows."""
    offsets, books = core.offsets, core.engine.books()
    working = core.status is ServiceStatus.WORKING
    return [
        Metric("soliton_matcher_up", "gauge", "1 while the matcher works", int(working)),
        Metric("soliton_matcher_offset_applied", "gauge", "last command applied", offsets.current),
        Metric("soliton_matcher_offset_stored", "gauge", "last command stored", offsets.last),
        Metric(
            "soliton_matcher_offset_snapshot", "gauge", "newest snapshot", offsets.newest_snapshot
        ),
        Metric("soliton_matcher_books", "gauge", "order books", len(books)),
        Metric("soliton_matcher_orders_resting", "gauge", "orders in books", sum(map(len, books))),
    ]


def text_of(metrics: Iterable[Metric]) -> bytes:
    """The figures as they are scraped."""
    lines = []
    for metric in metrics:
        lines.append(f"# HELP {metric.name} {metric.help}")
        lines.append(f"# TYPE {metric.name} {metric.kind}")
        lines.append(f"{metric.name} {metric.value}")
    return ("\n".join(lines) + "\n").encode("ascii")


def metrics_route(more: Callable[[], Iterable[Metric]]) -> Route:
    """The route, with further figures of the parts around it."""

    async def metrics(request: Request) -> Answer:
        """All figures."""
        body = text_of([*core_metrics(request.core), *more()])
        return Answer(body, content_type=CONTENT_TYPE)

    return Route(
        "GET", "/metrics", metrics, "debug", "Figures for Prometheus", barrier=False,
        example="soliton_matcher_up 1\n", content_type="text/plain",
    )  # fmt: skip
