"""Taking back executions that the chain has not executed.

An exchange may fail on the chain (the script of an asset refuses it), or be given up because a
trader has moved the funds away. Then the journal gets a command that takes the execution back
(``CorrectExecution``), so that orders, trades and candles show what has happened, on every matcher
that follows the journal.

The order of the side that is not responsible goes on, if the other side alone is responsible; if
its owner has not cancelled it; if a new order like it would be accepted now; if its owner has the
funds; and if it has not returned ``MAX_RETURNS`` times already. All other orders end. Responsible
is who lacked the funds; where the script of an asset has refused, the side that spends this asset,
also as its fee. If both sides or neither are responsible, both orders end: they would only match
again.

What lives here: when an execution is corrected, and which orders go on. What does not: what happens
to books and orders (``soliton.matching.corrections``), and which exchanges are not executed
(``settlement``).
"""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from msgspec.structs import replace

from soliton.chain.addresses import Address, from_public_key
from soliton.chain.orders import Order
from soliton.chain.transactions.exchange import Exchange
from soliton.chain.transactions.model import AnyTransaction
from soliton.crypto import base58
from soliton.matcher.errors import NodeUnavailable
from soliton.matcher.exchanges import without_parameters
from soliton.matcher.log_throttle import throttled
from soliton.matcher.placing import Placing
from soliton.matcher.records import Trade
from soliton.matcher.replica import Replica
from soliton.matcher.settlement import Correction
from soliton.matching.commands import CorrectedSide, CorrectExecution
from soliton.matching.errors import MatcherError
from soliton.matching.model import ActiveOrder, OrderStatus
from soliton.matching.pairs import pair_of, received_asset, spent_asset

MAX_RETURNS: Final = 3
"""How often an order returns to its book. Each time costs the matcher a transaction fee."""
_RETRY_SECONDS: Final = 1.0

_log = throttled(logging.getLogger(__name__))


class Corrections:
    """Use from one event loop."""

    def __init__(self, replica: Replica, placing: Placing) -> None:
        self._replica = replica
        self._placing = placing
        self._settlement = replica.settlement
        self._database = replica.database
        self._engine = replica.engine

    async def run(self) -> None:
        """Correct executions as they become due, forever, one after the other: each correction has
        to know the state that the one before has left.
        """
        settlement = self._settlement
        while True:
            await settlement.correction_due.wait()
            settlement.correction_due.clear()
            for transaction_id in list(settlement.to_correct):
                try:
                    await self._correct(transaction_id)
                except (MatcherError, NodeUnavailable) as error:
                    _log.warning(
                        "the execution of %s is not corrected yet: %s",
                        *(base58.encode(transaction_id), error),
                    )
                    await asyncio.sleep(_RETRY_SECONDS)
                    settlement.correction_due.set()

    async def _correct(self, transaction_id: bytes) -> None:
        """Raises ``MatcherError`` and ``NodeUnavailable``."""
        settlement = self._settlement
        while (due := settlement.correction_of(transaction_id)) is not None:
            transaction = self._database.transaction(transaction_id)
            found = None if transaction is None else self._database.trade_of(transaction)
            if transaction is None or found is None:
                _log.error("no execution belongs to %s", base58.encode(transaction_id))
                break
            trade, counts = found
            if counts is due.stands:
                settlement.corrected(transaction_id, due.stands)
                break
            command = await self._command(transaction, trade, due)
            if command is None:
                break
            if await self._replica.sequencer.submit(command):
                what = "counts again" if due.stands else "is taken back"
                _log.warning(
                    "the execution of %s at offset %d %s",
                    *(base58.encode(transaction_id), trade.offset, what),
                )
                self._check_funds(command)
        settlement.to_correct.pop(transaction_id, None)

    def _check_funds(self, command: CorrectExecution) -> None:
        """Another order may have reserved meanwhile what an order that goes on needs."""
        accounts = self._replica.session.accounts
        for side in (command.maker, command.taker):
            account = None if accounts is None else accounts.peek(_owner(side.order))
            if accounts is not None and account is not None:
                accounts.check(account)

    async def _command(
        self, transaction: AnyTransaction, trade: Trade, due: Correction
    ) -> CorrectExecution | None:
        exchange = transaction.payload
        assert isinstance(exchange, Exchange), "it has a trade"
        placed = {
            order.id: without_parameters(order, self._engine.settings, trade.offset)
            for order in (exchange.order1, exchange.order2)
        }
        taker, maker = placed[trade.taker_order_id], placed[trade.maker_order_id]
        responsible = await self._responsible(taker, maker, due)
        sides = []
        for order, fee in ((taker, trade.taker_fee), (maker, trade.maker_fee)):
            may_go_on = due.stands or (len(responsible) == 1 and order.id not in responsible)
            side = self._state(order)
            if side is None:
                _log.error("the order %s is unknown", base58.encode(order.id))
                return None
            if may_go_on:
                side = await self._going_on(side, trade, fee, due)
            sides.append(side)
        # From here on nothing awaits: the states are those of this moment, unless a command is in
        # flight, which the engine notices.
        states = [self._state(order) for order in (taker, maker)]
        if [each and each.rests for each in states] != [each.rests for each in sides]:
            return await self._command(transaction, trade, due)
        pair = pair_of(taker)
        last = self._database.last_trade_besides(pair, (trade.offset, trade.index))
        return CorrectExecution(
            execution_offset=trade.offset,
            index=trade.index,
            stands=due.stands,
            amount=trade.amount,
            price=trade.price,
            taker_fee=trade.taker_fee,
            maker_fee=trade.maker_fee,
            taker=sides[0],
            maker=sides[1],
            last_trade=None if last is None else (last.price, last.amount, last.side),
        )

    async def _responsible(self, taker: Order, maker: Order, due: Correction) -> set[bytes]:
        """The orders of who is responsible. Raises ``NodeUnavailable``."""
        if due.responsible is not None:
            return {order.id for order in (taker, maker) if _owner(order) in due.responsible}
        chain = self._replica.chain
        for order in (taker, maker):
            await chain.learn((order.amount_asset, order.price_asset, order.matcher_fee_asset))
        smart = {*chain.scripted(taker), *chain.scripted(maker)}
        return {
            order.id
            for order in (taker, maker)
            if {spent_asset(pair_of(order), order.side), order.matcher_fee_asset} & smart
        }

    def _state(self, order: Order) -> CorrectedSide | None:
        """The present state of an order, which ends unless something else is decided."""
        book = self._engine.book(pair_of(order))
        active = None if book is None else book.get(order.id)
        if active is not None:
            return CorrectedSide(
                active.order,
                is_market=False,
                rests=True,
                goes_on=False,
                amount=active.amount,
                fee=active.fee,
                price_nominator=active.price_nominator,
                percent_min_fee=active.percent_min_fee,
                percent_const_min_fee=active.percent_const_min_fee,
            )
        info = self._database.order(order.id)
        if info is None:
            return None
        return CorrectedSide(
            order,
            is_market=info.is_market,
            rests=False,
            goes_on=False,
            amount=order.amount - info.filled,
            fee=order.matcher_fee - info.filled_fee,
            price_nominator=info.price_nominator,
        )

    async def _going_on(
        self, side: CorrectedSide, trade: Trade, fee: int, due: Correction
    ) -> CorrectedSide:
        """The side, going on if it may. Raises ``NodeUnavailable``."""
        if due.stands:
            return replace(side, goes_on=side.rests)
        order = side.order
        if side.is_market or self._database.returns_of(order.id) >= MAX_RETURNS:
            return side
        if not side.rests:
            info = self._database.order(order.id)
            if info is None or info.status is not OrderStatus.FILLED:
                return side
            try:
                fees = self._placing.check_again(order)
            except MatcherError as error:
                _log.info("the order %s does not return: %s", base58.encode(order.id), error)
                return side
            side = replace(
                side,
                percent_min_fee=fees.percent_min_fee,
                percent_const_min_fee=fees.percent_const_min_fee,
            )
        return replace(side, goes_on=await self._is_covered(side, trade, fee))

    async def _is_covered(self, side: CorrectedSide, trade: Trade, fee: int) -> bool:
        """Whether the owner has the funds for what the order gets back."""
        accounts = self._replica.session.accounts
        if accounts is None:
            return False
        order = side.order
        before = ActiveOrder(order, is_market=False, amount=side.amount, fee=side.fee)
        after = replace(
            before,
            amount=min(order.amount, side.amount + trade.amount),
            fee=min(order.matcher_fee, side.fee + fee),
        )
        needed = after.required_balance()
        if side.rests:
            for asset, amount in before.required_balance().items():
                needed[asset] -= amount
        account = accounts.get(_owner(order))
        await accounts.ensure(account, tuple(needed))
        # It pays its fee of what it receives, where it can.
        received = received_asset(pair_of(order), order.side)
        return all(
            amount <= account.balances.tradable(asset)
            for asset, amount in needed.items()
            if asset != received
        )


def _owner(order: Order) -> Address:
    return from_public_key(order.sender_public_key, order.chain_id)
