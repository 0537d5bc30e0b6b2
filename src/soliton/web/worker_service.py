"""A service behind worker processes: starting, connecting and stopping both.

Workers share the public port. Requests that they do not answer themselves are forwarded to the
service over a unix socket (``upstream``), prepared requests go through a channel (``channel``), and
WebSocket connections are passed to the service (``handoff``).

What lives here: the order of starting and stopping, on both sides. What does not: the processes
(``worker_processes``), and the applications (the programs).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from multiprocessing.connection import Connection
from typing import Any, Final

from soliton.proxies import NO_PROXIES, TrustedProxies
from soliton.web.answers import Service
from soliton.web.channel import Channel, ChannelServer, ChannelSpec, connect
from soliton.web.handoff import SocketReceiver
from soliton.web.server import RunningServer, ServerLimits, serve, serve_locally
from soliton.web.shared_counters import SharedCounters
from soliton.web.upstream import MAX_CONNECTIONS, MAX_IDLE_SECONDS, Upstream
from soliton.web.worker_processes import (
    Program,
    WorkerContext,
    Workers,
    leave,
    stop_event,
    tell_ready,
)

TICK_SECONDS: Final = 1.0


# --- the service's side ---------------------------------------------------------------------------


class WorkerService:
    """The workers, and the service's internal sockets; ``stop`` ends all."""

    def __init__(self, host: str, port: int, count: int) -> None:
        """Bind the port (0 for a free one); raises ``EnvironmentProblem``."""
        self._workers = Workers(host, port, count)
        self._count = count
        self._channel: ChannelServer[Any, Any] | None = None
        self._server: RunningServer | None = None
        self._receiver: SocketReceiver | None = None
        self.counters = self._workers.counters
        self.host = host
        self.port = self._workers.port

    async def start(
        self,
        app: Service[Any],
        channel: ChannelServer[Any, Any],
        program: Program,
        *,
        websockets: int = 0,
        gauges: Iterable[int] = (),
        ended: Callable[[], None] = lambda: None,
        proxies: TrustedProxies = NO_PROXIES,
    ) -> None:
        """Start serving: ``app`` gets forwarded requests, and WebSocket connections of workers, at
        most ``websockets`` of each worker, which may come from ``proxies``. Other arguments as for
        ``Workers.start``. Raises ``EnvironmentProblem``, with nothing left open.
        """
        limits = ServerLimits(
            connections=self._count * (MAX_CONNECTIONS + websockets),
            keep_alive_seconds=2 * MAX_IDLE_SECONDS,
            proxies=proxies,
        )
        self._channel = channel
        worker = self._workers.context
        try:
            await channel.open(worker.channel_path)
            self._server = await serve_locally(app, worker.socket_path, limits)
            if websockets:
                self._receiver = SocketReceiver(self._server.adopt)
                self._receiver.open(worker.handoff_path)
            await self._workers.start(program, gauges, ended)
        except BaseException:
            await self.stop()
            raise

    def process_ids(self) -> list[int]:
        """Return the ids of the running workers."""
        return self._workers.process_ids()

    async def stop(self) -> None:
        """End the workers, then close the service's sockets."""
        await self._workers.stop()
        if self._channel is not None:
            self._channel.close()
        if self._receiver is not None:
            self._receiver.close()
        if self._server is not None:
            await self._server.stop()
        self._workers.close()


# --- the worker's side ----------------------------------------------------------------------------


async def serve_as_worker(
    worker: WorkerContext,
    lifeline: Connection,
    spec: ChannelSpec[Any, Any],
    make_app: Callable[[Upstream, Channel[Any, Any]], Service[Any]],
    limits: ServerLimits,
    counters: SharedCounters,
    *,
    tick: Callable[[], None] = lambda: None,
) -> None:
    """Serve until the service ends, stops the worker, or closes the channel; ``tick`` is called
    every ``TICK_SECONDS`` meanwhile.
    """
    stopped = stop_event(lifeline)
    upstream = Upstream(worker.socket_path)
    channel = await connect(spec, worker.channel_path)
    server = await serve(
        make_app(upstream, channel),
        worker.host,
        worker.port,
        limits,
        shares_port=True,
        counters=counters,
    )
    tell_ready(lifeline)
    ends = [asyncio.create_task(each.wait()) for each in (stopped, channel.lost)]
    while not any(end.done() for end in ends):
        await asyncio.wait(ends, timeout=TICK_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        tick()
    for end in ends:
        end.cancel()
    await server.stop()
    channel.close()
    upstream.close()
    leave(worker, lifeline)
