"""Powers, roots and logarithms of decimal fractions, with exactly the reference's digits.

What lives here: ``pow``, ``log`` and the square root, for Int and BigInt. What does not:
``fraction`` (``arithmetic``).

The reference uses java.math.BigDecimal and the library big-math 2.3.2 (eobermuhlner/big-math,
``BigDecimalMath``) with a fixed number of digits. The last digits depend on its intermediate
roundings: log2(8) is 3 or 2.99.. before it is rounded down. So this module rounds in the same
steps. Python's and Java's decimals follow the same standard for values and exponents. The innermost
logarithm and the exponential, which the library iterates with many spare digits, are Python's.

Source: wavesplatform/Waves ``lang/jvm/src/main/scala/com/wavesplatform/lang/Global.scala``.
"""

from __future__ import annotations

import math
from decimal import (
    MAX_EMAX,
    MIN_EMIN,
    ROUND_CEILING,
    ROUND_DOWN,
    ROUND_FLOOR,
    ROUND_HALF_DOWN,
    ROUND_HALF_EVEN,
    ROUND_HALF_UP,
    ROUND_UP,
    Context,
    Decimal,
    DecimalException,
    DivisionByZero,
    InvalidOperation,
    Overflow,
)
from functools import cache
from typing import Final

from soliton.ride.environment import CallContext
from soliton.ride.errors import EvaluationError, NativeCrash
from soliton.ride.functions.arithmetic import (
    MAX_INT,
    MIN_INT,
    rounded_quotient,
    rounding_mode,
)
from soliton.ride.values import MAX_BIG_INT, MIN_BIG_INT, BigInt, CaseObject, Value

MAX_SCALE: Final = 8
"""The limit of decimals of an Int."""
MAX_BIG_SCALE: Final = 18
"""The limit of decimals of a BigInt."""

INT_DIGITS: Final = 19
INT_DIGITS_BEFORE: Final = 34
BIG_INT_DIGITS: Final = 154
BIG_INT_DIGITS_BEFORE: Final = 196
LOG_DIGITS: Final = 34

_MAX_JAVA_SCALE: Final = 2**31 - 1
_MIN_JAVA_SCALE: Final = -(2**31)
_CONSTANT_DIGITS: Final = 600
_EXACT_DIGITS: Final = 4000
_FIRST_DIGITS: Final = 15
_MAX_ROOT_STEPS: Final = 500
"""An iteration that has not converged after this many steps oscillates."""
_MAX_RESULT_EXPONENT: Final = 400
"""Results beyond this power of ten are out of every range."""

_ROUNDINGS: Final = {
    "Down": ROUND_DOWN,
    "Up": ROUND_UP,
    "HalfUp": ROUND_HALF_UP,
    "HalfDown": ROUND_HALF_DOWN,
    "HalfEven": ROUND_HALF_EVEN,
    "Ceiling": ROUND_CEILING,
    "Floor": ROUND_FLOOR,
}
_ZERO: Final = Decimal(0)
_ONE: Final = Decimal(1)
_TWO: Final = Decimal(2)
_TEN: Final = Decimal(10)
_HALF: Final = Decimal("0.5")


@cache
def _context(digits: int, rounding: str) -> Context:
    return Context(
        prec=digits,
        rounding=rounding,
        Emin=MIN_EMIN,
        Emax=MAX_EMAX,
        traps=[InvalidOperation, DivisionByZero, Overflow],
    )


_EXACT: Final = _context(_EXACT_DIGITS, ROUND_HALF_EVEN)


def power(
    context: CallContext,
    base: int,
    base_scale: int,
    exponent: int,
    exponent_scale: int,
    scale: int,
    rounding: Value,
) -> Value:
    """``pow`` of Int."""
    _check_scales("pow", MAX_SCALE, base_scale, exponent_scale, scale)
    mode = _mode(rounding)
    new = context.version >= 6 or context.switches.new_pow_precision
    digits, kind = (INT_DIGITS, ROUND_HALF_UP) if new else (INT_DIGITS_BEFORE, ROUND_HALF_EVEN)
    try:
        value = _power(
            _fraction(base, base_scale), _fraction(exponent, exponent_scale), digits, kind
        )
        result = _rescaled(value, scale, digits, mode) if new else _rounded(value, scale, mode)
    except DecimalException as error:
        raise EvaluationError(_words(error)) from None
    if not MIN_INT <= result <= MAX_INT:
        # In the reference, this error is not caught.
        raise NativeCrash("BigInteger out of long range")
    return result


def logarithm(
    number: int,
    number_scale: int,
    base: int,
    base_scale: int,
    scale: int,
    rounding: Value,
) -> Value:
    """``log`` of Int: of a number to a base."""
    _check_scales("log", MAX_SCALE, number_scale, base_scale, scale)
    result = _logarithm(
        _fraction(number, number_scale),
        _fraction(base, base_scale),
        scale,
        _mode(rounding),
        _context(LOG_DIGITS, ROUND_HALF_EVEN),
    )
    if not MIN_INT <= result <= MAX_INT:
        raise EvaluationError("Overflow")
    return result


def power_big(
    context: CallContext,
    base: BigInt,
    base_scale: int,
    exponent: BigInt,
    exponent_scale: int,
    scale: int,
    rounding: Value,
) -> Value:
    """``pow`` of BigInt."""
    if not _scales_fit(MAX_BIG_SCALE, base_scale, exponent_scale, scale):
        raise EvaluationError("pow: scale out of range 0-18")
    mode = _mode(rounding)
    new = context.version >= 6 or context.switches.new_pow_precision
    digits = BIG_INT_DIGITS if new else BIG_INT_DIGITS_BEFORE
    try:
        value = _power(
            _fraction(base.value, base_scale),
            _fraction(exponent.value, exponent_scale),
            digits,
            ROUND_HALF_UP,
        )
        result = _rescaled(value, scale, digits, mode) if new else _rounded(value, scale, mode)
    except DecimalException as error:
        raise EvaluationError(f"{_words(error)} on BigInt pow calculation") from None
    if not MIN_BIG_INT <= result <= MAX_BIG_INT:
        raise EvaluationError("Result out of 512-bit range on BigInt pow calculation")
    return BigInt(result)


def root_big(
    context: CallContext, number: BigInt, number_scale: int, scale: int, rounding: Value
) -> Value:
    """The square root of a BigInt."""
    return power_big(context, number, number_scale, BigInt(5), 1, scale, rounding)


def logarithm_big(
    number: BigInt,
    number_scale: int,
    base: BigInt,
    base_scale: int,
    scale: int,
    rounding: Value,
) -> Value:
    """``log`` of BigInt; the result always fits."""
    if not _scales_fit(MAX_BIG_SCALE, number_scale, base_scale, scale):
        raise EvaluationError("Scale out of range 0-18 on BigInt log calculation")
    mode = _mode(rounding)
    try:
        result = _logarithm(
            _fraction(number.value, number_scale),
            _fraction(base.value, base_scale),
            scale,
            mode,
            _context(BIG_INT_DIGITS, ROUND_HALF_UP),
        )
    except EvaluationError as error:
        raise EvaluationError(f"{error} on BigInt log calculation") from None
    return BigInt(result)


def _check_scales(name: str, most: int, *scales: int) -> None:
    if not _scales_fit(most, *scales):
        raise EvaluationError(f"{name}: scale out of range 0-{most}")


def _scales_fit(most: int, *scales: int) -> bool:
    return all(0 <= scale <= most for scale in scales)


def _mode(rounding: Value) -> CaseObject:
    rounding_mode(rounding)
    assert isinstance(rounding, CaseObject)
    return rounding


def _fraction(digits: int, scale: int) -> Decimal:
    return Decimal(digits).scaleb(-scale, _EXACT)


def _words(error: Exception) -> str:
    if isinstance(error, DivisionByZero):
        return "Division by zero"
    return str(error) if error.args and isinstance(error.args[0], str) else "Illegal number"


def _rounded(value: Decimal, scale: int, mode: CaseObject) -> int:
    """Return a value, rounded to ``scale`` decimals, as an integer without the point."""
    if value and abs(value.adjusted()) > _MAX_RESULT_EXPONENT:
        far = _MAX_RESULT_EXPONENT if value.adjusted() > 0 else -_MAX_RESULT_EXPONENT
        value = _ONE.scaleb(far, _EXACT).copy_sign(value)
    context = _context(_EXACT_DIGITS, _ROUNDINGS[mode.type_name])
    return int(_EXACT.scaleb(value.quantize(_ONE.scaleb(-scale), context=context), scale))


def _rescaled(value: Decimal, scale: int, digits: int, mode: CaseObject) -> int:
    """Like ``_rounded``, but without intermediate numbers of more than twice the digits."""
    sign, coefficient, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    unscaled = int("".join(map(str, coefficient)) or "0")
    if sign:
        unscaled = -unscaled
    surplus = -exponent - scale
    if surplus > 0:
        if surplus > digits - 1:
            return 0
        return rounded_quotient(unscaled, 10**surplus, mode)
    if -surplus > digits - 1:
        raise Overflow("Pow overflow")
    power_of_ten: int = 10 ** (-surplus)
    return unscaled * power_of_ten


def _logarithm(
    number: Decimal, base: Decimal, scale: int, mode: CaseObject, context: Context
) -> int:
    try:
        quotient = context.divide(_log(number, context), _log(base, context))
        return _rounded(quotient, scale, mode)
    except DecimalException as error:
        raise EvaluationError(_words(error)) from None


def _power(base: Decimal, exponent: Decimal, digits: int, rounding: str) -> Decimal:
    if exponent.as_tuple() == _HALF.as_tuple():
        return _square_root(base, digits, rounding)
    context = _context(digits, rounding)
    if not base:
        if not exponent:
            return _ONE
        if exponent > 0:
            return _ZERO
    if exponent == exponent.to_integral_value(ROUND_DOWN, _EXACT):
        whole = int(exponent)
        if MIN_INT <= whole <= MAX_INT:
            return _whole_power(base, whole, digits, rounding)
        return _huge_power(base, exponent, digits, rounding)
    inner = _context(digits + 6, rounding)
    product = inner.multiply(exponent, _log(base, inner))
    if abs(product) >= 2**31:
        raise Overflow("Overflow")
    return context.plus(inner.exp(product))


def _product(left: Decimal, right: Decimal, context: Context) -> Decimal:
    """Return a product; raise ``Overflow`` beyond Java's limit of exponents."""
    product = context.multiply(left, right)
    if product:
        first, second = left.as_tuple().exponent, right.as_tuple().exponent
        assert isinstance(first, int)
        assert isinstance(second, int)
        if not _MIN_JAVA_SCALE <= -(first + second) <= _MAX_JAVA_SCALE:
            raise Overflow("Overflow" if first + second > 0 else "Underflow")
    return product


def _whole_power(base: Decimal, exponent: int, digits: int, rounding: str) -> Decimal:
    context = _context(digits, rounding)
    inner = _context(digits + 10, rounding)
    if exponent < 0:
        if exponent == MIN_INT:
            raise NativeCrash("an exponent that has no opposite")
        value = _whole_power(base, -exponent, digits + 10, rounding)
        return context.plus(inner.divide(_ONE, value))
    result = _ONE
    while exponent > 0:
        if exponent & 1:
            result = _product(result, base, inner)
            exponent -= 1
        if exponent > 0:
            base = _product(base, base, inner)
        exponent >>= 1
    return context.plus(result)


def _huge_power(base: Decimal, exponent: Decimal, digits: int, rounding: str) -> Decimal:
    """Return a power with an integer exponent of more than 64 bits."""
    context = _context(digits, rounding)
    if exponent < 0:
        return context.divide(_ONE, _huge_power(base, -exponent, digits, rounding))
    inner = _context(digits + 30, rounding)
    result = _ONE
    while exponent > 0:
        half = inner.divide(exponent, _TWO)
        if half != half.to_integral_value(ROUND_DOWN, _EXACT):
            result = _product(result, base, inner)
            exponent = _EXACT.subtract(exponent, _ONE)
            half = inner.divide(exponent, _TWO)
        if half > 0:
            base = _product(base, base, inner)
        exponent = half
    return context.plus(result)


def _square_root(number: Decimal, digits: int, rounding: str) -> Decimal:
    if not number:
        return _ZERO
    if number < 0:
        raise InvalidOperation(f"Illegal sqrt(x) for x < 0: x = {number}")
    context = _context(digits, rounding)
    most = digits + 6
    acceptable = _ONE.scaleb(-(digits + 1), _EXACT)
    result = _of_double(math.sqrt(float(number)))
    if _EXACT.multiply(result, result) == number:
        return context.plus(result)
    current = _FIRST_DIGITS
    for _ in range(_MAX_ROOT_STEPS):
        last = result
        current = min(current * 2, most)
        inner = _context(current, rounding)
        total = _EXACT.add(inner.divide(number, result), last)
        result = inner.multiply(total, _HALF)
        if current >= most and abs(_EXACT.subtract(result, last)) <= acceptable:
            return context.plus(result)
    raise NativeCrash("the square root does not settle")


def _of_double(number: float) -> Decimal:
    """Convert a double to the decimal that Java would print."""
    value = Decimal(repr(number)).normalize(_EXACT)
    least = -1 if 1e-3 <= number < 1e7 else value.adjusted() - 1
    exponent = value.as_tuple().exponent
    assert isinstance(exponent, int)
    return value.quantize(_ONE.scaleb(least), context=_EXACT) if exponent > least else value


@cache
def _log_of(number: int, digits: int, rounding: str) -> Decimal:
    whole = _context(_CONSTANT_DIGITS, ROUND_HALF_EVEN).ln(Decimal(number))
    return _context(digits, rounding).plus(whole)


def _log(number: Decimal, context: Context) -> Decimal:
    """Return the natural logarithm, rounded as big-math does."""
    if number <= 0:
        raise InvalidOperation(f"Illegal log(x) for x <= 0: x = {number}")
    if number == 1:
        return _ZERO
    if number == _TEN:
        return _log_of(10, context.prec, context.rounding)
    if number < _TEN:
        return context.plus(_log_of_small(number, context))
    inner = _context(context.prec + 4, context.rounding)
    exponent = number.adjusted()
    result = _log_of_small(number.scaleb(-exponent, _EXACT), inner)
    if exponent:
        ten = _log_of(10, context.prec * 2, context.rounding)
        result = _EXACT.add(result, inner.multiply(Decimal(exponent), ten))
    return context.plus(result)


_FACTORS: Final = (
    # Numbers below the first column are divided by these powers of 2 and 3, to be close to 1.
    (0.115, 0, -2),
    (0.14, -3, 0),
    (0.2, -1, -1),
    (0.3, -2, 0),
    (0.42, 0, -1),
    (0.7, -1, 0),
    (1.4, 0, 0),
    (2.5, 1, 0),
    (3.5, 0, 1),
    (5.0, 2, 0),
    (7.0, 1, 1),
    (8.5, 3, 0),
    (10.0, 0, 2),
)


def _log_of_small(number: Decimal, context: Context) -> Decimal:
    """Return the logarithm of a number up to ten, without the final rounding."""
    inner = _context(context.prec + 4, context.rounding)
    twos, threes = _factors(float(number))
    result = _ZERO
    for count, prime in ((twos, 2), (threes, 3)):
        if not count:
            continue
        factor = Decimal(prime ** abs(count))
        part = inner.multiply(
            _log_of(prime, context.prec * 2, context.rounding), Decimal(abs(count))
        )
        if count > 0:
            number = inner.divide(number, factor)
            result = _EXACT.add(result, part)
        else:
            number = inner.multiply(number, factor)
            result = _EXACT.subtract(result, part)
    if not (twos or threes):
        return _exact_log(number, context)
    return inner.add(result, _exact_log(number, inner))


def _exact_log(number: Decimal, context: Context) -> Decimal:
    """Return the logarithm with spare digits, where the reference iterates."""
    return _context(context.prec + 30, ROUND_HALF_EVEN).ln(number)


def _factors(number: float) -> tuple[int, int]:
    if number < 0.01:
        return 0, 0
    if number < 0.1:
        twos = 0
        while number < 0.6:
            number *= 2
            twos -= 1
        return twos, 0
    for limit, twos, threes in _FACTORS:
        if number < limit:
            return twos, threes
    twos = 0
    while number > 1.4:
        number /= 2
        twos += 1
    return twos, 0
