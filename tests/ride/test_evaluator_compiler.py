"""The fast evaluator against the exact one: wherever it answers at all, it answers the same."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from soliton.ride.compiler.library import ScriptKind
from soliton.ride.environment import CallContext, Switches
from soliton.ride.errors import EvaluationError
from soliton.ride.evaluator_compiler import MAX_DEPTH, Program, TooDeep
from soliton.ride.evaluator_library import Library, Named, Native
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
)
from soliton.ride.functions.bodies import named_functions
from soliton.ride.values import NIL, UNIT, Value, equal
from tests.amounts import examples
from tests.ride.static_environment import StaticEnvironment

PLENTY = 1_000_000


def _sum(arguments: Sequence[Value], _context: CallContext) -> Value:
    left, right = arguments
    if type(left) is not int or type(right) is not int:
        raise EvaluationError("no numbers")
    return left + right


def _equal(arguments: Sequence[Value], _context: CallContext) -> Value:
    return equal(*arguments)


def _throw(arguments: Sequence[Value], _context: CallContext) -> Value:
    raise EvaluationError(str(arguments[0]))


def _library() -> Library:
    bodies = named_functions(6, ord("T"))
    costs = {"!=": 1, "!": 1, "value": 2, "isDefined": 1, "valueOrElse": 2}
    named = {
        name: Named(name, cost, bodies[name].parameters, bodies[name].body)
        for name, cost in costs.items()
    }
    natives = {
        0: Native("==", 1, _equal),
        2: Native("throw", 1, _throw),
        100: Native("+", 1, _sum),
        107: Native("costly +", 14, _sum),
    }
    constructors: dict[str, tuple[str, ...]] = {"Unit": (), "Pair": ("a", "b")}
    return Library(
        6,
        ScriptKind.ACCOUNT,
        ord("T"),
        natives,
        named,
        constructors,
        {"unit": UNIT, "nil": NIL},
        {"height": lambda context: context.environment.height},
    )


LIBRARY = _library()
LIBRARY_CALLS: list[tuple[int | str, int]] = [
    (0, 2), (0, 2), (100, 2), (107, 2), ("!=", 2), ("isDefined", 1), ("value", 1),
    ("valueOrElse", 2), ("Pair", 2), ("Unit", 0),
]  # fmt: skip


@st.composite
def programs(
    draw: st.DrawFn,
    depth: int = 5,
    names: tuple[str, ...] = ("unit", "height"),
    functions: tuple[tuple[int | str, int], ...] = (),
) -> Expression:
    """Programs that mostly make sense: names are declared, functions get what they take."""

    def inner(
        more_names: tuple[str, ...] = (), more: tuple[tuple[int | str, int], ...] = ()
    ) -> Expression:
        return draw(programs(depth - 1, names + more_names, functions + more))

    kind = draw(st.integers(0, 9)) if depth else 0
    if kind <= 1:
        return draw(
            st.sampled_from(names).map(Ref)
            | st.integers(0, 2).map(LongConst)
            | st.booleans().map(BoolConst)
        )
    if kind <= 3:
        name = draw(st.sampled_from("abc"))
        return Block(Let(name, inner()), inner((name,)), draw(st.booleans()))
    if kind == 4:
        parameters = tuple(draw(st.lists(st.sampled_from("abcd"), max_size=3)))
        name = f"{draw(st.sampled_from('fg'))}{len(parameters)}"
        function = Func(name, parameters, inner(parameters))
        return Block(function, inner((), ((name, len(parameters)),)))
    if kind == 5:
        return If(Call(0, (inner(), inner())), inner(), inner())
    if kind == 6:
        return GetField(Call("Pair", (inner(), inner())), draw(st.sampled_from("ab")))
    calls = LIBRARY_CALLS if kind > 7 or not functions else list(functions)
    called, count = draw(st.sampled_from(calls))
    return Call(called, tuple(inner() for _ in range(count)))


def _both(
    expression: Expression, new: bool, limit: int
) -> tuple[tuple[Value, int] | None, tuple[Value, int] | None]:
    """What the exact and the fast evaluator make of it, ``None`` for no plain success."""
    outcomes: list[tuple[Value, int] | None] = []
    for fast in (False, True):
        context = CallContext(StaticEnvironment(), 6, Switches(new_complexity=new), limit)
        try:
            if fast:
                value = Program(LIBRARY, new, False).expression(expression).run(context)
                outcomes.append((value, context.remaining))
            else:
                outcomes.append(Machine(LIBRARY, context, limit).run(expression))
        except EvaluationError:
            outcomes.append(None)
    return outcomes[0], outcomes[1]


@settings(max_examples=examples(150))
@given(programs(), st.booleans())
def test_with_complexity_to_spare_both_succeed_alike(expression: Expression, new: bool) -> None:
    exact, fast = _both(expression, new, PLENTY)
    if exact is None:
        assert fast is None
    else:
        assert fast is not None
        assert equal(exact[0], fast[0])
        assert exact[1] == fast[1]


@settings(max_examples=examples(150))
@given(programs(), st.booleans(), st.integers(1, 30))
def test_near_the_limit_the_fast_one_is_right_or_silent(
    expression: Expression, new: bool, limit: int
) -> None:
    exact, fast = _both(expression, new, limit)
    if fast is not None:
        assert exact is not None
        assert equal(exact[0], fast[0])
        assert exact[1] == fast[1]


@given(programs(depth=4), st.booleans())
def test_the_limit_that_was_spent_and_one_more_suffices(expression: Expression, new: bool) -> None:
    exact, _ = _both(expression, new, PLENTY)
    if exact is not None:
        spent = PLENTY - exact[1]
        again, fast = _both(expression, new, spent + 1 + 20)
        assert again is not None
        assert again[1] == 21
        assert fast is not None


def test_depth_is_refused_before_python_would_mind() -> None:
    deep: Expression = LongConst(1)
    for _ in range(MAX_DEPTH):
        deep = GetField(deep, "a")
    # The recursion of compilation itself is bounded by the same number.
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(20_000)
    try:
        with pytest.raises(TooDeep):
            Program(LIBRARY, True, False).expression(deep)
    finally:
        sys.setrecursionlimit(before)
