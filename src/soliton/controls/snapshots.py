"""Snapshots of a private chain, and reverting to them.

What lives here: the parts of a snapshot that are not in the store. What does not: moments of the
store (``soliton.storage.timeline``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

import msgspec

from soliton.chain.addresses import Address
from soliton.chain.transactions.model import AnyTransaction
from soliton.controls.clock import ClockState, DevClock
from soliton.controls.errors import ControlRefused
from soliton.controls.mining import Mining, MiningMode
from soliton.controls.moving import restore_moment
from soliton.crypto import base58
from soliton.node.node import Node

MAX_SNAPSHOTS: Final = 10_000
BY_HAND: Final = "taken out by hand"
"""The reason for which a transaction left the pool."""


class Companion(Protocol):
    """A service that follows a chain and is reverted with it."""

    def mark(self) -> object:
        """Return a snapshot of the service."""

    def pause(self) -> None:
        """Called before a revert: do not broadcast transactions again that it will remove."""

    def restore(self, mark: object) -> None:
        """Called after a revert: restore a mark, or (``None``) the initial state."""


class _Snapshot(msgspec.Struct, frozen=True):
    """The parts of a snapshot that are not in the store."""

    height: int
    block: bytes
    time: int
    clock: ClockState
    mode: MiningMode
    pool: tuple[AnyTransaction, ...]
    waived: frozenset[Address]
    companion: object


class Taken(msgspec.Struct, frozen=True, rename="camel"):
    """A snapshot in the form of the API."""

    id: str
    height: int
    block: str
    time: int


class Snapshots:
    """The snapshots of one chain. Numbers are unique in the life of the process."""

    def __init__(self, node: Node, clock: DevClock, mining: Mining) -> None:
        self._node, self._clock, self._mining = node, clock, mining
        self._taken: dict[int, _Snapshot] = {}
        self.companion: Companion | None = None

    def take(self) -> int:
        """Take a snapshot and return its number. Raises ``ControlRefused``."""
        if len(self._taken) >= MAX_SNAPSHOTS:
            raise ControlRefused(f"there are {MAX_SNAPSHOTS} snapshots: forget some")
        chain = self._node.chain
        number = chain.store.mark()
        self._taken[number] = _Snapshot(
            chain.height,
            chain.last_block.id,
            self._clock(),
            self._clock.state,
            self._mining.mode,
            tuple(self._node.pool.transactions()),
            chain.waived,
            None if self.companion is None else self.companion.mark(),
        )
        return number

    def revert(self, number: int) -> bool:
        """Revert to a snapshot; ``False`` for an unknown one."""
        taken, node = self._taken.get(number), self._node
        if taken is None:
            return False
        if not node.chain.store.has_moment(number):
            raise ControlRefused(
                f"snapshot {number:#x} is forgotten: too much has changed since it was taken"
            )
        self.pause()
        with self._mining.paused():
            with node.writing():
                restore_moment(node.chain, number)
            node.chain.waived = taken.waived
            self._clock.state = taken.clock
            self._restore_pool(taken.pool)
            # Events about blocks have moved the clock.
            self._clock.state = taken.clock
            self._mining.change(taken.mode)
        self.restore(taken.companion)
        return True

    def pause(self) -> None:
        """Pause the companion before the chain is replaced."""
        if self.companion is not None:
            self.companion.pause()

    def restore(self, mark: object = None) -> None:
        """Restore a mark of the companion, or (``None``) its initial state."""
        if self.companion is not None:
            self.companion.restore(mark)

    def _restore_pool(self, transactions: Sequence[AnyTransaction]) -> None:
        node = self._node
        current = [each.id for each in node.pool.transactions()]
        if current == [each.id for each in transactions]:
            node.follow_chain()
        else:
            node.follow_chain(dropped=dict.fromkeys(current, BY_HAND), returned=transactions)
        node.pool.settle()

    def forget(self, number: int) -> bool:
        """Delete a snapshot; return whether there was one."""
        self._node.chain.store.forget_moment(number)
        return self._taken.pop(number, None) is not None

    def clear(self) -> None:
        """Delete all snapshots."""
        for number in list(self._taken):
            self.forget(number)

    def all(self) -> list[Taken]:
        """The snapshots to which the chain can revert, the oldest first."""
        store = self._node.chain.store
        return [self.shown(each) for each in self._taken if store.has_moment(each)]

    def shown(self, number: int) -> Taken:
        """A snapshot in the form of the API."""
        taken = self._taken[number]
        return Taken(f"{number:#x}", taken.height, base58.encode(taken.block), taken.time)
