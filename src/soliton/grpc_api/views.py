"""Snapshots of the chain for calls, each as of one point in time however long the call takes.

A call holds a view of the store. Without writes, all calls share one view; the first call after a
write takes a new one, and the old one is closed with its last reader. The number of views is
limited: beyond it, calls that wait for their clients have to release the oldest.

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

MAX_VIEWS: Final = MAX_SNAPSHOTS // 2
"""The number of open views from which on the oldest are freed."""
Task = asyncio.Task[Any]


class View:
    """A snapshot of the chain, and its readers."""

    __slots__ = ("chain", "moment", "tasks", "users")

    def __init__(self, chain: Blockchain, moment: int) -> None:
        self.chain = chain
        self.moment = moment
        self.users = 0
        self.tasks: list[Task] = []
        """The tasks that hold it."""


class Views:
    """The views of one store. Use from one thread."""

    def __init__(self, network: Network, store: StoreReader, *, follows: bool = True) -> None:
        """``follows`` is true for a store that another process writes."""
        self._network = network
        self._store = store
        self._follows = follows
        self._current: View | None = None
        self._open: list[View] = []
        self.free_views: Callable[[Collection[Task]], bool] = lambda _: False
        """Ends those of some tasks that can be ended; returns whether there were any."""

    @contextmanager
    def open(self) -> Iterator[Blockchain]:
        """Open the present chain; raises ``StoreBusy`` if there are too many views."""
        view = self.acquire()
        try:
            yield view.chain
        finally:
            self.release(view)

    def current(self) -> View:
        """Return the present view for immediate use: the next one may close it."""
        if self._follows:
            self._store.follow()
        moment, current = self._store.database.moment, self._current
        if current is not None and current.moment == moment:
            return current
        if len(self._open) >= MAX_VIEWS:
            any(self.free_views(each.tasks) for each in self._open)
        store = self._store.snapshot()
        try:
            made = View(Blockchain(self._network, store), moment)
        except BaseException:
            # The store would wait for it for ever before it grows or closes.
            store.close()
            raise
        self._open.append(made)
        self._current = made
        if current is not None and current.users == 0:
            self._close(current)
        return made

    def acquire(self) -> View:
        """Return the present view; it has to be given back."""
        view = self.current()
        self.retain(view, asyncio.current_task())
        return view

    def retain(self, view: View, task: Task | None) -> None:
        """Let a task hold the view until it is given back."""
        view.users += 1
        if task is not None:
            view.tasks.append(task)

    def release(self, view: View, task: Task | None = None) -> None:
        """Release a view for a task, by default the current one."""
        view.users -= 1
        task = task or asyncio.current_task()
        if task in view.tasks:
            view.tasks.remove(task)
        if view.users == 0 and view is not self._current:
            self._close(view)

    def _close(self, view: View) -> None:
        self._open.remove(view)
        view.chain.store.close()

    def release_unused(self) -> None:
        """Close the present view if it has no readers, so that the store can reuse its pages."""
        current = self._current
        if current is not None and current.users == 0:
            self._close(current)
            self._current = None
        if self._follows:
            self._store.follow()

    def close(self) -> None:
        """Close the last view."""
        self.release_unused()
