"""How long the event loop works for an answer that takes several turns of it.

What lives here: measuring coroutines and iterators. What does not: who pays (``fair_limits``), and
what threads and processes do (``thread_pool``, ``texts``).
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
    """What a coroutine returns; each of its steps is charged, and its waiting is not."""
    given: object = None
    fault: BaseException | None = None
    while True:
        started = time.perf_counter()
        try:
            waited = coroutine.send(given) if fault is None else coroutine.throw(fault)
        except StopIteration as ended:
            return ended.value  # type: ignore[no-any-return]
        finally:
            charge(time.perf_counter() - started)
            # It knows the frames that know it.
            fault = None
        try:
            given = yield waited
        except BaseException as error:  # noqa: BLE001 - the coroutine has to hear of it
            fault = error


async def measured_items(items: AsyncIterator[T], charge: Charge) -> AsyncIterator[T]:
    """The same items; making each is charged."""
    try:
        while True:
            # The iterators of our handlers are generators, whose steps are awaited once.
            yield await measured(_next(items), charge)
    except StopAsyncIteration:
        return
    finally:
        if isinstance(items, AsyncGenerator):
            await items.aclose()


async def _next(items: AsyncIterator[T]) -> T:
    return await anext(items)
