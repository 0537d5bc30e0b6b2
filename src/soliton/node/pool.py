"""The pool of unconfirmed transactions (UTX): what is valid now and waits for a block.

Every transaction is checked against the chain *and* everything that came before it in the pool, so
that the pool can become a block as it stands. After each block the rest is checked again; what no
longer holds is dropped.

What lives here: adding, looking up, re-checking, limits. What does not: choosing the time of a
block (``miner``), the rules of transactions (``soliton.ledger``).

Source: wavesplatform/Waves ``node/src/main/scala/com/wavesplatform/utx/UtxPoolImpl.scala``.
"""

from __future__ import annotations

import heapq
import logging
from collections.abc import Callable, Iterable

import msgspec

from soliton.chain.blocks import Block
from soliton.chain.transactions.model import AnyTransaction
from soliton.errors import InputError
from soliton.ledger.context import Context
from soliton.ledger.errors import LedgerError
from soliton.ledger.state import Overlay, State
from soliton.ledger.transactions import apply_transaction, refuse_failure
from soliton.node.chain import Chain

_log = logging.getLogger(__name__)


class PoolFull(LedgerError):
    """The pool is at a limit; the transaction may come again later."""


class UtxPool:
    """Unconfirmed transactions in the order of their arrival."""

    __slots__ = (
        "_bytes",
        "_chain",
        "_clock",
        "_context_after",
        "_max_bytes",
        "_max_count",
        "_overlay",
        "_transactions",
    )

    def __init__(
        self, chain: Chain, clock: Callable[[], int], max_count: int, max_bytes: int
    ) -> None:
        """``clock`` gives the time in ms; the limits are a count and a sum of signed bytes."""
        self._chain = chain
        self._clock = clock
        self._max_count = max_count
        self._max_bytes = max_bytes
        self._transactions: dict[bytes, AnyTransaction] = {}
        self._bytes = 0
        self._context_after: tuple[Block, Context] | None = None
        self._overlay = Overlay(chain.store, chain.height + 1)

    def __len__(self) -> int:
        return len(self._transactions)

    def __contains__(self, transaction_id: bytes) -> bool:
        return transaction_id in self._transactions

    def get(self, transaction_id: bytes) -> AnyTransaction | None:
        """The pool's transaction with this id."""
        return self._transactions.get(transaction_id)

    def transactions(self) -> list[AnyTransaction]:
        """All transactions, the oldest first."""
        return list(self._transactions.values())

    def in_mining_order(self) -> list[AnyTransaction]:
        """All transactions in the order in which a block takes them.

        Higher fees per byte first, but what one account has sent stays in the order of arrival:
        later transactions may need what earlier ones brought.
        """
        by_sender: dict[bytes, list[AnyTransaction]] = {}
        for transaction in self._transactions.values():
            by_sender.setdefault(transaction.sender_public_key, []).append(transaction)
        if len(by_sender) == 1:
            return self.transactions()
        queues = [
            (-_fee_rate(queue[0]), number, 0, queue)
            for number, queue in enumerate(by_sender.values())
        ]
        heapq.heapify(queues)
        ordered = []
        while queues:
            _, number, index, queue = heapq.heappop(queues)
            ordered.append(queue[index])
            index += 1
            if index < len(queue):
                heapq.heappush(queues, (-_fee_rate(queue[index]), number, index, queue))
        return ordered

    def state(self) -> State:
        """The state as if the whole pool were in the next block."""
        return self._overlay

    def add(
        self,
        transaction: AnyTransaction,
        *,
        verify_signature: bool = True,
        may_fail: bool = True,
    ) -> bool:
        """Check and keep a transaction; ``False`` when the pool has it already.

        One that would fail at the cost of its fee is refused unless it ``may_fail``. Raises
        ``PoolFull`` or what ``apply_transaction`` raises.
        """
        if transaction.id in self._transactions:
            return False
        size = len(transaction.body)
        if len(self._transactions) >= self._max_count or self._bytes + size > self._max_bytes:
            raise PoolFull("Transaction pool size limit is reached")
        self._apply(transaction, self._context(), verify_signature, may_fail)
        self._transactions[transaction.id] = transaction
        self._bytes += size
        return True

    def _apply(
        self, transaction: AnyTransaction, context: Context, verify: bool, may_fail: bool = True
    ) -> None:
        applied = apply_transaction(transaction, self._overlay, context, verify_signature=verify)
        if not may_fail:
            refuse_failure(applied)
        self._overlay.merge(applied.changes)

    def _context(self) -> Context:
        """The block after the last one, made now; all but the time is the same until that comes."""
        last = self._chain.last_block
        if self._context_after is None or self._context_after[0] is not last:
            self._context_after = last, self._context_on(last)
        return msgspec.structs.replace(self._context_after[1], timestamp=self._clock())

    def _context_on(self, last: Block) -> Context:
        height = self._chain.height + 1
        return Context(
            height,
            self._clock(),
            last.header.timestamp,
            self._chain.rules.at(height),
            self._chain.scripts,
            self._chain.view.block(self._chain.height),
            chain=self._chain.view,
        )

    def remove(self, transaction_ids: Iterable[bytes]) -> None:
        """Drop transactions that cannot be mined; call ``refresh`` afterwards."""
        for transaction_id in transaction_ids:
            removed = self._transactions.pop(transaction_id, None)
            if removed is not None:
                self._bytes -= len(removed.body)

    def refresh(self, mined: Iterable[bytes] = ()) -> None:
        """Follow the chain after a block or a rollback: forget what was mined, check the rest
        again.
        """
        self.remove(mined)
        remaining = self._transactions
        self._transactions = {}
        self._bytes = 0
        self._overlay = Overlay(self._chain.store, self._chain.height + 1)
        context = self._context()
        for transaction in remaining.values():
            try:
                self._apply(transaction, context, verify=False)
            except InputError as error:
                _log.info("dropped %s from the pool: %s", transaction.id.hex(), error)
            else:
                self._transactions[transaction.id] = transaction
                self._bytes += len(transaction.body)


def _fee_rate(transaction: AnyTransaction) -> float:
    """Wavelets per signed byte; a fee in an asset counts last: its worth is not known here."""
    if transaction.fee_asset_id is not None:
        return 0.0
    return transaction.fee / len(transaction.body)
