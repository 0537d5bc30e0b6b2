"""The matcher's ASGI application: from a request's first byte to its last answer.

Two routes carry nearly all of the load and have a way of their own through here: the order book,
whose encoded answers are kept until the book changes, and placing an order.

What lives here: the order of checks, limits on bodies and time, turning refusals and faults into
answers, CORS. What does not: sockets and HTTP parsing (``soliton.web``), the routes.

Sources: wavesplatform/matcher
``dex/src/main/scala/com/wavesplatform/dex/api/http/CompositeHttpService.scala``,
``directives/ProtectDirective.scala``.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Sequence
from typing import Final, Protocol, cast

from soliton.matcher.core import MatcherCore
from soliton.matcher.errors import NodeUnavailable
from soliton.matcher.records import ServiceStatus
from soliton.matcher.rest.answers import (
    BODY_TOO_SLOW,
    NOT_FOUND,
    STRING_MEMBERS,
    TEXT,
    TOO_LARGE,
    Answer,
    Refusal,
    Rejected,
    error_envelope,
)
from soliton.matcher.rest.books import BookAnswers
from soliton.matcher.rest.placing import place_answer
from soliton.matcher.rest.requests import Elsewhere, Request, split_path
from soliton.matcher.rest.routes import Route, Router
from soliton.matching.errors import (
    MATCHER_IS_STARTING,
    MATCHER_IS_STOPPING,
    REQUEST_TIMEOUT,
    UNEXPECTED_ERROR,
    WAVES_NODE_CONNECTION_BROKEN,
    MatcherError,
)
from soliton.web.bodies import BodyTooLongError, ClientGoneError, read_body
from soliton.web.budgets import Budgets
from soliton.web.clients import LOCAL, client_key
from soliton.web.significands import JSON_WITH_STRINGS, Accepted, accepted, with_strings
from soliton.web.tallies import Tallies
from soliton.web.types import (
    Headers,
    LaterAnswer,
    Message,
    Receive,
    Scope,
    Send,
    WholeAnswer,
)

MAX_SEGMENTS: Final = 12
_PLACE: Final = b"/matcher/orderbook"
_BOOK_PREFIX: Final = b"/matcher/orderbook/"
_SLOW_BODY_SECONDS: Final = 20.0
_LENGTH_DIGITS: Final = 9
_PREFLIGHT_HEADERS: Final = b"Authorization, Content-Type, X-Requested-With, Timestamp, Signature"
_MOVED: Final = 301
_TOO_MANY_STATUS: Final = 429
_TOO_MANY: Final = b"This client has sent more requests than it may; see Retry-After."
_WORKING: Final = ServiceStatus.WORKING
_WITH_BODY: Final = ("POST", "PUT", "DELETE")

_BARRED: Final = {
    ServiceStatus.STARTING: (MATCHER_IS_STARTING, "DuringStart"),
    ServiceStatus.STOPPING: (MATCHER_IS_STOPPING, "DuringShutdown"),
}

logger = logging.getLogger("soliton.matcher")


class Sockets(Protocol):
    """What takes WebSocket connections."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One connection, to its end."""

    def close(self) -> None:
        """End all connections."""


class Application:
    """The interface of one matcher; ``sockets`` takes the WebSocket connections."""

    def __init__(
        self,
        core: MatcherCore,
        routes: Sequence[Route],
        books: BookAnswers,
        sockets: Sockets,
    ) -> None:
        self.core = core
        self.routes = tuple(routes)
        self.requests = 0
        self.failures = 0
        self.over_limit = 0
        self._router = Router(routes)
        self._books = books
        self._sockets = sockets
        api = core.settings.rest_api
        self._budgets: Budgets | None = None
        if api.limits.requests_per_second:
            per_second, burst = api.limits.requests_per_second, api.limits.burst
            self._budgets = Budgets(per_second, burst, Tallies())
        common = [(b"matcher-http-server", core.settings.id.encode("latin-1", "replace"))]
        preflight = list(common)
        if api.cors:
            common.append((b"access-control-allow-origin", b"*"))
            names = _PREFLIGHT_HEADERS
            if api.api_key_different_host:
                names += b", X-API-Key, api_key, X-User-Public-Key"
            preflight = [
                *common,
                (b"access-control-allow-credentials", b"true"),
                (b"access-control-allow-headers", names),
                (b"access-control-allow-methods", b"OPTIONS, POST, PUT, GET, DELETE"),
            ]
        self._limits_local = api.limits.local_clients
        self._common: Headers = tuple(common)
        self._preflight: Headers = tuple(preflight)

    def close(self) -> None:
        """Tell everybody on a WebSocket that the matcher stops, and let them go."""
        self._sockets.close()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request; nothing but a cancellation ever leaves here."""
        client = cast("tuple[str, int] | None", scope.get("client"))
        host = client[0] if client else ""
        if scope["type"] == "websocket":
            await self._sockets(scope, self._in_budget(host, receive), send)
            return
        method, raw_path = cast("str", scope["method"]), cast("bytes", scope["raw_path"])
        headers = dict(cast("list[tuple[bytes, bytes]]", scope["headers"]))
        query = cast("bytes", scope["query_string"])
        whole = self._over_limit(host, method)
        if whole is None:
            whole = self._kept(method, raw_path, query, headers)
        if whole is None:
            body: bytes | Answer = b""
            if method in _WITH_BODY:
                body = await self._body(headers, receive)
            if isinstance(body, Answer):
                whole = self._whole(body, method)
            else:
                whole = await self._respond(method, raw_path, query, headers, body)
        await _send(whole, send)

    def answer_at_once(
        self,
        method: str,
        path: bytes,
        query: bytes,
        headers: dict[bytes, bytes],
        body: bytes,
        host: str,
    ) -> WholeAnswer | LaterAnswer:
        """The answer to a request that is all there, if it is kept; else what will give it."""
        whole = self._over_limit(host, method) or self._kept(method, path, query, headers)
        if whole is not None:
            return whole
        if len(body) > self.core.settings.rest_api.max_body_bytes:
            return self._whole(TOO_LARGE, method)

        return self._respond(method, path, query, headers, body)

    def _over_limit(self, host: str, method: str) -> WholeAnswer | None:
        """The refusal of a client that has used up its budget, if it has."""
        wait = self._pay(host)
        if wait <= 0:
            return None
        self.over_limit += 1
        later = (b"retry-after", b"%d" % math.ceil(wait))
        return self._whole(Answer(_TOO_MANY, _TOO_MANY_STATUS, TEXT, (later,)), method)

    def _pay(self, host: str) -> float:
        """Charge a client for one request; or in how many seconds it may ask again."""
        budgets, client = self._budgets, client_key(host)
        if budgets is None or (client == LOCAL and not self._limits_local):
            return 0.0
        wait = budgets.wait(client)
        if wait <= 0:
            budgets.charge(client, 1)
        return wait

    def _in_budget(self, host: str, receive: Receive) -> Receive:
        """What comes over a WebSocket, each message a request: more of it waits to be read."""

        async def receive_in_time() -> Message:
            message = await receive()
            if message["type"] == "websocket.receive":
                while (wait := self._pay(host)) > 0:  # noqa: ASYNC110 - its budget grows with time
                    await asyncio.sleep(wait)
            return message

        return receive_in_time

    def _kept(
        self, method: str, path: bytes, query: bytes, headers: dict[bytes, bytes]
    ) -> WholeAnswer | None:
        """The answer about an order book that was asked for before and has not changed."""
        self.requests += 1
        if method != "GET" or not path.startswith(_BOOK_PREFIX) or b"timestamp" in headers:
            return None
        return self._books.kept(path, query) if self.core.status is _WORKING else None

    async def _respond(
        self, method: str, path: bytes, query: bytes, headers: dict[bytes, bytes], body: bytes
    ) -> WholeAnswer:
        if method == "OPTIONS" and self.core.settings.rest_api.cors:
            return self._whole(Answer(b"OK", content_type=b"text/plain"), method)
        return self._whole(await self._guarded(method, path, query, headers, body), method)

    def _whole(self, answer: Answer, method: str) -> WholeAnswer:
        """The answer with all of its headers."""
        headers = (
            (b"content-type", answer.content_type),
            (b"content-length", b"%d" % len(answer.body)),
            *answer.headers,
            *(self._preflight if method == "OPTIONS" else self._common),
        )
        return WholeAnswer(answer.status, headers, answer.body)

    async def _guarded(
        self,
        method: str,
        raw_path: bytes,
        query_string: bytes,
        headers: dict[bytes, bytes],
        body: bytes,
    ) -> Answer:
        """The answer, whatever happens."""
        try:
            if method == "POST" and raw_path == _PLACE:
                # No limit of time: the journal and the node's client have theirs, and an order
                # that is on its way to the journal should hear what became of it.
                return await place_answer(self.core, headers, body, market=False)
            seconds = self.core.settings.rest_api.request_timeout_ms / 1_000
            async with asyncio.timeout(seconds):
                request = Request(
                    self.core, method, split_path(raw_path), headers, query_string, body
                )
                answer = await self._answer(request, raw_path)
        except Refusal as refusal:
            return refusal.answer()
        except MatcherError as error:
            return error_envelope(error, "SimpleErrorResponse")
        except TimeoutError:
            return error_envelope(MatcherError(REQUEST_TIMEOUT), "TimedOut")
        except NodeUnavailable:
            broken = MatcherError(WAVES_NODE_CONNECTION_BROKEN)
            return error_envelope(broken, "WavesNodeUnavailable")
        except Exception:
            # The last line of defence: a fault of ours must not end the connection or the process.
            logger.exception("%s %s failed", method, raw_path.decode("latin-1"))
            self.failures += 1
            return error_envelope(MatcherError(UNEXPECTED_ERROR), "WavesNodeUnavailable")
        if answer.plain and accepted(headers.get(b"accept")) is Accepted.STRINGS:
            in_strings = with_strings(answer.body, STRING_MEMBERS)
            return Answer(in_strings, answer.status, JSON_WITH_STRINGS, answer.headers)
        return answer

    async def _answer(self, request: Request, raw_path: bytes) -> Answer:
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
                self._books.keep(raw_path, request, self._whole(answer, request.method))
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

    async def _body(self, headers: dict[bytes, bytes], receive: Receive) -> bytes | Answer:
        """The whole body, never more than the limit in memory; or why it is not taken."""
        limit = self.core.settings.rest_api.max_body_bytes
        declared = headers.get(b"content-length", b"0")
        if len(declared) > _LENGTH_DIGITS or int(declared) > limit:
            return TOO_LARGE
        try:
            async with asyncio.timeout(_SLOW_BODY_SECONDS):
                return await read_body(receive, limit)
        except BodyTooLongError:
            return TOO_LARGE
        except (TimeoutError, ClientGoneError):
            return BODY_TOO_SLOW


async def _send(answer: WholeAnswer, send: Send) -> None:
    headers = list(answer.headers)
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    await send({"type": "http.response.body", "body": answer.body})
