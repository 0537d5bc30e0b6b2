"""Sources that are long: they end with a result or an error, on a small stack too."""

from __future__ import annotations

import threading

import pytest

from soliton.ride.compiler import CompileError, compile_source, cursor
from soliton.ride.compiler.errors import Source
from soliton.ride.compiler.fragment import compile_fragment
from soliton.ride.compiler.parser import parse_expression
from soliton.ride.errors import Interrupted
from soliton.ride.estimators import estimate, estimator
from soliton.ride.expressions import DApp
from tests.amounts import times

HEAD = "{-# STDLIB_VERSION 6 #-}\nlet a = true\n"
MANY, FEW = times(11_000, 20_000), 2_000
"""More than any recursion may be deep, and few."""
STACK_BYTES = times(1 << 21, 1 << 22)
"""Threads of ours, and those of others on the platforms we run on, have 8 MB or more."""


def chains(many: int) -> dict[str, str]:
    """Expressions that are as deep as they are long, or only long."""
    return {
        "or": "a" + "||a" * many,
        "and": "a" + "&&a" * many,
        "else if": "if a then a else " * many + "a",
        "fields": "a" + ".b" * many,
        "casts": "a" + ".as[Boolean]" * many,
        "indexes": "a" + "[0]" * many,
        "comparisons": "a" + "==a" * many,
        "cons": "a" + "::a" * many,
        "methods": "a" + ".f()" * many,
        "values": "".join(f"let a{number} = a\n" for number in range(many)) + "a",
        "functions": "".join(f"func a{number}() = a\n" for number in range(many)) + "a",
        "not": "!" * many + "a",
        "items": "[" + "a, " * many + "a] == nil",
    }


LONG, SHORT = chains(MANY), chains(FEW)


@pytest.mark.parametrize("text", LONG.values(), ids=LONG.keys())
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


@pytest.mark.parametrize(
    "text", ["1" + "+1" * 10 + " == 1", "a" + ".b" * 10, "[" + "1," * 10 + "1] == nil"]
)
def test_what_no_script_has_room_for_is_not_read(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cursor, "MAX_OPERANDS", 10)
    with pytest.raises(CompileError, match="more than 10 constants, names and calls"):
        compile_source("{-# STDLIB_VERSION 6 #-}\n" + text)
    compile_source("{-# STDLIB_VERSION 6 #-}\n1" + "+1" * 8 + " == 9")


class Watch:
    """Counts how often the compiler asks, and stops it at one of these times."""

    def __init__(self, stops_at: int = -1) -> None:
        self.asked = 0
        self._stops_at = stops_at

    def __call__(self) -> None:
        self.asked += 1
        if self.asked == self._stops_at:
            raise Interrupted("enough")


@pytest.mark.parametrize("text", SHORT.values(), ids=SHORT.keys())
def test_whoever_watches_is_asked_all_the_time_and_can_stop_it(text: str) -> None:
    watch = Watch()
    with pytest.raises(CompileError):
        compile_source(HEAD + text, watch=watch)
    assert watch.asked >= len(text) // 300
    # The last time may be where the stack is full, and to raise takes some of it too.
    for stops_at in (1, watch.asked // 2, watch.asked * 9 // 10):
        stopping = Watch(stops_at)
        with pytest.raises(Interrupted):
            compile_source(HEAD + text, watch=stopping)
        assert stopping.asked == stops_at


def test_reading_and_checking_are_both_watched() -> None:
    text = "[" + "1, " * MANY + "1] == nil"
    source = Watch()
    parse_expression(Source(text, watch=source), 6)
    both = Watch()
    with pytest.raises(CompileError):
        compile_source(HEAD + text, watch=both)
    assert source.asked > MANY and both.asked - source.asked > MANY


def test_a_fragment_is_watched() -> None:
    watch = Watch(MANY // 2)
    with pytest.raises(Interrupted):
        compile_fragment("1" + "+1" * MANY, 6, DApp(b"", (), ()), watch)


DEAR = f"""{{-# STDLIB_VERSION 4 #-}}
{{-# CONTENT_TYPE DAPP #-}}
let a0 = 1
{"".join(f"let a{number} = a{number - 1} + a{number - 1}{chr(10)}" for number in range(1, 300))}
{
    "".join(
        f"@Callable(i){chr(10)}func c{number}() = [IntegerEntry('', a299)]{chr(10)}"
        for number in range(50)
    ).replace("'", '"')
}
"""


@pytest.mark.parametrize("version", [1, 2, 3, 4])
def test_estimating_is_watched(version: int) -> None:
    script = compile_source(DEAR, check_complexity=False).script
    watch = Watch()
    estimate(estimator(version), script, watch=watch)
    assert watch.asked > 10
    with pytest.raises(Interrupted):
        estimate(estimator(version), script, watch=Watch(watch.asked))
