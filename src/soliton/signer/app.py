"""The signer as a service.

What lives here: the routes, turning every failure into a JSON error, and the log line of a signed
transaction. What does not: sockets and limits on bodies (``soliton.web``).

Nothing that is logged or answered holds the seed: it becomes keys in ``request``, and a failure of
our own is logged by its kind and place only, since the words of a foreign exception may quote what
it was given.
"""

from __future__ import annotations

import dataclasses
import json
import logging
import traceback
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from soliton.pages.files import file_answer, page_answer
from soliton.signer.errors import (
    BODY_TOO_LARGE,
    BODY_TOO_SLOW,
    BUSY,
    INTERNAL,
    NO_SUCH_METHOD,
    NO_SUCH_PATH,
    ErrorAnswer,
    Fault,
    NodeRefused,
    NodeTrouble,
    RequestRefused,
)
from soliton.signer.node_client import NodeClient
from soliton.signer.openapi import openapi_document
from soliton.signer.page import signer_page
from soliton.signer.request import read_request
from soliton.signer.settings import PREFLIGHT_SECONDS, Limits, SignerSettings
from soliton.signer.signing import sign_data, to_json
from soliton.web.answers import APPLICATION_JSON, Answer, Awaited, BodyLimits, Unread, Whole
from soliton.web.cors import CLOSED, Cors, with_cors
from soliton.web.request import Request

if TYPE_CHECKING:
    from soliton.signer.key_service import KeyService

__all__ = ["Limits", "Signer", "SignerSettings", "build_app"]

Handler = Callable[[Request], Answer]

PAGES: Final = "/pages/"
BLOCK_BYTES: Final = 2 * 1024 * 1024
"""The largest body of a signer that keeps keys: a block of a mebibyte in base64."""
_METHODS: Final = ("OPTIONS", "POST", "GET")
_EXPOSED: Final = ("Retry-After",)
_PREFLIGHT: Final = Whole(b"OK", b"text/plain")

logger = logging.getLogger("soliton.signer")


def build_app(settings: SignerSettings) -> Signer:
    """The service; raises ``InputError`` for a node address that is none, and what ``KeyService``
    raises.
    """
    return Signer(settings)


class Signer:
    """The operations, and the little that they share: the node, the last timestamp, the load."""

    request_class = Request

    def __init__(self, settings: SignerSettings) -> None:
        limits = settings.limits
        self.cors = CLOSED
        if settings.cors:
            self.cors = Cors(methods=_METHODS, exposed=_EXPOSED, seconds=PREFLIGHT_SECONDS)
        if settings.keys is not None:
            # Of a block all transactions come along, in base64.
            limits = dataclasses.replace(limits, body_bytes=max(limits.body_bytes, BLOCK_BYTES))
            settings = dataclasses.replace(settings, limits=limits)
        self.body_limits = BodyLimits(limits.body_bytes, limits.body_seconds)
        self._node = NodeClient(settings)
        self._keys: KeyService | None = None
        if settings.keys is not None:
            # Most of the package, which a signer without keys does not need.
            from soliton.signer.key_service import KeyService

            self._keys = KeyService(settings, settings.keys, self._node, None)
        self._settings = settings
        self._last_timestamp = 0
        self._running = 0
        document = _json(openapi_document(settings))
        self._routes: dict[str, tuple[str, Handler]] = {
            "/data": ("POST", self._data),
            "/health": ("GET", lambda _: _json({"status": "ok", "network": settings.network.name})),
            "/ready": ("GET", lambda _: Awaited(self._ready())),
            "/openapi.json": ("GET", lambda _: document),
        }
        root = signer_page(settings)
        self._routes["/"] = "GET", lambda request: page_answer(root, request.headers)

    def begin(self) -> None:
        """Do what comes before the first request; from within the event loop."""
        if self._keys is not None:
            self._keys.begin()

    def close(self) -> None:
        """Close the connections to the node, and the audit log."""
        self._node.close()
        if self._keys is not None:
            self._keys.close()

    def respond(self, request: Request) -> Answer:
        """The answer to a request."""
        if self._keys is not None and self._keys.routes.takes(request.path):
            return self._keys.origins.respond(request, self._keys.routes.respond)
        if request.method == "OPTIONS" and self.cors.allows:
            return self._for_page(request, _PREFLIGHT)
        handler = self._handler(request)
        answer = handler if isinstance(handler, Whole) else handler(request)
        if isinstance(answer, Awaited):
            return Awaited(self._later_for_page(request, answer))
        assert isinstance(answer, Whole)
        return self._for_page(request, answer)

    def refuse(self, request: Request, reason: Unread) -> Whole:
        """The answer to a request whose body will not be read."""
        limits, handler = self._settings.limits, self._handler(request)
        has_keys = self._keys is not None and self._keys.routes.takes(request.path)
        if isinstance(handler, Whole) and not has_keys:
            answer = handler
        elif reason is Unread.TOO_LONG:
            message = f"the body is larger than {limits.body_bytes} bytes"
            answer = _refusal(RequestRefused(BODY_TOO_LARGE, message).answer)
        else:
            message = f"the body did not arrive within {limits.body_seconds:g} s"
            answer = _refusal(RequestRefused(BODY_TOO_SLOW, message).answer)
        return self._for_page(request, answer)

    def _handler(self, request: Request) -> Handler | Whole:
        """What answers a request, or why nothing does."""
        found = self._routes.get(request.path)
        if found is None and request.path.startswith(PAGES):
            found = "GET", _file
        if found is None:
            return _fault(NO_SUCH_PATH)
        method, handler = found
        methods = (method, "HEAD") if method == "GET" else (method,)
        if request.method not in methods:
            return _fault(NO_SUCH_METHOD, (b"allow", ", ".join(methods).encode("ascii")))
        return handler

    def _for_page(self, request: Request, answer: Whole) -> Whole:
        """The answer as a page of the request's origin may read it."""
        origin = request.headers.get(b"origin")
        headers = with_cors(answer.headers, self.cors, request.method, origin)
        return Whole(answer.body, answer.content_type, answer.status, headers)

    async def _later_for_page(self, request: Request, answer: Awaited) -> Whole:
        given = await answer.work
        assert isinstance(given, Whole)
        return self._for_page(request, given)

    def _data(self, request: Request) -> Answer:
        """Sign and broadcast."""
        if self._running >= self._settings.limits.requests_at_once:
            return _fault(BUSY, (b"retry-after", b"1"))
        return Awaited(self._answer_data(request))

    async def _answer_data(self, request: Request) -> Whole:
        self._running += 1
        try:
            return _json(await self._sign_and_broadcast(request.body))
        except (RequestRefused, NodeRefused, NodeTrouble) as error:
            return _refusal(error.answer)
        except Exception as error:  # noqa: BLE001 - the last line of defence; see above
            place = traceback.extract_tb(error.__traceback__)[-1]
            logger.error("%s at %s:%s", type(error).__name__, place.filename, place.lineno)
            return _fault(INTERNAL)
        finally:
            self._running -= 1

    async def _sign_and_broadcast(self, body: bytes) -> dict[str, object]:
        wanted = read_request(body, self._settings.limits.seed_characters)
        transaction = sign_data(wanted, self._settings.network, self._timestamp())
        answer = to_json(transaction)
        await self._node.broadcast(answer)
        logger.info("broadcast data transaction %s, fee %d", answer["id"], transaction.fee)
        return answer

    def _timestamp(self) -> int:
        # Never the same twice: equal data of one account at equal times would be one transaction.
        self._last_timestamp = max(self._settings.clock(), self._last_timestamp + 1)
        return self._last_timestamp

    async def _ready(self) -> Whole:
        """Whether the node answers."""
        try:
            return _json({"ready": True, "height": await self._node.height()})
        except NodeTrouble as error:
            return _json({"ready": False, **error.answer.json()}, 503)


def _file(request: Request) -> Whole:
    """A script or style of the page."""
    answer = file_answer(request.path.removeprefix(PAGES), request.headers)
    return _fault(NO_SUCH_PATH) if answer is None else answer


def _json(value: object, status: int = 200) -> Whole:
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return Whole(text.encode(), APPLICATION_JSON, status)


def _refusal(answer: ErrorAnswer) -> Whole:
    return _json(answer.json(), answer.status)


def _fault(fault: Fault, *headers: tuple[bytes, bytes]) -> Whole:
    answer = _refusal(ErrorAnswer(fault.status, fault.code, fault.meaning))
    return Whole(answer.body, answer.content_type, answer.status, headers)
