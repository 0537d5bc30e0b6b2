"""A server behind this one: an HTTP client over a unix socket that passes answers on as they come.

What lives here: connections, requests, answers in pieces. What does not: what is asked and why
(the applications say that).
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Final, cast

from httptools import HttpParserError, HttpResponseParser

from soliton.errors import EnvironmentProblem
from soliton.web.types import Headers

MAX_WAITING_BYTES: Final = 256 * 1024
"""What is read ahead of the client that the answer is for."""
MAX_CONNECTIONS: Final = 512
"""Requests under way at the same time; more are refused."""
MAX_IDLE_SECONDS: Final = 1_800.0
"""A connection that has rested for longer is not used again: its server may be closing it. So the
server has to keep idle connections for longer than this.
"""

CLIENT_HEADER: Final = b"x-soliton-client"
"""Whose request it is that is passed on. Only a server that nobody else reaches may believe it."""
WITHOUT_EFFECT: Final = frozenset(("GET", "HEAD", "OPTIONS"))
"""A request by one of these may be sent again when its answer did not come."""

_HOP_BY_HOP: Final = frozenset(
    (b"connection", b"date", b"keep-alive", b"transfer-encoding", b"upgrade")
)


class UpstreamBusy(EnvironmentProblem):
    """As many requests as there may be are under way."""


class UpstreamLost(EnvironmentProblem):
    """The server behind this one is not there, or went away before its answer was complete."""


class _Connection(asyncio.Protocol):
    """One connection with one request under way at a time."""

    def __init__(self) -> None:
        self.transport: asyncio.Transport | None = None
        self.headers: list[tuple[bytes, bytes]] = []
        self.pieces: list[bytes] = []
        self.waiting_bytes = 0
        self.has_head = False
        self.is_done = False
        self.is_lost = False
        self.is_unsent = False
        self.was_used = False
        self.is_last = False
        self.rests_since = 0.0
        self._parser = HttpResponseParser(self)
        self._news = asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_lost = True
        # The system took the rest of the request from us no more: it has not got there as a whole.
        self.is_unsent = isinstance(exc, BrokenPipeError)
        self._news.set()

    def data_received(self, data: bytes) -> None:
        try:
            self._parser.feed_data(data)
        except HttpParserError:
            self.abort()
        if self.waiting_bytes > MAX_WAITING_BYTES and self.transport is not None:
            self.transport.pause_reading()

    def on_header(self, name: bytes, value: bytes) -> None:
        self.headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        self.has_head = True
        self._news.set()

    def on_body(self, body: bytes) -> None:
        self.pieces.append(body)
        self.waiting_bytes += len(body)
        self._news.set()

    def on_message_complete(self) -> None:
        self.is_done = True
        # What the server is about to close is of no use to the next request.
        self.is_last = not self._parser.should_keep_alive()
        self._news.set()

    def send(self, request: bytes) -> None:
        """Begin a request."""
        self.headers, self.pieces, self.waiting_bytes = [], [], 0
        self.has_head = self.is_done = False
        self._news.clear()
        if self.transport is not None:
            self.transport.write(request)

    async def news(self) -> None:
        """Wait until something has come; raises ``UpstreamLost``."""
        await self._news.wait()
        self._news.clear()
        if self.is_lost and not self.is_done:
            raise UpstreamLost("the connection was lost")

    def take(self) -> bytes:
        """What has come of the body since."""
        data = b"".join(self.pieces)
        self.pieces.clear()
        if self.waiting_bytes > MAX_WAITING_BYTES and self.transport is not None:
            self.transport.resume_reading()
        self.waiting_bytes = 0
        return data

    @property
    def status(self) -> int:
        """The status of the answer whose head is there."""
        return self._parser.get_status_code()

    @property
    def is_ending(self) -> bool:
        """Whether it takes no further request: it is lost, or will be in a moment."""
        return self.is_lost or self.transport is None or self.transport.is_closing()

    def abort(self) -> None:
        """Go without a word."""
        self.is_lost = True
        if self.transport is not None:
            self.transport.abort()
        self._news.set()


class Answer:
    """An answer whose head is there; read it to its end, or ``drop`` it."""

    __slots__ = ("_connection", "_upstream", "headers", "status")

    def __init__(self, upstream: Upstream, connection: _Connection) -> None:
        self._upstream = upstream
        self._connection = connection
        self.status = connection.status
        self.headers: Headers = tuple(
            item for item in connection.headers if item[0] not in _HOP_BY_HOP
        )

    async def chunks(self) -> AsyncIterator[bytes]:
        """The body as it comes; raises ``UpstreamLost`` when the rest does not."""
        connection = self._connection
        try:
            while True:
                if data := connection.take():
                    yield data
                if connection.is_done and not connection.pieces:
                    return
                if not connection.pieces:
                    await connection.news()
        finally:
            self._upstream.release(connection)

    async def read(self) -> bytes:
        """The whole body."""
        return b"".join([chunk async for chunk in self.chunks()])

    def drop(self) -> None:
        """Do without the body."""
        self._upstream.release(self._connection)


class Upstream:
    """The server that listens on a unix socket."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._idle: list[_Connection] = []
        self._under_way = 0

    async def ask(
        self, request: bytes, *, has_body: bool = True, may_repeat: bool = False
    ) -> Answer:
        """Send a request and wait for the head of its answer; ``has_body`` is off for ``HEAD``.

        A kept connection may break before the answer comes. The request is then sent again on
        another one if it ``may_repeat`` (to do it twice is the same as once) or if it never got
        out; else nobody can tell whether it was done, and that is what ``UpstreamLost`` says.
        Raises ``UpstreamBusy`` and ``UpstreamLost``.
        """
        if self._under_way >= MAX_CONNECTIONS:
            raise UpstreamBusy("too many requests are under way")
        self._under_way += 1
        connection: _Connection | None = None
        try:
            while True:
                connection = await self._connect()
                connection.send(request)
                try:
                    while not connection.has_head:
                        await connection.news()
                    break
                except UpstreamLost:
                    if not (connection.was_used and (may_repeat or connection.is_unsent)):
                        raise
        except BaseException:
            self._under_way -= 1
            if connection is not None:
                connection.abort()
            raise
        connection.was_used = True
        if not has_body:
            connection.is_done = True
            connection.was_used = False
        return Answer(self, connection)

    async def pass_on(
        self,
        method: str,
        path: str,
        query: bytes,
        headers: dict[bytes, bytes],
        body: bytes,
        client: str,
    ) -> Answer:
        """``ask`` what a client has asked here, and say whose request it is."""
        target = f"{path}?{query.decode('latin-1')}" if query else path
        own = {**headers, CLIENT_HEADER: client.encode("ascii")}
        return await self.ask(
            request_bytes(method, target, own, body),
            has_body=method != "HEAD",
            may_repeat=method in WITHOUT_EFFECT,
        )

    async def _connect(self) -> _Connection:
        loop = asyncio.get_running_loop()
        while self._idle:
            connection = self._idle.pop()
            if connection.is_ending:
                continue
            if loop.time() - connection.rests_since < MAX_IDLE_SECONDS:
                return connection
            connection.abort()
        try:
            _, made = await loop.create_unix_connection(_Connection, self._path)
        except OSError as error:
            raise UpstreamLost(f"cannot connect: {error}") from error
        return made

    def release(self, connection: _Connection) -> None:
        """Take a connection back; one whose answer was not read to its end is closed."""
        self._under_way -= 1
        is_over = connection.is_lost or connection.is_last
        if connection.is_done and connection.was_used and not is_over:
            connection.rests_since = asyncio.get_running_loop().time()
            self._idle.append(connection)
        else:
            connection.abort()

    def close(self) -> None:
        """Close what rests."""
        while self._idle:
            with contextlib.suppress(OSError):
                self._idle.pop().abort()


def request_bytes(method: str, target: str, headers: dict[bytes, bytes], body: bytes) -> bytes:
    """A request as it is sent on: with the client's headers, but for those of its connection."""
    lines = [b"%s %s HTTP/1.1" % (method.encode("ascii"), target.encode("latin-1"))]
    lines += [
        b"%s: %s" % (name, value)
        for name, value in headers.items()
        if name not in _HOP_BY_HOP and name not in (b"content-length", b"expect", b"te")
    ]
    if body or method not in ("GET", "HEAD", "OPTIONS"):
        lines.append(b"content-length: %d" % len(body))
    return b"\r\n".join((*lines, b"", body))
