"""Text in characters and in UTF-16 code units, splitting and joining with their limits."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from soliton.ride.errors import EvaluationError, NativeCrash
from soliton.ride.functions import text
from soliton.ride.functions.printing import MAX_PRINTED_CHARS, nested_text, plain_text
from soliton.ride.values import (
    UNIT,
    BigInt,
    RideList,
    Value,
    case_object,
    equal,
    joined,
    ride_list,
    ride_tuple,
    type_name,
    weight,
)
from tests.ride.functions.plain import call
from tests.ride.functions.setting import BEFORE, context_of

ANY_TEXT = st.text(max_size=20)


def items(value: Value) -> list[Value]:
    assert isinstance(value, RideList)
    return list(value.items)


# key, arguments, and what versions 3 before the characters, 5 and 6 answer
CASES: list[tuple[int | str, list[Value], list[Value]]] = [
    (305, ["x冬x"], [3, 3, 3]),
    (305, ["a😀b"], [4, 3, 3]),
    (303, ["a😀b", 2], ["a\ud83d", "a😀", "a😀"]),
    (304, ["a😀b", 2], ["\ude00b", "b", "b"]),
    (303, ["abc", 5], ["abc", "abc", "abc"]),
    (303, ["abc", 2**62], ["abc", "abc", "error"]),
    (303, ["abc", -1], ["", "", "error"]),
    (304, ["abc", -(2**63)], ["abc", "abc", "error"]),
    (304, ["abc", 32_767], ["", "", ""]),
    (304, ["abc", 32_768], ["", "", "error"]),
    ("takeRight", ["x冬x", 2], ["冬x", "冬x", "missing"]),
    ("dropRight", ["x冬x", 2], ["x", "x", "missing"]),
    ("takeRight", ["abc", -1], ["", "", "missing"]),
    ("takeRight", ["abc", -(2**63)], ["error", "error", "missing"]),
    (1203, ["a😀b", "b"], [3, 2, 2]),
    (1203, ["a😀b", "\ude00"], [2, UNIT, UNIT]),
    (1203, ["", "x"], [UNIT, UNIT, UNIT]),
    (1203, ["abc", ""], [0, 0, 0]),
    (1204, ["a😀b", "b", 3], [3, UNIT, UNIT]),
    (1204, ["a😀b", "", 3], [3, 3, 3]),
    (1204, ["a😀b", "", 4], [4, UNIT, UNIT]),
    (1204, ["abc", "c", -1], [UNIT, UNIT, UNIT]),
    (1207, ["b😀b", "b"], [3, 2, 2]),
    (1208, ["b😀b", "b", 2], [0, 2, 2]),
    (1208, ["bbb", "b", 2**62], [2, 2, 2]),
    (1208, ["bbb", "b", -1], [UNIT, UNIT, UNIT]),
    (1208, ["bbb", "", 1], [1, 1, 1]),
]


@pytest.mark.parametrize(("key", "arguments", "answers"), CASES)
def test_length_parts_and_search(
    key: int | str, arguments: list[Value], answers: list[Value]
) -> None:
    contexts = (context_of(3, BEFORE), context_of(5), context_of(6))
    for context, answer in zip(contexts, answers, strict=True):
        if answer in ("error", "missing"):
            with pytest.raises(EvaluationError):
                call(key, arguments, context)
        else:
            assert call(key, arguments, context) == answer


def test_right_end_is_counted_from_the_left() -> None:
    """As many code units are taken as the first characters have."""
    context = context_of(6)
    assert call(306, ["😀ab", 1], context) == "ab"
    assert call(306, ["ab😀", 1], context) == "\ude00"
    assert call(307, ["ab😀", 1], context) == "ab\ud83d"
    assert call(307, ["abc", 5], context) == ""
    assert call(306, ["abc", 5], context) == "abc"
    with pytest.raises(EvaluationError, match="negative"):
        call(306, ["abc", -1], context)


@given(ANY_TEXT, st.integers(-3, 25))
def test_code_units(value: str, count: int) -> None:
    """Before the feature, everything is as if the text were an array of code units."""
    old = context_of(4, BEFORE)
    data = value.encode("utf-16-le")
    count_in_bytes = 2 * max(count, 0)
    taken = data[:count_in_bytes].decode("utf-16-le", "surrogatepass")
    dropped = data[count_in_bytes:].decode("utf-16-le", "surrogatepass")
    assert call(305, [value], old) == len(data) // 2
    assert call(303, [value, count], old) == taken
    assert call(304, [value, count], old) == dropped
    assert text.add(taken, dropped) == value


def test_halves_of_a_character_come_together() -> None:
    assert text.add("a\ud83d", "\ude00b") == "a😀b"
    assert text.add("a\ud83d", "b") == "a\ud83db"
    assert call(1209, [ride_list(["\ud83d", "\ude00"]), ""], context_of(5)) == "😀"


def test_the_sum_of_halves_weighs_what_they_weigh() -> None:
    """Weights are added: wavesplatform/Waves ``lang/shared/src/main/scala/com/wavesplatform/lang/
    v1/evaluator/ctx/impl/PureContext.scala`` (``sumString``). Half a character weighs one.
    """
    both = text.add("\ud83d", "\ude00")
    assert both == "😀"
    assert [int(weight(each)) for each in (both, "😀", ride_list([both]))] == [2, 4, 20 + 20 + 2]
    once_more = text.add(text.add("a", both), both)
    assert (once_more, int(weight(once_more))) == ("a😀😀", 5)
    # Other functions make new strings.
    assert weight(call(303, [once_more, 9], context_of(6))) == 9
    for _ in range(13):
        both = text.add(both, both)
    assert (len(both), int(weight(both))) == (8_192, 16_384)
    with pytest.raises(EvaluationError, match="String size=32768 exceeds 32767 bytes"):
        call(303, [both, 8_192], context_of(6))
    with pytest.raises(EvaluationError, match="String size = 32768 exceeds 32767 bytes"):
        text.add(both, both)


def test_sums_of_halves_are_strings() -> None:
    both = text.add("\ud83d", "\ude00")
    pairs: list[tuple[Value, Value]] = [
        (both, "😀"),
        (ride_list([both]), ride_list(["😀"])),
        (case_object("C", {"a": both}), case_object("C", {"a": "😀"})),
    ]
    for one, other in pairs:
        assert call(0, [one, other], context_of(6)) is True
        assert call(0, [other, one], context_of(6)) is True
        assert call(1104, [ride_list([1, other]), one], context_of(6)) == 1
        assert call(1104, [ride_list([1, one]), other], context_of(6)) == 1
    once, turned, another = (
        ride_list([ride_list([each]) for each in texts])
        for texts in ((both, "😀"), ("😀", both), ("😀", "x"))
    )
    assert call(0, [once, turned], context_of(6)) is True
    assert call(0, [once, another], context_of(6)) is False
    assert not equal(both, b"?") and type_name(both) == "String"
    assert call(1209, [ride_list([both, "a"]), both], context_of(6)) == "😀😀a"
    assert call(305, [both], context_of(6)) == 1
    assert type(plain_text(both)) is str


def test_sum_is_limited() -> None:
    assert text.add("a" * 32_766, "b") == "a" * 32_766 + "b"
    with pytest.raises(EvaluationError, match="String size = 32768 exceeds 32767 bytes"):
        text.add("a" * 32_766, "é")


def test_split() -> None:
    for context in (context_of(3, BEFORE), context_of(4), context_of(6)):
        assert items(call(1205, ["", ""], context)) == [""]
        assert items(call(1205, ["", ","], context)) == [""]
        assert items(call(1205, ["a,b,,c", ","], context)) == ["a", "b", "", "c"]
        assert items(call(1205, ["abc", ""], context)) == ["a", "b", "c"]
        assert items(call(1205, [";🤦x;🤦", ";🤦"], context)) == ["", "x", ""]
    assert items(call(1205, ["😀", ""], context_of(3, BEFORE))) == ["\ud83d", "\ude00"]
    assert items(call(1205, ["a😀b", "\ude00"], context_of(3, BEFORE))) == ["a\ud83d", "b"]
    assert items(call(1205, ["a😀b", "\ude00"], context_of(4))) == ["a😀b"]
    assert items(call(1205, ["😀", ""], context_of(4))) == ["😀"]


@pytest.mark.parametrize(
    ("key", "version", "size", "count"),
    [
        (1205, 5, 32_767, 1000),
        (1205, 6, 500, 20),
        (1212, 6, 6000, 100),
        (1213, 6, 32_767, 1000),
    ],
)
def test_limits_of_split(key: int, version: int, size: int, count: int) -> None:
    context = context_of(version)
    assert len(items(call(key, ["," * (count - 1), ","], context))) == count
    with pytest.raises(EvaluationError, match="list size"):
        call(key, ["," * count, ","], context)
    assert items(call(key, ["a" * size, ","], context)) == ["a" * size]
    with pytest.raises(EvaluationError, match="Input string size"):
        call(key, ["a" * (size + 1), ","], context)


def test_limits_of_the_first_split() -> None:
    old = context_of(3, BEFORE)
    with pytest.raises(EvaluationError, match="List size"):
        call(1205, ["," * 1000, ","], old)
    with pytest.raises(NativeCrash):
        call(1205, ["a" * 32_768, ","], old)


@pytest.mark.parametrize(
    ("key", "version", "count", "size"),
    [(1209, 5, 1000, 32_767), (1209, 6, 70, 500), (1210, 6, 100, 6000), (1211, 6, 1000, 32_767)],
)
def test_limits_of_joining(key: int, version: int, count: int, size: int) -> None:
    context = context_of(version)
    assert call(key, [ride_list(["a"] * count), ""], context) == "a" * count
    with pytest.raises(EvaluationError, match="Input list size"):
        call(key, [ride_list(["a"] * (count + 1)), ""], context)
    assert call(key, [ride_list(["a" * (size - 3), "b"]), ", "], context) == (
        "a" * (size - 3) + ", b"
    )
    with pytest.raises(EvaluationError, match="Constructing string size"):
        call(key, [ride_list(["a" * (size - 2), "b"]), ", "], context)


def test_joining_of_other_values() -> None:
    values = ride_list(["test", 123, True, b"", BigInt(-1), UNIT, ride_list(["a", b"\1"])])
    assert call(1209, [values, ","], context_of(5)) == "test,123,true,,-1,Unit,[\"a\", base58'2']"
    for key in (1209, 1210, 1211):
        with pytest.raises(EvaluationError, match="only accepts strings"):
            call(key, [values, ","], context_of(6))


def test_printed_objects() -> None:
    pair = ride_tuple(1, ride_tuple("a'b", b""))
    assert plain_text(pair) == (
        "Tuple(\n\t_1 = 1\n\t_2 = Tuple(\n\t\t_1 = \"a\\'b\"\n\t\t_2 = base58''\n\t)\n)"
    )
    # Inside of a list, indentation begins anew.
    inner = case_object("DeleteEntry", {"key": "k"})
    assert plain_text(ride_tuple(ride_list([inner]), 2)) == (
        'Tuple(\n\t_1 = [DeleteEntry(\n\tkey = "k"\n)]\n\t_2 = 2\n)'
    )
    assert plain_text(bytes(1024)) == "base64:" + "A" * 1366 + "=="
    assert nested_text(bytes(1024)) == "base58'" + "1" * 1024 + "'"
    assert nested_text(bytes(1025)).startswith("base64'")


def test_deep_values_are_printed_up_to_a_limit() -> None:
    """Their texts grow with the square of the depth."""
    deep_object = case_object("T", {})
    deep_list = ride_list([])
    for _ in range(4_000):
        deep_object = case_object("T", {"a": deep_object})
        deep_list = ride_list([deep_list])
    whole = 4_000 * 4_000
    for text_of_it in (plain_text(deep_object), nested_text(deep_list, 0)):
        assert MAX_PRINTED_CHARS < len(text_of_it) < MAX_PRINTED_CHARS + 4_000 < whole
    assert len(nested_text(deep_list, 0, 50)) < 100
    # Without indentation they do not.
    assert nested_text(deep_list) == "[" * 4_001 + "]" * 4_001


def test_order_of_many_fields() -> None:
    """More than four fields stand in the order of a hash trie; these orders are the reference's."""
    assert printed_order(ride_tuple(*range(11))) == "_3 _11 _8 _7 _2 _9 _6 _1 _4 _10 _5"
    fields = ("name", "description", "quantity", "decimals", "isReissuable", "compiledScript")
    assert printed_order(case_object("Issue", dict.fromkeys((*fields, "nonce"), 0))) == (
        "isReissuable nonce description decimals compiledScript name quantity"
    )


def printed_order(value: Value) -> str:
    return " ".join(line.split()[0] for line in plain_text(value).splitlines()[1:-1])


def test_deep_values_are_printed() -> None:
    value: Value = 1
    for _ in range(3000):
        value = ride_list([value])
    assert plain_text(value) == "[" * 3000 + "1" + "]" * 3000


PARTS = st.lists(st.sampled_from(["a", "é", "😀", "\ud83d", "\ude00", "xyz"]), max_size=6)


@pytest.mark.parametrize("limit", [1, -1])
@given(PARTS, PARTS.map(lambda parts: parts[:2]), PARTS)
def test_replacing_is_done_in_code_units(
    limit: int, parts: list[str], target: list[str], replacement: list[str]
) -> None:
    """As on UTF-16, compared unit by unit."""
    texts = [joined("".join(each)) for each in (parts, target, replacement)]
    units, old, new = (
        each.encode("utf-16-be", "surrogatepass").hex(" ", 2).split() for each in texts
    )
    found, place, left = list[str](), 0, limit
    while place <= len(units):
        here = left != 0 and units[place : place + len(old)] == old
        if here:
            left -= 1
            found += new
        if not (here and old):
            found += units[place : place + 1]
        place += len(old) if here and old else 1
    expected = bytes.fromhex("".join(found)).decode("utf-16-be", "surrogatepass")
    replace = text.replace_first if limit == 1 else text.replace_all
    assert replace(*texts) == expected
