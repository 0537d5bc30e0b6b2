"""Which estimator holds when, and the limits."""

from __future__ import annotations

import pytest

from soliton.chain.features import Feature
from soliton.chain.networks.model import Functionality
from soliton.ride.estimators import CodeKind, EstimationError, choice
from soliton.ride.estimators.choice import (
    Complexities,
    EstimationRules,
    ScriptTooComplex,
    check_limits,
    estimate_for_account,
    estimate_for_asset,
)
from soliton.ride.estimators.scripts import Estimate, Estimator
from soliton.ride.estimators.third import Edition
from soliton.ride.expressions import (
    TRUE,
    AnnotatedFunction,
    Block,
    Call,
    DApp,
    Expression,
    Func,
    Let,
    Ref,
)
from soliton.ride.script import Script
from tests.ride.estimators import estimate

SETTINGS = Functionality(
    feature_check_blocks_period=10,
    blocks_for_feature_activation=5,
    double_features_periods_after_height=1000,
    estimator_pre_check_height=20,
    estimation_overflow_fix_height=40,
    estimator_sum_overflow_fix_height=50,
)
V2 = {Feature.BLOCK_REWARD}
V3 = {*V2, Feature.BLOCK_V5}
V4 = {*V3, Feature.RIDE_V6}
V5 = {*V4, Feature.LIGHT_NODE}


def at(height: int, features: set[Feature]) -> EstimationRules:
    approved = Feature.BLOCK_V5 in features
    return choice.rules_at(height, features, SETTINGS, block_v5_approved=approved)


def _third(fix_overflow: bool, overhead: bool, let_fixes: bool) -> Estimator:
    return Estimator(3, Edition(fix_overflow, overhead, let_fixes))


@pytest.mark.parametrize(
    ("height", "features", "current", "later", "first_as_well"),
    [
        (10, set(), Estimator(1), (Estimator(2), _third(False, False, True)), False),
        (10, V2, Estimator(2), (_third(False, False, True),), False),
        (20, V2, Estimator(2), (_third(False, False, True),), False),
        (21, V2, Estimator(2), (_third(False, False, True),), True),
        (40, V2, Estimator(2), (_third(True, False, True),), True),
        (40, V3, _third(False, True, False), (), False),
        (50, V3, _third(True, True, False), (), False),
        (50, V4, _third(True, False, False), (), False),
        (50, V5, _third(True, False, True), (), False),
    ],
)
def test_estimators_of_heights(
    height: int,
    features: set[Feature],
    current: Estimator,
    later: tuple[Estimator, ...],
    first_as_well: bool,
) -> None:
    rules = at(height, features)
    assert rules.current == current
    assert rules.later == later
    assert rules.first_as_well == first_as_well
    assert rules.reduced_verifier_limit == (Feature.BLOCK_V5 in features)
    assert rules.old_verifier == (Feature.RIDE_V6 not in features)


def _costing(cost: int) -> Expression:
    """Calls of the function for checking signatures, 100 each."""
    assert cost % 100 == 0
    expression: Expression = TRUE
    for _ in range(cost // 100):
        expression = Call(500, (expression, TRUE, TRUE))
    return expression


def _dapp(callable_cost: int, verifier_cost: int | None, version: int = 3) -> Script:
    verifier = None
    if verifier_cost is not None:
        verifier = AnnotatedFunction("tx", Func("verify", (), _costing(verifier_cost)))
    call = AnnotatedFunction("i", Func("call", (), _costing(callable_cost)))
    return Script(version, DApp(b"", (), (call,), verifier), b"")


LATEST = at(100, V5)


def test_numbers_that_the_chain_keeps() -> None:
    assert estimate_for_account(_dapp(300, 200), LATEST) == Complexities(200, {3: {"call": 300}})
    assert estimate_for_account(_dapp(300, None), LATEST) == Complexities(0, {3: {"call": 300}})
    assert estimate_for_account(Script(3, _costing(100), b""), LATEST) == Complexities(100, {})
    assert estimate_for_asset(Script(3, _costing(100), b""), LATEST) == 100


def test_functions_are_estimated_in_advance() -> None:
    kept = estimate_for_account(_dapp(300, 200), at(10, set())).callables
    assert set(kept) == {1, 2, 3}
    assert kept[3] == {"call": 300}
    assert kept[1]["call"] == kept[2]["call"] > 300
    before_third = estimate_for_account(_dapp(300, 200), at(30, V2))
    assert set(before_third.callables) == {2, 3}


def _by_two_calls(cost: int) -> Expression:
    """The second estimator counts the value that a function takes at the first call only."""
    call = Call("f", ())
    body = Func("f", (), Ref("x"))
    return Block(Let("x", _costing(cost)), Block(body, Call(100, (call, call))))


def test_verifiers_have_to_pass_both_of_the_first_two() -> None:
    calls = Script(3, _by_two_calls(3_000), b"")
    assert estimate(calls, 2).max < 4_000 < estimate(calls, 1).max
    assert estimate_for_asset(calls, at(20, V2)) == estimate(calls, 2).max
    with pytest.raises(ScriptTooComplex):
        estimate_for_asset(calls, at(30, V2))


@pytest.mark.parametrize(
    ("version", "asset", "expression_limit"),
    [(1, True, 2_000), (2, True, 2_000), (3, True, 4_000), (6, True, 4_000), (6, False, 2_000)],
)
def test_limits_of_expressions(version: int, asset: bool, expression_limit: int) -> None:
    script = Script(version, TRUE, b"")
    check_limits(script, Estimate(expression_limit, expression_limit, {}), not asset)
    with pytest.raises(
        ScriptTooComplex,
        match=f"Script is too complex: {expression_limit + 1} > {expression_limit}",
    ):
        check_limits(script, Estimate(expression_limit + 1, 0, {}), not asset)
    check_limits(script, Estimate(4_000, 0, {}), True, CodeKind.FREE_CALL)


@pytest.mark.parametrize(("version", "limit"), [(3, 4_000), (4, 4_000), (5, 10_000), (6, 52_000)])
def test_limits_of_dapps(version: int, limit: int) -> None:
    script = _dapp(100, 100, version)
    check_limits(script, Estimate(limit, 2_000, {}, "call"), True)
    with pytest.raises(ScriptTooComplex, match=r"Contract function \(call\) is too complex"):
        check_limits(script, Estimate(limit + 1, 2_000, {}, "call"), True)
    with pytest.raises(ScriptTooComplex, match="Contract verifier is too complex: 2001 > 2000"):
        check_limits(script, Estimate(2_001, 2_001, {}, "verify"), True)
    check_limits(script, Estimate(2_001, 2_001, {}, "verify"), False)


def test_limits_hold_for_what_accounts_set() -> None:
    with pytest.raises(ScriptTooComplex, match=r"\(call\) is too complex: 4100 > 4000"):
        estimate_for_account(_dapp(4_100, 100), LATEST)
    with pytest.raises(ScriptTooComplex, match="verifier is too complex: 2100 > 2000"):
        estimate_for_account(_dapp(4_000, 2_100), LATEST)
    with pytest.raises(ScriptTooComplex):
        estimate_for_account(Script(3, _costing(2_100), b""), LATEST)
    assert estimate_for_asset(Script(3, _costing(2_100), b""), LATEST) == 2_100
    without = EstimationRules(reduced_verifier_limit=False)
    assert estimate_for_account(Script(3, _costing(2_100), b""), without).verifier == 2_100


def test_errors_are_of_one_kind() -> None:
    with pytest.raises(EstimationError):
        estimate_for_account(Script(3, Call("unknown", ()), b""), LATEST)
