"""Sources that a private chain has compiled, for line numbers in the errors of their scripts.

What lives here: a cache bounded by bytes. What does not: compiling (``rest.scripts``), finding
lines (``rest.faults``).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping
from typing import Final

from soliton.ride.faults import SourceText

MAX_BYTES: Final = 16 * 1024**2
"""The limit on all sources and scripts together."""


class Sources(Mapping[bytes, SourceText]):
    """Sources by the bytes of their scripts; the oldest are evicted first."""

    def __init__(self, most: int = MAX_BYTES) -> None:
        self._most = most
        self._held = 0
        self._sources: OrderedDict[bytes, SourceText] = OrderedDict()

    def __getitem__(self, script: bytes) -> SourceText:
        return self._sources[script]

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._sources)

    def __len__(self) -> int:
        return len(self._sources)

    def remember(self, script: bytes, source: SourceText) -> None:
        """Keep the source of a script."""
        before = self._sources.pop(script, None)
        if before is not None:
            self._held -= _size(script, before)
        self._sources[script] = source
        self._held += _size(script, source)
        while self._held > self._most:
            oldest, evicted = self._sources.popitem(last=False)
            self._held -= _size(oldest, evicted)


def _size(script: bytes, source: SourceText) -> int:
    texts = (source.text, *source.libraries.values())
    return len(script) + sum(len(text.encode("utf-8", "replace")) for text in texts)
