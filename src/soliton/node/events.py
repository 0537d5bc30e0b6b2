"""Events of a node for its listeners: blocks, microblocks, rollbacks, the pool.

The single writer calls its listeners synchronously, in the order of subscription, after the store
holds the change and before the writer continues. A listener therefore sees exactly the chain that
the event is about. It must return at once (it records what it needs, and sets an ``asyncio.Event``)
and never write. There is no queue and no history: a listener that resumes reads the chain.

What lives here: the events, and the list of listeners. What does not: sending them over HTTP
(``soliton.api.event_stream``), and their sources (``node``, ``chain_writer``, ``pool``).
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

import msgspec

from soliton.chain.addresses import Address
from soliton.chain.blocks import Block
from soliton.chain.finalization import FinalizationVoting
from soliton.chain.transactions.model import AnyTransaction
from soliton.chain.values import AssetId
from soliton.storage.retrying import without_retry


class BlockAppended(msgspec.Struct, frozen=True):
    """A block was appended; it may grow. The state of ``edited`` accounts was changed by hand."""

    height: int
    block: Block
    edited: tuple[Address, ...] = ()


class BlockExtended(msgspec.Struct, frozen=True):
    """The last block has grown by a microblock: its new form, the number of added transactions, the
    generator's signature of the microblock, if known, and the microblock's own voting.
    """

    height: int
    block: Block
    added: int
    micro_signature: bytes = b""
    voting: FinalizationVoting | None = None


class RolledBack(msgspec.Struct, frozen=True):
    """Blocks or microblocks were removed: the new last block, in its present form."""

    height: int
    block: Block


class Moved(msgspec.Struct, frozen=True, gc=False):
    """The balances that a transaction of the pool changes: in the chain's coin by account, in
    assets by account and asset; and all accounts that it is listed under.
    """

    waves: tuple[Address, ...]
    assets: tuple[tuple[Address, AssetId], ...]
    accounts: tuple[Address, ...]


class PoolAccepted(msgspec.Struct, frozen=True):
    """A transaction was added to the pool."""

    transaction: AnyTransaction
    moved: Moved


class Departure(Enum):
    """Why a transaction has left the pool."""

    MINED = "mined"
    INVALID = "invalid"


class PoolDropped(msgspec.Struct, frozen=True):
    """A transaction has left the pool, or has not come back to it from a block that was removed;
    ``reason`` says why it has become invalid.
    """

    transaction: AnyTransaction
    moved: Moved
    departure: Departure
    reason: str | None = None


class Stopping(msgspec.Struct, frozen=True):
    """The node is about to stop; this is the last event."""


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
        """Add a listener, which must not raise."""
        self._listeners = (*self._listeners, listener)

    def unsubscribe(self, listener: Listener) -> None:
        """Remove a listener."""
        self._listeners = tuple(each for each in self._listeners if each != listener)

    def publish(self, event: NodeEvent) -> None:
        """Notify all listeners; only the node's writer calls this."""
        # The change is done and must not be retried.
        with without_retry():
            for listener in self._listeners:
                listener(event)
