"""Checking that what was executed is settled: every execution has its transaction, and every
transaction is on the chain or still on its way there.

What lives here: the comparison of executions with the orders database and with the node. What does
not: whether executions are right (``audit``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from soliton.chain.orders import Side
from soliton.chain.transactions.exchange import Exchange
from soliton.chain.transactions.model import AnyTransaction
from soliton.matcher.audit import SETTLEMENT, RuleBroken
from soliton.matcher.node_client import NodeClient
from soliton.matcher.orders_db import OrdersDatabase
from soliton.matching.events import OrderExecuted

QUESTIONS_AT_ONCE: Final = 100


@dataclass(slots=True)
class SettlementCounts:
    """What was found."""

    confirmed: int = 0
    waiting: int = 0
    unknown: int = 0
    """Executions behind the last command that the orders database knows."""


class SettlementAudit:
    """Feed it the executions of each command in order."""

    def __init__(self, database: OrdersDatabase, node: NodeClient | None) -> None:
        """Without a node it is enough that every execution has its transaction."""
        self.counts = SettlementCounts()
        self._database = database
        self._node = node
        self._pending = database.pending()
        self._asked: list[tuple[int, bytes]] = []

    async def take(self, offset: int, executions: Sequence[OrderExecuted]) -> None:
        """The executions of the command at an offset. Raises ``RuleBroken``, and
        ``NodeUnavailable``.
        """
        if offset > self._database.offset:
            # Written when the matcher starts again; the journal has it.
            self.counts.unknown += len(executions)
            return
        for index, event in enumerate(executions):
            self._asked.append((offset, self._transaction_of(offset, index, event)))
        if len(self._asked) >= QUESTIONS_AT_ONCE:
            await self._ask()

    async def finish(self) -> None:
        """Ask about the last ones. Raises as ``take``."""
        await self._ask()

    def _transaction_of(self, offset: int, index: int, event: OrderExecuted) -> bytes:
        trade = self._database.trade(event.taker.pair, offset, index)
        if trade is None:
            raise RuleBroken(SETTLEMENT, offset, f"execution {index} is not in the database")
        told = (trade.taker_order_id, trade.maker_order_id, trade.amount, trade.price)
        if told != (event.taker.id, event.maker.id, event.amount, event.price):
            raise RuleBroken(SETTLEMENT, offset, f"execution {index} is another in the database")
        if trade.transaction_id is None:
            raise RuleBroken(SETTLEMENT, offset, f"execution {index} has no transaction")
        transaction = self._database.transaction(trade.transaction_id)
        if transaction is None or transaction.id != trade.transaction_id:
            raise RuleBroken(SETTLEMENT, offset, f"the transaction of execution {index} is missing")
        _compare(offset, event, transaction)
        return trade.transaction_id

    async def _ask(self) -> None:
        asked, self._asked = self._asked, []
        if self._node is None or not asked:
            return
        heights = await self._node.confirmed_heights([each for _, each in asked])
        for offset, transaction_id in asked:
            if transaction_id in heights:
                self.counts.confirmed += 1
            elif transaction_id in self._pending:
                self.counts.waiting += 1
            else:
                raise RuleBroken(
                    *(SETTLEMENT, offset),
                    f"transaction {transaction_id.hex()} was given up and is not on the chain",
                )


def _compare(offset: int, event: OrderExecuted, transaction: AnyTransaction) -> None:
    body = transaction.payload
    if not isinstance(body, Exchange):
        raise RuleBroken(SETTLEMENT, offset, "the transaction is no exchange")
    buyer, seller = event.taker, event.maker
    if event.taker.order.side is Side.SELL:
        buyer, seller = seller, buyer
    told = (body.order1.id, body.order2.id, body.amount)
    fees = (body.buy_matcher_fee, body.sell_matcher_fee)
    same_orders = set(told[:2]) == {buyer.id, seller.id} and body.amount == event.amount
    if not same_orders or fees != (event.buy_fee, event.sell_fee):
        raise RuleBroken(SETTLEMENT, offset, "the transaction says something else")
