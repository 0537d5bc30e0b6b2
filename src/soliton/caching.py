"""Ring 0: caches bounded by the total weight of their entries.

A bound on the number of entries is not enough where clients determine the size of each: a thousand
scripts may take a megabyte or ten gigabytes.

What lives here: a cache, and a decorator of functions. What does not: what is cached, and how its
weight is computed.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")


class WeightedCache(Generic[K, V]):
    """An LRU cache whose entries together weigh at most ``limit``. It is thread-safe."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._lock = threading.Lock()
        self._values: OrderedDict[K, tuple[V, int]] = OrderedDict()
        self.weight = 0

    def __len__(self) -> int:
        return len(self._values)

    def get(self, key: K) -> V | None:
        """Return a cached value, or ``None``."""
        with self._lock:
            known = self._values.get(key)
            if known is None:
                return None
            self._values.move_to_end(key)
            return known[0]

    def put(self, key: K, value: V, weight: int) -> None:
        """Cache a value, unless it exceeds the limit alone."""
        if weight > self._limit:
            return
        with self._lock:
            replaced = self._values.pop(key, None)
            self.weight += weight - (0 if replaced is None else replaced[1])
            self._values[key] = value, weight
            while self.weight > self._limit:
                _, (_, evicted) = self._values.popitem(last=False)
                self.weight -= evicted

    def clear(self) -> None:
        """Remove all entries."""
        with self._lock:
            self._values.clear()
            self.weight = 0


class CachedFunction(Generic[P, T]):
    """A function with an LRU cache of its results.

    It is thread-safe, and takes positional arguments only. Exceptions are not cached, nor are
    values that exceed the limit alone.
    """

    def __init__(self, function: Callable[P, T], limit: int, weigh: Callable[P, int]) -> None:
        """``weigh`` computes the weight of an entry, its key included, from the arguments."""
        self.__doc__ = function.__doc__
        self.__wrapped__ = function
        self._weigh = weigh
        self._cache: WeightedCache[tuple[object, ...], tuple[T]] = WeightedCache(limit)

    def __len__(self) -> int:
        return len(self._cache)

    @property
    def weight(self) -> int:
        """The weight of all entries."""
        return self._cache.weight

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> T:
        """Return the cached result, or call the function."""
        known = self._cache.get(args)
        if known is not None:
            return known[0]
        value = self.__wrapped__(*args, **kwargs)
        self._cache.put(args, (value,), self._weigh(*args, **kwargs))
        return value

    def cache_clear(self) -> None:
        """Remove all entries."""
        self._cache.clear()


def cached_by_weight(
    limit: int, weigh: Callable[P, int]
) -> Callable[[Callable[P, T]], CachedFunction[P, T]]:
    """Decorate a function with a cache, as ``functools.lru_cache`` does, whose entries together
    weigh at most ``limit``.
    """
    return lambda function: CachedFunction(function, limit, weigh)
