"""The application of a worker process: it decodes and submits orders, and proxies other requests.

With ``rest-api.workers`` such processes serve the interface. They do the part of placing an order
that does not need the matcher: HTTP, decoding JSON, the signature, and encoding the response.

What lives here: dispatching requests. What does not: the channel for orders (``order_channel``),
the proxy (``soliton.web.upstream``), and the processes (``soliton.cli.matcher_workers``).
"""

from __future__ import annotations

import logging
from functools import partial
from typing import Final

from soliton.chain.orders import Order
from soliton.crypto.curve25519 import verify
from soliton.matcher.rest.answers import FAULT, TEXT, Answer, Refusal, error_envelope
from soliton.matcher.rest.http_gate import FAILURES, PLACE_ROUTE, HttpGate, Pay
from soliton.matcher.rest.order_channel import UNKNOWN, OrderChannel, RefusalFields, submitted
from soliton.matcher.rest.placing import PLACE_PATH, placed, posted_order
from soliton.matcher.settings import RestApi
from soliton.matching.account_checks import signature_to_verify
from soliton.matching.errors import MATCHER_IS_STOPPING, MatcherError
from soliton.web import answers as web
from soliton.web.client import HttpBusy, HttpTrouble
from soliton.web.client_http1 import WITHOUT_EFFECT
from soliton.web.clients import client_key
from soliton.web.handoff import SocketHandoff
from soliton.web.request import Request
from soliton.web.traffic import UNCOUNTED, Traffic
from soliton.web.upstream import Upstream

AWAY: Final = error_envelope(MatcherError(MATCHER_IS_STOPPING), "DuringShutdown")
BUSY: Final = Answer(
    b"Too many requests are under way, please try again in a short while.",
    503,
    TEXT,
    ((b"retry-after", b"1"),),
)
_log = logging.getLogger(__name__)


class OrderWorker:
    """Responds with the matcher's help; a server serves ``gate``."""

    def __init__(
        self,
        api: RestApi,
        server_name: str,
        chain_id: int,
        upstream: Upstream,
        channel: OrderChannel,
        traffic: Traffic,
        handoff: SocketHandoff,
    ) -> None:
        self._chain_id = chain_id
        self._upstream = upstream
        self._channel = channel
        self.gate = HttpGate(api, server_name, self, traffic, _HandedOff(handoff))

    def respond(self, request: Request) -> web.Answer:
        """The matcher's response to a request."""
        method = request.method
        if method != "POST" or request.path != PLACE_PATH:
            # The matcher counts it.
            request.route = UNCOUNTED
            return web.Awaited(self._pass_on(request))
        request.route = PLACE_ROUTE
        self.gate.traffic.begin(PLACE_ROUTE)
        if self._channel.is_full:
            return self.gate.whole(BUSY, method)
        try:
            order = posted_order(request.headers, request.body, self._chain_id)
        except Refusal as refusal:
            return self.gate.whole(refusal.answer(), method)
        except Exception:  # noqa: BLE001 - the last line of defence
            _log.exception("an order could not be read")
            self.gate.count(FAILURES)
            return self.gate.whole(FAULT, method)

        def answer(refusal: RefusalFields | None) -> web.Whole:
            result = placed(order) if refusal is None else Answer(*refusal)
            return self.gate.whole(result, method)

        message = submitted(order, _is_signed(order))
        return web.Deferred(partial(self._channel.submit, message), answer)

    async def _pass_on(self, request: Request) -> web.Whole:
        method = request.method
        try:
            answer = await self._upstream.pass_on(
                method,
                request.path,
                request.query_string,
                request.headers,
                request.body,
                client_key(request.host),
            )
            return web.Whole(await answer.read(), b"", answer.status, answer.headers)
        except HttpBusy:
            return self.gate.whole(BUSY, method)
        except HttpTrouble:
            return self.gate.whole(AWAY if method in WITHOUT_EFFECT else UNKNOWN, method)


class _HandedOff:
    """Hands WebSocket connections over to the matcher."""

    def __init__(self, handoff: SocketHandoff) -> None:
        self._answer = web.HandOver(handoff.take)

    def respond(self, _request: Request, _pay: Pay) -> web.HandOver:
        """Hand the connection over."""
        return self._answer


def _is_signed(order: Order) -> bool | None:
    """Whether its signature is valid; ``None`` if there is no single signature to verify."""
    try:
        claim = signature_to_verify(order)
    except MatcherError:
        return None
    return None if claim is None else verify(*claim)
