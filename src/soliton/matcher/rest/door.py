"""The door of a matcher's interface: everything between a connection and the answer of a route.

What lives here: limits on what a client sends and how often, bodies, the headers of all answers.
What does not: sockets and HTTP parsing (``soliton.web``), answers (``application``, and ``front``
in a process that stands before the matcher).

Source: wavesplatform/matcher
``dex/src/main/scala/com/wavesplatform/dex/api/http/CompositeHttpService.scala``.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from typing import Final, NamedTuple, Protocol, cast

from soliton.matcher.rest.answers import BODY_TOO_SLOW, TEXT, TOO_LARGE, Answer
from soliton.matcher.settings import RestApi
from soliton.parallel.signatures import told
from soliton.web.bodies import BodyTooLongError, ClientGoneError, read_body
from soliton.web.budgets import Budgets
from soliton.web.clients import LOCAL, client_key
from soliton.web.cors import CLOSED, KEY_HEADERS, REQUEST_HEADERS, Cors, with_cors
from soliton.web.tallies import Tallies
from soliton.web.types import (
    AsgiApplication,
    Headers,
    LaterAnswer,
    Message,
    Receive,
    Scope,
    Send,
    SoonAnswer,
    WholeAnswer,
)
from soliton.web.upstream import CLIENT_HEADER

REQUESTS, OVER_LIMIT, FAILURES = range(3)
"""What all processes of a matcher count together, as numbers of their tallies."""
_SLOW_BODY_SECONDS: Final = 20.0
_LENGTH_DIGITS: Final = 9
_EXPOSED: Final = ("Retry-After", "matcher-http-server")
_TOO_MANY_STATUS: Final = 429
_TOO_MANY: Final = b"This client has sent more requests than it may; see Retry-After."
_WITH_BODY: Final = ("POST", "PUT", "DELETE")

SomeAnswer = WholeAnswer | SoonAnswer | LaterAnswer


class Asked(NamedTuple):
    """A request within its limits. Names of headers are in lower case; ``host`` is the address of
    the client.
    """

    method: str
    path: bytes
    query: bytes
    headers: dict[bytes, bytes]
    body: bytes
    host: str


class Responder(Protocol):
    """What answers requests that have been let in."""

    def respond(self, asked: Asked) -> SomeAnswer:
        """The answer, or what will give it; raises nothing, and neither does that."""


class Door:
    """An ASGI application around a ``responder``; ``sockets`` takes the WebSocket connections.

    One that is ``behind`` other doors hears from them who its clients are, and leaves to them to
    count and limit requests.
    """

    def __init__(
        self,
        api: RestApi,
        server_name: str,
        responder: Responder,
        tallies: Tallies,
        sockets: AsgiApplication | None = None,
        *,
        behind: bool = False,
    ) -> None:
        self._responder = responder
        self._sockets = sockets
        self._tallies = tallies
        self._behind = behind
        self._max_body_bytes = api.max_body_bytes
        self._budgets: Budgets | None = None
        if api.limits.requests_per_second:
            per_second, burst = api.limits.requests_per_second, api.limits.burst
            self._budgets = Budgets(per_second, burst, tallies)
        self._limits_local = api.limits.local_clients
        self.cors = _cors(api)
        self._common, self._preflight = _headers(self.cors, server_name)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request; nothing but a cancellation ever leaves here."""
        client = cast("tuple[str, int] | None", scope.get("client"))
        host = client[0] if client else ""
        headers = dict(cast("list[tuple[bytes, bytes]]", scope["headers"]))
        if scope["type"] == "websocket":
            if self._sockets is not None:
                if self._behind:
                    host = headers.get(CLIENT_HEADER, b"").decode("latin-1")
                await self._sockets(scope, self._in_budget(host, receive), send)
            return
        method, path = cast("str", scope["method"]), cast("bytes", scope["raw_path"])
        query = cast("bytes", scope["query_string"])
        whole = self._over_limit(host, method)
        if whole is None:
            body: bytes | Answer = b""
            if method in _WITH_BODY:
                body = await self._body(headers, receive)
            if isinstance(body, Answer):
                whole = self.whole(body, method)
            else:
                asked = Asked(method, path, query, headers, body, host)
                whole = await _all_of(self._responder.respond(asked))
        await _send(self._for_page(whole, method, headers.get(b"origin")), send)

    def answer_at_once(
        self,
        method: str,
        path: bytes,
        query: bytes,
        headers: dict[bytes, bytes],
        body: bytes,
        host: str,
    ) -> SomeAnswer:
        """The answer to a request that is all there."""
        answer: SomeAnswer | None = self._over_limit(host, method)
        if answer is None and len(body) > self._max_body_bytes:
            answer = self.whole(TOO_LARGE, method)
        if answer is None:
            answer = self._responder.respond(Asked(method, path, query, headers, body, host))
        origin = headers.get(b"origin")
        if origin is None:
            return answer
        if isinstance(answer, WholeAnswer):
            return self._for_page(answer, method, origin)
        return self._later_for_page(answer, method, origin)

    def _later_for_page(
        self, answer: SoonAnswer | LaterAnswer, method: str, origin: bytes
    ) -> SomeAnswer:
        """The same, once it is there."""
        if isinstance(answer, SoonAnswer):
            begin = answer.begin

            def told(tell: Callable[[WholeAnswer], None]) -> None:
                begin(lambda whole: tell(self._for_page(whole, method, origin)))

            return SoonAnswer(told)

        async def later() -> WholeAnswer:
            return self._for_page(await answer, method, origin)

        return later()

    def _for_page(self, answer: WholeAnswer, method: str, origin: bytes | None) -> WholeAnswer:
        """The answer as a page of this origin may read it. An answer may be kept for many."""
        if origin is None or not self.cors.allows:
            return answer
        return answer._replace(headers=with_cors(answer.headers, self.cors, method, origin))

    def whole(self, answer: Answer, method: str) -> WholeAnswer:
        """The answer with all of its headers."""
        headers = (
            (b"content-type", answer.content_type),
            (b"content-length", b"%d" % len(answer.body)),
            *answer.headers,
            *(self._preflight if method == "OPTIONS" else self._common),
        )
        return WholeAnswer(answer.status, headers, answer.body)

    def count(self, number: int) -> None:
        """One more of what is counted."""
        self._tallies.own[number] += 1

    def _over_limit(self, host: str, method: str) -> WholeAnswer | None:
        """Count a request; the refusal of a client that has used up its budget, if it has."""
        if self._behind:
            return None
        wait = self._pay(host)
        self.count(REQUESTS if wait <= 0 else OVER_LIMIT)
        if wait <= 0:
            return None
        later = (b"retry-after", b"%d" % math.ceil(wait))
        return self.whole(Answer(_TOO_MANY, _TOO_MANY_STATUS, TEXT, (later,)), method)

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

    async def _body(self, headers: dict[bytes, bytes], receive: Receive) -> bytes | Answer:
        """The whole body, never more than the limit in memory; or why it is not taken."""
        limit = self._max_body_bytes
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


async def _all_of(answer: SomeAnswer) -> WholeAnswer:
    """The answer, when it is there."""
    if isinstance(answer, WholeAnswer):
        return answer
    if not isinstance(answer, SoonAnswer):
        return await answer
    return await told(answer.begin)


async def _send(answer: WholeAnswer, send: Send) -> None:
    headers = list(answer.headers)
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    await send({"type": "http.response.body", "body": answer.body})
