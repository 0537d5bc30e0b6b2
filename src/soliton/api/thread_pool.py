"""A thread pool for long work, so that other requests are not delayed.

What lives here: the threads, the limits on running and queued jobs, timeouts and cancellation. What
does not: the jobs (running scripts), and processing of texts, which needs no chain (``texts``).

Only the event loop writes to the chain. A job gets an immutable snapshot of the chain and a
``Watch``, which it calls regularly. The watch raises once the job is cancelled: at the timeout,
when the client disconnects, when the node stops. A job on a forked chain releases its thread while
state is read from the other node, and starts again.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable
from functools import partial
from queue import SimpleQueue
from typing import Final, Generic, TypeVar

from soliton.api.errors import SERVER_REQUEST_TIMEOUT
from soliton.node.blockchain import Blockchain
from soliton.node.node import Node
from soliton.ride.errors import Interrupted
from soliton.storage.reader import StoreReader
from soliton.storage.retrying import ReadPending, retry_nested, with_retry_context

T = TypeVar("T")
G = TypeVar("G")

THREADS: Final = 2
"""Python runs one at a time; a second thread lets light jobs overtake heavy ones."""
PLACES: Final = 32
"""The limit on running and queued jobs; more are refused."""
SECONDS: Final = 10.0
"""The timeout of a job, including its time in the queue."""
BUSY_SECONDS: Final = 1
"""``Retry-After`` of a refused job."""
SLICE_SECONDS: Final = 0.002
"""How long a thread works before it yields to the event loop."""
PAUSE_SECONDS: Final = 0.5
"""How long a thread waits for the event loop at most, in case the loop is blocked."""
STACK_BYTES: Final = 16 * 1024 * 1024
"""The stack size, which is very small by default on some systems."""
_BUSY: Final = "too many of these requests are being answered: ask again later"
_TOO_LONG: Final = "ask for less at once"


class Watch:
    """Cancels a job: calling it raises ``Interrupted`` once the job is ``stopped``."""

    __slots__ = ("_loop", "_passed", "_pause_at", "_store", "stopped")

    def __init__(self, loop: asyncio.AbstractEventLoop, store: StoreReader | None = None) -> None:
        self._loop = loop
        self._store = store
        self._passed = threading.Event()
        self._pause_at = 0.0
        self.stopped = False

    def __call__(self) -> None:
        """Raise ``Interrupted`` if the job is cancelled; yield to the event loop if it is time."""
        if self.stopped or (self._store is not None and self._store.revoked):
            raise Interrupted("the job is cancelled")
        if time.perf_counter() >= self._pause_at:
            self._yield_to_loop()

    def _yield_to_loop(self) -> None:
        """Wait for one iteration of the event loop; an idle loop makes it immediately.

        Python runs one thread at a time. An event loop that competes with two threads takes three
        times as long, and loses its turn with each packet that it reads or sends.
        """
        self._passed.clear()
        # RuntimeError: the loop is closed, so nobody awaits the result.
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._passed.set)
            self._passed.wait(PAUSE_SECONDS)
        self._pause_at = time.perf_counter() + SLICE_SECONDS


class _Job(Generic[T]):
    """A job and the resources that it holds until it is done or dropped."""

    __slots__ = ("_free", "_lock", "_run")

    def __init__(self, run: Callable[[], T], free: Callable[[], None]) -> None:
        self._run: Callable[[], T] | None = run
        self._free = free
        self._lock = threading.Lock()

    def _take(self) -> Callable[[], T] | None:
        with self._lock:
            run, self._run = self._run, None
        return run

    def do(self) -> T:
        """Run the job and free its resources. Raises the job's errors."""
        run = self._take()
        if run is None:
            raise Interrupted("the job is cancelled")
        try:
            return run()
        finally:
            self._free()

    def drop(self) -> None:
        """Free the resources, unless the job has started."""
        if self._take() is not None:
            self._free()


def _charged(run: Callable[[], T], charge: Callable[[float], None]) -> Callable[[], T]:
    def measured() -> T:
        # Thread time, which excludes the work of other threads.
        started = time.thread_time()
        try:
            return run()
        finally:
            charge(time.thread_time() - started)

    return measured


class ThreadPool:
    """A few threads, started on demand."""

    def __init__(
        self, *, threads: int = THREADS, places: int = PLACES, seconds: float = SECONDS
    ) -> None:
        self._threads = threads
        self._started = 0
        self._places = threading.BoundedSemaphore(places)
        self._seconds = seconds
        self._waiting: SimpleQueue[Callable[[], None]] = SimpleQueue()

    async def ask(
        self, node: Node, work: Callable[[Blockchain, Watch], T], charge: Callable[[float], None]
    ) -> T:
        """Run a job on a snapshot of the chain. ``charge`` is called with the thread's seconds.

        Raises the job's errors, and ``ApiError`` 5031 at the timeout or when too many are queued.
        On a forked chain the job, which changes nothing, restarts after each read from the other
        node.
        """
        attempt = partial(self._ask, node, work, charge)
        return await (attempt() if node.store.below is None else retry_nested(attempt))

    async def _ask(
        self, node: Node, work: Callable[[Blockchain, Watch], T], charge: Callable[[float], None]
    ) -> T:
        self._take_place()
        try:
            store = node.store.snapshot()
        except BaseException:
            self._places.release()
            raise
        network = node.network
        watch = Watch(asyncio.get_running_loop(), store)

        def run() -> T:
            watch()
            return work(Blockchain(network, store), watch)

        def free() -> None:
            try:
                store.close()
            finally:
                self._places.release()

        return await self._result(_Job(_charged(with_retry_context(run), charge), free), watch)

    async def run(self, work: Callable[[Watch], T]) -> T:
        """Run a job without a chain; raises as ``ask`` does."""
        self._take_place()
        watch = Watch(asyncio.get_running_loop())

        def run() -> T:
            watch()
            return work(watch)

        return await self._result(_Job(run, self._places.release), watch)

    def _take_place(self) -> None:
        if not self._places.acquire(blocking=False):
            raise SERVER_REQUEST_TIMEOUT.error().with_hint(_BUSY).after(BUSY_SECONDS)

    async def _result(self, job: _Job[T], watch: Watch) -> T:
        loop = asyncio.get_running_loop()
        result: asyncio.Future[T] = loop.create_future()
        try:
            self._start()
            self._waiting.put(partial(self._do, job, loop, result))
            async with asyncio.timeout(self._seconds):
                return await result
        except (TimeoutError, Interrupted) as error:
            raise SERVER_REQUEST_TIMEOUT.error().with_hint(_TOO_LONG) from error
        finally:
            watch.stopped = True
            job.drop()
            # Break the reference cycle of the future, its exception and this frame: it would keep
            # the job's frames alive until the next garbage collection.
            del result

    def _do(self, job: _Job[T], loop: asyncio.AbstractEventLoop, result: asyncio.Future[T]) -> None:
        try:
            value = job.do()
        except ReadPending as missing:
            # Without the traceback, whose frames hold all that the job has read.
            self._settle(loop, result, result.set_exception, missing.with_traceback(None))
        except Exception as error:  # noqa: BLE001 - raised in the coroutine that awaits the result
            self._settle(loop, result, result.set_exception, error)
        else:
            self._settle(loop, result, result.set_result, value)
        finally:
            # As above.
            del result

    def _settle(
        self,
        loop: asyncio.AbstractEventLoop,
        result: asyncio.Future[T],
        setter: Callable[[G], None],
        value: G,
    ) -> None:
        def settle() -> None:
            if not result.done():
                setter(value)

        # RuntimeError: the loop is closed.
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(settle)

    def _start(self) -> None:
        if self._started >= self._threads:
            return
        before = threading.stack_size(STACK_BYTES)
        try:
            name = f"worker-{self._started}"
            threading.Thread(target=self._serve, name=name, daemon=True).start()
        except RuntimeError as error:
            # The system is out of threads. An existing one does the work.
            if not self._started:
                raise SERVER_REQUEST_TIMEOUT.error().with_hint(_BUSY).after(BUSY_SECONDS) from error
            return
        finally:
            threading.stack_size(before)
        self._started += 1

    def _serve(self) -> None:
        while True:
            self._waiting.get()()
