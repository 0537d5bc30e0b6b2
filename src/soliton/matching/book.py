"""One order book: price levels with time priority, and the matching loop.

A side keeps the ranks of its levels in ascending order, the best at the end. A bid's rank is its
price and an ask's rank its negated price, so that both sides share the code. Levels keep their
orders in the order of arrival; a partly filled order keeps its place.

What lives here: the structure, adding, cancelling, and aggregated views. What does not: the set of
books and the rules in force (``engine``).

Source: wavesplatform/matcher ``dex/src/main/scala/com/wavesplatform/dex/model/OrderBook.scala``.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator
from typing import Final

import msgspec

from soliton.chain.orders import MAX_AMOUNT, MAX_LIFETIME_MS, PRICE_CONSTANT, Side
from soliton.errors import InvariantBroken
from soliton.matching.arithmetic import correct_by_tick, corrected_amount, market_limit
from soliton.matching.events import CancelReason, Event, OrderAdded, OrderCanceled, OrderExecuted
from soliton.matching.model import ActiveOrder
from soliton.matching.pairs import AssetPair
from soliton.matching.rules import Terms
from soliton.matching.validity import order_fault

_MAX_FEW: Final = 7
"""Up to so many orders after a level's first are kept in a tuple and searched linearly."""
_MAX_REMOVALS: Final = 1_024
"""Finding a dictionary's first entry skips the slots of removed ones: after so many removals it is
rebuilt."""


class LevelTotal(msgspec.Struct, frozen=True, gc=False):
    """A price and the sum of the remaining amounts of all its orders."""

    price: int
    amount: int


class LastTrade(msgspec.Struct, frozen=True, gc=False):
    """The latest execution of a book; ``side`` is the taker's."""

    price: int
    amount: int
    side: Side


class MarketStatus(msgspec.Struct, frozen=True, gc=False):
    """The best levels and the last trade of a book."""

    last_trade: LastTrade | None
    best_bid: LevelTotal | None
    best_ask: LevelTotal | None


class Level(msgspec.Struct, gc=False):
    """The orders at one price and the sum of their remaining amounts. Only the side that owns the
    level changes it; ``removals`` counts removals from its dictionary.

    ``first`` is the oldest order; ``later`` are the others in the order of arrival. ``later`` is a
    dictionary only if there are many: most levels hold few orders, and a dictionary takes more
    memory than a quarter of an order.
    """

    rank: int
    first: ActiveOrder
    amount: int
    later: tuple[ActiveOrder, ...] | dict[bytes, ActiveOrder] = ()
    removals: int = 0

    @property
    def price(self) -> int:
        """The level's price."""
        return abs(self.rank)

    def get(self, order_id: bytes) -> ActiveOrder:
        """An order on this level; raises ``KeyError`` if it is not here."""
        if self.first.order.id == order_id:
            return self.first
        if isinstance(self.later, dict):
            return self.later[order_id]
        for order in self.later:
            if order.order.id == order_id:
                return order
        raise KeyError(order_id)

    def orders(self) -> list[ActiveOrder]:
        """All orders, oldest first."""
        later = self.later
        return [self.first, *(later.values() if isinstance(later, dict) else later)]

    def add_to_few(self, order: ActiveOrder, later: tuple[ActiveOrder, ...]) -> None:
        """Append an order; ``later`` is the tuple of the others."""
        few = (*later, order)
        self.later = few if len(few) <= _MAX_FEW else {each.order.id: each for each in few}

    def take_from_few(self, order_id: bytes, later: tuple[ActiveOrder, ...]) -> ActiveOrder:
        """Remove one of several orders; ``later`` is a tuple."""
        order = self.first
        if order.order.id == order_id:
            self.first, self.later = later[0], later[1:]
            return order
        index = 0
        while later[index].order.id != order_id:
            index += 1
        self.later = later[:index] + later[index + 1 :]
        return later[index]

    def take_from_many(self, order_id: bytes, later: dict[bytes, ActiveOrder]) -> ActiveOrder:
        """Remove an order; ``later`` is a dictionary."""
        order = self.first
        if order.order.id == order_id:
            self.first = later.pop(next(iter(later)))
        else:
            order = later.pop(order_id)
        removals = self.removals = self.removals + 1
        if not later:
            self.later, self.removals = (), 0
        elif removals > _MAX_REMOVALS:
            self.later, self.removals = dict(later.items()), 0
        return order


class BookSide:
    """The bids or the asks of a book."""

    __slots__ = ("changed", "kept", "levels", "ranks", "sign")

    def __init__(self, sign: int) -> None:
        self.sign = sign
        self.levels: dict[int, Level] = {}
        self.ranks: list[int] = []
        self.changed: set[int] | None = None
        self.kept: dict[int, list[ActiveOrder]] | None = None
        """While a snapshot is written: the former orders of levels that changed since it began."""

    def put(self, price: int, order: ActiveOrder) -> Level:
        """Append an order to a level."""
        # For a bid, the key is the order's own int object: no second one is allocated.
        rank = price if self.sign > 0 else -price
        level = self.levels.get(rank)
        if level is None:
            level = self.levels[rank] = Level(rank, order, order.amount)
            ranks = self.ranks
            if not ranks or ranks[-1] < rank:
                ranks.append(rank)
            else:
                insort(ranks, rank)
        else:
            if self.kept is not None:
                self.keep(level)
            later = level.later
            if isinstance(later, dict):
                later[order.order.id] = order
            else:
                level.add_to_few(order, later)
            level.amount += order.amount
        if self.changed is not None:
            self.changed.add(rank)
        return level

    def remove(self, level: Level, order_id: bytes) -> ActiveOrder:
        """Remove an order, and its level if that becomes empty."""
        if self.kept is not None:
            self.keep(level)
        later = level.later
        if isinstance(later, dict):
            order = level.take_from_many(order_id, later)
            level.amount -= order.amount
        elif later:
            order = level.take_from_few(order_id, later)
            level.amount -= order.amount
        else:
            order = level.first
            self._drop(level.rank)
        if self.changed is not None:
            self.changed.add(level.rank)
        return order

    def _drop(self, rank: int) -> None:
        del self.levels[rank]
        if self.ranks[-1] == rank:
            self.ranks.pop()
        else:
            del self.ranks[bisect_left(self.ranks, rank)]

    def replace_first(self, level: Level, order: ActiveOrder, executed: int) -> None:
        """Replace the oldest order of a level after a partial execution."""
        if self.kept is not None:
            self.keep(level)
        level.first = order
        level.amount -= executed
        if self.changed is not None:
            self.changed.add(level.rank)

    def replace(self, level: Level, order: ActiveOrder) -> None:
        """Replace an order of a level by its corrected state, in its place."""
        if self.kept is not None:
            self.keep(level)
        order_id, later = order.order.id, level.later
        level.amount += order.amount - level.get(order_id).amount
        if level.first.order.id == order_id:
            level.first = order
        elif isinstance(later, dict):
            later[order_id] = order
        else:
            level.later = tuple(order if each.order.id == order_id else each for each in later)
        if self.changed is not None:
            self.changed.add(level.rank)

    def keep(self, level: Level) -> None:
        """Save a level's orders for the snapshot before the level changes for the first time."""
        assert self.kept is not None, "no snapshot is being written"
        if level.rank not in self.kept:
            self.kept[level.rank] = level.orders()

    def best(self) -> LevelTotal | None:
        """The best level."""
        if not self.ranks:
            return None
        level = self.levels[self.ranks[-1]]
        return LevelTotal(level.price, level.amount)

    def depth(self, limit: int) -> list[LevelTotal]:
        """The best levels, best first."""
        levels, sign = self.levels, self.sign
        # With a limit of zero the slice would return everything.
        ranks = self.ranks[: -limit - 1 : -1] if limit > 0 else []
        return [LevelTotal(rank * sign, levels[rank].amount) for rank in ranks]

    def by_priority(self) -> Iterator[LevelTotal]:
        """All levels, best first, made one by one."""
        for rank in reversed(self.ranks):
            yield LevelTotal(rank * self.sign, self.levels[rank].amount)

    def orders(self) -> Iterator[ActiveOrder]:
        """All orders, by priority."""
        for rank in reversed(self.ranks):
            yield from self.levels[rank].orders()

    def take_changes(self) -> list[LevelTotal]:
        """The levels that changed since the last call; removed ones have amount 0. The first call
        starts the tracking.
        """
        changed, self.changed = self.changed, set()
        return [
            LevelTotal(rank * self.sign, level.amount if (level := self.levels.get(rank)) else 0)
            for rank in sorted(changed or (), reverse=True)
        ]


class OrderBook:
    """The bids and asks of one pair. ``created`` and ``changed_at`` are timestamps of commands in
    milliseconds. ``next_timestamp`` is the minimum timestamp of the next exchange transaction where
    the timestamps within a book must be distinct.
    """

    __slots__ = (
        *("asks", "bids", "changed_at", "created", "homes", "index", "last_trade"),
        *("next_timestamp", "pair", "terms"),
    )

    def __init__(self, pair: AssetPair, created: int) -> None:
        self.pair = pair
        self.created = created
        self.changed_at = created
        self.bids = BookSide(1)
        self.asks = BookSide(-1)
        self.index: dict[bytes, Level] = {}
        self.homes: dict[bytes, OrderBook] = {}
        """The books of resting orders by their ids; books of one engine share it."""
        self.last_trade: LastTrade | None = None
        self.next_timestamp = 0
        self.terms: Terms | None = None

    def __len__(self) -> int:
        return len(self.index)

    def get(self, order_id: bytes) -> ActiveOrder | None:
        """A resting order, or None."""
        level = self.index.get(order_id)
        return None if level is None else level.get(order_id)

    def orders(self) -> Iterator[ActiveOrder]:
        """All resting orders: bids, then asks, each by priority."""
        yield from self.bids.orders()
        yield from self.asks.orders()

    def status(self) -> MarketStatus:
        """The best levels and the last trade."""
        return MarketStatus(self.last_trade, self.bids.best(), self.asks.best())

    def depth(self, limit: int) -> tuple[list[LevelTotal], list[LevelTotal]]:
        """The best bids and asks, best first."""
        return self.bids.depth(limit), self.asks.depth(limit)

    def cancel(self, order_id: bytes, reason: CancelReason, timestamp: int) -> OrderCanceled | None:
        """Cancel an order; None if it is not in the book."""
        level = self.index.pop(order_id, None)
        if level is None:
            return None
        del self.homes[order_id]
        self.changed_at = timestamp
        side = self.bids if level.rank > 0 else self.asks
        return OrderCanceled(side.remove(level, order_id), reason, timestamp)

    def cancel_all(self, reason: CancelReason, timestamp: int) -> list[Event]:
        """Cancel all orders: bids, then asks, each by priority."""
        ids = [order.order.id for order in self.orders()]
        events: list[Event] = []
        for order_id in ids:
            canceled = self.cancel(order_id, reason, timestamp)
            if canceled is not None:
                events.append(canceled)
        return events

    def add(self, submitted: ActiveOrder, timestamp: int, terms: Terms, offset: int) -> list[Event]:
        """Match an order against the other side; the rest of a limit order stays in the book."""
        events: list[Event] = [OrderAdded(submitted, timestamp)]
        self.changed_at = timestamp
        if order_fault(submitted.order, timestamp) is not None:
            events.append(OrderCanceled(submitted, CancelReason.BECAME_INVALID, timestamp))
            return events
        rest = self._match(submitted, timestamp, terms, offset, events)
        if rest is None:
            return events
        if rest.is_market:
            events.append(OrderCanceled(rest, CancelReason.BECAME_UNMATCHABLE, timestamp))
            return events
        order = rest.order
        price = order.price
        if terms.tick_size > 1:
            price = correct_by_tick(price, order.side, terms.tick_size)
        if price == 0:
            # Validation rejects this, but a larger tick may have come into force since.
            events.append(OrderCanceled(rest, CancelReason.BECAME_INVALID, timestamp))
            return events
        self.rest(price, rest)
        return events

    def rest(self, level_price: int, active: ActiveOrder) -> None:
        """Append a limit order to a level without matching it."""
        order = active.order
        side = self.bids if order.side is Side.BUY else self.asks
        self.index[order.id] = side.put(level_price, active)
        self.homes[order.id] = self

    def correct(self, corrected: ActiveOrder, timestamp: int) -> None:
        """Replace a resting order by its corrected state; it keeps its place."""
        level = self.index[corrected.order.id]
        side = self.bids if level.rank > 0 else self.asks
        side.replace(level, corrected)
        self.changed_at = timestamp

    def _match(
        self,
        submitted: ActiveOrder,
        timestamp: int,
        terms: Terms,
        offset: int,
        events: list[Event],
    ) -> ActiveOrder | None:
        """Execute while prices overlap. Returns the remainder if there are no more counter orders,
        or None if the submitted order is finished.
        """
        order = submitted.order
        # An ask overlaps while its price is at most the buyer's. Compared by rank, so does a bid.
        counters, limit = (
            (self.asks, -order.price) if order.side is Side.BUY else (self.bids, order.price)
        )
        ranks, levels = counters.ranks, counters.levels
        latest = timestamp + MAX_LIFETIME_MS
        while ranks and ranks[-1] >= limit:
            level = levels[ranks[-1]]
            counter = level.first
            counter_order = counter.order
            if submitted.amount * counter_order.price < PRICE_CONSTANT:
                break
            if not timestamp <= counter_order.expiration <= latest:
                del self.index[counter_order.id], self.homes[counter_order.id]
                counters.remove(level, counter_order.id)
                events.append(OrderCanceled(counter, CancelReason.BECAME_INVALID, timestamp))
                continue
            amount = executed_amount(submitted, counter)
            if amount <= 0:
                break
            executed = self._execute(submitted, counter, amount, timestamp, terms, offset)
            events.append(executed)
            if executed.maker_is_done:
                del self.index[counter_order.id], self.homes[counter_order.id]
                counters.remove(level, counter_order.id)
            else:
                counters.replace_first(level, executed.maker, amount)
            if executed.taker_is_done:
                return None
            submitted = executed.taker
            if not executed.maker_is_done or (
                submitted.is_market and submitted.available_for_spending <= 0
            ):
                break
        else:
            return submitted
        events.append(OrderCanceled(submitted, CancelReason.BECAME_UNMATCHABLE, timestamp))
        return None

    def _execute(
        self,
        taker: ActiveOrder,
        maker: ActiveOrder,
        amount: int,
        timestamp: int,
        terms: Terms,
        offset: int,
    ) -> OrderExecuted:
        taker_order, maker_order = taker.order, maker.order
        price = maker_order.price
        taker_fee, maker_fee = terms.fees(taker, maker, amount)
        if terms.distinct_timestamps and self.next_timestamp > timestamp:
            timestamp = self.next_timestamp
        self.next_timestamp = timestamp + 1
        self.last_trade = LastTrade(price, amount, taker_order.side)
        nominator = amount * price
        available = 0
        if taker.is_market:
            buys = taker_order.side is Side.BUY
            available = taker.available_for_spending - (
                nominator // PRICE_CONSTANT if buys else amount
            )
            if taker_order.matcher_fee_asset == taker.spent_asset:
                available -= taker_fee
        taker_amount, maker_amount = taker.amount - amount, maker.amount - amount
        taker_rest, maker_rest = taker.fee - taker_fee, maker.fee - maker_fee
        return OrderExecuted(
            ActiveOrder(
                taker_order,
                taker.is_market,
                taker_amount,
                max(0, taker_rest),
                taker.price_nominator + nominator,
                available,
                taker.percent_min_fee,
                taker.percent_const_min_fee,
                taker.whole_units,
            ),
            ActiveOrder(
                maker_order,
                False,
                maker_amount,
                max(0, maker_rest),
                maker.price_nominator + nominator,
                0,
                maker.percent_min_fee,
                maker.percent_const_min_fee,
            ),
            amount,
            price,
            taker_fee,
            maker_fee,
            taker_amount * taker_order.price < PRICE_CONSTANT,
            maker_amount * price < PRICE_CONSTANT,
            timestamp,
            offset,
        )


def executed_amount(taker: ActiveOrder, maker: ActiveOrder) -> int:
    """The amount that two orders exchange at the maker's price."""
    price = maker.order.price
    # Correcting the lesser amount gives the same as the lesser of the two corrected amounts.
    amount = min(maker.amount, taker.amount)
    amount = corrected_amount(amount, price)
    if not taker.is_market:
        return amount
    order = taker.order
    limit = market_limit(
        order.side,
        amount=taker.amount,
        fee=taker.fee,
        available=taker.available_for_spending,
        price=price,
        fee_is_spent=order.matcher_fee_asset == taker.spent_asset,
    )
    if taker.whole_units and limit < amount:
        # A sale that the owner's funds limit, or part of it would be sold for nothing.
        return corrected_amount(limit, price)
    return min(amount, limit)


def check_invariants(book: OrderBook) -> None:
    """Raises ``InvariantBroken`` if the book is crossed, a level is misplaced or its amount wrong,
    or the index does not list exactly the orders of the levels.
    """
    for side in (book.bids, book.asks):
        if side.ranks != sorted(side.levels) or len(set(side.ranks)) != len(side.ranks):
            raise InvariantBroken(f"{book.pair.key}: levels out of order")
        for rank, level in side.levels.items():
            _check_level(book, side, rank, level)
    resting = sum(
        len(level.orders()) for side in (book.bids, book.asks) for level in side.levels.values()
    )
    if resting != len(book.index):
        raise InvariantBroken(f"{book.pair.key}: {resting} orders, {len(book.index)} in the index")
    bid, ask = book.bids.best(), book.asks.best()
    if bid is not None and ask is not None and bid.price >= ask.price:
        raise InvariantBroken(f"{book.pair.key}: crossed, {bid.price} bid, {ask.price} asked")


def _check_level(book: OrderBook, side: BookSide, rank: int, level: Level) -> None:
    where = f"{book.pair.key} at {level.price}"
    if level.rank != rank or rank * side.sign <= 0:
        raise InvariantBroken(f"{where}: no such level")
    if level.amount != sum(order.amount for order in level.orders()):
        raise InvariantBroken(f"{where}: amounts do not add up")
    for active in level.orders():
        if book.index.get(active.id) is not level or level.get(active.id) is not active:
            raise InvariantBroken(f"{where}: order and index disagree")
        if active.is_market or not 0 < active.amount < MAX_AMOUNT:
            raise InvariantBroken(f"{where}: an order that cannot rest")
        if (active.order.side is Side.BUY) is not (side is book.bids):
            raise InvariantBroken(f"{where}: an order of the other side")
