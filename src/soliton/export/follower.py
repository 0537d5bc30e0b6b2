"""Choosing the next step of an export.

The follower compares positions and does not count events: whatever has happened to the chain or the
database in the meantime (microblocks, forks, a killed process, a database restored from a backup),
the next step leads from the database's position to the chain's.

What lives here: choosing the step. What does not: writing it (``database``), waiting and retrying
(``running``).
"""

from __future__ import annotations

from itertools import pairwise
from typing import Final

from soliton.export.errors import FinalBlockGone, SourceAway, WrongChain
from soliton.export.metrics import Progress
from soliton.export.sources import ChainBlock, Source
from soliton.export.steps import Position, Sink, Step, Stored

MAX_BLOCKS: Final = 256
"""Limit on the blocks of a step, while catching up with history."""
MAX_TRANSACTIONS: Final = 5_000
"""A step with so many gets no further block."""
_PAGE: Final = 200


class Follower:
    """A sink that follows a chain."""

    def __init__(self, source: Source, sink: Sink, progress: Progress | None = None) -> None:
        """``progress`` notes each step."""
        self._source = source
        self._sink = sink
        self._progress = progress or Progress()
        self._position: Position | None = None
        self.height = 0
        """The height of the chain."""

    @property
    def position(self) -> Position:
        """The position of the sink."""
        if self._position is None:
            self._position = self._sink.position()
        return self._position

    def step(self) -> bool:
        """Write the next step; return whether there was one. After an exception (``SourceAway``,
        ``DatabaseAway``) the next call reads the position again. Raises ``FinalBlockGone`` where
        all blocks are final and one of the sink's is not on the chain.
        """
        self.height = self._source.refresh()
        if not self.height:
            return False
        step = self._next()
        if step is None:
            return False
        before = self.position
        # The position is unknown until the sink has confirmed the step.
        self._position = None
        self._progress.doing = _description(step)
        self._position = self._sink.write(step, before)
        self._note(step)
        return True

    def _note(self, step: Step) -> None:
        progress, grown = self._progress, () if step.grown is None else step.grown.transactions
        progress.steps += 1
        progress.blocks += len(step.blocks)
        progress.transactions += len(grown) + sum(len(each.transactions) for each in step.blocks)

    def _next(self) -> Step | None:
        position, top = self.position, self.position.top
        if top is None:
            return Step(blocks=self._above(None, 0))
        if self._source.only_final and top.height > self.height:
            # The node is behind, or less is known to be final after a fork.
            return None
        if self._source.block_id(top.height) == top.id:
            if top.height >= self.height:
                return None
            return Step(blocks=self._above(top.id, top.height))
        if top.height <= self.height:
            step = self._grown(position)
            if step is not None:
                return step
        if self._source.only_final:
            raise FinalBlockGone(
                f"the block at height {top.height} is {self._source.block_id(top.height)} on the "
                f"chain, and {top.id} was exported: final blocks are not taken back. If it was "
                "exported before it was final, run the export once without --finalized"
            )
        common = self._common(position)
        return Step(cut=common, blocks=self._above(common.id, common.height))

    def _above(self, parent: str | None, height: int) -> list[ChainBlock]:
        """Return the next blocks above one, as many as fit into a step."""
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
            raise SourceAway("the chain changed while it was read")
        linked = [(parent, found[0])] if parent is not None else []
        linked += [(before.id, after) for before, after in pairwise(found)]
        if any(after.reference != before for before, after in linked):
            raise SourceAway("the chain changed while it was read")
        return found

    def _grown(self, position: Position) -> Step | None:
        """Return the step to another form of the last block, ``None`` if the block has changed."""
        block = next(self._source.blocks(position.last[0].height, position.last[0].height), None)
        if block is None or block.key != position.key:
            return None
        names = [each.members["id"] for each in block.transactions]
        same = 0
        for ours, theirs in zip(position.ids, names, strict=False):
            if ours != theirs:
                break
            same += 1
        usable = [row for row in position.last if row.size <= same]
        if not usable:
            return None
        row = usable[-1]
        cut = None if row is position.top else row
        if row.size < len(names):
            return Step(cut=cut, grown=block)
        return Step(cut=cut, renamed=None if row.id == block.id else block.id)

    def _common(self, position: Position) -> Stored:
        """Return the last row of the sink that is on the chain. Raises ``WrongChain``."""
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


def _description(step: Step) -> str:
    """What the destination does with a step, for a log line."""
    parts = []
    if step.cut is not None:
        parts.append(f"taking back what is above height {step.cut.height}")
    if step.renamed is not None or step.grown is not None:
        parts.append("adding to the last block")
    if step.blocks:
        count = sum(len(each.transactions) for each in step.blocks)
        first, last = step.blocks[0].height, step.blocks[-1].height
        parts.append(f"writing heights {first} to {last} with {count} transactions")
    return ", ".join(parts)
