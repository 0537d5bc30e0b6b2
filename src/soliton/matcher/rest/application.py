"""The matcher's answers: from a request that has been let in to what is said to it.

Two routes carry nearly all of the load and have a way of their own through here: the order book,
whose encoded answers are kept until the book changes, and placing an order.

What lives here: the order of checks, a limit of time, turning refusals and faults into answers.
What does not: limits on what clients send (``http_gate``), the routes.

Sources: wavesplatform/matcher
``dex/src/main/scala/com/wavesplatform/dex/api/http/CompositeHttpService.scala``,
``directives/ProtectDirective.scala``.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Final, Protocol

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
from soliton.matcher.rest.books import BookAnswers
from soliton.matcher.rest.http_gate import FAILURES, HttpGate, Sockets
from soliton.matcher.rest.placing import PLACE_PATH, place_answer, refused
from soliton.matcher.rest.requests import Elsewhere, Request, split_path
from soliton.matcher.rest.routes import Route, Router
from soliton.matcher.service import Matcher
from soliton.matching import errors
from soliton.matching.errors import MatcherError
from soliton.web import request as web
from soliton.web.answers import Awaited, Whole
from soliton.web.number_strings import JSON_WITH_STRINGS, Accepted, accepted, with_strings
from soliton.web.shared_counters import SharedCounters

MAX_SEGMENTS: Final = 12
_BOOK_PREFIX: Final = "/matcher/orderbook/"
_MOVED: Final = 301
_WORKING: Final = ServiceStatus.WORKING

_BARRED: Final = {
    ServiceStatus.STARTING: (errors.MATCHER_IS_STARTING, "DuringStart"),
    ServiceStatus.STOPPING: (errors.MATCHER_IS_STOPPING, "DuringShutdown"),
}

logger = logging.getLogger("soliton.matcher")
_troubles = throttled(logging.getLogger(__name__))


class Hub(Sockets, Protocol):
    """What takes WebSocket connections, to their end."""

    def close(self) -> None:
        """End all connections."""


class Application:
    """The interface of one matcher; ``sockets`` takes the WebSocket connections.

    ``gate`` is what a server serves.
    """

    def __init__(
        self,
        core: Matcher,
        routes: Sequence[Route],
        books: BookAnswers,
        sockets: Hub,
        counters: SharedCounters,
        *,
        behind: bool = False,
    ) -> None:
        self.core = core
        self.routes = tuple(routes)
        self._router = Router(routes)
        self._books = books
        self._sockets = sockets
        settings = core.settings
        self.gate = HttpGate(settings.rest_api, settings.id, self, counters, sockets, behind=behind)

    def close(self) -> None:
        """Tell everybody on a WebSocket that the matcher stops, and let them go."""
        self._sockets.close()

    def respond(self, asked: web.Request) -> Whole | Awaited:
        """The answer, if it is kept; else what will give it."""
        return self._kept(asked) or Awaited(self._respond(asked))

    async def place(self, order: Order, is_signed: bool | None) -> Answer | None:
        """Place an order that somebody else has read, and whose signature they have looked at, if
        there is one to look at; the refusal, if it is refused.
        """
        try:
            return await refused(self.core, order, market=False, is_signed=is_signed)
        except Exception as fault:  # noqa: BLE001 - the last line of defence
            return self._trouble(fault, "POST", PLACE_PATH)

    def _kept(self, asked: web.Request) -> Whole | None:
        """The answer about an order book that was asked for before and has not changed."""
        path = asked.path
        if asked.method != "GET" or not path.startswith(_BOOK_PREFIX):
            return None
        if b"timestamp" in asked.headers:
            return None
        return self._books.kept(path, asked.query_string) if self.core.status is _WORKING else None

    async def _respond(self, asked: web.Request) -> Whole:
        if asked.method == "OPTIONS" and self.core.settings.rest_api.cors:
            answer = Answer(b"OK", content_type=b"text/plain")
        else:
            answer = await self._guarded(asked)
        return self.gate.whole(answer, asked.method)

    async def _guarded(self, asked: web.Request) -> Answer:
        """The answer, whatever happens."""
        method, path, headers, body = asked.method, asked.path, asked.headers, asked.body
        try:
            if method == "POST" and path == PLACE_PATH:
                # No limit of time: the journal and the node's client have theirs, and an order
                # that is on its way to the journal should hear what became of it.
                return await place_answer(self.core, headers, body, market=False)
            seconds = self.core.settings.rest_api.request_timeout_ms / 1_000
            async with asyncio.timeout(seconds):
                segments = split_path(path.encode("latin-1"))
                request = Request(self.core, method, segments, headers, asked.query_string, body)
                answer = await self._answer(request, path)
        except Exception as fault:  # noqa: BLE001 - the last line of defence
            return self._trouble(fault, method, path)
        if answer.plain and accepted(headers.get(b"accept")) is Accepted.STRINGS:
            in_strings = with_strings(answer.body, STRING_MEMBERS)
            return Answer(in_strings, answer.status, JSON_WITH_STRINGS, answer.headers)
        return answer

    def _trouble(self, fault: Exception, method: str, path: str) -> Answer:
        """What is said where there is no answer. A fault of ours must not end the connection or the
        process.
        """
        match fault:
            case Refusal():
                return fault.answer()
            case MatcherError():
                return error_envelope(fault, "SimpleErrorResponse")
            case TimeoutError():
                return error_envelope(MatcherError(errors.REQUEST_TIMEOUT), "TimedOut")
            case NodeUnavailable():
                broken = MatcherError(errors.WAVES_NODE_CONNECTION_BROKEN)
                return error_envelope(broken, "WavesNodeUnavailable")
            case DatabaseProblem():
                _troubles.error("%s", fault)
                self.gate.count(FAILURES)
                return FAULT
        logger.error("%s %s failed", method, path, exc_info=fault)
        self.gate.count(FAILURES)
        return FAULT

    async def _answer(self, request: Request, raw_path: str) -> Answer:
        if len(request.segments) > MAX_SEGMENTS:
            return NOT_FOUND
        for route in self._router.find(request.method, request.segments):
            if route.barrier and self.core.status is not ServiceStatus.WORKING:
                kind, word = _BARRED[self.core.status]
                return error_envelope(MatcherError(kind), word)
            try:
                answer = await route.handler(request)
            except Rejected:
                continue
            except Elsewhere as elsewhere:
                return self._moved(elsewhere, request)
            if route.path == "/matcher/orderbook/{amount}/{price}":
                self._books.keep(raw_path, request, self.gate.whole(answer, request.method))
            return answer
        return NOT_FOUND

    def _moved(self, elsewhere: Elsewhere, request: Request) -> Answer:
        """The same request about the pair in its right order."""
        names = elsewhere.pair.to_json()
        rest = "".join(f"/{part}" for part in request.segments[4:])
        place = f"/matcher/orderbook/{names['amountAsset']}/{names['priceAsset']}{rest}"
        query = request.query_string.decode("latin-1")
        location = (f"{place}?{query}" if query else place).encode("latin-1")
        words = b"This and all future requests should be directed to %s." % location
        return Answer(words, _MOVED, b"text/plain; charset=UTF-8", ((b"location", location),))
