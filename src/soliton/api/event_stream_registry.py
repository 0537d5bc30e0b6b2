"""State shared by the event streams of one API: their number, and a cache of rendered events.

What lives here: the counters and the cache. What does not: the streams (``event_stream``).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Final

MAX_STREAMS: Final = 256
"""The limit on concurrent streams."""
_KEPT: Final = 2_048
_MAX_KEPT_BYTES: Final = 8_192


class EventStreams:
    """The number of open streams and of those dropped as too slow, and rendered events."""

    __slots__ = ("_rendered", "dropped", "open")

    def __init__(self) -> None:
        self.open = 0
        self.dropped = 0
        self._rendered: OrderedDict[Hashable, tuple[bytes, object]] = OrderedDict()

    def rendered(self, key: Hashable, make: Callable[[], bytes], about: object = None) -> bytes:
        """The cached bytes of ``key``, made if missing.

        ``about`` is kept alive with the entry, for keys that are the ``id`` of an object.
        """
        known = self._rendered.get(key)
        if known is not None:
            return known[0]
        made = make()
        if len(made) <= _MAX_KEPT_BYTES:
            self._rendered[key] = made, about
            if len(self._rendered) > _KEPT:
                self._rendered.popitem(last=False)
        return made

    def forget(self) -> None:
        """Clear the cache, which is invalid after a rollback."""
        self._rendered.clear()
