"""Auditing a matcher: its journal is replayed and checked against a second, simpler book.

The second book keeps only which orders wait at which price, in order of arrival. It checks the
engine's events against the rules of an exchange: the best price first, the oldest order first at
equal prices; nobody pays more than the order allows; what one side gives the other receives; no
order is placed twice, and no book is crossed. Its only code in common with the engine is the
rounding of prices to a tick.

What lives here: the rules about commands and executions. What does not: settlement on the chain
(``settlement_audit``), and reading the journal (``stores``).
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Sequence
from typing import Final

import msgspec

from soliton.chain.errors import ChainError
from soliton.chain.orders import PRICE_CONSTANT, Order, Side, signature_is_valid
from soliton.errors import InputError
from soliton.matcher.journal import Record
from soliton.matching.arithmetic import correct_by_tick
from soliton.matching.commands import (
    CancelAllOrders,
    CancelOrder,
    Command,
    CorrectExecution,
    DeleteOrderBook,
    PlaceMarketOrder,
    PlaceOrder,
    decode,
)
from soliton.matching.engine import Engine
from soliton.matching.events import (
    BookDeleted,
    Event,
    ExecutionCorrected,
    OrderAdded,
    OrderCanceled,
    OrderCancelFailed,
    OrderExecuted,
)
from soliton.matching.model import ActiveOrder
from soliton.matching.pairs import AssetPair, pair_of

JOURNAL: Final = "journal"
PRIORITY: Final = "priority"
CONSERVATION: Final = "conservation"


class RuleBroken(InputError):
    """A rule of exchanges is violated at an offset of the journal.

    ``rule`` is one of the three names above; ``offset`` is the first violation.
    """

    def __init__(self, rule: str, offset: int, detail: str) -> None:
        super().__init__(f"{rule} is broken at offset {offset}: {detail}")
        self.rule = rule
        self.offset = offset


class _Resting(msgspec.Struct):
    """An order in the second book, with its level and remaining amounts."""

    order: Order
    level: int
    amount: int
    fee: int


class _Side(msgspec.Struct):
    """Levels in ascending order of ``sign * price``: the last is the best."""

    sign: int
    ranks: list[int] = []
    levels: dict[int, list[bytes]] = {}

    def put(self, level: int, order_id: bytes) -> None:
        rank = level * self.sign
        if rank not in self.levels:
            insort(self.ranks, rank)
            self.levels[rank] = []
        self.levels[rank].append(order_id)

    def remove(self, level: int, order_id: bytes) -> None:
        rank = level * self.sign
        ids = self.levels[rank]
        ids.remove(order_id)
        if not ids:
            del self.levels[rank]
            del self.ranks[bisect_left(self.ranks, rank)]

    def first(self) -> bytes:
        return self.levels[self.ranks[-1]][0]


class _Book(msgspec.Struct):
    resting: dict[bytes, _Resting] = {}
    bids: _Side = msgspec.field(default_factory=lambda: _Side(1))
    asks: _Side = msgspec.field(default_factory=lambda: _Side(-1))

    def side(self, side: Side) -> _Side:
        return self.bids if side is Side.BUY else self.asks

    def remove(self, order_id: bytes) -> None:
        order = self.resting.pop(order_id)
        self.side(order.order.side).remove(order.level, order_id)


class _Executed(msgspec.Struct, gc=False):
    """An execution, and whether it counts."""

    taker_id: bytes
    maker_id: bytes
    amount: int
    price: int
    taker_fee: int
    maker_fee: int
    counts: bool = True


class Counts(msgspec.Struct):
    """What was checked. ``unsigned`` orders have no valid signature, which an account's script may
    allow; the chain decides.
    """

    commands: int = 0
    orders: int = 0
    unsigned: int = 0
    executions: int = 0
    cancellations: int = 0
    corrections: int = 0


class Audit:
    """``take`` all records in order, from the beginning or from a restored snapshot."""

    def __init__(
        self, engine: Engine, matcher_public_key: bytes, *, signatures: bool = True
    ) -> None:
        """``engine`` is empty or restored; the audit applies the commands to it. ``signatures``
        also verifies the signatures of all orders, which takes most of the time.
        """
        self.engine = engine
        self.counts = Counts()
        self._matcher = matcher_public_key
        self._signatures = signatures
        self._books: dict[AssetPair, _Book] = {}
        self._placed: set[bytes] = set()
        self._executed: dict[tuple[int, int], _Executed] = {}
        # What counts as filled of the orders that have executions.
        self._filled: dict[bytes, int] = {}
        self._begin = engine.last_offset
        self.corrections: list[ExecutionCorrected] = []
        """The corrections of the last record."""
        for book in engine.books():
            mine = self._books[book.pair] = _Book()
            for order in book.orders():
                level = book.index[order.id].price
                self._rest(mine, order, level)

    def take(self, record: Record) -> list[OrderExecuted]:
        """Apply the next record and return its executions. Raises ``RuleBroken``."""
        offset, timestamp, payload = record
        if offset <= self.engine.last_offset:
            raise RuleBroken(JOURNAL, offset, "it is out of order")
        try:
            command = decode(payload)
        except ChainError as error:
            raise RuleBroken(JOURNAL, offset, f"it is no command: {error}") from error
        self._check_command(offset, command)
        events = self.engine.apply(offset, timestamp, command)
        self.counts.commands += 1
        try:
            executions = self._follow(offset, command, events)
        except (KeyError, ValueError, IndexError) as error:
            raise RuleBroken(
                PRIORITY, offset, f"an order is not where it was: {error!r}"
            ) from error
        self._check_crossing(offset, command.pair)
        return executions

    def _check_command(self, offset: int, command: Command) -> None:
        self.corrections = []
        if isinstance(command, CorrectExecution):
            self._check_correction(offset, command)
        if not isinstance(command, PlaceOrder | PlaceMarketOrder):
            return
        order = command.order
        if order.matcher_public_key != self._matcher:
            raise RuleBroken(JOURNAL, offset, "the order is for another matcher")
        if order.id in self._placed:
            raise RuleBroken(JOURNAL, offset, f"order {order.id.hex()} was placed before")
        self._placed.add(order.id)
        self.counts.orders += 1
        if self._signatures and not signature_is_valid(order):
            self.counts.unsigned += 1

    def _check_correction(self, offset: int, command: CorrectExecution) -> None:
        """It names an execution as it was, which is taken back once, or counts again after that."""
        place = command.execution_offset, command.index
        if command.execution_offset <= self._begin:
            return
        found = self._executed.get(place)
        expected = _Executed(
            *(command.taker.order.id, command.maker.order.id, command.amount, command.price),
            *(command.taker_fee, command.maker_fee, not command.stands),
        )
        if found != expected:
            raise RuleBroken(JOURNAL, offset, f"it corrects {found}, which is not {expected}")

    def _correct(self, offset: int, book: _Book, event: ExecutionCorrected) -> None:
        self.counts.corrections += 1
        self.corrections.append(event)
        sign = 1 if event.stands else -1
        known = self._executed.get((event.execution_offset, event.index))
        if known is not None:
            known.counts = event.stands
        for active, fee in ((event.taker, event.taker_fee), (event.maker, event.maker_fee)):
            if active.id in self._filled or known is not None:
                filled = self._filled.get(active.id, 0) + sign * event.amount
                self._filled[active.id] = filled
                if active.filled_amount != filled:
                    raise RuleBroken(CONSERVATION, offset, "an order's executions do not add up")
            resting = book.resting.get(active.id)
            if resting is None:
                continue
            resting.amount -= sign * event.amount
            resting.fee = max(0, min(active.order.matcher_fee, resting.fee - sign * fee))
            if (resting.amount, resting.fee) != (active.amount, active.fee):
                raise RuleBroken(CONSERVATION, offset, "an order's rest does not add up")

    def _follow(
        self, offset: int, command: Command, events: Sequence[Event]
    ) -> list[OrderExecuted]:
        pair = command.pair
        book = self._books.setdefault(pair, _Book())
        executions: list[OrderExecuted] = []
        taker: _Resting | None = None
        done = False
        for event in events:
            match event:
                case ExecutionCorrected():
                    self._correct(offset, book, event)
                case OrderAdded(order=order):
                    if taker is not None and not done:
                        self._keep(offset, book, taker)
                    done = False
                    taker = _Resting(order.order, 0, order.amount, order.fee)
                case OrderExecuted():
                    if taker is None or done:
                        raise RuleBroken(PRIORITY, offset, "an execution without a taker")
                    self._execute(offset, book, taker, event)
                    self._note_executed(offset, len(executions), event)
                    executions.append(event)
                    done = event.taker_is_done
                case OrderCanceled(order=order):
                    self.counts.cancellations += 1
                    if order.id in book.resting:
                        book.remove(order.id)
                    else:
                        done = True
                case OrderCancelFailed(order_id=order_id):
                    if order_id in book.resting:
                        raise RuleBroken(PRIORITY, offset, "a waiting order was not found")
                case BookDeleted():
                    if book.resting:
                        raise RuleBroken(PRIORITY, offset, "orders were left in a deleted book")
                    del self._books[pair]
        self._check_command_was_done(offset, command, book, arrived=taker is not None)
        if taker is not None and not done:
            self._keep(offset, book, taker)
        return executions

    def _note_executed(self, offset: int, index: int, event: OrderExecuted) -> None:
        self._executed[offset, index] = _Executed(
            *(event.taker.id, event.maker.id, event.amount, event.price),
            *(event.taker_fee, event.maker_fee),
        )
        for active in (event.taker, event.maker):
            # An order of before the beginning may have had other executions.
            self._filled[active.id] = active.filled_amount

    def _check_command_was_done(
        self, offset: int, command: Command, book: _Book, *, arrived: bool
    ) -> None:
        match command:
            case PlaceOrder() | PlaceMarketOrder() if not arrived:
                raise RuleBroken(PRIORITY, offset, "the order did not come to the book")
            case CancelOrder(order_id=order_id) if order_id in book.resting:
                raise RuleBroken(PRIORITY, offset, "a cancelled order is still there")
            case CancelAllOrders() | DeleteOrderBook() if book.resting:
                raise RuleBroken(PRIORITY, offset, "cancelled orders are still there")
            case _:
                pass

    def _keep(self, offset: int, book: _Book, taker: _Resting) -> None:
        order = taker.order
        pair = pair_of(order)
        tick = self.engine.settings.tick_size_at(pair, offset)
        resting = self.engine.book(pair)
        mine = None if resting is None else resting.get(order.id)
        if mine is None or mine.amount != taker.amount or mine.fee != taker.fee:
            raise RuleBroken(CONSERVATION, offset, "what remains of the order is not in the book")
        self._rest(book, mine, correct_by_tick(order.price, order.side, tick))

    def _rest(self, book: _Book, order: ActiveOrder, level: int) -> None:
        book.resting[order.id] = _Resting(order.order, level, order.amount, order.fee)
        book.side(order.order.side).put(level, order.id)

    def _execute(self, offset: int, book: _Book, taker: _Resting, event: OrderExecuted) -> None:
        self.counts.executions += 1
        maker = book.resting[event.maker.id]
        opposite = book.side(maker.order.side)
        if maker.order.side is taker.order.side:
            raise RuleBroken(PRIORITY, offset, "both orders want the same")
        if opposite.first() != event.maker.id:
            raise RuleBroken(PRIORITY, offset, "another order was cheaper, or came earlier")
        price, amount = event.price, event.amount
        for order, executed in ((taker, event.taker), (maker, event.maker)):
            self._check_limits(offset, order, price, amount)
            fee = event.taker_fee if order is taker else event.maker_fee
            order.amount -= amount
            order.fee = max(0, order.fee - fee)
            if (order.amount, order.fee) != (executed.amount, executed.fee):
                raise RuleBroken(CONSERVATION, offset, "an order's rest does not add up")
        self._check_sums(offset, event, taker.order, maker.order)
        if event.maker_is_done:
            book.remove(event.maker.id)

    def _check_limits(self, offset: int, order: _Resting, price: int, amount: int) -> None:
        limit = order.order.price
        if price > limit if order.order.side is Side.BUY else price < limit:
            raise RuleBroken(PRIORITY, offset, f"price {price} is beyond the order's {limit}")
        if not 0 < amount <= order.amount:
            raise RuleBroken(CONSERVATION, offset, f"{amount} executed, {order.amount} were left")

    def _check_sums(self, offset: int, event: OrderExecuted, taker: Order, maker: Order) -> None:
        """Each side receives what the other gives, and fees are within the orders' limits."""
        volume = event.amount * event.price // PRICE_CONSTANT
        for order, fee, spent in (
            (taker, event.taker_fee, event.taker_spending()),
            (maker, event.maker_fee, event.maker_spending()),
        ):
            buys = order.side is Side.BUY
            expected = {
                order.price_asset if buys else order.amount_asset: volume if buys else event.amount
            }
            expected[order.matcher_fee_asset] = expected.get(order.matcher_fee_asset, 0) + fee
            if spent != expected:
                raise RuleBroken(CONSERVATION, offset, f"{spent} was given, {expected} was due")
            if not 0 <= fee <= order.matcher_fee:
                raise RuleBroken(CONSERVATION, offset, f"a fee of {fee} of {order.matcher_fee}")

    def _check_crossing(self, offset: int, pair: AssetPair) -> None:
        book = self._books.get(pair)
        if book is not None and book.bids.ranks and book.asks.ranks:
            bid, ask = book.bids.ranks[-1], -book.asks.ranks[-1]
            if bid >= ask:
                raise RuleBroken(PRIORITY, offset, f"the book is crossed: {bid} bid, {ask} asked")

    def finish(self) -> None:
        """Compare the books at the end. Raises ``RuleBroken``."""
        for book in self.engine.books():
            mine = self._books.get(book.pair, _Book())
            theirs = {order.id: (order.amount, order.fee) for order in book.orders()}
            if {key: (each.amount, each.fee) for key, each in mine.resting.items()} != theirs:
                raise RuleBroken(
                    CONSERVATION, self.engine.last_offset, f"{book.pair.key}: orders differ"
                )
