"""What we change in uvicorn: no signal handlers, a start that can be awaited, limits on heads.

Only ``server`` imports this module, and only when a server starts. uvicorn limits neither the size
of a request head nor the time that it may take; both are watched here, at the cost of one
comparison for each packet.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, cast

from httptools import HttpParserError, HttpParserUpgrade, HttpRequestParser
from uvicorn import Config, Server
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from soliton.web.server import BACKLOG, ServerLimits
from soliton.web.types import AsgiApplication

if TYPE_CHECKING:
    import socket

    from uvicorn._types import ASGI3Application
    from uvicorn.server import ServerState

_NO_HEAD = -1
_UPGRADE = (b"connection", b"upgrade", b"http2-settings")


class LimitedProtocol(HttpToolsProtocol):
    """One connection: HTTP/1.1, with a limit on size and time of a request head."""

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, object],
        _loop: asyncio.AbstractEventLoop | None = None,
        *,
        limits: ServerLimits,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._limits = limits
        self._head_bytes = 0
        self._head_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(cast("asyncio.Transport", transport))
        self._start_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._unset_keepalive_if_required()
        try:
            self.parser.feed_data(data)
        except HttpParserUpgrade as upgrade:
            rest = data[upgrade.args[0] :]
            if self._should_upgrade():
                self._become_websocket(rest)
                return
            self._stay_with_http1(rest)
        except HttpParserError:
            self.send_400_response("Invalid HTTP request received.")
            return
        if self._head_bytes != _NO_HEAD:
            self._head_bytes += len(data)
            if self._head_bytes > self._limits.head_bytes and not self.transport.is_closing():
                self.send_400_response("The request head is too long.")
            elif self._head_timer is None:
                self._start_timer()

    def on_message_begin(self) -> None:
        self._head_bytes = 0
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        if self.parser.should_upgrade() and not self._should_upgrade():
            return
        self._head_bytes = _NO_HEAD
        self._stop_timer()
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        if not self.parser.should_upgrade():
            super().on_message_complete()

    def _become_websocket(self, rest: bytes) -> None:
        """Hand the connection over, with what the client sent behind the request."""
        self._stop_timer()
        self.handle_websocket_upgrade()
        protocol = self.transport.get_protocol()
        if rest and isinstance(protocol, asyncio.Protocol) and protocol is not self:
            protocol.data_received(rest)

    def _stay_with_http1(self, rest: bytes) -> None:
        """Read the request again as if no upgrade had been offered.

        The HTTP client of Java 11 and newer offers HTTP/2 with every first request; the parser
        would take the body of such a request for the other protocol and drop it.
        """
        method, version = self.parser.get_method(), self.parser.get_http_version()
        lines = [b"%s %s HTTP/%s" % (method, self.url, version.encode("ascii"))]
        lines += [b"%s: %s" % header for header in self.headers if header[0] not in _UPGRADE]
        self.parser = HttpRequestParser(self)
        if method != b"CONNECT":
            self.data_received(b"\r\n".join([*lines, b"\r\n"]) + rest)
        else:
            self.send_400_response("Invalid HTTP request received.")

    def _start_timer(self) -> None:
        self._head_timer = self.loop.call_later(self._limits.head_seconds, self._head_timed_out)

    def _stop_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _head_timed_out(self) -> None:
        if not self.transport.is_closing():
            self.transport.close()


class EmbeddedServer(Server):
    """A server that is a guest in somebody else's event loop."""

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.has_started = asyncio.Event()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Signals belong to the program, not to its server."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.has_started.set()


def make_server(
    app: AsgiApplication, limits: ServerLimits, *, lifespan: bool, websocket: bool
) -> tuple[EmbeddedServer, asyncio.Event]:
    """A server ready to run, and the event that says it accepts connections."""
    # "Unsupported upgrade request" for each call of a Java client is nothing to warn of.
    logging.getLogger("uvicorn.error").setLevel(logging.ERROR)
    protocol = cast("type[asyncio.Protocol]", partial(LimitedProtocol, limits=limits))
    config = Config(
        app=cast("ASGI3Application", app),
        http=protocol,
        ws="websockets-sansio" if websocket else "none",
        ws_max_size=limits.websocket_message_bytes,
        # Applications ping in their own words; compression would cost each message more than it
        # saves on messages this short.
        ws_ping_interval=None,
        ws_per_message_deflate=False,
        loop="none",
        lifespan="on" if lifespan else "off",
        interface="asgi3",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        limit_concurrency=limits.connections,
        timeout_keep_alive=limits.keep_alive_seconds,
        timeout_graceful_shutdown=1,
        backlog=BACKLOG,
    )
    server = EmbeddedServer(config)
    return server, server.has_started
