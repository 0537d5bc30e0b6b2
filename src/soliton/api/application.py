"""The application: turns a request into a response.

What lives here: the order of checks (path, method, API key, parameters, content type, body,
handler), conversion of results and errors to responses, CORS. What does not: sockets and HTTP
parsing (``soliton.web``), declarations (``routes``).

Requests that no route matches get the responses of the reference node, whose routes end in
``complete(404)``: wavesplatform/Waves
``node/src/main/scala/com/wavesplatform/api/http/CompositeHttpService.scala``, ``ApiRoute.scala``.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from functools import partial
from typing import Final

import msgspec

from soliton.api.context import ApiContext
from soliton.api.errors import (
    API_KEY_NOT_VALID,
    UNKNOWN,
    ApiError,
    RejectionError,
    invalid_request,
)
from soliton.api.etags import StateTags, is_known
from soliton.api.event_socket import end_of, is_event_stream, send_events
from soliton.api.fair_limits import LEAST_COST_SECONDS, SECONDS_PER_BYTE, UNCOUNTED, FairLimits
from soliton.api.hints import KEY_IS_HASH, NO_KEY, WRONG_KEY, about_method, about_request
from soliton.api.http import Request, json_answer
from soliton.api.measuring import measured
from soliton.api.patient import answered
from soliton.api.routes import Body, BodyKind, CompiledRoute, Match, Route
from soliton.api.streaming import Opened
from soliton.api.troubles import Troubles
from soliton.storage.errors import StorageProblem
from soliton.web.answers import (
    APPLICATION_JSON,
    Answer,
    Awaited,
    BodyLimits,
    Deferred,
    Stream,
    Unread,
    Upgrade,
    Whole,
)
from soliton.web.clients import client_key
from soliton.web.cors import with_cors
from soliton.web.number_strings import Accepted, accepted
from soliton.web.request import FORM_URLENCODED, header_text
from soliton.web.routing import Router
from soliton.web.traffic import RouteName
from soliton.web.types import Headers
from soliton.web.websocket import accept_key

REQUEST_SECONDS = 20.0
"""The timeout of a handler (akka-http's request-timeout)."""

PIECE_BYTES = 64 * 1024
"""A longer body is streamed in chunks of this size, with backpressure from the client."""

MAX_CLIENT_BYTES = 256
"""The longest client name taken from a proxy's header; no address is as long."""

NOT_FOUND = Whole(
    b"The requested resource could not be found but may be available again in the future.",
    status=404,
)
METHOD_NOT_ALLOWED = Whole(
    b"A request was made of a resource using a request method not supported by that resource; "
    b"for example, using GET on a form which requires data to be presented via POST, or using "
    b"PUT on a read-only resource.",
    status=405,
)
TOO_LONG = Whole(b"The request's body is longer than this server takes.", status=413)
TIMED_OUT = Whole(
    b"The server was not able to produce a timely response to your request.\r\n"
    b"Please try again in a short while!",
    status=503,
    headers=((b"retry-after", b"1"),),
)
ORIGIN_NOT_ADMITTED = Whole(b"Pages of other origins may open no WebSocket here.", status=403)
OPTIONS_OK = Whole(b"OK")
NOT_MODIFIED = Whole(b"", APPLICATION_JSON, 304)

_GUARD: Final = "debug"
"""The scope required below a guarded path prefix."""

logger = logging.getLogger("soliton.api")
_FAILED = "%s %s failed"


class _Later(msgspec.Struct, frozen=True):
    """A handler's coroutine, and the routes to try next if it rejects the request."""

    coroutine: Coroutine[object, object, object]
    rest: Iterator[Match]
    route: Route


class Application:
    """Serves the declared routes."""

    request_class = Request

    def __init__(
        self, context: ApiContext, routes: Sequence[Route], guarded: Sequence[str] = ()
    ) -> None:
        """``guarded`` are path prefixes below which even a 404 requires the API key."""
        self.context = context
        self.cors = context.cors
        self.body_limits = BodyLimits(context.limits.body_bytes)
        self.routes = tuple(routes)
        compiled = [CompiledRoute(route, number) for number, route in enumerate(routes, 1)]
        self.traffic = context.traffic
        self.traffic.count_routes(
            [RouteName(",".join(sorted(each.methods)), each.route.path) for each in compiled]
        )
        self._router = Router((each.route.path, each) for each in compiled)
        self._guarded = tuple(guarded)
        self._tags = StateTags()
        self._fair = FairLimits(context.limits, context.traffic.counters)
        self._troubles = Troubles()
        node = context.node
        self._is_patient = node is not None and node.store.below is not None

    def respond(self, request: Request) -> Answer:
        """Return the response. Raises nothing: errors become responses."""
        request.context = self.context
        request.accepts = accepted(request.headers.get(b"accept"))
        request.client = self._client(request)
        request.fair = self._fair
        result = self._respond(request)
        if isinstance(result, Whole) and len(result.body) <= PIECE_BYTES:
            return self._with_headers(request, result)
        if isinstance(result, Deferred):
            return Deferred(result.ask, partial(self._respond_then, request, result.then))
        if request.is_websocket:
            return Awaited(self._wait_for_socket(request, result), ends_with_client=True)
        # A route with a key changes the node, so it is not cancelled when the client disconnects.
        ends_with_client = not (isinstance(result, _Later) and result.route.key)
        return Awaited(self._wait(request, result), ends_with_client)

    async def _wait_for_socket(self, request: Request, result: object) -> Whole | Stream | Upgrade:
        """Upgrade an event stream to a WebSocket; return any other response unchanged."""
        answer = await self._wait(request, result)
        if not isinstance(answer, Stream) or not is_event_stream(answer):
            return answer
        headers = request.headers
        if not self.cors.admits(headers.get(b"origin"), headers.get(b"host", b"")):
            await end_of(answer.chunks)
            return self._with_headers(request, ORIGIN_NOT_ADMITTED)
        if accept_key(request) is None:
            # The server rejects the handshake and reports the reason.
            await end_of(answer.chunks)
        return Upgrade(partial(send_events, answer.chunks))

    def refuse(self, request: Request, reason: Unread) -> Whole:
        """The response to a request whose body is not read."""
        return self._with_headers(request, TOO_LONG if reason is Unread.TOO_LONG else TIMED_OUT)

    def _with_headers(self, request: Request, answer: Whole) -> Whole:
        """Add the CORS headers and the ``ETag``."""
        more = self.cors.headers(request.method, request.headers.get(b"origin"))
        tag = request.tag
        if tag is not None and answer.status in _TAGGED:
            more = ((b"etag", tag), *more)
        if not more:
            return answer
        headers = answer.headers + more if answer.headers else more
        return Whole(answer.body, answer.content_type, answer.status, headers)

    def _respond_then(
        self, request: Request, then: Callable[[object], object], outcome: object
    ) -> Whole:
        """The response to a deferred request. The client is charged for this part as well."""
        started = time.perf_counter()
        try:
            response = _render(then(outcome), request.accepts)
        except ApiError as error:
            response = _error_answer(error, request)
        except Exception as error:  # noqa: BLE001 - the last line of defence
            response = self._failed(request, error)
        self._fair.charge(request.client, time.perf_counter() - started)
        assert isinstance(response, Whole)
        return self._with_headers(request, response)

    def _failed(self, request: Request, fault: Exception) -> Whole:
        """The response to an unexpected exception: a storage error has a code of its own, any
        other is logged and answered with error 0.
        """
        trouble = self._troubles.answer(fault)
        if trouble is not None:
            return _error_answer(trouble, request)
        logger.error(_FAILED, request.method, request.path, exc_info=fault)
        return _error_answer(UNKNOWN.error(), request)

    def _client(self, request: Request) -> str:
        name = self.context.client_header
        if name is None:
            return client_key(request.host)
        headers = request.headers
        return header_text(headers[name][:MAX_CLIENT_BYTES]) if name in headers else UNCOUNTED

    def _respond(self, request: Request) -> object:
        """The response, or ``_Later`` if the handler is a coroutine."""
        try:
            self.context.refresh()
        except StorageProblem as error:
            return self._failed(request, error)
        client = request.client
        if not self._fair.counts(client):
            return self._try_to_respond(request)
        try:
            self._fair.admit(client)
        except ApiError as error:
            return _error_answer(error, request)
        started = time.perf_counter()
        try:
            return self._try_to_respond(request)
        finally:
            self._fair.charge(client, time.perf_counter() - started + LEAST_COST_SECONDS)

    def _try_to_respond(self, request: Request) -> object:
        try:
            if request.method == "OPTIONS":
                return OPTIONS_OK
            matches = iter(self._router.find(request.path))
            return _render(self._dispatch(request, matches), request.accepts)
        except RejectionError:
            return NOT_FOUND
        except ApiError as error:
            return _error_answer(error, request)
        except Exception as error:  # noqa: BLE001 - the last line of defence
            return self._failed(request, error)

    async def _wait(self, request: Request, result: object) -> Whole | Stream:
        """Await a long answer, which takes one of the limited slots."""
        later = result if isinstance(result, _Later) else None
        if later is not None and later.route.relayed:
            # The other process counts slots and costs.
            return await self._finish(request, result, _free_of_charge, _no_slot)
        waits = later is not None and later.route.seconds is not None
        idle = waits or (isinstance(result, Stream) and result.endless)
        client = request.client
        try:
            self._fair.enter(client, idle=idle)
        except ApiError as error:
            if later is not None:
                later.coroutine.close()
            return self._with_headers(request, _error_answer(error, request))
        leave = partial(self._fair.leave, client, idle=idle)
        answer: Whole | Stream | None = None
        try:
            answer = await self._finish(request, result, self._charge_for(client), leave)
            return answer
        finally:
            if not isinstance(answer, Stream):
                leave()

    def _charge_for(self, client: str) -> Callable[[int], None]:
        """Return a callback that charges the client for a number of sent bytes."""
        fair = self._fair
        if not fair.counts(client):
            return _free_of_charge
        return lambda length: fair.charge(client, length * SECONDS_PER_BYTE)

    async def _finish(
        self,
        request: Request,
        result: object,
        charge: Callable[[int], None],
        leave: Callable[[], None],
    ) -> Whole | Stream:
        """Await the handlers. A stream's first chunk is awaited too, so that an error before it
        still becomes an error response.
        """
        try:
            while isinstance(result, _Later):
                result = await self._carry_on(request, result)
            if isinstance(result, Stream):
                first = await anext(result.chunks, None)
                origin = request.headers.get(b"origin")
                headers = with_cors(result.headers, self.cors, request.method, origin)
                opened = Opened(first, result.chunks, charge, leave, self._troubles.note)
                return Stream(opened, headers, result.status, result.endless)
        except ApiError as error:
            result = _error_answer(error, request)
        except TimeoutError:
            result = TIMED_OUT
        except Exception as error:  # noqa: BLE001 - the last line of defence
            result = self._failed(request, error)
        assert isinstance(result, Whole)
        answer = self._with_headers(request, result)
        if len(answer.body) > PIECE_BYTES:
            opened = Opened(None, _pieces(answer.body), charge, leave, self._troubles.note)
            return Stream(opened, _with_length(answer), answer.status)
        charge(len(answer.body))
        return answer

    async def _carry_on(self, request: Request, later: _Later) -> object:
        # The chain may advance meanwhile, which would make the ETag wrong.
        request.tag = None
        try:
            async with asyncio.timeout(later.route.seconds or REQUEST_SECONDS):
                result = await measured(later.coroutine, request.charge)
        except RejectionError:
            result = self._dispatch(request, later.rest)
        return _render(result, request.accepts)

    def _dispatch(self, request: Request, matches: Iterator[Match]) -> object:
        """The result of the first route that accepts the request; else 403, 405 or 404."""
        methods: set[str] = set()
        reason = ""
        for match in matches:
            try:
                return self._try(request, match, matches)
            except RejectionError as rejection:
                if request.method in match[0].methods:
                    reason = str(rejection)
                else:
                    methods |= match[0].methods
        path = request.path
        for prefix in self._guarded:
            if path == prefix or path.startswith(prefix + "/"):
                self._check_key(request, _GUARD)
        hints = about_request(reason) if reason or not methods else about_method(methods)
        return msgspec.structs.replace(NOT_FOUND, headers=hints) if hints else NOT_FOUND

    def _try(self, request: Request, match: Match, rest: Iterator[Match]) -> object:
        route, segments = match
        body = route.body
        if request.method not in route.methods:
            if body is None or not body.get_is_405 or request.method != "GET":
                raise RejectionError("method")
            if route.key:
                self._check_key(request, route.scope)
            return msgspec.structs.replace(METHOD_NOT_ALLOWED, headers=about_method(route.methods))
        if route.key:
            self._check_key(request, route.scope)
        if (route.path or route.queries or route.own) and not route.convert(request, segments):
            raise RejectionError("parameter")
        if request.accepts is Accepted.NOTHING and route.is_json:
            raise RejectionError("accept")
        if body is not None:
            try:
                _check_declared_body(request, body)
            except RejectionError as rejection:
                if not route.own:
                    raise
                raise invalid_request(
                    f"the body has to be JSON, with `Content-Type: application/json`: {rejection}"
                ) from rejection
        request.route = route.number
        self.traffic.begin(route.number)
        if route.of_chain and self.context.node is not None:
            request.tag = self._tags.tag(self.context.node.chain, request.accepts)
            known = request.headers.get(b"if-none-match")
            if known is not None and is_known(known, request.tag):
                return NOT_MODIFIED
        # A route with a key changes the node, so it must not run twice.
        patient = self._is_patient and not route.key
        result = answered(route.handler, request) if patient else route.handler(request)
        return _Later(result, rest, route.route) if isinstance(result, Coroutine) else result

    def _check_key(self, request: Request, scope: str) -> None:
        known: frozenset[str] = frozenset()
        offered = ""
        for name in (b"x-api-key", b"api_key"):
            value = request.headers.get(name)
            if value is not None:
                offered = header_text(value)
                if self.context.check_api_key(offered):
                    return
                known |= self.context.scopes_of_key(offered)
        if scope in known:
            return
        raise API_KEY_NOT_VALID.error().with_hint(self._about_key(offered, scope, known))

    def _about_key(self, offered: str, scope: str, known: frozenset[str]) -> str:
        """A hint about a missing, wrong or insufficient key."""
        if not offered:
            return NO_KEY
        if self.context.is_api_key_hash(offered):
            return KEY_IS_HASH
        return f"this needs a key with the scope {scope}" if known else WRONG_KEY


def _check_declared_body(request: Request, body: Body) -> None:
    kind = body.kind
    content_type = request.content_type()
    is_form = kind is BodyKind.FORM_OR_JSON and content_type in (FORM_URLENCODED, b"")
    if kind is not BodyKind.TEXT and content_type != APPLICATION_JSON and not is_form:
        raise RejectionError("content type")
    if kind is BodyKind.TEXT:
        return
    if not content_type and request.body:
        raise RejectionError("content type")
    if not request.body and not is_form:
        raise RejectionError("empty body")
    if kind is not BodyKind.JSON and not is_form:
        try:
            request.json()
        except ApiError as error:
            raise RejectionError("malformed JSON") from error


def _render(result: object, accepts: Accepted) -> object:
    """Encode a handler's result as JSON, unless it is a response already."""
    if isinstance(result, (Whole, _Later, Deferred, Stream)):
        return result
    return json_answer(result, accepts)


def _error_answer(error: ApiError, request: Request) -> Whole:
    after = error.retry_after
    headers: Headers = () if after is None else ((b"retry-after", b"%d" % after),)
    return json_answer(error.body(), request.accepts, error.kind.status, headers)


_TAGGED: Final = (200, 304)


def _with_length(answer: Whole) -> Headers:
    length = b"%d" % len(answer.body)
    return ((b"content-type", answer.content_type), (b"content-length", length), *answer.headers)


async def _pieces(body: bytes) -> AsyncIterator[bytes]:
    """Yield a long body in chunks, so that other connections can send in between."""
    for start in range(0, len(body), PIECE_BYTES):
        yield body[start : start + PIECE_BYTES]


def _free_of_charge(_length: int) -> None:
    """The charge callback for clients without limits."""


def _no_slot() -> None:
    """The leave callback for answers that occupy no slot."""
