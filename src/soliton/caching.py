"""Ring 0: a cache whose values together weigh no more than it may hold.

A cache that counts its entries holds as much as strangers put into each of them: a thousand scripts
may be a megabyte or ten gigabytes.

What lives here: the cache. What does not: what is kept and how heavy it is (whoever uses it says).
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class Kept(Generic[P, T]):
    """A function that remembers what it gave for the arguments that it was last asked for.

    Use it from any threads, with arguments by place. What it raises is not kept, nor is what alone
    is heavier than everything may be.
    """

    def __init__(self, function: Callable[P, T], most: int, weigh: Callable[P, int]) -> None:
        """``weigh`` tells from the arguments how heavy a value is, its key included."""
        self.__doc__ = function.__doc__
        self.__wrapped__ = function
        self._most = most
        self._weigh = weigh
        self._lock = threading.Lock()
        self._values: OrderedDict[tuple[object, ...], tuple[T, int]] = OrderedDict()
        self.weight = 0

    def __len__(self) -> int:
        return len(self._values)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> T:
        """What the function gives."""
        with self._lock:
            known = self._values.get(args)
            if known is not None:
                self._values.move_to_end(args)
                return known[0]
        value = self.__wrapped__(*args, **kwargs)
        weight = self._weigh(*args, **kwargs)
        if weight <= self._most:
            with self._lock:
                self._keep(args, value, weight)
        return value

    def _keep(self, key: tuple[object, ...], value: T, weight: int) -> None:
        before = self._values.pop(key, None)
        self.weight += weight - (0 if before is None else before[1])
        self._values[key] = value, weight
        while self.weight > self._most:
            _, (_, lighter) = self._values.popitem(last=False)
            self.weight -= lighter

    def cache_clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._values.clear()
            self.weight = 0


def kept(most: int, weigh: Callable[P, int]) -> Callable[[Callable[P, T]], Kept[P, T]]:
    """Makes a function remember, as ``functools.lru_cache`` does: all that it remembers together
    weighs at most ``most``.
    """
    return lambda function: Kept(function, most, weigh)
