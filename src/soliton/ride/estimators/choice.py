"""The chain's rules of estimation: the estimator at each height, and the limits of complexity.

What lives here: these rules, and the estimation of scripts that transactions set. What does not:
the estimators, and storage of their results (the ledger).

Sources: wavesplatform/Waves
``node/src/main/scala/com/wavesplatform/features/EstimatorProvider.scala``,
``features/ComplexityCheckPolicyProvider.scala``,
``state/diffs/{DiffsCommon,SetScriptTransactionDiff}.scala`` and
``lang/shared/src/main/scala/com/wavesplatform/lang/v1/ContractLimits.scala``.
"""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Set as AbstractSet
from typing import Final

import msgspec

from soliton.chain.features import Feature
from soliton.chain.networks.model import Functionality
from soliton.ride.estimators.library import CodeKind
from soliton.ride.estimators.machine import EstimationError
from soliton.ride.estimators.scripts import (
    DAppEstimation,
    Estimate,
    Estimator,
    estimate,
)
from soliton.ride.estimators.third import Edition
from soliton.ride.expressions import DApp
from soliton.ride.script import Script

MAX_VERIFIER_COMPLEXITY: Final = 2_000
"""The limit for verifiers of accounts since feature 15 (blocks of version 5)."""
_MAX_EXPRESSION: Final = {1: 2_000, 2: 2_000}
_MAX_EXPRESSION_LATER: Final = 4_000
_MAX_CALLABLE: Final = {1: 4_000, 2: 4_000, 3: 4_000, 4: 4_000, 5: 10_000}
_MAX_CALLABLE_LATER: Final = 52_000

_FIRST: Final = Estimator(1)
_SECOND: Final = Estimator(2)


class ScriptTooComplex(EstimationError):
    """The script exceeds a limit."""


class EstimationRules(msgspec.Struct, frozen=True):
    """The rules of estimation at a height.

    ``first_as_well``: verifiers must also pass the first estimator. ``reduced_verifier_limit``:
    verifiers of accounts have a lower limit. ``old_verifier``: verifiers of dApps must not even
    declare functions that call dApps.
    """

    current: Estimator = Estimator(3)
    later: tuple[Estimator, ...] = ()
    """Estimators of later heights, by which callable functions are estimated in advance."""
    first_as_well: bool = False
    reduced_verifier_limit: bool = True
    old_verifier: bool = False


class Complexities(msgspec.Struct, frozen=True):
    """The complexities that the chain stores: that of the verifier (0 without one), and those of
    the callable functions by number of the estimator.
    """

    verifier: int
    callables: dict[int, dict[str, int]] = {}


def rules_at(
    height: int,
    features: AbstractSet[int],
    settings: Functionality,
    *,
    block_v5_approved: bool,
) -> EstimationRules:
    """Return the rules for the block at a height with these active features.

    The lower limit of verifiers applies from the approval of feature 15 on, before its activation.
    """
    block_v5 = Feature.BLOCK_V5 in features
    ride_v6 = Feature.RIDE_V6 in features
    second = Feature.BLOCK_REWARD in features
    estimators = [
        _FIRST,
        _SECOND,
        Estimator(3, Edition(height >= settings.estimation_overflow_fix_height)),
    ]
    if block_v5:
        current = Estimator(
            3,
            Edition(
                fix_overflow=height >= settings.estimator_sum_overflow_fix_height,
                overhead=not ride_v6,
                let_fixes=Feature.LIGHT_NODE in features,
            ),
        )
    else:
        current = _SECOND if second else _FIRST
    return EstimationRules(
        current=current,
        later=tuple(estimators[current.number :]),
        first_as_well=not block_v5 and height > settings.estimator_pre_check_height,
        reduced_verifier_limit=block_v5_approved,
        old_verifier=not ride_v6,
    )


def estimate_for_account(
    script: Script, rules: EstimationRules, watch: Callable[[], None] | None = None
) -> Complexities:
    """Estimate the script that an account sets; raise ``EstimationError`` if it is not allowed.

    ``watch`` is called repeatedly, and may raise to cancel.
    """
    callables: dict[int, dict[str, int]] = {}
    known: dict[Estimator, DAppEstimation] = {}
    if isinstance(script.content, DApp):
        for estimator in (rules.current, *rules.later):
            functions = _functions(estimator, script, rules, known, watch)
            numbers = functions.all(with_verifier=False)
            if estimator is rules.current:
                check_limits(script, numbers, False)
            callables[estimator.number] = numbers.callables
    verifier = _verifier(script, rules, rules.reduced_verifier_limit, known, watch)
    return Complexities(verifier, callables)


def estimate_for_asset(
    script: Script, rules: EstimationRules, watch: Callable[[], None] | None = None
) -> int:
    """Estimate the script of an asset; raise ``EstimationError`` if it is not allowed."""
    return _verifier(script, rules, False, {}, watch)


def _verifier(
    script: Script,
    rules: EstimationRules,
    reduced_limit: bool,
    known: dict[Estimator, DAppEstimation],
    watch: Callable[[], None] | None,
) -> int:
    estimators = (_FIRST, _SECOND) if rules.first_as_well else (rules.current,)
    verifier = 0
    for estimator in estimators:
        if isinstance(script.content, DApp):
            numbers = _functions(estimator, script, rules, known, watch).all()
        else:
            numbers = estimate(estimator, script, watch=watch)
        check_limits(script, numbers, reduced_limit)
        verifier = numbers.verifier
    return verifier


def _functions(
    estimator: Estimator,
    script: Script,
    rules: EstimationRules,
    known: dict[Estimator, DAppEstimation],
    watch: Callable[[], None] | None,
) -> DAppEstimation:
    """Return the estimation of a dApp by an estimator, creating it once."""
    assert isinstance(script.content, DApp), "only dApps have functions"
    if estimator not in known:
        known[estimator] = DAppEstimation(
            estimator, script.version, script.content, rules.old_verifier, watch
        )
    return known[estimator]


def max_callable_complexity(version: int) -> int:
    """Return the limit of callable functions in a version of the language."""
    return _MAX_CALLABLE.get(version, _MAX_CALLABLE_LATER)


def check_limits(
    script: Script,
    numbers: Estimate,
    reduced_verifier_limit: bool,
    kind: CodeKind = CodeKind.EXPRESSION,
) -> None:
    """Raise ``ScriptTooComplex`` if an estimate exceeds the limits of the script's version."""
    limit = max_callable_complexity(script.version)
    if isinstance(script.content, DApp):
        if reduced_verifier_limit and numbers.verifier > MAX_VERIFIER_COMPLEXITY:
            raise ScriptTooComplex(
                f"Contract verifier is too complex: {numbers.verifier} > {MAX_VERIFIER_COMPLEXITY}"
            )
        if numbers.max > limit:
            raise ScriptTooComplex(
                f"Contract function ({numbers.costliest}) is too complex: {numbers.max} > {limit}"
            )
        return
    if kind is not CodeKind.FREE_CALL:
        limit = (
            MAX_VERIFIER_COMPLEXITY
            if reduced_verifier_limit
            else _MAX_EXPRESSION.get(script.version, _MAX_EXPRESSION_LATER)
        )
    if numbers.max > limit:
        raise ScriptTooComplex(f"Script is too complex: {numbers.max} > {limit}")
