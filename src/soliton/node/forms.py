"""How old the forms of the last block are: those that microblocks have made of it.

What lives here: noting when each came. What does not: the forms (``chain_writer``), what is built
on them (``node``).

Source: wavesplatform/Waves ``node/src/main/scala/com/wavesplatform/state/NgState.scala``.
"""

from __future__ import annotations

from collections.abc import Callable

from soliton.node.chain_writer import ChainWriter
from soliton.node.events import BlockAppended, BlockExtended, NodeEvent


class Forms:
    """When each microblock of the last block came, a listener of the node's events."""

    def __init__(self, clock: Callable[[], int]) -> None:
        """``clock`` gives ms."""
        self._clock = clock
        self._came: dict[bytes, int] = {}

    def __call__(self, event: NodeEvent) -> None:
        """Note the time of a microblock."""
        match event:
            case BlockExtended(block=block):
                self._came[block.id] = self._clock()
            case BlockAppended():
                self._came.clear()
            case _:
                pass

    def settled(self, chain: ChainWriter, age: int) -> bytes:
        """The id of the longest form of the last block that is as old as this (ms)."""
        forms = chain.liquid_forms() or (chain.last_block,)
        latest = self._clock() - age
        return next(
            (each.id for each in reversed(forms[1:]) if self._came.get(each.id, 0) <= latest),
            forms[0].id,
        )
