"""Working time on the event loop of answers that take several iterations of it.

What lives here: measuring coroutines and iterators. What does not: charging clients
(``fair_limits``), work of threads and processes (``thread_pool``, ``texts``).
"""

from __future__ import annotations

import time
import types
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Generator
from typing import Any, TypeVar

T = TypeVar("T")
Charge = Callable[[float], None]


@types.coroutine
def measured(coroutine: Coroutine[Any, Any, T], charge: Charge) -> Generator[Any, Any, T]:
    """Await a coroutine and charge the time of its steps, but not the time between them."""
    value: object = None
    fault: BaseException | None = None
    while True:
        started = time.perf_counter()
        try:
            waited = coroutine.send(value) if fault is None else coroutine.throw(fault)
        except StopIteration as ended:
            return ended.value  # type: ignore[no-any-return]
        finally:
            charge(time.perf_counter() - started)
            # Break the reference cycle of the exception and its frames.
            fault = None
        try:
            value = yield waited
        except BaseException as error:  # noqa: BLE001 - thrown into the coroutine
            fault = error


async def measured_items(items: AsyncIterator[T], charge: Charge) -> AsyncIterator[T]:
    """Iterate over ``items`` and charge the time that each takes."""
    try:
        while True:
            yield await measured(_next(items), charge)
    except StopAsyncIteration:
        return
    finally:
        if isinstance(items, AsyncGenerator):
            await items.aclose()


async def _next(items: AsyncIterator[T]) -> T:
    return await anext(items)
