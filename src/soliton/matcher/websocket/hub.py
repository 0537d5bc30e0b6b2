"""All WebSocket connections of a matcher.

What lives here: accepting connections, and reading clients' messages. What does not: handling them
(``subscriptions``).

Sources: wavesplatform/matcher
``dex/src/main/scala/com/wavesplatform/dex/api/ws/{routes/MatcherWebSocketRoute,
actors/WsExternalClientHandlerActor,actors/WsExternalClientDirectoryActor}.scala``.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections import Counter
from functools import partial
from typing import Final
from urllib.parse import parse_qs, unquote

import msgspec

from soliton.matcher.errors import NodeUnavailable
from soliton.matcher.records import ServiceStatus
from soliton.matcher.rest.answers import Answer, Refusal, plain, status_of
from soliton.matcher.rest.auth import check_key_headers
from soliton.matcher.rest.http_gate import Pay
from soliton.matcher.rest.requests import (
    MAX_QUERY_FIELDS,
    NOT_JSON,
    Request,
    check_content_type,
    invalid_json,
)
from soliton.matcher.rest.routes import Route, row, table
from soliton.matcher.service import Matcher
from soliton.matcher.websocket.connection import UNSUPPORTED_DATA, Connection
from soliton.matcher.websocket.messages import Pong, read_message
from soliton.matcher.websocket.subscriptions import Client, Subscriptions
from soliton.matching import errors
from soliton.matching.errors import MatcherError
from soliton.web import request as web
from soliton.web.answers import Upgrade, Whole
from soliton.web.types import Headers
from soliton.web.websocket import WebSocket

EXTERNAL: Final = "/ws/v0"
INTERNAL: Final = "/ws/v0/internal"
MAX_NAME_CHARS: Final = 64
_MAX_DIGITS: Final = 18

logger = logging.getLogger("soliton.matcher")


class Hub:
    """Accepts and runs WebSocket connections."""

    def __init__(self, core: Matcher) -> None:
        self._core = core
        self._settings = core.settings.web_sockets
        self.subscriptions = Subscriptions(core)
        core.effects.subscribe(self.subscriptions)

    def __len__(self) -> int:
        return len(self.subscriptions.clients) + len(self.subscriptions.operators)

    def close(self) -> None:
        """Close all connections because the matcher stops."""
        for connection in (*self.subscriptions.clients, *self.subscriptions.operators):
            connection.close_for(MatcherError(errors.MATCHER_IS_STOPPING))

    # --- accepting --------------------------------------------------------------------------------

    def respond(self, request: web.Request, pay: Pay) -> Whole | Upgrade:
        """Accept or reject a connection; ``pay`` is awaited for each message of the client."""
        path = unquote(request.path).removesuffix("/")
        if path not in (EXTERNAL, INTERNAL):
            return _refused(404, ())
        refusal = self._refusal(path, request.headers)
        if refusal is not None:
            message = refusal.message.encode("latin-1", "replace")
            headers = ((b"x-error-message", message), (b"x-error-code", b"%d" % refusal.code))
            return _refused(status_of(refusal.kind), headers)
        return Upgrade(partial(self._run, path, _fields(request.query_string), pay))

    async def _run(
        self, path: str, query: dict[str, list[str]], pay: Pay, socket: WebSocket
    ) -> None:
        """Run one connection to its end."""
        connection = Connection(str(uuid.uuid4()), socket, self._settings, self._core.now)
        writer = asyncio.create_task(connection.run())
        reader = asyncio.create_task(self._read(path, query, connection, socket, pay))
        try:
            await asyncio.wait((writer, reader), return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (writer, reader):
                task.cancel()
            results = await asyncio.gather(writer, reader, return_exceptions=True)
            for result in results:
                if isinstance(result, Exception) and not isinstance(result, OSError):
                    logger.error("a WebSocket connection failed", exc_info=result)

    def _refusal(self, path: str, headers: dict[bytes, bytes]) -> MatcherError | None:
        """The error if a connection is rejected, or None."""
        match self._core.status:
            case ServiceStatus.STARTING:
                return MatcherError(errors.MATCHER_IS_STARTING)
            case ServiceStatus.STOPPING:
                return MatcherError(errors.MATCHER_IS_STOPPING)
            case ServiceStatus.WORKING:
                pass
        if len(self) >= self._settings.max_connections:
            return MatcherError(errors.BALANCING)
        if path == INTERNAL:
            try:
                check_key_headers(self._core, headers)
            except Refusal as refusal:
                return refusal.error
        return None

    async def _read(
        self,
        path: str,
        query: dict[str, list[str]],
        connection: Connection,
        socket: WebSocket,
        pay: Pay,
    ) -> None:
        """Handle a client's messages until it disconnects."""
        client = None
        try:
            if path == INTERNAL:
                self.subscriptions.operators.add(connection)
                await self.subscriptions.internal.add(connection, _number(query.get("N", [""])[0]))
            else:
                system = query.get("a_os", ["Unknown OS"])[0][:MAX_NAME_CHARS]
                program = query.get("a_client", ["Unknown Client"])[0][:MAX_NAME_CHARS]
                client = self.subscriptions.clients[connection] = Client(
                    connection, f"{program}, {system}"
                )
            while True:
                text = await socket.receive()
                await pay()
                if not isinstance(text, str):
                    connection.close(UNSUPPORTED_DATA)
                    return
                await self._take(text, connection, client)
        finally:
            self.subscriptions.forget(connection)

    async def _take(self, text: str, connection: Connection, client: Client | None) -> None:
        try:
            message = read_message(text)
            if isinstance(message, Pong):
                connection.on_pong(message.timestamp)
            elif client is not None:
                await self.subscriptions.handle(message, client)
        except MatcherError as error:
            connection.push_error(error)
        except NodeUnavailable:
            connection.push_error(MatcherError(errors.WAVES_NODE_CONNECTION_BROKEN))

    # --- for the operator -------------------------------------------------------------------------

    async def connections(self, request: Request) -> Answer:
        """The number of connections, by program and system."""
        del request
        kinds = Counter(client.kind for client in self.subscriptions.clients.values())
        return plain({"connections": len(self.subscriptions.clients), "clientAndOs": dict(kinds)})

    async def close_connections(self, request: Request) -> Answer:
        """Close the oldest connections."""
        check_content_type(request.headers)
        try:
            body = msgspec.json.decode(request.body, type=_CloseFilter)
        except NOT_JSON:
            raise invalid_json("/oldest") from None
        for connection in list(self.subscriptions.clients)[: max(body.oldest, 0)]:
            connection.close_for(MatcherError(errors.BALANCING))
        return plain({"message": "In progress"})

    def routes(self) -> tuple[Route, ...]:
        """The HTTP routes of the streams."""
        return table("streams", "",
            row("GET /ws/v0/connections auth=key", self.connections,
                "The number of WebSocket connections",
                {"connections": 1, "clientAndOs": {"Unknown Client, Unknown OS": 1}}),
            row("DELETE /ws/v0/connections auth=key", self.close_connections,
                "Close the oldest WebSocket connections", {"message": "In progress"},
                body={"oldest": 1}),
        )  # fmt: skip


class _CloseFilter(msgspec.Struct):
    oldest: int


def _refused(status: int, headers: Headers) -> Whole:
    return Whole(b"", b"", status, (*headers, (b"content-length", b"0")))


def _fields(query_string: bytes) -> dict[str, list[str]]:
    """The fields of a query; none if there are too many."""
    try:
        return parse_qs(query_string.decode("latin-1"), max_num_fields=MAX_QUERY_FIELDS)
    except ValueError:
        return {}


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= _MAX_DIGITS else None
