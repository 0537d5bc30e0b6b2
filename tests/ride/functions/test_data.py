"""Numbers, bytes, lists and conversions: edges, limits, and agreement with plain arithmetic."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from soliton.ride.errors import EvaluationError, NativeCrash
from soliton.ride.functions.conversions import full_type_name
from soliton.ride.functions.library import implementations
from soliton.ride.values import (
    MAX_WEIGHT,
    UNIT,
    BigInt,
    CaseObject,
    RideList,
    Value,
    case_object,
    ride_list,
    ride_tuple,
)
from tests.ride.functions.plain import call
from tests.ride.functions.setting import context_of

INT = st.integers(-(2**63), 2**63 - 1)
BIG = st.integers(-(2**511), 2**511 - 1)
MIN, MAX = -(2**63), 2**63 - 1
MODES = {
    name: CaseObject(name, {}, 40)
    for name in ("Down", "Up", "HalfUp", "HalfDown", "HalfEven", "Ceiling", "Floor")
}
NOW = context_of(8)


def half(value: Fraction, up: Callable[[int], bool]) -> int:
    """To the nearest; at the same distance, whether away from zero is asked for the lower one."""
    low = math.floor(abs(value))
    rest = abs(value) - low
    if rest > Fraction(1, 2) or (rest == Fraction(1, 2) and up(low)):
        low += 1
    return low if value >= 0 else -low


ROUNDED: dict[str, Callable[[Fraction], int]] = {
    "Down": math.trunc,
    "Up": lambda value: math.ceil(value) if value > 0 else math.floor(value),
    "HalfUp": lambda value: half(value, lambda low: True),
    "HalfDown": lambda value: half(value, lambda low: False),
    "HalfEven": lambda value: half(value, lambda low: low % 2 == 1),
    "Ceiling": math.ceil,
    "Floor": math.floor,
}


def result_of(key: int | str, *arguments: Value, version: int = 8) -> Value:
    return call(key, list(arguments), context_of(version))


@given(INT, INT)
def test_arithmetic_of_int(left: int, right: int) -> None:
    wanted: dict[int, int | None] = {100: left + right, 101: left - right, 104: left * right}
    wanted[105] = left // right if right else None
    wanted[106] = left % right if right else None
    for key, result in wanted.items():
        if result is not None and MIN <= result <= MAX:
            assert result_of(key, left, right) == result
        else:
            with pytest.raises(EvaluationError):
                result_of(key, left, right)
    assert result_of(102, left, right) == (left > right)
    assert result_of(103, left, right) == (left >= right)


def test_smallest_number_divided_by_minus_one() -> None:
    assert result_of(105, MIN, -1) == MIN
    with pytest.raises(EvaluationError, match="overflow"):
        result_of("-", MIN)


@given(BIG, BIG)
def test_arithmetic_of_big_int(left: int, right: int) -> None:
    wanted: dict[int, int | None] = {311: left + right, 312: left - right, 313: left * right}
    wanted[314] = math.trunc(Fraction(left, right)) if right else None
    wanted[315] = left - right * math.trunc(Fraction(left, right)) if right else None
    for key, result in wanted.items():
        if result is not None and -(2**511) <= result < 2**511:
            assert result_of(key, BigInt(left), BigInt(right)) == BigInt(result)
        else:
            with pytest.raises(EvaluationError):
                result_of(key, BigInt(left), BigInt(right))
    assert result_of(319, BigInt(left), BigInt(right)) == (left > right)
    assert result_of(320, BigInt(left), BigInt(right)) == (left >= right)


@given(INT, st.integers(-40, 40), st.integers(-40, 40), st.sampled_from(list(MODES)))
def test_fractions(value: int, numerator: int, denominator: int, mode: str) -> None:
    numbers = (value, numerator, denominator)
    big = tuple(map(BigInt, numbers))
    if denominator == 0:
        for key, given_numbers in ((107, numbers), (316, big)):
            with pytest.raises(EvaluationError, match="division by zero"):
                result_of(key, *given_numbers)
        return
    exact = Fraction(value * numerator, denominator)
    rounded = ROUNDED[mode](exact)
    assert result_of(317, *big, MODES[mode]) == BigInt(rounded)
    assert result_of(316, *big) == BigInt(math.trunc(exact))
    if MIN <= rounded <= MAX:
        assert result_of(110, *numbers, MODES[mode]) == rounded
        assert result_of("fraction", *numbers, MODES[mode], version=5) == rounded
    else:
        with pytest.raises(EvaluationError, match="out of integers range"):
            result_of(110, *numbers, MODES[mode])


def test_fraction_at_the_edge() -> None:
    for largest in (MAX, MIN):
        assert result_of(107, largest, 1, 1, version=5) == largest
        with pytest.raises(EvaluationError, match="Long overflow"):
            result_of(107, largest, 1, 1, version=4)
    with pytest.raises(NativeCrash):
        result_of(110, 1, 1, 1, UNIT)


@given(st.lists(INT, min_size=1, max_size=9))
def test_lists_of_int(numbers: list[int]) -> None:
    items, big = ride_list(numbers), ride_list(map(BigInt, numbers))
    ordered = sorted(numbers)
    middle = (ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) // 2
    for key, big_key, wanted in (
        (405, 425, middle),
        (406, 408, ordered[-1]),
        (407, 409, ordered[0]),
    ):
        assert result_of(key, items) == wanted
        assert result_of(big_key, big) == BigInt(wanted)


@pytest.mark.parametrize("key", [405, 406, 407, 408, 409, 425])
def test_lists_of_something_else(key: int) -> None:
    with pytest.raises(EvaluationError, match="empty list"):
        result_of(key, ride_list([]))
    good: Value = BigInt(1) if key in (408, 409, 425) else 1
    with pytest.raises(NativeCrash):
        result_of(key, ride_list([good, True]))


def test_bytes_until_version_5() -> None:
    for key, count, wanted in (
        (201, 2, b"ab"),
        (201, -1, b""),
        (201, 9, b"abc"),
        (201, 2**32, b""),
        (201, 2**32 + 1, b"a"),
        (202, 2, b"c"),
        (202, -1, b"abc"),
        (202, 2**31, b"abc"),
        ("takeRightBytes", 2, b"bc"),
        ("dropRightBytes", 2, b"a"),
        ("dropRightBytes", 9, b""),
    ):
        assert result_of(key, b"abc", count, version=5) == wanted
    with pytest.raises(EvaluationError, match="exceeds 32767"):
        result_of(201, bytes(40_000), 40_000, version=5)
    assert len(bytes_of(result_of(202, bytes(40_000), 40_000 - 32_767, version=5))) == 32_767


def bytes_of(value: Value) -> bytes:
    assert isinstance(value, bytes)
    return value


def test_bytes_since_version_6() -> None:
    for key, count, wanted in (
        (201, 2, b"ab"),
        (202, 2, b"c"),
        (204, 2, b"bc"),
        (204, 9, b"abc"),
        (205, 2, b"a"),
        (205, 9, b""),
        (201, 165_947, b"abc"),
    ):
        assert result_of(key, b"abc", count) == wanted
    for key in (201, 202, 204, 205):
        for count in (-1, 165_948, 2**32):
            with pytest.raises(EvaluationError, match=r"number|Number"):
                result_of(key, b"abc", count)
    assert len(bytes_of(result_of(201, bytes(40_000), 40_000))) == 40_000


def test_sum_of_bytes() -> None:
    assert result_of(203, bytes(32_766), b"a") == bytes(32_766) + b"a"
    with pytest.raises(EvaluationError, match="ByteVector size = 32768 bytes exceeds 32767"):
        result_of(203, bytes(32_767), b"a")


def items(value: Value) -> tuple[Value, ...]:
    assert isinstance(value, RideList)
    assert value == ride_list(value.items)
    return value.items


def test_lists() -> None:
    three = ride_list([1, "b", b"cc"])
    assert items(result_of(1100, 0, three)) == (0, 1, "b", b"cc")
    assert items(result_of(1101, three, 0)) == (1, "b", b"cc", 0)
    assert items(result_of(1102, three, three)) == (1, "b", b"cc", 1, "b", b"cc")
    assert items(result_of(1105, three, 1)) == (1, b"cc")
    assert items(result_of(1106, three, 1, "long")) == (1, "long", b"cc")
    assert result_of(1103, ride_list([1, 2, 1]), 1) == 0
    assert result_of(1104, ride_list([1, 2, 1]), 1) == 2
    assert result_of(1103, three, True) is UNIT
    assert result_of("containsElement", three, "b") is True
    assert result_of("containsElement", three, "c") is False
    assert result_of(401, three, 2**32 + 1) == "b"
    for index in (-1, 3, 2**31):
        with pytest.raises(EvaluationError, match="out of bounds for length 3"):
            result_of(401, three, index)
    for key, more in ((1105, []), (1106, [0])):
        for index, of in ((-1, three), (3, three), (0, ride_list([]))):
            with pytest.raises(EvaluationError, match="element"):
                result_of(key, of, index, *more)


def test_limits_of_lists() -> None:
    thousand = ride_list([1] * 1000)
    for key, arguments in ((1100, [1, thousand]), (1101, [thousand, 1]), (1102, [thousand] * 2)):
        with pytest.raises(EvaluationError, match="List size should not exceed 1000"):
            result_of(key, *arguments, version=4)
    assert len(items(result_of(1100, 1, thousand, version=3))) == 1001
    heavy = ride_list([bytes(MAX_WEIGHT - 20 - 20)])
    with pytest.raises(EvaluationError, match="too heavy"):
        result_of(1101, heavy, 1)
    with pytest.raises(EvaluationError, match="too heavy"):
        result_of(1100, 1, heavy, version=3)


def test_heavy_values_are_not_compared() -> None:
    light, heavy = bytes(13_000), bytes(13_001)
    assert result_of(0, light, heavy) is False
    assert result_of(0, heavy, light) is False
    with pytest.raises(EvaluationError, match="too heavy"):
        result_of(0, heavy, heavy)
    assert result_of(1103, ride_list([1, heavy]), light) is UNIT
    with pytest.raises(EvaluationError, match="too heavy to compare"):
        result_of(1103, ride_list([1, heavy]), heavy)
    with pytest.raises(EvaluationError, match="too heavy to compare"):
        result_of(1104, ride_list([heavy, 1]), heavy)


def test_equality_is_of_types_too() -> None:
    for left, right in ((1, True), (0, False), ("a", b"a"), (1, BigInt(1)), ("", b"")):
        assert result_of(0, left, right) is False
    assert result_of(0, ride_tuple(1, True), ride_tuple(1, True)) is True
    assert result_of(0, ride_tuple(1, True), ride_tuple(True, 1)) is False
    assert result_of(0, UNIT, case_object("Unit", {})) is True


def test_types_of_values() -> None:
    for value, name in (
        (1, "Int"),
        (BigInt(1), "BigInt"),
        (True, "Boolean"),
        ("", "String"),
        (b"", "ByteVector"),
        (UNIT, "Unit"),
        (ride_list([1]), "List[Any]"),
        (case_object("Address", {"bytes": b""}), "Address"),
        (ride_tuple(1, ""), "(Int, String)"),
        (ride_tuple(ride_tuple(1, ""), b""), "((Int, String), ByteVector)"),
        (ride_tuple(*[1] * 9, ""), "(Int, String, " + ", ".join(["Int"] * 8) + ")"),
    ):
        assert result_of(3, value) == name
        assert result_of(1, value, name) is True
        assert result_of(1, value, name + " ") is False
    assert implementations(1)[1]([1], NOW) is False
    assert implementations(1)[1]([1, 1], NOW) is False


def test_tuples() -> None:
    for size in range(2, 23):
        value = result_of(1298 + size, *range(size))
        assert value == ride_tuple(*range(size))
        assert result_of(1350, value) == size
    with pytest.raises(EvaluationError, match="Can't apply"):
        result_of(1350, UNIT)


@given(BIG)
def test_bytes_of_big_int(number: int) -> None:
    data = bytes_of(result_of(413, BigInt(number)))
    assert result_of(414, data) == BigInt(number)
    assert len(data) == 1 or not -(2 ** (8 * len(data) - 9)) <= number < 2 ** (8 * len(data) - 9)
    assert result_of(415, b"x" + data, 1, 64) == BigInt(number)
    assert result_of(423, str(number)) == result_of(424, str(number)) == BigInt(number)
    assert result_of(422, BigInt(number)) == str(number)


def test_edges_of_big_int() -> None:
    for data in (b"",):
        with pytest.raises(NativeCrash):
            result_of(414, data)
    with pytest.raises(EvaluationError, match="Too big"):
        result_of(414, bytes(65))
    with pytest.raises(NativeCrash):
        result_of(415, b"ab", 2, 1)
    for offset, size in ((-1, 1), (3, 1), (0, 0), (0, 65), (0, -1)):
        with pytest.raises(EvaluationError, match="too long"):
            result_of(415, b"ab", offset, size)
    assert result_of(415, b"ab", 1, 5) == BigInt(ord("b"))
    assert result_of(416, BigInt(MAX)) == MAX
    with pytest.raises(EvaluationError, match="out of integers range"):
        result_of(416, BigInt(MAX + 1))
    with pytest.raises(EvaluationError, match="overflow"):
        result_of(318, BigInt(-(2**511)))


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("0", 0),
        ("-0", 0),
        ("+12", 12),
        ("-12", -12),
        ("007", 7),
        ("٣٤", 34),
        ("0" * 300 + "5", 5),
        ("-" + "٠" * 300 + "٥", -5),
        ("0٠" * 300 + "٥", 5),
        ("٠" * 300, 0),
        (str(MAX), MAX),
        (str(MIN), MIN),
    ],
)
def test_parsing(text: str, number: int) -> None:
    assert result_of(1206, text) == number
    assert result_of("parseIntValue", text) == number
    if len(text) <= 155:
        assert result_of(424, text) == result_of(423, text) == BigInt(number)


@pytest.mark.parametrize(
    "text", ["", "+", "-", "--1", "+-1", " 1", "1 ", "1_0", "0x1", "1e1", "²", "𝟙", "1.0", "\0"]
)
def test_parsing_what_is_no_number(text: str) -> None:
    assert result_of(1206, text) is UNIT
    assert result_of(424, text) is UNIT
    with pytest.raises(NativeCrash):
        result_of(423, text)
    with pytest.raises(EvaluationError, match="Error while parsing string to integer"):
        result_of("parseIntValue", text)


def test_parsing_what_does_not_fit() -> None:
    assert result_of(1206, str(MAX + 1)) is UNIT
    for long in ("9" * 30_000, "0" * 300 + "x", "x" + "0" * 300, "٠" * 300 + "𝟙", "9" * 161):
        assert result_of(1206, long) is UNIT
    assert result_of(424, str(2**511)) is UNIT
    assert result_of(424, "0" * 156) is UNIT
    with pytest.raises(EvaluationError, match="too big"):
        result_of(423, str(2**511))
    with pytest.raises(EvaluationError, match="too long"):
        result_of(423, "0" * 156)


def test_bytes_and_int() -> None:
    assert result_of(410, -2) == b"\xff" * 7 + b"\xfe"
    assert result_of(1201, b"\xff" * 7 + b"\xfe" + b"rest") == -2
    assert result_of(1202, b"ab" + bytes(7) + b"\1", 2) == 1
    with pytest.raises(EvaluationError, match="Buffer underflow"):
        result_of(1201, bytes(7))
    for offset in (-1, 3, MAX):
        with pytest.raises(EvaluationError, match="IndexOutOfBounds"):
            result_of(1202, bytes(10), offset)


def test_text_and_bytes() -> None:
    assert result_of(411, "a😀") == "a😀".encode()
    assert result_of(411, "a\ud83d") == b"a?"
    assert result_of(1200, "a😀".encode()) == "a😀"
    for data in (b"\xff", b"\xed\xa0\xbd", b"\xc0\x80", b"\xe2\x82"):
        with pytest.raises(EvaluationError, match="invalid UTF8"):
            result_of(1200, data)
    with pytest.raises(EvaluationError, match=r"CommonError\(String size=32768 exceeds"):
        result_of(1200, b"a" * 32_768)
    assert result_of(1200, b"a" * 32_768, version=3) == "a" * 32_768
    with pytest.raises(EvaluationError, match="exceeds 153600"):
        result_of(1200, b"a" * 153_601, version=3)
    assert result_of(412, True) == b"\1"
    assert result_of(421, False) == "false"


def test_base58() -> None:
    assert result_of(600, bytes(64)) == "1" * 64
    with pytest.raises(EvaluationError, match="base58Encode input exceeds 64"):
        result_of(600, bytes(65))
    assert result_of(601, "1" * 100) == bytes(100)
    assert result_of(601, "") == b""
    for text in ("1" * 101, "0", " 1", "é"):
        with pytest.raises(EvaluationError, match=r"Base58|base58"):
            result_of(601, text)


@pytest.mark.parametrize(
    ("text", "data"),
    [
        ("", b""),
        ("base64:", b""),
        ("YWI=", b"ab"),
        ("YWI", b"ab"),
        ("YQ==", b"a"),
        ("YQ", b"a"),
        ("YR", b"a"),
        ("YWJj", b"abc"),
        ("base64:YWJj", b"abc"),
    ],
)
def test_base64(text: str, data: bytes) -> None:
    assert result_of(603, text) == data


@pytest.mark.parametrize(
    "text",
    [
        "Y",
        "YQ=",
        "YWJj=",
        "=",
        "YWI==",
        "YQ=a",
        "YWJjZ",
        "YW J",
        "YW-_",
        "YQ===",
        "é",
        "\n",
        "YWI=\n",
    ],
)
def test_no_base64(text: str) -> None:
    with pytest.raises(EvaluationError, match="Base64"):
        result_of(603, text)


def test_limits_of_base64() -> None:
    with pytest.raises(EvaluationError, match="base64Decode input exceeds 45056"):
        result_of(603, "A" * 45_057)
    with pytest.raises(EvaluationError, match="exceeds 32767"):
        result_of(603, "A" * 45_056)
    with pytest.raises(EvaluationError, match="base64Encode input exceeds 32768"):
        result_of(602, bytes(32_769))
    assert len(str(result_of(602, bytes(32_768), version=3))) == 43_692
    with pytest.raises(EvaluationError, match="String size=43692 exceeds 32767"):
        result_of(602, bytes(32_768), version=4)


def test_base16() -> None:
    assert result_of(604, b"\xab\xcd") == "abcd"
    assert result_of(605, "aBcD") == b"\xab\xcd"
    # The words are those of com.google.common.io.BaseEncoding.
    for text, words in (
        ("a", "Invalid input length 1"),
        (" 00", "Invalid input length 3"),
        ("0g", "Unrecognized character: g"),
        ("00 0", "Unrecognized character: 0x20"),
        ("0é", "Unrecognized character: 0xe9"),
        ("😀", "Unrecognized character: 0xd83d"),
    ):
        with pytest.raises(EvaluationError) as caught:
            result_of(605, text)
        assert caught.value.message == words
    with pytest.raises(EvaluationError, match="length=8193"):
        result_of(604, bytes(8193))
    assert result_of(604, bytes(8193), version=3) == "00" * 8193
    with pytest.raises(EvaluationError, match="exceeds 32767"):
        result_of(604, bytes(16_384), version=3)
    with pytest.raises(EvaluationError, match="length=32769"):
        result_of(605, "0" * 32_769)


def test_throw() -> None:
    with pytest.raises(EvaluationError, match=r"^no$"):
        result_of(2, "no")
    with pytest.raises(EvaluationError, match="Explicit script termination"):
        result_of(2, 1)
    with pytest.raises(EvaluationError, match="Explicit script termination"):
        result_of("throw")


def nested(depth: int, core: Value) -> Value:
    for _ in range(depth):
        core = ride_tuple(core, 1)
    return core


def test_deep_values() -> None:
    """Deeper than Python's stack."""
    deep, other = nested(110, 1), nested(110, True)
    assert result_of(0, deep, nested(110, 1)) is True
    assert result_of(0, deep, other) is False
    deepest = nested(3000, 1)
    name = result_of_type(deepest)
    assert name == "(" * 3000 + "Int" + ", Int)" * 3000
    assert result_of_type(ride_tuple(deepest, "")) == f"({name}, String)"
    light = ride_list([])
    for _ in range(300):
        light = ride_list([light])
    same = ride_list([])
    for _ in range(300):
        same = ride_list([same])
    assert result_of(0, light, same) is True
    assert result_of(1103, ride_list([1, light]), same) == 1
    assert result_of(1104, ride_list([light, 1]), same) == 0


def result_of_type(value: Value) -> str:
    return full_type_name(value)


def test_search_tells_types_apart() -> None:
    values = ride_list([True, 1, BigInt(1), ride_tuple(True, 0), ride_tuple(1, 0), True, 1])
    assert result_of(1103, values, 1) == 1
    assert result_of(1103, values, True) == 0
    assert result_of(1104, values, 1) == 6
    assert result_of(1104, values, True) == 5
    assert result_of(1103, values, ride_tuple(1, 0)) == 4
    assert result_of(1104, values, ride_tuple(True, 0)) == 3
    assert result_of(1103, values, BigInt(2)) is UNIT
    assert result_of(1104, ride_list([True] * 3), 1) is UNIT
    assert result_of(1103, ride_list([True] * 3), 1) is UNIT
    assert result_of(1104, ride_list([]), 1) is UNIT
