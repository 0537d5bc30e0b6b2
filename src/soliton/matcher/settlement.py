"""Bringing exchange transactions onto the chain, and keeping them there.

A transaction is sent when it is made, and again at an interval while the node has not shown it in
its pool or on the chain. One that was confirmed stays under watch until its block is so deep that
no fork reaches it; when its block is rolled back it is sent again. One whose time is over gets a
new one (``renewal``), unless the node has refused it for what it says: then, and when no node will
ever take it, it is given up. The accounts' volume is free then, and the operator is shown it.

What lives here: the state of each transaction, and the sending. What does not: making them
(``exchanges``), asking the node (``node_client``).

Source: wavesplatform/matcher
``dex/src/main/scala/com/wavesplatform/dex/actors/tx/ExchangeTransactionBroadcastActor.scala``.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Coroutine
from typing import Final, Protocol

import msgspec

from soliton.chain.addresses import from_public_key
from soliton.chain.transactions.exchange import Exchange
from soliton.chain.transactions.model import AnyTransaction
from soliton.crypto import base58
from soliton.crypto.keys import KeyPair
from soliton.matcher.damping import damped
from soliton.matcher.errors import NodeUnavailable
from soliton.matcher.node_client import Broadcast, BroadcastAnswer, NodeClient, NodeUpdate
from soliton.matcher.orders_db import OrdersDatabase, PendingRecord
from soliton.matcher.records import Unsettled
from soliton.matcher.renewal import FINAL_DEPTH, Window, expires, order_ids, renewed
from soliton.matcher.settings import Settlement as SettlementSettings
from soliton.matcher.turns import in_turns
from soliton.matching.pairs import AssetPair

MAX_PAUSE: Final = 8
"""Intervals, at most, between two attempts at a transaction that is refused again and again."""
_PAUSE_SECONDS: Final = 1.0
"""How long sending rests when the node is not there."""
_UNANSWERED: Final = "the node was not asked yet, or has not answered"

_log = damped(logging.getLogger(__name__))


class _Sent(msgspec.Struct):
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
        settings: SettlementSettings,
        window: Window,
        account: KeyPair,
        listener: Listener,
    ) -> None:
        """``window`` is the network's, ``account`` the matcher's."""
        self._node = node
        self._database = database
        self._settings = settings
        self._window = window
        self._account = account
        self._listener = listener
        self._pending: dict[bytes, _Sent] = {}
        # The same by the height at which they are on the chain, 0 for those that are not.
        self._at: dict[int, dict[bytes, _Sent]] = {0: {}}
        self._to_send: deque[bytes] = deque()
        self._wake = asyncio.Event()
        self._height = 0
        self._rollbacks = 0
        self._found: dict[bytes, int] = {}
        self._troubles: dict[Broadcast, int] = {}
        self.found = asyncio.Event()
        """Set while there is something for ``take_found``."""
        self.is_active = False
        """Whether it sends, and does not only note what has to be sent."""
        self.counts = SettlementCounts()

    def __len__(self) -> int:
        """How many transactions are not on the chain."""
        return len(self._at[0])

    def unconfirmed(self) -> list[bytes]:
        """The transactions that are not on the chain."""
        return list(self._at[0])

    def outstanding(self, transaction_id: bytes) -> AnyTransaction | None:
        """A transaction of ours that has to come onto the chain, and is not there."""
        sent = self._at[0].get(transaction_id)
        if sent is None:
            return None
        return sent.transaction or self._database.transaction(transaction_id)

    def unsettled(self, limit: int) -> list[Unsettled]:
        """Executions that are neither on the chain nor in the node's pool, at most so many: first
        those that were given up.
        """
        found = self._database.unsettled()[:limit]
        for transaction_id, sent in self._at[0].items():
            if len(found) >= limit:
                break
            transaction = None if sent.in_pool else self.outstanding(transaction_id)
            if transaction is not None:
                found.append(described(transaction, sent.words, given_up=False))
        return found

    def unsettled_counts(self) -> tuple[int, int]:
        """How many of these wait, and how many were given up."""
        waiting = sum(not sent.in_pool for sent in self._at[0].values())
        return waiting, len(self._database.unsettled())

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
        self._found.clear()
        self.found.clear()

    def load(self) -> None:
        """Take up what an earlier run, or an earlier term of this one, has left."""
        self.rest()
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
            before = self._rollbacks
            asked = list(self._pending)
            given_up = [each for each in self._database.unsettled() if each.transaction_id]
            heights = await self._node.heights(
                [*asked, *(each.transaction_id or b"" for each in given_up)]
            )
            if before == self._rollbacks:
                break
            # What was told may have been rolled back while the answer was on its way.
        async for transaction_id in in_turns(asked):
            sent = self._pending.get(transaction_id)
            if sent is None:
                continue
            height = heights.get(transaction_id, 0)
            if not sent.height:
                if not self._note_found(transaction_id, sent, height):
                    self._queue(transaction_id, sent)
            elif not 0 < height <= self._height:
                self._lose(transaction_id, sent)
            elif sent.height != height:
                self._note_height(transaction_id, sent, height)
        for each in given_up:
            if heights.get(each.transaction_id or b"", 0):
                self._database.forget_unsettled(each)
        await self._forget_deep()

    def add(self, transaction: AnyTransaction) -> None:
        """Bring a new transaction onto the chain."""
        if transaction.id in self._pending:
            return
        self.counts.made += 1
        self._database.put_transaction(transaction)
        if self.is_active:
            sent = _Sent(transaction.timestamp, transaction)
            self._watch(transaction.id, sent)
            self._queue(transaction.id, sent)

    async def follow(self, update: NodeUpdate) -> None:
        """What has happened on the node; others go on in between. Raises ``NodeUnavailable``, and
        then has to be called again.
        """
        higher = update.status.height > self._height
        self._height = update.status.height
        if update.rolled_back_to is not None:
            self._rollbacks += 1
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
        if update.missed and self.is_active:
            await self.reconcile()
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
                self._lose(transaction_id, sent)

    def _lose(self, transaction_id: bytes, sent: _Sent) -> None:
        self.counts.rolled_back += 1
        self._note_height(transaction_id, sent, 0)
        transaction = self.outstanding(transaction_id)
        if transaction is not None:
            self._listener.lost(transaction)
        self._queue(transaction_id, sent)

    def _note_height(self, transaction_id: bytes, sent: _Sent, height: int) -> None:
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

    def _note_found(self, transaction_id: bytes, sent: _Sent, height: int) -> bool:
        """The node said that it is on the chain at a height (0: that it is not): whether that can
        be relied on.

        Blocks above the last one that was told of may go again without anybody telling that, since
        nobody has told that they came. What is in them will be told, if they stay.
        """
        if not 0 < height <= self._height:
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
        transaction = sent.transaction or self._database.transaction(transaction_id)
        if transaction is None:
            self._unwatch(transaction_id)
            self._database.settle(transaction_id)
            _log.error("the exchange %s is not in the database", base58.encode(transaction_id))
            return
        sent.last_sent = asyncio.get_running_loop().time()
        try:
            answer = await self._node.broadcast(transaction)
        except NodeUnavailable as error:
            self._note_trouble(BroadcastAnswer(Broadcast.LATER, str(error)), sent)
            await asyncio.sleep(_PAUSE_SECONDS)
            return
        self.counts.sent += 1
        if sent.height or transaction_id not in self._pending:
            return
        match answer.result:
            case Broadcast.UNCONFIRMED:
                sent.transaction = None
                sent.refusals, sent.refused, sent.words = 0, False, "the node has taken it"
                self._troubles.clear()
            case Broadcast.CONFIRMED:
                await self._look_up(transaction_id, sent)
            case Broadcast.FINAL:
                self._give_up(transaction, answer.words)
            case _:
                self._note_trouble(answer, sent)

    def _note_trouble(self, answer: BroadcastAnswer, sent: _Sent) -> None:
        """Keep what was said. The log has the first of each kind, and every time that there are
        twice as many: thousands may wait for the same.
        """
        sent.words = answer.words
        if answer.result is not Broadcast.LATER:
            sent.refusals += 1
        if answer.result is not Broadcast.TOO_LATE:
            sent.refused = answer.result is Broadcast.NOT_YET
        count = self._troubles[answer.result] = self._troubles.get(answer.result, 0) + 1
        if count & (count - 1) == 0:
            level = logging.ERROR if answer.result is Broadcast.OPERATOR else logging.WARNING
            _log.log(
                level,
                "exchanges are not taken, since %s (%d times; %d wait): %s",
                *(answer.result.value, count, len(self), answer.words),
            )

    async def _look_up(self, transaction_id: bytes, sent: _Sent) -> None:
        """The node says that it is on the chain: find out where."""
        before = self._rollbacks
        try:
            heights = await self._node.heights([transaction_id])
        except NodeUnavailable:
            return
        if not sent.height and before == self._rollbacks:
            self._note_found(transaction_id, sent, heights.get(transaction_id, 0))

    def _give_up(self, transaction: AnyTransaction, words: str) -> None:
        self._unwatch(transaction.id)
        self._database.settle(transaction.id)
        self._database.put_unsettled(described(transaction, words, given_up=True))
        self.counts.refused += 1
        _log.error("the exchange %s is given up: %s", base58.encode(transaction.id), words)
        self._listener.given_up(transaction.id)

    async def _send_again(self) -> None:
        """Queue once more whatever the node does not show, and renew what is too late."""
        interval = self._settings.interval_ms / 1000
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(interval)
            now = loop.time()
            for transaction_id, sent in self._at[0].items():
                pause = interval * min(MAX_PAUSE, 1 << min(sent.refusals // 2, 10))
                if not sent.in_pool and now - sent.last_sent >= pause:
                    self._queue(transaction_id, sent)
            try:
                await self._renew_late()
            except NodeUnavailable as error:
                _log.info("exchanges that are too late stay as they are: %s", error)

    # --- those that are too late ------------------------------------------------------------------

    async def _renew_late(self) -> None:
        """Go on with those whose time is over for certain; raises ``NodeUnavailable``."""
        waiting = [
            (transaction_id, sent)
            for transaction_id, sent in self._at[0].items()
            if not sent.in_pool
        ]
        height = (await self._node.status()).height if waiting else 0
        if height <= FINAL_DEPTH:
            return
        final = await self._node.block_time(height - FINAL_DEPTH)
        for transaction_id, sent in waiting:
            if self._window.is_over(sent.created, final):
                await self._renew(transaction_id, final)

    async def _renew(self, transaction_id: bytes, final: int) -> None:
        """``final`` is the time of a block that stays: nothing above it holds the old one."""
        old = self.outstanding(transaction_id)
        if old is None or not order_ids(old):
            return
        body = old.payload
        assert isinstance(body, Exchange), "it has orders"
        since = self._window.settled_since(old.timestamp)
        trader = from_public_key(body.order1.sender_public_key, old.chain_id)
        before = self._rollbacks
        found = await self._node.find_exchange(trader, order_ids(old), since)
        sent = self._at[0].get(transaction_id)
        if sent is None or sent.in_pool or before != self._rollbacks:
            return
        timestamp = self._window.next_time(old.timestamp, final)
        if found is not None:
            new, height = found
            height = height if height <= self._height else 0
        elif sent.refused:
            self._give_up(old, f"its time is over, and the node said: {sent.words}")
            return
        elif timestamp >= expires(old):
            self._give_up(old, "its time is over, and its orders have expired")
            return
        else:
            new, height = renewed(old, timestamp, self._account), 0
        self._replace(old, new, height)

    def _replace(self, old: AnyTransaction, new: AnyTransaction, height: int) -> None:
        if new.id == old.id:
            self._note_found(old.id, self._pending[old.id], height)
            return
        self.counts.renewed += 1
        _log.warning(
            "the exchange %s was too late: %s takes its place",
            *(base58.encode(old.id), base58.encode(new.id)),
        )
        self._unwatch(old.id)
        self._database.replace_transaction(old, new, order_ids(old), height)
        self._listener.given_up(old.id)
        sent = _Sent(new.timestamp, new, height)
        self._watch(new.id, sent)
        if not height:
            self._listener.lost(new)
            self._queue(new.id, sent)


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
