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
from soliton.matcher.rest.routes import Route
from soliton.matcher.service import Matcher
from soliton.matcher.websocket.hub import Hub
from soliton.web.shared_counters import SharedCounters
from soliton.web.traffic import Traffic


def build_app(
    core: Matcher, counters: SharedCounters | None = None, *, behind: bool = False
) -> Application:
    """The application of a matcher, subscribed to its events; ``behind`` as for ``HttpGate``."""
    data, cache, hub = MarketData(core), BookAnswers(), Hub(core)
    core.effects.subscribe(data)
    core.effects.subscribe(cache)
    traffic = Traffic(counters)
    monitored = metrics.Monitored(core, data, hub, traffic)
    routes = documented_routes(data, hub, *metrics.monitoring_routes(monitored))
    all_routes = (*routes, *pages.page_routes(routes))
    return Application(core, all_routes, cache, hub, traffic, behind=behind)


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
