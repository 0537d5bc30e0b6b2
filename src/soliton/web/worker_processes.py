"""Further processes that serve the port of a service, each with an event loop of its own.

The service itself listens on a unix socket in a directory that nobody else may enter; its workers
share the public port and pass on to it what they do not answer themselves. A worker that ends,
whatever the reason, is replaced; workers end when the service does, however that ends.

What lives here: starting, watching and stopping the processes, and what each of them is told. What
does not: what they serve (the programs say that).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import multiprocessing
import shutil
import signal
import socket
import time
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass
from functools import partial
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Final

from soliton.errors import EnvironmentProblem
from soliton.web.server import bind
from soliton.web.shared_counters import SharedCounters, join, share
from soliton.web.temporary import TemporaryPlace

START_SECONDS: Final = 30.0
"""How long a worker may take until it serves."""
STOP_SECONDS: Final = 2.0
"""How long one may take to end; then it is killed."""
PORT_SECONDS: Final = 1.5
"""How long a port may still be taken at the start."""
PORT_PAUSE_SECONDS: Final = 0.05
FIRST_PAUSE_SECONDS: Final = 0.1
LAST_PAUSE_SECONDS: Final = 10.0
_GONE_SECONDS: Final = 1.0
"""A process that ends closes one thing after the other."""
"""Before a worker is replaced: twice as long each time, until one lives longer than this."""

_READY: Final = "ready"
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class WorkerContext:
    """Where a process finds the others, which place it has among them, the service's being 0, and
    where workers serve.
    """

    directory: Path
    slots: int
    slot: int
    host: str
    port: int

    @property
    def socket_path(self) -> str:
        """Where the service listens."""
        return str(self.directory / "service")

    @property
    def channel_path(self) -> str:
        """Where its ``ChannelServer`` does."""
        return str(self.directory / "channel")

    @property
    def handoff_path(self) -> str:
        """Where its ``SocketReceiver`` does."""
        return str(self.directory / "handoff")

    def counters(self) -> SharedCounters:
        """Where all of them count."""
        return join(self._counters_path, self.slots, self.slot)

    def new_counters(self) -> SharedCounters:
        """The same, to be called by the service before there are others."""
        return share(self._counters_path, self.slots)

    @property
    def _counters_path(self) -> Path:
        return self.directory / "counters"


Program = Callable[[WorkerContext, Connection], None]
"""What a worker runs, with its worker and its lifeline. It is named to another process, so it is a
function of a module, or ``partial`` of one.
"""


class Workers:
    """The processes; ``stop`` ends them."""

    def __init__(self, host: str, port: int, count: int) -> None:
        """Takes the port (0 for a free one); raises ``EnvironmentProblem``."""
        if port:
            wait_until_free(host, port)
        # Bound as long as the service lives: a free port stays ours while workers are replaced.
        self._reserved: socket.socket = bind(host, port, shares_port=True)
        # Nobody else may enter it: who can write to the socket is believed.
        self._directory = TemporaryPlace("soliton-workers-")
        self._count = count
        self.host = host
        self.port: int = self._reserved.getsockname()[1]
        self.context = self._context(0)
        self.counters = self.context.new_counters()
        self._running: dict[int, BaseProcess] = {}
        self._tasks: list[asyncio.Task[None]] = []

    def _context(self, slot: int) -> WorkerContext:
        directory = self._directory.path
        return WorkerContext(directory, self._count + 1, slot, self.host, self.port)

    async def start(
        self,
        program: Program,
        gauges: Iterable[int] = (),
        ended: Callable[[], None] = lambda: None,
    ) -> None:
        """Start all; returns when they serve. Raises ``EnvironmentProblem`` when one cannot start.

        ``ended`` is called after the end of each worker; then the numbers that it had only for as
        long as it lived (``gauges``) are struck out of the counters.
        """
        numbers = tuple(gauges)
        started = [asyncio.get_running_loop().create_future() for _ in range(self._count)]
        for slot, each in enumerate(started, 1):
            keeping = self._keep(self._context(slot), program, each, numbers, ended)
            task = asyncio.create_task(keeping)
            task.add_done_callback(partial(_say_fault, slot, each))
            self._tasks.append(task)
        await asyncio.gather(*started)

    async def _keep(
        self,
        worker: WorkerContext,
        program: Program,
        started: asyncio.Future[None],
        gauges: tuple[int, ...],
        ended: Callable[[], None],
    ) -> None:
        """Start a worker, and another one whenever it has ended."""
        pause, loop = FIRST_PAUSE_SECONDS, asyncio.get_running_loop()
        while True:
            since = loop.time()
            end = await self._live(worker, program, started)
            ended()
            self.counters.reset_slot(worker.slot, gauges)
            if loop.time() - since > LAST_PAUSE_SECONDS:
                pause = FIRST_PAUSE_SECONDS
            _log.warning("worker %d ended with %s: another begins", worker.slot, end)
            await asyncio.sleep(pause)
            pause = min(2 * pause, LAST_PAUSE_SECONDS)

    async def _live(
        self, worker: WorkerContext, program: Program, started: asyncio.Future[None]
    ) -> int | OSError | None:
        """Start a worker and wait for its end; what it ended with, or why there was none."""
        try:
            process, lifeline = _spawn(program, worker)
        except OSError as error:
            _tell(started, is_ready=False)
            return error
        self._running[worker.slot] = process
        try:
            _tell(started, is_ready=await _wait_until_ready(process, lifeline))
            await readable(process.sentinel)
        finally:
            lifeline.close()
        process.join()
        del self._running[worker.slot]
        return process.exitcode

    def process_ids(self) -> list[int]:
        """The workers that run."""
        return [process.pid for process in self._running.values() if process.pid is not None]

    async def stop(self) -> None:
        """End all of them."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for process in self._running.values():
            if process.is_alive():
                process.terminate()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(STOP_SECONDS):
                for process in self._running.values():
                    await readable(process.sentinel)
        for process in self._running.values():
            process.kill()
            process.join()
        self._running.clear()

    def close(self) -> None:
        """Let go of the port and the directory; for the end, when nobody listens there any more."""
        self._reserved.close()
        self._directory.close()


def wait_until_free(host: str, port: int) -> None:
    """Refuse a port that others have, those that share theirs as well: requests would come to one
    or the other. The workers of a service that was killed have theirs for a moment longer.
    """
    last = time.monotonic() + PORT_SECONDS
    while True:
        try:
            bind(host, port).close()
        except EnvironmentProblem:
            if time.monotonic() > last:
                raise
            time.sleep(PORT_PAUSE_SECONDS)
        else:
            return


def _tell(started: asyncio.Future[None], *, is_ready: bool) -> None:
    """Let ``start`` know of the first worker of a slot."""
    if started.done():
        return
    if is_ready:
        started.set_result(None)
    else:
        started.set_exception(EnvironmentProblem("a worker could not start"))


def _say_fault(slot: int, started: asyncio.Future[None], task: asyncio.Task[None]) -> None:
    """Nobody waits for what keeps a worker: ``start`` raises its fault, or the log has it."""
    fault = None if task.cancelled() else task.exception()
    if fault is None:
        return
    if not started.done():
        started.set_exception(fault)
    else:
        _log.error("worker %d is not replaced any more", slot, exc_info=fault)


def _spawn(program: Program, worker: WorkerContext) -> tuple[BaseProcess, Connection]:
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_run, args=(program, worker, theirs), daemon=True)
    # Ctrl-C reaches all processes of a terminal. One that has not come to ``prepare`` yet would end
    # with a traceback: it inherits that it does not hear of it.
    # The tracker is started first: that lets the signal through again.
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        process.start()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    theirs.close()
    return process, ours


async def _wait_until_ready(process: BaseProcess, lifeline: Connection) -> bool:
    try:
        async with asyncio.timeout(START_SECONDS):
            await readable(lifeline.fileno())
        return bool(lifeline.recv() == _READY)
    except TimeoutError:
        # One that hangs would keep its place for ever.
        process.kill()
        return False
    except (EOFError, OSError):
        return False


def readable(descriptor: int) -> Coroutine[None, None, None]:
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


def _run(program: Program, worker: WorkerContext, lifeline: Connection) -> None:
    """A worker's whole life. Where its service was killed meanwhile, nothing is worth a message."""
    try:
        program(worker, lifeline)
    except Exception:
        service = multiprocessing.parent_process()
        if service is None:
            raise
        service.join(_GONE_SECONDS)
        if service.is_alive():
            raise
        leave(worker, lifeline)


def prepare() -> None:
    """What a worker does first."""
    # Ctrl-C reaches all processes of a terminal; the service decides when its workers end.
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def told_to_end(lifeline: Connection) -> asyncio.Event:
    """Set when a worker has to end: the service says so, or has gone."""
    told = asyncio.Event()
    loop = asyncio.get_running_loop()

    def tell() -> None:
        # Once: what has gone would be heard of in every round of the loop.
        loop.remove_reader(lifeline.fileno())
        told.set()

    loop.add_signal_handler(signal.SIGTERM, told.set)
    loop.add_reader(lifeline.fileno(), tell)
    return told


def tell_ready(lifeline: Connection) -> None:
    """Let the service know that its worker serves."""
    lifeline.send(_READY)


def leave(worker: WorkerContext, lifeline: Connection) -> None:
    """What a worker does last: a service that went without a word has left its directory behind."""
    if lifeline.poll():
        shutil.rmtree(worker.directory, ignore_errors=True)
