"""UpdateAccumulator what a node tells, until somebody has time to hear it as one update.

What lives here: putting single notices together. What does not: where they come from.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from soliton.chain.addresses import Address
from soliton.chain.transactions.model import AnyTransaction
from soliton.matcher.node_client import ChainStatus, NodeUpdate


class UpdateAccumulator:
    """Notices since the last update. ``something`` is set while there are any."""

    def __init__(self) -> None:
        self.something = asyncio.Event()
        self._reset()

    def _reset(self) -> None:
        self._rolled_back_to: int | None = None
        self._confirmed: dict[bytes, int] = {}
        self._appeared: dict[bytes, AnyTransaction] = {}
        self._vanished: dict[bytes, None] = {}
        self._changed: set[Address] = set()
        self._anybody = False
        self._missed = False

    def moved(self) -> None:
        """The last block is another one."""
        self.something.set()

    def mined(self, transaction_id: bytes, height: int) -> None:
        """A transaction is in a block."""
        self._confirmed[transaction_id] = height
        self.something.set()

    def rolled_back(self, height: int) -> None:
        """Blocks above a height are gone."""
        known = self._rolled_back_to
        self._rolled_back_to = height if known is None else min(height, known)
        self._confirmed = {each: at for each, at in self._confirmed.items() if at <= height}
        self.anybody()

    def appeared(self, transaction: AnyTransaction) -> None:
        """A transaction is in the pool."""
        self._appeared[transaction.id] = transaction
        self._vanished.pop(transaction.id, None)
        self.something.set()

    def vanished(self, transaction_id: bytes) -> None:
        """A transaction is in the pool no more. This is told even of one that has appeared since
        the last update: the same one may have appeared before.
        """
        self._appeared.pop(transaction_id, None)
        self._vanished[transaction_id] = None
        self.something.set()

    def changed(self, addresses: Iterable[Address]) -> None:
        """Balances of these accounts changed on the chain."""
        self._changed.update(addresses)
        self.something.set()

    def anybody(self) -> None:
        """Anybody's balance may have changed."""
        self._anybody = True
        self.something.set()

    def missed(self) -> None:
        """More may have happened than what was told."""
        self._missed = True
        self.anybody()

    def take(self, status: ChainStatus) -> NodeUpdate:
        """The update, and begin anew."""
        update = NodeUpdate(
            status=status,
            rolled_back_to=self._rolled_back_to,
            confirmed=tuple(self._confirmed.items()),
            appeared=tuple(self._appeared.values()),
            vanished=tuple(self._vanished),
            changed=None if self._anybody else frozenset(self._changed),
            missed=self._missed,
        )
        self._reset()
        self.something.clear()
        return update
