"""Which estimator holds on the chain, and how complex scripts may be.

What lives here: the rules of estimation at a height, the estimation of scripts that transactions
set, by these rules, and the limits. What does not: estimators, and how the ledger keeps their
numbers.

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
from soliton.ride.estimators.library import Place
from soliton.ride.estimators.machine import EstimationError
from soliton.ride.estimators.scripts import (
    DAppEstimation,
    Estimate,
    Estimator,
    estimate_by,
)
from soliton.ride.estimators.third import Edition
from soliton.ride.expressions import DApp
from soliton.ride.script import Script

MAX_VERIFIER_COMPLEXITY: Final = 2_000
"""For verifiers of accounts since the feature of blocks of version 5."""
_MAX_EXPRESSION: Final = {1: 2_000, 2: 2_000}
_MAX_EXPRESSION_LATER: Final = 4_000
_MAX_CALLABLE: Final = {1: 4_000, 2: 4_000, 3: 4_000, 4: 4_000, 5: 10_000}
_MAX_CALLABLE_LATER: Final = 52_000

_FIRST: Final = Estimator(1)
_SECOND: Final = Estimator(2)


class ScriptTooComplex(EstimationError):
    """A script beyond the limits."""


class EstimationRules(msgspec.Struct, frozen=True):
    """How scripts are estimated at a height.

    ``first_as_well`` says that verifiers have to pass the first estimator besides the current one,
    ``reduced_verifier_limit`` that verifiers of accounts have the limit of their own,
    ``old_verifier`` that verifiers of dApps must not even declare functions that call dApps.
    """

    current: Estimator = Estimator(3)
    later: tuple[Estimator, ...] = ()
    """Estimators of later times: callable functions are estimated by these in advance."""
    first_as_well: bool = False
    reduced_verifier_limit: bool = True
    old_verifier: bool = False


class Complexities(msgspec.Struct, frozen=True):
    """What the chain keeps of an estimation: the complexity of the verifier (0 without one), and
    those of the callable functions of a dApp by number of the estimator.
    """

    verifier: int
    callables: dict[int, dict[str, int]] = {}


def rules_at(
    height: int,
    features: AbstractSet[int],
    settings: Functionality,
    *,
    block_v5_approved: bool | None = None,
) -> EstimationRules:
    """The rules for the block at a height where these features are active.

    The limit for verifiers came as soon as the feature of blocks of version 5 was approved, which
    ``block_v5_approved`` tells when it is known.
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
        reduced_verifier_limit=block_v5 if block_v5_approved is None else block_v5_approved,
        old_verifier=not ride_v6,
    )


def estimate_for_account(
    script: Script, rules: EstimationRules, watch: Callable[[], None] | None = None
) -> Complexities:
    """Estimate the script that an account wants to set; raises ``EstimationError``.

    ``watch`` is called now and then, and raises to stop it.
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
    """Estimate the script that an asset is to have, as above; raises ``EstimationError``."""
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
            numbers = estimate_by(estimator, script, watch=watch)
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
    """The functions of a dApp, each estimated no more than once."""
    assert isinstance(script.content, DApp), "only dApps have functions"
    if estimator not in known:
        known[estimator] = DAppEstimation(
            estimator, script.version, script.content, rules.old_verifier, watch
        )
    return known[estimator]


def check_limits(
    script: Script,
    numbers: Estimate,
    reduced_verifier_limit: bool,
    place: Place = Place.EXPRESSION,
) -> None:
    """Refuse numbers beyond the limits of the script's version; raises ``ScriptTooComplex``."""
    limit = _MAX_CALLABLE.get(script.version, _MAX_CALLABLE_LATER)
    if isinstance(script.content, DApp):
        if reduced_verifier_limit and numbers.verifier > MAX_VERIFIER_COMPLEXITY:
            raise ScriptTooComplex(
                f"Contract verifier is too complex: {numbers.verifier} > {MAX_VERIFIER_COMPLEXITY}"
            )
        if numbers.max > limit:
            raise ScriptTooComplex(
                f"Contract function ({numbers.dearest}) is too complex: {numbers.max} > {limit}"
            )
        return
    if place is not Place.FREE_CALL:
        limit = (
            MAX_VERIFIER_COMPLEXITY
            if reduced_verifier_limit
            else _MAX_EXPRESSION.get(script.version, _MAX_EXPRESSION_LATER)
        )
    if numbers.max > limit:
        raise ScriptTooComplex(f"Script is too complex: {numbers.max} > {limit}")
