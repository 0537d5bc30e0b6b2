"""Serving an application inside a running event loop.

What lives here: binding, starting and stopping. What does not: connections (``connection``), which
are imported when the first server starts, so that commands without one start fast; the application.
"""

from __future__ import annotations

import asyncio
import errno
import socket
import ssl
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

from soliton.errors import EnvironmentProblem
from soliton.web.accepting import listen
from soliton.web.answers import Service
from soliton.web.limits import STOP_SECONDS, ServerLimits
from soliton.web.request import Request
from soliton.web.shared_counters import SharedCounters

if TYPE_CHECKING:
    from soliton.web.connection import Shared

__all__ = [
    "PortTaken",
    "RunningServer",
    "RunningService",
    "ServerLimits",
    "bind",
    "serve",
    "serve_locally",
    "wait_until_free",
]

PORT_SECONDS: Final = 1.5
"""How long a port may still be in use at the start."""
PORT_PAUSE_SECONDS: Final = 0.05

R = TypeVar("R", bound=Request)


class PortTaken(EnvironmentProblem):
    """Another process listens on the port."""

    def __init__(self, host: str, port: int) -> None:
        super().__init__(f"cannot listen on {host} port {port}: Address already in use")
        self.host = host
        self.port = port


class RunningService(Protocol):
    """A service that listens on a port until it is stopped."""

    host: str
    port: int

    async def stop(self) -> None:
        """Stop listening, and end running requests."""


class RunningServer:
    """A running server; ``stop`` ends it."""

    __slots__ = ("_close", "_listener", "_shared", "host", "port")

    def __init__(
        self,
        where: tuple[str, int],
        listener: asyncio.Server,
        shared: Shared[R],
        close: Callable[[], None] | None,
    ) -> None:
        self.host, self.port = where
        self._listener = listener
        self._shared = shared
        self._close = close

    async def adopt(self, plug: socket.socket, data: bytes) -> None:
        """Serve a connection of another process, which has read ``data`` from it; raises
        ``OSError``.
        """
        from soliton.web.connection import HttpConnection

        shared = self._shared
        await asyncio.get_running_loop().connect_accepted_socket(
            lambda: HttpConnection(shared, data), plug
        )

    async def stop(self) -> None:
        """Stop listening, let running requests end, and return within a second."""
        self._listener.close()
        shared = self._shared
        for connection in list(shared.connections):
            connection.shutdown()
        try:
            async with asyncio.timeout(STOP_SECONDS):
                while shared.connections:
                    shared.all_left.clear()
                    await shared.all_left.wait()
                if shared.tasks:
                    await asyncio.wait(shared.tasks)
        except TimeoutError:
            for task in list(shared.tasks):
                task.cancel()
            if shared.tasks:
                await asyncio.wait(shared.tasks, timeout=1 - STOP_SECONDS)
        for connection in list(shared.connections):
            connection.abort()
        if self._close is not None:
            self._close()


async def serve(
    app: Service[R],
    host: str,
    port: int,
    limits: ServerLimits | None = None,
    *,
    shares_port: bool = False,
    counters: SharedCounters | None = None,
    close: Callable[[], None] | None = None,
    tls: ssl.SSLContext | None = None,
) -> RunningServer:
    """Start serving; port 0 chooses a free one. The caller owns signals and the event loop.

    ``shares_port`` lets other processes listen on the same port, and shared ``counters`` count a
    client's connections in all of them. ``close`` is called at the end. ``tls`` encrypts
    connections. Raises ``EnvironmentProblem`` when the address is in use.
    """
    listener = bind(host, port, shares_port=shares_port)
    return await _serve_on(listener, app, host, limits, counters, close, tls)


async def serve_locally(
    app: Service[R],
    path: str,
    limits: ServerLimits | None = None,
    *,
    close: Callable[[], None] | None = None,
) -> RunningServer:
    """Start serving on a unix socket at ``path``, for other processes on this machine."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        listener.bind(path)
    except OSError as error:
        listener.close()
        raise EnvironmentProblem(f"cannot listen on {path}: {error}") from error
    return await _serve_on(listener, app, path, limits, None, close)


async def _serve_on(
    listener: socket.socket,
    app: Service[R],
    host: str,
    limits: ServerLimits | None,
    counters: SharedCounters | None,
    close: Callable[[], None] | None,
    tls: ssl.SSLContext | None = None,
) -> RunningServer:
    from soliton.web.connection import HttpConnection, Shared

    port = 0
    shared = Shared(app, limits or ServerLimits(), counters or SharedCounters())
    try:
        if listener.family != socket.AF_UNIX:
            port = listener.getsockname()[1]
        server = await listen(listener, lambda: HttpConnection(shared), tls)
    except OSError as error:
        listener.close()
        raise EnvironmentProblem(f"cannot listen on {host}: {error}") from error
    return RunningServer((host, port), server, shared, close)


def bind(host: str, port: int, *, shares_port: bool = False) -> socket.socket:
    """Return a bound socket that does not listen yet; raises ``EnvironmentProblem``."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio disables Nagle's algorithm only for sockets with an explicit protocol.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if shares_port:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        listener.bind((host, port))
    except (OSError, OverflowError) as error:
        listener.close()
        if isinstance(error, OSError) and error.errno == errno.EADDRINUSE:
            raise PortTaken(host, port) from error
        raise EnvironmentProblem(f"cannot listen on {host} port {port}: {error}") from error
    return listener


def wait_until_free(host: str, port: int) -> None:
    """Refuse a port that is in use, also a shared one: requests would be split between both. Waits
    a moment for the workers of a killed service to end.
    """
    last = time.monotonic() + PORT_SECONDS
    while True:
        try:
            bind(host, port).close()
        except EnvironmentProblem:
            if time.monotonic() > last:
                raise
            time.sleep(PORT_PAUSE_SECONDS)
        else:
            return
