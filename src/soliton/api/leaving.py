"""Work for a client ends when the client goes.

Who asks for something that takes long and goes away would else keep its places, and those that are
there for everybody, for as long as the answer may take.

What lives here: seeing that a client has gone, and ending what it has asked for. What does not:
streams, which look for themselves (``streaming``).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import Any, Final, TypeVar

from soliton.web.types import Receive

T = TypeVar("T")

LOOK_AFTER_SECONDS: Final = 0.05
"""Most work is done by then, and need not be watched."""


class ClientLeftError(Exception):
    """Nobody waits for the answer any more."""


class _Watcher:
    """Cancels a task when its client goes."""

    __slots__ = ("_looking", "_receive", "_task", "has_left")

    def __init__(self, receive: Receive, task: asyncio.Task[Any]) -> None:
        self._receive = receive
        self._task = task
        self._looking: asyncio.Task[None] | None = None
        self.has_left = False

    def begin(self) -> None:
        self._looking = asyncio.create_task(self._look())

    def end(self) -> None:
        if self._looking is not None:
            self._looking.cancel()

    async def _look(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self.has_left = True
        self._task.cancel()


async def for_client(work: Awaitable[T], receive: Receive) -> T:
    """What work comes to that is awaited for a client. When that goes, the work is cancelled, and
    ``ClientLeftError`` is raised.
    """
    task = asyncio.current_task()
    assert task is not None
    watcher = _Watcher(receive, task)
    timer = asyncio.get_running_loop().call_later(LOOK_AFTER_SECONDS, watcher.begin)
    try:
        return await work
    except asyncio.CancelledError:
        if watcher.has_left and task.uncancel() == 0:
            raise ClientLeftError from None
        raise
    finally:
        timer.cancel()
        watcher.end()
