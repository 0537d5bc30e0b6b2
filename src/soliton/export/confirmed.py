"""A chain as it looks to who waits for some blocks on top before a block counts.

What lives here: the chain without its last blocks. What does not: reading it (``sources``).
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
        """See what is new; the height of the last block that counts."""
        return max(0, self._source.refresh() - self._count)

    def block_id(self, height: int) -> str | None:
        """The id of the block at a height."""
        return self._source.block_id(height)

    def blocks(self, first: int, last: int) -> Iterator[ChainBlock]:
        """Blocks of these heights."""
        return self._source.blocks(first, last)

    def address_of(self, alias: str) -> str:
        """The account that an alias stands for."""
        return self._source.address_of(alias)

    def wait(self, seconds: float) -> None:
        """Return when there may be something new, or after so long."""
        self._source.wait(seconds)

    def close(self) -> None:
        """Let go of the chain."""
        self._source.close()
