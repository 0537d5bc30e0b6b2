"""Checking that what was executed is settled: every execution has its transaction, and every
transaction is on the chain, or in the node's pool on its way there.

What lives here: the comparison of executions with the orders database and with the node. What does
not: whether executions are right (``audit``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from soliton.chain.transactions.exchange import Exchange
from soliton.chain.transactions.model import AnyTransaction
from soliton.crypto import base58
from soliton.matcher.node_client import NodeClient
from soliton.matcher.orders_db import OrdersDatabase
from soliton.matching.events import OrderExecuted
from soliton.matching.pairs import AssetPair

QUESTIONS_AT_ONCE: Final = 100


@dataclass(frozen=True, slots=True)
class Fault:
    """An execution that is not settled: the offset of its command, its number among that command's
    executions, what should have changed hands (of the pair's amount asset), and why it did not.
    """

    offset: int
    index: int
    pair: AssetPair
    amount: int
    why: str


@dataclass(slots=True)
class SettlementCounts:
    """What was found. ``waiting`` are in the node's pool."""

    confirmed: int = 0
    waiting: int = 0
    unknown: int = 0
    """Executions behind the last command that the orders database knows."""


@dataclass(slots=True)
class _Question:
    """An execution whose transaction the node is asked about."""

    offset: int
    index: int
    event: OrderExecuted
    transaction_id: bytes


@dataclass(slots=True)
class SettlementAudit:
    """Feed it the executions of each command in order, then ``finish``. Without a node it is enough
    that every execution has its transaction.
    """

    database: OrdersDatabase
    node: NodeClient | None
    counts: SettlementCounts = field(default_factory=SettlementCounts)
    faults: list[Fault] = field(default_factory=list)
    """All that is not settled, in the order of the journal."""
    _asked: list[_Question] = field(default_factory=list)

    async def take(self, offset: int, executions: Sequence[OrderExecuted]) -> None:
        """The executions of the command at an offset. Raises ``NodeUnavailable``."""
        if offset > self.database.offset:
            # Written when the matcher starts again; the journal has it.
            self.counts.unknown += len(executions)
            return
        for index, event in enumerate(executions):
            found = self._transaction_of(offset, index, event)
            if isinstance(found, bytes):
                self._asked.append(_Question(offset, index, event, found))
            else:
                self._note(offset, index, event, found)
        if len(self._asked) >= QUESTIONS_AT_ONCE:
            await self._ask()

    async def finish(self) -> None:
        """Ask about the last ones. Raises as ``take``."""
        await self._ask()
        self.faults.sort(key=lambda each: (each.offset, each.index))

    def _note(self, offset: int, index: int, event: OrderExecuted, why: str) -> None:
        self.faults.append(Fault(offset, index, event.taker.pair, event.amount, why))

    def _transaction_of(self, offset: int, index: int, event: OrderExecuted) -> bytes | str:
        """The id of an execution's transaction, or what is wrong with it."""
        trade = self.database.trade(event.taker.pair, offset, index)
        if trade is None:
            return "it is not in the database"
        told = (trade.taker_order_id, trade.maker_order_id, trade.amount, trade.price)
        if told != (event.taker.id, event.maker.id, event.amount, event.price):
            return "it is another in the database"
        if trade.transaction_id is None:
            return "no transaction could be made of it"
        transaction = self.database.transaction(trade.transaction_id)
        if transaction is None or transaction.id != trade.transaction_id:
            return "its transaction is missing"
        return trade.transaction_id if _says(transaction, event) else "its transaction is another"

    async def _ask(self) -> None:
        asked, self._asked = self._asked, []
        if self.node is None or not asked:
            return
        heights = await self.node.heights([each.transaction_id for each in asked])
        pending = self.database.pending()
        for each in asked:
            height = heights.get(each.transaction_id)
            if height:
                self.counts.confirmed += 1
            elif height == 0:
                self.counts.waiting += 1
            else:
                waits = each.transaction_id in pending
                why = "waits to be sent" if waits else "was given up"
                name = base58.encode(each.transaction_id)
                self._note(each.offset, each.index, each.event, f"transaction {name} {why}")


def _says(transaction: AnyTransaction, event: OrderExecuted) -> bool:
    """Whether a transaction settles an execution."""
    body = transaction.payload
    if not isinstance(body, Exchange):
        return False
    same_orders = {body.order1.id, body.order2.id} == {event.taker.id, event.maker.id}
    fees = (body.buy_matcher_fee, body.sell_matcher_fee)
    return same_orders and body.amount == event.amount and fees == (event.buy_fee, event.sell_fee)
