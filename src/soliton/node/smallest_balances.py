"""A sliding-window minimum of accounts' effective balances, over the blocks that count for mining.

A miner needs it for each block, over a window of a thousand. Only changes without a later, smaller
one are kept (a monotonic queue), and only new blocks are read.

What lives here: the cache. What does not: the uncached query (``storage.indexes``), which also
answers for windows that do not move forward.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from typing import Final

from soliton.chain.addresses import Address
from soliton.storage.indexes import Histories, minimum_effective_balance

MAX_ACCOUNTS: Final = 4_096
"""More than the generators of any chain: with deterministic finality each block needs them all."""


class _Window:
    """The changes that count, the oldest first, up to ``top``; the balance was 0 before ``start``.
    A change that supersedes earlier ones takes the height of the first of them, where the balance
    before them ended.
    """

    __slots__ = ("bottom", "changes", "start", "top")

    def __init__(self, bottom: int, top: int) -> None:
        self.bottom, self.top = bottom, top
        self.start = top + 1
        self.changes: deque[tuple[int, int]] = deque()

    def add(self, height: int, effective: int) -> None:
        """Append the newest change."""
        if not self.changes:
            self.start = height
        while self.changes and self.changes[-1][1] >= effective:
            height, _ = self.changes.pop()
        self.changes.append((height, effective))

    def move(self, bottom: int) -> None:
        """Drop what is below this height."""
        self.bottom = bottom
        while len(self.changes) > 1 and self.changes[1][0] <= bottom:
            self.changes.popleft()

    def copy(self) -> _Window:
        """Return an independent copy."""
        twin = _Window(self.bottom, self.top)
        twin.start, twin.changes = self.start, self.changes.copy()
        return twin


class SmallestBalances:
    """The windows of the most recently queried accounts, up to ``MAX_ACCOUNTS``."""

    __slots__ = ("_store", "_windows")

    def __init__(self, store: Histories) -> None:
        self._store = store
        self._windows: OrderedDict[Address, _Window] = OrderedDict()

    def forget(self) -> None:
        """Drop everything, after a rollback."""
        self._windows.clear()

    def copy_from(self, other: SmallestBalances) -> None:
        """Copy the windows of another chain, which is the same up to its last block but one."""
        self._windows = OrderedDict((each, known.copy()) for each, known in other._windows.items())

    def smallest(self, address: Address, bottom: int, top: int, last: int) -> int:
        """Return the smallest effective balance of an account after each of the blocks ``bottom``
        to ``top``, in wavelets. The block at ``last`` is the last one, and may still grow. Raises
        ``NotKept``.
        """
        self._store.kept.need_balances(bottom)
        if top < last:
            return minimum_effective_balance(self._store, address, bottom, top)
        window = self._windows.get(address)
        # The last block may change, so it is not cached.
        settled = last - 1
        if window is None or bottom < window.bottom or settled < window.top:
            window = self._windows[address] = _Window(bottom, 0)
            if len(self._windows) > MAX_ACCOUNTS:
                self._windows.popitem(last=False)
        self._windows.move_to_end(address)
        present: int | None = None
        new = []
        for height, _, effective in self._store.balance_history(address, top):
            if height <= window.top:
                break
            if height > settled:
                present = effective
            else:
                new.append((height, effective))
            if height <= bottom:
                break
        for height, effective in reversed(new):
            window.add(height, effective)
        window.top = settled
        window.move(bottom)
        first, smallest = last, present
        if window.changes:
            first, before = window.start, window.changes[0][1]
            if present is None or (before < present and bottom <= settled):
                smallest = before
        if smallest is None:
            return 0
        # An account without changes before the window had 0 at its beginning.
        return smallest if first <= bottom else min(0, smallest)
