"""The HTTP gate of a matcher: everything between a connection and a route's response.

What lives here: limits on the size and rate of requests, and headers common to all responses. What
does not: sockets and HTTP parsing (``soliton.web``), and the responses (``application``, and in
worker processes ``order_worker``).

Source: wavesplatform/matcher
``dex/src/main/scala/com/wavesplatform/dex/api/http/CompositeHttpService.scala``.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final, Protocol

import msgspec

from soliton.matcher.rest.answers import BODY_TOO_SLOW, TEXT, TOO_LARGE, Answer
from soliton.matcher.settings import RestApi
from soliton.web import answers as web
from soliton.web.budgets import Budgets
from soliton.web.clients import LOCAL, client_key
from soliton.web.cors import CLOSED, KEY_HEADERS, REQUEST_HEADERS, Cors, with_cors
from soliton.web.request import Request
from soliton.web.traffic import Traffic
from soliton.web.types import Headers

REQUESTS, OVER_LIMIT, FAILURES = range(3)
"""Indexes of the counters that all processes of a matcher share."""
PLACE_ROUTE: Final = 1
"""The number of the route of orders in ``Traffic``, in each process of a matcher."""
SLOW_BODY_SECONDS: Final = 20.0
_EXPOSED: Final = ("Retry-After", "matcher-http-server")
_TOO_MANY_STATUS: Final = 429
_TOO_MANY: Final = b"This client has sent more requests than it may; see Retry-After."
Pay = Callable[[], Awaitable[None]]


class Responder(Protocol):
    """Responds to admitted requests."""

    def respond(self, request: Request) -> web.Answer:
        """The response, which may be deferred. Neither this nor a deferred response raises."""


class Sockets(Protocol):
    """Accepts WebSocket connections."""

    def respond(self, request: Request, pay: Pay) -> web.Answer:
        """The response to an upgrade; ``pay`` is awaited for each message of the client."""


class HttpGate:
    """A service around a ``responder``; ``sockets`` accepts the WebSocket connections.

    A gate ``behind`` those of worker processes does not count or limit requests; they do.
    """

    request_class = Request

    def __init__(
        self,
        api: RestApi,
        server_name: str,
        responder: Responder,
        traffic: Traffic,
        sockets: Sockets | None = None,
        *,
        behind: bool = False,
    ) -> None:
        self._responder = responder
        self._sockets = sockets
        self.traffic = traffic
        self._counters = traffic.counters
        self._behind = behind
        self.body_limits = web.BodyLimits(api.max_body_bytes, SLOW_BODY_SECONDS)
        self._budgets: Budgets | None = None
        if api.limits.requests_per_second:
            per_second, burst = api.limits.requests_per_second, api.limits.burst
            self._budgets = Budgets(per_second, burst, traffic.counters)
        self._limits_local = api.limits.local_clients
        self.cors = _cors(api)
        self._common, self._preflight = _headers(self.cors, server_name)

    def respond(self, request: Request) -> web.Answer:
        """The response to a request; raises nothing except ``CancelledError``."""
        if request.is_websocket and self._sockets is not None:
            return self._sockets.respond(request, partial(self._wait_for_budget, request.host))
        answer = self._over_limit(request) or self._responder.respond(request)
        if b"origin" not in request.headers:
            return answer
        match answer:
            case web.Whole():
                return self._with_cors(request, answer)
            case web.Deferred(ask=ask, then=then):
                return web.Deferred(ask, lambda outcome: self._with_cors(request, then(outcome)))
            case web.Awaited():
                return web.Awaited(self._later_with_cors(request, answer))
        return answer

    def refuse(self, request: Request, reason: web.Unread) -> web.Whole:
        """The response to a request whose body will not be read."""
        answer = TOO_LARGE if reason is web.Unread.TOO_LONG else BODY_TOO_SLOW
        return self._with_cors(
            request, self._over_limit(request) or self.whole(answer, request.method)
        )

    async def _later_with_cors(self, request: Request, answer: web.Awaited) -> web.Whole:
        result = await answer.work
        assert isinstance(result, web.Whole)
        return self._with_cors(request, result)

    def _with_cors(self, request: Request, answer: web.Whole) -> web.Whole:
        """A copy with the CORS headers for the request's origin; the original may be cached."""
        origin = request.headers.get(b"origin")
        if origin is None or not self.cors.allows:
            return answer
        headers = with_cors(answer.headers, self.cors, request.method, origin)
        return msgspec.structs.replace(answer, headers=headers)

    def whole(self, answer: Answer, method: str) -> web.Whole:
        """The response with all of its headers."""
        more = self._preflight if method == "OPTIONS" else self._common
        return web.Whole(answer.body, answer.content_type, answer.status, answer.headers + more)

    def count(self, number: int) -> None:
        """Increment a counter."""
        self._counters.own[number] += 1

    def _over_limit(self, request: Request) -> web.Whole | None:
        """Count a request; returns the error if the client has exhausted its budget."""
        if self._behind:
            return None
        wait = self._pay(request.host)
        self.count(REQUESTS if wait <= 0 else OVER_LIMIT)
        if wait <= 0:
            return None
        later = (b"retry-after", b"%d" % math.ceil(wait))
        return self.whole(Answer(_TOO_MANY, _TOO_MANY_STATUS, TEXT, (later,)), request.method)

    def _pay(self, host: str) -> float:
        """Charge a client for one request, or return the seconds until it has the budget."""
        budgets, client = self._budgets, client_key(host)
        if budgets is None or (client == LOCAL and not self._limits_local):
            return 0.0
        wait = budgets.wait(client)
        if wait <= 0:
            budgets.charge(client, 1)
        return wait

    async def _wait_for_budget(self, host: str) -> None:
        """Wait until a client has the budget for a WebSocket message, which counts as a request;
        further messages are not read meanwhile.
        """
        while (wait := self._pay(host)) > 0:  # noqa: ASYNC110 - the budget grows with time
            await asyncio.sleep(wait)


def _cors(api: RestApi) -> Cors:
    """The CORS settings."""
    if not api.cors:
        return CLOSED
    more = (*KEY_HEADERS, "X-User-Public-Key") if api.api_key_different_host else ()
    return Cors(request_headers=REQUEST_HEADERS + more, exposed=_EXPOSED)


def _headers(cors: Cors, server_name: str) -> tuple[Headers, Headers]:
    """The headers of every response, and of those to ``OPTIONS``."""
    common: Headers = ((b"matcher-http-server", server_name.encode("latin-1", "replace")),)
    if not cors.allows:
        return common, common
    common = (*common, (b"access-control-allow-origin", b"*"), *cors.always)
    return common, (*common, (b"access-control-allow-credentials", b"true"), *cors.preflight)
