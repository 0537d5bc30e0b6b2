"""gRPC of a node: separate processes that read its store.

What lives here: the node's side of them, and their program. What does not: their life cycle
(``soliton.web.worker_processes``), and their services (``soliton.grpc_api``).
"""

from __future__ import annotations

import asyncio
import logging
import socket
from functools import partial
from multiprocessing.connection import Connection
from typing import Any, Final

import msgspec

from soliton.cli.logs import configure_log, current_log
from soliton.cli.process import run_program
from soliton.node.node import Node
from soliton.node.settings import Settings, WalletSettings
from soliton.storage.store import Store
from soliton.web.channel import Channel, connect
from soliton.web.server import bind, wait_until_free
from soliton.web.worker_processes import (
    WorkerContext,
    Workers,
    leave,
    prepare,
    stop_event,
    tell_ready,
)

TICK_SECONDS: Final = 1.0
STOP_SECONDS: Final = 1.0
"""Time limit of running calls when the node ends."""

_log = logging.getLogger(__name__)


class GrpcService:
    """The gRPC processes of one node; ``stop`` ends them."""

    def __init__(self, node: Node) -> None:
        """Reserve the ports; raises ``EnvironmentProblem``."""
        from soliton.grpc_api.node_side import NodeSide

        grpc = node.settings.grpc
        self._reserved: list[socket.socket] = []
        try:
            port = self._reserve(grpc.host, grpc.port)
            updates_port = self._reserve(grpc.updates_host, grpc.updates_port)
            matcher_port = self._reserve(grpc.matcher_host, grpc.matcher_port)
            self._workers = Workers("127.0.0.1", 0, grpc.workers)
        except BaseException:
            self._release()
            raise
        self.settings = msgspec.structs.replace(
            grpc, port=port, updates_port=updates_port, matcher_port=matcher_port
        )
        self._node = node
        self._side = NodeSide(node)
        self._channel = self._side.server()

    def _reserve(self, host: str, port: int | None) -> int | None:
        """Reserve a port for the service's lifetime, also while processes are replaced."""
        if port is None:
            return None
        if port:
            wait_until_free(host, port)
        reserved = bind(host, port, shares_port=True)
        self._reserved.append(reserved)
        number: int = reserved.getsockname()[1]
        return number

    async def start(self) -> None:
        """Serve; raises ``EnvironmentProblem`` and then closes everything."""
        node, grpc = self._node, self.settings
        settings = msgspec.structs.replace(
            node.settings,
            wallet=WalletSettings(None, None, None),
            logging=current_log(),
            grpc=grpc,
        )
        try:
            await self._channel.open(self._workers.context.channel_path)
            await self._workers.start(partial(run_grpc, settings))
        except BaseException:
            await self.stop()
            raise
        if grpc.port is not None:
            _log.info("gRPC on %s:%d", grpc.host, grpc.port)
        if grpc.updates_port is not None:
            _log.info("blockchain updates on %s:%d", grpc.updates_host, grpc.updates_port)
        if grpc.matcher_port is not None:
            _log.info("the matcher's extension on %s:%d", grpc.matcher_host, grpc.matcher_port)

    def process_ids(self) -> list[int]:
        """The ids of the serving processes."""
        return self._workers.process_ids()

    async def stop(self) -> None:
        """End the processes."""
        await self._workers.stop()
        self._channel.close()
        self._side.close()
        self._workers.close()
        self._release()

    def _release(self) -> None:
        for each in self._reserved:
            each.close()
        self._reserved.clear()


# --- the serving process --------------------------------------------------------------------------


def run_grpc(settings: Settings, worker: WorkerContext, lifeline: Connection) -> None:
    """Serve until the node ends or stops it. The program of a gRPC process."""
    prepare()
    configure_log(settings.logging)
    directory, name = settings.data_directory, settings.network.name
    store = Store(directory, name, durable=False, exclusive=False)
    try:
        run_program(lambda: _serve(settings, store, worker, lifeline))
    finally:
        store.close()


async def _serve(
    settings: Settings, store: Store, worker: WorkerContext, lifeline: Connection
) -> None:
    from soliton.grpc_api.link import SPEC
    from soliton.grpc_api.services import Services
    from soliton.grpc_api.views import Views

    stopped = stop_event(lifeline)
    channel: Channel[Any, Any] = await connect(SPEC, worker.channel_path)
    views = Views(settings.network, store)
    services = Services(settings, views, channel, worker.counters())
    await services.start()
    tell_ready(lifeline)
    ends = [asyncio.create_task(each.wait()) for each in (stopped, channel.lost)]
    while not any(end.done() for end in ends):
        await asyncio.wait(ends, timeout=TICK_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        # Without calls, release the read transaction, so that the store can reuse its pages.
        views.release_unused()
        services.abort_idle()
    for end in ends:
        end.cancel()
    await services.stop(STOP_SECONDS)
    channel.close()
    views.close()
    leave(worker, lifeline)
