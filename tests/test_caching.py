"""Caches that are bounded by bytes: whatever strangers put into them, they hold so much."""

from __future__ import annotations

import random
import tracemalloc
from concurrent.futures import ThreadPoolExecutor

import pytest

from soliton.caching import cached_by_weight
from soliton.ride import script
from soliton.ride.compiler import compile_source
from soliton.ride.script import parse_script

MOST = 100


def weight(text: str) -> int:
    return len(text)


def test_what_was_asked_for_last_is_kept_and_weighs_no_more_than_it_may() -> None:
    asked: list[str] = []

    @cached_by_weight(MOST, weight)
    def upper(text: str) -> str:
        asked.append(text)
        return text.upper()

    for text in ("a" * 40, "b" * 40, "a" * 40, "c" * 40):
        assert upper(text) == text.upper()
    assert asked == ["a" * 40, "b" * 40, "c" * 40]
    assert (len(upper), upper.weight) == (2, 80)
    upper("a" * 40)
    upper("b" * 40)
    assert asked[3:] == ["b" * 40]
    upper("x" * (MOST + 1))
    assert (len(upper), upper.weight) == (2, 80)
    upper.cache_clear()
    assert (len(upper), upper.weight) == (0, 0)


def test_what_is_raised_is_not_kept() -> None:
    @cached_by_weight(MOST, weight)
    def refuse(text: str) -> str:
        raise ValueError(text)

    for _ in range(2):
        with pytest.raises(ValueError, match="a"):
            refuse("a")
    assert len(refuse) == 0


def test_threads_keep_it_bounded() -> None:
    @cached_by_weight(MOST, weight)
    def same(text: str) -> str:
        return text

    chance = random.Random(1)
    texts = [chance.choice("abcdef") * chance.randrange(60) for _ in range(5_000)]
    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(same, texts)) == texts
    assert same.weight == sum(len(str(key)) for (key,) in same._cache._values)
    assert same.weight <= MOST


def source(number: int) -> str:
    lets = "".join(f"let a{i} = {number} == {i}\n" for i in range(1_000))
    return f"{{-# STDLIB_VERSION 6 #-}}\n{{-# CONTENT_TYPE DAPP #-}}\n{lets}"


def test_the_scripts_of_strangers_are_kept_by_their_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thousand large ones were 13 MB each."""
    written = [compile_source(source(number)).script.source for number in range(6)]
    room = script.TREE_OVERHEAD + script.TREE_FACTOR * len(written[0])
    parse_script.cache_clear()
    monkeypatch.setattr(parse_script._cache, "_limit", 3 * room)
    for each in written:
        assert parse_script(each).source == each
        assert parse_script(each) is parse_script(each)
    assert len(parse_script) == 3
    assert parse_script.weight <= 3 * room


def test_a_tree_weighs_no_more_than_is_counted() -> None:
    written = compile_source(source(1)).script.source
    tracemalloc.start()
    try:
        tree = parse_script.__wrapped__(written)
        assert tree.source is written
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert taken <= script.TREE_OVERHEAD + script.TREE_FACTOR * len(written)
