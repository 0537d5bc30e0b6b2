"""Plain code that runs in turns on the event loop, such as the check of a transaction whose scripts
take long.

A turn takes some two milliseconds. The first one runs at once, so that short work has no queue;
what is left then waits in a queue, of which each iteration of the event loop runs one turn.
Strangers' work has a limit. The node's own work has none and comes first: it may not fail because
of what others send.

What lives here: the queue. What does not: leaving code in the middle (``soliton.steps``).
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from typing import Final, Generic, TypeVar, cast

from soliton.node.pool import PoolFull
from soliton.steps import interruptible, run_steps

T = TypeVar("T")

TURN_SECONDS: Final = 0.002
MAX_WAITING: Final = 256
"""The limit of strangers' work in the queue. Beyond it work is ended, as its first turn was not
enough.
"""


class TooBusy(PoolFull):
    """So much other work is under way that this was given up."""


class Turn(Generic[T]):
    """Work in turns, and its result."""

    __slots__ = ("_error", "_result", "_steps", "_when_done", "is_done", "later_seconds")

    def __init__(self, work: Callable[[], T]) -> None:
        self._steps = interruptible(work)
        self._result: T | None = None
        self._error: BaseException | None = None
        self._when_done: list[Callable[[Turn[T]], None]] = []
        self.is_done = False
        self.later_seconds = 0.0
        """The time of all turns but the first."""

    def result(self) -> T:
        """Return the result of work that is done, or raise its error."""
        if self._error is not None:
            raise self._error
        return cast("T", self._result)

    def when_done(self, call: Callable[[Turn[T]], None]) -> None:
        """Call when the work is done, at once if it is."""
        if self.is_done:
            call(self)
        else:
            self._when_done.append(call)

    async def wait(self) -> None:
        """Wait until the work is done."""
        done = asyncio.Event()
        self.when_done(lambda _: done.set())
        await done.wait()

    def run(self, seconds: float | None) -> None:
        """Run for so long, at least one step, or to the end."""
        until = None if seconds is None else time.perf_counter() + seconds
        try:
            if until is None:
                self._result = run_steps(self._steps)
            else:
                next(self._steps)
                while time.perf_counter() < until:
                    next(self._steps)
                return
        except StopIteration as end:
            self._result = end.value
        except Exception as error:  # noqa: BLE001 - it is raised where the result is wanted
            self._error = error
        self._end()

    def end(self, error: Exception) -> None:
        """End the work with an error."""
        self._error = error
        self._steps.close()
        self._end()

    def _end(self) -> None:
        self.is_done = True
        waiting, self._when_done = self._when_done, []
        for call in waiting:
            call(self)


class Turns:
    """The queue of all work of a node."""

    def __init__(self, *, at_once: bool = False) -> None:
        """``at_once`` runs all work in one turn."""
        self._at_once = at_once
        self._waiting: deque[Turn[object]] = deque()
        self._is_planned = False

    def __len__(self) -> int:
        return len(self._waiting)

    def begin(self, work: Callable[[], T], *, is_own: bool = False) -> Turn[T]:
        """Run the first turn of work; the others follow if there is an event loop. The node's own
        work (``is_own``) comes before all other, and is never ended as ``TooBusy``; the caller
        begins one at a time.
        """
        turn = Turn(work)
        try:
            loop = None if self._at_once else asyncio.get_running_loop()
        except RuntimeError:
            loop = None
        turn.run(None if loop is None else TURN_SECONDS)
        if turn.is_done:
            return turn
        waiting = cast("Turn[object]", turn)
        if is_own:
            self._waiting.appendleft(waiting)
        elif len(self._waiting) < MAX_WAITING:
            self._waiting.append(waiting)
        else:
            turn.end(TooBusy("too many transactions with long scripts are being checked"))
            return turn
        self._plan()
        return turn

    def close(self) -> None:
        """End all work."""
        while self._waiting:
            self._waiting.popleft().end(TooBusy("the node stops"))

    def _plan(self) -> None:
        if self._waiting and not self._is_planned:
            self._is_planned = True
            asyncio.get_running_loop().call_soon(self._run)

    def _run(self) -> None:
        self._is_planned = False
        if self._waiting:
            turn, since = self._waiting[0], time.perf_counter()
            turn.run(TURN_SECONDS)
            turn.later_seconds += time.perf_counter() - since
            if turn.is_done and turn in self._waiting:
                # Others may have begun before it meanwhile, or all may have been ended.
                self._waiting.remove(turn)
        self._plan()
