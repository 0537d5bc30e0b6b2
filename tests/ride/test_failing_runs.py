"""Runs that fail: the fast evaluator ends them as the exact one does, which takes far longer.

What lives here: errors, messages and complexities of both, and what runs a second time. What does
not: successful runs (``test_evaluator_compiler``).
"""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from soliton.ride import evaluator
from soliton.ride.compiler import CompileError, compile_value
from soliton.ride.compiler.library import ScriptKind
from soliton.ride.environment import CURRENT_SWITCHES, Payment, Switches
from soliton.ride.errors import EvaluationError, FailOrReject, InvocationFailed, RideError
from soliton.ride.evaluator import Setting, evaluate
from soliton.ride.evaluator_machine import Machine
from soliton.ride.expressions import (
    Block,
    BoolConst,
    Call,
    Expression,
    Func,
    GetField,
    If,
    Let,
    LongConst,
    Ref,
    StringConst,
)
from soliton.ride.script import Script, make_script, parse_script
from soliton.ride.trace import Trace
from soliton.ride.values import UNIT, Value
from tests.amounts import examples, times
from tests.ride.differential.values import Values
from tests.ride.static_environment import StaticEnvironment
from tests.vectors import report

_LIMIT = 26_000
_Outcome = tuple[Any, ...]


def outcome(script: Script, *, exact: bool, limit: int = _LIMIT, **more: Any) -> _Outcome:
    """The value or the error of a run, by the exact evaluator or by the faster one."""
    setting = Setting(limit, trace=Trace() if exact else None, **more)
    try:
        ended = evaluate(script, StaticEnvironment(answer=_answer), lambda: UNIT, setting)
    except EvaluationError as error:
        return type(error).__name__, error.message, error.remaining, error.spent
    return "value", ended.value, ended.spent


def _answer(
    _dapp: bytes,
    function: str,
    _arguments: tuple[Value, ...],
    _payments: tuple[Payment, ...],
    available: int,
    _reentrant: bool,
) -> tuple[Value, int]:
    if function == "fails":
        raise InvocationFailed("no such function", available - 7)
    if function == "rejects":
        raise FailOrReject("too many payments", available - 9)
    return 5, available - 11


TEXTS = [
    'throw("enough")',
    "throw()",
    "1 / 0",
    "[1, 2][5]",
    "value(getInteger(this, \"k\"))",
    "value(getString(base58''.addressFromPublicKey(), \"k\"))",
    "getIntegerValue(this, \"k\")",
    "value(getBinary(\"k\"))",
    "value([IntegerEntry(\"a\", 1)].getInteger(\"b\"))",
    "value([IntegerEntry(\"a\", 1)].getString(0))",
    "value(blockInfoByHeight(height + 5))",
    "value(if (true) then unit else 1)",
    "value({ let a = if (true) then unit else 1; a })",
    "let a = if (true) then unit else 1; value(a)",
    "func f() = if (true) then unit else 1; value(f())",
    "value(\"x\".indexOf(\"y\"))",
    "value(value([unit, 1][0]))",
    "valueOrErrorMessage(getInteger(this, \"k\"), \"none\" + \" there\")",
    "let big = makeString_11C([\"a\", \"b\"], \"c\"); big.parseIntValue()",
    "(1, 2, 3)._1 + [(1, 2)][0]._2 + 9223372036854775807",
    "func deep(n: Int) = if (n == 0) then throw(\"end\") else n; deep(1) + deep(0)",
    "FOLD<3>([1, 2, 0], 10, div)",
    "1.exactAs[String]",
    "toBigInt(1) / toBigInt(0) == toBigInt(1)",
    "base58''.toUtf8String() + base16'ff'.toUtf8String()",
    "createMerkleRoot([base58''], base58'', 0)",
    "addressFromStringValue(\"nothing\")",
    "strict a = throw(\"first\"); 1",
]  # fmt: skip
_HEAD = "func div(a: Int, b: Int) = a / b\n"


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("switches", [CURRENT_SWITCHES, Switches(new_complexity=False)])
def test_a_failure_is_the_same(text: str, switches: Switches) -> None:
    script = _compiled(_HEAD + text)
    expected = outcome(script, exact=True, switches=switches)
    assert expected[0] != "value"
    assert outcome(script, exact=False, switches=switches) == expected


_DAPP = Call("Address", (Ref("this"),))


@pytest.mark.parametrize(
    "expression",
    [
        GetField(LongConst(1), "a"),
        GetField(Call("Alias", (StringConst("a"),)), "b"),
        If(LongConst(1), LongConst(1), LongConst(2)),
        Ref("nobody"),
        Call(9_999, (Call(104, (LongConst(2), LongConst(3))),)),
        Call("Nobody", (Call(2, (StringConst("first"),)),)),
        Call("Nobody", (LongConst(1), Call(100, (LongConst(1), LongConst(2))))),
        Call("value", (Ref("unit"),)),
        Call("value", (Block(Let("a", Ref("unit")), Ref("a"), True),)),
        Call("value", (GetField(Call("Alias", (Ref("unit"),)), "alias"),)),
        Call("value", (Call("Nobody", ()),)),
        Call(1020, (Call("Address", (StringConst("x"),)), StringConst("f"), Ref("nil"))),
        Block(Func("f", ("a",), Ref("a")), Call("f", ())),
        Block(Func("f", (), Ref("height")), Call("f", (LongConst(1),))),
        Call("Alias", (Call("Alias", ()),)),
        Ref("tx"),
    ],
)
def test_code_that_no_compiler_writes_fails_the_same(expression: Expression) -> None:
    around = Block(Let("b", Call(100, (LongConst(1), LongConst(2)))), expression)
    script = make_script(6, Call(0, (Call(0, (Ref("height"), LongConst(1))), around)))
    assert outcome(script, exact=False) == outcome(script, exact=True)


@pytest.mark.parametrize("function", ["fails", "rejects", "answers"])
@pytest.mark.parametrize("after", ["", 'throw("later")'])
def test_runs_that_call_dapps_fail_the_same(function: str, after: str) -> None:
    text = f'strict a = invoke(this, "{function}", [], [])\n{after or "a"}'
    script = _compiled(text, kind=ScriptKind.DAPP)
    kind: dict[str, Any] = {"kind": ScriptKind.DAPP}
    assert outcome(script, exact=False, **kind) == outcome(script, exact=True, **kind)


def test_no_failure_runs_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """Running it in the exact evaluator takes thirty times as long."""
    scripts = [_compiled(_HEAD + text) for text in TEXTS]
    expected = [outcome(script, exact=True) for script in scripts]

    def refuse(*_: object) -> None:
        raise AssertionError("the exact evaluator runs")

    monkeypatch.setattr(Machine, "run", refuse)
    assert [outcome(script, exact=False) for script in scripts] == expected


def test_an_error_does_not_keep_the_frames_of_its_run() -> None:
    script = _compiled("func f(n: Int) = 1 / n\nfunc g(n: Int) = f(n)\ng(0)")
    with pytest.raises(EvaluationError) as caught:
        evaluate(script, StaticEnvironment(), lambda: UNIT, Setting(_LIMIT))
    modules = {entry.frame.f_globals["__name__"] for entry in caught.traceback}
    assert evaluator.__name__ in modules
    assert "soliton.ride.evaluator_code" not in modules


def test_random_expressions_end_the_same() -> None:
    ends: dict[str, int] = {}
    for number in range(times(250, 5_000)):
        chance = Random(f"failing/{number}")
        version = chance.choice((2, 3, 4, 5, 6, 8, 9))
        values = Values(chance, version, ScriptKind.ACCOUNT)
        of = values.simple() if chance.random() < 0.6 else values.some_type()
        try:
            script = parse_script(compile_value(values.of(of, 4), version)[0].source)
        except (CompileError, RideError):
            continue
        limit = chance.choice((_LIMIT, _LIMIT, chance.randint(1, 60)))
        expected = outcome(script, exact=True, limit=limit)
        assert outcome(script, exact=False, limit=limit) == expected, number
        ends[expected[0]] = ends.get(expected[0], 0) + 1
    assert ends["value"] and ends["EvaluationError"]
    for end, count in ends.items():
        report.ran(f"runs that end as the exact evaluator's: {end}", count)


# --- trees that no compiler writes ----------------------------------------------------------------

_NAMES = ["a", "b", "unit", "height", "this", "nobody", "nil"]
_CALLS: list[tuple[int | str, int]] = [
    (0, 2), (2, 1), (100, 2), (105, 2), (200, 1), (305, 1), (401, 2), (1100, 2), (1050, 2),
    (1200, 1), (9_999, 1), ("value", 1), ("valueOrElse", 2), ("isDefined", 1), ("!", 1),
    ("Alias", 1), ("Address", 1), ("Nobody", 1), ("f", 1), ("Unit", 0),
]  # fmt: skip
_leaves = (
    st.sampled_from(_NAMES).map(Ref)
    | st.integers(-1, 3).map(LongConst)
    | st.booleans().map(BoolConst)
    | st.sampled_from(["", "k"]).map(StringConst)
)


def _wider(inner: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
    def call(of: tuple[int | str, int]) -> st.SearchStrategy[Expression]:
        return st.tuples(*[inner] * of[1]).map(lambda arguments: Call(of[0], arguments))

    lets = st.builds(Let, st.sampled_from("ab"), inner)
    functions = st.builds(Func, st.just("f"), st.just(("a",)), inner)
    return (
        st.sampled_from(_CALLS).flatmap(call)
        | st.builds(If, inner, inner, inner)
        | st.builds(GetField, inner, st.sampled_from(["bytes", "alias", "_1"]))
        | st.builds(Block, lets | functions, inner)
    )


@settings(max_examples=examples(200))
@given(st.recursive(_leaves, _wider, max_leaves=14), st.sampled_from([_LIMIT, 1, 2, 3, 5, 9, 20]))
def test_trees_that_no_compiler_writes_end_the_same(tree: Expression, limit: int) -> None:
    script = make_script(6, tree)
    assert outcome(script, exact=False, limit=limit) == outcome(script, exact=True, limit=limit)


def _compiled(text: str, kind: ScriptKind = ScriptKind.ACCOUNT) -> Script:
    return parse_script(compile_value(text, 6, kind=kind)[0].source)
