"""Reading a remote base layer without blocking the event loop.

A read of a base layer may need a request to another node. On the event loop such a read raises
``ReadPending``; the response is awaited, and the work is restarted until all its reads have
completed (``retry_until_read``). The same holds for a thread whose result a task awaits
(``with_retry_context``). Other threads block, and work that cannot be restarted blocks briefly.

What lives here: interrupting, restarting, time limits. What does not: the requests (``Below``).
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Future
from contextvars import ContextVar
from functools import partial
from typing import Any, Final, TypeVar, cast

from soliton.storage.errors import BelowProblem

T = TypeVar("T")

RETRY_SECONDS: Final = 15.0
"""The total time to await responses in restartable work; clients of the node wait longer."""
BLOCKING_SECONDS: Final = 1.0
"""How long work that cannot be restarted may block the event loop."""


class ReadPending(BaseException):
    """A read needs a remote request first. It is a ``BaseException``, so that error handlers
    between the read and ``retry_until_read`` do not catch it.
    """

    def __init__(self, name: bytes, begin: Callable[[], Future[Any]], whom: str) -> None:
        super().__init__(f"{whom} has to be asked first")
        self.name = name
        self.begin = begin
        self.whom = whom


class RetryContext:
    """The responses that restartable work has received so far."""

    __slots__ = ("answers", "is_open", "seconds", "task")

    def __init__(self) -> None:
        self.answers: dict[bytes, Future[Any]] = {}
        self.seconds = RETRY_SECONDS
        self.is_open = False
        self.task: asyncio.Task[Any] | None = None

    def attempt(self, work: Callable[[], T]) -> T:
        """Run the work; it may raise ``ReadPending``."""
        with self._opened():
            return work()

    async def attempt_async(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """The same for a coroutine."""
        with self._opened():
            return await work()

    @contextlib.contextmanager
    def _opened(self) -> Iterator[None]:
        token = _current.set(self)
        self.is_open, self.task = True, asyncio.current_task()
        try:
            yield
        finally:
            self.is_open = False
            _current.reset(token)

    async def read(self, missing: ReadPending) -> None:
        """Await a response; its error, if any, is raised when the work reads it."""
        response = self.answers[missing.name] = missing.begin()
        waiting = asyncio.wrap_future(response)
        since = time.monotonic()
        try:
            done, _ = await asyncio.wait((waiting,), timeout=max(0.0, self.seconds))
        finally:
            waiting.cancel()
        self.seconds -= time.monotonic() - since
        if not done:
            raise BelowProblem(
                f"{missing.whom} has not answered all that was needed within {RETRY_SECONDS:g} "
                "s; what has come is kept: try again"
            )
        waiting.exception()


_current: ContextVar[RetryContext | None] = ContextVar("retry", default=None)
_current_of_thread: ContextVar[RetryContext | None] = ContextVar("with_retry_context", default=None)
"""The context of the task that awaits the result of this thread."""


def read_remote(
    name: bytes, read: Callable[[], T], begin: Callable[[Callable[[], T]], Future[T]], whom: str
) -> T:
    """Return the result of ``read``, which sends a request; ``begin`` runs it on another thread,
    and ``name`` identifies it.

    Raises errors of ``read``, ``BelowProblem``, and ``ReadPending`` in restartable work.
    """
    try:
        task = asyncio.current_task()
    except RuntimeError:
        context = _current_of_thread.get()
        if context is None:
            # No task waits for this thread, so it may block.
            return read()
    else:
        context = _current.get()
        if context is None or not context.is_open or context.task is not task:
            return _blocking(partial(begin, read), whom)
    response = context.answers.get(name)
    if response is None:
        raise ReadPending(name, partial(begin, read), whom)
    return cast("T", response.result())


def _blocking(begin: Callable[[], Future[T]], whom: str) -> T:
    try:
        return begin().result(BLOCKING_SECONDS)
    except TimeoutError:
        raise BelowProblem(
            f"{whom} has not answered within {BLOCKING_SECONDS:g} s; the answer is kept when it "
            "comes: try again"
        ) from None


async def retry_until_read(
    work: Callable[[], Coroutine[Any, Any, T]], context: RetryContext | None = None
) -> T:
    """Return the result of work that is restarted whenever it has to await a read. It must have no
    side effects before its last read. A ``context`` provides responses of an earlier attempt.

    Raises errors of the work, and ``BelowProblem`` on timeout.
    """
    context = RetryContext() if context is None else context
    while True:
        try:
            return await context.attempt_async(work)
        except ReadPending as missing:
            needed = missing
        await context.read(needed)


async def retry_nested(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """The same, but as a part of the surrounding work if that is restartable itself."""
    context = _current.get()
    if context is not None and context.is_open and context.task is asyncio.current_task():
        return await work()
    return await retry_until_read(work)


def with_retry_context(work: Callable[[], T]) -> Callable[[], T]:
    """Wrap work for another thread so that its reads raise ``ReadPending`` as they would here. The
    task that awaits it must re-raise that.
    """
    context = _current.get()

    def wrapped() -> T:
        token = _current_of_thread.set(context)
        try:
            return work()
        finally:
            _current_of_thread.reset(token)

    return work if context is None else wrapped


def disable_retry() -> None:
    """Do not restart the current work any more: what follows has side effects."""
    context = _current.get()
    if context is not None:
        context.is_open = False


@contextlib.contextmanager
def without_retry() -> Iterator[None]:
    """A context manager whose body is not restarted."""
    token = _current.set(None)
    try:
        yield
    finally:
        _current.reset(token)
