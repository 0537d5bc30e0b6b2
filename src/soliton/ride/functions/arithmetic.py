"""Arithmetic of Int and BigInt: exact, with errors on overflow.

What lives here: operators, comparisons, fractions and rounding modes, functions on lists of numbers
(minimum, maximum, median). What does not: powers and logarithms (``decimals``), conversions
(``conversions``).

Int has 64 bits, BigInt 512. Division rounds down for Int, toward zero for BigInt.

Source: wavesplatform/Waves ``lang/shared/src/main/scala/com/wavesplatform/lang/v1/evaluator/ctx/
impl/PureContext.scala`` and ``lang/v1/BaseGlobal.scala`` (``divide``, ``median``).
"""

from __future__ import annotations

from typing import Final, cast

from soliton.ride.errors import EvaluationError, NativeCrash
from soliton.ride.functions.calling import mismatch
from soliton.ride.values import MAX_BIG_INT, MIN_BIG_INT, BigInt, CaseObject, RideList, Value

MIN_INT: Final = -(2**63)
MAX_INT: Final = 2**63 - 1

_NO_DIVISOR: Final = "/ by zero"


def _fitting(result: int) -> int:
    if MIN_INT <= result <= MAX_INT:
        return result
    raise EvaluationError("long overflow")


def add(left: int, right: int) -> Value:
    """``+`` of Int."""
    return _fitting(left + right)


def subtract(left: int, right: int) -> Value:
    """``-`` of Int."""
    return _fitting(left - right)


def multiply(left: int, right: int) -> Value:
    """``*`` of Int."""
    return _fitting(left * right)


def divide(left: int, right: int) -> Value:
    """``/`` of Int, rounded down; the minimum divided by -1 wraps around, as in Java."""
    if right == 0:
        raise EvaluationError(_NO_DIVISOR)
    result = left // right
    return result if result <= MAX_INT else MIN_INT


def modulo(left: int, right: int) -> Value:
    """``%`` of Int; the result has the sign of the divisor."""
    if right == 0:
        raise EvaluationError(_NO_DIVISOR)
    return left % right


def greater(left: int, right: int) -> Value:
    """``>`` of Int."""
    return left > right


def greater_or_equal(left: int, right: int) -> Value:
    """``>=`` of Int."""
    return left >= right


def fraction(value: int, numerator: int, denominator: int) -> Value:
    """``fraction`` since version 5, rounded toward zero."""
    result = _truncated_fraction(value, numerator, denominator)
    if result > MAX_INT:
        raise EvaluationError(f"Long overflow: value `{result}` greater than 2^63-1")
    if result < MIN_INT:
        raise EvaluationError(f"Long overflow: value `{result}` less than -2^63-1")
    return result


def fraction_before_version_5(value: int, numerator: int, denominator: int) -> Value:
    """``fraction`` before version 5, where the minimum and the maximum are errors."""
    result = _truncated_fraction(value, numerator, denominator)
    if result >= MAX_INT:
        raise EvaluationError(f"Long overflow: value `{result}` greater than 2^63-1")
    if result <= MIN_INT:
        raise EvaluationError(f"Long overflow: value `{result}` less than -2^63-1")
    return result


def rounded_fraction(value: int, numerator: int, denominator: int, rounding: CaseObject) -> Value:
    """``fraction`` with a rounding mode, since version 6."""
    if denominator == 0:
        raise EvaluationError("Fraction: division by zero")
    result = rounded_quotient(value * numerator, denominator, rounding)
    if not MIN_INT <= result <= MAX_INT:
        raise EvaluationError(f"Fraction result {result} out of integers range")
    return result


def add_big(left: BigInt, right: BigInt) -> Value:
    """``+`` of BigInt."""
    return _fitting_big(left.value + right.value, left, "+", right)


def subtract_big(left: BigInt, right: BigInt) -> Value:
    """``-`` of BigInt."""
    return _fitting_big(left.value - right.value, left, "-", right)


def multiply_big(left: BigInt, right: BigInt) -> Value:
    """``*`` of BigInt."""
    return _fitting_big(left.value * right.value, left, "*", right)


def divide_big(left: BigInt, right: BigInt) -> Value:
    """``/`` of BigInt, rounded toward zero."""
    if right.value == 0:
        raise EvaluationError("BigInteger divide by zero")
    return _fitting_big(truncated_quotient(left.value, right.value), left, "/", right)


def modulo_big(left: BigInt, right: BigInt) -> Value:
    """``%`` of BigInt; the result has the sign of the dividend."""
    if right.value == 0:
        raise EvaluationError("BigInteger divide by zero")
    remainder = abs(left.value) % abs(right.value)
    return BigInt(-remainder if left.value < 0 else remainder)


def negate_big(number: BigInt) -> Value:
    """Unary ``-`` of BigInt."""
    if number.value == MIN_BIG_INT:
        raise EvaluationError("Positive BigInt overflow")
    return BigInt(-number.value)


def greater_big(left: BigInt, right: BigInt) -> Value:
    """``>`` of BigInt."""
    return left.value > right.value


def greater_or_equal_big(left: BigInt, right: BigInt) -> Value:
    """``>=`` of BigInt."""
    return left.value >= right.value


def fraction_big(value: BigInt, numerator: BigInt, denominator: BigInt) -> Value:
    """``fraction`` of BigInt, rounded toward zero."""
    return _fraction_in_range(_truncated_fraction(value.value, numerator.value, denominator.value))


def rounded_fraction_big(
    value: BigInt, numerator: BigInt, denominator: BigInt, rounding: CaseObject
) -> Value:
    """``fraction`` of BigInt with a rounding mode."""
    if denominator.value == 0:
        raise EvaluationError("Fraction: division by zero")
    product = value.value * numerator.value
    return _fraction_in_range(rounded_quotient(product, denominator.value, rounding))


ROUNDING_MODES: Final = frozenset(
    ("Down", "Up", "HalfUp", "HalfDown", "HalfEven", "Ceiling", "Floor")
)


def rounding_mode(rounding: Value) -> str:
    """Return the name of a rounding mode; raise ``NativeCrash`` for anything else."""
    if (
        not isinstance(rounding, CaseObject)
        or rounding.type_name not in ROUNDING_MODES
        or rounding.fields
    ):
        raise NativeCrash("key not found: a rounding mode")
    return rounding.type_name


def rounded_quotient(dividend: int, divisor: int, rounding: CaseObject) -> int:
    """Return a quotient, rounded by a rounding mode."""
    return _rounded(dividend, divisor, rounding_mode(rounding))


def _rounded(dividend: int, divisor: int, mode: str) -> int:
    negative = (dividend < 0) != (divisor < 0)
    quotient, remainder = divmod(abs(dividend), abs(divisor))
    missing = abs(divisor) - 2 * remainder
    match mode:
        case "Down":
            up = False
        case "Up":
            up = remainder > 0
        case "HalfUp":
            up = missing <= 0
        case "HalfDown":
            up = missing < 0
        case "HalfEven":
            up = missing < 0 or (missing == 0 and quotient % 2 == 1)
        case "Ceiling":
            up = not negative and remainder > 0
        case _:
            up = negative and remainder > 0
    quotient += up
    return -quotient if negative else quotient


def truncated_quotient(dividend: int, divisor: int) -> int:
    """Return a quotient, rounded toward zero."""
    quotient = abs(dividend) // abs(divisor)
    return -quotient if (dividend < 0) != (divisor < 0) else quotient


def largest(numbers: RideList) -> Value:
    """``max`` of a list of Int."""
    return max(_numbers(numbers, "max"))


def smallest(numbers: RideList) -> Value:
    """``min`` of a list of Int."""
    return min(_numbers(numbers, "min"))


def largest_big(numbers: RideList) -> Value:
    """``max`` of a list of BigInt."""
    return BigInt(max(_big_numbers(numbers, "max")))


def smallest_big(numbers: RideList) -> Value:
    """``min`` of a list of BigInt."""
    return BigInt(min(_big_numbers(numbers, "min")))


def median(numbers: RideList) -> Value:
    """``median`` of a list of Int; of two middle numbers, their mean, rounded down."""
    if numbers.items and type(numbers.items[0]) is not int:
        raise mismatch("median", (numbers,))
    if not numbers.items:
        raise EvaluationError("Can't find median for empty list")
    return _median(_numbers(numbers, "median"))


def median_big(numbers: RideList) -> Value:
    """``median`` of a list of BigInt, rounded down as well."""
    if numbers.items and type(numbers.items[0]) is not BigInt:
        raise mismatch("median", (numbers,))
    if not numbers.items:
        raise EvaluationError("Can't find median for empty list of BigInt")
    return BigInt(_median(_big_numbers(numbers, "median")))


def _median(numbers: list[int]) -> int:
    ordered = sorted(numbers)
    middle = len(ordered) // 2
    if len(ordered) % 2:
        return ordered[middle]
    low, high = ordered[middle - 1], ordered[middle]
    return (low + high) // 2


def _numbers(numbers: RideList, name: str) -> list[int]:
    if not numbers.items:
        raise EvaluationError(f"Can't find {name} for empty list")
    if set(map(type, numbers.items)) != {int}:
        raise NativeCrash("class cast: an element that is not an Int")
    return cast(list[int], list(numbers.items))


def _big_numbers(numbers: RideList, name: str) -> list[int]:
    if not numbers.items:
        raise EvaluationError(f"Can't find {name} for empty list")
    found = []
    for item in numbers.items:
        if not isinstance(item, BigInt):
            raise NativeCrash("class cast: an element that is not a BigInt")
        found.append(item.value)
    return found


def _truncated_fraction(value: int, numerator: int, denominator: int) -> int:
    if denominator == 0:
        raise EvaluationError("Fraction: division by zero")
    return truncated_quotient(value * numerator, denominator)


def _fraction_in_range(result: int) -> BigInt:
    if result > MAX_BIG_INT:
        raise EvaluationError(f"Long overflow: value `{result}` greater than 2^511-1")
    if result < MIN_BIG_INT:
        raise EvaluationError(f"Long overflow: value `{result}` less than -2^511")
    return BigInt(result)


def _fitting_big(result: int, left: BigInt, sign: str, right: BigInt) -> BigInt:
    if not MIN_BIG_INT <= result <= MAX_BIG_INT:
        raise EvaluationError(f"{left.value} {sign} {right.value} is out of range.")
    return BigInt(result)
