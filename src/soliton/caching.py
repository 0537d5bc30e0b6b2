"""Ring 0: a cache of function results, bounded by their total weight.

A bound on the number of entries is not enough where clients determine the size of each: a thousand
scripts may take a megabyte or ten gigabytes.

What lives here: the cache. What does not: what is cached and how its weight is computed.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class CachedFunction(Generic[P, T]):
    """A function with an LRU cache of its results.

    It is thread-safe, and takes positional arguments only. Exceptions are not cached, nor are
    values that exceed the limit alone.
    """

    def __init__(self, function: Callable[P, T], limit: int, weigh: Callable[P, int]) -> None:
        """``weigh`` computes the weight of an entry, its key included, from the arguments."""
        self.__doc__ = function.__doc__
        self.__wrapped__ = function
        self._limit = limit
        self._weigh = weigh
        self._lock = threading.Lock()
        self._values: OrderedDict[tuple[object, ...], tuple[T, int]] = OrderedDict()
        self.weight = 0

    def __len__(self) -> int:
        return len(self._values)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> T:
        """Return the cached result, or call the function."""
        with self._lock:
            known = self._values.get(args)
            if known is not None:
                self._values.move_to_end(args)
                return known[0]
        value = self.__wrapped__(*args, **kwargs)
        weight = self._weigh(*args, **kwargs)
        if weight <= self._limit:
            with self._lock:
                self._store(args, value, weight)
        return value

    def _store(self, key: tuple[object, ...], value: T, weight: int) -> None:
        replaced = self._values.pop(key, None)
        self.weight += weight - (0 if replaced is None else replaced[1])
        self._values[key] = value, weight
        while self.weight > self._limit:
            _, (_, evicted) = self._values.popitem(last=False)
            self.weight -= evicted

    def cache_clear(self) -> None:
        """Remove all entries."""
        with self._lock:
            self._values.clear()
            self.weight = 0


def cached_by_weight(
    limit: int, weigh: Callable[P, int]
) -> Callable[[Callable[P, T]], CachedFunction[P, T]]:
    """Decorate a function with a cache, as ``functools.lru_cache`` does, whose entries together
    weigh at most ``limit``.
    """
    return lambda function: CachedFunction(function, limit, weigh)
