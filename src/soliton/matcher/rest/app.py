"""The whole interface of a matcher: which routes there are, and the application made of them.

What lives here: the list of groups and its order, which is the order of precedence. What does not:
the routes.
"""

from __future__ import annotations

from soliton.matcher.market_data import MarketData
from soliton.matcher.rest import (
    balances,
    books,
    cancelling,
    debug,
    history,
    market,
    metrics,
    pages,
    placing,
    service_info,
)
from soliton.matcher.rest.application import Application
from soliton.matcher.rest.books import DEPTH_ROUTE, BookAnswers
from soliton.matcher.rest.history import SIGNED_ORDER_ROUTE
from soliton.matcher.rest.http_gate import FAILURES, OVER_LIMIT, REQUESTS
from soliton.matcher.rest.metrics import figure
from soliton.matcher.rest.routes import Route
from soliton.matcher.service import Matcher
from soliton.matcher.websocket.hub import Hub
from soliton.web.prometheus import COUNTER, GAUGE, Figure
from soliton.web.shared_counters import SharedCounters


def build_app(
    core: Matcher, counters: SharedCounters | None = None, *, behind: bool = False
) -> Application:
    """The application of a matcher, to which it listens; ``behind`` as for ``HttpGate``."""
    data, kept, hub = MarketData(core), BookAnswers(), Hub(core)
    for listener in (data, kept):
        core.effects.subscribe(listener)
    shared = counters or SharedCounters()

    def figures() -> list[Figure]:
        requests, limited, failures = map(shared.sum, (REQUESTS, OVER_LIMIT, FAILURES))
        return [
            figure("soliton_matcher_requests_total", COUNTER, "requests answered", requests),
            figure("soliton_matcher_failures_total", COUNTER, "faults of ours", failures),
            figure("soliton_matcher_limited_total", COUNTER, "requests over a limit", limited),
            figure("soliton_matcher_executions_total", COUNTER, "executions", data.executions),
            figure("soliton_matcher_websockets", GAUGE, "open WebSocket connections", len(hub)),
        ]

    routes = documented_routes(data, hub, metrics.metrics_route(figures))
    all_routes = (*routes, *pages.page_routes(routes))
    return Application(core, all_routes, kept, hub, shared, behind=behind)


def documented_routes(data: MarketData, hub: Hub, *more: Route) -> tuple[Route, ...]:
    """All routes but the pages. The signed order comes before the order book: both have two
    segments, and the signature decides.
    """
    return (
        *service_info.ROUTES,
        *placing.ROUTES,
        *cancelling.ROUTES,
        *books.ROUTES,
        SIGNED_ORDER_ROUTE,
        DEPTH_ROUTE,
        *history.ROUTES,
        *balances.ROUTES,
        *market.GatheredRoutes(data).routes(),
        *hub.routes(),
        *debug.ROUTES,
        *more,
    )
