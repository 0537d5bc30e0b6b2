"""When a store deletes what its mode does not keep: beside a running node, or at once.

What lives here: pauses between the steps, reports of progress, the compaction afterwards. What does
not: what a step deletes (``soliton.storage.pruning``).
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from typing import TYPE_CHECKING, Final

from soliton.errors import SolitonError
from soliton.storage import layout
from soliton.storage.errors import StorageProblem
from soliton.storage.pruning import Progress
from soliton.storage.store import Store

if TYPE_CHECKING:
    from soliton.node.node import Node

CHECK_SECONDS: Final = 1.0
"""How often a node looks whether enough has gathered, or whether a write is over."""
PAUSES: Final = 3
"""A pause between steps is so many times as long as the step before it."""
RETRY_SECONDS: Final = 60.0
"""The pause after a failure."""
REPORT_SECONDS: Final = 30.0
MANY_BLOCKS: Final = 5_000
"""Deleting so many blocks at once, after a change of the mode, is reported, and compacted."""

PRUNED_KINDS: Final = (
    layout.ADDRESS_TRANSACTION,
    layout.BLOCK,
    layout.ASSET_HISTORY,
    layout.HISTORY,
    layout.BLOCK_HEIGHT,
    layout.ADDRESS_LEASE,
    layout.META,
    layout.CALL,
    layout.UNDO,
    layout.REPLACED,
    layout.SNAPSHOT,
)
"""The kinds of records that pruning deletes or rewrites."""

_log = logging.getLogger(__name__)


def prune_all(store: Store) -> None:
    """Delete at once all that the store does not keep; raises ``StorageProblem``."""
    while store.prune():
        pass


class Reports:
    """Says in the log how far a long deletion is."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._began, self._first = time.monotonic(), store.prune_progress
        self._said = self._began
        self.is_long = self._first.due - self._first.done >= MANY_BLOCKS

    def begin(self) -> None:
        """Report what is going to be deleted."""
        if self.is_long:
            count = self._first.due - self._first.done
            _log.info(
                "the mode is %s now: deleting what it does not keep, %d steps by block",
                self._store.kept.mode,
                count,
            )

    def go_on(self) -> None:
        """Report progress now and then."""
        now = time.monotonic()
        if self.is_long and now - self._said >= REPORT_SECONDS:
            self._said = now
            _log.info(
                "%s", progress_text(self._first, self._store.prune_progress, now - self._began)
            )


def progress_text(first: Progress, now: Progress, seconds: float) -> str:
    """Return how far pruning is, and the time that it still needs."""
    done, left = now.done - first.done, now.due - now.done
    percent = 100 * done // max(1, done + left)
    if not done:
        return f"deleting: {percent} %"
    return f"deleting: {percent} %, about {left * seconds / done:.0f} s left"


async def prune_in_steps(node: Node) -> None:
    """Delete what the store of a running node does not keep, whenever enough has gathered; never
    returns, and raises nothing.
    """
    while True:
        await asyncio.sleep(CHECK_SECONDS)
        if not node.store.is_prune_due:
            continue
        try:
            await _prune(node)
        except StorageProblem as problem:
            _log.error("deleting what the store does not keep pauses: %s", problem)
            await asyncio.sleep(RETRY_SECONDS)


async def _prune(node: Node) -> None:
    store = node.store
    reports = Reports(store)
    reports.begin()
    while True:
        since = time.perf_counter()
        if not store.prune():
            done, due = store.prune_progress
            if done >= due:
                break
            # Blocks are being applied that are not written yet.
            await asyncio.sleep(CHECK_SECONDS)
            continue
        reports.go_on()
        await asyncio.sleep(PAUSES * (time.perf_counter() - since))
    if reports.is_long:
        _log.info("deleted what the mode %s does not keep; compacting the disk", store.kept.mode)
        threading.Thread(target=_compact, args=(store,), daemon=True).start()


def _compact(store: Store) -> None:
    """Compact, until the node closes its store."""
    try:
        store.database.compact(PRUNED_KINDS)
    except SolitonError as problem:
        _log.info("the store is not compacted: %s", problem)
    else:
        _log.info("the store is compacted")
