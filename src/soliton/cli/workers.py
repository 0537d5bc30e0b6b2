"""``rest-api.workers``: further processes that serve the REST API from the node's store.

Each of them answers what the chain alone answers and hands the rest to the node
(``soliton.api.readers``).

What lives here: the node's side of them, and the program that they run. What does not: their lives
(``soliton.web.workers``) and the routes.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from dataclasses import replace
from functools import partial
from multiprocessing.connection import Connection
from typing import Final

import msgspec

from soliton.api.app import build_app
from soliton.api.context import ApiContext
from soliton.api.readers import MAX_LOT_BYTES, reader_routes, writer_routes
from soliton.api.traffic import LENT, Traffic
from soliton.cli.logs import in_force, use
from soliton.cli.run import api_context, run_program, server_limits
from soliton.node.node import Node
from soliton.node.settings import Settings, WalletSettings
from soliton.node.wallet import Wallet
from soliton.storage.errors import StoreBusy
from soliton.web.server import RunningServer, ServerLimits, serve, serve_locally
from soliton.web.upstream import CLIENT_HEADER, MAX_CONNECTIONS, MAX_IDLE_SECONDS, Upstream
from soliton.web.workers import Desk, Workers, leave, prepare, tell_ready, told_to_end

FOLLOW_SECONDS: Final = 1.0
"""How often a worker that nobody asks lets go of what it sees: the store cannot reuse it before."""


# --- the node's side ------------------------------------------------------------------------------


class NodeWorkers:
    """The processes, and the node's own door behind them; ``stop`` ends all."""

    def __init__(self, node: Node) -> None:
        settings = node.settings
        where = settings.rest_api
        self._workers = Workers(where.bind_address, where.port, where.workers)
        self._node = node
        self._settings = msgspec.structs.replace(
            settings, wallet=WalletSettings(None, None, None), logging=in_force()
        )
        self._server: RunningServer | None = None
        self.host = self._workers.host
        self.port = self._workers.port

    async def start(self, context: ApiContext) -> None:
        """Serve; raises ``EnvironmentProblem`` when a worker cannot start."""
        workers = self._workers
        limits = ServerLimits(
            connections=self._settings.rest_api.workers * MAX_CONNECTIONS,
            keep_alive_seconds=2 * MAX_IDLE_SECONDS,
        )
        # What workers send together may be longer than what a client sends them.
        body_bytes = max(context.limits.body_bytes, 2 * MAX_LOT_BYTES)
        own = replace(
            context,
            limits=msgspec.structs.replace(context.limits, body_bytes=body_bytes),
            client_header=CLIENT_HEADER,
            traffic=Traffic(workers.tallies, counts_calls=False),
        )
        app = build_app(own, writer_routes)
        self._server = await serve_locally(app, workers.desk.socket_path, limits)
        program = partial(run_worker, self._settings)
        await workers.start(program, LENT, self._node.store.forget_dead_readers)

    def process_ids(self) -> list[int]:
        """The workers that run."""
        return self._workers.process_ids()

    async def stop(self) -> None:
        """End all of them, then the node's own door."""
        await self._workers.stop()
        if self._server is not None:
            await self._server.stop()
        self._workers.close()


async def start_workers(node: Node, context: ApiContext) -> NodeWorkers:
    """Serve a node's REST API with workers; raises ``EnvironmentProblem``."""
    service = NodeWorkers(node)
    try:
        await service.start(context)
    except BaseException:
        await service.stop()
        raise
    return service


# --- the worker's side ----------------------------------------------------------------------------


def run_worker(settings: Settings, desk: Desk, lifeline: Connection) -> None:
    """Serve until the node ends or asks for it. The program of a worker process."""
    prepare()
    use(settings.logging)
    logging.getLogger("soliton.node.node").setLevel(logging.WARNING)
    node = Node(settings, Wallet.open(None, None), durable=False, writes=False)
    try:
        run_program(lambda: _serve(node, desk, lifeline))
    finally:
        node.close()


async def _serve(node: Node, desk: Desk, lifeline: Connection) -> None:
    stopped = told_to_end(lifeline)
    upstream = Upstream(desk.socket_path)
    traffic = Traffic(desk.tallies())
    traffic.note_use()
    context = replace(api_context(node), look=node.chain.follow, traffic=traffic)
    app = build_app(context, partial(reader_routes, upstream=upstream))
    limits = server_limits(node.settings.rest_api.limits)
    server = await serve(
        app, desk.host, desk.port, limits, shares_port=True, tallies=traffic.tallies
    )
    tell_ready(lifeline)
    while not stopped.is_set():
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(FOLLOW_SECONDS):
                await stopped.wait()
        with contextlib.suppress(StoreBusy):
            node.chain.follow()
        traffic.note_use()
    await server.stop()
    upstream.close()
    leave(desk, lifeline)
