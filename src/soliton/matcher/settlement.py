"""Bringing exchange transactions onto the chain, and keeping them there.

A transaction is sent when it is made, and again at an interval while the node has not shown it in
its pool or on the chain. One that was confirmed stays under watch until its block is so deep that
no fork reaches it; when its block is rolled back it is sent again. One whose time is over gets a
new one (``renewal``), unless the node has refused it for what it says: then, and when no node will
ever take it, it is given up. The accounts' volume is free then, and the operator is shown it.

What lives here: the state of each transaction. What does not: making them (``exchanges``), and
sending them (``broadcasting``).

Source: wavesplatform/matcher
``dex/src/main/scala/com/wavesplatform/dex/actors/tx/ExchangeTransactionBroadcastActor.scala``.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from typing import Final, Protocol

import msgspec

from soliton.chain.transactions.exchange import Exchange
from soliton.chain.transactions.model import AnyTransaction
from soliton.matcher.log_throttle import throttled
from soliton.matcher.node_client import NodeClient, NodeUpdate
from soliton.matcher.orders_db import OrdersDatabase, PendingRecord
from soliton.matcher.records import Unsettled
from soliton.matcher.renewal import FINAL_DEPTH, Window
from soliton.matcher.time_slices import in_slices
from soliton.matching.pairs import AssetPair

_UNANSWERED: Final = "the node was not asked yet, or has not answered"

_log = throttled(logging.getLogger(__name__))


class Sent(msgspec.Struct):
    """A transaction on its way. ``transaction`` is let go of once the node has it. ``refused`` says
    that the node has refused it for what it says, and not for the moment.
    """

    created: int
    transaction: AnyTransaction | None
    height: int = 0
    in_pool: bool = False
    queued: bool = False
    last_sent: float = float("-inf")
    refusals: int = 0
    refused: bool = False
    words: str = _UNANSWERED


class SettlementCounts(msgspec.Struct):
    """What became of transactions since the start."""

    made: int = 0
    sent: int = 0
    confirmed: int = 0
    refused: int = 0
    renewed: int = 0
    rolled_back: int = 0


class Listener(Protocol):
    """Who keeps the accounts' balances."""

    def given_up(self, transaction_id: bytes) -> None:
        """A transaction will not come onto the chain."""

    def lost(self, transaction: AnyTransaction) -> None:
        """A transaction is not on the chain any more, or takes the place of one given up."""


class Settlement:
    """All transactions that are not on the chain for certain. Use from one event loop."""

    def __init__(
        self,
        node: NodeClient,
        database: OrdersDatabase,
        window: Window,
        listener: Listener,
    ) -> None:
        """``window`` is the network's."""
        self._node = node
        self._database = database
        self._window = window
        self._listener = listener
        self.pending: dict[bytes, Sent] = {}
        # The same by the height at which they are on the chain, 0 for those that are not.
        self._at: dict[int, dict[bytes, Sent]] = {0: {}}
        self.to_send: deque[bytes] = deque()
        self.wake = asyncio.Event()
        self.height = 0
        self._final = 0
        self.rollbacks = 0
        self._found: dict[bytes, int] = {}
        self.found = asyncio.Event()
        """Set while there is something for ``take_found``."""
        self.is_active = False
        """Whether it sends, and does not only note what has to be sent."""
        self.counts = SettlementCounts()

    @property
    def off_chain(self) -> dict[bytes, Sent]:
        """The transactions that are not on the chain, by their ids."""
        return self._at[0]

    def outstanding(self, transaction_id: bytes) -> AnyTransaction | None:
        """A transaction of ours that has to come onto the chain, and is not there."""
        sent = self.off_chain.get(transaction_id)
        if sent is None:
            return None
        return sent.transaction or self._database.transaction(transaction_id)

    def unsettled(self, limit: int) -> list[Unsettled]:
        """Executions that are neither on the chain nor in the node's pool, at most so many: first
        those that were given up.
        """
        found = self._database.unsettled()[:limit]
        for transaction_id, sent in self.off_chain.items():
            if len(found) >= limit:
                break
            transaction = None if sent.in_pool else self.outstanding(transaction_id)
            if transaction is not None:
                found.append(described(transaction, sent.words, given_up=False))
        return found

    def unsettled_counts(self) -> tuple[int, int]:
        """How many of these wait, and how many were given up."""
        waiting = sum(not sent.in_pool for sent in self.off_chain.values())
        return waiting, len(self._database.unsettled())

    def rest(self) -> None:
        """Only write down what has to be sent: somebody else sends it, or nobody can yet."""
        self.is_active = False
        self.pending, self._at = {}, {0: {}}
        self.to_send.clear()
        self._found.clear()
        self.found.clear()

    def load(self) -> None:
        """Take up what an earlier run, or an earlier term of this one, has left."""
        self.rest()
        self.is_active = True
        for transaction_id, record in self._database.pending().items():
            self.watch(transaction_id, Sent(record.created, None, record.height))

    def watch(self, transaction_id: bytes, sent: Sent) -> None:
        """Know of one more."""
        self.pending[transaction_id] = sent
        self._at.setdefault(sent.height, {})[transaction_id] = sent

    def unwatch(self, transaction_id: bytes) -> None:
        """Know nothing of it any more."""
        sent = self.pending.pop(transaction_id, None)
        if sent is not None:
            self._leave_height(transaction_id, sent)

    def _leave_height(self, transaction_id: bytes, sent: Sent) -> None:
        there = self._at[sent.height]
        del there[transaction_id]
        if not there and sent.height:
            del self._at[sent.height]

    async def forget_settled(self) -> None:
        """Let go of what is old and deep in the chain, while somebody else sends: what is only old
        may still have to be settled. Raises ``NodeUnavailable``.
        """
        oldest = await self._node.now() - self._window.back_ms
        pending = self._database.pending().items()
        old = [transaction_id for transaction_id, record in pending if record.created < oldest]
        final = (await self._node.status()).height - FINAL_DEPTH
        heights = await self._node.heights(old)
        if not self.is_active:
            for transaction_id, height in heights.items():
                if 0 < height <= final:
                    self._database.settle(transaction_id)

    async def reconcile(self) -> None:
        """Ask the node what it has of all this, and send the rest; raises ``NodeUnavailable``."""
        while True:
            before = self.rollbacks
            asked = list(self.pending)
            given_up = [each for each in self._database.unsettled() if each.transaction_id]
            heights = await self._node.heights(
                [*asked, *(each.transaction_id or b"" for each in given_up)]
            )
            if before == self.rollbacks:
                break
            # What was told may have been rolled back while the answer was on its way.
        async for transaction_id in in_slices(asked):
            sent = self.pending.get(transaction_id)
            if sent is None:
                continue
            height = heights.get(transaction_id, 0)
            if not sent.height:
                if not self.note_found(transaction_id, sent, height):
                    self.queue(transaction_id, sent)
            elif not 0 < height <= self.height:
                self._lose(transaction_id, sent)
            elif sent.height != height:
                self._note_height(transaction_id, sent, height)
        for each in given_up:
            if heights.get(each.transaction_id or b"", 0):
                self._database.put_unsettled(each, gone=True)
        await self._forget_deep()

    def add(self, transaction: AnyTransaction) -> None:
        """Bring a new transaction onto the chain."""
        if transaction.id in self.pending:
            return
        self.counts.made += 1
        self._database.put_transaction(transaction)
        if self.is_active:
            sent = Sent(transaction.timestamp, transaction)
            self.watch(transaction.id, sent)
            self.queue(transaction.id, sent)

    async def follow(self, update: NodeUpdate) -> None:
        """What has happened on the node; others go on in between. Raises ``NodeUnavailable``, and
        then has to be called again.
        """
        higher = update.status.height > self.height
        self.height = update.status.height
        if update.rolled_back_to is not None:
            self.rollbacks += 1
            if update.rolled_back_to < self._final:
                _log.error(
                    "the node has taken blocks %d to %d off, which no fork reaches: what was "
                    "settled in them may be missing; 'soliton matcher verify' tells",
                    *(update.rolled_back_to + 1, self._final),
                )
            await self._roll_back(update.rolled_back_to)
        for transaction in update.appeared:
            self._see_in_pool(transaction.id, present=True)
        # Before those that have left the pool: what is in a block is not to be sent again.
        async for transaction_id, height in in_slices(update.confirmed):
            sent = self.pending.get(transaction_id)
            if sent is not None and sent.height != height:
                self._note_height(transaction_id, sent, height)
        for transaction_id in update.vanished:
            self._see_in_pool(transaction_id, present=False)
        if update.missed and self.is_active:
            await self.reconcile()
        if higher:
            await self._forget_deep()

    def _see_in_pool(self, transaction_id: bytes, *, present: bool) -> None:
        sent = self.pending.get(transaction_id)
        if sent is not None:
            sent.in_pool = present and not sent.height

    async def _roll_back(self, stayed: int) -> None:
        heights = sorted(height for height in self._at if height > stayed)
        lost = [each for height in heights for each in self._at[height].items()]
        async for transaction_id, sent in in_slices(lost):
            if sent.height > stayed:
                self._lose(transaction_id, sent)

    def _lose(self, transaction_id: bytes, sent: Sent) -> None:
        self.counts.rolled_back += 1
        self._note_height(transaction_id, sent, 0)
        transaction = self.outstanding(transaction_id)
        if transaction is not None:
            self._listener.lost(transaction)
        self.queue(transaction_id, sent)

    def _note_height(self, transaction_id: bytes, sent: Sent, height: int) -> None:
        if height and not sent.height:
            self.counts.confirmed += 1
        self._leave_height(transaction_id, sent)
        sent.height = height
        self._at.setdefault(height, {})[transaction_id] = sent
        sent.in_pool = False
        self._found.pop(transaction_id, None)
        if height:
            sent.transaction = None
        self._database.note_seen(transaction_id, PendingRecord(sent.created, height))

    def note_found(self, transaction_id: bytes, sent: Sent, height: int) -> bool:
        """The node said that it is on the chain at a height (0: that it is not): whether that can
        be relied on.

        Blocks above the last one that was told of may go again without anybody telling that, since
        nobody has told that they came. What is in them will be told, if they stay.
        """
        if not 0 < height <= self.height:
            return False
        self._note_height(transaction_id, sent, height)
        self._found[transaction_id] = height
        self.found.set()
        return True

    def take_found(self) -> tuple[tuple[bytes, int], ...]:
        """What was found on the chain by asking, with the heights: as ``NodeUpdate.confirmed``."""
        found, self._found = self._found, {}
        self.found.clear()
        return tuple(found.items())

    async def _forget_deep(self) -> None:
        deepest = self.height - FINAL_DEPTH
        self._final = max(self._final, deepest)
        heights = [height for height in self._at if 0 < height <= deepest]
        gone = [each for height in heights for each in self._at[height].items()]
        async for transaction_id, sent in in_slices(gone):
            if 0 < sent.height <= deepest:
                self.unwatch(transaction_id)
                self._database.settle(transaction_id)

    def queue(self, transaction_id: bytes, sent: Sent) -> None:
        """It is sent as soon as possible."""
        if not sent.queued:
            sent.queued = True
            self.to_send.append(transaction_id)
            self.wake.set()


def described(transaction: AnyTransaction, words: str, *, given_up: bool) -> Unsettled:
    """An exchange as one that is not on the chain."""
    body = transaction.payload
    assert isinstance(body, Exchange), "only exchanges are settled"
    return Unsettled(
        pair=AssetPair(body.order1.amount_asset, body.order1.price_asset),
        amount=body.amount,
        buy_order_id=body.buy_order.id,
        sell_order_id=body.sell_order.id,
        transaction_id=transaction.id,
        timestamp=transaction.timestamp,
        given_up=given_up,
        words=words,
    )
