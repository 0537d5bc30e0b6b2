"""Random trees: the estimators agree with their plain, literal form."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from soliton.ride.estimators import first, machine, second, third
from soliton.ride.estimators.machine import EstimationError
from soliton.ride.expressions import (
    TRUE,
    Block,
    Call,
    Expression,
    Func,
    GetField,
    If,
    Let,
    ListConst,
    LongConst,
    Ref,
)
from tests.amounts import examples
from tests.ride.estimators import plain

COSTS: dict[int | str, int] = {100: 1, 101: 7, "Unit": 0, "value": 3}
NAMES = frozenset({"height", "a", "c"})
PRELUDE = (
    Let("b", Call(101, (Ref("a"),))),
    Func("f", ("x",), Call(100, (Ref("x"), Ref("b")))),
    Let("x", Call("f", (Ref("c"),))),
    Func("g", (), Ref("x")),
    Func("h", ("a",), If(Ref("a"), Call("g", ()), Ref("b"))),
)
LARGE: dict[int | str, int] = {100: 2**62, 101: 1, "Unit": 0, "value": 2**61}

_names = st.sampled_from("abcx")
_functions = st.sampled_from(["f", "g", "h"])
_leaves = st.one_of(
    st.just(TRUE),
    st.just(LongConst(1)),
    st.just(ListConst(())),
    st.builds(Ref, _names),
    st.builds(Ref, _names),
    st.just(Ref("height")),
    st.builds(Call, _functions, st.just(())),
    st.just(Call("Unit", ())),
)


def _inner(inner: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
    functions = st.builds(
        Func, _functions, st.lists(_names, max_size=2, unique=True).map(tuple), inner
    )
    lets = st.builds(Let, _names, inner)
    called = st.one_of(st.sampled_from([100, 101, "value"]), _functions, _functions)
    return st.one_of(
        st.builds(Block, lets, inner),
        st.builds(Block, lets, inner),
        st.builds(Block, functions, inner),
        st.builds(Block, functions, inner),
        st.builds(If, inner, inner, inner),
        st.builds(GetField, inner, st.just("field")),
        st.builds(Call, called, st.lists(inner, max_size=2).map(tuple)),
    )


bare_trees = st.recursive(_leaves, _inner, max_leaves=40)


def _after_prelude(tree: Expression) -> Expression:
    for declaration in reversed(PRELUDE):
        tree = Block(declaration, tree)
    return tree


trees = st.one_of(bare_trees, bare_trees.map(_after_prelude))
"""Half of them have some declarations before them: few of the bare ones can be estimated."""


@pytest.fixture(autouse=True, scope="module")
def small_limits() -> Iterator[None]:
    """Random trees are small; those that mention themselves shall be given up soon."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(machine, "MAX_DEPTH", 3_000)
        patch.setattr(first, "MAX_STEPS_BEFORE", 300_000)
        patch.setattr(second, "MAX_STEPS_BEFORE", 300_000)
        patch.setattr(third, "MAX_STEPS", 300_000)
        yield


_REFUSED_INSIDE_A_FUNCTION = Block(Func("f", ("b",), Call("f", ())), TRUE)


def _outcome(estimate: Callable[[], int], refusal: type[Exception]) -> int | None:
    try:
        return estimate()
    except (refusal, RecursionError):
        return None


@settings(max_examples=examples(250), deadline=None)
@given(trees)
def test_first(tree: Expression) -> None:
    assert _outcome(lambda: first.estimate(COSTS, NAMES, tree), EstimationError) == _outcome(
        lambda: plain.first(COSTS, NAMES, tree), plain.Refused
    )


@settings(max_examples=examples(250), deadline=None)
@given(trees)
def test_second(tree: Expression) -> None:
    assert _outcome(lambda: second.estimate(COSTS, NAMES, tree), EstimationError) == _outcome(
        lambda: plain.Second(COSTS).estimate(NAMES, tree), plain.Refused
    )


@pytest.mark.parametrize("costs", [COSTS, LARGE])
@pytest.mark.parametrize("let_fixes", [False, True])
@pytest.mark.parametrize("overhead", [False, True])
@pytest.mark.parametrize("fix_overflow", [False, True])
@settings(max_examples=examples(60), deadline=None)
@given(tree=trees)
def test_third(
    fix_overflow: bool,
    overhead: bool,
    let_fixes: bool,
    costs: dict[int | str, int],
    tree: Expression,
) -> None:
    edition = third.Edition(fix_overflow, overhead, let_fixes)
    again = plain.Third(costs, fix_overflow, int(overhead), let_fixes)
    assert _outcome(
        lambda: third.Estimation(edition, costs).cost(tree), EstimationError
    ) == _outcome(lambda: again.estimate(tree), plain.Refused)


@pytest.mark.parametrize("let_fixes", [False, True])
@settings(max_examples=examples(100), deadline=None)
@given(
    st.lists(
        st.one_of(
            st.builds(Let, _names, trees),
            st.builds(Func, _functions, st.lists(_names, max_size=2).map(tuple), trees),
        ),
        max_size=5,
    ).map(tuple),
    st.lists(trees, min_size=1, max_size=3),
)
@example((), [_REFUSED_INSIDE_A_FUNCTION, _after_prelude(Call("f", ()))])
def test_shared_declarations_are_as_if_each_expression_had_its_own(
    let_fixes: bool, declarations: tuple[Let | Func, ...], expressions: list[Expression]
) -> None:
    edition = third.Edition(False, False, let_fixes)
    together: third.Declared | None
    try:
        together = third.Estimation(edition, COSTS).after(declarations)
    except EstimationError:
        together = None
    for expression in expressions:
        whole = expression
        for declaration in reversed(declarations):
            whole = Block(declaration, whole)
        alone = _outcome(partial(third.Estimation(edition, COSTS).cost, whole), EstimationError)
        shared = together and _outcome(partial(together.cost, expression), EstimationError)
        assert shared == alone
