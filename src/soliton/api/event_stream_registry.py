"""What the clients of one API's event streams share: how many there are, and what was told lately.

What lives here: counting, and keeping rendered events. What does not: the streams
(``event_stream``).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Final

MAX_STREAMS: Final = 256
"""Clients at the same time; each costs what the events that it wants cost."""
_KEPT: Final = 2_048
_MAX_KEPT_BYTES: Final = 8_192


class EventStreams:
    """The streams that are open, the number of those that were dropped, rendered events."""

    __slots__ = ("_told", "dropped", "open")

    def __init__(self) -> None:
        self.open = 0
        self.dropped = 0
        self._told: OrderedDict[Hashable, tuple[bytes, object]] = OrderedDict()

    def told(self, key: Hashable, make: Callable[[], bytes], about: object = None) -> bytes:
        """What was told under a key before, or is made now.

        ``about`` is kept as long as the text, for keys that are the identity of something.
        """
        known = self._told.get(key)
        if known is not None:
            return known[0]
        made = make()
        if len(made) <= _MAX_KEPT_BYTES:
            self._told[key] = made, about
            if len(self._told) > _KEPT:
                self._told.popitem(last=False)
        return made

    def forget(self) -> None:
        """After a rollback nothing is as it was told."""
        self._told.clear()
