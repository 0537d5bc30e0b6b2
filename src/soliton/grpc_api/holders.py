"""Ending a call for good, which the library has no word for.

``grpc.aio`` answers a call in a task, and a task of its own that began the former holds the call
until its client has left. A status waits behind what the client does not read. Only when both tasks
have ended the call is reset, and the memory of its messages is free. The last call of a port is
held until the next one comes, the first one as long as the port is there.

What lives here: which task holds the call that another one answers. What does not: which calls end
(``clients``).
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, Final
from weakref import WeakKeyDictionary

_HOLDS: Final = "_schedule_rpc_coro"
"""What the library calls the work of the task that holds a call."""

_holders: Final[WeakKeyDictionary[asyncio.Task[Any], asyncio.Task[Any]]] = WeakKeyDictionary()


def remember(loop: asyncio.AbstractEventLoop) -> None:
    """Know the holders of calls that come to servers on a loop from now on."""
    loop.set_task_factory(_begin)  # type: ignore[arg-type]


def holder_of(task: asyncio.Task[Any]) -> asyncio.Task[Any] | None:
    """The task that holds the call which a task answers."""
    return _holders.get(task)


def _begin(
    loop: asyncio.AbstractEventLoop,
    work: Coroutine[Any, Any, Any],
    **named: Any,  # noqa: ANN401 - whatever a task takes
) -> asyncio.Task[Any]:
    made = asyncio.Task(work, loop=loop, **named)
    try:
        beginner = asyncio.current_task(loop)
    except RuntimeError:
        beginner = None
    if beginner is not None and getattr(beginner.get_coro(), "__name__", "") == _HOLDS:
        _holders[made] = beginner
    return made
