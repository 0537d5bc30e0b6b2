"""The relay of transactions: which are new, which peers receive them, and how many are queued.

The bytes of a transaction are checked once, however often peers send them. A transaction that the
pool accepts is relayed to all peers except those that sent it. One that it refuses is forgotten
with the next block, because it may be valid then.

Sources: wavesplatform/Waves
``node/src/main/scala/com/wavesplatform/network/{TransactionSynchronizer,TransactionPublisher}.scala``.
"""

from __future__ import annotations

from typing import Final

import msgspec

from soliton.crypto.hashes import blake2b256
from soliton.sync.model import ChainMoved, Joined, Left, PeerId, Received
from soliton.wire.messages import LegacyTransaction, ProtobufTransaction

_KEY_BYTES: Final = 16


class RelaySettings(msgspec.Struct, frozen=True):
    """``seen`` transactions are remembered (``utx-synchronizer.network-tx-cache-size``); at most
    ``queue`` are checked at a time (``max-queue-size``), ``queue_of_peer`` of one peer. ``again``
    relays what a client sends again (``allow-tx-rebroadcasting``).
    """

    seen: int = 1_000_000
    queue: int = 5_000
    queue_of_peer: int = 1_000
    again: bool = True


DEFAULTS: Final = RelaySettings()


class CheckTransaction(msgspec.Struct, frozen=True):
    """Check a transaction; the result is reported with ``Checked``."""

    peer: PeerId
    message: LegacyTransaction | ProtobufTransaction


class Checked(msgspec.Struct, frozen=True):
    """The result of a check. ``is_new``: the pool has accepted the transaction."""

    check: CheckTransaction
    transaction_id: bytes = b""
    is_new: bool = False


class Accepted(msgspec.Struct, frozen=True):
    """The pool holds a transaction that a client of this node has sent."""

    transaction_id: bytes


class RelayTransaction(msgspec.Struct, frozen=True):
    """Send a transaction to all peers except some, to each in the form that its version reads."""

    transaction_id: bytes
    but: frozenset[PeerId] = frozenset()


_Actions = list[CheckTransaction | RelayTransaction]


class Relay:
    """Filters transactions of peers, and decides which are relayed."""

    def __init__(self, settings: RelaySettings = DEFAULTS) -> None:
        self._settings = settings
        self._seen: dict[bytes, None] = {}
        self._relayed: dict[bytes, None] = {}
        self._senders: dict[bytes, set[PeerId]] = {}
        self._waiting: dict[PeerId, int] = {}
        self._count = 0
        self.is_ready = False
        """Whether the node is near enough to the end of the chain to check transactions."""

    @property
    def waiting(self) -> int:
        """The number of transactions being checked."""
        return self._count

    def handle(self, event: Received | Joined | Left | ChainMoved | Checked | Accepted) -> _Actions:
        """Process an event and return the resulting actions; this machine needs no clock."""
        match event:
            case Received(
                peer=peer, message=LegacyTransaction() | ProtobufTransaction() as message
            ):
                return self._receive(peer, message)
            case Checked():
                return self._checked(event)
            case Accepted(transaction_id=transaction_id):
                return self._relay(transaction_id, frozenset())
            case ChainMoved():
                self._seen.clear()
                self._relayed.clear()
            case Joined():
                # A client may send again what this peer has not received.
                self._relayed.clear()
            case Left(peer=peer):
                for senders in self._senders.values():
                    senders.discard(peer)
            case _:
                pass
        return []

    def _receive(self, peer: PeerId, message: LegacyTransaction | ProtobufTransaction) -> _Actions:
        if not self.is_ready:
            return []
        key = _key(message)
        if key in self._senders:
            # It is being checked already; do not relay it to this peer either.
            self._senders[key].add(peer)
            return []
        if key in self._seen:
            return []
        limits = self._settings
        if self._count >= limits.queue or self._waiting.get(peer, 0) >= limits.queue_of_peer:
            return []
        _remember(self._seen, key, limits.seen)
        self._count += 1
        self._waiting[peer] = self._waiting.get(peer, 0) + 1
        self._senders[key] = {peer}
        return [CheckTransaction(peer, message)]

    def _checked(self, event: Checked) -> _Actions:
        peer = event.check.peer
        senders = self._senders.pop(_key(event.check.message), set())
        self._count -= 1
        self._waiting[peer] -= 1
        if not self._waiting[peer]:
            del self._waiting[peer]
        if not event.is_new:
            return []
        return self._relay(event.transaction_id, frozenset(senders))

    def _relay(self, transaction_id: bytes, but: frozenset[PeerId]) -> _Actions:
        if transaction_id in self._relayed:
            return []
        _remember(self._relayed, transaction_id, self._settings.seen)
        return [RelayTransaction(transaction_id, but)]


def _key(message: LegacyTransaction | ProtobufTransaction) -> bytes:
    return blake2b256(message.data)[:_KEY_BYTES]


def _remember(cache: dict[bytes, None], key: bytes, limit: int) -> None:
    """Add a key to a cache; above the limit the oldest one is removed."""
    cache[key] = None
    if len(cache) > limit:
        del cache[next(iter(cache))]
