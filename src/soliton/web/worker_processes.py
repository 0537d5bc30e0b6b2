"""Worker processes that share the port of a service, each with its own event loop.

The service itself listens on a unix socket in a private directory; its workers share the public
port and forward to it the requests that they do not answer themselves. A worker that ends, for
whatever reason, is replaced. Workers end with the service, even if that is killed.

What lives here: starting, supervising and stopping the processes, and their context. What does not:
the applications (the programs).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import multiprocessing
import shutil
import signal
import socket
from collections.abc import Callable, Coroutine, Iterable
from functools import partial
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Final

import msgspec

from soliton.errors import EnvironmentProblem
from soliton.web.server import bind, wait_until_free
from soliton.web.shared_counters import SharedCounters, join, share
from soliton.web.temporary import TemporaryPlace

START_SECONDS: Final = 30.0
"""The timeout of a worker's start."""
STOP_SECONDS: Final = 2.0
"""The timeout of a worker's end; then it is killed."""
FIRST_PAUSE_SECONDS: Final = 0.1
LAST_PAUSE_SECONDS: Final = 10.0
"""The backoff before a worker is replaced: doubled each time, until one lives longer than this."""
_GONE_SECONDS: Final = 1.0
"""How long a dying service may take, since a process closes its descriptors one after the other."""

_READY: Final = "ready"
_log = logging.getLogger(__name__)


class WorkerContext(msgspec.Struct, frozen=True):
    """The directory of the sockets, the number of slots and the process's own (0 is the service's),
    and the public address.
    """

    directory: Path
    slots: int
    slot: int
    host: str
    port: int

    @property
    def socket_path(self) -> str:
        """The service's HTTP socket."""
        return str(self.directory / "service")

    @property
    def channel_path(self) -> str:
        """The socket of its ``ChannelServer``."""
        return str(self.directory / "channel")

    @property
    def handoff_path(self) -> str:
        """The socket of its ``SocketReceiver``."""
        return str(self.directory / "handoff")

    def counters(self) -> SharedCounters:
        """Open the shared counters."""
        return join(self._counters_path, self.slots, self.slot)

    def new_counters(self) -> SharedCounters:
        """Create the shared counters, called by the service before it starts workers."""
        return share(self._counters_path, self.slots)

    @property
    def _counters_path(self) -> Path:
        return self.directory / "counters"


Program = Callable[[WorkerContext, Connection], None]
"""The main function of a worker, with its context and its lifeline. It is pickled by name, so it
has to be a function of a module, or a ``partial`` of one.
"""


class Workers:
    """The worker processes; ``stop`` ends them."""

    def __init__(self, host: str, port: int, count: int) -> None:
        """Bind the port (0 for a free one); raises ``EnvironmentProblem``."""
        if port:
            wait_until_free(host, port)
        # Bound for the service's lifetime, to keep the port while workers are replaced.
        self._reserved: socket.socket = bind(host, port, shares_port=True)
        # Private, since whoever can write to its sockets is trusted.
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
        """Start all workers, and return when they serve. Raises ``EnvironmentProblem`` when one
        cannot start.

        ``ended`` is called after the end of each worker; then its ``gauges`` are reset in the
        shared counters.
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
        """Start a worker, and restart it whenever it has ended."""
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
        """Start a worker and wait for its end; return its exit code, or why it did not start."""
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
        """Return the ids of the running workers."""
        return [process.pid for process in self._running.values() if process.pid is not None]

    async def stop(self) -> None:
        """End all workers."""
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
        """Release the port and the directory, after all servers have stopped."""
        self._reserved.close()
        self._directory.close()


def _tell(started: asyncio.Future[None], *, is_ready: bool) -> None:
    """Notify ``start`` of the first worker of a slot."""
    if started.done():
        return
    if is_ready:
        started.set_result(None)
    else:
        started.set_exception(EnvironmentProblem("a worker could not start"))


def _say_fault(slot: int, started: asyncio.Future[None], task: asyncio.Task[None]) -> None:
    """Report an exception of a supervising task through ``start``, or in the log."""
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
    # Ctrl-C goes to all processes of a terminal. A process that has not called ``prepare`` yet
    # would print a traceback, so it inherits a blocked signal. The resource tracker is started
    # first, since that unblocks it.
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
        # A hanging process would keep its slot forever.
        process.kill()
        return False
    except (EOFError, OSError):
        return False


def readable(descriptor: int) -> Coroutine[None, None, None]:
    """Wait until a descriptor is readable, or its other end is closed."""
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
    """Run a worker; exceptions after its service was killed are ignored."""
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
    """Ignore Ctrl-C and the end of a terminal, which go to all of its processes: the service ends
    its workers.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)


def stop_event(lifeline: Connection) -> asyncio.Event:
    """Return an event that is set when a worker has to end, by SIGTERM or the service's end."""
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()

    def on_closed() -> None:
        # A closed pipe would be reported in every iteration of the loop.
        loop.remove_reader(lifeline.fileno())
        stopped.set()

    loop.add_signal_handler(signal.SIGTERM, stopped.set)
    loop.add_reader(lifeline.fileno(), on_closed)
    return stopped


def tell_ready(lifeline: Connection) -> None:
    """Report to the service that its worker serves."""
    lifeline.send(_READY)


def leave(worker: WorkerContext, lifeline: Connection) -> None:
    """Remove the directory of a service that was killed; called last by a worker."""
    if lifeline.poll():
        shutil.rmtree(worker.directory, ignore_errors=True)
