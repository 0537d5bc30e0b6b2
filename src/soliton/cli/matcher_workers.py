"""``rest-api.workers`` of a matcher: processes that stand before it and read what clients send.

What lives here: the matcher's side of them, and the program that they run. What does not: their
lives (``soliton.web.workers``), and what they do (``soliton.matcher.rest.front``).
"""

from __future__ import annotations

import asyncio
from functools import partial
from multiprocessing.connection import Connection

from soliton.cli.logs import in_force, use
from soliton.cli.run import run_program
from soliton.matcher.rest.app import build_app
from soliton.matcher.rest.application import Application
from soliton.matcher.rest.front import UNKNOWN, Front
from soliton.matcher.rest.handover import OrderGate, connect
from soliton.matcher.run import CONNECTIONS, SERVER_LIMITS
from soliton.matcher.service import Matcher
from soliton.matcher.settings import RestApi
from soliton.node.log_settings import LogSettings
from soliton.web.server import RunningServer, ServerLimits, serve, serve_locally
from soliton.web.tunnel import Tunnel
from soliton.web.upstream import CLIENT_HEADER, MAX_CONNECTIONS, MAX_IDLE_SECONDS, Upstream
from soliton.web.workers import Desk, Workers, leave, prepare, tell_ready, told_to_end

# --- the matcher's side ---------------------------------------------------------------------------


class MatcherWorkers:
    """The processes, and the matcher's own doors behind them; ``stop`` closes all."""

    def __init__(self, matcher: Matcher) -> None:
        where = matcher.settings.rest_api
        self._workers = Workers(where.address, where.port, where.workers)
        self._settings = matcher.settings
        self.interface = build_app(matcher, self._workers.tallies, behind=True)
        self._gate = OrderGate(self.interface.place)
        self._server: RunningServer | None = None
        self.host = self._workers.host
        self.port = self._workers.port

    async def start(self) -> None:
        """Serve; raises ``EnvironmentProblem`` when a worker cannot start."""
        api, desk = self._settings.rest_api, self._workers.desk
        limits = ServerLimits(
            connections=api.workers * (MAX_CONNECTIONS + CONNECTIONS),
            keep_alive_seconds=2 * MAX_IDLE_SECONDS,
        )
        await self._gate.open(_orders_path(desk))
        self._server = await serve_locally(
            self.interface.door, desk.socket_path, limits, websocket=True
        )
        chain_id = self._settings.network.chain_id
        program = partial(run_worker, in_force(), api, self._settings.id, chain_id)
        await self._workers.start(program)

    def process_ids(self) -> list[int]:
        """The workers that run."""
        return self._workers.process_ids()

    async def stop(self) -> None:
        """End all of them, then close the matcher's own doors."""
        await self._workers.stop()
        self._gate.close()
        if self._server is not None:
            await self._server.stop()
        self._workers.close()


async def listen(matcher: Matcher) -> tuple[Application, MatcherWorkers]:
    """Listen for a matcher with its workers; raises ``EnvironmentProblem``."""
    service = MatcherWorkers(matcher)
    try:
        await service.start()
    except BaseException:
        await service.stop()
        raise
    return service.interface, service


def _orders_path(desk: Desk) -> str:
    return str(desk.directory / "orders")


# --- the worker's side ----------------------------------------------------------------------------


def run_worker(
    log: LogSettings,
    api: RestApi,
    server_name: str,
    chain_id: int,
    desk: Desk,
    lifeline: Connection,
) -> None:
    """Serve until the matcher ends or asks for it. The program of a worker process."""
    prepare()
    use(log)
    run_program(lambda: _serve(api, server_name, chain_id, desk, lifeline))


async def _serve(
    api: RestApi, server_name: str, chain_id: int, desk: Desk, lifeline: Connection
) -> None:
    stopped = told_to_end(lifeline)
    upstream, tallies = Upstream(desk.socket_path), desk.tallies()
    handover = await connect(_orders_path(desk), UNKNOWN)
    front = Front(api, server_name, chain_id, upstream, handover, tallies)
    server = await serve(
        front.door,
        desk.host,
        desk.port,
        SERVER_LIMITS,
        websocket=Tunnel(desk.socket_path, CLIENT_HEADER),
        shares_port=True,
        tallies=tallies,
    )
    tell_ready(lifeline)
    ends = [asyncio.create_task(each.wait()) for each in (stopped, handover.lost)]
    await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
    for end in ends:
        end.cancel()
    await server.stop()
    handover.close()
    upstream.close()
    leave(desk, lifeline)
