"""The ages of the forms of the last block, one for each microblock.

What lives here: the arrival times. What does not: the forms (``chain_writer``), what is built on
them (``node``).

Source: wavesplatform/Waves ``node/src/main/scala/com/wavesplatform/state/NgState.scala``.
"""

from __future__ import annotations

from collections.abc import Callable

from soliton.node.chain_writer import ChainWriter
from soliton.node.events import BlockAppended, BlockExtended, NodeEvent


class Forms:
    """Arrival times of the last block's microblocks, a listener of the node's events."""

    def __init__(self, clock: Callable[[], int]) -> None:
        """``clock`` returns ms."""
        self._clock = clock
        self._arrivals: dict[bytes, int] = {}

    def __call__(self, event: NodeEvent) -> None:
        """Record the time of a microblock."""
        match event:
            case BlockExtended(block=block):
                self._arrivals[block.id] = self._clock()
            case BlockAppended():
                self._arrivals.clear()
            case _:
                pass

    def settled(self, chain: ChainWriter, age: int) -> bytes:
        """Return the id of the longest form of the last block that is at least so old (ms)."""
        forms = chain.liquid_ids() or (chain.last_block.id,)
        latest = self._clock() - age
        return next(
            (each for each in reversed(forms[1:]) if self._arrivals.get(each, 0) <= latest),
            forms[0],
        )
