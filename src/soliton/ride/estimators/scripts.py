"""Estimation of scripts: the expressions of a script that are estimated, and the results.

What lives here: ``estimate``, and its parts that the rules of the chain use separately. What does
not: the estimators (``first``, ``second``, ``third``), the choice between them and the limits
(``choice``).

Each callable function of a dApp, and its verifier, is estimated as a separate expression: all
declarations, the parameter of its annotation, the function, and a call of it.

Sources: wavesplatform/Waves
``lang/shared/src/main/scala/com/wavesplatform/lang/script/{Script,ContractScript}.scala``,
``script/v1/ExprScript.scala`` and ``contract/DApp.scala``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Final, cast

import msgspec

from soliton.ride.errors import RideError
from soliton.ride.estimators import first, second, third
from soliton.ride.estimators.library import CodeKind, costs, names
from soliton.ride.estimators.machine import EstimationError
from soliton.ride.expressions import (
    TRUE,
    AnnotatedFunction,
    Block,
    Call,
    DApp,
    Expression,
    GetField,
    If,
    Let,
    Ref,
    declared_expression,
)
from soliton.ride.functions.catalogue import CALLS_OF_DAPPS
from soliton.ride.hash_order import hash_map_order
from soliton.ride.script import Script

VERSIONS: Final = (1, 2, 3, 4)
"""The estimators; 4 is the third one without overhead."""
_FREE_CALL_INVOCATION: Final = "i"
_FIRST_WITH_FREE_CALLS: Final = 6


class Estimator(msgspec.Struct, frozen=True):
    """An estimator: its number on the chain (1 to 3), and the edition of the third one."""

    number: int
    edition: third.Edition = third.Edition()


class Estimate(msgspec.Struct, frozen=True):
    """The maximal complexity of a script, of its verifier (0 without one), and of each callable
    function of a dApp; ``costliest`` is the function with the maximum.
    """

    max: int
    verifier: int
    callables: dict[str, int]
    costliest: str = ""


class FullEstimate(msgspec.Struct, frozen=True):
    """The complexities of a dApp's parts: annotated functions including the verifier, values, and
    other functions; ``costliest`` is the function with the maximum.
    """

    annotated: dict[str, int]
    values: dict[str, int]
    functions: dict[str, int]
    costliest: str = ""


def estimate_fully(
    estimator: Estimator, version: int, dapp: DApp, watch: Callable[[], None] | None = None
) -> FullEstimate:
    """Estimate all declarations of a dApp as compilers do, with the third estimator in one pass.

    The results differ from the chain's where a verifier calls dApps, names repeat, or several
    values refer to the same one. ``watch`` may raise to cancel. Raises ``EstimationError``.
    """
    annotated = [each.function for each in dapp.callables]
    if dapp.verifier is not None:
        annotated.append(dapp.verifier.function)
    if estimator.number < 3:
        return _estimate_fully_by_names(estimator, version, dapp, watch)
    estimation = third.Estimation(estimator.edition, costs(version, CodeKind.DAPP), watch)
    values, functions = estimation.each((*dapp.declarations, *annotated))
    plain = {each.name for each in dapp.declarations}
    by_name = {name: cost for name, cost in functions.items() if name not in plain}
    order = hash_map_order(list(functions))
    return FullEstimate(
        by_name,
        values,
        {name: cost for name, cost in functions.items() if name in plain},
        _costliest([(name, by_name[name]) for name in order if name in by_name]),
    )


def _estimate_fully_by_names(
    estimator: Estimator, version: int, dapp: DApp, watch: Callable[[], None] | None
) -> FullEstimate:
    estimation = DAppEstimation(estimator, version, dapp, watch=watch)
    numbers = estimation.all()
    annotated = dict(numbers.callables)
    if dapp.verifier is not None:
        annotated[dapp.verifier.function.name] = numbers.verifier
    values: dict[str, int] = {}
    functions: dict[str, int] = {}
    for each in dapp.declarations:
        if isinstance(each, Let):
            values[each.name] = estimation.inside(Ref(each.name))
        else:
            call = Call(each.name, (TRUE,) * len(each.parameters))
            functions[each.name] = estimation.inside(call)
    return FullEstimate(annotated, values, functions, numbers.costliest)


def _costliest(numbers: list[tuple[str, int]]) -> str:
    """Return the last name with the largest number."""
    most = max((number for _, number in numbers), default=0)
    return next((name for name, number in reversed(numbers) if number == most), "")


def estimate_compiled(
    estimator: Estimator,
    script: Script,
    kind: CodeKind = CodeKind.EXPRESSION,
    watch: Callable[[], None] | None = None,
) -> tuple[Estimate, FullEstimate | None]:
    """Estimate a script as compilers do; the second result is for dApps only.

    ``kind`` and ``watch`` are as in ``estimate``. Raises ``EstimationError``.
    """
    content = script.content
    if not isinstance(content, DApp):
        return estimate(estimator, script, kind=kind, watch=watch), None
    full = estimate_fully(estimator, script.version, content, watch)
    callables = dict(full.annotated)
    verifier = 0
    if content.verifier is not None:
        verifier = callables.pop(content.verifier.function.name, 0)
    most = max(full.annotated.values(), default=0)
    return Estimate(most, verifier, callables, full.costliest), full


def estimator(version: int, *, fix_overflow: bool = True, let_fixes: bool = False) -> Estimator:
    """Return the estimator of one of ``VERSIONS``."""
    if version not in VERSIONS:
        raise RideError(f"There is no estimator {version}")
    return Estimator(min(version, 3), third.Edition(fix_overflow, version == 3, let_fixes))


def estimate(
    estimator: Estimator,
    script: Script,
    *,
    old_verifier: bool = False,
    kind: CodeKind = CodeKind.EXPRESSION,
    watch: Callable[[], None] | None = None,
) -> Estimate:
    """Estimate a script, without limits; ``watch`` may raise to cancel.

    ``old_verifier`` selects the rules before version 6 of the language for the verifier of a dApp.
    ``kind`` is that of an expression. Raises ``EstimationError``.
    """
    content = script.content
    if not isinstance(content, DApp):
        total = expression_cost(estimator, script.version, content, kind, watch)
        return Estimate(total, 0 if kind is CodeKind.FREE_CALL else total, {})
    return DAppEstimation(estimator, script.version, content, old_verifier, watch).all()


def expression_cost(
    estimator: Estimator,
    version: int,
    expression: Expression,
    kind: CodeKind,
    watch: Callable[[], None] | None = None,
) -> int:
    """Return the complexity of a script that is an expression; raise ``EstimationError`` if it
    cannot be estimated.
    """
    if version >= _FIRST_WITH_FREE_CALLS:
        expression = Block(Let(_FREE_CALL_INVOCATION, TRUE), expression)
    if estimator.number < 3:
        return _by_names(estimator, version, kind, expression, watch)
    return third.Estimation(estimator.edition, costs(version, kind), watch).cost(expression)


class DAppEstimation:
    """The estimation of a dApp by an estimator. All methods raise ``EstimationError``."""

    def __init__(
        self,
        estimator: Estimator,
        version: int,
        dapp: DApp,
        old_verifier: bool = False,
        watch: Callable[[], None] | None = None,
    ) -> None:
        self._watch = watch
        self._estimator = estimator
        self._version = version
        self._dapp = dapp
        self._verifier_kind = CodeKind.DAPP_VERIFIER if old_verifier else CodeKind.DAPP
        self._declared: dict[CodeKind, third.Declared] = {}
        self._callables: list[tuple[str, int]] | None = None

    def callables(self) -> list[tuple[str, int]]:
        """Return the callable functions with their complexities."""
        if self._callables is None:
            self._callables = [
                (function.function.name, self._cost(function, CodeKind.DAPP))
                for function in self._dapp.callables
            ]
        return self._callables

    def verifier(self) -> int | None:
        """Return the complexity of the verifier, or ``None`` without one."""
        verifier = self._dapp.verifier
        if verifier is None:
            return None
        if _may_call_dapps(self._dapp, verifier.function.body):
            raise EstimationError(third.CALL_FROM_VERIFIER)
        return self._cost(verifier, self._verifier_kind)

    def all(self, with_verifier: bool = True) -> Estimate:
        """Return all complexities."""
        callables = self.callables()
        verifier = self.verifier() if with_verifier else None
        numbers = list(callables)
        by_name = dict(callables)
        if verifier is not None and self._dapp.verifier is not None:
            name = self._dapp.verifier.function.name
            numbers.insert(0, (name, verifier))
            # The reference stores complexities by name, so a callable function of the verifier's
            # name replaces it.
            verifier = by_name.get(name, verifier)
        most = max((number for _, number in numbers), default=0)
        return Estimate(most, verifier or 0, by_name, _costliest(numbers))

    def _cost(self, function: AnnotatedFunction, kind: CodeKind) -> int:
        called = function.function
        expression: Expression = Block(
            Let(function.invocation, TRUE),
            Block(called, Call(called.name, (TRUE,) * len(called.parameters))),
        )
        return self.inside(expression, kind)

    def inside(self, expression: Expression, kind: CodeKind = CodeKind.DAPP) -> int:
        """Return the complexity of an expression in the scope of all declarations."""
        declarations = self._dapp.declarations
        if self._estimator.number < 3:
            for declaration in reversed(declarations):
                expression = Block(declaration, expression)
            return _by_names(self._estimator, self._version, kind, expression, self._watch)
        declared = self._declared.get(kind)
        if declared is None:
            estimation = third.Estimation(
                self._estimator.edition, costs(self._version, kind), self._watch
            )
            declared = self._declared[kind] = estimation.after(declarations)
        return declared.cost(expression)


def _by_names(
    estimator: Estimator,
    version: int,
    kind: CodeKind,
    expression: Expression,
    watch: Callable[[], None] | None,
) -> int:
    """Estimate with one of the first two estimators, which need the names of all values."""
    table = costs(version, kind)
    if None in table.values():
        raise EstimationError(third.CALL_FROM_VERIFIER)
    known = cast(Mapping[int | str, int], table)
    rules = first.estimate if estimator.number == 1 else second.estimate
    return rules(known, names(version, kind), expression, watch)


def _may_call_dapps(dapp: DApp, body: Expression) -> bool:
    """Whether code refers to a function that calls dApps, directly or through declarations."""
    declared: dict[str, list[Expression]] = {}
    for declaration in dapp.declarations:
        declared.setdefault(declaration.name, []).append(declared_expression(declaration))
    bodies = [body]
    while bodies:
        mentioned = _mentions(bodies.pop())
        if mentioned is None:
            return True
        for name in mentioned:
            bodies += declared.pop(name, ())
    return False


def _mentions(body: Expression) -> set[str] | None:
    """Return the free names of an expression, or ``None`` if it calls a dApp itself.

    As in the reference, parameters of functions count as free.
    """
    mentioned: set[str] = set()
    inner: Counter[str] = Counter()
    stack: list[Expression | str] = [body]
    while stack:
        match stack.pop():
            case str(name):
                inner[name] -= 1
            case Call(function, arguments):
                if function in CALLS_OF_DAPPS:
                    return None
                if not inner[str(function)]:
                    mentioned.add(str(function))
                stack += arguments
            case Ref(name):
                if not inner[name]:
                    mentioned.add(name)
            case GetField(expression):
                stack.append(expression)
            case If(condition, then, otherwise):
                stack += (condition, then, otherwise)
            case Block(declaration, rest):
                name = declaration.name
                # The value is outside the scope of the name, so it is visited last.
                stack += (declared_expression(declaration), name, rest)
                inner[name] += 1
            case _:
                pass
    return mentioned
