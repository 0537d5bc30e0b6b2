"""The first estimator: until the block-reward feature.

What lives here: the costs of expressions by its rules. What does not: the expressions of a script
(``scripts``), and the heights at which the rules apply (``choice``).

Every node has a cost. A named value is counted at its first use, so an estimation keeps track of
the names whose value has been counted. These marks carry over from argument to argument; after a
choice, those of the costlier branch remain. A value is estimated with the names in scope at its
use, not at its declaration, and names leak out of blocks. The body of a function is counted once,
at its declaration.

Source: wavesplatform/Waves
``lang/shared/src/main/scala/com/wavesplatform/lang/v1/estimator/ScriptEstimatorV1.scala``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from typing import Final

from soliton.chain.values import wrapped
from soliton.ride.estimators.machine import (
    MAX_STEPS_BEFORE,
    EstimationError,
    Journal,
    Steps,
    Walk,
    header,
)
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
    ObjectConst,
    Ref,
)

_REFERENCE: Final = 2
_FIELD: Final = 2
_CHOICE: Final = 1
_CONSTANT: Final = 1
_BLOCK: Final = 5
_ARGUMENT: Final = 5


def estimate(
    costs: Mapping[int | str, int],
    names: AbstractSet[str],
    expression: Expression,
    watch: Callable[[], None] | None = None,
) -> int:
    """Return the complexity of an expression, given the costs of the library's functions and the
    names of its values; raise ``EstimationError`` if it cannot be estimated.
    """
    walk = Walk(_First(costs, names).open, MAX_STEPS_BEFORE, watch)
    return wrapped(walk.cost(expression))


class _First:
    """An estimation. ``_symbols`` has each name's value and whether it was counted, ``_functions``
    the costs of the script's functions.
    """

    __slots__ = ("_costs", "_functions", "_journal", "_symbols")

    def __init__(self, costs: Mapping[int | str, int], names: AbstractSet[str]) -> None:
        self._costs = costs
        self._symbols: dict[str, tuple[Expression, bool]] = dict.fromkeys(names, (TRUE, True))
        self._functions: dict[str, int] = {}
        self._journal = Journal()

    def open(self, node: Expression) -> int | Steps:
        """Return the cost of a node, or the steps that calculate it."""
        kind = type(node)
        if kind is Ref:
            return self._reference(node.name)  # type: ignore[union-attr]
        if kind is Call:
            return self._call(node)  # type: ignore[arg-type]
        if kind is GetField:
            return _field(node.expression)  # type: ignore[union-attr]
        if kind is Block:
            return self._block(node)
        if kind is If:
            return self._choice(node)  # type: ignore[arg-type]
        if kind is ListConst or kind is ObjectConst:
            raise EstimationError("Lists cannot be estimated by the first estimator")
        return _CONSTANT

    def _reference(self, name: str) -> int | Steps:
        symbol = self._symbols.get(name)
        if symbol is None:
            raise EstimationError(f"ScriptValidator: Undeclared variable '{name}'")
        value, counted = symbol
        return _REFERENCE if counted else self._first_use(name, value)

    def _first_use(self, name: str, value: Expression) -> Steps:
        self._journal.put(self._symbols, name, (value, True))
        return (yield value) + _REFERENCE

    def _call(self, node: Call) -> Steps:
        function = node.function
        cost = self._costs.get(function)
        if cost is None and isinstance(function, str):
            cost = self._functions.get(function)
        if cost is None:
            raise EstimationError(f"ScriptValidator: Unknown function '{header(function)}'")
        for argument in node.arguments:
            cost += yield argument
        return cost

    def _choice(self, node: If) -> Steps:
        journal = self._journal
        condition = yield node.condition
        mark = journal.mark()
        then = wrapped((yield node.then))
        changes = journal.cut(mark)
        otherwise = wrapped((yield node.otherwise))
        if then > otherwise:
            journal.undo(mark)
            journal.redo(changes)
        return condition + max(then, otherwise) + _CHOICE

    def _block(self, node: Expression) -> Steps:
        cost = 0
        outer: list[tuple[str, int | None]] = []
        while isinstance(node, Block):
            declaration = node.declaration
            if isinstance(declaration, Let):
                self._journal.put(self._symbols, declaration.name, (declaration.value, False))
            else:
                total = yield from self._body(declaration)
                outer.append((declaration.name, self._functions.get(declaration.name)))
                self._functions[declaration.name] = total
            cost += _BLOCK
            node = node.body
        cost += yield node
        for name, former in reversed(outer):
            if former is None:
                del self._functions[name]
            else:
                self._functions[name] = former
        return cost

    def _body(self, function: Func) -> Steps:
        journal = self._journal
        mark = journal.mark()
        for name in function.parameters:
            journal.put(self._symbols, name, (TRUE, False))
        cost = yield function.body
        journal.undo(mark)
        return wrapped(cost + _ARGUMENT * len(function.parameters))


def _field(inner: Expression) -> Steps:
    return (yield inner) + _FIELD
