"""Event loops that run only while a caller waits for a result, also inside of another loop.

What lives here: the loops. What does not: the coroutines (``local``, ``matching``).
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, Final, TypeVar

from soliton.errors import InvariantBroken

T = TypeVar("T")

PATIENCE_SECONDS: Final = 600.0
"""The timeout of ``QuietLoop.finish``, in the loop's own time."""


class Loop:
    """An event loop that runs only while ``run`` waits for a result, also inside of another."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine and return its result."""
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
        with _outside():
            return self._loop.run_until_complete(work)

    def close(self) -> None:
        """Cancel all tasks and close the loop."""
        loop = self._loop
        if loop is None:
            return
        pending = asyncio.all_tasks(loop)
        for task in pending:
            task.cancel()
        if pending:
            loop.run_until_complete(asyncio.wait(pending))
        loop.run_until_complete(loop.shutdown_default_executor())
        loop.close()


class QuietLoop(asyncio.SelectorEventLoop):
    """An event loop with virtual time and without threads. Time passes in ``pass_by``, and when
    ``finish`` waits for a timer.
    """

    def __init__(self) -> None:
        self._moment = 0.0
        self._until: float | None = None
        super().__init__(_Selector(self._idle))

    def time(self) -> float:
        """The virtual time in seconds."""
        return self._moment

    def pass_by(self, seconds: float) -> None:
        """Advance the time."""
        self._moment += max(0.0, seconds)

    def finish(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine and return its result; only virtual time passes."""
        self._until = self._moment + PATIENCE_SECONDS
        task = self.create_task(work)
        try:
            with _outside():
                return self.run_until_complete(task)
        except RuntimeError as error:
            if task.done():
                raise
            raise InvariantBroken("the coroutine waits for something that never happens") from error
        finally:
            self._until = None

    def settle(self) -> None:
        """Run everything that is ready before time advances."""
        with _outside():
            self.run_forever()

    def run_in_executor(  # type: ignore[override]  # its future is done already
        self,
        executor: Any,  # noqa: ANN401 - unused
        func: Callable[..., T],
        *args: Any,  # noqa: ANN401 - those of the function
    ) -> asyncio.Future[T]:
        """Call a function in this thread, which makes the order deterministic."""
        del executor
        done: asyncio.Future[T] = self.create_future()
        try:
            done.set_result(func(*args))
        except Exception as error:  # noqa: BLE001 - raised where it is awaited
            done.set_exception(error)
        return done

    def _idle(self, seconds: float | None) -> None:
        """Called when nothing is ready for ``seconds``, or for ever."""
        if self._until is None or seconds is None or self._moment + seconds > self._until:
            self.stop()
        else:
            self._moment += seconds


class _Selector(selectors.DefaultSelector):
    """A selector that never waits, and calls ``idle`` when nothing is ready."""

    def __init__(self, idle: Callable[[float | None], None]) -> None:
        super().__init__()
        self._idle = idle

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """The keys that are ready now."""
        found = super().select(0)
        if not found and (timeout is None or timeout > 0):
            self._idle(timeout)
        return found


@contextmanager
def _outside() -> Iterator[None]:
    # A test may be a coroutine itself: its loop is blocked meanwhile, as in any other call.
    outer = asyncio._get_running_loop()
    asyncio._set_running_loop(None)
    try:
        yield
    finally:
        asyncio._set_running_loop(outer)
