"""The interface of a process that stands before the matcher: it reads orders and hands them over,
and passes everything else on.

With ``rest-api.workers`` such processes serve the interface. What an order costs before the matcher
has to look at it is done here: HTTP, reading its JSON, its signature, and the words of the answer.

What lives here: which requests are which. What does not: the way of orders (``handover``), that of
other requests (``soliton.web.upstream``), processes (``soliton.cli.matcher_workers``).
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import Final

from soliton.chain.orders import Order
from soliton.crypto.curve25519 import verify
from soliton.matcher.rest.answers import FAULT, TEXT, Answer, Refusal, error_envelope
from soliton.matcher.rest.door import FAILURES, Asked, Door, SomeAnswer
from soliton.matcher.rest.handover import Handover
from soliton.matcher.rest.placing import PLACE_PATH, placed, posted_order
from soliton.matcher.settings import RestApi
from soliton.matching.account_checks import signature_to_verify
from soliton.matching.errors import MATCHER_IS_STOPPING, REQUEST_TIMEOUT, MatcherError
from soliton.web.clients import client_key
from soliton.web.tallies import Tallies
from soliton.web.types import SoonAnswer, WholeAnswer
from soliton.web.upstream import WITHOUT_EFFECT, Upstream, UpstreamBusy, UpstreamLost

UNKNOWN: Final = error_envelope(MatcherError(REQUEST_TIMEOUT), "TimedOut")
"""Nobody can say whether what was asked for was done."""
AWAY: Final = error_envelope(MatcherError(MATCHER_IS_STOPPING), "DuringShutdown")
BUSY: Final = Answer(
    b"Too many requests are under way, please try again in a short while.",
    503,
    TEXT,
    ((b"retry-after", b"1"),),
)
_log = logging.getLogger(__name__)


class Front:
    """Answers with the matcher's help; ``door`` is what a server serves."""

    def __init__(
        self,
        api: RestApi,
        server_name: str,
        chain_id: int,
        upstream: Upstream,
        handover: Handover,
        tallies: Tallies,
    ) -> None:
        self._chain_id = chain_id
        self._upstream = upstream
        self._handover = handover
        self.door = Door(api, server_name, self, tallies)

    def respond(self, asked: Asked) -> SomeAnswer:
        """What the matcher says to it."""
        method = asked.method
        if method != "POST" or asked.path != PLACE_PATH:
            return self._pass_on(asked)
        if self._handover.is_full:
            return self.door.whole(BUSY, method)
        try:
            order = posted_order(asked.headers, asked.body, self._chain_id)
        except Refusal as refusal:
            return self.door.whole(refusal.answer(), method)
        except Exception:  # noqa: BLE001 - the last line of defence
            _log.exception("an order could not be read")
            self.door.count(FAILURES)
            return self.door.whole(FAULT, method)
        return SoonAnswer(partial(self._hand_over, order))

    def _hand_over(self, order: Order, answer: Callable[[WholeAnswer], None]) -> None:
        def tell(refusal: Answer | None) -> None:
            answer(self.door.whole(refusal or placed(order), "POST"))

        self._handover.hand(order, _is_signed(order), tell)

    async def _pass_on(self, asked: Asked) -> WholeAnswer:
        method, path, query, headers, body, host = asked
        try:
            answer = await self._upstream.pass_on(
                method, path.decode("latin-1"), query, headers, body, client_key(host)
            )
            return WholeAnswer(answer.status, answer.headers, await answer.read())
        except UpstreamBusy:
            return self.door.whole(BUSY, method)
        except UpstreamLost:
            return self.door.whole(AWAY if method in WITHOUT_EFFECT else UNKNOWN, method)


def _is_signed(order: Order) -> bool | None:
    """Whether its signature is valid; ``None`` where that is no question of one signature."""
    try:
        claim = signature_to_verify(order)
    except MatcherError:
        return None
    return None if claim is None else verify(*claim)
