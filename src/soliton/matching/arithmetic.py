"""The integers of an execution: amounts that come out even, fees in proportion, prices and amounts
with and without decimals.

Amounts and fees are in the smallest unit of their asset. A price is normalised: price-asset units
for ``PRICE_CONSTANT`` amount-asset units.

What lives here: arithmetic on plain numbers. What does not: which orders meet (``book``), and which
fee settings apply (``fees``).

Sources: wavesplatform/matcher ``dex/src/main/scala/com/wavesplatform/dex/model/MatcherModel.scala``
and ``OrderBook.scala``, ``waves-integration/src/main/scala/com/wavesplatform/dex/domain/model``.
"""

from __future__ import annotations

import decimal
from decimal import Decimal
from typing import Final

from soliton.chain.orders import MAX_AMOUNT, PRICE_CONSTANT, Side

PRICE_DECIMALS: Final = 8
MAX_SHOWN_DECIMALS: Final = 16
"""Amounts and prices are written with at most so many digits behind the point."""

EXACT: Final = decimal.Context(prec=34, rounding=decimal.ROUND_HALF_EVEN, traps=[])
"""The precision of the reference's decimals: products and quotients are rounded to 34 digits."""

_EXACT_FEE: Final = 10**15
"""Up to here a fee in proportion has the same whole part when computed with integers."""


def corrected_amount(amount: int, price: int) -> int:
    """The least amount that is worth as many whole price-asset units as ``amount`` is."""
    return -(-(amount * price // PRICE_CONSTANT * PRICE_CONSTANT) // price)


def price_volume(amount: int, price: int) -> int:
    """What an amount costs at a price, in whole price-asset units."""
    return amount * price // PRICE_CONSTANT


def can_go_on(amount: int, own_price: int, counter_price: int) -> bool:
    """Whether the rest of an order is worth a unit of the price asset, at both prices.

    What is left of an order that cannot go on is dust: the order is filled.
    """
    return (
        0 < amount < MAX_AMOUNT
        and amount * own_price >= PRICE_CONSTANT
        and amount * counter_price >= PRICE_CONSTANT
    )


def market_limit(
    side: Side,
    *,
    amount: int,
    fee: int,
    available: int,
    price: int,
    fee_is_spent: bool,
) -> int:
    """How much a market order of the given remaining amount and fee can execute at a price with
    what is available for spending; ``fee_is_spent`` if the fee is paid in the asset that it spends.
    """
    if side is Side.SELL:
        return available * amount // (amount + fee) if fee_is_spent else available
    if fee_is_spent:
        # The divisor has eight decimals; both sides are scaled up by them.
        affordable = available * amount * PRICE_CONSTANT // (price * amount + fee * PRICE_CONSTANT)
    else:
        affordable = available * PRICE_CONSTANT // price
    return corrected_amount(affordable, price)


def partial_fee(fee: int, total: int | Decimal, part: int | Decimal) -> int:
    """The share of a fee that falls on a part, cut down to whole units; ``part <= total``.

    The reference rounds the product and the quotient to 34 digits, which shows with huge fees.
    """
    if fee < _EXACT_FEE and type(total) is int and type(part) is int:
        return fee * part // total
    return int(EXACT.divide(EXACT.multiply(Decimal(fee), Decimal(part)), Decimal(total)))


def multiply_up(fee: int, factor: Decimal) -> int:
    """A fee times a factor, rounded up to whole units."""
    return round_up(EXACT.multiply(Decimal(fee), factor))


def round_up(value: Decimal) -> int:
    """The next whole number."""
    return int(value.to_integral_value(rounding=decimal.ROUND_CEILING))


def round_half_up(value: Decimal) -> int:
    """The nearest whole number, halves away from zero."""
    return int(value.to_integral_value(rounding=decimal.ROUND_HALF_UP))


def correct_by_tick(price: int, side: Side, tick_size: int) -> int:
    """The level of a price: rounded down to the tick for buyers, up for sellers."""
    rest = price % tick_size
    if rest == 0:
        return price
    return price - rest if side is Side.BUY else price - rest + tick_size


def fixed_price(price: int, amount_decimals: int, price_decimals: int) -> int:
    """A price of a pair with eight decimals, as exchange transactions of version 3 hold it; cut
    down. The caller refuses what leaves 64 bits.
    """
    if price_decimals >= amount_decimals:
        return price // power_of_ten(price_decimals - amount_decimals)
    return price * power_of_ten(amount_decimals - price_decimals)


def power_of_ten(exponent: int) -> int:
    """Ten to a power of zero or more."""
    return _POWERS[exponent] if exponent < len(_POWERS) else int("1" + "0" * exponent)


_POWERS: Final[tuple[int, ...]] = tuple(10**exponent for exponent in range(9))
"""Those of all assets that there are."""


def normalize_amount(value: Decimal, decimals: int) -> int:
    """Decimal text of an amount or fee in the asset's smallest units, cut down."""
    return int(value.scaleb(decimals, EXACT))


def normalize_price(value: Decimal, amount_decimals: int, price_decimals: int) -> int:
    """A decimal price, normalised, cut down."""
    return int(value.scaleb(PRICE_DECIMALS + price_decimals - amount_decimals, EXACT))


def denormalize_amount(amount: int, decimals: int) -> Decimal:
    """An amount or fee in whole assets."""
    return Decimal(amount).scaleb(-decimals, EXACT)


def denormalize_price(price: int, amount_decimals: int, price_decimals: int) -> Decimal:
    """A normalised price in whole price assets for a whole amount asset."""
    return Decimal(price).scaleb(amount_decimals - price_decimals - PRICE_DECIMALS, EXACT)


def decimal_text(value: Decimal) -> str:
    """A number without exponent and trailing zeros, with at most 16 digits behind the point."""
    quantum = Decimal(1).scaleb(-MAX_SHOWN_DECIMALS)
    digits = value.adjusted() + 2 + MAX_SHOWN_DECIMALS
    # What operators and rates lead to may have hundreds of digits.
    context = _SHOWN if digits <= _SHOWN.prec else decimal.Context(prec=digits)
    text = f"{value.quantize(quantum, decimal.ROUND_HALF_EVEN, context):f}"
    return text.rstrip("0").rstrip(".") or "0"


_SHOWN: Final = decimal.Context(prec=80)
