"""Searching, splitting and replacing texts in linear time: the results are those of Python's own
search, or of one in units.
"""

from __future__ import annotations

import random

import pytest

from soliton.ride.environment import CallContext, Switches
from soliton.ride.functions import text
from soliton.ride.values import (
    MAX_LIST_LENGTH,
    MAX_STRING_BYTES,
    UNIT,
    RideList,
    Value,
    joined,
    weight,
)
from tests.ride.static_environment import StaticEnvironment

_ALPHABETS = ("ab", "a", "\0a", "\0\1", "aé", "a冬", "a😀b", "😀")
_HALVES = ("a\ud83d", "\ude00\ud83da", "\ud83d\ude00")
_DEAR = [
    ("a" * 32_767, "b" + "a" * 16_000),
    ("a" * 32_767, "a" * 16_000 + "b"),
    ("a" * 29_999, "a" * 14_999 + "b" + "a" * 14_000),
    ("ab" * 16_000, "ab" * 8_000 + "c"),
    ("a" * 31_000 + "b", "a" * 30_999 + "b"),
    ("b" + "a" * 31_000, "b" + "a" * 30_000),
    ("冬" * 10_922, "冬" * 5_000 + "b" + "冬" * 400),
    ("😀" * 8_191, "b" + "😀" * 4_000),
]


def _or_unit(index: int) -> Value:
    return index if index >= 0 else UNIT


def _units(value: str) -> list[bytes]:
    data = value.encode("utf-16-le", "surrogatepass")
    return [data[at : at + 2] for at in range(0, len(data), 2)]


def _check(whole: str, part: str, offset: int) -> None:
    assert text.index_of(whole, part) == _or_unit(whole.find(part))
    assert text.last_index_of(whole, part) == _or_unit(whole.rfind(part))
    if 0 <= offset <= len(whole):
        assert text.index_of_from(whole, part, offset) == _or_unit(whole.find(part, offset))
        end = min(offset, len(whole)) + len(part)
        assert text.last_index_of_from(whole, part, offset) == _or_unit(whole.rfind(part, 0, end))
    if part and whole and whole.count(part) < MAX_LIST_LENGTH:
        parts = text.limited_split("split", 200_000, MAX_LIST_LENGTH, whole, part)
        assert isinstance(parts, RideList)
        assert list(parts.items) == whole.split(part)
    if part and weight(whole) <= MAX_STRING_BYTES:
        for new in ("", "b"):
            assert text.replace_first(whole, part, new) == whole.replace(part, new, 1)
            assert text.replace_all(whole, part, new) == whole.replace(part, new)


@pytest.mark.parametrize(("whole", "part"), _DEAR)
def test_texts_that_match_almost_everywhere(whole: str, part: str) -> None:
    for offset in (0, 1, 999, len(whole) - len(part), len(whole)):
        _check(whole, part, offset)
        _check(whole + part, part, offset)
        _check(part + whole, part, offset)


def test_texts_by_chance() -> None:
    chance = random.Random(1)
    for _ in range(3_000):
        alphabet = chance.choice(_ALPHABETS)
        most = chance.choice((3, 30, 900, 5_000))
        whole = "".join(chance.choices(alphabet, k=chance.randrange(most)))
        start = chance.randrange(len(whole) + 1)
        part = whole[start : start + chance.randrange(most)]
        if chance.random() < 0.5:
            part += chance.choice(alphabet)
        _check(whole, part, chance.randrange(-1, len(whole) + 2))


def test_slices_in_code_units() -> None:
    chance = random.Random(2)
    context = CallContext(StaticEnvironment(), 4, Switches(code_points=False))
    for _ in range(3_000):
        alphabet = chance.choice((*_ALPHABETS, *_HALVES))
        whole = joined("".join(chance.choices(alphabet, k=chance.randrange(30))))
        units = _units(whole)
        count = chance.randrange(len(units) + 2)
        first = text.take_before(context, whole, count)
        rest = text.drop_before(context, whole, count)
        assert isinstance(first, str)
        assert isinstance(rest, str)
        assert _units(first) == units[:count]
        assert _units(rest) == units[count:]
        assert text.units_length(whole) == len(units)


def test_searches_in_code_units() -> None:
    """Texts with few and many lone halves take different ways."""
    chance = random.Random(3)
    context = CallContext(StaticEnvironment(), 4, Switches(code_points=False))
    for _ in range(3_000):
        alphabet = chance.choice(
            (*_HALVES, "\ud83d" * 9 + "😀", "\ude00\ud83d\0\U0010ffff", "aaa😀\ud83d")
        )
        whole = joined("".join(chance.choices(alphabet, k=chance.randrange(40))))
        part = joined("".join(chance.choices(alphabet, k=chance.randrange(1, 4))))
        units, searched = _units(whole), _units(part)
        places = [at for at in range(len(units)) if units[at : at + len(searched)] == searched]
        offset = chance.randrange(len(units) + 1)
        found = text.index_of_before(context, whole, part)
        assert found == (places[0] if places else UNIT)
        found = text.last_index_of_before(context, whole, part)
        assert found == (places[-1] if places else UNIT)
        later = [at for at in places if at >= offset]
        found = text.index_of_from_before(context, whole, part, offset)
        assert found == (later[0] if later else UNIT)
        earlier = [at for at in places if at <= offset]
        found = text.last_index_of_from_before(context, whole, part, offset)
        assert found == (earlier[-1] if earlier else UNIT)


def test_lone_halves_have_the_weight_of_a_question_mark() -> None:
    assert weight("\ud83d" * 10_000) == 10_000
    assert joined("\ud83d" * 3 + "\ude00" * 2) == "\ud83d\ud83d😀\ude00"
    assert text.add("a\ud83d", "\ude00b") == "a😀b"
