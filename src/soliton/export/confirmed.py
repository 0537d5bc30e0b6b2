"""A chain without its last blocks, for receivers that wait for confirmations or for finality.

What lives here: these views of a chain. What does not: reading it (``sources``).
"""

from __future__ import annotations

from collections.abc import Iterator

from soliton.export.sources import ChainBlock, Source


class _Below:
    """Another source without its last blocks."""

    only_final = False

    def __init__(self, source: Source) -> None:
        self.network = source.network
        self.chain_id = source.chain_id
        self._source = source

    def finalized_height(self) -> int:
        """See ``Source``."""
        return self._source.finalized_height()

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


class Confirmed(_Below):
    """Another source without its last ``count`` blocks."""

    def __init__(self, source: Source, count: int) -> None:
        super().__init__(source)
        self._count = count

    def refresh(self) -> int:
        """See ``Source``."""
        return max(0, self._source.refresh() - self._count)


class Finalized(_Below):
    """The final blocks of another source."""

    only_final = True

    def refresh(self) -> int:
        """See ``Source``."""
        return min(self._source.refresh(), self._source.finalized_height())
