"""``rest-api.workers``: further processes that serve the REST API from the node's store.

The node listens on a unix socket in a directory of its own, and its workers on the public port,
which they share. Each of them answers what the chain alone answers and hands the rest to the node
(``soliton.api.readers``). A worker that ends, whatever the reason, is replaced; workers end when
the node does, however that ends.

What lives here: starting, watching and stopping the processes, and the program that they run. What
does not: the routes.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import multiprocessing
import signal
import socket
import tempfile
from collections.abc import Coroutine
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Final

import msgspec

from soliton.api.app import build_app
from soliton.api.context import ApiContext
from soliton.api.readers import CLIENT_HEADER, MAX_LOT_BYTES, reader_routes, writer_routes
from soliton.api.traffic import LENT, Traffic
from soliton.cli.run import api_context, run_program, server_limits
from soliton.errors import EnvironmentProblem
from soliton.node.node import Node
from soliton.node.settings import Settings, WalletSettings
from soliton.node.wallet import Wallet
from soliton.web.server import RunningServer, ServerLimits, bind, serve, serve_locally
from soliton.web.tallies import join, share
from soliton.web.upstream import MAX_CONNECTIONS, MAX_IDLE_SECONDS, Upstream

START_SECONDS: Final = 30.0
"""How long a worker may take until it serves."""
STOP_SECONDS: Final = 2.0
"""How long one may take to end; then it is killed."""
FIRST_PAUSE_SECONDS: Final = 0.1
LAST_PAUSE_SECONDS: Final = 10.0
"""Before a worker is replaced: twice as long each time, until one lives longer than this."""
FOLLOW_SECONDS: Final = 1.0
"""How often a worker that nobody asks lets go of what it sees: the store cannot reuse it before."""

_READY: Final = "ready"
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Desk:
    """Where a process finds the others and which place it has among them; the node's is 0."""

    directory: Path
    lanes: int
    lane: int

    @property
    def socket_path(self) -> str:
        """Where the node listens."""
        return str(self.directory / "node")

    @property
    def tallies_path(self) -> Path:
        """Where all of them count."""
        return self.directory / "tallies"


# --- the node's side ------------------------------------------------------------------------------


class Workers:
    """The processes; ``stop`` ends them."""

    def __init__(self, node: Node) -> None:
        settings = node.settings
        self.host = settings.rest_api.bind_address
        # Bound as long as the node lives: a free port stays ours while workers are replaced.
        self._reserved: socket.socket = bind(self.host, settings.rest_api.port, shares_port=True)
        self.port: int = self._reserved.getsockname()[1]
        # Nobody else may enter it: who can write to the socket is believed.
        self._directory = tempfile.TemporaryDirectory(prefix="soliton-node-")
        self._node = node
        self._settings = msgspec.structs.replace(
            settings,
            rest_api=msgspec.structs.replace(settings.rest_api, port=self.port),
            wallet=WalletSettings(None, None, None),
        )
        self._count = settings.rest_api.workers
        self._tallies = share(self._desk(0).tallies_path, self._count + 1)
        self._running: dict[int, BaseProcess] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self._server: RunningServer | None = None

    def _desk(self, lane: int) -> Desk:
        return Desk(Path(self._directory.name), self._settings.rest_api.workers + 1, lane)

    async def start(self, context: ApiContext) -> None:
        """Serve; raises ``EnvironmentProblem`` when a worker cannot start."""
        limits = ServerLimits(
            connections=self._count * MAX_CONNECTIONS, keep_alive_seconds=2 * MAX_IDLE_SECONDS
        )
        # What workers send together may be longer than what a client sends them.
        body_bytes = max(context.limits.body_bytes, 2 * MAX_LOT_BYTES)
        own = replace(
            context,
            limits=msgspec.structs.replace(context.limits, body_bytes=body_bytes),
            client_header=CLIENT_HEADER,
            traffic=Traffic(self._tallies, counts_calls=False),
        )
        app = build_app(own, writer_routes)
        self._server = await serve_locally(app, self._desk(0).socket_path, limits)
        started = [asyncio.get_running_loop().create_future() for _ in range(self._count)]
        for number, each in enumerate(started):
            self._tasks.append(asyncio.create_task(self._keep(number, each)))
        await asyncio.gather(*started)

    async def _keep(self, number: int, started: asyncio.Future[None]) -> None:
        """Start a worker, and another one whenever it has ended."""
        pause, loop = FIRST_PAUSE_SECONDS, asyncio.get_running_loop()
        desk = self._desk(number + 1)
        while True:
            since = loop.time()
            process, lifeline = _spawn(self._settings, desk)
            self._running[number] = process
            try:
                is_ready = await _wait_until_ready(lifeline)
                if not started.done():
                    if is_ready:
                        started.set_result(None)
                    else:
                        started.set_exception(EnvironmentProblem("a worker could not start"))
                await _readable(process.sentinel)
            finally:
                lifeline.close()
            process.join()
            self._node.store.forget_dead_readers()
            self._tallies.strike(desk.lane, LENT)
            if loop.time() - since > LAST_PAUSE_SECONDS:
                pause = FIRST_PAUSE_SECONDS
            _log.warning("worker %d ended with %s: another begins", number, process.exitcode)
            await asyncio.sleep(pause)
            pause = min(2 * pause, LAST_PAUSE_SECONDS)

    def process_ids(self) -> list[int]:
        """The workers that run."""
        return [process.pid for process in self._running.values() if process.pid is not None]

    async def stop(self) -> None:
        """End all of them, then the node's own door."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for process in self._running.values():
            if process.is_alive():
                process.terminate()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(STOP_SECONDS):
                for process in self._running.values():
                    await _readable(process.sentinel)
        for process in self._running.values():
            process.kill()
            process.join()
        if self._server is not None:
            await self._server.stop()
        self._reserved.close()
        self._directory.cleanup()


async def start_workers(node: Node, context: ApiContext) -> Workers:
    """Serve a node's REST API with workers; raises ``EnvironmentProblem``."""
    service = Workers(node)
    try:
        await service.start(context)
    except BaseException:
        await service.stop()
        raise
    return service


def _spawn(settings: Settings, desk: Desk) -> tuple[BaseProcess, Connection]:
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    level = logging.getLogger().getEffectiveLevel()
    process = context.Process(target=run_worker, args=(settings, desk, theirs, level), daemon=True)
    process.start()
    theirs.close()
    return process, ours


async def _wait_until_ready(lifeline: Connection) -> bool:
    try:
        async with asyncio.timeout(START_SECONDS):
            await _readable(lifeline.fileno())
        return bool(lifeline.recv() == _READY)
    except (EOFError, OSError, TimeoutError):
        return False


def _readable(descriptor: int) -> Coroutine[None, None, None]:
    """Wait until there is something to read, or the other end has gone."""
    loop = asyncio.get_running_loop()
    found = loop.create_future()

    def seen() -> None:
        if not found.done():
            found.set_result(None)

    loop.add_reader(descriptor, seen)

    async def wait() -> None:
        try:
            await found
        finally:
            loop.remove_reader(descriptor)

    return wait()


# --- the worker's side ----------------------------------------------------------------------------


def run_worker(settings: Settings, desk: Desk, lifeline: Connection, level: int) -> None:
    """Serve until the node ends or asks for it. The program of a worker process."""
    # Ctrl-C reaches all processes of a terminal; the node decides when its workers end.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    logging.basicConfig(level=level, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    for library in ("uvicorn", "asyncio", "soliton.node.node"):
        logging.getLogger(library).setLevel(logging.WARNING)
    node = Node(settings, Wallet.open(None, None), durable=False, writes=False)
    try:
        run_program(lambda: _serve(node, desk, lifeline))
    finally:
        node.close()


async def _serve(node: Node, desk: Desk, lifeline: Connection) -> None:
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, stopped.set)
    loop.add_reader(lifeline.fileno(), stopped.set)
    upstream = Upstream(desk.socket_path)
    traffic = Traffic(join(desk.tallies_path, desk.lanes, desk.lane))
    traffic.note_use()
    context = replace(api_context(node), look=node.chain.follow, traffic=traffic)
    app = build_app(context, partial(reader_routes, upstream=upstream))
    where = node.settings.rest_api
    limits = server_limits(where.limits)
    server = await serve(
        app, where.bind_address, where.port, limits, shares_port=True, tallies=traffic.tallies
    )
    lifeline.send(_READY)
    while not stopped.is_set():
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(FOLLOW_SECONDS):
                await stopped.wait()
        node.chain.follow()
        traffic.note_use()
    await server.stop()
    upstream.close()
