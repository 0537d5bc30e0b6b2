"""Settlement: tracking exchange transactions until they are irreversibly on the chain.

A transaction is sent when it is made, and again at an interval while the node does not report it in
its pool or on the chain. A confirmed transaction is tracked until its block is final: by the votes
of the chain's generators, or by its depth where there are none. If its block is rolled back, it is
sent again. A transaction that is too late is renewed (``renewal``), unless the node has rejected it
for its content: then, and if no node will ever accept it, it is given up. The accounts' reserves
are released then, and its execution is taken back (``corrections``), as is that of a transaction
that the chain includes without executing it. One that is mined after all counts again.

What lives here: the state of each transaction. What does not: making them (``exchanges``), and
sending them (``broadcasting``).

Source: wavesplatform/matcher
``dex/src/main/scala/com/wavesplatform/dex/actors/tx/ExchangeTransactionBroadcastActor.scala``.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Sequence
from itertools import islice
from typing import Final

import msgspec

from soliton.chain.addresses import Address
from soliton.chain.transactions.exchange import Exchange
from soliton.chain.transactions.model import AnyTransaction
from soliton.crypto import base58
from soliton.matcher.errors import NodeUnavailable
from soliton.matcher.log_throttle import throttled
from soliton.matcher.node_client import Inclusion, NodeClient, NodeUpdate, OrderPair
from soliton.matcher.orders_db import OrdersDatabase, PendingRecord
from soliton.matcher.records import Unsettled
from soliton.matcher.renewal import Window, final_height, order_ids
from soliton.matcher.session import Session
from soliton.matcher.time_slices import in_slices
from soliton.matching.pairs import pair_of

NOWHERE: Final = Inclusion(0)
"""A transaction that is in no block."""
_OTHER: Final = "was made again, but another one of its execution was sent"
_TAKEN_BACK: Final = "its execution was taken back"
_UNANSWERED: Final = "the node was not asked yet, or has not answered"

_log = throttled(logging.getLogger(__name__))


class Sent(msgspec.Struct):
    """A transaction being settled. ``transaction`` is ``None`` once the node has accepted it.
    ``refused`` is true if the node rejected it for its content, not for a temporary reason, and
    ``refused_since`` is when (of the loop's clock) it did so first since it was accepted last.
    ``failure`` is set if it is in a block, but was not executed (as in ``Inclusion``). One that is
    ``rebuilt`` (as in ``PendingRecord``) is not sent until the chain was searched.
    """

    created: int
    transaction: AnyTransaction | None
    height: int = 0
    failure: str = ""
    rebuilt: bool = False
    fee: int = 0
    in_pool: bool = False
    queued: bool = False
    last_sent: float = float("-inf")
    refusals: int = 0
    refused: bool = False
    refused_since: float | None = None
    message: str = _UNANSWERED

    @property
    def owed(self) -> int:
        """What the account has to pay for it, unless the node counts it already."""
        return 0 if self.height or self.in_pool else self.fee

    @property
    def record(self) -> PendingRecord:
        """What the database has to know."""
        return PendingRecord(self.created, self.height, self.failure, self.rebuilt, self.fee)


class Correction(msgspec.Struct, frozen=True):
    """What to do about an execution whose outcome on the chain is not what was counted: to take it
    back, or (``stands``) to count it again. ``responsible`` are the accounts because of which it
    was not mined; ``None`` if it failed on the chain.
    """

    stands: bool
    responsible: tuple[Address, ...] | None = None


class Settlement:
    """All transactions that are not irreversibly on the chain. Use from one event loop."""

    def __init__(
        self,
        node: NodeClient,
        database: OrdersDatabase,
        window: Window,
        session: Session,
        address: Address,
    ) -> None:
        """``window`` is the network's, ``address`` the account that sends the transactions."""
        self._address = address
        self._node = node
        self._database = database
        self._window = window
        self._session = session
        self.pending: dict[bytes, Sent] = {}
        # The same, grouped by the height at which they are on the chain; 0 if they are not.
        self._at: dict[int, dict[bytes, Sent]] = {0: {}}
        self._failed: dict[bytes, Sent] = {}
        self._rebuilt: dict[OrderPair, AnyTransaction] = {}
        # Anybody may still send these, as long as they can be mined.
        self._given_up: dict[bytes, Unsettled] = {}
        # Those of them that were mined after all, with their heights.
        self._mined_late: dict[bytes, int] = {}
        self.to_correct: dict[bytes, None] = {}
        """Transactions whose executions may need a correction, in order."""
        self.correction_due = asyncio.Event()
        """Set while there are such."""
        self.to_send: deque[bytes] = deque()
        self.wake = asyncio.Event()
        self.owed = 0
        """The fees of the transactions that neither the chain nor the node's pool has."""
        self.height = 0
        self.final = 0
        """The height of the highest block that no fork replaces."""
        self.rollbacks = 0
        self._found: dict[bytes, int] = {}
        self.found = asyncio.Event()
        """Set while ``take_found`` has something to return."""
        self.is_active = False
        """Whether transactions are sent, not only recorded."""

    @property
    def off_chain(self) -> dict[bytes, Sent]:
        """The transactions that are not on the chain, by their ids."""
        return self._at[0]

    def outstanding(self, transaction_id: bytes) -> AnyTransaction | None:
        """A transaction of ours that should be on the chain, but is not."""
        sent = self.off_chain.get(transaction_id)
        if sent is None:
            return None
        return sent.transaction or self._database.transaction(transaction_id)

    def unsettled(self, limit: int) -> list[Unsettled]:
        """Up to ``limit`` executions whose transactions the chain has not executed, and which are
        not in the node's pool: first those that were given up, then those that failed. Executions
        that were taken back are not among them.
        """
        found = list(islice(self._database.given_up.values(), limit))
        for transaction_id, sent in self._failed.items():
            if len(found) >= limit:
                break
            failed = self._database.transaction(transaction_id)
            if failed is not None:
                found.append(described(failed, sent.message, given_up=False))
        for transaction_id, sent in self.off_chain.items():
            if len(found) >= limit:
                break
            transaction = None if sent.in_pool else self.outstanding(transaction_id)
            if transaction is not None:
                found.append(described(transaction, sent.message, given_up=False))
        return found

    def unsettled_counts(self) -> tuple[int, int]:
        """The numbers of unsettled executions that are waiting, and that were given up."""
        waiting = sum(not sent.in_pool for sent in self.off_chain.values())
        return waiting + len(self._failed), len(self._database.given_up)

    def deactivate(self) -> None:
        """Only record transactions: another matcher sends them, or none can yet."""
        self.is_active = False
        self.pending, self._at, self._failed, self._rebuilt = {}, {0: {}}, {}, {}
        self._given_up, self._mined_late = {}, {}
        self.to_correct.clear()
        self.correction_due.clear()
        self.owed = 0
        self.to_send.clear()
        self._found.clear()
        self.found.clear()

    def activate(self) -> None:
        """Start sending, beginning with the transactions that earlier runs or terms have left."""
        self.deactivate()
        # This completes those of the replay, before any counts as new.
        pending = self._database.pending()
        self.is_active = True
        for each in self._database.unsettled():
            if each.transaction_id is not None:
                self._given_up[each.transaction_id] = each
                self._note_due(each.transaction_id)
        for transaction_id, record in pending.items():
            sent = Sent(
                *(record.created, None, record.height), rebuilt=record.rebuilt, fee=record.fee
            )
            self._note_failure(transaction_id, sent, record.failure)
            self.watch(transaction_id, sent)
            if record.rebuilt:
                self._note_rebuilt(transaction_id)

    def _note_rebuilt(self, transaction_id: bytes) -> None:
        transaction = self.outstanding(transaction_id)
        if transaction is not None:
            self._rebuilt[order_ids(transaction)] = transaction

    def watch(self, transaction_id: bytes, sent: Sent) -> None:
        """Start tracking a transaction."""
        self.pending[transaction_id] = sent
        self._at.setdefault(sent.height, {})[transaction_id] = sent
        self.owed += sent.owed

    def unwatch(self, transaction_id: bytes) -> None:
        """Stop tracking a transaction."""
        sent = self.pending.pop(transaction_id, None)
        if sent is not None:
            self.owed -= sent.owed
            self._leave_height(transaction_id, sent)
            self._failed.pop(transaction_id, None)

    def _leave_height(self, transaction_id: bytes, sent: Sent) -> None:
        group = self._at[sent.height]
        del group[transaction_id]
        if not group and sent.height:
            del self._at[sent.height]

    def give_up(
        self, transaction: AnyTransaction, reason: str, responsible: Sequence[Address] = ()
    ) -> None:
        """Stop settling a transaction that is not on the chain, because of these accounts."""
        self.unwatch(transaction.id)
        self._database.settle(transaction.id)
        found = described(transaction, reason, given_up=True, responsible=tuple(responsible))
        self._given_up[transaction.id] = found
        self._database.put_unsettled(found)
        _log.error("the exchange %s is given up: %s", base58.encode(transaction.id), reason)
        self._session.given_up(transaction.id)
        self._note_due(transaction.id)

    # --- corrections ------------------------------------------------------------------------------

    def _note_due(self, transaction_id: bytes) -> None:
        if self.correction_of(transaction_id) is not None:
            self.to_correct[transaction_id] = None
            self.correction_due.set()

    def correction_of(self, transaction_id: bytes) -> Correction | None:
        """What to do about the execution of a transaction; ``None`` if it is as it was counted, or
        may still become so. A failure in the last block may be that of a fork.
        """
        sent = self.pending.get(transaction_id)
        if sent is not None:
            is_sure = sent.failure and 0 < sent.height < self.height
            return Correction(stands=False) if is_sure else None
        known = self._given_up.get(transaction_id)
        if known is None or known.responsible is None:
            return None
        if transaction_id in self._mined_late:
            return Correction(stands=True)
        return None if known.is_taken_back else Correction(False, known.responsible)

    def corrected(self, transaction_id: bytes, stands: bool) -> None:
        """The execution of a transaction was taken back, or counts (again). Another matcher of the
        account may have decided on it.
        """
        self.to_correct.pop(transaction_id, None)
        transaction = self._database.transaction(transaction_id)
        if transaction is None:
            return
        if stands:
            self._count_again(transaction)
            return
        known, sent = self._given_up.get(transaction_id), self.pending.get(transaction_id)
        message = _TAKEN_BACK if known is None else known.message
        responsible = () if known is None else known.responsible
        if sent is not None:
            message = sent.message
        self.unwatch(transaction_id)
        self._database.settle(transaction_id)
        found = described(
            transaction, message, given_up=True, responsible=responsible, is_taken_back=True
        )
        self._database.put_unsettled(found)
        if self.is_active:
            self._given_up[transaction_id] = found
        self._session.given_up(transaction_id)

    def _count_again(self, transaction: AnyTransaction) -> None:
        """Watch a transaction again that was mined after it was given up: a fork may drop it."""
        found = self._given_up.pop(transaction.id, None)
        self._database.put_unsettled(found or described(transaction, "", given_up=True), gone=True)
        self._database.watch_again(transaction.id, transaction.timestamp)
        if not self.is_active or transaction.id in self.pending:
            return
        height = self._mined_late.pop(transaction.id, 0)
        sent = Sent(transaction.timestamp, None, height, fee=transaction.fee)
        self.watch(transaction.id, sent)
        self._database.note_seen(transaction.id, sent.record)
        if not height:
            self.queue(transaction.id, sent)

    def _note_mined_late(self, known: Unsettled, height: int) -> None:
        """A transaction that was given up is on the chain."""
        assert known.transaction_id is not None, "it has a transaction"
        _log.warning(
            "the exchange %s was given up, but block %d has it",
            *(base58.encode(known.transaction_id), height),
        )
        if known.responsible is None:
            self._given_up.pop(known.transaction_id, None)
            self._database.put_unsettled(known, gone=True)
            return
        self._mined_late[known.transaction_id] = height
        self._note_due(known.transaction_id)

    async def forget_settled(self) -> None:
        """Drop transactions that another matcher has settled: those that are too old to be mined
        and deep in the chain. One that is only old may still have to be renewed. Raises
        ``NodeUnavailable``.
        """
        oldest = await self._node.now() - self._window.back_ms
        pending = self._database.pending().items()
        old = [transaction_id for transaction_id, record in pending if record.created < oldest]
        final = self.final_under((await self._node.status()).height)
        found = await self._node.inclusions(old)
        if not self.is_active:
            for transaction_id, inclusion in found.items():
                if 0 < inclusion.height <= final and not inclusion.failure:
                    self._database.settle(transaction_id)

    async def reconcile(self) -> None:
        """Query the state of all transactions and send the missing ones; raises
        ``NodeUnavailable``.
        """
        while True:
            before = self.rollbacks
            queried = list(self.pending)
            given_up = [each for each in self._database.unsettled() if each.transaction_id]
            found = await self._node.inclusions(
                [*queried, *(each.transaction_id or b"" for each in given_up)]
            )
            if before == self.rollbacks:
                break
            # The response may be outdated by a rollback meanwhile.
        async for transaction_id in in_slices(queried):
            sent = self.pending.get(transaction_id)
            if sent is None:
                continue
            inclusion = found.get(transaction_id, NOWHERE)
            if not sent.height:
                if not self.note_found(transaction_id, sent, inclusion) and not sent.rebuilt:
                    self.queue(transaction_id, sent)
            elif not 0 < inclusion.height <= self.height:
                self._lose(transaction_id, sent)
            elif (sent.height, sent.failure) != (inclusion.height, inclusion.failure):
                self.note_inclusion(transaction_id, sent, inclusion)
        for each in given_up:
            inclusion = found.get(each.transaction_id or b"", NOWHERE)
            if 0 < inclusion.height <= self.height and not inclusion.failure:
                self._note_mined_late(each, inclusion.height)
        await self._find_earlier()
        await self._forget_final()

    async def _find_earlier(self) -> None:
        """Search the chain for transactions that an earlier run, or another matcher, has sent for
        the executions whose transactions were made again; raises ``NodeUnavailable``.
        """
        missing = {
            orders: transaction
            for orders, transaction in self._rebuilt.items()
            if transaction.id in self.off_chain
        }
        self._rebuilt = missing
        if not missing:
            return
        before = self.rollbacks
        since = min(self._window.settled_since(each.timestamp) for each in missing.values())
        found = await self._node.find_exchanges(self._address, missing.keys(), since)
        if before != self.rollbacks:
            raise NodeUnavailable("the chain has changed while it was searched for exchanges")
        self._rebuilt = {}
        for orders, transaction in missing.items():
            exchange = found.get(orders)
            sent = self.off_chain.get(transaction.id)
            if sent is None:
                # It was seen in the pool meanwhile.
                continue
            if exchange is not None and exchange.inclusion.height <= self.height:
                self.replace(transaction, exchange.transaction, exchange.inclusion, _OTHER)
                continue
            sent.rebuilt = False
            self._database.note_seen(transaction.id, sent.record)
            self.queue(transaction.id, sent)

    def replace(
        self, old: AnyTransaction, new: AnyTransaction, inclusion: Inclusion, why: str
    ) -> None:
        """Settle an execution with another transaction, which the chain has, or which is sent."""
        if new.id == old.id:
            self.note_found(old.id, self.pending[old.id], inclusion)
            return
        _log.warning(
            "the exchange %s %s: %s takes its place",
            *(base58.encode(old.id), why, base58.encode(new.id)),
        )
        self.unwatch(old.id)
        self._database.replace_transaction(old, new)
        self._session.given_up(old.id)
        sent = Sent(new.timestamp, new, fee=new.fee)
        self.watch(new.id, sent)
        if inclusion.height:
            self.note_inclusion(new.id, sent, inclusion)
        else:
            self._session.lost(new)
            self.queue(new.id, sent)

    def add(self, transaction: AnyTransaction) -> None:
        """Record a new transaction, and send it if active."""
        if transaction.id in self.pending:
            return
        self._database.put_transaction(transaction, rebuilt=not self.is_active)
        if self.is_active:
            sent = Sent(transaction.timestamp, transaction, fee=transaction.fee)
            self.watch(transaction.id, sent)
            self.queue(transaction.id, sent)

    async def follow(self, update: NodeUpdate) -> None:
        """Process an update of the node, with pauses for other tasks. Raises ``NodeUnavailable``;
        then it must be called again.
        """
        self.height = update.status.height
        if update.rolled_back_to is not None:
            self.rollbacks += 1
            if update.rolled_back_to < self.final:
                _log.error(
                    "the node rolled back blocks %d to %d, which no fork replaces: exchanges may "
                    "be unsettled; 'soliton matcher verify' lists them",
                    *(update.rolled_back_to + 1, self.final),
                )
                self.final = update.rolled_back_to
            await self._roll_back(update.rolled_back_to)
        for transaction in update.appeared:
            earlier = self._rebuilt.pop(order_ids(transaction), None) if self._rebuilt else None
            if earlier is not None and earlier.id in self.off_chain:
                self._note_sent_earlier(earlier, transaction)
            self._see_in_pool(transaction.id, present=True)
        # Before those that left the pool, so that mined ones are not sent again.
        async for transaction_id, height in in_slices(update.confirmed):
            sent = self.pending.get(transaction_id)
            failure = update.failures.get(transaction_id, "")
            if transaction_id in self._given_up and not failure:
                self._note_mined_late(self._given_up[transaction_id], height)
            if sent is not None and (sent.height, sent.failure) != (height, failure):
                self.note_inclusion(transaction_id, sent, Inclusion(height, failure))
        for transaction_id in update.vanished:
            self._see_in_pool(transaction_id, present=False)
        if update.missed and self.is_active:
            await self.reconcile()
        for transaction_id in self._failed:
            self._note_due(transaction_id)
        final = self.final_under(self.height, update.finalized)
        if final > self.final:
            self.final = final
            await self._forget_final()

    def final_under(self, height: int, reported: int = 0) -> int:
        """As ``final_height``, but a block that was final stays so: after a fork a node may report
        a lower one.
        """
        return max(self.final, final_height(height, reported))

    def _note_sent_earlier(self, old: AnyTransaction, new: AnyTransaction) -> None:
        """The pool has a transaction of an execution whose transaction was made again."""
        sent = self.off_chain[old.id]
        if new.id != old.id:
            self.replace(old, new, NOWHERE, _OTHER)
        else:
            sent.rebuilt = False
            self._database.note_seen(old.id, sent.record)

    def _see_in_pool(self, transaction_id: bytes, *, present: bool) -> None:
        sent = self.pending.get(transaction_id)
        if sent is not None:
            self.owed -= sent.owed
            sent.in_pool = present and not sent.height
            self.owed += sent.owed

    async def _roll_back(self, stayed: int) -> None:
        for transaction_id, height in list(self._mined_late.items()):
            if height > stayed:
                del self._mined_late[transaction_id]
        heights = sorted(height for height in self._at if height > stayed)
        lost = [each for height in heights for each in self._at[height].items()]
        async for transaction_id, sent in in_slices(lost):
            if sent.height > stayed:
                self._lose(transaction_id, sent)

    def _lose(self, transaction_id: bytes, sent: Sent) -> None:
        self.note_inclusion(transaction_id, sent, NOWHERE)
        transaction = self.outstanding(transaction_id)
        if transaction is not None:
            self._session.lost(transaction)
        self.queue(transaction_id, sent)

    def note_inclusion(self, transaction_id: bytes, sent: Sent, inclusion: Inclusion) -> None:
        """Record that a transaction is in a block now, or in none any more."""
        height, failure = inclusion.height, inclusion.failure
        self.owed -= sent.owed
        self._leave_height(transaction_id, sent)
        sent.height = height
        self._at.setdefault(height, {})[transaction_id] = sent
        sent.in_pool = False
        self.owed += sent.owed
        self._found.pop(transaction_id, None)
        if height:
            sent.transaction, sent.rebuilt = None, False
        if failure and failure != sent.failure:
            _log.error(
                "the exchange %s is in block %d, but was not executed (%s): nobody has received "
                "anything",
                *(base58.encode(transaction_id), height, failure),
            )
        self._note_failure(transaction_id, sent, failure)
        self._database.note_seen(transaction_id, sent.record)

    def _note_failure(self, transaction_id: bytes, sent: Sent, failure: str) -> None:
        sent.failure = failure
        self._failed.pop(transaction_id, None)
        if failure:
            sent.message = _failed_in(Inclusion(sent.height, failure))
            self._failed[transaction_id] = sent

    def note_found(self, transaction_id: bytes, sent: Sent, inclusion: Inclusion) -> bool:
        """Record what the node reported about a transaction on request. Returns whether the report
        was usable: the transaction is on the chain.

        Blocks above the last update's are ignored: they may be rolled back without notice, since
        their arrival was not reported yet. An update will report their transactions.
        """
        if not 0 < inclusion.height <= self.height:
            return False
        self.note_inclusion(transaction_id, sent, inclusion)
        self._found[transaction_id] = inclusion.height
        self.found.set()
        return True

    def take_found(self) -> tuple[tuple[bytes, int], ...]:
        """The transactions found on the chain by request, as ``NodeUpdate.confirmed``."""
        found, self._found = self._found, {}
        self.found.clear()
        return tuple(found.items())

    async def _forget_final(self) -> None:
        heights = [height for height in self._at if 0 < height <= self.final]
        gone = [each for height in heights for each in self._at[height].items()]
        async for transaction_id, sent in in_slices(gone):
            # One that failed is waited for until its execution is taken back.
            if 0 < sent.height <= self.final and not sent.failure:
                self.unwatch(transaction_id)
                self._database.settle(transaction_id)

    def queue(self, transaction_id: bytes, sent: Sent) -> None:
        """Send a transaction as soon as possible, unless the chain must be searched before."""
        if not sent.queued and not sent.rebuilt:
            sent.queued = True
            self.to_send.append(transaction_id)
            self.wake.set()


def _failed_in(inclusion: Inclusion) -> str:
    return f"block {inclusion.height} has it, but it was not executed: {inclusion.failure}"


def described(
    transaction: AnyTransaction,
    message: str,
    *,
    given_up: bool,
    responsible: tuple[Address, ...] | None = None,
    is_taken_back: bool = False,
) -> Unsettled:
    """The record of an exchange that the chain has not executed."""
    body = transaction.payload
    assert isinstance(body, Exchange), "only exchanges are settled"
    return Unsettled(
        pair=pair_of(body.order1),
        amount=body.amount,
        buy_order_id=body.buy_order.id,
        sell_order_id=body.sell_order.id,
        transaction_id=transaction.id,
        timestamp=transaction.timestamp,
        given_up=given_up,
        message=message,
        responsible=responsible,
        is_taken_back=is_taken_back,
    )
