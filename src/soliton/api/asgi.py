"""The ASGI application: from a request's first byte to its last answer.

What lives here: the order of checks (path, method, API key, parameters, content type, body,
handler), turning results and errors into responses, CORS. What does not: sockets and HTTP parsing
(``soliton.web``), declarations (``routes``).

The answers to requests that no route takes are those of the reference node, whose routes end in
``complete(404)``: wavesplatform/Waves
``node/src/main/scala/com/wavesplatform/api/http/CompositeHttpService.scala``, ``ApiRoute.scala``.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import cast

import msgspec

from soliton.api.context import ApiContext
from soliton.api.errors import API_KEY_NOT_VALID, UNKNOWN, ApiError, RejectionError
from soliton.api.etags import StateTags, is_known
from soliton.api.fair_limits import LEAST_COST_SECONDS, SECONDS_PER_BYTE, UNCOUNTED, FairLimits
from soliton.api.hints import KEY_IS_HASH, NO_KEY, WRONG_KEY, about_method, about_request
from soliton.api.http import (
    APPLICATION_JSON,
    FORM_URLENCODED,
    Json,
    JsonStream,
    NumberStream,
    Raw,
    RawStream,
    Relayed,
    Request,
    Soon,
    header_text,
)
from soliton.api.leaving import ClientLeftError, for_client
from soliton.api.measuring import measured, measured_items
from soliton.api.routes import Body, BodyKind, CompiledRoute, Match, Route, Router
from soliton.api.scopes import DEBUG
from soliton.api.significands import with_strings
from soliton.api.streaming import open_stream, send_stream
from soliton.api.traffic import Traffic
from soliton.api.troubles import Troubles
from soliton.errors import EnvironmentProblem
from soliton.parallel.signatures import told
from soliton.storage.errors import StorageProblem
from soliton.web.bodies import BodyTooLongError, ClientGoneError, read_body
from soliton.web.clients import client_key
from soliton.web.significands import JSON_WITH_STRINGS, Accepted, accepted
from soliton.web.types import (
    AsgiApplication,
    Headers,
    Message,
    Receive,
    Scope,
    Send,
    SoonAnswer,
    WholeAnswer,
)

REQUEST_SECONDS = 20.0
"""How long a body may take to arrive, and a handler to answer (akka-http's request-timeout)."""

PIECE_BYTES = 64 * 1024
"""A longer answer is sent in pieces of this size, as fast as the client takes them."""

MAX_CLIENT_BYTES = 256
"""Of the name that a client has with whoever passes its requests on: longer than any address."""

MAX_LENGTH_DIGITS = 18
"""A longer number of bytes is too long, whatever it is."""

NOT_FOUND = Raw(
    b"The requested resource could not be found but may be available again in the future.",
    status=404,
)
METHOD_NOT_ALLOWED = Raw(
    b"A request was made of a resource using a request method not supported by that resource; "
    b"for example, using GET on a form which requires data to be presented via POST, or using "
    b"PUT on a read-only resource.",
    status=405,
)
TOO_LONG = Raw(b"The request's body is longer than this server takes.", status=413)
TIMED_OUT = Raw(
    b"The server was not able to produce a timely response to your request.\r\n"
    b"Please try again in a short while!",
    status=503,
    headers=((b"retry-after", b"1"),),
)
OPTIONS_OK = Raw(b"OK")
NOT_MODIFIED = Raw(b"", APPLICATION_JSON, 304)

logger = logging.getLogger("soliton.api")
_FAILED = "%s %s failed"
encode_json = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True)
class _Later:
    """A handler's coroutine, and the routes that may still try when it rejects the request."""

    coroutine: Coroutine[object, object, object]
    rest: Iterator[Match]
    route: Route


class _BodyWantedError(Exception):
    """The body has to be read before the request can be answered."""


class _Exchange(msgspec.Struct, frozen=True):
    """One request on its way: what was asked, and what the client can read."""

    request: Request
    wish: Accepted
    more: Headers


class Application:
    """An ASGI 3 application made of declared routes."""

    def __init__(
        self, context: ApiContext, routes: Sequence[Route], guarded: Sequence[str] = ()
    ) -> None:
        """``guarded`` are path prefixes under which nothing is said without the API key."""
        self.context = context
        self.cors = context.cors
        self.routes = tuple(routes)
        compiled = [CompiledRoute(route, number) for number, route in enumerate(routes)]
        context.traffic.count_routes(compiled)
        self._calls = context.traffic.calls
        self._router = Router(compiled)
        self._guarded = tuple(guarded)
        self._tags = StateTags()
        self._fair = FairLimits(context.limits, context.traffic.tallies)
        self._troubles = Troubles()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request; nothing but a cancellation ever leaves here."""
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1000})
            return
        client = cast("tuple[str, int] | None", scope.get("client"))
        exchange = self._exchange(
            cast("str", scope["method"]),
            cast("bytes", scope["raw_path"]),
            cast("bytes", scope["query_string"]),
            dict(cast("list[tuple[bytes, bytes]]", scope["headers"])),
            "" if client is None else client[0],
        )
        try:
            response = self._respond(exchange)
        except _BodyWantedError:
            response = await self._read_and_respond(exchange, receive)
        await self._finish(exchange, response, receive, send)

    def answer_at_once(
        self,
        method: str,
        path: bytes,
        query: bytes,
        headers: dict[bytes, bytes],
        body: bytes,
        host: str,
    ) -> WholeAnswer | SoonAnswer | AsgiApplication:
        """Answer a request that is all there; or give what will, where that takes time."""
        exchange = self._exchange(method, path, query, headers, host)
        exchange.request.body = body
        exchange.request.body_read = True
        too_long = len(body) > self.context.limits.body_bytes
        response = TOO_LONG if too_long else self._respond(exchange)
        if isinstance(response, Soon):
            return SoonAnswer(partial(self._answer_soon, exchange, response))
        if isinstance(response, Raw) and len(response.body) <= PIECE_BYTES:
            return WholeAnswer(response.status, _headers(response, exchange), response.body)

        async def finish(_scope: Scope, receive: Receive, send: Send) -> None:
            await self._finish(exchange, response, receive, send)

        return finish

    def _answer_soon(
        self, exchange: _Exchange, soon: Soon, tell: Callable[[WholeAnswer], None]
    ) -> None:
        def take(verdict: bool) -> None:
            response = self._respond_then(exchange, soon, verdict)
            tell(WholeAnswer(response.status, _headers(response, exchange), response.body))

        soon.ask(take)

    def _respond_then(self, exchange: _Exchange, soon: Soon, verdict: bool) -> Raw:
        """The answer to what has waited; its client pays for the second part as for the first."""
        client, started = exchange.request.client, time.perf_counter()
        try:
            response = _render(soon.then(verdict), exchange.wish)
        except ApiError as error:
            response = _error_response(error, exchange.wish, self.context.traffic)
        except Exception as error:  # noqa: BLE001 - the last line of defence
            response = self._failed(exchange, error)
        self._fair.charge(client, time.perf_counter() - started + soon.seconds)
        assert isinstance(response, Raw)
        return response

    def _failed(self, exchange: _Exchange, fault: Exception) -> Raw:
        """A fault of ours must not end the connection or the process; nor does a trouble with the
        disk, which has an error of its own.
        """
        trouble = self._troubles.answer(fault)
        if trouble is not None:
            return _error_response(trouble, exchange.wish, self.context.traffic)
        logger.error(_FAILED, exchange.request.method, exchange.request.path, exc_info=fault)
        return _error_response(UNKNOWN.error(), exchange.wish, self.context.traffic)

    def _exchange(
        self, method: str, path: bytes, query: bytes, headers: dict[bytes, bytes], host: str
    ) -> _Exchange:
        more = self.cors.headers(method, headers.get(b"origin"))
        request = Request(self.context, method, headers, query, path.decode("latin-1"))
        request.client = self._client(headers, host)
        request.fair = self._fair
        return _Exchange(request, accepted(headers.get(b"accept")), more)

    def _client(self, headers: dict[bytes, bytes], host: str) -> str:
        name = self.context.client_header
        if name is None:
            return client_key(host)
        return header_text(headers[name][:MAX_CLIENT_BYTES]) if name in headers else UNCOUNTED

    def _respond(self, exchange: _Exchange) -> object:
        """The answer, as far as it can be given without waiting: ``Raw``, a stream or ``_Later``.

        Raises ``_BodyWantedError``, and then begins anew when called again.
        """
        try:
            self.context.look()
        except StorageProblem as error:
            return self._failed(exchange, error)
        client = exchange.request.client
        if not self._fair.counts(client):
            return self._try_to_respond(exchange)
        try:
            self._fair.admit(client)
        except ApiError as error:
            return _error_response(error, exchange.wish, self.context.traffic)
        started = time.perf_counter()
        try:
            return self._try_to_respond(exchange)
        finally:
            self._fair.charge(client, time.perf_counter() - started + LEAST_COST_SECONDS)

    def _try_to_respond(self, exchange: _Exchange) -> object:
        request, traffic = exchange.request, self.context.traffic
        try:
            if request.method == "OPTIONS":
                return OPTIONS_OK
            matches = iter(self._router.find(exchange.request.path))
            return _render(self._dispatch(exchange, matches), exchange.wish)
        except RejectionError:
            return NOT_FOUND
        except ApiError as error:
            return _error_response(error, exchange.wish, traffic)
        except _BodyWantedError:
            raise
        except Exception as error:  # noqa: BLE001 - the last line of defence
            return self._failed(exchange, error)

    async def _read_and_respond(self, exchange: _Exchange, receive: Receive) -> object:
        request = exchange.request
        try:
            request.body = await _read_body(request, receive)
        except BodyTooLongError:
            return TOO_LONG
        except (TimeoutError, ClientGoneError):
            return TIMED_OUT
        request.body_read = True
        return self._respond(exchange)

    async def _finish(
        self, exchange: _Exchange, response: object, receive: Receive, send: Send
    ) -> None:
        """Send an answer; one that takes more than a moment has to find a place."""
        if isinstance(response, Soon):
            response = self._respond_then(exchange, response, await told(response.ask))
        if isinstance(response, Raw) and len(response.body) <= PIECE_BYTES:
            await _send_whole(response, exchange, send)
            return
        if isinstance(response, _Later) and response.route.relayed:
            await self._wait_and_send(exchange, response, receive, send)
            return
        waits = isinstance(response, _Later) and response.route.seconds is not None
        idle = waits or isinstance(response, RawStream)
        client = exchange.request.client
        try:
            self._fair.enter(client, idle=idle)
        except ApiError as error:
            if isinstance(response, _Later):
                response.coroutine.close()
            refusal = _error_response(error, exchange.wish, self.context.traffic)
            await _send_whole(refusal, exchange, send)
            return
        try:
            await self._wait_and_send(exchange, response, receive, self._charging(exchange, send))
        finally:
            self._fair.leave(client, idle=idle)

    def _charging(self, exchange: _Exchange, send: Send) -> Send:
        """The same, with the bytes that it sends on the client's account."""
        client, fair = exchange.request.client, self._fair
        if not fair.counts(client):
            return send

        async def charged(message: Message) -> None:
            body = message.get("body")
            if isinstance(body, bytes):
                fair.charge(client, len(body) * SECONDS_PER_BYTE)
            await send(message)

        return charged

    async def _wait_and_send(
        self, exchange: _Exchange, response: object, receive: Receive, send: Send
    ) -> None:
        """Wait for what is not there yet, and send it."""
        wish, traffic, more = exchange.wish, self.context.traffic, exchange.more
        try:
            while isinstance(response, _Later):
                response = await self._carry_on(exchange, response, receive)
            if isinstance(response, JsonStream):
                items = measured_items(response.items, exchange.request.charge)
                response = replace(response, items=items)
            if isinstance(response, Relayed):
                # The other process has been told the origin, and has answered it.
                more = ()
            if not isinstance(response, Raw):
                response = await open_stream(response, self.context.turns, wish)
        except ApiError as error:
            response = _error_response(error, wish, traffic)
        except TimeoutError:
            response = TIMED_OUT
        except ClientLeftError:
            return
        except Exception as error:  # noqa: BLE001 - the last line of defence
            response = self._failed(exchange, error)
        if isinstance(response, Raw):
            await _send_whole(response, exchange, send)
            return
        try:
            await send_stream(response, more, receive, send)
        except EnvironmentProblem as error:
            # The answer has begun: that it has no end is all that its client can be told.
            self._troubles.note(error)

    async def _carry_on(self, exchange: _Exchange, later: _Later, receive: Receive) -> object:
        # The chain may go on while the answer is made.
        exchange.request.tag = None
        try:
            async with asyncio.timeout(later.route.seconds or REQUEST_SECONDS):
                work = measured(later.coroutine, exchange.request.charge)
                # What needs the key changes the node: that is carried to its end.
                result = await (work if later.route.key else for_client(work, receive))
        except RejectionError:
            result = self._dispatch(exchange, later.rest)
        return _render(result, exchange.wish)

    def _dispatch(self, exchange: _Exchange, matches: Iterator[Match]) -> object:
        """What the first route that takes the request says; else 403, 405 or 404 text."""
        methods: set[str] = set()
        reason = ""
        for match in matches:
            try:
                return self._try(exchange, match, matches)
            except RejectionError as rejection:
                if exchange.request.method in match[0].methods:
                    reason = str(rejection)
                else:
                    methods |= match[0].methods
        path = exchange.request.path
        for prefix in self._guarded:
            if path == prefix or path.startswith(prefix + "/"):
                self._check_key(exchange.request, DEBUG)
        hints = about_request(reason) if reason or not methods else about_method(methods)
        return msgspec.structs.replace(NOT_FOUND, headers=hints) if hints else NOT_FOUND

    def _try(self, exchange: _Exchange, match: Match, rest: Iterator[Match]) -> object:
        route, segments = match
        request, body = exchange.request, route.body
        if request.method not in route.methods:
            if body is None or not body.get_is_405 or request.method != "GET":
                raise RejectionError("method")
            if route.key:
                self._check_key(request, route.scope)
            return msgspec.structs.replace(METHOD_NOT_ALLOWED, headers=about_method(route.methods))
        if route.key:
            self._check_key(request, route.scope)
        if (route.path or route.queries) and not route.convert(request, segments):
            raise RejectionError("parameter")
        if exchange.wish is Accepted.NOTHING and route.is_json:
            raise RejectionError("accept")
        if body is not None:
            _check_declared_body(request, body)
        self._calls[route.number] += 1
        if route.of_chain and self.context.node is not None:
            request.tag = self._tags.tag(self.context.node.chain, exchange.wish)
            known = request.headers.get(b"if-none-match")
            if known is not None and is_known(known, request.tag):
                return NOT_MODIFIED
        result = route.handler(request)
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
        """What to do about a key that is not enough."""
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
    if not request.body_read:
        raise _BodyWantedError
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


async def _read_body(request: Request, receive: Receive) -> bytes:
    """The whole body, never more than the limit in memory; none of one that breaks off."""
    limit = request.context.limits.body_bytes
    declared = request.headers.get(b"content-length", b"0")
    if len(declared) > MAX_LENGTH_DIGITS or int(declared) > limit:
        raise BodyTooLongError
    async with asyncio.timeout(REQUEST_SECONDS):
        return await read_body(receive, limit)


_ALREADY_RENDERED = (Raw, Soon, _Later, JsonStream, NumberStream, RawStream, Relayed)


def _render(result: object, wish: Accepted) -> object:
    """A handler's result as bytes, if it is there and no stream."""
    if isinstance(result, _ALREADY_RENDERED):
        return result
    if isinstance(result, Json):
        response = _json_response(result.value, result.status, wish)
        return (
            msgspec.structs.replace(response, headers=result.headers)
            if result.headers
            else response
        )
    return _json_response(result, 200, wish)


def _json_response(value: object, status: int, wish: Accepted) -> Raw:
    encoded = encode_json(value)
    if wish is Accepted.STRINGS:
        return Raw(with_strings(encoded), JSON_WITH_STRINGS, status)
    return Raw(encoded, APPLICATION_JSON, status)


def _error_response(error: ApiError, wish: Accepted, traffic: Traffic) -> Raw:
    traffic.count_error(error.kind.status)
    response = _json_response(error.body(), error.kind.status, wish)
    if error.retry_after is None:
        return response
    return msgspec.structs.replace(response, headers=((b"retry-after", b"%d" % error.retry_after),))


_TAGGED = (200, 304)


def _headers(response: Raw, exchange: _Exchange) -> Headers:
    more, tag = exchange.more, exchange.request.tag
    if tag is not None and response.status in _TAGGED:
        more = ((b"etag", tag), *more)
    own = (
        (b"content-type", response.content_type),
        (b"content-length", b"%d" % len(response.body)),
    )
    return own + response.headers + more if response.headers or more else own


async def _send_whole(response: Raw, exchange: _Exchange, send: Send) -> None:
    """In pieces that let other connections send theirs in between."""
    body = response.body
    headers = _headers(response, exchange)
    await send({"type": "http.response.start", "status": response.status, "headers": headers})
    for start in range(0, len(body) - PIECE_BYTES, PIECE_BYTES):
        piece = body[start : start + PIECE_BYTES]
        await send({"type": "http.response.body", "body": piece, "more_body": True})
    start = max(0, (len(body) - 1) // PIECE_BYTES * PIECE_BYTES)
    await send({"type": "http.response.body", "body": body[start:]})
