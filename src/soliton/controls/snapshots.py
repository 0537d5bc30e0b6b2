"""Snapshots of a private chain, and being again as at one of them.

What lives here: what a snapshot holds beside the store. What does not: moments of the store
(``soliton.storage.timeline``), ids in the form of clients.
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
"""Why a transaction has left the pool."""


class Companion(Protocol):
    """What stands beside a chain, and goes back with it."""

    def mark(self) -> object:
        """Remember everything."""

    def rest(self) -> None:
        """The chain is about to go back: bring nothing onto it again that is taken off."""

    def leave(self, mark: object) -> None:
        """Be again as at a mark, or (``None``) as at the beginning; the chain is so already."""


class _Snapshot(msgspec.Struct, frozen=True):
    """What is not in the store."""

    height: int
    block: bytes
    time: int
    clock: ClockState
    mode: MiningMode
    pool: tuple[AnyTransaction, ...]
    waived: frozenset[Address]
    beside: object


class Taken(msgspec.Struct, frozen=True, rename="camel"):
    """A snapshot as clients see it."""

    id: str
    height: int
    block: str
    time: int


class Snapshots:
    """Those of one chain. No number is given twice in the life of the process."""

    def __init__(self, node: Node, clock: DevClock, mining: Mining) -> None:
        self._node, self._clock, self._mining = node, clock, mining
        self._taken: dict[int, _Snapshot] = {}
        self.beside: Companion | None = None

    def take(self) -> int:
        """Remember everything: the snapshot's number. Raises ``ControlRefused``."""
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
            None if self.beside is None else self.beside.mark(),
        )
        return number

    def revert(self, number: int) -> bool:
        """Be again as at a snapshot; ``False`` for one that nobody knows."""
        taken, node = self._taken.get(number), self._node
        if taken is None:
            return False
        if not node.chain.store.has_moment(number):
            raise ControlRefused(
                f"snapshot {number:#x} is forgotten: too much has changed since it was taken"
            )
        self.rest()
        with self._mining.paused():
            with node.writing():
                restore_moment(node.chain, number)
            node.chain.waived = taken.waived
            self._clock.state = taken.clock
            self._restore_pool(taken.pool)
            # What was told of blocks has moved the clock.
            self._clock.state = taken.clock
            self._mining.change(taken.mode)
        self.leave(taken.beside)
        return True

    def rest(self) -> None:
        """The chain is about to be another one."""
        if self.beside is not None:
            self.beside.rest()

    def leave(self, mark: object = None) -> None:
        """It is; what stands beside it has to be as it was then, or as at the beginning."""
        if self.beside is not None:
            self.beside.leave(mark)

    def _restore_pool(self, then: Sequence[AnyTransaction]) -> None:
        node = self._node
        now = [each.id for each in node.pool.transactions()]
        if now == [each.id for each in then]:
            node.follow_chain()
        else:
            node.follow_chain(unminable=dict.fromkeys(now, BY_HAND), returned=then)
        node.pool.settle()

    def forget(self, number: int) -> bool:
        """Let go of a snapshot; whether there was one."""
        self._node.chain.store.forget_moment(number)
        return self._taken.pop(number, None) is not None

    def clear(self) -> None:
        """Let go of all of them."""
        for number in list(self._taken):
            self.forget(number)

    def all(self) -> list[Taken]:
        """Those to which the chain can be brought, the oldest first."""
        store = self._node.chain.store
        return [self.shown(each) for each in self._taken if store.has_moment(each)]

    def shown(self, number: int) -> Taken:
        """One of them as clients see it."""
        taken = self._taken[number]
        return Taken(f"{number:#x}", taken.height, base58.encode(taken.block), taken.time)
