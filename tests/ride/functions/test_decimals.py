"""Powers, roots and logarithms, with answers that the reference's own tests expect."""

from __future__ import annotations

import time
from contextlib import suppress
from decimal import MIN_EMIN, Context, Decimal, InvalidOperation, Overflow, localcontext

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from soliton.ride.errors import EvaluationError, NativeCrash
from soliton.ride.functions import decimals
from soliton.ride.values import BigInt, CaseObject, Value
from tests.ride.functions.plain import call
from tests.ride.functions.setting import BEFORE, context_of

MAX = 2**63 - 1
MAX_BIG = 2**511 - 1
MIN_BIG = -(2**511)

MODES = {
    name.upper(): CaseObject(name, {}, 40)
    for name in ("Down", "Up", "HalfUp", "HalfDown", "HalfEven", "Ceiling", "Floor")
}

# base, its decimals, exponent, its decimals, decimals of the result, rounding: result
POWERS = """
12 1 3456 3 2 DOWN: 187
12 1 3456 3 2 UP: 188
0 1 3456 3 2 UP: 0
20 1 -1 0 4 DOWN: 5000
-20 1 -1 0 4 DOWN: -5000
0 1 -1 0 4 DOWN: Division by zero
0 0 0 0 2 DOWN: 100
2 0 62 0 0 DOWN: 4611686018427387904
2 0 63 0 0 DOWN: out of long range
10 0 -8 0 8 HALFUP: 1
10 0 -9 0 8 HALFUP: 0
98765432 8 MAX 8 8 DOWN: 0
987654 8 987654321 0 0 DOWN: 0
9 0 999999 0 0 FLOOR: Pow overflow
987654321 8 98765432101234 8 8 DOWN: Pow overflow
98765432 8 145998765432 8 8 HALFUP: 1
198765432 8 6298765432 8 0 DOWN: 6191427136334512235
MAX 0 MAX 8 8 DOWN: Overflow
MAX 0 MAX 0 0 DOWN: Overflow
-MAX 0 MAX 0 0 DOWN: Overflow
MAX 0 -MAX 0 8 DOWN: Overflow
1 8 -MAX 0 8 DOWN: Underflow
98765432 8 -MAX 8 8 DOWN: Pow overflow
98765432 8 -MAX 0 8 DOWN: Underflow
98765432 8 MAX 0 8 DOWN: Underflow
MAX 0 5 1 8 DOWN: 303700049997604969
MAX 8 5 1 8 DOWN: 30370004999760
-4 0 5 1 8 DOWN: Illegal sqrt
-4 0 15 1 8 DOWN: Illegal log
4 0 15 1 8 DOWN: 800000000
4 0 5 1 8 FLOOR: 200000000
"""

POWERS_BIG = """
2 0 510 0 0 DOWN: 2^510
2 0 511 0 0 DOWN: out of 512-bit range
-2 0 511 0 0 DOWN: -2^511
-2 0 512 0 0 DOWN: out of 512-bit range
12 1 3456 3 2 DOWN: 187
0 1 3456 3 2 DOWN: 0
20 1 -1 0 4 DOWN: 5000
-20 1 -1 0 4 DOWN: -5000
0 1 -1 0 4 DOWN: Division by zero
MAX 0 MAX 18 18 DOWN: Overflow
MAX 0 MAX 0 0 DOWN: Overflow
MIN 0 MAX 0 0 DOWN: Overflow
MAX 0 MIN 0 18 DOWN: Overflow
1 18 MIN 0 18 DOWN: Underflow
987654321012345678 18 MIN 0 18 DOWN: Underflow
987654321012345678 18 MAX 0 18 DOWN: Underflow
987654321012345678 18 HUGE 18 18 DOWN: 0
987654321012345678 18 3259987654320123456789 18 18 HALFUP: 3
1987654321012345678 18 515598765432101234567 18 0 DOWN: SOME
"""
HUGE = MAX_BIG // (MAX**7 // 4)
SOME = (
    "66707955277626219063754448025686920780044717121587147171655765018803184892643765340283445820"
    "79701518666593922923767238664173166263805614917588045354008642"
)

LOGARITHMS = """
16 0 2 0 0 CEILING: 4
8 0 2 0 0 DOWN: 3
100 0 10 0 0 DOWN: 2
1 4 1 1 0 HALFEVEN: 4
16 0 -2 0 0 CEILING: Illegal log
-16 0 2 0 0 CEILING: Illegal log
16 0 1 0 0 CEILING: Division by zero
1 0 2 0 8 CEILING: 0
"""

Row = tuple[list[int], CaseObject, str]


def rows(table: str, largest: int) -> list[Row]:
    """The numbers, the rounding and the result of each line."""
    known = {"HUGE": HUGE, "MAX": largest, "-MAX": -largest, "MIN": -largest - 1}
    found = []
    table = table.replace("SOME", SOME)
    for line in table.strip().splitlines():
        question, _, answer = line.partition(": ")
        *numbers, mode = question.split()
        found.append(([known[n] if n in known else int(n) for n in numbers], MODES[mode], answer))
    return found


def expect(key: int, arguments: list[Value], answer: str, version: int) -> None:
    context = context_of(version)
    if answer.lstrip("-")[0].isdigit():
        base, _, exponent = answer.partition("^")
        sign = -1 if base.startswith("-") else 1
        wanted = sign * abs(int(base)) ** int(exponent or 1)
        result = call(key, arguments, context)
        assert (result.value if isinstance(result, BigInt) else result) == wanted
    else:
        with pytest.raises(EvaluationError, match=answer):
            call(key, arguments, context)


@pytest.mark.parametrize("version", [3, 5, 8])
@pytest.mark.parametrize("row", rows(POWERS, MAX), ids=str)
def test_powers(row: Row, version: int) -> None:
    numbers, mode, answer = row
    arguments: list[Value] = [*numbers, mode]
    expect(108, arguments, answer, version)


@pytest.mark.parametrize("row", rows(POWERS_BIG, MAX_BIG), ids=lambda row: row[2])
def test_powers_of_big_numbers(row: Row) -> None:
    (base, scale, exponent, exponent_scale, result_scale), mode, answer = row
    arguments: list[Value] = [
        BigInt(base),
        scale,
        BigInt(exponent),
        exponent_scale,
        result_scale,
        mode,
    ]
    expect(118, arguments, answer, 5)


@pytest.mark.parametrize("row", rows(LOGARITHMS, MAX), ids=str)
def test_logarithms(row: Row) -> None:
    (number, scale, base, base_scale, result_scale), mode, answer = row
    small: list[Value] = [number, scale, base, base_scale, result_scale, mode]
    expect(109, small, answer, 5)
    big: list[Value] = [BigInt(number), scale, BigInt(base), base_scale, result_scale, mode]
    expect(119, big, answer, 5)


ROOT = (
    "81877371507464127617551201542979628307507432471243237061821853600756754782485292915524"
    "036944801"
)


@pytest.mark.parametrize(("scale", "wanted"), [(0, ROOT), (18, ROOT[:-9])])
def test_roots_of_the_largest_number(scale: int, wanted: str) -> None:
    arguments: list[Value] = [BigInt(MAX_BIG), scale, 18, MODES["DOWN"]]
    assert call("sqrtBigInt", arguments, context_of(6)) == BigInt(int(wanted))
    arguments = [BigInt(MAX_BIG), scale, BigInt(5), 1, 18, MODES["DOWN"]]
    assert call(118, arguments, context_of(5)) == BigInt(int(wanted))


def test_logarithm_of_a_small_number() -> None:
    arguments: list[Value] = [BigInt(1), 16, BigInt(10), 0, 0, MODES["CEILING"]]
    assert call(119, arguments, context_of(5)) == BigInt(-16)


def test_scales() -> None:
    for arguments in ([2, 0, 2, 9, 0], [2, -2, 2, 0, 5], [2, 0, 2, 0, 9]):
        for key in (108, 109):
            with pytest.raises(EvaluationError, match="out of range 0-8"):
                call(key, [*arguments, MODES["DOWN"]], context_of(5))


def test_rounding_modes_come_first() -> None:
    """What is no rounding mode breaks the reference, but only within the scales."""
    for key in (108, 109):
        with pytest.raises(NativeCrash):
            call(key, [2, 0, 2, 0, 0, 1], context_of(5))
        with pytest.raises(EvaluationError, match="scale") as caught:
            call(key, [2, 0, 2, 0, 9, 1], context_of(5))
        assert not isinstance(caught.value, NativeCrash)


def test_older_precision() -> None:
    """34 digits, where the newer way has 19 and looks at the size before it rounds."""
    old = context_of(3, BEFORE)
    assert call(108, [12, 1, 3456, 3, 2, MODES["UP"]], old) == 188
    assert call(108, [98765432, 8, 145998765432, 8, 8, MODES["HALFUP"]], old) == 1
    with pytest.raises(NativeCrash, match="out of long range"):
        call(108, [9, 0, 999999, 0, 0, MODES["FLOOR"]], old)
    big: list[Value] = [BigInt(9), 0, BigInt(999999), 0, 0, MODES["FLOOR"]]
    with pytest.raises(EvaluationError, match="512-bit range"):
        call(118, big, context_of(5, BEFORE))


@given(
    st.integers(1, 2**40),
    st.integers(0, 8),
    st.integers(-(2**31), 2**31),
    st.integers(0, 8),
    st.integers(0, 8),
)
@example(2, 0, -3321925, 0, 0)
@example(2, 0, -3321865, 0, 0)
def test_powers_are_close(base: int, scale: int, power: int, power_scale: int, result: int) -> None:
    """Within one unit of what Python's decimals say."""
    try:
        found = decimals.power(
            context_of(6), base, scale, power, power_scale, result, MODES["DOWN"]
        )
    except EvaluationError:
        return
    with localcontext(Context(prec=60, Emin=MIN_EMIN, traps=[Overflow, InvalidOperation])):
        exact = (Decimal(base).scaleb(-scale) ** Decimal(power).scaleb(-power_scale)).scaleb(result)
        assert isinstance(found, int)
        # Of 19 digits, the last one may be rounded up before this rounds down.
        assert abs(found - exact) <= 1 + abs(exact) * Decimal("1e-18")


@given(
    st.integers(MIN_BIG, MAX_BIG),
    st.integers(0, 18),
    st.integers(MIN_BIG, MAX_BIG),
    st.integers(0, 18),
)
def test_nothing_takes_long(base: int, scale: int, power: int, power_scale: int) -> None:
    arguments: list[Value] = [BigInt(base), scale, BigInt(power), power_scale, 18, MODES["DOWN"]]
    for context in (context_of(5, BEFORE), context_of(5)):
        for key in (118, 119):
            start = time.process_time()
            with suppress(EvaluationError):
                call(key, arguments, context)
            assert time.process_time() - start < 0.2
