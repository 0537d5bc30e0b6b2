"""Serving the signer inside a running event loop.

What lives here: binding, starting and stopping uvicorn, without its signal handlers and without an
access log. What does not: the application. uvicorn is imported when a server starts, so that other
commands stay quick.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from starlette.applications import Starlette

from soliton.errors import EnvironmentProblem

if TYPE_CHECKING:
    from uvicorn import Server

KEEP_ALIVE_SECONDS: Final = 15
MAX_CONNECTIONS: Final = 256
"""More are answered 503 at once."""
MAX_HEAD_BYTES: Final = 16 * 1024
STOP_SECONDS: Final = 1
"""Running requests may end within this time after ``stop``."""


class RunningSigner:
    """A signer that accepts connections; ``stop`` ends it."""

    __slots__ = ("_server", "_task", "host", "port")

    def __init__(self, host: str, port: int, server: Server, task: asyncio.Task[None]) -> None:
        self.host = host
        self.port = port
        self._server = server
        self._task = task

    async def stop(self) -> None:
        """Close the door, give running requests a moment, and close the connections to the node."""
        self._server.should_exit = True
        await asyncio.wait([self._task])


async def serve(app: Starlette, host: str, port: int) -> RunningSigner:
    """Start serving; port 0 takes a free one. The caller owns signals and the event loop."""
    listener = _listen(host, port)
    server, started = _make_server(app)
    task = asyncio.create_task(server.serve(sockets=[listener]))
    ready = asyncio.create_task(started.wait())
    await asyncio.wait([task, ready], return_when=asyncio.FIRST_COMPLETED)
    if task.done():
        ready.cancel()
        listener.close()
        raise EnvironmentProblem("the signer could not start")
    return RunningSigner(host, listener.getsockname()[1], server, task)


def _make_server(app: Starlette) -> tuple[Server, asyncio.Event]:
    from uvicorn import Config, Server

    started = asyncio.Event()

    class Guest(Server):
        """A server in somebody else's event loop: signals belong to the program."""

        @contextlib.contextmanager
        def capture_signals(self) -> Iterator[None]:
            yield

        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            started.set()

    config = Config(
        app=app,
        http="h11",  # the parser that limits the size of a request's head
        h11_max_incomplete_event_size=MAX_HEAD_BYTES,
        ws="none",
        loop="none",
        lifespan="on",
        log_config=None,
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        limit_concurrency=MAX_CONNECTIONS,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=STOP_SECONDS,
    )
    return Guest(config), started


def _listen(host: str, port: int) -> socket.socket:
    listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.setblocking(False)
    except (OSError, OverflowError) as error:
        listener.close()
        message = f"the signer cannot listen on {host} port {port}: {error}"
        raise EnvironmentProblem(message) from error
    return listener
