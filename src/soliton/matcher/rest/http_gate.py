"""The gate of a matcher's interface: everything between a connection and the answer of a route.

What lives here: limits on what a client sends and how often, bodies, the headers of all answers.
What does not: sockets and HTTP parsing (``soliton.web``), answers (``application``, and in a
process that stands before the matcher ``order_worker``).

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
from soliton.web.shared_counters import SharedCounters
from soliton.web.types import Headers

REQUESTS, OVER_LIMIT, FAILURES = range(3)
"""What all processes of a matcher count together, as numbers of their counters."""
SLOW_BODY_SECONDS: Final = 20.0
_EXPOSED: Final = ("Retry-After", "matcher-http-server")
_TOO_MANY_STATUS: Final = 429
_TOO_MANY: Final = b"This client has sent more requests than it may; see Retry-After."
Pay = Callable[[], Awaitable[None]]


class Responder(Protocol):
    """What answers requests that have been let in."""

    def respond(self, request: Request) -> web.Answer:
        """The answer, or what will give it; raises nothing, and neither does that."""


class Sockets(Protocol):
    """What takes WebSocket connections."""

    def respond(self, request: Request, pay: Pay) -> web.Answer:
        """The answer to who asks for one; ``pay`` is awaited for each message of the client."""


class HttpGate:
    """A service around a ``responder``; ``sockets`` takes the WebSocket connections.

    One that is ``behind`` the gates of workers leaves it to these to count and limit requests.
    """

    request_class = Request

    def __init__(
        self,
        api: RestApi,
        server_name: str,
        responder: Responder,
        counters: SharedCounters,
        sockets: Sockets | None = None,
        *,
        behind: bool = False,
    ) -> None:
        self._responder = responder
        self._sockets = sockets
        self._counters = counters
        self._behind = behind
        self.body_limits = web.BodyLimits(api.max_body_bytes, SLOW_BODY_SECONDS)
        self._budgets: Budgets | None = None
        if api.limits.requests_per_second:
            per_second, burst = api.limits.requests_per_second, api.limits.burst
            self._budgets = Budgets(per_second, burst, counters)
        self._limits_local = api.limits.local_clients
        self.cors = _cors(api)
        self._common, self._preflight = _headers(self.cors, server_name)

    def respond(self, request: Request) -> web.Answer:
        """The answer to a request; nothing but a cancellation ever leaves here."""
        if request.is_websocket and self._sockets is not None:
            return self._sockets.respond(request, partial(self._in_budget, request.host))
        answer = self._over_limit(request) or self._responder.respond(request)
        if b"origin" not in request.headers:
            return answer
        match answer:
            case web.Whole():
                return self._for_page(request, answer)
            case web.Deferred(ask=ask, then=then):
                return web.Deferred(ask, lambda outcome: self._for_page(request, then(outcome)))
            case web.Awaited():
                return web.Awaited(self._later_for_page(request, answer))
        return answer

    def refuse(self, request: Request, reason: web.Unread) -> web.Whole:
        """The answer to a request whose body will not be read."""
        answer = TOO_LARGE if reason is web.Unread.TOO_LONG else BODY_TOO_SLOW
        return self._for_page(
            request, self._over_limit(request) or self.whole(answer, request.method)
        )

    async def _later_for_page(self, request: Request, answer: web.Awaited) -> web.Whole:
        given = await answer.work
        assert isinstance(given, web.Whole)
        return self._for_page(request, given)

    def _for_page(self, request: Request, answer: web.Whole) -> web.Whole:
        """The answer as a page of this origin may read it. An answer may be kept for many."""
        origin = request.headers.get(b"origin")
        if origin is None or not self.cors.allows:
            return answer
        headers = with_cors(answer.headers, self.cors, request.method, origin)
        return msgspec.structs.replace(answer, headers=headers)

    def whole(self, answer: Answer, method: str) -> web.Whole:
        """The answer with all of its headers."""
        more = self._preflight if method == "OPTIONS" else self._common
        return web.Whole(answer.body, answer.content_type, answer.status, answer.headers + more)

    def count(self, number: int) -> None:
        """One more of what is counted."""
        self._counters.own[number] += 1

    def _over_limit(self, request: Request) -> web.Whole | None:
        """Count a request; the refusal of a client that has used up its budget, if it has."""
        if self._behind:
            return None
        wait = self._pay(request.host)
        self.count(REQUESTS if wait <= 0 else OVER_LIMIT)
        if wait <= 0:
            return None
        later = (b"retry-after", b"%d" % math.ceil(wait))
        return self.whole(Answer(_TOO_MANY, _TOO_MANY_STATUS, TEXT, (later,)), request.method)

    def _pay(self, host: str) -> float:
        """Charge a client for one request; or in how many seconds it may ask again."""
        budgets, client = self._budgets, client_key(host)
        if budgets is None or (client == LOCAL and not self._limits_local):
            return 0.0
        wait = budgets.wait(client)
        if wait <= 0:
            budgets.charge(client, 1)
        return wait

    async def _in_budget(self, host: str) -> None:
        """Wait until a message that came over a WebSocket is paid for: each is a request, and more
        of them wait to be read.
        """
        while (wait := self._pay(host)) > 0:  # noqa: ASYNC110 - its budget grows with time
            await asyncio.sleep(wait)


def _cors(api: RestApi) -> Cors:
    """Which pages of other origins may read answers."""
    if not api.cors:
        return CLOSED
    more = (*KEY_HEADERS, "X-User-Public-Key") if api.api_key_different_host else ()
    return Cors(request_headers=REQUEST_HEADERS + more, exposed=_EXPOSED)


def _headers(cors: Cors, server_name: str) -> tuple[Headers, Headers]:
    """The headers of every answer, and of those to ``OPTIONS``; who names an origin hears it."""
    common: Headers = ((b"matcher-http-server", server_name.encode("latin-1", "replace")),)
    if not cors.allows:
        return common, common
    common = (*common, (b"access-control-allow-origin", b"*"), *cors.always)
    return common, (*common, (b"access-control-allow-credentials", b"true"), *cors.preflight)
