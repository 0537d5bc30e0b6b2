"""The relay of transactions: which are new, who is told about them, and how many may wait.

A transaction that a peer sends is looked at once, however often it comes and in whichever form.
What the pool takes goes on to all peers but those who sent it. What it refuses is forgotten with
the next block, since it may be valid then.

Sources: wavesplatform/Waves
``node/src/main/scala/com/wavesplatform/network/{TransactionSynchronizer,TransactionPublisher}.scala``.
"""

from __future__ import annotations

from typing import Final

import msgspec

from soliton.crypto.hashes import blake2b256
from soliton.sync.model import ChainMoved, Heard, Left, PeerId
from soliton.wire.messages import LegacyTransaction, ProtobufTransaction

_KEY_BYTES: Final = 16


class RelaySettings(msgspec.Struct, frozen=True):
    """``seen`` transactions are remembered (``utx-synchronizer.network-tx-cache-size``); ``queue``
    may wait for their check (``max-queue-size``), ``queue_of_peer`` of them from one peer.
    """

    seen: int = 1_000_000
    queue: int = 5_000
    queue_of_peer: int = 1_000


USUAL: Final = RelaySettings()


class CheckTransaction(msgspec.Struct, frozen=True):
    """Check a transaction, and say what became of it with ``Checked``."""

    peer: PeerId
    message: LegacyTransaction | ProtobufTransaction


class Checked(msgspec.Struct, frozen=True):
    """The check of a transaction of a peer is over. ``is_new``: the pool has taken it."""

    check: CheckTransaction
    transaction_id: bytes = b""
    is_new: bool = False


class Accepted(msgspec.Struct, frozen=True):
    """The pool has taken a transaction that came from elsewhere: a client of ours."""

    transaction_id: bytes


class RelayTransaction(msgspec.Struct, frozen=True):
    """Send a transaction to all peers but some, to each in the form that its version reads."""

    transaction_id: bytes
    but: frozenset[PeerId] = frozenset()


class Relay:
    """What peers send, and what is passed on."""

    def __init__(self, settings: RelaySettings = USUAL) -> None:
        self._settings = settings
        self._seen: dict[bytes, None] = {}
        self._passed_on: dict[bytes, None] = {}
        self._senders: dict[bytes, set[PeerId]] = {}
        self._waiting: dict[PeerId, int] = {}
        self._count = 0
        self.is_ready = False
        """Whether the node is near enough to the end of the chain to judge transactions."""

    @property
    def waiting(self) -> int:
        """Transactions whose check has not ended."""
        return self._count

    def handle(
        self, event: Heard | Left | ChainMoved | Checked | Accepted
    ) -> list[CheckTransaction | RelayTransaction]:
        """What follows from an event; this machine has no use for the time."""
        match event:
            case Heard(peer=peer, message=LegacyTransaction() | ProtobufTransaction() as message):
                return self._hear(peer, message)
            case Checked():
                return self._checked(event)
            case Accepted(transaction_id=transaction_id):
                return self._pass_on(transaction_id, frozenset())
            case ChainMoved():
                self._seen.clear()
                self._passed_on.clear()
            case Left(peer=peer):
                for senders in self._senders.values():
                    senders.discard(peer)
            case _:
                pass
        return []

    def _hear(
        self, peer: PeerId, message: LegacyTransaction | ProtobufTransaction
    ) -> list[CheckTransaction | RelayTransaction]:
        if not self.is_ready:
            return []
        key = _key(message)
        if key in self._senders:
            # It is being checked: who else has it needs not be told.
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

    def _checked(self, event: Checked) -> list[CheckTransaction | RelayTransaction]:
        peer = event.check.peer
        senders = self._senders.pop(_key(event.check.message), set())
        self._count -= 1
        self._waiting[peer] -= 1
        if not self._waiting[peer]:
            del self._waiting[peer]
        if not event.is_new:
            return []
        return self._pass_on(event.transaction_id, frozenset(senders))

    def _pass_on(
        self, transaction_id: bytes, but: frozenset[PeerId]
    ) -> list[CheckTransaction | RelayTransaction]:
        if transaction_id in self._passed_on:
            return []
        _remember(self._passed_on, transaction_id, self._settings.seen)
        return [RelayTransaction(transaction_id, but)]


def _key(message: LegacyTransaction | ProtobufTransaction) -> bytes:
    return blake2b256(message.data)[:_KEY_BYTES]


def _remember(cache: dict[bytes, None], key: bytes, limit: int) -> None:
    """Put something into a cache that forgets the oldest above its limit."""
    cache[key] = None
    if len(cache) > limit:
        del cache[next(iter(cache))]
