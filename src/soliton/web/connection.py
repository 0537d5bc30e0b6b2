"""One client connection: its requests and answers, in order.

What lives here: the transport's lifecycle, timeouts, fairness between connections, backpressure.
What does not: HTTP (``http1``), WebSocket frames (``websocket``), listening (``server``).
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Coroutine
from email.utils import formatdate
from functools import partial
from time import perf_counter, time
from typing import Any, Final, Generic, TypeVar, cast

from soliton.errors import EnvironmentProblem
from soliton.turns import SLICE_SECONDS, SMALL_PIECE_BYTES, Debts, Rounds, Slice
from soliton.web import http1
from soliton.web.answers import (
    Answer,
    Awaited,
    Deferred,
    HandOver,
    Service,
    Stream,
    Unread,
    Upgrade,
    Whole,
)
from soliton.web.clients import LOCAL, client_key
from soliton.web.in_order import InOrder, Place
from soliton.web.limits import HEALTH_PATHS, MAX_REFUSED, RETRY_AFTER_SECONDS, ServerLimits
from soliton.web.peers import host_of, peer_of
from soliton.web.request import Request
from soliton.web.shared_counters import CONNECTIONS, SharedCounters
from soliton.web.traffic import UNCOUNTED
from soliton.web.types import HandedOver, WhenLost
from soliton.web.websocket import WebSocket, accept_key, handshake_bytes

R = TypeVar("R", bound=Request)

_PIECE_BYTES: Final = 8 * 1024
"""Parsed at once; may contain four hundred pipelined requests."""
SWITCHING_PROTOCOLS: Final = 101
_FAULT: Final = Whole(b"Internal Server Error", b"text/plain; charset=utf-8", 500)
_NO_WEBSOCKET: Final = Whole(
    b"This is no request for a WebSocket.",
    status=426,
    headers=((b"upgrade", b"websocket"), (b"sec-websocket-version", b"13")),
)
_OVERLOADED: Final = Whole(
    b"Too many connections, please try again in a short while.",
    status=503,
    headers=((b"retry-after", b"%d" % RETRY_AFTER_SECONDS),),
)

logger = logging.getLogger("soliton.web")


class Shared(Generic[R]):
    """The state shared by all connections of one server."""

    def __init__(self, service: Service[R], limits: ServerLimits, counters: SharedCounters) -> None:
        self.service = service
        self.limits = limits
        self.rounds = Rounds()
        self.debts = Debts()
        self.connections: set[HandedOver] = set()
        self.idle: dict[HttpConnection[R], None] = {}
        """Connections in the order of their last requests, or of their beginnings without any. Some
        have an answer under way.
        """
        self.all_left = asyncio.Event()
        self.tasks: set[asyncio.Task[None]] = set()
        self._open = counters.counts(CONNECTIONS)
        self._second = 0
        self._date = b""

    def opens(self, host: str) -> bool:
        """Count a connection from an address; return whether that exceeds its limit."""
        limit = self.limits.connections_per_client
        if limit is None or not self._counts_connections(host):
            return False
        client = client_key(host)
        self._open.add(client)
        return self._open.of(client) > limit

    def closes(self, host: str) -> None:
        """Count the end of a connection."""
        limit = self.limits.connections_per_client
        if limit is not None and self._counts_connections(host):
            self._open.add(client_key(host), -1)

    def _counts_connections(self, host: str) -> bool:
        """Whether an address has a limit of connections: a trusted proxy has many clients."""
        return self._counts(client_key(host)) and not self.limits.proxies.trusts(host)

    def forget(self, connection: HandedOver) -> None:
        """Remove a connection that has ended, or has another owner."""
        self.connections.discard(connection)
        self.idle.pop(cast("HttpConnection[R]", connection), None)
        if not self.connections:
            self.all_left.set()

    def make_room(self) -> bool:
        """Close an idle connection if there are too many; return whether one more is admitted, at
        least to be told so.
        """
        over = len(self.connections) - self.limits.connections
        if over < 0:
            return True
        # A client that still reads its answer goes last: it would lose the rest.
        victim = next(
            (each for each in self.idle if each.is_idle and not each.has_unread),
            next((each for each in self.idle if each.is_idle), None),
        )
        if victim is None:
            return over < self.limits.reserved + MAX_REFUSED
        victim.give_way()
        return True

    def payer(self, client: str) -> str | None:
        """Return who is charged for what a client sends; ``None`` for each connection by itself,
        since the programs of this machine are no one client.
        """
        return client if self._counts(client) else None

    def _counts(self, client: str) -> bool:
        return client != LOCAL or self.limits.counts_local_clients

    def has_too_many(self, request: R) -> bool:
        """Whether there are too many connections, or answers in progress, for a request."""
        limit = self.limits.connections
        if request.path in HEALTH_PATHS or client_key(request.host) == LOCAL:
            limit += self.limits.reserved
        return len(self.connections) > limit or len(self.tasks) >= limit

    def date(self) -> bytes:
        """Return the ``Date`` header line, cached for a second."""
        now = int(time())
        if now != self._second:
            self._second = now
            self._date = b"date: %s\r\n" % formatdate(now, usegmt=True).encode("ascii")
        return self._date

    def start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Start a task, which the server waits for when it stops."""
        task = asyncio.get_running_loop().create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)
        return task


class HttpConnection(asyncio.Protocol, Generic[R]):
    """One HTTP/1.1 connection: one answer at a time, except those that let the next one begin."""

    def __init__(self, shared: Shared[R], handed_off: bytes | None = None) -> None:
        """``handed_off`` is what another process has read from a connection that it has sent here.
        Such a connection gets one answer only: further requests are for the other processes.
        """
        self._shared = shared
        self._handed_off = handed_off
        self._limits = shared.limits
        self._service = shared.service
        self._loop = asyncio.get_running_loop()
        self._parser: http1.RequestParser[R]
        self._transport: asyncio.Transport
        self._host = ""
        self._has_too_many = False
        self._events: deque[http1.Event[R]] = deque()
        self._rest = bytearray()
        """Received bytes that are not parsed yet."""
        self._current: R | None = None
        """The request being answered, or one whose answer waits for those in ``_beside``."""
        self._beside: InOrder[R] = InOrder()
        self._task: asyncio.Task[None] | None = None
        self._ends_with_client = False
        self._is_going_on = False
        self._waits_for_turn = False
        self._used = 0.0
        """The time that bodies have taken since the client was charged for them last."""
        self._rest_timer: asyncio.TimerHandle | None = None
        self._slice = Slice()
        self._is_ending = False
        self._reads = True
        self._writable: asyncio.Event | None = None
        """Set while the write buffer is full."""
        self._was_active = False
        self._timed: http1.State | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._idle_timer: asyncio.TimerHandle | None = None
        self._write_timer: asyncio.TimerHandle | None = None

    # --- asyncio.Protocol -------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Set up the connection."""
        # That of uvloop has all of the methods, but not the class.
        self._transport = cast("asyncio.Transport", transport)
        host = host_of(self._transport)
        if host is None:
            # The client has already reset it, so its address is unknown, and it must not count as
            # local.
            self._is_ending = True
            self._transport.abort()
        self._host = host or ""
        self._parser = http1.RequestParser(
            self._service,
            self._limits.head_bytes,
            self._host,
            peer_of(self._transport),
            self._limits.proxies,
        )
        if not self._shared.make_room():
            self._is_ending = True
            self._transport.abort()
        self._shared.connections.add(self)
        self._shared.idle[self] = None
        self._has_too_many = self._shared.opens(self._host)
        self._watch(http1.State.HEAD)
        self._watch_idleness()
        if self._handed_off is not None:
            self.data_received(self._handed_off)

    def data_received(self, data: bytes) -> None:
        """Parse and answer requests, as far as fairness and backpressure allow."""
        if self._is_ending:
            return
        self._was_active = True
        ends_at = perf_counter() + SLICE_SECONDS
        is_busy = self._current is not None or self._beside.is_full
        waits = is_busy or self._waits_for_turn or self._events or self._rest
        if waits or len(data) > _PIECE_BYTES:
            self._rest += data
            if not (is_busy or self._events or self._waits_for_turn):
                self._go_on(ends_at)
            elif len(self._rest) > _PIECE_BYTES and self._reads:
                self._reads = False
                self._transport.pause_reading()
            return
        self._feed(data)
        self._go_on(ends_at)

    def pause_writing(self) -> None:
        """The write buffer is full: the client has to read within a timeout."""
        self._writable = asyncio.Event()
        self._write_timer = self._loop.call_later(self._limits.write_seconds, self._transport.abort)

    def resume_writing(self) -> None:
        """The write buffer is drained."""
        if self._write_timer is not None:
            self._write_timer.cancel()
        if self._writable is not None:
            self._writable.set()
            self._writable = None
        self._wait_for_turn()

    def connection_lost(self, exc: Exception | None) -> None:
        """Clean up, and cancel work that ends with the client."""
        del exc
        self._leave()
        self._shared.closes(self._host)
        if self._writable is not None:
            self._writable.set()
        if self._task is not None and self._ends_with_client:
            self._task.cancel()

    def shutdown(self) -> None:
        """The server stops: finish answers in progress, and take no further requests."""
        self._events.clear()
        self._rest.clear()
        last = self._beside.last or self._current
        if last is None:
            self._end()
        else:
            last.keep_alive = False

    def abort(self) -> None:
        """Abort the connection."""
        self._transport.abort()

    @property
    def is_idle(self) -> bool:
        """Whether no answer is under way: only the client has something to do."""
        return self._current is None and not self._beside

    @property
    def has_unread(self) -> bool:
        """Whether the client has not read all of the last answer yet."""
        return self._transport.get_write_buffer_size() > 0

    def give_way(self) -> None:
        """Close an idle connection, since another client needs the place."""
        self._shared.forget(self)
        if self.has_unread:
            # All others are in use, too.
            self._transport.abort()
        self._end()

    # --- requests ---------------------------------------------------------------------------------

    def _wait_for_turn(self) -> None:
        """Continue in a later turn, shared fairly with other connections."""
        if self._waits_for_turn or self._is_going_on:
            return
        if self._events or self._rest:
            self._waits_for_turn = True
            self._shared.rounds.join(self._take_turn)
        elif self._parser.state is not http1.State.BETWEEN:
            self._watch(self._parser.state)

    def _take_turn(self) -> None:
        if self._rest_timer is not None:
            return
        self._waits_for_turn = False
        self._go_on(self._shared.rounds.ends_at)
        if self._current is not None:
            # The started answer takes time in this turn, too.
            self._shared.rounds.end()

    def _go_on(self, ends_at: float) -> None:
        """Answer received requests in order, until one has to be waited for."""
        self._is_going_on = True
        try:
            self._answer_some(ends_at)
        finally:
            self._is_going_on = False
        if not self._reads and len(self._rest) <= _PIECE_BYTES and not self._is_ending:
            self._reads = True
            self._transport.resume_reading()
        if self._used:
            self._charge()
        state = self._parser.state
        if self._timer is not None or state is not http1.State.BETWEEN:
            self._watch(state)

    def _answer_some(self, ends_at: float) -> None:
        turn = self._slice
        turn.begin(ends_at)
        pieces = 0
        while self._may_begin:
            if self._events:
                if self._beside and not _is_plain(self._events[0]):
                    return
                if not turn.has_time():
                    break
                turn.answered += 1
                self._take(self._events.popleft())
            elif self._rest:
                if pieces and perf_counter() >= ends_at:
                    break
                length = _PIECE_BYTES if self._is_in_body else SMALL_PIECE_BYTES
                piece = bytes(self._rest[:length])
                del self._rest[:length]
                self._feed(piece)
                pieces += 1
            else:
                return
        else:
            return
        self._is_going_on = False
        self._wait_for_turn()

    @property
    def _is_in_body(self) -> bool:
        return self._parser.state in (http1.State.BODY, http1.State.UNREAD_BODY)

    def _feed(self, data: bytes) -> None:
        """Parse bytes. The time of a body, which may consist of the smallest chunks, is noted: only
        requests are charged by the service.
        """
        if not self._is_in_body:
            self._events.extend(self._parser.feed(data))
            return
        began = perf_counter()
        self._events.extend(self._parser.feed(data))
        self._used += perf_counter() - began

    def _charge(self) -> None:
        """Charge the client for its bodies; it rests when it has used more than its share."""
        used, self._used = self._used, 0.0
        rest = self._shared.debts.charge(
            self._shared.payer(client_key(self._parser.client)) or self, used
        )
        if rest and self._rest_timer is None and not self._is_ending:
            self._waits_for_turn = True
            self._rest_timer = self._loop.call_later(rest, self._end_rest)

    def _end_rest(self) -> None:
        self._rest_timer = None
        self._waits_for_turn = False
        self._wait_for_turn()

    @property
    def _may_begin(self) -> bool:
        """Whether another request may be started."""
        waits = self._current is not None or self._writable is not None
        return not (waits or self._is_ending or self._beside.is_full)

    def _take(self, event: http1.Event[R]) -> None:
        if isinstance(event, Request):
            if self._timer is not None:
                self._stop_timer()
            self._shared.idle.pop(self, None)
            self._shared.idle[self] = None
            if self._handed_off is not None:
                event.keep_alive = False
            event.began = perf_counter()
            self._answer(event, self._response(event))
        elif isinstance(event, http1.Invalid):
            self._service.traffic.answer(0, 0.0, event.status)
            text = Whole(event.text, b"text/plain; charset=utf-8", event.status)
            self._write(text, has_body=True, keep_alive=False)
        elif isinstance(event, http1.Continue):
            self._transport.write(http1.CONTINUE)
        else:
            self._refuse(event.request, event.reason)

    def _refuse(self, request: R, reason: Unread) -> None:
        request.began = perf_counter()
        self._answer(request, self._service.refuse(request, reason))

    def _response(self, request: R) -> Answer:
        if self._has_too_many or self._shared.has_too_many(request):
            request.keep_alive = False
            pages = self._service.cors.headers(request.method, request.headers.get(b"origin"))
            return Whole(
                _OVERLOADED.body, status=_OVERLOADED.status, headers=_OVERLOADED.headers + pages
            )
        try:
            return self._service.respond(request)
        except Exception:
            logger.exception("%s %s failed", request.method, request.path)
            return _FAULT

    # --- answers ----------------------------------------------------------------------------------

    def _answer(self, request: R, answer: Answer) -> None:
        if isinstance(answer, Deferred) and answer.lets_next_begin:
            place = self._beside.join(request)
            answer.ask(partial(self._finish_beside, place, answer))
            return
        if self._beside:
            self._beside.join(request, answer)
            if not isinstance(answer, Whole):
                self._current = request
            return
        match answer:
            case Whole():
                self._write_answer(request, answer)
            case Deferred():
                self._current = request
                answer.ask(partial(self._finish_deferred, request, answer))
            case Awaited() | Stream():
                self._current = request
                self._ends_with_client = isinstance(answer, Stream) or answer.ends_with_client
                self._task = self._shared.start(self._carry_out(request, answer))
            case Upgrade():
                self._upgrade(request, answer)
            case HandOver():
                self._hand_over(request, answer)
        if request.is_websocket:
            self._rest[:0] = self._parser.unparsed
            self._parser.unparsed = b""

    def _write_answer(self, request: R, answer: Whole) -> None:
        self._count(request, answer.status)
        has_body, keep_alive = request.method != "HEAD", request.keep_alive
        self._write(answer, has_body=has_body, keep_alive=keep_alive)

    def _count(self, request: R, status: int) -> None:
        """Count the answer to a request, which begins now."""
        if request.route != UNCOUNTED:
            seconds = perf_counter() - request.began
            self._service.traffic.answer(request.route, seconds, status)

    def _write(self, answer: Whole, *, has_body: bool, keep_alive: bool) -> None:
        date = self._shared.date()
        self._transport.write(
            http1.whole_bytes(answer, date, has_body=has_body, keep_alive=keep_alive)
        )
        if not keep_alive:
            self._end()

    def _finish_deferred(self, request: R, answer: Deferred, outcome: object) -> None:
        self._finish(request, _made(request, answer, outcome))

    def _finish_beside(self, place: Place[R], answer: Deferred, outcome: object) -> None:
        """Set one of the concurrent answers, and send all that are next in order."""
        place.answer = _made(place.request, answer, outcome)
        while (ready := self._beside.next_ready()) is not None:
            request, given = ready
            if not isinstance(given, Whole):
                # The last one, which starts only after all of these.
                self._current = None
                self._answer(request, given)
            elif not self._transport.is_closing():
                self._write_answer(request, given)
        if self._current is None and not self._transport.is_closing():
            self._go_on_behind()

    def _finish(self, request: R, answer: Whole | None) -> None:
        """Send the answer unless it has been sent, and continue with waiting requests."""
        self._current = None
        self._task = None
        if self._transport.is_closing():
            return
        if answer is not None:
            self._answer(request, answer)
        elif not request.keep_alive:
            self._end()
        self._go_on_behind()

    def _go_on_behind(self) -> None:
        """Continue with the requests after a sent answer."""
        first = self._events[0] if self._events and not self._beside else None
        if isinstance(first, Request) and first.is_websocket:
            # A client must not pipeline a WebSocket request.
            self._end()
        self._wait_for_turn()

    async def _carry_out(self, request: R, answer: Awaited | Stream) -> None:
        given: Whole | Stream | Upgrade = _FAULT
        try:
            given = await answer.work if isinstance(answer, Awaited) else answer
            if isinstance(given, Upgrade):
                self._current = self._task = None
                self._upgrade(request, given)
                return
            if isinstance(given, Stream):
                self._ends_with_client = True
                await self._send_stream(request, given)
        except asyncio.CancelledError:
            # The client is gone, or the server stops.
            self._transport.abort()
            return
        except Exception as fault:
            if not isinstance(fault, EnvironmentProblem):
                logger.exception("%s %s failed", request.method, request.path)
            if isinstance(given, Stream):
                # The answer has begun: closing without its end is the only way to signal an error.
                self._transport.close()
                return
        self._finish(request, given if isinstance(given, Whole) else None)

    async def _send_stream(self, request: R, stream: Stream) -> None:
        chunked, has_body = http1.is_chunked(stream, request), request.method != "HEAD"
        chunks, date = stream.chunks, self._shared.date()
        try:
            if self._transport.is_closing():
                return
            self._count(request, stream.status)
            self._transport.write(
                http1.stream_head(stream, date, chunked=chunked, keep_alive=request.keep_alive)
            )
            async for chunk in chunks:
                if self._transport.is_closing():
                    return
                if chunk and has_body:
                    self._transport.write(http1.chunk_bytes(chunk) if chunked else chunk)
                if self._writable is not None:
                    await self._writable.wait()
            if chunked:
                self._transport.write(http1.LAST_CHUNK)
        finally:
            # Close the source now, not when it is garbage collected.
            close = getattr(chunks, "aclose", None)
            if close is not None:
                await close()

    def _upgrade(self, request: R, answer: Upgrade) -> None:
        """Accept a WebSocket, with the bytes that the client sent after the request."""
        key = accept_key(request)
        if key is None:
            request.keep_alive = False
            self._write_answer(request, _NO_WEBSOCKET)
            return
        self._count(request, SWITCHING_PROTOCOLS)
        self._transport.write(handshake_bytes(key, self._shared.date()))

        rest = self._parser.unparsed + bytes(self._rest)
        made = self._hand_over(request, HandOver(partial(self._open_websocket, request.host)))
        assert isinstance(made, WebSocket)
        self._shared.start(_run(made, answer, request))
        if rest:
            made.data_received(rest)

    def _open_websocket(
        self,
        host: str,
        transport: asyncio.Transport,
        _sent: bytes,
        limits: ServerLimits,
        when_lost: WhenLost,
    ) -> WebSocket:
        shared = self._shared
        payer = shared.payer(client_key(host))
        return WebSocket(transport, limits, when_lost, shared.rounds, shared.debts, payer)

    def _hand_over(self, request: R, answer: HandOver) -> HandedOver:
        """Pass the connection to another owner. It still counts."""
        shared, host = self._shared, self._host

        def lost(ended: HandedOver) -> None:
            shared.closes(host)
            shared.forget(ended)

        self._leave()
        sent = http1.request_bytes(request) + self._parser.unparsed + bytes(self._rest)
        made = answer.take(self._transport, sent, self._limits, lost)
        shared.connections.add(made)
        return made

    # --- timeouts ---------------------------------------------------------------------------------

    def _watch(self, state: http1.State) -> None:
        """Set the timeout of an incomplete request, unless the server makes it wait."""
        if self._current is not None or self._beside or self._is_ending:
            state = http1.State.BETWEEN
        if state is self._timed:
            return
        self._stop_timer()
        self._timed = state
        if state is not http1.State.BETWEEN:
            limit = self._limits.head_seconds
            if state is http1.State.BODY:
                limit = self._service.body_limits.seconds
            self._timer = self._loop.call_later(limit, self._timed_out)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._timed = None

    def _timed_out(self) -> None:
        request = self._parser.unfinished
        if self._timed is http1.State.BODY and request is not None:
            request.keep_alive = False
            self._refuse(request, Unread.TOO_SLOW)
        else:
            self._end()

    def _watch_idleness(self) -> None:
        """Close the connection after a time without activity."""
        idle = not (self._was_active or self._current or self._beside)
        if self._idle_timer is not None and idle:
            self._end()
            return
        self._was_active = False
        self._idle_timer = self._loop.call_later(
            self._limits.keep_alive_seconds, self._watch_idleness
        )

    # --- the end ----------------------------------------------------------------------------------

    def _end(self) -> None:
        """Close after all data is sent."""
        self._is_ending = True
        self._events.clear()
        self._rest.clear()
        self._transport.close()

    def _leave(self) -> None:
        """Release the connection, which has ended or has another owner."""
        self._is_ending = True
        self._shared.forget(self)
        for timer in (self._timer, self._idle_timer, self._write_timer, self._rest_timer):
            if timer is not None:
                timer.cancel()
        self._parser.close()


def _is_plain(event: object) -> bool:
    """Whether it is a request whose answer may be made concurrently with others."""
    return isinstance(event, Request) and not event.is_websocket


def _made(request: Request, answer: Deferred, outcome: object) -> Any:  # noqa: ANN401 - an answer
    try:
        return answer.then(outcome)
    except Exception:
        logger.exception("%s %s failed", request.method, request.path)
        return _FAULT


async def _run(connection: WebSocket, answer: Upgrade, request: Request) -> None:
    """Run the application's handler of a WebSocket."""
    try:
        await answer.run(connection)
    except ConnectionError:
        pass
    except asyncio.CancelledError:
        connection.abort()
    except Exception:
        logger.exception("%s %s failed", request.method, request.path)
        connection.abort()
    else:
        connection.finish()
