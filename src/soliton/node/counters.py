"""Counters of events since the start of the node.

What lives here: counting the node's events. What does not: exposing the counters
(``soliton.api.metrics``).
"""

from __future__ import annotations

from soliton.node.events import (
    BlockAppended,
    BlockExtended,
    Departure,
    NodeEvent,
    PoolAccepted,
    PoolDropped,
    RolledBack,
)


class Counters:
    """The counters of one node, a listener of its events."""

    __slots__ = (
        "accepted",
        "blocks",
        "invalid",
        "microblocks",
        "mined",
        "rollbacks",
        "transactions",
    )

    def __init__(self) -> None:
        self.blocks = 0
        self.microblocks = 0
        self.transactions = 0
        self.rollbacks = 0
        self.accepted = 0
        self.mined = 0
        self.invalid = 0

    def __call__(self, event: NodeEvent) -> None:
        """Count an event."""
        match event:
            case PoolAccepted():
                self.accepted += 1
            case PoolDropped(departure=departure):
                if departure is Departure.MINED:
                    self.mined += 1
                else:
                    self.invalid += 1
            case BlockAppended(block=block):
                self.blocks += 1
                self.transactions += len(block.transactions)
            case BlockExtended(added=added):
                self.microblocks += 1
                self.transactions += added
            case RolledBack():
                self.rollbacks += 1
