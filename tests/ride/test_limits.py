"""Scripts that want too much: depth, length, time. They end with a typed error or with a result."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from soliton.ride import evaluator_code, evaluator_machine
from soliton.ride.environment import CURRENT_SWITCHES, MAX_FREE_CALLS, Payment, Switches
from soliton.ride.errors import ComplexityExceeded, EvaluationError, Interrupted, ScriptFormatError
from soliton.ride.evaluator import Invocation, Outcome, Setting, evaluate, invoke
from soliton.ride.expressions import (
    Block,
    BoolConst,
    Call,
    Expression,
    GetField,
    If,
    Let,
    ListConst,
    LongConst,
    Ref,
)
from soliton.ride.script import Script, make_script, parse_script
from soliton.ride.serialization import MAX_SCRIPT_BYTES, read_expression
from soliton.ride.trace import Trace
from soliton.ride.values import MAX_WEIGHT, UNIT, RideList, Value, equal, weight
from tests.amounts import examples, if_long, times
from tests.ride.static_environment import ADDRESS, StaticEnvironment
from tests.ride.test_serialization import trees
from tests.ride.trees import add, block, call, dapp, func, let, text

LIMIT = 52_000
DEEP = times(6_000, 30_000)
"""What the bytes of the largest script can hold, or far more than any recursion would bear."""
PATIENCE_SECONDS = 20.0


def run(expression: Expression, switches: Switches = CURRENT_SWITCHES, limit: int = LIMIT) -> Value:
    script = make_script(6, expression)
    setting = Setting(limit, switches)
    return evaluate(script, StaticEnvironment(), lambda: UNIT, setting).value


def _wrapped(start: Expression, wrap: Callable[[Expression], Expression]) -> Expression:
    for _ in range(DEEP):
        start = wrap(start)
    return start


ONE = LongConst(1)
TRUE = BoolConst(True)


@pytest.mark.parametrize(
    ("wrap", "start", "expected"),
    [
        (lambda inner: If(inner, TRUE, TRUE), TRUE, True),
        (lambda inner: If(TRUE, inner, TRUE), TRUE, True),
        (lambda inner: If(BoolConst(False), TRUE, inner), TRUE, True),
        (lambda inner: Call(100, (inner, ONE)), ONE, DEEP + 1),
        (lambda inner: Call(100, (ONE, inner)), ONE, DEEP + 1),
        (lambda inner: Block(Let("a", inner), Ref("a")), ONE, 1),
        (lambda inner: Block(Let("a", ONE), inner), Ref("a"), 1),
        (lambda inner: Block(func("f", "", inner), Call("f", ())), ONE, 1),
        (lambda inner: Call("!", (inner,)), TRUE, True),
        (lambda inner: GetField(Call("Address", (inner,)), "bytes"), ONE, 1),
    ],
)
@pytest.mark.parametrize("switches", [CURRENT_SWITCHES, Switches(new_complexity=False)])
def test_depth_is_no_problem(
    wrap: Callable[[Expression], Expression],
    start: Expression,
    expected: Value,
    switches: Switches,
) -> None:
    run(ONE)
    before = sys.getrecursionlimit()
    assert run(_wrapped(start, wrap), switches, limit=10 * LIMIT) == expected
    # Other threads may be deep by now: it is never lowered, and never raised for one script.
    assert sys.getrecursionlimit() == before


@pytest.mark.parametrize("count", [100, 1_000, 5_000])
def test_chains_of_names(count: int) -> None:
    names = [let("a0", 1), *(let(f"a{n}", add(f"a{n - 1}", 1)) for n in range(1, count + 1))]
    assert run(block(*names, f"a{count}")) == count + 1
    functions = [
        func("f0", "", add(1, 1)),
        *(func(f"f{n}", "", call(f"f{n - 1}")) for n in range(1, count + 1)),
    ]
    script = make_script(6, block(*functions, call(f"f{count}")))
    assert evaluate(script, StaticEnvironment(), lambda: UNIT) == Outcome(2, 1)


def test_functions_that_call_one_another_twice_end_at_the_limit() -> None:
    doubling = [
        func("f0", "", 1),
        *(func(f"f{n}", "", add(call(f"f{n - 1}"), call(f"f{n - 1}"))) for n in range(1, 60)),
    ]
    begin = time.monotonic()
    for switches in (CURRENT_SWITCHES, Switches(new_complexity=False)):
        with pytest.raises(ComplexityExceeded):
            run(block(*doubling, call("f59")), switches)
    assert time.monotonic() - begin < PATIENCE_SECONDS


def test_free_calls_of_older_scripts_end_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    most = times(50_000, MAX_FREE_CALLS)
    for module in (evaluator_code, evaluator_machine):
        monkeypatch.setattr(module, "MAX_FREE_CALLS", most)
    doubling = [
        func("f0", "a b", 1),
        *(
            func(f"f{n}", "a b", call(f"f{n - 1}", call(f"f{n - 1}", 1, 1), 1))
            for n in range(1, 60)
        ),
    ]
    begin = time.monotonic()
    with pytest.raises(EvaluationError, match=f"more than {most} calls"):
        run(block(*doubling, call("f59", 1, 1)), Switches(new_complexity=False))
    assert time.monotonic() - begin < PATIENCE_SECONDS


@pytest.mark.parametrize("lexical", [True, False])
def test_ten_thousand_names(lexical: bool) -> None:
    count = 10_000
    names = [let(f"a{n}", n) for n in range(count)]
    uses = add(0, *(f"a{7 * n % count}" for n in range(300)))
    expression = block(
        *names, *(let(f"b{n}", uses) for n in range(20)), add(*(f"b{n}" for n in range(20)))
    )
    begin = time.monotonic()
    run(expression, Switches(lexical_scope=lexical))
    assert time.monotonic() - begin < PATIENCE_SECONDS


def test_lists_within_lists_are_too_heavy_before_they_are_too_deep() -> None:
    deepen = [let("a0", "nil")]
    deepen += [let(f"a{n}", call(1100, f"a{n - 1}", "nil")) for n in range(1, 9_000)]
    with pytest.raises(EvaluationError, match="too heavy"):
        run(block(*deepen, "a8999"))
    deepest = 8_000
    value = run(block(*deepen[: deepest + 1], f"a{deepest}"))
    again = run(block(*deepen[: deepest + 1], f"a{deepest}"))
    assert isinstance(value, RideList)
    assert MAX_WEIGHT - 45_000 < weight(value) <= MAX_WEIGHT
    assert equal(value, again)
    # What the library does with such a value does not go down recursively either.
    assert run(block(*deepen[: 320 + 1], call(0, "a320", "a320"))) is True
    with pytest.raises(EvaluationError):
        run(block(*deepen[: deepest + 1], call(0, f"a{deepest}", f"a{deepest}")))


def test_doubled_text_and_bytes_end_at_their_limit() -> None:
    for function, literal in ((300, text("ab")), (203, call(203, b"a", b"b"))):
        doubling = [let("a0", literal)]
        doubling += [let(f"a{n}", call(function, f"a{n - 1}", f"a{n - 1}")) for n in range(1, 40)]
        with pytest.raises(EvaluationError, match="exceeds 32767"):
            run(block(*doubling, "a39"))


def test_doubled_lists_end_at_their_limit() -> None:
    doubling = [let("a0", call(1100, 1, "nil"))]
    doubling += [let(f"a{n}", call(1102, f"a{n - 1}", f"a{n - 1}")) for n in range(1, 40)]
    with pytest.raises(EvaluationError, match="1000"):
        run(block(*doubling, "a39"))


def test_a_wide_call() -> None:
    wide = Call("Address", (ONE,) * 100)
    assert run(GetField(wide, "bytes")) == 1
    with pytest.raises(ScriptFormatError):
        make_script(6, Call("Address", (ONE,) * 128))


def test_a_script_larger_than_any() -> None:
    large = dapp(*(let(f"name{n}", b"a" * 30_000) for n in range(6)), callables=(), verifier=None)
    script = make_script(6, large)
    assert len(script.source) > MAX_SCRIPT_BYTES
    with pytest.raises(ScriptFormatError, match="too large"):
        parse_script(script.source)


# --- calls within calls ---------------------------------------------------------------------------


def _nested(script: Script, levels: int) -> tuple[Value, int]:
    """A dApp that calls itself as often as it is told to, through its environment."""

    def answer(
        _dapp: bytes,
        function: str,
        arguments: tuple[Value, ...],
        _payments: tuple[Payment, ...],
        available: int,
        _reentrant: bool,
    ) -> tuple[Value, int]:
        outcome = invoke(
            script,
            StaticEnvironment(answer=answer),
            Invocation(function, arguments, UNIT),
            Setting(available),
        )
        return outcome.value, available - outcome.spent

    outcome = invoke(
        script, StaticEnvironment(answer=answer), Invocation("f", (levels,), UNIT), Setting(LIMIT)
    )
    return outcome.value, outcome.spent


def _calling_itself(chain: int) -> Script:
    """``chain`` names that lead to one another stand before each further call."""
    again = call(
        1021,
        call("Address", ADDRESS),
        text("f"),
        call(1100, call(101, "n", 1), "nil"),
        ListConst(()),
    )
    names = [let("a0", again), *(let(f"a{n}", f"a{n - 1}") for n in range(1, chain + 1))]
    body = If(call(0, "n", 0), ONE, block(*names, add(f"a{chain}", 1)))
    return make_script(6, dapp(callables=(func("f", "n", body),), verifier=None))


@pytest.mark.parametrize("chain", [1, 400, if_long(3_000)])
def test_a_hundred_calls_within_one_another(chain: int) -> None:
    value, spent = _nested(_calling_itself(chain), 100)
    assert value == 101
    assert spent == 100 * (1 + 1 + 1 + 75 + 1 + 1) + 1


def test_scripts_run_in_several_threads_at_once() -> None:
    script = _calling_itself(300)
    found: list[tuple[Value, int]] = []
    threads = [threading.Thread(target=lambda: found.append(_nested(script, 60))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [(61, 60 * 80 + 1)] * 4


# --- hostile bytes --------------------------------------------------------------------------------


def _run_bytes(body: bytes, version: int, *, new: bool, lexical: bool) -> None:
    try:
        script = make_script(version, read_expression(body, version))
    except ScriptFormatError:
        return
    switches = Switches(new_complexity=new, lexical_scope=lexical)
    try:
        outcome = evaluate(script, StaticEnvironment(), lambda: UNIT, Setting(1_000, switches))
    except EvaluationError as error:
        assert error.spent <= 1_000  # noqa: PT017 - there may be none
    else:
        assert 0 <= outcome.spent <= 1_000


@settings(max_examples=examples(300))
@given(st.binary(max_size=60), st.integers(1, 8), st.booleans(), st.booleans())
def test_any_bytes_run_or_fail(body: bytes, version: int, new: bool, lexical: bool) -> None:
    _run_bytes(body, version, new=new, lexical=lexical)


@settings(max_examples=examples(300))
@given(trees, st.integers(1, 8), st.booleans(), st.booleans())
def test_any_tree_runs_or_fails(tree: Expression, version: int, new: bool, lexical: bool) -> None:
    script = make_script(version, tree)
    _run_bytes(script.source[1 if version < 6 else 2 : -4], version, new=new, lexical=lexical)


LIBRARY_KEYS = st.sampled_from(
    (
        0, 1, 2, 3, 100, 104, 105, 107, 108, 118, 200, 201, 203, 300, 303, 305, 400, 401, 405, 406,
        410, 411, 420, 500, 503, 504, 600, 601, 603, 605, 700, 701, 900, 1000, 1003, 1004, 1005,
        1020, 1040, 1050, 1055, 1060, 1062, 1070, 1080, 1090, 1092, 1100, 1101, 1102, 1103, 1105,
        1200, 1201, 1203, 1205, 1206, 1208, 1209, 1300, 1350, 2400, 2450, 2500, 2700,
        "value", "!", "!=", "-", "fraction", "sqrt", "contains", "Address", "Issue",
    )
)  # fmt: skip
RESULTS = st.recursive(
    st.one_of(
        st.integers(-3, 3).map(LongConst),
        st.binary(max_size=3).map(lambda data: call(203, data, b"")),
        st.text(max_size=3).map(text),
        st.booleans().map(BoolConst),
        st.sampled_from(["unit", "nil", "this", "tx", "lastBlock", "height", "DOWN"]).map(Ref),
    ),
    lambda inner: st.builds(Call, LIBRARY_KEYS, st.lists(inner, min_size=1, max_size=4).map(tuple)),
    max_leaves=8,
)


@settings(max_examples=examples(600))
@given(RESULTS, st.integers(1, 8))
def test_any_call_of_the_library_returns_or_fails(expression: Expression, version: int) -> None:
    script = make_script(version, expression)
    try:
        evaluate(script, StaticEnvironment(), lambda: UNIT, Setting(4_000))
    except EvaluationError:
        return


# --- stopped from outside -------------------------------------------------------------------------


@pytest.mark.parametrize("trace", [None, Trace()])
@pytest.mark.parametrize("new", [True, False])
def test_a_watch_stops_a_run(new: bool, trace: Trace | None) -> None:
    checks = add(
        *(If(call(500, number.to_bytes(2, "big"), b"", b""), ONE, ONE) for number in range(200))
    )
    asked = 0

    def watch() -> None:
        nonlocal asked
        asked += 1
        if asked == 20:
            raise Interrupted("enough")

    setting = Setting(LIMIT, Switches(new_complexity=new), trace=trace, watch=watch)
    with pytest.raises(Interrupted):
        evaluate(make_script(6, checks), StaticEnvironment(), lambda: UNIT, setting)
    assert asked == 20
    before = sys.getrecursionlimit()
    patient = Setting(LIMIT, Switches(new_complexity=new), trace=trace, watch=lambda: None)
    assert (
        evaluate(make_script(6, add(1, 1)), StaticEnvironment(), lambda: UNIT, patient).value == 2
    )
    assert sys.getrecursionlimit() == before
