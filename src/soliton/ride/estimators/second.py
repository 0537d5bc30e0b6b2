"""The second estimator: from the block-reward feature until the feature of blocks of version 5.

What lives here: the costs of expressions by its rules. What does not: the expressions of a script
(``scripts``), and the heights at which the rules apply (``choice``).

The costs of nodes are those of the first estimator, but the body of a function is estimated again
at each call, with the state at the call. Names whose value was counted stay counted from one branch
of a choice to the other and after it; the end of a block restores the state at its start. Arguments
hide values of the same name. These are set aside, and every value that was ever set aside becomes
visible again in each later call. Complexities on the chain depend on this oddity.

Source: wavesplatform/Waves
``lang/shared/src/main/scala/com/wavesplatform/lang/v1/estimator/v2/ScriptEstimatorV2.scala``.
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
from soliton.ride.expressions import Block, Call, Expression, Func, GetField, If, Let, Ref

_REFERENCE: Final = 2
_FIELD: Final = 2
_CHOICE: Final = 1
_CONSTANT: Final = 1
_BLOCK: Final = 5
_ARGUMENT: Final = 5

_Value = tuple[bool, Expression | int]
"""Whether a value was counted, and its expression or its cost."""
_KNOWN: Final[_Value] = (True, 0)
_PASSED: Final[_Value] = (False, 1)


def estimate(
    costs: Mapping[int | str, int],
    names: AbstractSet[str],
    expression: Expression,
    watch: Callable[[], None] | None = None,
) -> int:
    """Return the complexity of an expression, given the costs of the library's functions and the
    names of its values; raise ``EstimationError`` if it cannot be estimated.
    """
    walk = Walk(_Second(costs, names).open, MAX_STEPS_BEFORE, watch)
    return wrapped(walk.cost(expression))


class _Second:
    """An estimation."""

    __slots__ = ("_costs", "_functions", "_hidden", "_journal", "_values")

    def __init__(self, costs: Mapping[int | str, int], names: AbstractSet[str]) -> None:
        self._costs = costs
        self._values: dict[str, _Value] = dict.fromkeys(names, _KNOWN)
        self._functions: dict[str, Func] = {}
        self._hidden: dict[str, _Value] = {}
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
            return _choice(node)  # type: ignore[arg-type]
        return _CONSTANT

    def _reference(self, name: str) -> int | Steps:
        found = self._values.get(name)
        if found is None:
            raise EstimationError(f"A definition of '{name}' not found")
        counted, value = found
        if counted:
            return _REFERENCE
        self._journal.put(self._values, name, (True, value))
        return _REFERENCE + value if isinstance(value, int) else _first_use(value)

    def _call(self, node: Call) -> Steps:
        function = node.function
        cost = self._costs.get(function)
        declared = None
        if cost is None:
            declared = self._functions.get(function) if isinstance(function, str) else None
            if declared is None:
                raise EstimationError(f"function '{header(function)}' not found")
            cost = 0
        for argument in node.arguments:
            cost += yield argument
        if declared is not None:
            cost += yield from self._body(declared)
        return cost

    def _body(self, function: Func) -> Steps:
        journal, values, hidden = self._journal, self._values, self._hidden
        parameters = function.parameters
        outer = {name: values[name] for name in parameters if name in values}
        for name, value in hidden.items():
            journal.put(values, name, value)
        for name in parameters:
            journal.put(values, name, _PASSED)
        for name, value in outer.items():
            journal.put(hidden, name, value)
        cost = (yield function.body) + _ARGUMENT * len(parameters)
        changed = {name: values.get(name, value) for name, value in outer.items()}
        for name in parameters:
            if name in outer:
                journal.put(values, name, outer[name])
            else:
                journal.remove(values, name)
        for name, value in changed.items():
            journal.put(hidden, name, value)
        return cost

    def _block(self, node: Expression) -> Steps:
        journal = self._journal
        start = journal.mark()
        cost = 0
        while isinstance(node, Block):
            declaration = node.declaration
            if isinstance(declaration, Let):
                journal.put(self._values, declaration.name, (False, declaration.value))
            else:
                mark = journal.mark()
                for name in declaration.parameters:
                    journal.put(self._values, name, _KNOWN)
                yield declaration.body
                journal.undo(mark)
                journal.put(self._functions, declaration.name, declaration)
            cost += _BLOCK
            node = node.body
        cost += yield node
        journal.undo(start)
        return cost


def _first_use(value: Expression) -> Steps:
    return (yield value) + _REFERENCE


def _choice(node: If) -> Steps:
    condition = yield node.condition
    then = wrapped((yield node.then))
    otherwise = wrapped((yield node.otherwise))
    return condition + max(then, otherwise) + _CHOICE


def _field(inner: Expression) -> Steps:
    return (yield inner) + _FIELD
