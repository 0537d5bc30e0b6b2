"""Bringing exchange transactions onto the chain, and keeping them there.

A transaction is sent when it is made, and again at an interval while the node has not shown it in
its pool or on the chain. One that was confirmed stays under watch until its block is so deep that
no fork reaches it; when its block is rolled back it is sent again. What the node refuses for good
is told to ``on_refused``, since the accounts' volume is free then.

What lives here: the state of each transaction, and the sending. What does not: making them
(``exchanges``), asking the node (``node_client``).

Source: wavesplatform/matcher
``dex/src/main/scala/com/wavesplatform/dex/actors/tx/ExchangeTransactionBroadcastActor.scala``.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Final

import msgspec

from soliton.chain.transactions.model import AnyTransaction
from soliton.crypto import base58
from soliton.matcher.errors import NodeUnavailable
from soliton.matcher.node_client import Broadcast, NodeClient, NodeUpdate
from soliton.matcher.orders_db import OrdersDatabase, PendingRecord
from soliton.matcher.settings import Settlement as SettlementSettings
from soliton.matcher.turns import in_turns

FINAL_DEPTH: Final = 100
"""A transaction under so many blocks cannot be rolled back by the network."""
_PAUSE_SECONDS: Final = 1.0
"""How long sending rests when the node is not there."""

_log = logging.getLogger(__name__)


class _Sent(msgspec.Struct):
    """A transaction on its way. ``transaction`` is let go of once the node has it."""

    created: int
    transaction: AnyTransaction | None
    height: int = 0
    in_pool: bool = False
    queued: bool = False
    last_sent: int = 0


class SettlementCounts(msgspec.Struct):
    """What became of transactions since the start."""

    made: int = 0
    sent: int = 0
    confirmed: int = 0
    refused: int = 0
    rolled_back: int = 0


class Settlement:
    """All transactions that are not on the chain for certain. Use from one event loop."""

    def __init__(
        self,
        node: NodeClient,
        database: OrdersDatabase,
        settings: SettlementSettings,
        clock: Callable[[], int],
        on_refused: Callable[[bytes, str], None],
        on_lost: Callable[[bytes], None],
    ) -> None:
        """``clock`` gives ms; ``on_refused`` gets an id and the node's words, ``on_lost`` the id of
        a transaction whose block was rolled back.
        """
        self._node = node
        self._database = database
        self._settings = settings
        self._clock = clock
        self._on_refused = on_refused
        self._on_lost = on_lost
        self._pending: dict[bytes, _Sent] = {}
        # The same by the height at which they are on the chain, 0 for those that are not.
        self._at: dict[int, dict[bytes, _Sent]] = {0: {}}
        self._to_send: deque[bytes] = deque()
        self._wake = asyncio.Event()
        self._height = 0
        self.is_active = False
        """Whether it sends, and does not only note what has to be sent."""
        self.counts = SettlementCounts()

    def __len__(self) -> int:
        """How many transactions are not on the chain."""
        return len(self._at[0])

    def unconfirmed(self) -> list[bytes]:
        """The transactions that are not on the chain."""
        return list(self._at[0])

    def tasks(self) -> list[Coroutine[None, None, None]]:
        """What has to run as long as the matcher does."""
        parallel = min(self._settings.parallelism, self._node.parallel_broadcasts)
        senders = [self._send_all() for _ in range(parallel)]
        return [*senders, self._send_again()]

    def rest(self) -> None:
        """Only write down what has to be sent: somebody else sends it, or nobody can yet."""
        self.is_active = False
        self._pending, self._at = {}, {0: {}}
        self._to_send.clear()

    def load(self) -> None:
        """Take up what an earlier run, or an earlier term of this one, has left."""
        self.rest()
        self.forget_old()
        self.is_active = True
        for transaction_id, record in self._database.pending().items():
            self._watch(transaction_id, _Sent(record.created, None, record.height))

    def _watch(self, transaction_id: bytes, sent: _Sent) -> None:
        self._pending[transaction_id] = sent
        self._at.setdefault(sent.height, {})[transaction_id] = sent

    def _unwatch(self, transaction_id: bytes) -> None:
        sent = self._pending.pop(transaction_id, None)
        if sent is not None:
            self._leave_height(transaction_id, sent)

    def _leave_height(self, transaction_id: bytes, sent: _Sent) -> None:
        there = self._at[sent.height]
        del there[transaction_id]
        if not there and sent.height:
            del self._at[sent.height]

    def forget_old(self) -> None:
        """Let go of what no node would take any more, whatever became of it."""
        oldest = self._clock() - self._settings.max_age_ms
        for transaction_id, record in self._database.pending().items():
            if record.created < oldest:
                self._database.settle(transaction_id)

    async def reconcile(self) -> None:
        """Ask the node what it has of all this, and send the rest; raises ``NodeUnavailable``."""
        heights = await self._node.confirmed_heights(list(self._pending))
        self._height = max(self._height, (await self._node.status()).height)
        for transaction_id, sent in list(self._pending.items()):
            height = heights.get(transaction_id, 0)
            if sent.height != height:
                self._note_height(transaction_id, sent, height)
            if not height:
                self._queue(transaction_id, sent)
        await self._forget_deep()

    def add(self, transaction: AnyTransaction) -> None:
        """Bring a new transaction onto the chain."""
        if transaction.id in self._pending:
            return
        self.counts.made += 1
        self._database.put_transaction(transaction)
        if self._clock() - transaction.timestamp > self._settings.max_age_ms:
            # A journal that is read again from long ago: its exchanges are settled, or lost.
            self._database.settle(transaction.id)
        elif self.is_active:
            sent = _Sent(transaction.timestamp, transaction)
            self._watch(transaction.id, sent)
            self._queue(transaction.id, sent)

    async def follow(self, update: NodeUpdate) -> None:
        """What has happened on the node; others go on in between."""
        higher = update.status.height > self._height
        self._height = update.status.height
        if update.rolled_back_to is not None:
            await self._roll_back(update.rolled_back_to)
        for transaction in update.appeared:
            self._see_in_pool(transaction.id, present=True)
        # Before those that have left the pool: what is in a block is not to be sent again.
        async for transaction_id, height in in_turns(update.confirmed):
            sent = self._pending.get(transaction_id)
            if sent is not None and sent.height != height:
                self._note_height(transaction_id, sent, height)
        for transaction_id in update.vanished:
            self._see_in_pool(transaction_id, present=False)
        if higher:
            await self._forget_deep()

    def _see_in_pool(self, transaction_id: bytes, *, present: bool) -> None:
        sent = self._pending.get(transaction_id)
        if sent is not None:
            sent.in_pool = present and not sent.height

    async def _roll_back(self, stayed: int) -> None:
        heights = sorted(height for height in self._at if height > stayed)
        lost = [each for height in heights for each in self._at[height].items()]
        async for transaction_id, sent in in_turns(lost):
            if sent.height > stayed:
                self.counts.rolled_back += 1
                self._note_height(transaction_id, sent, 0)
                self._on_lost(transaction_id)
                self._queue(transaction_id, sent)

    def _note_height(self, transaction_id: bytes, sent: _Sent, height: int) -> None:
        if height and not sent.height:
            self.counts.confirmed += 1
        self._leave_height(transaction_id, sent)
        sent.height = height
        self._at.setdefault(height, {})[transaction_id] = sent
        sent.in_pool = False
        if height:
            sent.transaction = None
        self._database.note_seen(transaction_id, PendingRecord(sent.created, height))

    async def _forget_deep(self) -> None:
        deepest = self._height - FINAL_DEPTH
        heights = [height for height in self._at if 0 < height <= deepest]
        gone = [each for height in heights for each in self._at[height].items()]
        async for transaction_id, sent in in_turns(gone):
            if 0 < sent.height <= deepest:
                self._unwatch(transaction_id)
                self._database.settle(transaction_id)

    # --- sending ----------------------------------------------------------------------------------

    def _queue(self, transaction_id: bytes, sent: _Sent) -> None:
        if not sent.queued:
            sent.queued = True
            self._to_send.append(transaction_id)
            self._wake.set()

    async def _send_all(self) -> None:
        while True:
            if not self._to_send:
                self._wake.clear()
                await self._wake.wait()
                continue
            transaction_id = self._to_send.popleft()
            sent = self._pending.get(transaction_id)
            if sent is not None:
                sent.queued = False
                if not sent.height and not sent.in_pool:
                    await self._send(transaction_id, sent)
            # Orders that wait are more urgent than transactions.
            await asyncio.sleep(0)

    async def _send(self, transaction_id: bytes, sent: _Sent) -> None:
        now = self._clock()
        transaction = sent.transaction or self._database.transaction(transaction_id)
        if transaction is None or now - transaction.timestamp > self._settings.max_age_ms:
            self._give_up(transaction_id, "it is too old")
            return
        sent.last_sent = now
        try:
            answer = await self._node.broadcast(transaction)
        except NodeUnavailable as error:
            _log.warning("cannot send %s yet: %s", base58.encode(transaction_id), error)
            await asyncio.sleep(_PAUSE_SECONDS)
            return
        self.counts.sent += 1
        match answer.result:
            case Broadcast.REFUSED:
                if not sent.height:
                    self._give_up(transaction_id, answer.words)
            case Broadcast.RETRY:
                _log.info("%s is not taken yet: %s", base58.encode(transaction_id), answer.words)
            case Broadcast.UNCONFIRMED:
                sent.transaction = None
            case Broadcast.CONFIRMED:
                await self._look_up(transaction_id, sent)

    async def _look_up(self, transaction_id: bytes, sent: _Sent) -> None:
        """The node says that it is on the chain: find out where."""
        try:
            heights = await self._node.confirmed_heights([transaction_id])
        except NodeUnavailable:
            return
        height = heights.get(transaction_id, 0)
        if height and not sent.height:
            self._note_height(transaction_id, sent, height)

    def _give_up(self, transaction_id: bytes, words: str) -> None:
        self._unwatch(transaction_id)
        self._database.settle(transaction_id)
        self.counts.refused += 1
        _log.error("the exchange %s was refused: %s", base58.encode(transaction_id), words)
        self._on_refused(transaction_id, words)

    async def _send_again(self) -> None:
        """Queue once more whatever the node does not show."""
        interval = self._settings.interval_ms
        while True:
            await asyncio.sleep(interval / 1000)
            now = self._clock()
            for transaction_id, sent in self._at[0].items():
                if not sent.in_pool and now - sent.last_sent >= interval:
                    self._queue(transaction_id, sent)
