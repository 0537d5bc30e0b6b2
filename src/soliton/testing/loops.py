"""Event loops that run as long as somebody waits for something, also inside of another loop.

What lives here: the loops. What does not: what runs in them (``local``, ``matching``).
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
"""So long of its own time a ``QuietLoop`` waits for what is asked of it."""


class Loop:
    """An event loop that runs as long as somebody waits for something, also inside of another."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """What comes of some work."""
        if self._loop is None:
            self._loop = asyncio.new_event_loop()
        with _outside():
            return self._loop.run_until_complete(work)

    def close(self) -> None:
        """End it, and what is still under way."""
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
    """One without a thread, and with a time of its own, which passes when it is told so, or when
    somebody waits for what needs time.
    """

    def __init__(self) -> None:
        self._moment = 0.0
        self._until: float | None = None
        super().__init__(_Selector(self._idle))

    def time(self) -> float:
        """The loop's own time, in seconds."""
        return self._moment

    def pass_by(self, seconds: float) -> None:
        """Let so much time pass."""
        self._moment += max(0.0, seconds)

    def finish(self, work: Coroutine[Any, Any, T]) -> T:
        """What comes of some work, which takes no time but the loop's own."""
        self._until = self._moment + PATIENCE_SECONDS
        task = self.create_task(work)
        try:
            with _outside():
                return self.run_until_complete(task)
        except RuntimeError as error:
            if task.done():
                raise
            raise InvariantBroken("it waits for what never comes") from error
        finally:
            self._until = None

    def settle(self) -> None:
        """Do all that can be done before more time passes."""
        with _outside():
            self.run_forever()

    def run_in_executor(  # type: ignore[override]  # its future is done already
        self,
        executor: Any,  # noqa: ANN401 - nobody needs it
        func: Callable[..., T],
        *args: Any,  # noqa: ANN401 - those of the function
    ) -> asyncio.Future[T]:
        """What a function gives, which is called here: the order of things is always the same."""
        del executor
        done: asyncio.Future[T] = self.create_future()
        try:
            done.set_result(func(*args))
        except Exception as error:  # noqa: BLE001 - whoever awaits it gets it
            done.set_exception(error)
        return done

    def _idle(self, seconds: float | None) -> None:
        """Nothing is left to do for so many seconds, or for ever."""
        if self._until is None or seconds is None or self._moment + seconds > self._until:
            self.stop()
        else:
            self._moment += seconds


class _Selector(selectors.DefaultSelector):
    """One that tells when there is nothing to do, and does not wait."""

    def __init__(self, idle: Callable[[float | None], None]) -> None:
        super().__init__()
        self._idle = idle

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """What is ready at this moment."""
        found = super().select(0)
        if not found and (timeout is None or timeout > 0):
            self._idle(timeout)
        return found


@contextmanager
def _outside() -> Iterator[None]:
    # A test may be a coroutine itself: its loop rests meanwhile, as in any other call.
    outer = asyncio._get_running_loop()
    asyncio._set_running_loop(None)
    try:
        yield
    finally:
        asyncio._set_running_loop(outer)
