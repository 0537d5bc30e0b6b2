"""Serving an application over HTTP/2 inside a running event loop.

What lives here: starting and stopping. What does not: connections (``connection``), processes.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable

from soliton.errors import EnvironmentProblem
from soliton.web.accepting import listen
from soliton.web.http2.connection import Http2Connection, Shared
from soliton.web.http2.limits import Http2Limits
from soliton.web.http2.machine import Handler
from soliton.web.shared_counters import SharedCounters


class Http2Server:
    """A running server; ``stop`` ends it."""

    def __init__(self, listener: socket.socket, server: asyncio.Server, shared: Shared) -> None:
        self.port: int = listener.getsockname()[1]
        self._server = server
        self.shared = shared

    async def stop(self, seconds: float) -> None:
        """Stop listening; running requests have so long to finish."""
        self._server.close()
        shared = self.shared
        for each in list(shared.connections):
            each.shut_down()
        try:
            async with asyncio.timeout(seconds):
                while shared.connections:
                    shared.all_left.clear()
                    await shared.all_left.wait()
        except TimeoutError:
            for each in list(shared.connections):
                each.abort()
            # Transports report their ends in the next turn of the loop.
            await asyncio.sleep(0)


async def serve(
    listener: socket.socket,
    make: Callable[[Http2Connection], Handler],
    limits: Http2Limits,
    counters: SharedCounters,
) -> Http2Server:
    """Listen on a bound socket, which is closed at the end; raises ``EnvironmentProblem``."""
    shared = Shared(make, limits, counters)
    try:
        server = await listen(listener, lambda: Http2Connection(shared))
    except OSError as error:
        listener.close()
        raise EnvironmentProblem(f"cannot listen: {error}") from error
    return Http2Server(listener, server, shared)
