"""The whole interface of a matcher: its routes, and the application made of them.

What lives here: the list of route groups, in the order of precedence. What does not: the routes.
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
    """The application of a matcher, subscribed to its events; ``behind`` as for ``HttpGate``."""
    data, cache, hub = MarketData(core), BookAnswers(), Hub(core)
    core.effects.subscribe(data)
    core.effects.subscribe(cache)
    shared = counters or SharedCounters()

    def figures() -> list[Figure]:
        requests, limited, failures = map(shared.sum, (REQUESTS, OVER_LIMIT, FAILURES))
        return [
            figure("soliton_matcher_requests_total", COUNTER, "requests answered", requests),
            figure("soliton_matcher_failures_total", COUNTER, "internal errors", failures),
            figure("soliton_matcher_limited_total", COUNTER, "requests over a limit", limited),
            figure("soliton_matcher_executions_total", COUNTER, "executions", data.executions),
            figure("soliton_matcher_websockets", GAUGE, "open WebSocket connections", len(hub)),
        ]

    routes = documented_routes(data, hub, metrics.metrics_route(figures))
    all_routes = (*routes, *pages.page_routes(routes))
    return Application(core, all_routes, cache, hub, shared, behind=behind)


def documented_routes(data: MarketData, hub: Hub, *more: Route) -> tuple[Route, ...]:
    """All routes except the pages. The route of a signed order precedes that of an order book: both
    have two segments, and the signature decides.
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
