"""Who reads what a store stands on, on an event loop that must not stand still.

What is below may be far away. On the event loop whoever needs it is broken off (``NotReadYet``),
the answer is awaited, and the work begins again, until all that it needs is there (``patiently``).
So is work on a thread that others wait for (``carried``); any other thread may wait itself. Whoever
cannot begin again waits a moment in its place.

What lives here: breaking off, beginning again, how long. What does not: asking (``Below``).
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

PATIENCE_SECONDS: Final = 15.0
"""How long answers are awaited for one who begins again: less than a client of the node waits."""
PLACE_SECONDS: Final = 1.0
"""How long the event loop stands still for an answer that somebody needs who cannot."""


class NotReadYet(BaseException):
    """What is below has to be asked first. No error, but the way back to ``patiently``: whoever
    handles errors on the way does not see it.
    """

    def __init__(self, name: bytes, begin: Callable[[], Future[Any]], whom: str) -> None:
        super().__init__(f"{whom} has to be asked first")
        self.name = name
        self.begin = begin
        self.whom = whom


class Patience:
    """What was read for one who begins again."""

    __slots__ = ("answers", "is_open", "seconds", "task")

    def __init__(self) -> None:
        self.answers: dict[bytes, Future[Any]] = {}
        self.seconds = PATIENCE_SECONDS
        self.is_open = False
        self.task: asyncio.Task[Any] | None = None

    def attempt(self, work: Callable[[], T]) -> T:
        """Try it; raises ``NotReadYet`` as well."""
        with self._opened():
            return work()

    async def attempted(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """The same with a coroutine."""
        with self._opened():
            return await work()

    @contextlib.contextmanager
    def _opened(self) -> Iterator[None]:
        token = _patience.set(self)
        self.is_open, self.task = True, asyncio.current_task()
        try:
            yield
        finally:
            self.is_open = False
            _patience.reset(token)

    async def read(self, missing: NotReadYet) -> None:
        """Await an answer; what went wrong with it is raised where it is needed."""
        asked = self.answers[missing.name] = missing.begin()
        waiting = asyncio.wrap_future(asked)
        since = time.monotonic()
        try:
            done, _ = await asyncio.wait((waiting,), timeout=max(0.0, self.seconds))
        finally:
            waiting.cancel()
        self.seconds -= time.monotonic() - since
        if not done:
            raise BelowProblem(
                f"{missing.whom} has not answered all that was needed within {PATIENCE_SECONDS:g} "
                "s; what has come is kept: try again"
            )
        waiting.exception()


_patience: ContextVar[Patience | None] = ContextVar("patience", default=None)
_carried: ContextVar[Patience | None] = ContextVar("carried", default=None)
"""The same on a thread that works for one who begins again."""


def read_away(
    name: bytes, read: Callable[[], T], begin: Callable[[Callable[[], T]], Future[T]], whom: str
) -> T:
    """What a question to somebody comes to, which ``begin`` asks on another thread; ``name`` stands
    for it.

    Raises what ``read`` raises, ``BelowProblem``, and ``NotReadYet`` for one who begins again.
    """
    try:
        task = asyncio.current_task()
    except RuntimeError:
        patience = _carried.get()
        if patience is None:
            # Nobody else waits for this thread.
            return read()
    else:
        patience = _patience.get()
        if patience is None or not patience.is_open or patience.task is not task:
            return _in_place(partial(begin, read), whom)
    found = patience.answers.get(name)
    if found is None:
        raise NotReadYet(name, partial(begin, read), whom)
    return cast("T", found.result())


def _in_place(begin: Callable[[], Future[T]], whom: str) -> T:
    try:
        return begin().result(PLACE_SECONDS)
    except TimeoutError:
        raise BelowProblem(
            f"{whom} has not answered within {PLACE_SECONDS:g} s; the answer is kept when it "
            "comes: try again"
        ) from None


async def patiently(
    work: Callable[[], Coroutine[Any, Any, T]], patience: Patience | None = None
) -> T:
    """What work comes to, which begins again whenever it has to wait for what is below: until all
    is there that it needs it changes nothing. It goes on with a ``patience`` that has answers.

    Raises what it raises, and ``BelowProblem`` when its answers take too long.
    """
    patience = Patience() if patience is None else patience
    while True:
        try:
            return await patience.attempted(work)
        except NotReadYet as missing:
            needed = missing
        await patience.read(needed)


async def patiently_within(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """The same; within work that begins again anyway it does so as a part of that."""
    patience = _patience.get()
    if patience is not None and patience.is_open and patience.task is asyncio.current_task():
        return await work()
    return await patiently(work)


def carried(work: Callable[[], T]) -> Callable[[], T]:
    """Work for another thread that is broken off there as it would be here. Whoever awaits it has
    to raise its ``NotReadYet`` again.
    """
    patience = _patience.get()

    def carrying() -> T:
        token = _carried.set(patience)
        try:
            return work()
        finally:
            _carried.reset(token)

    return work if patience is None else carrying


def once_from_here() -> None:
    """What the work in hand does from here on is not begun again."""
    patience = _patience.get()
    if patience is not None:
        patience.is_open = False


@contextlib.contextmanager
def only_once() -> Iterator[None]:
    """What is done within is not begun again."""
    token = _patience.set(None)
    try:
        yield
    finally:
        _patience.reset(token)
