"""Serving an ASGI application inside a running event loop.

What lives here: binding, starting and stopping uvicorn without its signal handlers, and the limits
on connections and request heads that it does not have itself. What does not: the application.
uvicorn is imported when the first server starts, so that commands without one stay quick.
"""

from __future__ import annotations

import asyncio
import socket
from dataclasses import dataclass
from typing import TYPE_CHECKING

from soliton.errors import EnvironmentProblem
from soliton.web.types import AsgiApplication

if TYPE_CHECKING:
    from uvicorn import Server

BACKLOG = 1024
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
    """The same for those of one client (``clients.client_key``)."""
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
    websocket: bool = False,
) -> RunningServer:
    """Start serving; port 0 takes a free one. The caller owns signals and the event loop.

    ``lifespan`` tells the application about start and end, as ASGI describes; with ``websocket``
    it also gets WebSocket connections, else such requests are answered as plain ones. Raises
    ``EnvironmentProblem`` when the address is taken or the application does not start.
    """
    from soliton.web._uvicorn import make_server

    listener = _listen(host, port)
    server, started = make_server(
        app, limits or ServerLimits(), lifespan=lifespan, websocket=websocket
    )
    task = asyncio.create_task(server.serve(sockets=[listener]))
    ready = asyncio.create_task(started.wait())
    await asyncio.wait([task, ready], return_when=asyncio.FIRST_COMPLETED)
    if task.done():
        ready.cancel()
        listener.close()
        raise EnvironmentProblem(f"the server could not start: {task.exception()}")
    bound: int = listener.getsockname()[1]
    return RunningServer(host, bound, server, task)


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio switches Nagle's delay off only for sockets that name their protocol.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(BACKLOG)
        listener.setblocking(False)
    except (OSError, OverflowError) as error:
        listener.close()
        raise EnvironmentProblem(f"cannot listen on {host} port {port}: {error}") from error
    return listener
