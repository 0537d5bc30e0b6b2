"""A small HTTP/1.1 client for one server that is asked often: kept connections, whole answers, and
streams of lines.

A request costs about as much as the server needs for it, which matters to a service that asks
another one thousands of times a second; for anything else there is httpx.

What lives here: connections, requests, limits on time and size. What does not: what is asked, and
retrying.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections import deque
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Final, cast
from urllib.parse import urlsplit

import httptools

from soliton.errors import EnvironmentProblem, InputError

MAX_LINE_BYTES: Final = 4 * 1024 * 1024
"""The longest line of a stream: a block of transactions."""
_STREAM_BACKLOG: Final = 1_024
_PORTS: Final = {"http": 80, "https": 443}


class HttpTrouble(EnvironmentProblem):
    """No usable answer. ``sent`` tells whether the server may have got the request."""

    def __init__(self, message: str, *, sent: bool) -> None:
        super().__init__(message)
        self.sent = sent


@dataclass(frozen=True, slots=True)
class Answer:
    """A status and a whole body."""

    status: int
    body: bytes


@dataclass(frozen=True, slots=True)
class ClientLimits:
    """How many connections are open at once, how long an answer may take, how large it may be."""

    connections: int = 16
    connect_seconds: float = 3.0
    answer_seconds: float = 15.0
    answer_bytes: int = 64 * 1024 * 1024


class _Connection(asyncio.Protocol):
    """One connection: a request at a time."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._parser = httptools.HttpResponseParser(self)
        self._body = bytearray()
        self._lines: asyncio.Queue[bytes | None] | None = None
        self._done: asyncio.Future[int] | None = None
        self.transport: asyncio.Transport | None = None
        self.reusable = True

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # That of uvloop has all of the methods, but not the class.
        self.transport = cast("asyncio.Transport", transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self._end(exc or ConnectionResetError("the server hung up"))

    def _end(self, error: Exception) -> None:
        self.reusable = False
        if self._done is not None and not self._done.done():
            self._done.set_exception(error)
        if self._lines is not None:
            self._lines.put_nowait(None)

    def data_received(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            self._end(error)
            self.abort()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Called by the parser."""
        if name.lower() == b"connection" and value.lower() == b"close":
            self.reusable = False

    def on_headers_complete(self) -> None:
        """Called by the parser."""
        if self._lines is not None and self._done is not None and not self._done.done():
            self._done.set_result(self._parser.get_status_code())

    def on_body(self, body: bytes) -> None:
        """Called by the parser."""
        self._body += body
        if self._lines is None:
            if len(self._body) > self._max_bytes:
                self._end(ValueError(f"an answer of more than {self._max_bytes} bytes"))
                self.abort()
            return
        *lines, rest = self._body.split(b"\n")
        for line in lines:
            if self._lines.qsize() >= _STREAM_BACKLOG:
                # The reader is too slow: it hears of the end once it has caught up.
                self.abort()
                return
            self._lines.put_nowait(bytes(line))
        self._body = rest
        if len(rest) > MAX_LINE_BYTES:
            self._end(ValueError(f"a line of more than {MAX_LINE_BYTES} bytes"))
            self.abort()

    def on_message_complete(self) -> None:
        """Called by the parser."""
        if self._lines is not None:
            self._lines.put_nowait(None)
        elif self._done is not None and not self._done.done():
            self._done.set_result(self._parser.get_status_code())

    def abort(self) -> None:
        """Close at once."""
        self.reusable = False
        if self.transport is not None:
            self.transport.abort()

    async def ask(self, request: bytes) -> Answer:
        """Send a request and wait for its whole answer."""
        assert self.transport is not None
        self._body = bytearray()
        self._parser = httptools.HttpResponseParser(self)
        self._done = asyncio.get_running_loop().create_future()
        self.transport.write(request)
        status = await self._done
        return Answer(status, bytes(self._body))

    async def open_stream(self, request: bytes) -> tuple[int, asyncio.Queue[bytes | None]]:
        """Send a request; the status, and the lines of the body as they come (``None`` ends)."""
        assert self.transport is not None
        self._lines = asyncio.Queue()
        self._done = asyncio.get_running_loop().create_future()
        self.transport.write(request)
        return await self._done, self._lines


class HttpClient:
    """Connections to one server. Use from one event loop."""

    def __init__(
        self, url: str, limits: ClientLimits | None = None, headers: dict[str, str] | None = None
    ) -> None:
        """``url`` is the server's, with a path before all others if need be; ``headers`` go with
        every request. Raises ``InputError`` for an address that is none.
        """
        parts = urlsplit(url)
        if parts.scheme not in _PORTS or not parts.hostname:
            raise InputError(f"an address should look like http://host:port, not {url[:80]}")
        self._host = parts.hostname
        self._port = parts.port or _PORTS[parts.scheme]
        self._tls = ssl.create_default_context() if parts.scheme == "https" else None
        self._prefix = parts.path.rstrip("/")
        self._limits = limits or ClientLimits()
        lines = {"Host": parts.netloc.rpartition("@")[2], "Accept": "application/json"}
        lines |= headers or {}
        self._head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
        self._idle: deque[_Connection] = deque()
        self._open: set[_Connection] = set()
        self._slots = asyncio.Semaphore(self._limits.connections)

    async def request(self, method: str, path: str, body: bytes | None = None) -> Answer:
        """Send a request (a body is JSON) and give its answer; raises ``HttpTrouble``.

        A kept connection may be closed by the server at any moment: then the request is sent once
        more. So it must be one that may arrive twice.
        """
        data = self._encode(method, path, body)
        async with self._slots:
            while (connection := self._take_idle()) is not None:
                with contextlib.suppress(ConnectionError):
                    return await self._exchange(connection, data)
            try:
                return await self._exchange(await self._connect(), data)
            except ConnectionError as error:
                raise HttpTrouble(f"no answer: {error}", sent=True) from error

    async def _exchange(self, connection: _Connection, data: bytes) -> Answer:
        kept = False
        try:
            async with asyncio.timeout(self._limits.answer_seconds):
                answer = await connection.ask(data)
            kept = connection.reusable
        except TimeoutError:
            raise HttpTrouble("the server did not answer in time", sent=True) from None
        except (ValueError, httptools.HttpParserError) as error:
            raise HttpTrouble(f"no usable answer: {error}", sent=True) from error
        else:
            return answer
        finally:
            if kept:
                self._idle.append(connection)
            else:
                self._drop(connection)

    @contextlib.asynccontextmanager
    async def stream(self, path: str) -> AsyncIterator[tuple[int, AsyncIterator[bytes]]]:
        """Open a stream: its status, and its lines without their ends. Raises ``HttpTrouble``."""
        connection = await self._connect()
        try:
            try:
                async with asyncio.timeout(self._limits.answer_seconds):
                    status, lines = await connection.open_stream(self._encode("GET", path, None))
            except TimeoutError:
                raise HttpTrouble("the server did not answer in time", sent=True) from None
            except (ConnectionError, httptools.HttpParserError) as error:
                raise HttpTrouble(f"no answer: {error}", sent=True) from error
            yield status, _lines_of(lines)
        finally:
            self._drop(connection)

    async def close(self) -> None:
        """Close all connections."""
        for connection in list(self._open):
            self._drop(connection)
        self._idle.clear()

    def _encode(self, method: str, path: str, body: bytes | None) -> bytes:
        head = f"{method} {self._prefix}{path} HTTP/1.1\r\n{self._head}"
        if body is None:
            return f"{head}\r\n".encode("latin-1")
        length = f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        return f"{head}{length}".encode("latin-1") + body

    def _take_idle(self) -> _Connection | None:
        while self._idle:
            connection = self._idle.pop()
            if connection.reusable:
                return connection
            self._drop(connection)
        return None

    async def _connect(self) -> _Connection:
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(self._limits.connect_seconds):
                _, connection = await loop.create_connection(
                    lambda: _Connection(self._limits.answer_bytes),
                    self._host,
                    self._port,
                    ssl=self._tls,
                )
        except TimeoutError:
            raise HttpTrouble("the server cannot be reached in time", sent=False) from None
        except OSError as error:
            raise HttpTrouble(f"the server cannot be reached: {error}", sent=False) from error
        self._open.add(connection)
        return connection

    def _drop(self, connection: _Connection) -> None:
        self._open.discard(connection)
        connection.abort()


async def _lines_of(lines: asyncio.Queue[bytes | None]) -> AsyncIterator[bytes]:
    while (line := await lines.get()) is not None:
        yield line
