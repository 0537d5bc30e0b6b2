"""Numbers in the streams: doubles in Java's text form.

What lives here: the text, and amounts and prices with their decimals. What does not: the exact
decimals of the REST interface.

Source: ``Double.toString`` of the Java platform; wavesplatform/matcher
``dex/src/main/scala/com/wavesplatform/dex/api/ws/package.scala``.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Final

from soliton.matching.arithmetic import PRICE_DECIMALS

_LEAST_PLAIN: Final = 1e-3
_LEAST_SCIENTIFIC: Final = 1e7


def double_text(value: Decimal | float) -> str:
    """A number as a double: plain from 0.001 to below 10,000,000, else with an exponent."""
    double = float(value)
    if double == 0:
        return "0.0"
    if _LEAST_PLAIN <= abs(double) < _LEAST_SCIENTIFIC:
        return repr(double)
    sign, digits, exponent = Decimal(repr(double)).as_tuple()
    if not isinstance(exponent, int):
        return repr(double)
    figures = "".join(map(str, digits)).rstrip("0") or "0"
    shift = len(digits) - 1 + exponent
    return f"{'-' if sign else ''}{figures[0]}.{figures[1:] or '0'}E{shift}"


def amount_text(units: int, decimals: int) -> str:
    """An amount of an asset, given in its smallest units."""
    # Dividing integers rounds once, as dividing decimals would.
    return double_text(units / 10**decimals)


def price_text(units: int, amount_decimals: int, price_decimals: int) -> str:
    """A normalised price of a pair."""
    return double_text(units / 10 ** (PRICE_DECIMALS + price_decimals - amount_decimals))
