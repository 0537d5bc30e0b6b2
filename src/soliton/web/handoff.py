"""Passing a client's socket to another process, with the bytes read from it.

A process sends the descriptor over a unix socket (``SCM_RIGHTS``) and closes its own. The client's
data no longer passes through it, and the connection survives it.

What lives here: both ends. What does not: choosing the connections (``connection``), and serving
them (the server there).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, Final

from soliton.errors import EnvironmentProblem
from soliton.web.types import WhenLost
from soliton.web.worker_processes import readable

if TYPE_CHECKING:
    from soliton.web.limits import ServerLimits

BACKLOG: Final = 1_024
MAX_BYTES: Final = 1024 * 1024
"""Limit of the bytes read from a connection: a request, and the rest of its packet."""
RECEIVE_SECONDS: Final = 5.0
"""The timeout of receiving a connection."""
_PIECE_BYTES: Final = 64 * 1024
_UNAVAILABLE: Final = (
    b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
)
_log = logging.getLogger(__name__)


class SocketHandoff:
    """Sends connections to the process that listens at ``path``."""

    def __init__(self, path: str) -> None:
        self._path = path

    def take(
        self,
        transport: asyncio.Transport,
        sent: bytes,
        _limits: ServerLimits,
        when_lost: WhenLost,
    ) -> LeavingConnection:
        """Send a connection with what its client has ``sent`` so far."""
        return LeavingConnection(transport, when_lost, self._path, sent)


class LeavingConnection(asyncio.Protocol):
    """A connection until it is sent; then ``when_lost`` is called."""

    def __init__(
        self, transport: asyncio.Transport, when_lost: WhenLost, path: str, sent: bytes
    ) -> None:
        transport.pause_reading()
        transport.set_protocol(self)
        self._transport = transport
        self._when_lost = when_lost
        self._flushed = asyncio.Event()
        self._flushed.set()
        self._leaving = asyncio.get_running_loop().create_task(self._leave(path, sent))

    async def _leave(self, path: str, sent: bytes) -> None:
        # Earlier answers must be flushed to the kernel first.
        self._transport.set_write_buffer_limits(high=0)
        await self._flushed.wait()
        try:
            await _send(path, self._transport.get_extra_info("socket").fileno(), sent)
        except OSError:
            self._transport.write(_UNAVAILABLE)
        self._transport.close()

    def pause_writing(self) -> None:
        """There is unsent data."""
        self._flushed.clear()

    def resume_writing(self) -> None:
        """All data is sent."""
        self._flushed.set()

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection has left or is lost."""
        del exc
        self._leaving.cancel()
        self._when_lost(self)

    def shutdown(self) -> None:
        """The server stops: leaving takes only a moment."""

    def abort(self) -> None:
        """Abort the connection."""
        self._transport.abort()


async def _send(path: str, descriptor: int, data: bytes) -> None:
    loop = asyncio.get_running_loop()
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as way:
        way.setblocking(False)
        await loop.sock_connect(way, path)
        count = socket.send_fds(way, [data[:_PIECE_BYTES]], [descriptor])
        await loop.sock_sendall(way, data[count:])


class SocketReceiver:
    """Receives the connections that other processes send."""

    def __init__(self, adopt: Callable[[socket.socket, bytes], Coroutine[Any, Any, None]]) -> None:
        """``adopt`` serves a received connection."""
        self._adopt = adopt
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._tasks: set[asyncio.Task[None]] = set()

    def open(self, path: str) -> None:
        """Start listening; raises ``EnvironmentProblem``."""
        try:
            self._listener.bind(path)
            self._listener.listen(BACKLOG)
        except OSError as error:
            self.close()
            raise EnvironmentProblem(f"cannot listen on {path}: {error}") from error
        self._listener.setblocking(False)
        self._start(self._accept())

    def close(self) -> None:
        """Stop listening."""
        for task in self._tasks:
            task.cancel()
        self._listener.close()

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _accept(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                way, _ = await loop.sock_accept(self._listener)
            except OSError as error:
                _log.warning("a connection of another process cannot be taken: %s", error)
                await asyncio.sleep(RECEIVE_SECONDS)
                continue
            self._start(self._receive(way))

    async def _receive(self, way: socket.socket) -> None:
        try:
            with way:
                async with asyncio.timeout(RECEIVE_SECONDS):
                    plug, data = await _received(way)
        except (OSError, TimeoutError) as error:
            _log.warning("a connection of another process did not arrive: %s", error)
            return
        plug.setblocking(False)
        # The client may be gone.
        with contextlib.suppress(OSError):
            await self._adopt(plug, data)


async def _received(way: socket.socket) -> tuple[socket.socket, bytes]:
    """Receive a client's socket, and the bytes read from it; raises ``OSError``."""
    loop = asyncio.get_running_loop()
    await readable(way.fileno())
    data, descriptors, _, _ = socket.recv_fds(way, _PIECE_BYTES, 1)
    if not descriptors:
        raise OSError("no descriptor came")
    plug = socket.socket(fileno=descriptors[0])
    try:
        while more := await loop.sock_recv(way, _PIECE_BYTES):
            data += more
            if len(data) > MAX_BYTES:
                raise OSError(f"more than {MAX_BYTES} bytes came")
    except BaseException:
        plug.close()
        raise
    return plug, data
