"""The signer as an ASGI application.

What lives here: the routes, reading bodies within limits, turning every failure into a JSON error,
and the log line of a signed transaction. What does not: sockets (``server``).

Nothing that is logged or answered holds the seed: it becomes keys in ``request``, and a failure of
our own is logged by its kind and place only, since the words of a foreign exception may quote what
it was given.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import traceback
from collections.abc import AsyncIterator

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

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
from soliton.signer.page import page_routes
from soliton.signer.request import read_request
from soliton.signer.settings import Limits, SignerSettings
from soliton.signer.signing import sign_data, to_json
from soliton.web.cors import CLOSED, Cors, WithCors

__all__ = ["Limits", "SignerSettings", "build_app"]

logger = logging.getLogger("soliton.signer")
_METHODS = ("OPTIONS", "POST", "GET")
_EXPOSED = ("Retry-After",)


def build_app(settings: SignerSettings) -> WithCors:
    """The application; raises ``InputError`` for a node address that is none."""
    service = _Service(settings)

    @contextlib.asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        # What HTTP clients need of an event loop is loaded by whoever needs it first: not by a
        # request, for which all others would wait.
        await run_in_threadpool(_nothing)
        yield
        await service.node.close()

    routes = [
        Route("/data", service.data, methods=["POST"]),
        Route("/health", service.health),
        Route("/ready", service.ready),
        Route("/openapi.json", service.openapi),
        *page_routes(settings),
    ]
    app = Starlette(
        routes=routes, exception_handlers={HTTPException: _http_error}, lifespan=lifespan
    )
    return WithCors(app, Cors(methods=_METHODS, exposed=_EXPOSED) if settings.cors else CLOSED)


def _nothing() -> None:
    pass


class _Service:
    """The operations, and the little that they share: the node, the last timestamp, the load."""

    __slots__ = ("_document", "_last_timestamp", "_running", "_settings", "node")

    def __init__(self, settings: SignerSettings) -> None:
        self.node = NodeClient(settings)
        self._settings = settings
        self._document = openapi_document(settings)
        self._last_timestamp = 0
        self._running = 0

    async def data(self, request: Request) -> Response:
        """Sign and broadcast."""
        if self._running >= self._settings.limits.requests_at_once:
            busy = _answer(_of(BUSY))
            busy.headers["retry-after"] = "1"
            return busy
        self._running += 1
        try:
            return JSONResponse(await self._sign_and_broadcast(request))
        except (RequestRefused, NodeRefused, NodeTrouble) as error:
            return _answer(error.answer)
        except ClientDisconnect:
            return Response(status_code=400)
        except Exception as error:  # noqa: BLE001 - the last line of defence; see above
            place = traceback.extract_tb(error.__traceback__)[-1]
            logger.error("%s at %s:%s", type(error).__name__, place.filename, place.lineno)
            return _answer(_of(INTERNAL))
        finally:
            self._running -= 1

    async def _sign_and_broadcast(self, request: Request) -> dict[str, object]:
        limits = self._settings.limits
        body = await _read_body(request, limits)
        wanted = read_request(body, limits.seed_characters)
        transaction = sign_data(wanted, self._settings.network, self._timestamp())
        answer = to_json(transaction)
        await self.node.broadcast(answer)
        logger.info("broadcast data transaction %s, fee %d", answer["id"], transaction.fee)
        return answer

    def _timestamp(self) -> int:
        # Never the same twice: equal data of one account at equal times would be one transaction.
        self._last_timestamp = max(self._settings.clock(), self._last_timestamp + 1)
        return self._last_timestamp

    async def health(self, _request: Request) -> Response:
        """Whether the process answers."""
        return JSONResponse({"status": "ok", "network": self._settings.network.name})

    async def ready(self, _request: Request) -> Response:
        """Whether the node answers."""
        try:
            return JSONResponse({"ready": True, "height": await self.node.height()})
        except NodeTrouble as error:
            body = {"ready": False, **error.answer.json()}
            return JSONResponse(body, status_code=503)

    async def openapi(self, _request: Request) -> Response:
        """The OpenAPI document."""
        return JSONResponse(self._document)


async def _read_body(request: Request, limits: Limits) -> bytes:
    too_large = RequestRefused(BODY_TOO_LARGE, f"the body is larger than {limits.body_bytes} bytes")
    claimed = request.headers.get("content-length", "")
    if claimed.isdecimal() and int(claimed[:20]) > limits.body_bytes:
        raise too_large
    body = bytearray()
    try:
        async with asyncio.timeout(limits.body_seconds):
            async for chunk in request.stream():
                body += chunk
                if len(body) > limits.body_bytes:
                    raise too_large
    except TimeoutError:
        message = f"the body did not arrive within {limits.body_seconds:g} s"
        raise RequestRefused(BODY_TOO_SLOW, message) from None
    return bytes(body)


def _of(fault: Fault) -> ErrorAnswer:
    return ErrorAnswer(fault.status, fault.code, fault.meaning)


def _answer(answer: ErrorAnswer) -> Response:
    return JSONResponse(answer.json(), status_code=answer.status)


async def _http_error(_request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else INTERNAL.status
    headers = error.headers if isinstance(error, HTTPException) else None
    fault = NO_SUCH_METHOD if status == NO_SUCH_METHOD.status else NO_SUCH_PATH
    return JSONResponse(_of(fault).json(), status_code=fault.status, headers=headers)
