"""Sending exchange transactions to the node, and renewing those that are too late.

What lives here: the jobs that send, and the handling of the node's responses. What does not: the
state of each transaction, and following the chain (``settlement``).

Source: wavesplatform/matcher
``dex/src/main/scala/com/wavesplatform/dex/actors/tx/ExchangeTransactionBroadcastActor.scala``.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from typing import Final

from soliton.chain.addresses import Address, address_text, from_public_key
from soliton.chain.transactions.exchange import Exchange
from soliton.chain.transactions.model import AnyTransaction
from soliton.crypto import base58
from soliton.crypto.keys import KeyPair
from soliton.matcher.defaults import after_another, without_funds
from soliton.matcher.errors import DatabaseProblem, NodeUnavailable
from soliton.matcher.journal.errors import JournalProblem
from soliton.matcher.log_throttle import throttled
from soliton.matcher.node_client import Broadcast, BroadcastAnswer, NodeClient
from soliton.matcher.orders_db import OrdersDatabase
from soliton.matcher.pending_outflows import Decimals
from soliton.matcher.renewal import Window, expires, order_ids, renewed
from soliton.matcher.session import Session
from soliton.matcher.settings import Settlement as SettlementSettings
from soliton.matcher.settlement import NOWHERE, Sent, Settlement

MAX_PAUSE: Final = 8
"""The maximum pause, in intervals, between attempts to send a transaction that is rejected."""
SHOWN_PAUSE: Final = 10
"""The pause, in intervals, before a transaction in the node's pool is sent again, in case the
notice that it left the pool was lost.
"""
_PAUSE_SECONDS: Final = 1.0
"""The pause in sending when the node is unreachable."""

_log = throttled(logging.getLogger(__name__))


class Broadcasting:
    """Use from one event loop."""

    def __init__(
        self,
        state: Settlement,
        node: NodeClient,
        database: OrdersDatabase,
        settings: SettlementSettings,
        window: Window,
        account: KeyPair,
        session: Session,
        *,
        chain_id: int,
        decimals: Decimals,
        clock: Callable[[], int],
    ) -> None:
        """``window`` is the network's, ``account`` the matcher's. ``clock`` tells milliseconds."""
        self._decimals = decimals
        self._clock = clock
        self._state = state
        self._node = node
        self._database = database
        self._settings = settings
        self._window = window
        self._account = account
        self._address = from_public_key(account.public_key, chain_id)
        self._session = session
        self._failures: dict[Broadcast, int] = {}

    def tasks(self) -> list[Coroutine[None, None, None]]:
        """The jobs that run while the matcher serves."""
        parallel = min(self._settings.parallelism, self._node.parallel_broadcasts)
        senders = [self._send_all() for _ in range(parallel)]
        return [*senders, self._send_again()]

    async def _send_all(self) -> None:
        while True:
            await self._session.trusted.wait()
            if not self._state.to_send:
                self._state.wake.clear()
                await self._state.wake.wait()
                continue
            transaction_id = self._state.to_send.popleft()
            sent = self._state.pending.get(transaction_id)
            if sent is not None:
                sent.queued = False
                if not sent.height and (not sent.in_pool or self._is_due(sent)):
                    await self._send(transaction_id, sent)
            # Waiting orders are more urgent than transactions.
            await asyncio.sleep(0)

    async def _send(self, transaction_id: bytes, sent: Sent) -> None:
        transaction = sent.transaction or self._database.transaction(transaction_id)
        if transaction is None:
            self._state.unwatch(transaction_id)
            self._database.settle(transaction_id)
            _log.error("the exchange %s is not in the database", base58.encode(transaction_id))
            return
        sent.last_sent = asyncio.get_running_loop().time()
        try:
            # Another run must know this transaction, whatever its settings are: it would send
            # another one for the same execution.
            await self._database.write_transaction(transaction_id)
        except (DatabaseProblem, JournalProblem) as error:
            self._note_failure(BroadcastAnswer(Broadcast.LATER, str(error)), sent)
            await asyncio.sleep(_PAUSE_SECONDS)
            return
        try:
            answer = await self._node.broadcast(transaction)
        except NodeUnavailable as error:
            self._note_failure(BroadcastAnswer(Broadcast.LATER, str(error)), sent)
            await asyncio.sleep(_PAUSE_SECONDS)
            return
        if sent.height or transaction_id not in self._state.pending:
            return
        match answer.result:
            case Broadcast.UNCONFIRMED:
                sent.transaction = None
                sent.refusals, sent.refused, sent.message = 0, False, "the node has taken it"
                sent.refused_since = None
                self._failures.clear()
            case Broadcast.CONFIRMED:
                await self._look_up(transaction_id, sent)
            case Broadcast.FINAL:
                if await self._is_nowhere(transaction_id, sent):
                    self._state.give_up(transaction, answer.message)
            case Broadcast.LATER | Broadcast.OPERATOR:
                # A proxy may say so after the node has accepted it.
                if await self._is_nowhere(transaction_id, sent):
                    self._note_failure(answer, sent)
            case Broadcast.NOT_YET:
                self._note_failure(answer, sent)
                await self._end_if_overdue(transaction, sent)
            case _:
                self._note_failure(answer, sent)

    async def _end_if_overdue(self, transaction: AnyTransaction, sent: Sent) -> None:
        """Give up a transaction that the node has rejected for its content for too long, and note
        a default of the trader who lacks the funds for it.
        """
        now = asyncio.get_running_loop().time()
        if sent.refused_since is None:
            sent.refused_since = now
        if now - sent.refused_since < self._settings.max_pending_ms / 1000:
            return
        try:
            own = await self._node.account(self._address, (None,))
            if own.balances.get(None, 0) - own.leased_out < transaction.fee:
                # It waits for coins of the matcher: no trader is to blame.
                return
            lacking = await without_funds(transaction, self._node, self._decimals)
        except NodeUnavailable:
            return
        if not await self._is_nowhere(transaction.id, sent):
            return
        self._rate(lacking)
        self._state.give_up(
            transaction,
            f"the node has rejected it for too long, at last: {sent.message}",
            lacking,
        )

    def _rate(self, lacking: Sequence[Address]) -> None:
        """Note a default of each of these accounts."""
        for trader in lacking:
            known = self._database.default_of(trader)
            pause_ms = self._settings.max_pending_ms
            default = after_another(known, self._clock(), pause_ms)
            self._database.put_default(trader, default)
            _log.warning(
                "the account %s had no funds for an execution (%d times): its orders are rejected "
                "for %d s",
                *(address_text(trader), default.count, (default.until - default.last) // 1_000),
            )

    def _note_failure(self, answer: BroadcastAnswer, sent: Sent) -> None:
        """Record a failure. Only the 1st, 2nd, 4th, 8th... of each kind are logged, since thousands
        of transactions may fail for the same reason.
        """
        sent.message = answer.message
        if answer.result is not Broadcast.LATER:
            sent.refusals += 1
        if answer.result is not Broadcast.TOO_LATE:
            sent.refused = answer.result is Broadcast.NOT_YET
        count = self._failures[answer.result] = self._failures.get(answer.result, 0) + 1
        if count & (count - 1) == 0:
            level = logging.ERROR if answer.result is Broadcast.OPERATOR else logging.WARNING
            _log.log(
                level,
                "the node rejects an exchange: %s (%d times; %d are waiting): %s",
                *(answer.result.value, count, len(self._state.off_chain), answer.message),
            )

    async def _is_nowhere(self, transaction_id: bytes, sent: Sent) -> bool:
        """Whether the node has a transaction neither on the chain nor in its pool, as far as it
        answers: only then it counts as rejected.
        """
        before = self._state.rollbacks
        try:
            found = (await self._node.inclusions([transaction_id])).get(transaction_id)
        except NodeUnavailable:
            return False
        if transaction_id not in self._state.pending or sent.height:
            return False
        if found is None:
            return not sent.in_pool
        sent.refusals, sent.refused, sent.message = 0, False, "the node has it"
        sent.refused_since = None
        if found.height and before == self._state.rollbacks:
            self._state.note_found(transaction_id, sent, found)
        return False

    async def _look_up(self, transaction_id: bytes, sent: Sent) -> None:
        """Find the height of a transaction that the node reports as mined."""
        before = self._state.rollbacks
        try:
            found = await self._node.inclusions([transaction_id])
        except NodeUnavailable:
            return
        if not sent.height and before == self._state.rollbacks:
            self._state.note_found(transaction_id, sent, found.get(transaction_id, NOWHERE))

    async def _send_again(self) -> None:
        """Queue transactions that are not mined again, and renew those that are too late."""
        interval = self._settings.interval_ms / 1000
        while True:
            await asyncio.sleep(interval)
            await self._session.trusted.wait()
            for transaction_id, sent in self._state.off_chain.items():
                if self._is_due(sent):
                    self._state.queue(transaction_id, sent)
            try:
                await self._renew_late()
            except NodeUnavailable as error:
                _log.info("exchanges that are too late stay as they are: %s", error)

    def _is_due(self, sent: Sent) -> bool:
        intervals = (
            SHOWN_PAUSE if sent.in_pool else min(MAX_PAUSE, 1 << min(sent.refusals // 2, 10))
        )
        pause = intervals * self._settings.interval_ms / 1000
        return asyncio.get_running_loop().time() - sent.last_sent >= pause

    # --- those that are too late ------------------------------------------------------------------

    async def _renew_late(self) -> None:
        """Renew the transactions that can no longer be mined; raises ``NodeUnavailable``."""
        waiting = [
            (transaction_id, sent)
            for transaction_id, sent in self._state.off_chain.items()
            if not sent.in_pool
        ]
        if not waiting:
            return
        irreversible = self._state.final_under((await self._node.status()).height)
        if irreversible < 1:
            return
        final = await self._node.block_time(irreversible)
        for transaction_id, sent in waiting:
            if self._window.is_over(sent.created, final):
                await self._renew(transaction_id, final)

    async def _renew(self, transaction_id: bytes, final: int) -> None:
        """``final`` is the time of an irreversible block, above which the old one is not mined."""
        old = self._state.outstanding(transaction_id)
        if old is None or not order_ids(old):
            return
        body = old.payload
        assert isinstance(body, Exchange), "it has orders"
        since = self._window.settled_since(old.timestamp)
        trader = from_public_key(body.order1.sender_public_key, old.chain_id)
        before = self._state.rollbacks
        orders = order_ids(old)
        found = (await self._node.find_exchanges(trader, [orders], since)).get(orders)
        sent = self._state.off_chain.get(transaction_id)
        if sent is None or sent.in_pool or before != self._state.rollbacks:
            return
        timestamp = self._window.next_time(old.timestamp, final)
        if found is not None:
            new, inclusion = found.transaction, found.inclusion
            inclusion = inclusion if inclusion.height <= self._state.height else NOWHERE
        elif sent.refused:
            lacking = await without_funds(old, self._node, self._decimals)
            if transaction_id in self._state.off_chain and before == self._state.rollbacks:
                self._rate(lacking)
                reason = f"its time is over, and the node said: {sent.message}"
                self._state.give_up(old, reason, lacking)
            return
        elif timestamp >= expires(old):
            self._state.give_up(old, "its time is over, and its orders have expired")
            return
        else:
            new, inclusion = renewed(old, timestamp, self._account), NOWHERE
        self._state.replace(old, new, inclusion, "was too late")
