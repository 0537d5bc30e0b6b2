"""What happens in a node, published to listeners: blocks, microblocks, rollbacks, the pool.

The single writer notifies its listeners one after the other, in the order in which they subscribed,
when the store holds the change and before the writer goes on. A listener therefore sees exactly
the chain that it is notified of, returns at once (it notes what it needs, and sets an event), and
never writes. There are no queues here, and nothing is kept for later: who wants to resume reads the
chain.

What lives here: the events, and the list of listeners. What does not: sending them over HTTP
(``soliton.api.event_stream``), and deciding what happens (``node``, ``chain_writer``, ``pool``).
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

import msgspec

from soliton.chain.addresses import Address
from soliton.chain.blocks import Block
from soliton.chain.transactions.model import AnyTransaction
from soliton.chain.values import AssetId
from soliton.storage.retrying import without_retry


class BlockAppended(msgspec.Struct, frozen=True):
    """A block is on top; it may grow. State of these accounts was ``edited`` by hand with it."""

    height: int
    block: Block
    edited: tuple[Address, ...] = ()


class BlockExtended(msgspec.Struct, frozen=True):
    """The last block has grown by a microblock: its new form, how many transactions came, and the
    generator's signature of the microblock itself, where that is known.
    """

    height: int
    block: Block
    added: int
    micro_signature: bytes = b""


class RolledBack(msgspec.Struct, frozen=True):
    """Blocks or microblocks were taken off: the block that is the last one now, in the form that
    it has now.
    """

    height: int
    block: Block


class Moved(msgspec.Struct, frozen=True, gc=False):
    """The balances that a transaction of the pool changes: accounts in the chain's coin, accounts
    with an asset; and all accounts under which it is listed.
    """

    waves: tuple[Address, ...]
    assets: tuple[tuple[Address, AssetId], ...]
    accounts: tuple[Address, ...]


class PoolAccepted(msgspec.Struct, frozen=True):
    """A transaction has come into the pool."""

    transaction: AnyTransaction
    moved: Moved


class Departure(Enum):
    """Why a transaction is no longer in the pool."""

    MINED = "mined"
    INVALID = "invalid"


class PoolDropped(msgspec.Struct, frozen=True):
    """A transaction has left the pool; of one that is not valid any more, ``reason`` says why."""

    transaction: AnyTransaction
    moved: Moved
    departure: Departure
    reason: str | None = None


class Stopping(msgspec.Struct, frozen=True):
    """The node is about to stop: no event follows."""


ChainEvent = BlockAppended | BlockExtended | RolledBack
PoolEvent = PoolAccepted | PoolDropped
NodeEvent = ChainEvent | PoolEvent | Stopping
Listener = Callable[[NodeEvent], None]


class NodeEvents:
    """The listeners of one node."""

    __slots__ = ("_listeners",)

    def __init__(self) -> None:
        self._listeners: tuple[Listener, ...] = ()

    def subscribe(self, listener: Listener) -> None:
        """Notify a listener from now on; it raises nothing."""
        self._listeners = (*self._listeners, listener)

    def unsubscribe(self, listener: Listener) -> None:
        """Notify it no longer."""
        self._listeners = tuple(each for each in self._listeners if each != listener)

    def publish(self, event: NodeEvent) -> None:
        """Notify all listeners; only the node's writer calls this."""
        # It has happened: whoever made it does not begin again.
        with without_retry():
            for listener in self._listeners:
                listener(event)
