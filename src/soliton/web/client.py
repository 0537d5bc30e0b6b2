"""An HTTP/1.1 client for frequent requests to one server, over TCP, TLS or a unix socket.

It pools connections, and returns responses as a whole, in chunks or in lines. A request costs the
client about as much as the server, which matters to a service that sends another one thousands of
requests a second.

What lives here: connections, and limits on time, size and number. What does not: the requests, and
the protocol (``client_http1``).
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from functools import partial
from typing import Final, NamedTuple, cast
from urllib.parse import urlsplit

import msgspec

from soliton.errors import EnvironmentProblem, InputError
from soliton.turns import Debts, Intake, Rounds
from soliton.web.client_http1 import (
    Data,
    End,
    Head,
    ProtocolError,
    ResponseReader,
    end_to_end,
    header_lines,
    request_bytes,
)
from soliton.web.types import Headers

MAX_LINE_BYTES: Final = 4 * 1024 * 1024
"""The longest line of a stream: a block of transactions."""
MAX_UNREAD_BYTES: Final = 256 * 1024
"""Size of the read buffer of a body that is read in chunks."""
_PIECE_BYTES: Final = 8 * 1024
"""Of a response, parsed in one go; may contain a thousand chunks."""
_PORTS: Final = {"http": 80, "https": 443}
_UNIX: Final = "unix:"
_JSON: Final = b"Content-Type: application/json\r\n"


class HttpTrouble(EnvironmentProblem):
    """No usable response; except for the first two kinds, the server may have got the request."""


class HttpUnreachable(HttpTrouble):
    """The server cannot be reached."""


class HttpBusy(HttpTrouble):
    """The maximum number of requests is in progress."""


class HttpTimeout(HttpTrouble):
    """The response did not arrive in time."""


class HttpTooLarge(HttpTrouble):
    """The body is larger than the limit; ``status`` is that of its response."""

    def __init__(self, limit: int, status: int) -> None:
        super().__init__(f"no usable answer: an answer of more than {limit} bytes")
        self.status = status


class HttpBroken(HttpTrouble):
    """The connection was lost before the response was complete, or the response is invalid."""


class Answer(NamedTuple):
    """A status and a whole body."""

    status: int
    body: bytes


class ClientLimits(msgspec.Struct, frozen=True):
    """How many requests may be in progress, and whether further ones wait (else ``HttpBusy``); the
    timeouts of connecting and of a whole answer, the largest answer, and how long an idle
    connection is reused: the server has to keep it open for longer.
    """

    connections: int = 16
    waits: bool = True
    connect_seconds: float = 3.0
    answer_seconds: float = 15.0
    answer_bytes: int = 64 * 1024 * 1024
    keep_alive_seconds: float = 1_800.0


class _Connection(asyncio.Protocol):
    """One connection, with one request at a time."""

    def __init__(self, rounds: Rounds, debts: Debts) -> None:
        self.transport: asyncio.Transport | None = None
        self._intake = Intake(rounds, debts, self._work, piece_bytes=_PIECE_BYTES)
        self.head: Head | None = None
        self.end: End | None = None
        self.trouble: Exception | None = None
        self.is_unsent = self.was_used = False
        self.rests_since = 0.0
        self._reader = ResponseReader()
        self._pieces: list[bytes] = []
        self._unread = 0
        self._has_news = False
        self._waiter: asyncio.Future[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # That of uvloop has all of the methods, but not the class.
        self.transport = cast("asyncio.Transport", transport)
        self._intake.begin(self.transport, object())

    def connection_lost(self, exc: Exception | None) -> None:
        # The request could not be sent completely.
        self.is_unsent = isinstance(exc, BrokenPipeError)
        # What has arrived before is still a part of the response, or all of it.
        self._intake.end(partial(self._end, exc))

    def _end(self, exc: Exception | None) -> None:
        self._intake.close()
        if exc is None and self._reader.ends_here():
            self.end = End(keeps_alive=False)
        self.trouble = self.trouble or exc or ConnectionResetError("the server hung up")
        self._notify()

    def data_received(self, data: bytes) -> None:
        self._intake.receive(data)

    def _work(self, data: bytes) -> None:
        try:
            self._take(self._reader.receive(data))
        except ProtocolError as error:
            self.abort(error)
        if self._unread > MAX_UNREAD_BYTES:
            self._intake.hold()
        self._notify()

    def _notify(self) -> None:
        self._has_news = True
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def _take(self, events: Iterable[Head | Data | End]) -> None:
        body = bytearray()
        for event in events:
            if isinstance(event, Data):
                body += event.data
            elif isinstance(event, Head):
                self.head = event
            else:
                self.end = event
        if body:
            self._pieces.append(bytes(body))
            self._unread += len(body)

    def send(self, request: bytes, *, has_body: bool) -> None:
        """Send a request."""
        self._reader.expect(has_body=has_body)
        self.head = self.end = None
        self._has_news = False
        if self.transport is not None:
            self.transport.write(request)

    async def wait(self) -> None:
        """Wait for data; raises ``HttpBroken``."""
        if not self._has_news:
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter
        self._has_news = False
        if self.trouble is not None and self.end is None:
            words = "no usable answer" if isinstance(self.trouble, ProtocolError) else "no answer"
            raise HttpBroken(f"{words}: {self.trouble}") from self.trouble

    def take(self) -> bytes:
        """Return the bytes of the body received since the last call."""
        pieces, self._pieces = self._pieces, []
        data = pieces[0] if len(pieces) == 1 else b"".join(pieces)
        self._unread = 0
        self._intake.release()
        return data

    @property
    def is_ending(self) -> bool:
        """Whether it is closed or closing, and cannot be reused."""
        gone = self.transport is None or self.transport.is_closing()
        return gone or self.trouble is not None

    def abort(self, trouble: Exception) -> None:
        """Close at once."""
        self.trouble = self.trouble or trouble
        self._intake.close()
        if self.transport is not None:
            self.transport.abort()
        self._notify()


class Response:
    """A response whose head was received; read it to its end, or ``drop`` it."""

    __slots__ = ("_connection", "_headers", "_release", "status")

    def __init__(self, connection: _Connection, release: Callable[[_Connection], None]) -> None:
        assert connection.head is not None
        self.status, self._headers = connection.head.status, connection.head.headers
        self._connection = connection
        self._release: Callable[[_Connection], None] | None = release

    @property
    def headers(self) -> Headers:
        """The headers, without those of the connection."""
        return end_to_end(self._headers)

    async def chunks(self) -> AsyncIterator[bytes]:
        """Yield the body as it arrives; raises ``HttpBroken`` if it is cut off."""
        connection = self._connection
        try:
            while True:
                if data := connection.take():
                    yield data
                elif connection.end is not None:
                    return
                else:
                    await connection.wait()
        finally:
            self.drop()

    async def lines(self) -> AsyncIterator[bytes]:
        """Yield the lines of the body, without line ends; raises ``HttpBroken``."""
        rest = bytearray()
        async for chunk in self.chunks():
            first, *lines = chunk.split(b"\n")
            rest += first
            for line in lines:
                yield bytes(rest)
                rest = bytearray(line)
            if len(rest) > MAX_LINE_BYTES:
                raise HttpBroken(f"no usable answer: a line of more than {MAX_LINE_BYTES} bytes")

    async def read(self, limit: int | None = None) -> bytes:
        """Return the whole body; raises ``HttpBroken``, or ``HttpTooLarge`` above the limit."""
        connection, pieces, length = self._connection, list[bytes](), 0
        try:
            while True:
                pieces.append(connection.take())
                length += len(pieces[-1])
                if limit is not None and length > limit:
                    raise HttpTooLarge(limit, self.status)
                if connection.end is not None:
                    return b"".join(pieces)
                await connection.wait()
        finally:
            self.drop()

    def drop(self) -> None:
        """Discard the rest of the body. Idempotent."""
        release, self._release = self._release, None
        if release is not None:
            release(self._connection)


class HttpClient:
    """A pool of connections to one server. Use from one event loop."""

    def __init__(
        self,
        url: str,
        limits: ClientLimits | None = None,
        headers: dict[str, str] | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        """``url`` is the server's, optionally with a prefix of all paths, or ``unix:`` and the path
        of a socket; ``headers`` are sent with every ``request``. ``tls``, for ``https``, replaces
        the machine's trust store and may have a client certificate. Raises ``InputError``.
        """
        self._limits = limits or ClientLimits()
        self._dial, host, self._prefix = _way_to(url, tls)
        lines = {"Host": host, "Accept": "application/json", **(headers or {})}
        self._lines = header_lines((name.encode(), value.encode()) for name, value in lines.items())
        self._idle: list[_Connection] = []
        self._open: set[_Connection] = set()
        self._rounds, self._debts = Rounds(), Debts()
        self._slots = asyncio.Semaphore(self._limits.connections)

    async def request(
        self,
        method: str,
        path: str,
        body: bytes = b"",
        headers: Iterable[tuple[bytes, bytes]] = (),
        *,
        may_repeat: bool = True,
    ) -> Answer:
        """Send a request (a body is JSON) with additional headers and return its whole answer;
        ``may_repeat`` as for ``send``. Raises ``HttpTrouble``.
        """
        lines = self._lines + _JSON if body else self._lines
        lines += header_lines(headers)
        data = request_bytes(method, self._prefix + path, lines, body)
        await self._take_slot()
        try:
            async with asyncio.timeout(self._limits.answer_seconds):
                response = await self._exchange(data, has_body=True, may_repeat=may_repeat)
                return Answer(response.status, await response.read(self._limits.answer_bytes))
        except TimeoutError:
            raise HttpTimeout("the server did not answer in time") from None

    @contextlib.asynccontextmanager
    async def stream(self, path: str) -> AsyncIterator[tuple[int, AsyncIterator[bytes]]]:
        """Open a stream; yields its status, and its lines without line ends. Raises
        ``HttpTrouble``.
        """
        async with self.download(path) as response:
            yield response.status, response.lines()

    @contextlib.asynccontextmanager
    async def download(
        self, path: str, headers: Iterable[tuple[bytes, bytes]] = ()
    ) -> AsyncIterator[Response]:
        """Request something large; yields the response once its head has arrived. Raises
        ``HttpTrouble``.
        """
        await self._take_slot()
        lines = self._lines + header_lines(headers)
        data = request_bytes("GET", self._prefix + path, lines, b"")
        try:
            async with asyncio.timeout(self._limits.answer_seconds):
                response = await self._exchange(data, has_body=True, may_repeat=True)
        except TimeoutError:
            raise HttpTimeout("the server did not answer in time") from None
        try:
            yield response
        finally:
            response.drop()

    async def send(
        self, request: bytes, *, has_body: bool = True, may_repeat: bool = False
    ) -> Response:
        """Send encoded bytes of a request and wait for the head of its response, without a timeout;
        ``has_body`` is off for ``HEAD``.

        A reused connection may break before the response arrives. The request is then sent again on
        another one if it ``may_repeat`` (it is idempotent) or was not sent completely; otherwise
        ``HttpBroken`` says that the outcome is unknown. Raises ``HttpTrouble``.
        """
        await self._take_slot()
        return await self._exchange(request, has_body=has_body, may_repeat=may_repeat)

    def close(self) -> None:
        """Close all connections."""
        for connection in list(self._open):
            self._drop(connection)
        self._idle.clear()

    async def _take_slot(self) -> None:
        if self._slots.locked() and not self._limits.waits:
            raise HttpBusy("too many requests are under way")
        await self._slots.acquire()

    async def _exchange(self, request: bytes, *, has_body: bool, may_repeat: bool) -> Response:
        """Send a request that has a slot, which its response releases."""
        connection: _Connection | None = None
        try:
            while True:
                connection = self._take_idle() or await self._connect()
                connection.send(request, has_body=has_body)
                try:
                    while connection.head is None:
                        await connection.wait()
                    return Response(connection, self._release)
                except HttpBroken:
                    if not (connection.was_used and (may_repeat or connection.is_unsent)):
                        raise
                    self._drop(connection)
        except BaseException:
            self._slots.release()
            if connection is not None:
                self._drop(connection)
            raise

    def _take_idle(self) -> _Connection | None:
        now = asyncio.get_running_loop().time()
        while self._idle:
            connection = self._idle.pop()
            rested = now - connection.rests_since
            if rested < self._limits.keep_alive_seconds and not connection.is_ending:
                return connection
            self._drop(connection)
        return None

    async def _connect(self) -> _Connection:
        try:
            async with asyncio.timeout(self._limits.connect_seconds):
                connection = await self._dial(lambda: _Connection(self._rounds, self._debts))
        except TimeoutError:
            raise HttpUnreachable("the server cannot be reached in time") from None
        except (OSError, UnicodeError) as error:
            # The second kind is for invalid host names.
            raise HttpUnreachable(f"the server cannot be reached: {error}") from error
        self._open.add(connection)
        return connection

    def _release(self, connection: _Connection) -> None:
        """Return a connection to the pool; it is closed unless its response was read to its end."""
        self._slots.release()
        end = connection.end
        if end is not None and end.keeps_alive and not connection.is_ending:
            connection.was_used = True
            connection.rests_since = asyncio.get_running_loop().time()
            self._idle.append(connection)
        else:
            self._drop(connection)

    def _drop(self, connection: _Connection) -> None:
        self._open.discard(connection)
        connection.abort(ConnectionAbortedError("closed"))


_Dial = Callable[[Callable[[], _Connection]], Awaitable[_Connection]]


def _way_to(url: str, tls: ssl.SSLContext | None) -> tuple[_Dial, str, str]:
    """Return how to connect to a server, its host name, and the prefix of all paths."""
    if url.startswith(_UNIX):
        return partial(_dial_unix, url.removeprefix(_UNIX)), "localhost", ""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        port, parts = None, urlsplit("")
    if parts.scheme not in _PORTS or not parts.hostname:
        raise InputError(f"an address should look like http://host:port, not {url[:80]}")
    over = (tls or ssl.create_default_context()) if parts.scheme == "https" else None
    dial = partial(_dial_tcp, parts.hostname, port or _PORTS[parts.scheme], over)
    return dial, parts.netloc.rpartition("@")[2], parts.path.rstrip("/")


async def _dial_tcp(
    host: str, port: int, tls: ssl.SSLContext | None, make: Callable[[], _Connection]
) -> _Connection:
    _, made = await asyncio.get_running_loop().create_connection(make, host, port, ssl=tls)
    return made


async def _dial_unix(path: str, make: Callable[[], _Connection]) -> _Connection:
    _, made = await asyncio.get_running_loop().create_unix_connection(make, path)
    return made
