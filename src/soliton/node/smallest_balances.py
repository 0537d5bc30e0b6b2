"""The smallest effective balance of accounts over a window of blocks that moves with the chain.

Who mines asks this for each block, over a thousand of them; of all changes in the window only those
are kept that a later, smaller one does not make void, and only what is new is read.

What lives here: what is kept. What does not: reading it at once (``storage.indexes``), which also
answers what does not move forward.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from typing import Final

from soliton.chain.addresses import Address
from soliton.storage.indexes import Histories, minimum_effective_balance

MAX_ACCOUNTS: Final = 64
"""More generators than that take no turns on any chain."""


class _Window:
    """The changes that count, the oldest first, up to ``top``; the account had nothing before
    ``start``. A change that makes earlier ones void stands where the first of them stood: there
    ends what the account had before.
    """

    __slots__ = ("bottom", "changes", "start", "top")

    def __init__(self, bottom: int, top: int) -> None:
        self.bottom, self.top = bottom, top
        self.start = top + 1
        self.changes: deque[tuple[int, int]] = deque()

    def add(self, height: int, effective: int) -> None:
        """A change behind all others."""
        if not self.changes:
            self.start = height
        while self.changes and self.changes[-1][1] >= effective:
            height, _ = self.changes.pop()
        self.changes.append((height, effective))

    def move(self, bottom: int) -> None:
        """Nothing below this height is asked for any more."""
        self.bottom = bottom
        while len(self.changes) > 1 and self.changes[1][0] <= bottom:
            self.changes.popleft()

    def copy(self) -> _Window:
        """The same, to go on apart from it."""
        twin = _Window(self.bottom, self.top)
        twin.start, twin.changes = self.start, self.changes.copy()
        return twin


class SmallestBalances:
    """Those of the accounts that were asked for last."""

    __slots__ = ("_store", "_windows")

    def __init__(self, store: Histories) -> None:
        self._store = store
        self._windows: OrderedDict[Address, _Window] = OrderedDict()

    def forget(self) -> None:
        """Read everything anew: blocks were taken off."""
        self._windows.clear()

    def learn(self, other: SmallestBalances) -> None:
        """Know what another one does, below whose last block the chain is the same."""
        self._windows = OrderedDict((each, known.copy()) for each, known in other._windows.items())

    def smallest(self, address: Address, bottom: int, top: int, last: int) -> int:
        """That of an account after the blocks ``bottom`` to ``top``, in wavelets. The block at
        ``last`` is the last one, and may yet grow.
        """
        if top < last:
            return minimum_effective_balance(self._store, address, bottom, top)
        window = self._windows.get(address)
        # What the last block says is not kept.
        settled = last - 1
        if window is None or bottom < window.bottom or settled < window.top:
            window = self._windows[address] = _Window(bottom, 0)
            if len(self._windows) > MAX_ACCOUNTS:
                self._windows.popitem(last=False)
        self._windows.move_to_end(address)
        new = []
        for height, _, effective in self._store.balance_history(address, top):
            if height <= window.top:
                break
            new.append((height, effective))
            if height <= bottom:
                break
        present: list[int] = []
        for height, effective in reversed(new):
            if height > settled:
                present.append(effective)
            else:
                window.add(height, effective)
        window.top = settled
        window.move(bottom)
        values = [value for _, value in list(window.changes)[:1]] + present
        if bottom > settled and present:
            values = present
        # At the window's beginning an account that changed only later had nothing.
        first = window.start if window.changes else last
        return min(values, default=0) if first <= bottom else min(0, *values, 0)
