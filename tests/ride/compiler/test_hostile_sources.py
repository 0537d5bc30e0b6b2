"""Sources that are made to take long: each takes a time that grows with its size, and not faster.

What lives here: texts by their kind, each of any size. What does not: what compiling them over REST
does to others (``tests/api/rest/test_hostile_texts.py``).
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable

import pytest

from soliton.ride.compiler import CompileError, compile_source
from soliton.ride.compiler.checker import MAX_UNROLLED_STEPS
from soliton.ride.compiler.errors import MAX_MESSAGE_CHARS
from soliton.ride.errors import RideError
from soliton.ride.formatter import format_source
from tests.growth import MAX_GROWTH, growth

V6 = "{-# STDLIB_VERSION 6 #-}\n"
DAPP = V6 + "{-# CONTENT_TYPE DAPP #-}\n"
SIZE = 20_000
Text = Callable[[int], str]

SOURCES: dict[str, Text] = {
    "spaces in a directive": lambda n: "{-#" + " " * (n // 2) + "A" + " " * (n // 2) + "!#-}",
    "words in a directive": lambda n: "{-# STDLIB_VERSION " + "a " * (n // 2) + "!#-}",
    "keys in a directive": lambda n: "{-# " + "A" * n + "!#-}",
    "spaces after a value": lambda n: "{-# STDLIB_VERSION 6" + " \t" * (n // 2) + "! #-}",
    "directives in a line": lambda n: "{-# STDLIB_VERSION 6 #-}" * (n // 24),
    "ends of directives": lambda n: "{-# A" + "#-} " * (n // 4) + "!",
    "begins of directives": lambda n: "{-#" * (n // 3),
    "begins of imports": lambda n: "{-# IMPORT a #-}\n" + "{-#IMPORT" * (n // 9),
    "names to import": lambda n: "{-# IMPORT " + "a," * (n // 2) + "a #-}\ntrue",
    "a long unknown name": lambda n: V6 + "a" * n,
    "names like the unknown one": lambda n: (
        V6 + "".join(f"let abcdefgh{i:06} = {i}\n" for i in range(n // 24)) + "abcdefgh00000x"
    ),
    "long names like the unknown one": lambda n: (
        V6 + "".join(f"let {'ab' * 100}{i:06} = {i}\n" for i in range(n // 220)) + "ab" * 101
    ),
    "brackets": lambda n: V6 + "(" * n + "1" + ")" * n,
    "signs": lambda n: V6 + "-" * n + "1",
    "comments": lambda n: V6 + "#\n" * (n // 2) + "true",
    "comments in brackets": lambda n: V6 + "(" * 90 + "1" + "#\n" * (n // 2) + ")" * 90 + "==1",
    "blanks in brackets": lambda n: V6 + "(" * 90 + " " * n + "1" + ")" * 90 + "==1",
    "lines before a sign": lambda n: V6 + "1" + "\n" * n + "+1",
    "a text without an end": lambda n: V6 + '"' + "\\u0041" * (n // 6),
    "escapes": lambda n: V6 + '"' + "\\\\" * (n // 2),
    "bytes without an end": lambda n: V6 + "base58'" + "z" * n,
    "digits": lambda n: V6 + "9" * n + " == 1",
    "zeros": lambda n: V6 + "0" * n + "1 == 1",
    "fields": lambda n: V6 + "a." * (n // 2) + "b",
    "conditions": lambda n: V6 + "if (true) then 1 else " * (n // 22) + "1",
    "cases": lambda n: V6 + "match 1 {" + " case x: Int => 1" * (n // 17) + "}",
    "patterns of tuples": lambda n: V6 + "match 1 { case " + "(" * n + "1",
    "patterns in matches": lambda n: V6 + "match 1 { case (" * (n // 16),
    "types of a union": lambda n: V6 + "func f(a: " + "Int|" * (n // 4) + "Int) = 1\ntrue",
    "annotations": lambda n: DAPP + "@Callable(i)\n" * (n // 13) + "func f() = []",
    "parameters": lambda n: DAPP + f"@Callable(i)\nfunc f({'a: Int,' * (n // 7)}b: Int) = []",
    "folds": lambda n: (
        V6 + "func f(a: Int, b: Int) = a + b\n" + "FOLD<1000>([1], 0, f) + " * (n // 24) + "1"
    ),
}


def compiled(text: str) -> None:
    try:
        compile_source(text, libraries={"a": text})
    except RideError as error:
        assert len(str(error)) < 3 * MAX_MESSAGE_CHARS  # noqa: PT017 - many of them compile


def formatted(text: str) -> None:
    with contextlib.suppress(CompileError):
        format_source(text)


@pytest.mark.parametrize("name", SOURCES)
def test_sources_take_as_long_as_they_are(name: str) -> None:
    assert growth(compiled, SOURCES[name], SIZE) <= MAX_GROWTH


@pytest.mark.parametrize("name", [name for name in SOURCES if "directive" in name])
def test_directives_are_formatted_as_long_as_they_are(name: str) -> None:
    assert growth(formatted, SOURCES[name], SIZE) <= MAX_GROWTH


@pytest.mark.parametrize("name", ["begins of directives", "ends of directives"])
def test_libraries_take_as_long_as_they_are(name: str) -> None:
    def work(text: str) -> None:
        library = "{-# CONTENT_TYPE LIBRARY #-}\n" + text
        with contextlib.suppress(CompileError):
            compile_source("{-# IMPORT lib #-}\ntrue", libraries={"lib": library})

    assert growth(work, SOURCES[name], SIZE) <= MAX_GROWTH


def test_folds_are_counted_before_they_are_unrolled() -> None:
    fold = "FOLD<1000>([1], 0, f)"
    folds = " + ".join([fold] * (MAX_UNROLLED_STEPS // 1_000 + 1))
    with pytest.raises(CompileError, match=f"more than {MAX_UNROLLED_STEPS} steps"):
        compile_source(f"{V6}func f(a: Int, b: Int) = a + b\n{folds} == 1")


@pytest.mark.parametrize("digits", ["9" * 5_000, "0" * 5_000 + "9" * 20, "-" + "9" * 40])
def test_a_number_of_any_length_is_one_or_none(digits: str) -> None:
    with pytest.raises(CompileError, match="does not fit into 64 bits"):
        compile_source(f"{V6}{digits} == 1")


def test_zeros_before_a_number_mean_nothing() -> None:
    plain, long = (compile_source(f"{V6}{zeros}17 == 17") for zeros in ("", "0" * 5_000))
    assert plain.script.source == long.script.source
