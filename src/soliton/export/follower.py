"""Keeping a database where the chain is: which step comes next, again and again.

The follower compares, it does not count events: whatever has happened to the chain or the database
in the meantime (microblocks, forks, a killed process, a database that went back to a backup), the
next step leads from where the database is to where the chain is.

What lives here: finding the step. What does not: writing it (``database``), waiting and trying
again (``running``).
"""

from __future__ import annotations

from itertools import pairwise
from typing import Final

from soliton.export.errors import SourceAway, WrongChain
from soliton.export.sources import ChainBlock, Source
from soliton.export.steps import Position, Sink, Step, Stored

MAX_BLOCKS: Final = 256
"""Blocks that are written in one transaction, at most, while there is history to be caught up."""
MAX_TRANSACTIONS: Final = 5_000
"""No further block is added to so many."""
_PAGE: Final = 200


class Follower:
    """One database that follows one chain."""

    def __init__(self, source: Source, sink: Sink) -> None:
        self._source = source
        self._sink = sink
        self._position: Position | None = None
        self.height = 0
        """Where the chain is."""

    @property
    def position(self) -> Position:
        """Where the database is."""
        if self._position is None:
            self._position = self._sink.position()
        return self._position

    def step(self) -> bool:
        """Make the next step; whether there was one. Raises ``SourceAway`` or ``DatabaseAway``:
        the next call finds out anew where the database is.
        """
        self.height = self._source.refresh()
        if not self.height:
            return False
        step = self._next()
        if step is None:
            return False
        before = self.position
        # Where it is afterwards is only known when it has been heard of.
        self._position = None
        self._position = self._sink.write(step, before)
        return True

    def _next(self) -> Step | None:
        position, top = self.position, self.position.top
        if top is None:
            return Step(blocks=self._above(None, 0))
        if self._source.block_id(top.height) == top.id:
            if top.height >= self.height:
                return None
            return Step(blocks=self._above(top.id, top.height))
        if top.height <= self.height:
            step = self._grown(position)
            if step is not None:
                return step
        common = self._common(position)
        return Step(cut=common, blocks=self._above(common.id, common.height))

    def _above(self, parent: str | None, height: int) -> list[ChainBlock]:
        """The next blocks above one, as many as are written at once."""
        last = min(self.height, height + MAX_BLOCKS)
        if last == height:
            return []
        found: list[ChainBlock] = []
        count = 0
        for block in self._source.blocks(height + 1, last):
            found.append(block)
            count += len(block.transactions)
            if count >= MAX_TRANSACTIONS:
                break
        if not found:
            raise SourceAway("the chain has moved while it was read")
        linked = [(parent, found[0])] if parent is not None else []
        linked += [(before.id, after) for before, after in pairwise(found)]
        if any(after.reference != before for before, after in linked):
            raise SourceAway("the chain has moved while it was read")
        return found

    def _grown(self, position: Position) -> Step | None:
        """The step to another form of the last block, if it is still the same block."""
        block = next(self._source.blocks(position.last[0].height, position.last[0].height), None)
        if block is None or block.key != position.key:
            return None
        names = [each.members["id"] for each in block.transactions]
        same = 0
        for ours, theirs in zip(position.ids, names, strict=False):
            if ours != theirs:
                break
            same += 1
        kept = [row for row in position.last if row.size <= same]
        if not kept:
            return None
        row = kept[-1]
        cut = None if row is position.top else row
        if row.size < len(names):
            return Step(cut=cut, grown=block)
        return Step(cut=cut, renamed=None if row.id == block.id else block.id)

    def _common(self, position: Position) -> Stored:
        """The last row of the database that is on the chain. Raises ``WrongChain``."""
        top = min(position.last[0].height, self.height)
        while top > 0:
            found = self._sink.ids(top, _PAGE)
            for row in found:
                if self._source.block_id(row.height) == row.id:
                    return row
            if not found:
                break
            top = found[-1].height - 1
        raise WrongChain("the database holds another chain: not even its first block is the same")
