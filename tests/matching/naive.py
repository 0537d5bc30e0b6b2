"""A matcher written the other way round, to compare with: one list of orders for each side, sorted
anew for every step, and the formulas of the reference in exact decimals.

It knows limit and market orders, ticks, expiry, all fee modes. It is slow, and says nothing about
levels, indexes or snapshots.

Source of the formulas: wavesplatform/matcher ``dex/.../model/{OrderBook,MatcherModel,Fee}.scala``.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_DOWN, ROUND_FLOOR, Context, Decimal

from soliton.chain.orders import Order, Side
from soliton.matching.events import (
    BookDeleted,
    Event,
    ExecutionCorrected,
    OrderAdded,
    OrderCanceled,
    OrderCancelFailed,
    OrderExecuted,
)
from soliton.matching.fees import AssetType, DynamicFee, OrderFee, PercentFee, mode_of
from soliton.matching.pairs import pair_of

WIDE = Context(prec=200)
MATH = Context(prec=34)
COIN = Decimal(10**8)
MONTH_MS = 30 * 24 * 3_600 * 1_000

Line = tuple[object, ...]


def line_of(event: Event) -> Line:
    """An event of the engine in the form of this model's."""
    match event:
        case OrderAdded(order=order):
            return "added", order.id
        case OrderExecuted():
            return (
                *("executed", event.taker.id, event.maker.id, event.amount, event.price),
                *(event.taker_fee, event.maker_fee, event.taker_is_done, event.maker_is_done),
                *(event.taker.amount, event.maker.amount, event.taker.price_nominator),
            )
        case OrderCanceled(order=order, reason=reason):
            return "canceled", order.id, reason.value, order.amount, order.fee
        case OrderCancelFailed(order_id=order_id):
            return "not found", order_id
        case BookDeleted():
            return ("deleted",)
        case ExecutionCorrected():
            raise AssertionError("this model knows no corrections")


@dataclass
class Entry:
    """An order, where it stands, and how far it came."""

    order: Order
    number: int
    level: int
    amount: Decimal
    fee: int
    market: bool
    available: int
    nominator: int
    percent: int | None
    const: int | None
    exempt: frozenset[bytes] = frozenset()
    whole_units: bool = False


def floor(value: Decimal) -> Decimal:
    """The next lower whole number."""
    return value.to_integral_value(ROUND_FLOOR, WIDE)


def ceil(value: Decimal) -> Decimal:
    """The next higher whole number."""
    return value.to_integral_value(ROUND_CEILING, WIDE)


def corrected(amount: Decimal, price: Decimal) -> Decimal:
    """``ceil(floor(a * p / 10^8) * 10^8 / p)``."""
    units = floor(WIDE.divide(WIDE.multiply(amount, price), COIN))
    return ceil(WIDE.divide(WIDE.multiply(units, COIN), price))


def volume(amount: Decimal, price: Decimal) -> Decimal:
    """``floor(a * p / 10^8)``."""
    return floor(WIDE.divide(WIDE.multiply(amount, price), COIN))


def is_valid(entry: Entry, counter_price: Decimal) -> bool:
    """The rule on remainders in its own words."""
    price = Decimal(entry.order.price)
    return (
        0 < entry.amount < Decimal(10**18)
        and entry.amount >= ceil(WIDE.divide(COIN, counter_price))
        and volume(entry.amount, price) > 0
        and corrected(entry.amount, price) > 0
    )


def in_time(order: Order, now: int) -> bool:
    """Neither expired nor too long."""
    return order.expiration >= now and order.expiration - now <= MONTH_MS


def executed_amount(taker: Entry, maker: Entry) -> Decimal:
    """How much two orders exchange."""
    price = Decimal(maker.order.price)
    matched = min(corrected(taker.amount, price), corrected(maker.amount, price))
    if not taker.market:
        return matched
    order, available = taker.order, Decimal(taker.available)
    buys = order.side is Side.BUY
    spent = order.price_asset if buys else order.amount_asset
    same = spent == order.matcher_fee_asset
    product = WIDE.multiply(available, taker.amount)
    if buys and same:
        divisor = WIDE.add(
            WIDE.divide(WIDE.multiply(price, taker.amount), COIN), Decimal(taker.fee)
        )
        limit = corrected(floor(WIDE.divide(product, divisor)), price)
    elif buys:
        limit = corrected(floor(WIDE.divide(WIDE.multiply(available, COIN), price)), price)
    elif same:
        limit = floor(WIDE.divide(product, WIDE.add(taker.amount, Decimal(taker.fee))))
    else:
        limit = available
    if taker.whole_units:
        limit = corrected(limit, price)
    return min(matched, limit)


def share(fee: int, total: Decimal, part: Decimal) -> int:
    """A fee in proportion, with the reference's 34 digits."""
    product = MATH.multiply(Decimal(fee), part)
    return int(MATH.divide(product, total).to_integral_value(ROUND_DOWN))


def fees(fee: OrderFee, taker: Entry, maker: Entry, amount: Decimal) -> tuple[int, int]:
    """The taker's and the maker's fee."""
    mode = mode_of(fee, pair_of(taker.order))
    if isinstance(mode, PercentFee):
        return (
            percent_fee(mode, taker, maker, amount, takes=True),
            percent_fee(mode, maker, maker, amount, takes=False),
        )
    out = []
    for entry, takes in ((taker, True), (maker, False)):
        offered = entry.order.matcher_fee
        if isinstance(mode, DynamicFee):
            base = mode.base_taker_fee if takes else mode.base_maker_fee
            ratio = MATH.divide(
                Decimal(base), Decimal(max(mode.base_maker_fee, mode.base_taker_fee))
            )
            offered = int(ceil(MATH.multiply(Decimal(offered), ratio)))
        paid = share(offered, Decimal(entry.order.amount), amount)
        first = entry.amount == entry.order.amount
        out.append(max(paid, 1) if first and entry.order.version >= 3 else paid)
    return out[0], out[1]


def percent_fee(
    mode: PercentFee, entry: Entry, maker: Entry, amount: Decimal, *, takes: bool
) -> int:
    """One side's fee where percents are charged."""
    price = Decimal(maker.order.price)
    buys = entry.order.side is Side.BUY
    base = entry.order.matcher_fee if entry.percent is None else entry.percent
    if takes and buys and mode.asset_type is AssetType.SPENDING:
        ratio = MATH.divide(price, Decimal(entry.order.price))
        base = int(ceil(MATH.multiply(Decimal(base), ratio)))
    in_price = {
        AssetType.AMOUNT: False,
        AssetType.PRICE: True,
        AssetType.SPENDING: buys,
        AssetType.RECEIVING: not buys,
    }[mode.asset_type]

    def charged(units: Decimal) -> Decimal:
        return MATH.divide(MATH.multiply(units, price), COIN) if in_price else units

    const = base if entry.const is None else entry.const
    return share(max(const, base), charged(Decimal(entry.order.amount)), charged(amount))


class NaiveBook:
    """One pair."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.number = 0

    def best(self, side: Side) -> Entry | None:
        """The order of a side that is next."""
        sign = -1 if side is Side.BUY else 1
        own = [entry for entry in self.entries if entry.order.side is side]
        return min(own, key=lambda entry: (sign * entry.level, entry.number), default=None)

    def add(self, taker: Entry, now: int, tick: int, fee: OrderFee) -> list[Line]:
        """Place an order."""
        order = taker.order
        lines: list[Line] = [("added", order.id)]
        price = Decimal(order.price)
        if not in_time(order, now) or volume(Decimal(order.amount), price) <= 0:
            return [*lines, canceled(taker, "BecameInvalid")]
        other = Side.SELL if order.side is Side.BUY else Side.BUY
        sign = 1 if order.side is Side.BUY else -1
        while True:
            maker = self.best(other)
            if maker is None or sign * order.price < sign * maker.level:
                break
            if not is_valid(taker, Decimal(maker.order.price)):
                return [*lines, canceled(taker, "BecameUnmatchable")]
            if not in_time(maker.order, now):
                self.entries.remove(maker)
                lines.append(canceled(maker, "BecameInvalid"))
                continue
            amount = executed_amount(taker, maker)
            if amount == 0:
                return [*lines, canceled(taker, "BecameUnmatchable")]
            line, taker_goes_on, maker_goes_on = self.execute(taker, maker, amount, fee)
            lines.append(line)
            if not maker_goes_on:
                self.entries.remove(maker)
            if not taker_goes_on:
                return lines
            if maker_goes_on or (taker.market and taker.available <= 0):
                return [*lines, canceled(taker, "BecameUnmatchable")]
        if taker.market:
            return [*lines, canceled(taker, "BecameUnmatchable")]
        taker.level = order.price // tick * tick
        if order.side is Side.SELL and taker.level < order.price:
            taker.level += tick
        if taker.level == 0:
            return [*lines, canceled(taker, "BecameInvalid")]
        self.number += 1
        taker.number = self.number
        self.entries.append(taker)
        return lines

    def execute(
        self, taker: Entry, maker: Entry, amount: Decimal, fee: OrderFee
    ) -> tuple[Line, bool, bool]:
        """Exchange an amount, and tell whether either goes on."""
        price = Decimal(maker.order.price)
        taker_fee, maker_fee = fees(fee, taker, maker, amount)
        order = taker.order
        taker_fee *= order.sender_public_key not in taker.exempt
        maker_fee *= maker.order.sender_public_key not in taker.exempt
        if taker.market:
            buys = order.side is Side.BUY
            taker.available -= int(volume(amount, price) if buys else amount)
            if order.matcher_fee_asset == (order.price_asset if buys else order.amount_asset):
                taker.available -= taker_fee
        for entry, paid in ((taker, taker_fee), (maker, maker_fee)):
            entry.amount -= amount
            entry.fee = max(entry.fee - paid, 0)
            entry.nominator += int(amount * price)
        taker_goes_on = is_valid(taker, Decimal(order.price))
        maker_goes_on = is_valid(maker, price)
        line = (
            *("executed", order.id, maker.order.id, int(amount), maker.order.price),
            *(taker_fee, maker_fee, not taker_goes_on, not maker_goes_on),
            *(int(taker.amount), int(maker.amount), taker.nominator),
        )
        return line, taker_goes_on, maker_goes_on

    def cancel(self, order_id: bytes, reason: str) -> list[Line]:
        """Take an order out."""
        for entry in self.entries:
            if entry.order.id == order_id:
                self.entries.remove(entry)
                return [canceled(entry, reason)]
        return [("not found", order_id)]

    def cancel_all(self, reason: str) -> list[Line]:
        """Take all out."""
        lines = []
        for side in (Side.BUY, Side.SELL):
            while (entry := self.best(side)) is not None:
                self.entries.remove(entry)
                lines.append(canceled(entry, reason))
        return lines


def canceled(entry: Entry, reason: str) -> Line:
    """The line of a cancellation."""
    return "canceled", entry.order.id, reason, int(entry.amount), entry.fee
