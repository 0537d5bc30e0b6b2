"""Serving an ASGI application inside a running event loop.

What lives here: binding, starting and stopping uvicorn without its signal handlers, and the limits
on connections and request heads that it does not have itself. What does not: the application.
uvicorn is imported when the first server starts, so that commands without one stay quick.
"""

from __future__ import annotations

import asyncio
import errno
import socket
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from soliton.errors import EnvironmentProblem
from soliton.web.tallies import Tallies
from soliton.web.tunnel import Tunnel
from soliton.web.types import AsgiApplication

if TYPE_CHECKING:
    from uvicorn import Server

BACKLOG = 1024
MAX_HEADERS = 256
"""Of one request; browsers and proxies together send a tenth of that."""
RETRY_AFTER_SECONDS = 1
"""When those may come again who found too many connections."""
STOP_SECONDS = 0.7
"""Running requests may end within this time after ``stop``; then they are cut off."""


@dataclass(frozen=True, slots=True)
class ServerLimits:
    """What one server accepts of all its clients together."""

    connections: int = 1024
    """More are answered 503 at once."""
    connections_per_client: int | None = None
    """The same for those of one client (``clients.client_key``), of all processes that share their
    ``Tallies``.
    """
    counts_local_clients: bool = False
    """Whether that holds for clients on this machine, too."""
    head_bytes: int = 64 * 1024
    """Request line and headers; repeated ``id`` parameters make long lines."""
    head_seconds: float = 10.0
    """How long a connection may take to send one whole request head."""
    keep_alive_seconds: float = 60
    """How long an idle connection stays open, at least; at most twice as long."""
    write_seconds: float = 30.0
    """How long a client may read nothing of an answer that is too long to be sent in one go."""
    websocket_message_bytes: int = 64 * 1024
    """The longest message that a client may send over a WebSocket."""


class PortTaken(EnvironmentProblem):
    """Somebody else listens there."""

    def __init__(self, host: str, port: int) -> None:
        super().__init__(f"cannot listen on {host} port {port}: Address already in use")
        self.host = host
        self.port = port


class RunningService(Protocol):
    """Something that listens on a port until it is stopped."""

    host: str
    port: int

    async def stop(self) -> None:
        """Stop listening and end what is running."""


class RunningServer:
    """A server that accepts connections; ``stop`` ends it."""

    __slots__ = ("_server", "_task", "host", "port")

    def __init__(self, host: str, port: int, server: Server, task: asyncio.Task[None]) -> None:
        self.host = host
        self.port = port
        self._server = server
        self._task = task

    async def stop(self) -> None:
        """Close the door, let running requests end, and come back within a second."""
        self._server.should_exit = True
        _, running = await asyncio.wait([self._task], timeout=STOP_SECONDS)
        if running:
            self._server.force_exit = True
            for request in list(self._server.server_state.tasks):
                request.cancel()
            await asyncio.wait([self._task], timeout=1 - STOP_SECONDS)
        for connection in list(self._server.server_state.connections):
            transport = getattr(connection, "transport", None)
            if transport is not None:
                transport.abort()


async def serve(
    app: AsgiApplication,
    host: str,
    port: int,
    limits: ServerLimits | None = None,
    *,
    lifespan: bool = False,
    websocket: bool | Tunnel = False,
    shares_port: bool = False,
    tallies: Tallies | None = None,
) -> RunningServer:
    """Start serving; port 0 takes a free one. The caller owns signals and the event loop.

    ``lifespan`` tells the application about start and end, as ASGI describes; with ``websocket``
    it also gets WebSocket connections, unless these lead elsewhere; else such requests are answered
    as plain ones.
    ``shares_port`` lets other processes listen on the same port, and ``tallies`` count the
    connections of a client together with them. Raises ``EnvironmentProblem`` when
    the address is taken or the application does not start.
    """
    listener = bind(host, port, shares_port=shares_port)
    limits, tallies = limits or ServerLimits(), tallies or Tallies()
    return await _serve_on(
        listener, app, host, limits, tallies, lifespan=lifespan, websocket=websocket
    )


async def serve_locally(
    app: AsgiApplication,
    path: str,
    limits: ServerLimits | None = None,
    *,
    websocket: bool = False,
) -> RunningServer:
    """The same on a unix socket at ``path``, for other processes on this machine."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        listener.bind(path)
    except OSError as error:
        listener.close()
        raise EnvironmentProblem(f"cannot listen on {path}: {error}") from error
    limits = limits or ServerLimits()
    tallies = Tallies()
    return await _serve_on(
        listener, app, path, limits, tallies, lifespan=False, websocket=websocket
    )


async def _serve_on(
    listener: socket.socket,
    app: AsgiApplication,
    host: str,
    limits: ServerLimits,
    tallies: Tallies,
    *,
    lifespan: bool,
    websocket: bool | Tunnel,
) -> RunningServer:
    from soliton.web._uvicorn import make_server

    listener.setblocking(False)
    bound = 0
    try:
        listener.listen(BACKLOG)
        if listener.family != socket.AF_UNIX:
            bound = listener.getsockname()[1]
    except OSError as error:
        listener.close()
        raise EnvironmentProblem(f"cannot listen on {host}: {error}") from error
    server, started = make_server(app, limits, tallies, lifespan=lifespan, websocket=websocket)
    task = asyncio.create_task(server.serve(sockets=[listener]))
    ready = asyncio.create_task(started.wait())
    await asyncio.wait([task, ready], return_when=asyncio.FIRST_COMPLETED)
    if task.done():
        ready.cancel()
        listener.close()
        raise EnvironmentProblem(f"the server could not start: {task.exception()}")
    return RunningServer(host, bound, server, task)


def bind(host: str, port: int, *, shares_port: bool = False) -> socket.socket:
    """A socket that has the port and does not listen yet; raises ``EnvironmentProblem``."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio switches Nagle's delay off only for sockets that name their protocol.
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
