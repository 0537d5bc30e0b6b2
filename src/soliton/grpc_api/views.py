"""The chain as calls read it: at one moment each, however long they take.

A call holds a view of the store. As long as nothing is written all calls share one; the first call
after a write takes a new one, and the old one is let go with the last call that reads it.

What lives here: opening and closing views. What does not: the store (``soliton.storage``).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from soliton.chain.networks.model import Network
from soliton.node.blockchain import Blockchain
from soliton.storage.reader import StoreReader


class View:
    """The chain at a moment, and how many read it."""

    __slots__ = ("chain", "moment", "users")

    def __init__(self, chain: Blockchain, moment: int) -> None:
        self.chain = chain
        self.moment = moment
        self.users = 0


class Views:
    """The views of one store. Use from one thread."""

    def __init__(self, network: Network, store: StoreReader, *, follows: bool = True) -> None:
        """``follows`` a store that another process writes."""
        self._network = network
        self._store = store
        self._follows = follows
        self._current: View | None = None

    @contextmanager
    def open(self) -> Iterator[Blockchain]:
        """The chain as it is now; raises ``StoreBusy`` when too many moments are being read."""
        view = self.take()
        try:
            yield view.chain
        finally:
            self.give_back(view)

    def take(self) -> View:
        """The same, to be given back."""
        if self._follows:
            self._store.follow()
        moment, current = self._store.database.moment, self._current
        if current is None or current.moment != moment:
            made = View(Blockchain(self._network, self._store.snapshot()), moment)
            self._current = made
            if current is not None and current.users == 0:
                current.chain.store.close()
            current = made
        current.users += 1
        return current

    def give_back(self, view: View) -> None:
        """Read it no more."""
        view.users -= 1
        if view.users == 0 and view is not self._current:
            view.chain.store.close()

    def rest(self) -> None:
        """Let go of what nobody reads: the store cannot reuse it before."""
        current = self._current
        if current is not None and current.users == 0:
            current.chain.store.close()
            self._current = None
        if self._follows:
            self._store.follow()

    def close(self) -> None:
        """Let go of the last view."""
        self.rest()
