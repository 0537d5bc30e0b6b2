"""What we change in uvicorn: no signal handlers, a start that can be awaited, limits on heads, and
a short way for requests that can be answered at once.

Only ``server`` imports this module, and only when a server starts. uvicorn limits neither the size
of a request head nor the time that it may take; both are watched here, at the cost of one
comparison for each packet. A request that came in one packet is given to a ``QuickApplication`` as
it is: a task, its messages and its timers would cost more than most answers. Everything else goes
uvicorn's way.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from types import CoroutineType
from typing import TYPE_CHECKING, Literal, cast

from httptools import HttpParserError, HttpParserUpgrade, HttpRequestParser
from uvicorn import Config, Server
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from soliton.errors import InvariantBroken
from soliton.web._websockets import LimitedWebSocket
from soliton.web.clients import LOCAL, client_key
from soliton.web.cors import CLOSED, AnswersPages
from soliton.web.server import BACKLOG, MAX_HEADERS, RETRY_AFTER_SECONDS, ServerLimits
from soliton.web.tallies import CONNECTIONS, Tallies
from soliton.web.tunnel import Tunnel, TunnelledWebSocket
from soliton.web.types import (
    AsgiApplication,
    LaterAnswer,
    QuickApplication,
    Receive,
    Scope,
    Send,
    SoonAnswer,
    WholeAnswer,
)

if TYPE_CHECKING:
    from uvicorn._types import ASGI3Application
    from uvicorn.protocols.http.httptools_impl import RequestResponseCycle
    from uvicorn.server import ServerState

_NO_HEAD = -1
_PIECE_BYTES = 8 * 1024
"""Parsed in one go: what does not wait for an answer before it may be four hundred requests."""
_MOST_AT_ONCE = 16
"""So many requests of one connection are answered before others have their turn."""
_UPGRADE = (b"connection", b"upgrade", b"http2-settings")
_QUICK_METHODS = (b"GET", b"POST", b"OPTIONS", b"DELETE", b"PUT")
_CLOSE = b"connection: close\r\n"
_TOO_MANY = b"Too many connections, please try again in a short while."
_OVERLOADED = WholeAnswer(
    503,
    (
        (b"content-type", b"text/plain; charset=UTF-8"),
        (b"content-length", b"%d" % len(_TOO_MANY)),
        (b"retry-after", b"%d" % RETRY_AFTER_SECONDS),
    ),
    _TOO_MANY,
)
_FAULTS_OF_CLIENTS = frozenset(
    (
        # A WebSocket that was refused with an answer; it takes that for one that was forgotten.
        "ASGI callable returned without completing handshake.",
        "Invalid UTF-8 sequence received from client.",
    )
)


class _Shared:
    """What all connections of one server share."""

    __slots__ = ("_common", "_cors", "_lines", "_open", "limits", "quick")

    def __init__(self, limits: ServerLimits, app: AsgiApplication, tallies: Tallies) -> None:
        self.limits = limits
        known: object = app
        self.quick = known.answer_at_once if isinstance(known, QuickApplication) else None
        self._cors = known.cors if isinstance(known, AnswersPages) else CLOSED
        self._common: list[tuple[bytes, bytes]] = []
        self._lines = b""
        self._open = tallies.counts(CONNECTIONS)

    def opens(self, client: str) -> bool:
        """Count a connection; whether its client has more than it may have."""
        limit = self.limits.connections_per_client
        if limit is None or not self._counts(client):
            return False
        self._open.add(client)
        return self._open.of(client) > limit

    def closes(self, client: str) -> None:
        """Forget a connection."""
        if self.limits.connections_per_client is not None and self._counts(client):
            self._open.add(client, -1)

    def _counts(self, client: str) -> bool:
        return client != LOCAL or self.limits.counts_local_clients

    def lines(self, common: list[tuple[bytes, bytes]]) -> bytes:
        """The headers of every answer; uvicorn makes a new list when their date changes."""
        if common is not self._common:
            self._common = common
            self._lines = b"".join(b"%s: %s\r\n" % header for header in common)
        return self._lines

    async def overloaded(self, scope: Scope, _receive: Receive, send: Send) -> None:
        """The answer while there are too many connections."""
        origin = dict(cast("list[tuple[bytes, bytes]]", scope["headers"])).get(b"origin")
        pages = self._cors.headers(cast("str", scope["method"]), origin)
        headers = [*_OVERLOADED.headers, *pages, (b"connection", b"close")]
        status = _OVERLOADED.status
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": _OVERLOADED.body})


class _Pending:
    """An answer that is on its way, with what uvicorn asks of the cycle of a request."""

    __slots__ = ("disconnected", "keep_alive", "message_event", "response_complete")

    def __init__(self, keep_alive: bool) -> None:
        self.disconnected = False
        self.keep_alive = keep_alive
        self.response_complete = False
        self.message_event = _NOBODY_WAITS


class _NobodyWaits:
    """In place of the event by which a cycle hears of its body: it has it all."""

    def set(self) -> None:
        """Nothing."""


_NOBODY_WAITS = _NobodyWaits()


class _Flow(FlowControl):
    """Reads nothing more while there are bytes that have been read and not been parsed."""

    holds = False

    def resume_reading(self) -> None:
        if not self.holds:
            super().resume_reading()


class LimitedProtocol(HttpToolsProtocol):
    """One connection: HTTP/1.1, with a limit on size and time of a request head."""

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, object],
        _loop: asyncio.AbstractEventLoop | None = None,
        *,
        shared: _Shared,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._shared = shared
        self._limits = shared.limits
        self._head_bytes = 0
        self._head_timer: asyncio.TimerHandle | None = None
        self._idle_timer: asyncio.TimerHandle | None = None
        self._was_active = False
        self._packet_bytes = 0
        self._held: list[bytes] | None = None
        self._is_in_message = False
        self._host = ""
        self._has_too_many = False
        self._write_timer: asyncio.TimerHandle | None = None
        self._rest = bytearray()
        self._at_once = 0
        self._running: RequestResponseCycle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(cast("asyncio.Transport", transport))
        self.flow = self._flow = _Flow(self.transport)
        self._host = self.client[0] if self.client else ""
        if not self._host and self._is_over_ip():
            # Its client has reset it by now: the system says no more whose it was, and it may not
            # pass for one of this machine.
            self.transport.abort()
        self._has_too_many = self._shared.opens(client_key(self._host))
        self._start_timer()
        self._watch_idleness()

    def _is_over_ip(self) -> bool:
        plug = cast("socket.socket | None", self.transport.get_extra_info("socket"))
        return plug is not None and plug.family != socket.AF_UNIX

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        self._shared.closes(client_key(self._host))
        for timer in (self._idle_timer, self._write_timer):
            if timer is not None:
                timer.cancel()
        self._rest.clear()
        super().connection_lost(exc)
        if self._running is not None:
            # uvicorn tells the request that came last, not the one that is being answered.
            self._running.disconnected = True
            self._running.message_event.set()

    def data_received(self, data: bytes) -> None:
        self._was_active = True
        if not self._rest and len(data) <= _PIECE_BYTES:
            self._parse(data)
            return
        self._rest += data
        if not self._flow.holds:
            self._parse(b"")

    def _parse(self, piece: bytes) -> None:
        """Parse this, and the rest as far as it may be answered now. What is left waits, and
        nothing more is read meanwhile.
        """
        if self.timeout_keep_alive_task is not None:
            self._unset_keepalive_if_required()
        self._at_once = 0
        while piece or self._rest:
            if not piece:
                piece = bytes(self._rest[:_PIECE_BYTES])
                del self._rest[:_PIECE_BYTES]
            piece = self._feed(piece)
            if self.transport.is_closing():
                self._rest.clear()
                return
            if (piece or self._rest) and not self._may_parse_more():
                self._rest[:0] = piece
                self._hold()
                return
        if self._flow.holds:
            self._flow.holds = False
            if not self.pipeline:
                self._flow.resume_reading()

    def _feed(self, piece: bytes) -> bytes:
        """Parse a piece; gives what of it has to be parsed again."""
        self._packet_bytes = len(piece)
        try:
            self.parser.feed_data(piece)
        except HttpParserUpgrade as upgrade:
            behind = piece[upgrade.args[0] :]
            if not self._should_upgrade():
                return self._stay_with_http1(behind)
            if self._is_between_cycles():
                behind += self._rest
                self._rest.clear()
                self._become_websocket(behind)
            else:
                self.transport.close()
            return b""
        except HttpParserError:
            self.send_400_response("Invalid HTTP request received.")
            return b""
        if self._head_bytes != _NO_HEAD:
            self._head_bytes += len(piece)
            if self._head_bytes > self._limits.head_bytes and not self.transport.is_closing():
                self.send_400_response("The request head is too long.")
            elif self._head_timer is None and not self._rest:
                self._start_timer()
        elif self._held is not None:
            body, self._held = self._held, None
            self._begin_cycle(self.app, body)
        return b""

    def _may_parse_more(self) -> bool:
        """Whether nothing has to be answered, or has been for too long, before other requests."""
        if self._is_in_message and self._head_bytes == _NO_HEAD:
            return True
        return self._is_between_cycles() and self._at_once < _MOST_AT_ONCE

    def _hold(self) -> None:
        self._flow.holds = True
        self._flow.pause_reading()
        if self._is_between_cycles():
            self.loop.call_soon(self._go_on)

    def _go_on(self) -> None:
        """Parse what has waited."""
        if self._rest and not self.transport.is_closing():
            self._parse(b"")

    def on_message_begin(self) -> None:
        self._head_bytes = 0
        self._is_in_message = True
        self.url = b""
        self.headers = []
        self.expect_100_continue = False

    def on_header(self, name: bytes, value: bytes) -> None:
        name = name.lower()
        if name == b"expect":
            super().on_header(name, value)
        else:
            # What uvicorn does with all others, without another call for each.
            self.headers.append((name, value))
        if len(self.headers) > MAX_HEADERS:
            # Each costs more than its bytes: the parser stops before it has read them all.
            raise ValueError("too many headers")

    def on_headers_complete(self) -> None:
        upgrades = self.parser.should_upgrade()
        if upgrades and not self._should_upgrade():
            return
        length, self._head_bytes = self._head_bytes + self._packet_bytes, _NO_HEAD
        if self._head_timer is not None:
            self._stop_timer()
        if length > self._limits.head_bytes:
            self._check_head()
        if self._shared.quick is not None and not upgrades and self._is_alone():
            self._held = []
        else:
            self._begin_cycle(self.app, [])

    def on_body(self, body: bytes) -> None:
        if self._held is not None:
            self._held.append(body)
        else:
            super().on_body(body)

    def on_message_complete(self) -> None:
        self._is_in_message = False
        if self._head_timer is not None:
            self._stop_timer()
        if self._held is not None:
            body, self._held = self._held, None
            self._answer_at_once(body)
        elif not self.parser.should_upgrade():
            super().on_message_complete()

    def _check_head(self) -> None:
        """Refuse a head that is too long although its last piece has come."""
        length = len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)
        if length > self._limits.head_bytes:
            # The parser stops, and the client is told that the request is not valid.
            raise ValueError("the request head is too long")

    def _is_alone(self) -> bool:
        """Whether nothing before this request is still on its way."""
        return (
            self._is_between_cycles()
            and not self.flow.write_paused
            and not self.expect_100_continue
            and self._at_once < _MOST_AT_ONCE
            and not self._is_too_many()
        )

    def _is_between_cycles(self) -> bool:
        # uvicorn declares what is None before the first request as if it never were.
        cycle = cast("RequestResponseCycle | None", self.cycle)
        return cycle is None or cycle.response_complete

    def _is_too_many(self) -> bool:
        limit = self._limits.connections
        many = len(self.connections) > limit or len(self.tasks) >= limit
        return many or self._has_too_many

    def _answer_at_once(self, body: list[bytes]) -> None:
        """Answer without a task, or begin one where that is not possible."""
        quick, url = self._shared.quick, self.url
        method = self.parser.get_method()
        simple = url.startswith(b"/") and b"#" not in url and url.isascii()
        if quick is None or method not in _QUICK_METHODS or not simple:
            self._begin_cycle(self.app, body)
            super().on_message_complete()
            return
        self._at_once += 1
        path, _, query = url.partition(b"?")
        answer = quick(
            method.decode("ascii"), path, query, dict(self.headers), b"".join(body), self._host
        )
        keep_alive = self.parser.should_keep_alive() and self.parser.get_http_version() != "1.0"
        if isinstance(answer, WholeAnswer):
            self._write_whole(answer, keep_alive=keep_alive)
            self.server_state.total_requests += 1
        elif isinstance(answer, SoonAnswer):
            answer.begin(partial(self._end_pending, self._begin_pending(keep_alive)))
        elif isinstance(answer, CoroutineType):
            self._answer_later(answer, keep_alive=keep_alive)
        else:
            self._begin_cycle(answer, [])
            super().on_message_complete()

    def _write_whole(self, answer: WholeAnswer, *, keep_alive: bool) -> None:
        parts = [STATUS_LINE[answer.status], self._shared.lines(self.server_state.default_headers)]
        for name, value in answer.headers:
            if b"\n" in value or b"\r" in value:
                raise InvariantBroken(f"a line break in the header {name!r}")
            parts += (name, b": ", value, b"\r\n")
        parts += (b"\r\n" if keep_alive else _CLOSE + b"\r\n", answer.body)
        self.transport.write(b"".join(parts))
        if not keep_alive:
            self.transport.close()

    def _answer_later(self, answer: LaterAnswer, *, keep_alive: bool) -> None:
        task = self.loop.create_task(self._finish(answer, self._begin_pending(keep_alive)))
        task.add_done_callback(self.tasks.discard)
        self.tasks.add(task)

    def _begin_pending(self, keep_alive: bool) -> _Pending:
        """What comes behind an answer waits until that is there, as behind a cycle of uvicorn's."""
        pending = _Pending(keep_alive)
        self.cycle = cast("RequestResponseCycle", pending)
        return pending

    async def _finish(self, coming: LaterAnswer, pending: _Pending) -> None:
        try:
            answer = await coming
        except BaseException:
            # Cut off at the end of the server, or a fault: there is nothing to say.
            self.transport.close()
            raise
        self._end_pending(pending, answer)

    def _end_pending(self, pending: _Pending, answer: WholeAnswer) -> None:
        """Send an answer that others may have waited behind."""
        pending.response_complete = True
        if self.transport.is_closing():
            return
        self._write_whole(answer, keep_alive=pending.keep_alive)
        if self.pipeline or self._is_in_message or self._rest:
            self.on_response_complete()
        else:
            self.server_state.total_requests += 1

    def _begin_cycle(self, app: object, body: list[bytes]) -> None:
        """Go uvicorn's way with the request whose head is complete, and with this application."""
        url, headers, expects = self.url, self.headers, self.expect_100_continue
        super().on_message_begin()
        self.url, self.headers, self.expect_100_continue = url, headers, expects
        self.scope["headers"] = headers
        chosen = self._shared.overloaded if self._is_too_many() else app
        is_first = self._is_between_cycles()
        usual, self.app = self.app, cast("ASGI3Application", chosen)
        try:
            super().on_headers_complete()
        finally:
            self.app = usual
        if is_first:
            self._running = self.cycle
        for piece in body:
            super().on_body(piece)

    def on_response_complete(self) -> None:
        self._running = self.pipeline[-1][0] if self.pipeline else None
        super().on_response_complete()
        if self._rest and self._is_between_cycles():
            self.loop.call_soon(self._go_on)
        elif self._is_in_message and self._head_timer is None:
            # The answer did not wait for the body; what still comes has to end some time.
            self._start_timer()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._write_timer = self.loop.call_later(self._limits.write_seconds, self._writing_stalls)

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._write_timer is not None:
            self._write_timer.cancel()

    def _writing_stalls(self) -> None:
        """The client reads nothing of an answer that waits in our memory."""
        self.transport.abort()

    def _watch_idleness(self) -> None:
        """Close the connection when nothing came and nothing went for a while."""
        idle = not self._was_active and self._is_between_cycles()
        if self._idle_timer is not None and idle:
            self.transport.close()
            return
        self._was_active = False
        self._idle_timer = self.loop.call_later(
            self._limits.keep_alive_seconds, self._watch_idleness
        )

    def _become_websocket(self, rest: bytes) -> None:
        """Hand the connection over, with what the client sent behind the request."""
        self._stop_timer()
        if self._is_too_many():
            self._write_whole(_OVERLOADED, keep_alive=False)
            return
        if self._idle_timer is not None:
            self._idle_timer.cancel()
        self.handle_websocket_upgrade()
        protocol = self.transport.get_protocol()
        if isinstance(protocol, LimitedWebSocket | TunnelledWebSocket):
            # This object hears of nothing any more; the connection still counts.
            protocol.write_seconds = self._limits.write_seconds
            protocol.when_lost = partial(self._shared.closes, client_key(self._host))
            if rest:
                protocol.data_received(rest)

    def _stay_with_http1(self, rest: bytes) -> bytes:
        """The request as if no upgrade had been offered, and what follows: to be parsed again.

        The HTTP client of Java 11 and newer offers HTTP/2 with every first request; the parser
        would take the body of such a request for the other protocol and drop it.
        """
        method, version = self.parser.get_method(), self.parser.get_http_version()
        lines = [b"%s %s HTTP/%s" % (method, self.url, version.encode("ascii"))]
        lines += [b"%s: %s" % header for header in self.headers if header[0] not in _UPGRADE]
        self.parser = HttpRequestParser(self)
        if method != b"CONNECT":
            return b"\r\n".join([*lines, b"\r\n"]) + rest
        self.send_400_response("Invalid HTTP request received.")
        return b""

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


def _is_of_interest(record: logging.LogRecord) -> bool:
    """Whether something went wrong on this side: not that a client did, or that we cut one off."""
    fault = record.exc_info[1] if record.exc_info else None
    return record.msg not in _FAULTS_OF_CLIENTS and not isinstance(fault, asyncio.CancelledError)


def _websocket_class(websocket: bool | Tunnel) -> type[asyncio.Protocol] | Literal["none"]:
    """What takes WebSocket connections over."""
    if isinstance(websocket, Tunnel):
        return cast("type[asyncio.Protocol]", partial(TunnelledWebSocket, tunnel=websocket))
    return cast("type[asyncio.Protocol]", LimitedWebSocket) if websocket else "none"


def make_server(
    app: AsgiApplication,
    limits: ServerLimits,
    tallies: Tallies,
    *,
    lifespan: bool,
    websocket: bool | Tunnel,
) -> tuple[EmbeddedServer, asyncio.Event]:
    """A server ready to run, and the event that says it accepts connections."""
    # "Unsupported upgrade request" for each call of a Java client is nothing to warn of.
    logger = logging.getLogger("uvicorn.error")
    logger.setLevel(logging.ERROR)
    logger.addFilter(_is_of_interest)
    shared = _Shared(limits, app, tallies)
    protocol = cast("type[asyncio.Protocol]", partial(LimitedProtocol, shared=shared))
    config = Config(
        app=cast("ASGI3Application", app),
        http=protocol,
        ws=_websocket_class(websocket),
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
        timeout_keep_alive=max(1, round(limits.keep_alive_seconds)),
        timeout_graceful_shutdown=1,
        backlog=BACKLOG,
    )
    server = EmbeddedServer(config)
    return server, server.has_started
