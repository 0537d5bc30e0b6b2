"""Correcting an execution: what the engine does if the chain has not executed it.

The engine has counted the execution, but the exchange has failed, or cannot be mined. It is taken
back: both orders get back what it took, and each of them goes on or ends, as the command tells. One
that goes on keeps its place if it still rests. Otherwise it arrives anew: it is matched with the
orders that meet its price by now, each at that order's price, and its remainder waits behind the
others of its level. One that has expired, whose book was deleted, or which is a market order ends.

If the chain has executed it after all (everybody may send the transaction while it can be mined),
it counts again, and what it took is missing from its orders.

What lives here: the corrected orders, and which of them go on. What does not: deciding on a
correction (``soliton.matcher.corrections``).
"""

from __future__ import annotations

import msgspec

from soliton.chain.orders import PRICE_CONSTANT
from soliton.matching.book import LastTrade, OrderBook
from soliton.matching.commands import CorrectedSide, CorrectExecution
from soliton.matching.events import CancelReason, Event, ExecutionCorrected, OrderCanceled
from soliton.matching.model import ActiveOrder
from soliton.matching.validity import order_fault


def correct(
    command: CorrectExecution, book: OrderBook | None, timestamp: int
) -> tuple[list[Event], list[ActiveOrder]]:
    """Correct an execution. Returns the events, and the orders that have to return to the book.

    If an order has left its book since the command was made, nothing happens, and there are no
    events: the command has to be made again.
    """
    sides = ((command.maker, command.maker_fee), (command.taker, command.taker_fee))
    index = {} if book is None else book.index
    if any(side.rests and side.order.id not in index for side, _ in sides):
        return [], []
    resting: set[bytes] = set()
    ends: list[Event] = []
    returning: list[ActiveOrder] = []
    states: list[ActiveOrder] = []
    for side, fee in sides:
        before = None if book is None else book.get(side.order.id)
        after = _corrected(before or _last_state(side), command, fee)
        states.append(after)
        if book is None or not _goes_on(side, after, timestamp):
            if book is not None and before is not None:
                book.cancel(side.order.id, CancelReason.NOT_SETTLED, timestamp)
            ends.append(OrderCanceled(after, _reason(after, command), timestamp))
        elif before is None:
            returning.append(after)
        else:
            book.correct(after, timestamp)
            resting.add(side.order.id)
    if book is not None:
        _correct_last_trade(command, book)
        book.changed_at = timestamp
    maker, taker = states
    event = ExecutionCorrected(
        *(taker, maker, frozenset(resting), command.execution_offset, command.index),
        *(command.amount, command.price, command.taker_fee, command.maker_fee),
        *(command.stands, timestamp),
    )
    return [event, *ends], returning


def _last_state(side: CorrectedSide) -> ActiveOrder:
    return ActiveOrder(
        side.order,
        is_market=side.is_market,
        amount=side.amount,
        fee=side.fee,
        price_nominator=side.price_nominator,
        percent_min_fee=side.percent_min_fee,
        percent_const_min_fee=side.percent_const_min_fee,
    )


def _corrected(before: ActiveOrder, command: CorrectExecution, fee: int) -> ActiveOrder:
    sign = -1 if command.stands else 1
    order = before.order
    nominator = before.price_nominator - sign * command.amount * command.price
    return msgspec.structs.replace(
        before,
        amount=min(order.amount, before.amount + sign * command.amount),
        fee=max(0, min(order.matcher_fee, before.fee + sign * fee)),
        price_nominator=max(0, nominator),
        available_for_spending=0,
    )


def _goes_on(side: CorrectedSide, after: ActiveOrder, timestamp: int) -> bool:
    return (
        side.goes_on
        and not after.is_market
        and not _is_dust(after)
        and order_fault(after.order, timestamp) is None
    )


def _is_dust(active: ActiveOrder) -> bool:
    """Whether what remains cannot be executed at the order's price."""
    return active.amount * active.order.price < PRICE_CONSTANT


def _reason(after: ActiveOrder, command: CorrectExecution) -> CancelReason:
    """Why an order ends: nothing remains of it, or it may not go on."""
    is_filled = command.stands and _is_dust(after)
    return CancelReason.BECAME_UNMATCHABLE if is_filled else CancelReason.NOT_SETTLED


def _correct_last_trade(command: CorrectExecution, book: OrderBook) -> None:
    this = LastTrade(command.price, command.amount, command.taker.order.side)
    other = None if command.last_trade is None else LastTrade(*command.last_trade)
    before, after = (other, this) if command.stands else (this, other)
    # A later execution stays the last one.
    if book.last_trade == before:
        book.last_trade = after
