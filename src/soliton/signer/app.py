"""The signer as a service.

What lives here: the routes of ``POST /data`` and of the service itself, and the log line of a
signed transaction. What does not: sockets and limits on bodies (``soliton.web``), stored keys
(``key_service``).

No log line or answer holds the seed: ``request`` turns it into keys, and of an internal error only
the kind and place are logged, since the message of an exception may quote its input.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from functools import cache
from typing import TYPE_CHECKING, Final

import msgspec

from soliton.pages.files import file_answer, page_answer
from soliton.signer import metrics
from soliton.signer.answers import (
    check_query,
    fault_answer,
    internal_error,
    json_answer,
    method_not_allowed,
    refusal,
)
from soliton.signer.errors import (
    BODY_TOO_LARGE,
    BODY_TOO_SLOW,
    BUSY,
    NO_SUCH_PATH,
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
from soliton.web.answers import Answer, Awaited, BodyLimits, Unread, Whole
from soliton.web.cors import CLOSED, Cors, with_cors
from soliton.web.monitoring import ROUTES, Health, Monitor, figures
from soliton.web.prometheus import Figure
from soliton.web.request import Request
from soliton.web.traffic import RouteName, Traffic

if TYPE_CHECKING:
    from soliton.signer.key_service import KeyService

__all__ = ["Limits", "Signer", "SignerSettings", "build_app"]

Handler = Callable[[Request], Answer]

PAGES: Final = "/pages/"
BLOCK_BYTES: Final = 2 * 1024 * 1024
"""The largest body of a signer with stored keys: a block of a mebibyte in base64."""
_WITHOUT_QUERY: Final = ("/data", "/health", "/ready")
_METHODS: Final = ("OPTIONS", "POST", "GET")
_EXPOSED: Final = ("Retry-After",)
_PREFLIGHT: Final = Whole(b"OK", b"text/plain")

logger = logging.getLogger("soliton.signer")


def build_app(settings: SignerSettings) -> Signer:
    """Return the service; raises ``InputError`` for an invalid node address, and what
    ``KeyService`` raises.
    """
    return Signer(settings)


class Signer:
    """The operations, and their shared state."""

    request_class = Request

    def __init__(self, settings: SignerSettings) -> None:
        limits = settings.limits
        self.cors = CLOSED
        if settings.cors:
            self.cors = Cors(methods=_METHODS, exposed=_EXPOSED, seconds=PREFLIGHT_SECONDS)
        if settings.keys is not None:
            # A block is sent with all its transactions, in base64.
            limits = msgspec.structs.replace(limits, body_bytes=max(limits.body_bytes, BLOCK_BYTES))
            settings = msgspec.structs.replace(settings, limits=limits)
        self.body_limits = BodyLimits(limits.body_bytes, limits.body_seconds)
        self._node = NodeClient(settings)
        self._keys: KeyService | None = None
        if settings.keys is not None:
            # A signer without stored keys does not load most of the package.
            from soliton.signer.key_service import KeyService

            self._keys = KeyService(settings, settings.keys, self._node, None)
        self._settings = settings
        self._last_timestamp = 0
        self._running = 0
        # Document and page are made at the first request.
        document = cache(lambda: json_answer(openapi_document(settings)))
        health = json_answer({"status": "ok", "network": settings.network.name})
        self._routes: dict[str, tuple[str, Handler]] = {
            "/data": ("POST", self._data),
            "/health": ("GET", lambda _: health),
            "/ready": ("GET", lambda _: Awaited(self._ready())),
            "/openapi.json": ("GET", lambda _: document()),
        }
        root = cache(lambda: signer_page(settings))
        self._routes["/"] = "GET", lambda request: page_answer(root(), request.headers)
        self._begin_monitoring()

    def _begin_monitoring(self) -> None:
        names = [RouteName(method, path) for path, (method, _) in self._routes.items()]
        names.append(RouteName("GET", PAGES + "{file}"))
        self._files = len(names)
        if self._keys is not None:
            from soliton.signer.key_routes import PATHS, PENDING

            names += [RouteName(method, path) for path, method in PATHS.items()]
            names.append(RouteName("GET,POST", PENDING + "{id}"))
        self._numbers = {name.path: number for number, name in enumerate(names, 1)}
        self.traffic = Traffic(routes=[*names, *ROUTES])
        self._monitor = Monitor(
            "signer", self.traffic, self._health, self._figures, first_route=len(names) + 1
        )

    def _number(self, path: str) -> int:
        """Return the number of a path's route in ``traffic``."""
        number = self._numbers.get(path)
        if number is not None:
            return number
        if path.startswith(PAGES):
            return self._files
        # Of the routes for keys, one has a parameter: the last.
        is_of_keys = self._keys is not None and self._keys.routes.takes(path)
        return len(self._numbers) if is_of_keys else 0

    async def _health(self) -> Health:
        if self._keys is None:
            return await metrics.health_of_node(self._node)
        return await metrics.health_of_keys(self._keys)

    def _figures(self) -> Iterable[Figure]:
        return () if self._keys is None else figures(metrics.METRICS, self._keys)

    def begin(self) -> None:
        """Run before the first request, in the event loop."""
        if self._keys is not None:
            self._keys.begin()

    def close(self) -> None:
        """Close the connections to the node, and the audit log."""
        self._node.close()
        if self._keys is not None:
            self._keys.close()

    def respond(self, request: Request) -> Answer:
        """Return the answer to a request."""
        found = self._monitor.respond(request)
        if found is not None:
            return found
        request.route = self._number(request.path)
        self.traffic.begin(request.route)
        if self._keys is not None and self._keys.routes.takes(request.path):
            return self._keys.origins.respond(request, self._keys.routes.respond)
        if request.method == "OPTIONS" and self.cors.allows:
            return self._for_page(request, _PREFLIGHT)
        handler = self._handler(request)
        answer = handler if isinstance(handler, Whole) else handler(request)
        if isinstance(answer, Awaited):
            return Awaited(self._awaited_for_page(request, answer))
        assert isinstance(answer, Whole)
        return self._for_page(request, answer)

    def refuse(self, request: Request, reason: Unread) -> Whole:
        """Return the answer to a request whose body is not read."""
        limits, handler = self._settings.limits, self._handler(request)
        is_of_keys = self._keys is not None and self._keys.routes.takes(request.path)
        if isinstance(handler, Whole) and not is_of_keys:
            answer = handler
        elif reason is Unread.TOO_LONG:
            message = f"the body is larger than {limits.body_bytes} bytes"
            answer = refusal(RequestRefused(BODY_TOO_LARGE, message).answer)
        else:
            message = f"the body did not arrive within {limits.body_seconds:g} s"
            answer = refusal(RequestRefused(BODY_TOO_SLOW, message).answer)
        return self._for_page(request, answer)

    def _handler(self, request: Request) -> Handler | Whole:
        """Return the handler of a request, or the error answer."""
        found = self._routes.get(request.path)
        if found is None and request.path.startswith(PAGES):
            found = "GET", _file
        if found is None:
            return fault_answer(NO_SUCH_PATH)
        method, handler = found
        methods = (method, "HEAD") if method == "GET" else (method,)
        if request.method not in methods:
            return method_not_allowed(*methods)
        if request.path in _WITHOUT_QUERY:
            try:
                check_query(request)
            except RequestRefused as error:
                return refusal(error.answer)
        return handler

    def _for_page(self, request: Request, answer: Whole) -> Whole:
        """Return the answer with the CORS headers for the request's origin."""
        origin = request.headers.get(b"origin")
        headers = with_cors(answer.headers, self.cors, request.method, origin)
        return Whole(answer.body, answer.content_type, answer.status, headers)

    async def _awaited_for_page(self, request: Request, answer: Awaited) -> Whole:
        result = await answer.work
        assert isinstance(result, Whole)
        return self._for_page(request, result)

    def _data(self, request: Request) -> Answer:
        """Sign and broadcast."""
        if self._running >= self._settings.limits.requests_at_once:
            return fault_answer(BUSY, (b"retry-after", b"1"))
        return Awaited(self._answer_data(request))

    async def _answer_data(self, request: Request) -> Whole:
        self._running += 1
        try:
            return json_answer(await self._sign_and_broadcast(request.body))
        except (RequestRefused, NodeRefused, NodeTrouble) as error:
            return refusal(error.answer)
        except Exception as error:  # noqa: BLE001 - the last line of defence; see above
            return internal_error(error)
        finally:
            self._running -= 1

    async def _sign_and_broadcast(self, body: bytes) -> dict[str, object]:
        signing_request = read_request(body, self._settings.limits.seed_characters)
        transaction = sign_data(signing_request, self._settings.network, self._timestamp())
        answer = to_json(transaction)
        await self._node.broadcast(answer)
        logger.info("broadcast data transaction %s, fee %d", answer["id"], transaction.fee)
        return answer

    def _timestamp(self) -> int:
        # Unique: two requests with the same data, account and time would be one transaction.
        self._last_timestamp = max(self._settings.clock(), self._last_timestamp + 1)
        return self._last_timestamp

    async def _ready(self) -> Whole:
        """Report whether the node answers."""
        try:
            return json_answer({"ready": True, "height": await self._node.height()})
        except NodeTrouble as error:
            return json_answer({"ready": False, **error.answer.json()}, 503)


def _file(request: Request) -> Whole:
    """Return a script or style sheet of the page."""
    return file_answer(request.path.removeprefix(PAGES), request.headers) or fault_answer(
        NO_SUCH_PATH
    )
