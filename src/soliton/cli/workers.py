"""``rest-api.workers``: processes that serve the REST API from the node's store.

Each of them answers the requests that depend on the chain alone, and forwards the others to the
node (``soliton.api.readers``).

What lives here: the node's side of them, and their program. What does not: their life cycle
(``soliton.web.worker_service``) and the routes.
"""

from __future__ import annotations

import contextlib
import logging
from functools import partial
from multiprocessing.connection import Connection

import msgspec

from soliton.api.app import build_app
from soliton.api.application import Application
from soliton.api.context import ApiContext
from soliton.api.readers import (
    TRANSACTIONS,
    TransactionChannel,
    reader_routes,
    transaction_server,
)
from soliton.cli.logs import configure_log, current_log
from soliton.cli.process import run_program
from soliton.cli.rest_api import api_context, server_limits
from soliton.node.node import Node
from soliton.node.settings import Settings, WalletSettings
from soliton.node.wallet import Wallet
from soliton.storage.errors import StoreBusy
from soliton.web.traffic import GAUGES, Traffic
from soliton.web.upstream import CLIENT_HEADER, Upstream
from soliton.web.worker_processes import WorkerContext, prepare
from soliton.web.worker_service import WorkerService, serve_as_worker


async def start_workers(node: Node, context: ApiContext) -> WorkerService:
    """Serve a node's REST API with workers; raises ``EnvironmentProblem``."""
    api = node.settings.rest_api
    service = WorkerService(api.bind_address, api.port, api.workers)
    settings = msgspec.structs.replace(
        node.settings, wallet=WalletSettings(None, None, None), logging=current_log()
    )
    traffic = Traffic(service.counters, counts_calls=False)
    app = build_app(msgspec.structs.replace(context, client_header=CLIENT_HEADER, traffic=traffic))
    program = partial(run_worker, settings, context.obeys)
    await service.start(app, transaction_server(node), program, gauges=GAUGES)
    return service


def run_worker(
    settings: Settings, obeys: bool, worker: WorkerContext, lifeline: Connection
) -> None:
    """Serve until the node ends or stops it; ``obeys`` is true on a devnet with controls. The
    program of a worker process.
    """
    prepare()
    configure_log(settings.logging)
    logging.getLogger("soliton.node.node").setLevel(logging.WARNING)
    node = Node(settings, Wallet.open(None, None), durable=False, writes=False)
    try:
        run_program(lambda: _serve(node, obeys, worker, lifeline))
    finally:
        node.close()


async def _serve(node: Node, obeys: bool, worker: WorkerContext, lifeline: Connection) -> None:
    traffic = Traffic(worker.counters())
    traffic.note_use()
    context = msgspec.structs.replace(
        api_context(node), obeys=obeys, refresh=node.chain.follow, traffic=traffic
    )

    def make_app(upstream: Upstream, channel: TransactionChannel) -> Application:
        return build_app(context, partial(reader_routes, upstream=upstream, channel=channel))

    def tick() -> None:
        # An idle worker releases its snapshot, so that the store can reuse the pages.
        with contextlib.suppress(StoreBusy):
            node.chain.follow()
        traffic.note_use()

    limits = server_limits(node.settings.rest_api)
    counters = traffic.counters
    await serve_as_worker(worker, lifeline, TRANSACTIONS, make_app, limits, counters, tick=tick)
