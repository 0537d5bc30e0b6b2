"""Verifying the settlement: every execution has its transaction, and every transaction is on the
chain or in the node's pool.

What lives here: comparing executions with the orders database and the node. What does not: whether
executions are correct (``audit``).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Final

import msgspec

from soliton.chain.transactions.exchange import Exchange
from soliton.chain.transactions.model import AnyTransaction
from soliton.crypto import base58
from soliton.matcher.node_client import NodeClient
from soliton.matcher.orders_db import OrdersDatabase
from soliton.matcher.records import Place
from soliton.matching.events import ExecutionCorrected, OrderExecuted
from soliton.matching.pairs import AssetPair

BATCH: Final = 100
"""Transactions looked up at a time."""


class Fault(msgspec.Struct, frozen=True):
    """An execution that is not settled: the offset of its command, its index among the command's
    executions, the amount (in the pair's amount asset), and the reason.
    """

    offset: int
    index: int
    pair: AssetPair
    amount: int
    why: str


class SettlementCounts(msgspec.Struct):
    """Counts by result. ``waiting`` are in the node's pool."""

    confirmed: int = 0
    """On the chain, and executed."""
    final: int = 0
    """Those of them in blocks that no fork replaces."""
    waiting: int = 0
    taken_back: int = 0
    """Not executed on the chain, and taken back."""
    unknown: int = 0
    """Executions after the last command in the orders database."""


class _Lookup(msgspec.Struct):
    """An execution whose transaction is to be looked up on the node. ``is_taken_back`` is true if
    the database has it as one that does not count.
    """

    offset: int
    index: int
    event: OrderExecuted
    transaction_id: bytes
    is_taken_back: bool = False


class SettlementAudit(msgspec.Struct):
    """``take`` each command's executions and ``correct`` its corrections, in order, then
    ``finish``. Without a node, only the existence of the transactions is checked. ``find_final``
    asks the node for the height of the last block that no fork replaces.
    """

    database: OrdersDatabase
    node: NodeClient | None
    find_final: Callable[[], Awaitable[int]] | None = None
    counts: SettlementCounts = msgspec.field(default_factory=SettlementCounts)
    faults: list[Fault] = []
    """All unsettled executions, in the order of the journal."""
    _lookups: list[_Lookup] = []
    _in_journal: dict[Place, Fault] = {}
    _in_database: dict[Place, Fault] = {}

    def correct(self, offset: int, event: ExecutionCorrected) -> None:
        """Note a correction by the command at an offset."""
        if offset > self.database.offset:
            return
        place = event.execution_offset, event.index
        if event.stands:
            self._in_journal.pop(place, None)
        else:
            why = "the journal takes it back, the database does not"
            self._in_journal[place] = Fault(*place, event.taker.pair, event.amount, why)

    async def take(self, offset: int, executions: Sequence[OrderExecuted]) -> None:
        """Check the executions of the command at an offset. Raises ``NodeUnavailable``."""
        if offset > self.database.offset:
            # The database is updated from the journal when the matcher starts.
            self.counts.unknown += len(executions)
            return
        for index, event in enumerate(executions):
            found = self._transaction_of(offset, index, event)
            if isinstance(found, bytes):
                is_taken_back = (offset, index) in self._in_database
                self._lookups.append(_Lookup(offset, index, event, found, is_taken_back))
            else:
                self._note(offset, index, event, found)
        if len(self._lookups) >= BATCH:
            await self._look_up()

    async def finish(self) -> None:
        """Look up the remaining transactions. Raises ``NodeUnavailable``."""
        await self._look_up()
        for place, fault in self._in_journal.items():
            if self.database.trade(fault.pair, *place, taken_back=True) is None:
                self.faults.append(fault)
        self.faults += [
            fault for place, fault in self._in_database.items() if place not in self._in_journal
        ]
        self.faults.sort(key=lambda each: (each.offset, each.index))

    def _note(self, offset: int, index: int, event: OrderExecuted, why: str) -> None:
        self.faults.append(Fault(offset, index, event.taker.pair, event.amount, why))

    def _transaction_of(self, offset: int, index: int, event: OrderExecuted) -> bytes | str:
        """The id of an execution's transaction, or why there is none."""
        pair = event.taker.pair
        trade = self.database.trade(pair, offset, index)
        if trade is None:
            trade = self.database.trade(pair, offset, index, taken_back=True)
            if trade is None:
                return "it is not in the database"
            why = "the database takes it back, the journal does not"
            self._in_database[offset, index] = Fault(offset, index, pair, event.amount, why)
        recorded = (trade.taker_order_id, trade.maker_order_id, trade.amount, trade.price)
        if recorded != (event.taker.id, event.maker.id, event.amount, event.price):
            return "it is another in the database"
        if trade.transaction_id is None:
            return "no transaction could be made of it"
        transaction = self.database.transaction(trade.transaction_id)
        if transaction is None or transaction.id != trade.transaction_id:
            return "its transaction is missing"
        return (
            trade.transaction_id if _settles(transaction, event) else "its transaction is another"
        )

    async def _look_up(self) -> None:
        lookups, self._lookups = self._lookups, []
        if self.node is None or not lookups:
            return
        found = await self.node.inclusions([each.transaction_id for each in lookups])
        final = 0 if self.find_final is None else await self.find_final()
        pending = self.database.pending()
        for each in lookups:
            inclusion = found.get(each.transaction_id)
            is_executed = inclusion is not None and inclusion.height and not inclusion.failure
            if each.is_taken_back and not is_executed:
                self.counts.taken_back += 1
                continue
            if inclusion is None:
                waits = each.transaction_id in pending
                why = "waits to be sent" if waits else "was given up"
            elif inclusion.failure:
                why = f"is in block {inclusion.height}, but not executed: {inclusion.failure}"
            elif each.is_taken_back:
                why = f"is in block {inclusion.height}, but was taken back"
            elif inclusion.height:
                self.counts.confirmed += 1
                self.counts.final += inclusion.height <= final
                continue
            else:
                self.counts.waiting += 1
                continue
            name = base58.encode(each.transaction_id)
            self._note(each.offset, each.index, each.event, f"transaction {name} {why}")


def _settles(transaction: AnyTransaction, event: OrderExecuted) -> bool:
    """Whether a transaction settles an execution."""
    body = transaction.payload
    if not isinstance(body, Exchange):
        return False
    same_orders = {body.order1.id, body.order2.id} == {event.taker.id, event.maker.id}
    fees = (body.buy_matcher_fee, body.sell_matcher_fee)
    return same_orders and body.amount == event.amount and fees == (event.buy_fee, event.sell_fee)
