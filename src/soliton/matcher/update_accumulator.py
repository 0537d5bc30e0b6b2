"""Accumulating a node's events into one update, until the consumer is ready for it.

What lives here: merging events. What does not: where they come from.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from soliton.chain.addresses import Address
from soliton.chain.transactions.model import AnyTransaction
from soliton.matcher.node_client import ChainStatus, Inclusion, NodeUpdate


class UpdateAccumulator:
    """Events since the last update. ``pending`` is set while there are any."""

    def __init__(self) -> None:
        self.pending = asyncio.Event()
        self._reset()

    def _reset(self) -> None:
        self._rolled_back_to: int | None = None
        self._confirmed: dict[bytes, int] = {}
        self._failures: dict[bytes, str] = {}
        self._appeared: dict[bytes, AnyTransaction] = {}
        self._vanished: dict[bytes, None] = {}
        self._changed: set[Address] = set()
        self._all_changed = False
        self._missed = False
        self._resumed = False

    def moved(self) -> None:
        """The last block changed."""
        self.pending.set()

    def mined(self, transaction_id: bytes, inclusion: Inclusion) -> None:
        """A transaction is in a block."""
        self._confirmed[transaction_id] = inclusion.height
        self._failures.pop(transaction_id, None)
        if inclusion.failure:
            self._failures[transaction_id] = inclusion.failure
        self.pending.set()

    def rolled_back(self, height: int) -> None:
        """Blocks above a height were rolled back."""
        known = self._rolled_back_to
        self._rolled_back_to = height if known is None else min(height, known)
        self._confirmed = {each: at for each, at in self._confirmed.items() if at <= height}
        self.all_changed()

    def appeared(self, transaction: AnyTransaction) -> None:
        """A transaction entered the pool."""
        self._appeared[transaction.id] = transaction
        self._vanished.pop(transaction.id, None)
        self.pending.set()

    def vanished(self, transaction_id: bytes) -> None:
        """A transaction left the pool. This is reported even if it appeared since the last update:
        it may have appeared before as well.
        """
        self._appeared.pop(transaction_id, None)
        self._vanished[transaction_id] = None
        self.pending.set()

    def changed(self, addresses: Iterable[Address]) -> None:
        """Balances of these accounts changed on the chain."""
        self._changed.update(addresses)
        self.pending.set()

    def all_changed(self) -> None:
        """The balances of any account may have changed."""
        self._all_changed = True
        self.pending.set()

    def resumed(self) -> None:
        """The connection was interrupted; the balances of any account may have changed."""
        self._resumed = True
        self.all_changed()

    def missed(self) -> None:
        """Some events were missed."""
        self._missed = True
        self.all_changed()

    def take(self, status: ChainStatus, finalized: int) -> NodeUpdate:
        """Return the update and start a new one; ``finalized`` as in ``NodeUpdate``."""
        update = NodeUpdate(
            status=status,
            rolled_back_to=self._rolled_back_to,
            confirmed=tuple(self._confirmed.items()),
            failures={
                each: self._failures[each] for each in self._confirmed.keys() & self._failures
            },
            appeared=tuple(self._appeared.values()),
            vanished=tuple(self._vanished),
            changed=None if self._all_changed else frozenset(self._changed),
            missed=self._missed,
            resumed=self._resumed,
            finalized=finalized,
        )
        self._reset()
        self.pending.clear()
        return update
