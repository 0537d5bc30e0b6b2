"""CORS for the routes of stored keys: which origins' pages may call them.

What lives here: the headers for listed origins. What does not: CORS headers in general
(``soliton.web.cors``), and authentication (``callers``): a page needs an API key, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Final, TypeVar

from soliton.signer.settings import PREFLIGHT_SECONDS
from soliton.web.answers import Answer, Awaited, Deferred, Stream, Upgrade, Whole
from soliton.web.cors import CLOSED, VARY, Cors, with_cors
from soliton.web.request import Request, header_text

A = TypeVar("A")

_METHODS: Final = ("OPTIONS", "GET", "POST")
_HEADERS: Final = ("Content-Type", "X-API-Key")
_OPTIONS: Final = "OPTIONS"
_WANTS_PRIVATE: Final = b"access-control-request-private-network"
_PRIVATE: Final = ((b"access-control-allow-private-network", b"true"),)
"""Chromium requires it before a public page may send requests to an address of this machine."""


class Origins:
    """The allowed origins."""

    def __init__(self, origins: Iterable[str]) -> None:
        self._allowed = {
            origin: Cors(
                origin=origin,
                request_headers=_HEADERS,
                methods=_METHODS,
                credentials=False,
                exposed=("Retry-After",),
                seconds=PREFLIGHT_SECONDS,
            )
            for origin in origins
        }

    def respond(self, request: Request, handler: Callable[[Request], Answer]) -> Answer:
        """Return the answer of ``handler``, with CORS headers for a listed origin."""
        if not self._allowed:
            return handler(request)
        origin = header_text(request.headers.get(b"origin", b""))
        cors = self._allowed.get(origin, CLOSED)
        if request.method == _OPTIONS and cors.allows:
            private = _PRIVATE if _WANTS_PRIVATE in request.headers else ()
            return _with(cors, request, Whole(b"", status=204, headers=private))
        answer = handler(request)
        if isinstance(answer, Awaited):
            return Awaited(_later(cors, request, answer))
        if isinstance(answer, Deferred):
            then = partial(_then, cors, request, answer.then)
            return Deferred(answer.ask, then, answer.lets_next_begin)
        return _with(cors, request, answer)


def _with(cors: Cors, request: Request, answer: A) -> A | Whole:
    if not isinstance(answer, Whole):
        return answer
    headers = with_cors(answer.headers, cors, request.method, request.headers.get(b"origin"))
    if not cors.allows:
        # A cache must not serve one origin's answer to another.
        headers += (VARY,)
    return Whole(answer.body, answer.content_type, answer.status, headers)


async def _later(cors: Cors, request: Request, answer: Awaited) -> Whole | Stream | Upgrade:
    return _with(cors, request, await answer.work)


def _then(
    cors: Cors,
    request: Request,
    then: Callable[[Any], Any],
    outcome: Any,  # noqa: ANN401 - whatever was waited for
) -> Any:  # noqa: ANN401 - as above
    return _with(cors, request, then(outcome))
