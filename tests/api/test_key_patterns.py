"""Patterns for data keys: the same answers as Python's for the common part, and always soon."""

from __future__ import annotations

import contextlib
import random
import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from soliton.api.key_patterns import (
    MAX_CACHED_CHARACTERS,
    MAX_PATTERN_CHARS,
    MAX_STATES,
    KeyPattern,
    PatternError,
)

KEYS = ["", "a", "b", "ab", "aab", "abcc", "foo", "foobar", "12_x", "a.b", "a-]b", "\n", "é%s"]
PATTERNS = [
    "", "a", "a*", "a+b?", "(a|b)+", "(?:ab)*", "a{2}b", "a{1,}b", "a{0,2}b", "a*?b", ".", ".*",
    r"\d+_\w", r"\D*", r"\S\W\S", r"a\.b", "[a-c]*", "[^a-c]*", r"[\d_x]+", r"[\]a\-b]+", "[-a]",
    "^foo$", "^foo", "foo$", "a^b", "a$b", "foo(bar|)", "|a", "%s__.*", "é.*", "(a?){3}",
]  # fmt: skip


@pytest.mark.parametrize("pattern", PATTERNS)
def test_same_as_python(pattern: str) -> None:
    compiled = KeyPattern(pattern)
    found = [key for key in KEYS if compiled.matches(key)]
    assert found == [key for key in KEYS if re.fullmatch(pattern, key)]


simple = st.recursive(
    st.sampled_from(["a", "b", ".", "[ab]", "[^a]"]),
    lambda inner: st.one_of(
        st.lists(inner, min_size=2, max_size=3).map("".join),
        st.lists(inner, min_size=2, max_size=3).map(lambda parts: f"({'|'.join(parts)})"),
        st.tuples(inner, st.sampled_from(["*", "+", "?", "{2}", "{1,2}"])).map(
            lambda pair: f"({pair[0]}){pair[1]}"
        ),
    ),
    max_leaves=6,
)


@given(simple, st.text("abc", max_size=8))
def test_same_as_python_at_random(pattern: str, key: str) -> None:
    assert KeyPattern(pattern).matches(key) is (re.fullmatch(pattern, key) is not None)


@pytest.mark.parametrize(
    "pattern",
    ["(", ")", "a)", "[", "[a", "a**", "*", "{", r"\1", r"\p{L}", "(?=a)", "(?i)a", "a++", "a{2,1}",
     "a{x}", "a{9999}", "a{1", "((a{400}){400})", "[z-a]", "[[a]]", "[a&&b]", "\\", "a{,2}",
     "(" * 60 + ")" * 60, "a" * (MAX_PATTERN_CHARS + 1)],
)  # fmt: skip
def test_refused(pattern: str) -> None:
    with pytest.raises(PatternError):
        KeyPattern(pattern)


@given(st.text(max_size=40), st.text(max_size=20))
def test_nothing_but_a_typed_error(pattern: str, key: str) -> None:
    with contextlib.suppress(PatternError):
        KeyPattern(pattern).matches(key)


@pytest.mark.parametrize("pattern", ["(a+)+b", "(a|a)*b", ".*.*.*.*.*.*x", "(a?){200}b"])
def test_hostile_patterns_take_no_time(pattern: str) -> None:
    compiled = KeyPattern(pattern)
    start = time.perf_counter()
    assert not compiled.matches("a" * 400)
    assert time.perf_counter() - start < 0.5


@pytest.mark.parametrize(
    "pattern",
    [
        "[ab]*a[ab]{450}",
        ".*a.{0,200}c",
        "(a*b*)*(a*b*)*c",
        f"[{'b' * 400}a]*[{'b' * 200}a]{{1,240}}c",
    ],
)
def test_keys_that_lead_to_ever_new_states_take_a_bounded_place(pattern: str) -> None:
    """What is kept of each was a state of its own, of hundreds of others."""
    compiled, chance = KeyPattern(pattern), random.Random(1)
    found = [compiled.matches("".join(chance.choices("ab", k=400))) for _ in range(50)]
    assert len(found) == 50
    assert len(compiled._next) <= (MAX_STATES + 7) // 8 * 256
    for character in map(chr, range(0x4E00, 0x4E00 + 3 * MAX_CACHED_CHARACTERS)):
        compiled.matches(character)
    assert len(compiled._taking) <= MAX_CACHED_CHARACTERS


@pytest.mark.parametrize(
    ("pattern", "prefix", "is_literal"),
    [
        ("key_00000.*", "key_00000", False),
        ("key", "key", True),
        ("^key$", "key", True),
        (r"a\.b\*", "a.b*", True),
        ("ab+", "ab", False),
        ("ab*", "a", False),
        ("ab?", "a", False),
        ("ab{2}c", "abbc", True),
        ("ab{0}c", "ac", True),
        ("(abc|abd).*", "ab", False),
        ("(abc|abc)", "abc", True),
        ("abc|b", "", False),
        ("x(|y)", "x", False),
        ("[a]b", "", False),
        ("a^b", "a", False),
        (".*", "", False),
        ("", "", True),
        ("a$b", "a", False),
    ],
)
def test_prefixes(pattern: str, prefix: str, is_literal: bool) -> None:
    found = KeyPattern(pattern)
    assert (found.prefix, found.is_literal) == (prefix, is_literal)


@given(simple, st.text("abc", max_size=6))
def test_all_matches_begin_with_the_prefix(pattern: str, key: str) -> None:
    compiled = KeyPattern(pattern)
    if compiled.matches(key):
        assert key.startswith(compiled.prefix)
        assert not compiled.is_literal or key == compiled.prefix
