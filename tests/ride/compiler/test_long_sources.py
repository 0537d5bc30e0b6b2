"""Sources that are long: they end with a result or an error, on a small stack too."""

from __future__ import annotations

import threading

import pytest

from soliton.ride.compiler import CompileError, compile_source

HEAD = "{-# STDLIB_VERSION 6 #-}\nlet a = true\n"
MANY = 20_000
STACK_BYTES = 1 << 20

CHAINS = {
    "or": "a" + "||a" * MANY,
    "and": "a" + "&&a" * MANY,
    "else if": "if a then a else " * MANY + "a",
    "fields": "a" + ".b" * MANY,
    "casts": "a" + ".as[Boolean]" * MANY,
    "indexes": "a" + "[0]" * MANY,
    "comparisons": "a" + "==a" * MANY,
    "cons": "a" + "::a" * MANY,
    "methods": "a" + ".f()" * MANY,
    "values": "".join(f"let a{number} = a\n" for number in range(MANY)) + "a",
    "functions": "".join(f"func a{number}() = a\n" for number in range(MANY)) + "a",
    "not": "!" * MANY + "a",
    "items": "[" + "a, " * MANY + "a] == nil",
}


@pytest.mark.parametrize("text", CHAINS.values(), ids=CHAINS.keys())
def test_a_long_chain_needs_no_deep_stack(text: str) -> None:
    """Neither while it is compiled nor when its tree is freed: that crashed the process once."""
    found: list[str] = []

    def compile_it() -> None:
        with pytest.raises(CompileError) as caught:
            compile_source(HEAD + text, check_complexity=False)
        found.append(str(caught.value))

    before = threading.stack_size(STACK_BYTES)
    try:
        thread = threading.Thread(target=compile_it)
        thread.start()
    finally:
        threading.stack_size(before)
    thread.join()
    assert len(found) == 1
