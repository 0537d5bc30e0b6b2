"""The chain as calls read it: at one moment each, however long they take.

A call holds a view of the store. As long as nothing is written all calls share one; the first call
after a write takes a new one, and the old one is let go with the last call that reads it. There is
room for a few: where there is none, calls that wait for their clients let go of the oldest.

What lives here: opening and closing views. What does not: the store (``soliton.storage``).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import Any, Final

from soliton.chain.networks.model import Network
from soliton.node.blockchain import Blockchain
from soliton.storage.database import MAX_SNAPSHOTS
from soliton.storage.reader import StoreReader

MAX_MOMENTS: Final = MAX_SNAPSHOTS // 2
"""Moments that are read at the same time before somebody has to let go of one."""
Task = asyncio.Task[Any]


class View:
    """The chain at a moment, and how many read it."""

    __slots__ = ("chain", "moment", "tasks", "users")

    def __init__(self, chain: Blockchain, moment: int) -> None:
        self.chain = chain
        self.moment = moment
        self.users = 0
        self.tasks: list[Task] = []
        """Who has taken it."""


class Views:
    """The views of one store. Use from one thread."""

    def __init__(self, network: Network, store: StoreReader, *, follows: bool = True) -> None:
        """``follows`` a store that another process writes."""
        self._network = network
        self._store = store
        self._follows = follows
        self._current: View | None = None
        self._open: list[View] = []
        self.let_go: Callable[[Collection[Task]], bool] = lambda _: False
        """Ends what these tasks do where it may: whether there was any."""

    @contextmanager
    def open(self) -> Iterator[Blockchain]:
        """The chain as it is now; raises ``StoreBusy`` when too many moments are being read."""
        view = self.take()
        try:
            yield view.chain
        finally:
            self.give_back(view)

    def now(self) -> View:
        """The same, for what is done at once: it may be closed with the next one that is taken."""
        if self._follows:
            self._store.follow()
        moment, current = self._store.database.moment, self._current
        if current is not None and current.moment == moment:
            return current
        if len(self._open) >= MAX_MOMENTS:
            any(self.let_go(each.tasks) for each in self._open)
        made = View(Blockchain(self._network, self._store.snapshot()), moment)
        self._open.append(made)
        self._current = made
        if current is not None and current.users == 0:
            self._close(current)
        return made

    def take(self) -> View:
        """The same, to be given back."""
        view = self.now()
        self.hold(view, asyncio.current_task())
        return view

    def hold(self, view: View, task: Task | None) -> None:
        """A task reads it, until it is given back."""
        view.users += 1
        if task is not None:
            view.tasks.append(task)

    def give_back(self, view: View, task: Task | None = None) -> None:
        """Read it no more; without a task the one in hand does."""
        view.users -= 1
        task = task or asyncio.current_task()
        if task in view.tasks:
            view.tasks.remove(task)
        if view.users == 0 and view is not self._current:
            self._close(view)

    def _close(self, view: View) -> None:
        self._open.remove(view)
        view.chain.store.close()

    def rest(self) -> None:
        """Let go of what nobody reads: the store cannot reuse it before."""
        current = self._current
        if current is not None and current.users == 0:
            self._close(current)
            self._current = None
        if self._follows:
            self._store.follow()

    def close(self) -> None:
        """Let go of the last view."""
        self.rest()
