"""Work that takes long, in threads of its own, so that other requests do not wait for it.

What lives here: the threads, how many pieces of work may run and wait, and when one is given up.
What does not: the work (running scripts for somebody who asks), and what is done to texts, which
needs no chain (``texts``).

The event loop stays the only one that writes. Work gets a snapshot of the chain, which nothing
changes, and a ``Watch`` that it calls now and then; that raises once nobody waits for the answer
any more: at the deadline, when the client has gone, when the node stops. Work on a chain that is
read from afar gives its thread back while it waits for that, and begins again.
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
from soliton.storage.patience import NotReadYet, carried, patiently_within
from soliton.storage.reader import StoreReader

T = TypeVar("T")
G = TypeVar("G")

THREADS: Final = 2
"""Python runs one of them at a time; a second one lets light work pass by heavy work."""
PLACES: Final = 32
"""Pieces of work that run or wait; more are refused."""
SECONDS: Final = 10.0
"""How long one may wait and run."""
BUSY_SECONDS: Final = 1
"""After so long there may be a place."""
SLICE_SECONDS: Final = 0.002
"""How long a thread works before it lets the event loop pass."""
PAUSE_SECONDS: Final = 0.5
"""How long it waits for that at most: a loop that stands still gains nothing by it."""
STACK_BYTES: Final = 16 * 1024 * 1024
"""Some systems give threads very little."""
_BUSY: Final = "too many of these requests are being answered: ask again later"
_TOO_LONG: Final = "ask for less at once"


class Watch:
    """Tells work whether somebody still waits for it."""

    __slots__ = ("_loop", "_passed", "_pause_at", "_store", "stopped")

    def __init__(self, loop: asyncio.AbstractEventLoop, store: StoreReader | None = None) -> None:
        self._loop = loop
        self._store = store
        self._passed = threading.Event()
        self._pause_at = 0.0
        self.stopped = False

    def __call__(self) -> None:
        """Raise ``Interrupted`` when nobody does."""
        if self.stopped or (self._store is not None and self._store.revoked):
            raise Interrupted("nobody waits for the result any more")
        if time.perf_counter() >= self._pause_at:
            self._let_pass()

    def _let_pass(self) -> None:
        """Wait until the event loop has gone round once, at once when it has nothing to do.

        Python runs one thread at a time. A loop that shares it with two others takes three times
        as long for everything, and loses its turn with each packet that it reads or sends.
        """
        self._passed.clear()
        # When the loop has been closed, nobody waits for the result either.
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._passed.set)
            self._passed.wait(PAUSE_SECONDS)
        self._pause_at = time.perf_counter() + SLICE_SECONDS


class _Job(Generic[T]):
    """A piece of work, and what it holds until it has been done or nobody waits for it any more."""

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
        """Do it, and give back what it holds. Raises what the work raises."""
        run = self._take()
        if run is None:
            raise Interrupted("nobody waits for the result any more")
        try:
            return run()
        finally:
            self._free()

    def drop(self) -> None:
        """Nobody waits for it: unless somebody has begun, it gives back what it holds."""
        if self._take() is not None:
            self._free()


def _charged(run: Callable[[], T], charge: Callable[[float], None]) -> Callable[[], T]:
    def measured() -> T:
        # What others do meanwhile is theirs.
        started = time.thread_time()
        try:
            return run()
        finally:
            charge(time.thread_time() - started)

    return measured


class ThreadPool:
    """A few threads, which begin when they are needed."""

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
        """What work finds out about the chain as it is now; ``charge`` is told how long a thread
        has worked for it.

        Raises what the work raises, and ``ApiError`` 5031 when it takes too long or too many wait.
        What is below the store is read while the thread does something else: then the work, which
        changes nothing, begins again.
        """
        asked = partial(self._ask, node, work, charge)
        return await (asked() if node.store.below is None else patiently_within(asked))

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

        return await self._result(_Job(_charged(carried(run), charge), free), watch)

    async def run(self, work: Callable[[Watch], T]) -> T:
        """What work without a chain comes to; raises as ``ask`` does."""
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
        answer: asyncio.Future[T] = loop.create_future()
        try:
            self._start()
            self._waiting.put(partial(self._do, job, loop, answer))
            async with asyncio.timeout(self._seconds):
                return await answer
        except (TimeoutError, Interrupted) as error:
            raise SERVER_REQUEST_TIMEOUT.error().with_hint(_TOO_LONG) from error
        finally:
            watch.stopped = True
            job.drop()
            # It knows the exception, which knows this frame, and those of the work with all they
            # hold: nobody would free them until the collector comes by.
            del answer

    def _do(self, job: _Job[T], loop: asyncio.AbstractEventLoop, answer: asyncio.Future[T]) -> None:
        try:
            value = job.do()
        except NotReadYet as missing:
            # Nobody needs to know where it was broken off; those frames hold all that it read.
            self._tell(loop, answer, answer.set_exception, missing.with_traceback(None))
        except Exception as error:  # noqa: BLE001 - it is raised where somebody waits
            self._tell(loop, answer, answer.set_exception, error)
        else:
            self._tell(loop, answer, answer.set_result, value)
        finally:
            # As above.
            del answer

    def _tell(
        self,
        loop: asyncio.AbstractEventLoop,
        answer: asyncio.Future[T],
        tell: Callable[[G], None],
        given: G,
    ) -> None:
        def settle() -> None:
            if not answer.done():
                tell(given)

        # The loop may be gone by now.
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
            # The system has no thread for it. Where there is one already, that one does the work.
            if not self._started:
                raise SERVER_REQUEST_TIMEOUT.error().with_hint(_BUSY).after(BUSY_SECONDS) from error
            return
        finally:
            threading.stack_size(before)
        self._started += 1

    def _serve(self) -> None:
        while True:
            self._waiting.get()()
