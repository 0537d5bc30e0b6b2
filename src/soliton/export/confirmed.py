"""A chain without its last blocks, for receivers that wait for confirmations.

What lives here: that view of a chain. What does not: reading it (``sources``).
"""

from __future__ import annotations

from collections.abc import Iterator

from soliton.export.sources import ChainBlock, Source


class Confirmed:
    """Another source without its last ``count`` blocks."""

    def __init__(self, source: Source, count: int) -> None:
        self.network = source.network
        self.chain_id = source.chain_id
        self._source = source
        self._count = count

    def refresh(self) -> int:
        """See ``Source``."""
        return max(0, self._source.refresh() - self._count)

    def block_id(self, height: int) -> str | None:
        """See ``Source``."""
        return self._source.block_id(height)

    def blocks(self, first: int, last: int) -> Iterator[ChainBlock]:
        """See ``Source``."""
        return self._source.blocks(first, last)

    def address_of(self, alias: str) -> str:
        """See ``Source``."""
        return self._source.address_of(alias)

    def wait(self, seconds: float) -> None:
        """See ``Source``."""
        self._source.wait(seconds)

    def close(self) -> None:
        """See ``Source``."""
        self._source.close()
