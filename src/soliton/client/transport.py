"""HTTP requests of the blocking clients, over kept-alive connections.

What lives here: sockets, TLS, limits on time and size. What does not: the requests (``steps``),
the protocol (``soliton.web.client_http1``), and the asyncio counterpart (``async_transport``).
"""

from __future__ import annotations

import os
import select
import socket
import time
from collections.abc import Generator, Iterator
from http import HTTPStatus
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

import msgspec

from soliton import __version__
from soliton.client.errors import NodeBroken, NodeTimeout, NodeUnreachable
from soliton.client.steps import Answer, Request
from soliton.errors import InputError
from soliton.web.client_http1 import (
    Data,
    Head,
    ProtocolError,
    ResponseReader,
    header_lines,
    request_bytes,
)

if TYPE_CHECKING:
    import ssl

MAX_ANSWER_BYTES: Final = 256 * 1024 * 1024
"""A longer response raises ``NodeBroken``."""
MAX_IDLE: Final = 16
"""Limit on idle connections that are kept."""
READ_BYTES: Final = 64 * 1024
CONNECT_SECONDS: Final = 5.0
ANSWER_SECONDS: Final = 30.0
USER_AGENT: Final = f"soliton/{__version__}"
_PORTS: Final = {"http": 80, "https": 443}


class Origin(msgspec.Struct, frozen=True):
    """The address of a server; ``prefix`` precedes every path."""

    scheme: str
    host: str
    port: int
    name: str
    prefix: str


def origin_of(url: str) -> Origin:
    """Parse a server's URL; raises ``InputError``."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        port, parts = None, urlsplit("")
    if parts.scheme not in _PORTS or not parts.hostname or parts.username is not None:
        raise InputError(f"an address looks like http://host:port, not {url[:80]!r}")
    if parts.query or parts.fragment:
        raise InputError(f"an address has no query: {url[:80]!r}")
    port = _PORTS[parts.scheme] if port is None else port
    return Origin(parts.scheme, parts.hostname, port, parts.netloc, parts.path.rstrip("/"))


def common_headers(origin: Origin) -> tuple[tuple[str, str], ...]:
    """Return the headers of every request."""
    return (("Host", origin.name), ("Accept", "application/json"), ("User-Agent", USER_AGENT))


def encoded(origin: Origin, common: bytes, request: Request) -> bytes:
    """Return the bytes of a request."""
    lines = common
    if request.headers:
        lines += header_lines((name.encode(), text.encode()) for name, text in request.headers)
    return request_bytes(request.method, origin.prefix + request.path, lines, request.body)


class _Connection:
    """A socket with the parser of its responses."""

    __slots__ = ("reader", "socket", "was_used")

    def __init__(self, sock: socket.socket) -> None:
        self.socket = sock
        self.reader = ResponseReader()
        self.was_used = False

    def is_silent(self) -> bool:
        """Whether an idle connection is usable: the server has neither closed it nor sent data."""
        # poll, unlike select, takes any descriptor number, and unlike epoll needs none of its own.
        poll = select.poll()
        poll.register(self.socket, select.POLLIN)
        return not poll.poll(0)


class Transport:
    """A pool of connections to one server. Any number of threads may use it."""

    def __init__(
        self, url: str, *, timeout: float = ANSWER_SECONDS, most_bytes: int = MAX_ANSWER_BYTES
    ) -> None:
        """``timeout`` is in seconds; a response longer than ``most_bytes`` raises ``NodeBroken``.
        Raises ``InputError`` for an invalid URL.
        """
        self._idle: list[_Connection] = []
        self.origin = origin_of(url)
        self.timeout = timeout
        self._most_bytes = most_bytes
        self._owner = os.getpid()
        self._tls: ssl.SSLContext | None = None
        self._common = header_lines(
            (name.encode(), text.encode()) for name, text in common_headers(self.origin)
        )

    def exchange(self, request: Request) -> Answer:
        """Return the response to a request; raises ``NodeUnreachable``, ``NodeTimeout`` or
        ``NodeBroken``.

        If a kept connection turns out to be closed, a repeatable request is sent on another one.
        """
        data = encoded(self.origin, self._common, request)
        ends = time.monotonic() + (request.seconds or self.timeout)
        while True:
            connection = self._take()
            was_used = connection.was_used
            try:
                answer, keeps = self._exchange(connection, data, ends)
            except TimeoutError:
                connection.socket.close()
                raise NodeTimeout("the server did not respond in time") from None
            except (OSError, ProtocolError) as error:
                connection.socket.close()
                if was_used and request.repeatable and not isinstance(error, ProtocolError):
                    continue
                raise NodeBroken(f"no answer: {error}") from error
            except BaseException:
                connection.socket.close()
                raise
            if keeps and len(self._idle) < MAX_IDLE:
                connection.was_used = True
                self._idle.append(connection)
            else:
                connection.socket.close()
            return answer

    def stream(self, request: Request) -> Generator[Answer | bytes, None, None]:
        """Yield the response without its body, then chunks of the body. A response with a status
        other than 200 is yielded whole. ``request.seconds`` is the longest silence. Raises the
        errors of ``exchange``.
        """
        connection = self._connect()
        silence = request.seconds or self.timeout
        try:
            yield from _streamed(connection, encoded(self.origin, self._common, request), silence)
        except TimeoutError:
            raise NodeTimeout("the stream is silent") from None
        except (OSError, ProtocolError) as error:
            raise NodeBroken(f"the stream is lost: {error}") from error
        finally:
            connection.socket.close()

    def close(self) -> None:
        """Close all idle connections."""
        idle, self._idle = self._idle, []
        for connection in idle:
            connection.socket.close()

    def __del__(self) -> None:
        self.close()

    def _take(self) -> _Connection:
        if self._owner != os.getpid():
            # The idle connections belong to the process that this one was forked from.
            self._idle, self._owner = [], os.getpid()
        while self._idle:
            try:
                connection = self._idle.pop()
            except IndexError:
                break  # another thread was quicker
            if connection.is_silent():
                return connection
            connection.socket.close()
        return self._connect()

    def _connect(self) -> _Connection:
        origin = self.origin
        try:
            sock = socket.create_connection((origin.host, origin.port), CONNECT_SECONDS)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if origin.scheme == "https":
                sock = self._secured(sock)
        except (OSError, UnicodeError) as error:
            # UnicodeError: a name that cannot be a host name.
            raise NodeUnreachable(f"{origin.name} cannot be reached: {error}") from error
        return _Connection(sock)

    def _secured(self, sock: socket.socket) -> socket.socket:
        import ssl

        if self._tls is None:
            self._tls = ssl.create_default_context()
        return self._tls.wrap_socket(sock, server_hostname=self.origin.host)

    def _exchange(self, connection: _Connection, data: bytes, ends: float) -> tuple[Answer, bool]:
        sock, reader = connection.socket, connection.reader
        reader.expect()
        sock.settimeout(max(0.001, ends - time.monotonic()))
        sock.sendall(data)
        status, size = 0, 0
        headers: dict[bytes, bytes] = {}
        pieces: list[bytes] = []
        while True:
            sock.settimeout(max(0.001, ends - time.monotonic()))
            piece = sock.recv(READ_BYTES)
            if not piece:
                if reader.ends_here():
                    return Answer(status, b"".join(pieces), headers), False
                raise ConnectionResetError("the server hung up")
            for event in reader.receive(piece):
                if isinstance(event, Data):
                    pieces.append(event.data)
                    size += len(event.data)
                elif isinstance(event, Head):
                    status, headers = event.status, dict(event.headers)
                else:
                    return Answer(status, b"".join(pieces), headers), event.keeps_alive
            if size > self._most_bytes:
                raise ProtocolError(f"a response of more than {self._most_bytes} bytes")


def _streamed(connection: _Connection, data: bytes, silence: float) -> Iterator[Answer | bytes]:
    sock, reader = connection.socket, connection.reader
    reader.expect()
    sock.settimeout(silence)
    sock.sendall(data)
    answer = Answer(0, b"")
    for event in _parts(sock, reader):
        if isinstance(event, Head):
            answer = Answer(event.status, b"", dict(event.headers))
            if answer.status == HTTPStatus.OK:
                yield answer
        elif answer.status == HTTPStatus.OK:
            yield event.data
        elif len(answer.body) < READ_BYTES:
            answer = msgspec.structs.replace(answer, body=answer.body + event.data)
        else:
            break
    if answer.status not in (0, HTTPStatus.OK):
        yield answer


def _parts(sock: socket.socket, reader: ResponseReader) -> Iterator[Head | Data]:
    while piece := sock.recv(READ_BYTES):
        for event in reader.receive(piece):
            if not isinstance(event, Head | Data):
                return
            yield event
