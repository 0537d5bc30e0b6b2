"""The matcher's application: handling admitted requests.

Two routes carry nearly all of the load and have a fast path here: the order book, whose encoded
responses are cached until the book changes, and placing an order.

What lives here: dispatch, API keys, the timeout, and turning exceptions into responses. What does
not: limits on clients (``http_gate``), the routes.

Sources: wavesplatform/matcher
``dex/src/main/scala/com/wavesplatform/dex/api/http/CompositeHttpService.scala``,
``directives/ProtectDirective.scala``.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Final

from soliton.chain.orders import Order
from soliton.matcher.errors import DatabaseProblem, NodeUnavailable
from soliton.matcher.log_throttle import throttled
from soliton.matcher.records import ServiceStatus
from soliton.matcher.rest.answers import (
    FAULT,
    NOT_FOUND,
    STRING_MEMBERS,
    Answer,
    Refusal,
    Rejected,
    error_envelope,
)
from soliton.matcher.rest.auth import check_key
from soliton.matcher.rest.books import BookAnswers
from soliton.matcher.rest.http_gate import FAILURES, PLACE_ROUTE, HttpGate
from soliton.matcher.rest.placing import PLACE_PATH, place_answer, refused
from soliton.matcher.rest.requests import PairReversed, Request, split_path
from soliton.matcher.rest.routes import Auth, Route, Router
from soliton.matcher.service import Matcher
from soliton.matcher.websocket.hub import Hub
from soliton.matching import errors
from soliton.matching.errors import MatcherError
from soliton.matching.pairs import AssetPair
from soliton.web import request as web
from soliton.web.answers import Awaited, Whole
from soliton.web.number_strings import JSON_WITH_STRINGS, Accepted, accepted, with_strings
from soliton.web.traffic import RouteName, Traffic

MAX_SEGMENTS: Final = 12
_BOOK_PREFIX: Final = "/matcher/orderbook/"
_BOOK_PATH: Final = "/matcher/orderbook/{amount}/{price}"
_MOVED: Final = 301
_WORKING: Final = ServiceStatus.WORKING

_BARRED: Final = {
    ServiceStatus.STARTING: (errors.MATCHER_IS_STARTING, "DuringStart"),
    ServiceStatus.STOPPING: (errors.MATCHER_IS_STOPPING, "DuringShutdown"),
}

logger = logging.getLogger("soliton.matcher")
_throttled = throttled(logging.getLogger(__name__))


class Application:
    """The interface of one matcher. ``hub`` handles the WebSocket connections; a server serves
    ``gate``.
    """

    def __init__(
        self,
        core: Matcher,
        routes: Sequence[Route],
        books: BookAnswers,
        hub: Hub,
        traffic: Traffic,
        *,
        behind: bool = False,
    ) -> None:
        self.core = core
        # Orders come first: their route has the number ``PLACE_ROUTE``.
        self.routes = tuple(sorted(routes, key=lambda each: not _places_orders(each)))
        traffic.count_routes([RouteName(each.method, each.path) for each in self.routes])
        self._traffic = traffic
        self._numbers = {id(each): number for number, each in enumerate(self.routes, 1)}
        self._book_route = next(
            number
            for number, each in enumerate(self.routes, 1)
            if (each.method, each.path) == ("GET", _BOOK_PATH)
        )
        self._router = Router(self.routes)
        self._books = books
        self._hub = hub
        settings = core.settings
        self.gate = HttpGate(settings.rest_api, settings.id, self, traffic, hub, behind=behind)

    def close(self) -> None:
        """Close all WebSocket connections because the matcher stops."""
        self._hub.close()

    def respond(self, request: web.Request) -> Whole | Awaited:
        """The cached response, or one to be awaited."""
        found = self._cached(request)
        if found is None:
            return Awaited(self._respond(request))
        self._count(request, self._book_route)
        return found

    def _count(self, request: web.Request, route: int) -> None:
        request.route = route
        self._traffic.begin(route)

    async def place(self, order: Order, is_signed: bool | None) -> Answer | None:
        """Place an order that a worker has decoded and verified (``is_signed``); returns the error,
        if it is rejected.
        """
        try:
            return await refused(self.core, order, market=False, is_signed=is_signed)
        except Exception as error:  # noqa: BLE001 - the last line of defence
            return self._error_answer(error, "POST", PLACE_PATH)

    def _cached(self, request: web.Request) -> Whole | None:
        """The cached response about an order book that has not changed."""
        path = request.path
        if request.method != "GET" or not path.startswith(_BOOK_PREFIX):
            return None
        if b"timestamp" in request.headers:
            return None
        return self._books.get(path, request.query_string) if self.core.status is _WORKING else None

    async def _respond(self, request: web.Request) -> Whole:
        if request.method == "OPTIONS" and self.core.settings.rest_api.cors:
            answer = Answer(b"OK", content_type=b"text/plain")
        else:
            answer = await self._guarded(request)
        return self.gate.whole(answer, request.method)

    async def _guarded(self, received: web.Request) -> Answer:
        """The response, also if a handler raises."""
        method, path = received.method, received.path
        headers, body = received.headers, received.body
        try:
            if method == "POST" and path == PLACE_PATH:
                # No timeout: the journal and the node's client have theirs, and the sender of an
                # order that is being stored should learn the result.
                self._count(received, PLACE_ROUTE)
                return await place_answer(self.core, headers, body, market=False)
            seconds = self.core.settings.rest_api.request_timeout_ms / 1_000
            async with asyncio.timeout(seconds):
                segments = split_path(path.encode("latin-1"))
                request = Request(self.core, method, segments, headers, received.query_string, body)
                answer = await self._answer(request, received)
        except Exception as error:  # noqa: BLE001 - the last line of defence
            return self._error_answer(error, method, path)
        if answer.plain and accepted(headers.get(b"accept")) is Accepted.STRINGS:
            in_strings = with_strings(answer.body, STRING_MEMBERS)
            return Answer(in_strings, answer.status, JSON_WITH_STRINGS, answer.headers)
        return answer

    def _error_answer(self, error: Exception, method: str, path: str) -> Answer:
        """The response to an exception. An internal error must not end the connection or the
        process.
        """
        match error:
            case Refusal():
                return error.answer()
            case MatcherError():
                return error_envelope(error, "SimpleErrorResponse")
            case TimeoutError():
                return error_envelope(MatcherError(errors.REQUEST_TIMEOUT), "TimedOut")
            case NodeUnavailable():
                broken = MatcherError(errors.WAVES_NODE_CONNECTION_BROKEN)
                return error_envelope(broken, "WavesNodeUnavailable")
            case DatabaseProblem():
                _throttled.error("%s", error)
                self.gate.count(FAILURES)
                return FAULT
        logger.error("%s %s failed", method, path, exc_info=error)
        self.gate.count(FAILURES)
        return FAULT

    async def _answer(self, request: Request, received: web.Request) -> Answer:
        if len(request.segments) > MAX_SEGMENTS:
            return NOT_FOUND
        for route in self._router.find(request.method, request.segments):
            if route.barrier and self.core.status is not ServiceStatus.WORKING:
                kind, word = _BARRED[self.core.status]
                return error_envelope(MatcherError(kind), word)
            if route.auth is Auth.KEY:
                check_key(request)
            if route.own:
                route.read_parameters(request)
            try:
                received.route = self._numbers[id(route)]
                answer = await route.handler(request)
            except Rejected:
                received.route = 0
                continue
            except PairReversed as error:
                return self._redirect(error.pair, request)
            self._traffic.begin(received.route)
            if received.route == self._book_route:
                self._books.put(received.path, request, self.gate.whole(answer, request.method))
            return answer
        return NOT_FOUND

    def _redirect(self, pair: AssetPair, request: Request) -> Answer:
        """A redirect of a request to the pair in its right order."""
        names = pair.to_json()
        rest = "".join(f"/{part}" for part in request.segments[4:])
        path = f"/matcher/orderbook/{names['amountAsset']}/{names['priceAsset']}{rest}"
        query = request.query_string.decode("latin-1")
        location = (f"{path}?{query}" if query else path).encode("latin-1")
        text = b"This and all future requests should be directed to %s." % location
        return Answer(text, _MOVED, b"text/plain; charset=UTF-8", ((b"location", location),))


def _places_orders(route: Route) -> bool:
    return (route.method, route.path) == ("POST", PLACE_PATH)
