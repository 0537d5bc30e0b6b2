"""The interface of a process that stands before the matcher: it reads orders and hands them over,
and passes everything else on.

With ``rest-api.workers`` such processes serve the interface. What an order costs before the matcher
has to look at it is done here: HTTP, reading its JSON, its signature, and the words of the answer.

What lives here: which requests are which. What does not: the way of orders (``order_channel``),
that of other requests (``soliton.web.upstream``), processes (``soliton.cli.matcher_workers``).
"""

from __future__ import annotations

import logging
from functools import partial
from typing import Final

from soliton.chain.orders import Order
from soliton.crypto.curve25519 import verify
from soliton.matcher.rest.answers import FAULT, TEXT, Answer, Refusal, error_envelope
from soliton.matcher.rest.http_gate import FAILURES, HttpGate, Pay
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
from soliton.web.shared_counters import SharedCounters
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
    """Answers with the matcher's help; ``gate`` is what a server serves."""

    def __init__(
        self,
        api: RestApi,
        server_name: str,
        chain_id: int,
        upstream: Upstream,
        channel: OrderChannel,
        counters: SharedCounters,
        handoff: SocketHandoff,
    ) -> None:
        self._chain_id = chain_id
        self._upstream = upstream
        self._channel = channel
        self.gate = HttpGate(api, server_name, self, counters, _HandedOff(handoff))

    def respond(self, asked: Request) -> web.Answer:
        """What the matcher says to it."""
        method = asked.method
        if method != "POST" or asked.path != PLACE_PATH:
            return web.Awaited(self._pass_on(asked))
        if self._channel.is_full:
            return self.gate.whole(BUSY, method)
        try:
            order = posted_order(asked.headers, asked.body, self._chain_id)
        except Refusal as refusal:
            return self.gate.whole(refusal.answer(), method)
        except Exception:  # noqa: BLE001 - the last line of defence
            _log.exception("an order could not be read")
            self.gate.count(FAILURES)
            return self.gate.whole(FAULT, method)

        def answer(refusal: RefusalFields | None) -> web.Whole:
            said = placed(order) if refusal is None else Answer(*refusal)
            return self.gate.whole(said, method)

        sent = submitted(order, _is_signed(order))
        return web.Deferred(partial(self._channel.submit, sent), answer)

    async def _pass_on(self, asked: Request) -> web.Whole:
        method = asked.method
        try:
            answer = await self._upstream.pass_on(
                method,
                asked.path,
                asked.query_string,
                asked.headers,
                asked.body,
                client_key(asked.host),
            )
            return web.Whole(await answer.read(), b"", answer.status, answer.headers)
        except HttpBusy:
            return self.gate.whole(BUSY, method)
        except HttpTrouble:
            return self.gate.whole(AWAY if method in WITHOUT_EFFECT else UNKNOWN, method)


class _HandedOff:
    """WebSocket connections are the matcher's."""

    def __init__(self, handoff: SocketHandoff) -> None:
        self._answer = web.HandOver(handoff.take)

    def respond(self, _request: Request, _pay: Pay) -> web.HandOver:
        """Hand the connection over."""
        return self._answer


def _is_signed(order: Order) -> bool | None:
    """Whether its signature is valid; ``None`` where that is no question of one signature."""
    try:
        claim = signature_to_verify(order)
    except MatcherError:
        return None
    return None if claim is None else verify(*claim)
