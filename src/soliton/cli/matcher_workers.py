"""``rest-api.workers`` of a matcher: processes in front of it that parse the clients' requests.

What lives here: the matcher's side of them, and their program. What does not: their life cycle
(``soliton.web.worker_service``), and their handlers (``soliton.matcher.rest.order_worker``).
"""

from __future__ import annotations

from functools import partial
from multiprocessing.connection import Connection

from soliton.cli.logs import configure_log, current_log
from soliton.cli.process import run_program
from soliton.matcher.rest.app import build_app
from soliton.matcher.rest.application import Application
from soliton.matcher.rest.http_gate import HttpGate
from soliton.matcher.rest.order_channel import ORDERS, OrderChannel, order_server
from soliton.matcher.rest.order_worker import OrderWorker
from soliton.matcher.run import CONNECTIONS, server_limits
from soliton.matcher.service import Matcher
from soliton.matcher.settings import RestApi
from soliton.node.log_settings import LogSettings
from soliton.web.handoff import SocketHandoff
from soliton.web.traffic import GAUGES, Traffic
from soliton.web.upstream import Upstream
from soliton.web.worker_processes import WorkerContext, prepare
from soliton.web.worker_service import WorkerService, serve_as_worker


async def listen(matcher: Matcher) -> tuple[Application, WorkerService]:
    """Start the workers of a matcher and listen; raises ``EnvironmentProblem``."""
    settings = matcher.settings
    api = settings.rest_api
    service = WorkerService(api.address, api.port, api.workers)
    interface = build_app(matcher, service.counters, behind=True)
    program = partial(run_worker, current_log(), api, settings.id, settings.network.chain_id)
    gate = order_server(interface.place)
    await service.start(
        interface.gate,
        gate,
        program,
        websockets=CONNECTIONS,
        gauges=GAUGES,
        proxies=api.proxies,
    )
    return interface, service


def run_worker(
    log: LogSettings,
    api: RestApi,
    server_name: str,
    chain_id: int,
    worker: WorkerContext,
    lifeline: Connection,
) -> None:
    """Serve until the matcher ends or stops it. The program of a worker process."""
    prepare()
    configure_log(log)
    run_program(lambda: _serve(api, server_name, chain_id, worker, lifeline))


async def _serve(
    api: RestApi, server_name: str, chain_id: int, worker: WorkerContext, lifeline: Connection
) -> None:
    traffic, handoff = Traffic(worker.counters()), SocketHandoff(worker.handoff_path)
    traffic.note_use()

    def make_app(upstream: Upstream, channel: OrderChannel) -> HttpGate:
        return OrderWorker(api, server_name, chain_id, upstream, channel, traffic, handoff).gate

    limits, counters = server_limits(api), traffic.counters
    await serve_as_worker(
        worker, lifeline, ORDERS, make_app, limits, counters, tick=traffic.note_use
    )
