"""Integer arithmetic of an execution: corrected amounts, proportional fees, and prices and amounts
with and without decimals.

Amounts and fees are in the smallest unit of their asset. A price is normalised: price-asset units
for ``PRICE_CONSTANT`` amount-asset units.

What lives here: arithmetic on plain numbers. What does not: which orders match (``book``), and
which fee settings apply (``fees``).

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
"""The maximum number of decimal places in amounts and prices shown to clients."""

EXACT: Final = decimal.Context(prec=34, rounding=decimal.ROUND_HALF_EVEN, traps=[])
"""The precision of the reference's decimals: products and quotients are rounded to 34 digits."""

_EXACT_FEE: Final = 10**15
"""Below this, integer arithmetic gives the same proportional fee as the reference's decimals."""


def corrected_amount(amount: int, price: int) -> int:
    """The smallest amount that costs as many whole price-asset units as ``amount`` does."""
    return -(-(amount * price // PRICE_CONSTANT * PRICE_CONSTANT) // price)


def price_volume(amount: int, price: int) -> int:
    """The cost of an amount at a price, in whole price-asset units."""
    return amount * price // PRICE_CONSTANT


def can_go_on(amount: int, own_price: int, counter_price: int) -> bool:
    """Whether a remaining amount is worth at least one price-asset unit at both prices.

    The remainder of an order that cannot go on is dust: the order counts as filled.
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
    """The amount that a market order with this remaining amount and fee can execute at a price with
    the funds ``available``; ``fee_is_spent`` if its fee is paid in the asset it spends.
    """
    if side is Side.SELL:
        return available * amount // (amount + fee) if fee_is_spent else available
    if fee_is_spent:
        # The divisor has eight decimals, so both sides are scaled up.
        affordable = available * amount * PRICE_CONSTANT // (price * amount + fee * PRICE_CONSTANT)
    else:
        affordable = available * PRICE_CONSTANT // price
    return corrected_amount(affordable, price)


def partial_fee(fee: int, total: int | Decimal, part: int | Decimal) -> int:
    """The share of a fee for a part of a total, truncated to whole units; ``part <= total``.

    The reference rounds the product and the quotient to 34 digits, which matters for huge fees.
    """
    if fee < _EXACT_FEE and type(total) is int and type(part) is int:
        return fee * part // total
    return int(EXACT.divide(EXACT.multiply(Decimal(fee), Decimal(part)), Decimal(total)))


def multiply_up(fee: int, factor: Decimal) -> int:
    """A fee times a factor, rounded up to whole units."""
    return round_up(EXACT.multiply(Decimal(fee), factor))


def round_up(value: Decimal) -> int:
    """The value rounded up to a whole number."""
    return int(value.to_integral_value(rounding=decimal.ROUND_CEILING))


def round_half_up(value: Decimal) -> int:
    """The nearest whole number; halves round away from zero."""
    return int(value.to_integral_value(rounding=decimal.ROUND_HALF_UP))


def correct_by_tick(price: int, side: Side, tick_size: int) -> int:
    """The level of a price: rounded to the tick, down for buyers and up for sellers."""
    rest = price % tick_size
    if rest == 0:
        return price
    return price - rest if side is Side.BUY else price - rest + tick_size


def fixed_price(price: int, amount_decimals: int, price_decimals: int) -> int:
    """A price with eight decimals, as in exchange transactions of version 3, truncated. The caller
    rejects results that exceed 64 bits.
    """
    if price_decimals >= amount_decimals:
        return price // power_of_ten(price_decimals - amount_decimals)
    return price * power_of_ten(amount_decimals - price_decimals)


def power_of_ten(exponent: int) -> int:
    """Ten to a non-negative power."""
    return _POWERS[exponent] if exponent < len(_POWERS) else int("1" + "0" * exponent)


_POWERS: Final[tuple[int, ...]] = tuple(10**exponent for exponent in range(9))
"""For the decimals of every existing asset."""


def normalize_amount(value: Decimal, decimals: int) -> int:
    """A decimal amount or fee in the asset's smallest units, truncated."""
    return int(value.scaleb(decimals, EXACT))


def normalize_price(value: Decimal, amount_decimals: int, price_decimals: int) -> int:
    """A decimal price, normalised and truncated."""
    return int(value.scaleb(PRICE_DECIMALS + price_decimals - amount_decimals, EXACT))


def denormalize_amount(amount: int, decimals: int) -> Decimal:
    """An amount or fee in whole assets."""
    return Decimal(amount).scaleb(-decimals, EXACT)


def denormalize_price(price: int, amount_decimals: int, price_decimals: int) -> Decimal:
    """A normalised price in whole price assets per whole amount asset."""
    return Decimal(price).scaleb(amount_decimals - price_decimals - PRICE_DECIMALS, EXACT)


def decimal_text(value: Decimal) -> str:
    """A number without exponent or trailing zeros, with at most 16 decimal places."""
    quantum = Decimal(1).scaleb(-MAX_SHOWN_DECIMALS)
    digits = value.adjusted() + 2 + MAX_SHOWN_DECIMALS
    # Settings and rates can produce numbers of hundreds of digits.
    context = _SHOWN if digits <= _SHOWN.prec else decimal.Context(prec=digits)
    text = f"{value.quantize(quantum, decimal.ROUND_HALF_EVEN, context):f}"
    return text.rstrip("0").rstrip(".") or "0"


_SHOWN: Final = decimal.Context(prec=80)
