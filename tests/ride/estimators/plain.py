"""The three estimators once more: recursive, with states that are copied, as literally after the
reference as Python allows. Slow and not for deep trees; the tests compare with it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace

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
from soliton.ride.hash_order import hash_order

Costs = Mapping[int | str, int]


class Refused(Exception):
    """A script that cannot be estimated."""


def first(costs: Costs, names: AbstractSet[str], expression: Expression) -> int:
    """``ScriptEstimatorV1``."""

    def aux(
        node: Expression,
        symbols: dict[str, tuple[Expression, bool]],
        functions: dict[int | str, int],
    ) -> tuple[int, dict[str, tuple[Expression, bool]]]:
        match node:
            case ListConst() | ObjectConst():
                raise Refused
            case GetField(inner):
                cost, symbols = aux(inner, symbols, functions)
                return cost + 2, symbols
            case Block(Let(name, value), body):
                cost, symbols = aux(body, symbols | {name: (value, False)}, functions)
                return cost + 5, symbols
            case Block(Func(name, parameters, value), body):
                hidden = dict.fromkeys(parameters, (TRUE, False))
                total, _ = aux(value, symbols | hidden, functions)
                total += 5 * len(parameters)
                cost, symbols = aux(body, symbols, functions | {name: total})
                return cost + 5, symbols
            case Ref(name):
                if name not in symbols:
                    raise Refused
                value, counted = symbols[name]
                if counted:
                    return 2, symbols
                cost, symbols = aux(value, symbols | {name: (value, True)}, functions)
                return cost + 2, symbols
            case If(condition, then, otherwise):
                cost, symbols = aux(condition, symbols, functions)
                right = aux(then, symbols, functions)
                left = aux(otherwise, symbols, functions)
                more, symbols = right if right[0] > left[0] else left
                return cost + more + 1, symbols
            case Call(function, arguments):
                cost = costs.get(function, functions.get(function, -1))
                if cost < 0:
                    raise Refused
                for argument in arguments:
                    more, symbols = aux(argument, symbols, functions)
                    cost += more
                return cost, symbols
            case _:
                return 1, symbols

    return aux(expression, dict.fromkeys(names, (TRUE, True)), {})[0]


Thunk = Callable[["State2"], tuple[int, "State2"]]


@dataclass(frozen=True)
class State2:
    """``v2.EstimatorContext``."""

    lets: dict[str, tuple[bool, Thunk]]
    functions: dict[int | str, Func] = field(default_factory=dict)
    overlapped: dict[str, tuple[bool, Thunk]] = field(default_factory=dict)


def _constant(cost: int) -> Thunk:
    return lambda state: (cost, state)


@dataclass(frozen=True)
class Second:
    """``ScriptEstimatorV2``."""

    costs: Costs

    def estimate(self, names: AbstractSet[str], expression: Expression) -> int:
        return self._aux(expression, State2(dict.fromkeys(names, (True, _constant(0)))))[0]

    def _each(self, nodes: tuple[Expression, ...], state: State2) -> tuple[int, State2]:
        total = 0
        for node in nodes:
            cost, state = self._aux(node, state)
            total += cost
        return total, state

    def _called(
        self, function: Func, arguments: tuple[Expression, ...], state: State2
    ) -> tuple[int, State2]:
        total, state = self._each(arguments, state)
        here = {name: state.lets[name] for name in function.parameters if name in state.lets}
        passed = dict.fromkeys(function.parameters, (False, _constant(1)))
        inside = replace(
            state,
            lets=state.lets | state.overlapped | passed,
            overlapped=state.overlapped | here,
        )
        cost, inside = self._aux(function.body, inside)
        changes = {name: inside.lets.get(name, item) for name, item in here.items()}
        kept = {name: item for name, item in inside.lets.items() if name not in passed}
        return cost + 5 * len(function.parameters) + total, replace(
            inside, lets=kept | here, overlapped=inside.overlapped | changes
        )

    def _aux(self, node: Expression, state: State2) -> tuple[int, State2]:
        match node:
            case Block(Let(name, value), body):
                inside = replace(
                    state, lets=state.lets | {name: (False, lambda late: self._aux(value, late))}
                )
                return self._aux(body, inside)[0] + 5, state
            case Block(Func(name, parameters, value) as function, body):
                known = dict.fromkeys(parameters, (True, _constant(0)))
                self._aux(value, replace(state, lets=state.lets | known))
                inside = replace(state, functions=state.functions | {name: function})
                return self._aux(body, inside)[0] + 5, state
            case Ref(name):
                return self._reference(name, state)
            case If(condition, then, otherwise):
                cost, state = self._aux(condition, state)
                right, state = self._aux(then, state)
                left, state = self._aux(otherwise, state)
                return cost + max(left, right) + 1, state
            case GetField(inner):
                cost, state = self._aux(inner, state)
                return cost + 2, state
            case Call(called, arguments):
                if called in self.costs:
                    cost, state = self._each(arguments, state)
                    return cost + self.costs[called], state
                if called in state.functions:
                    return self._called(state.functions[called], arguments, state)
                raise Refused
            case _:
                return 1, state

    def _reference(self, name: str, state: State2) -> tuple[int, State2]:
        if name not in state.lets:
            raise Refused
        counted, lazy = state.lets[name]
        if counted:
            return 2, state
        cost, state = lazy(replace(state, lets=state.lets | {name: (True, lazy)}))
        return cost + 2, state


@dataclass(frozen=True)
class Names:
    """A set of Scala: in the order of insertion until it once had more than four."""

    listed: tuple[str, ...] = ()
    hashed: bool = False

    def __contains__(self, name: str) -> bool:
        return name in self.listed

    def __iter__(self) -> Iterator[str]:
        return iter(self.listed)

    def __or__(self, more: Iterable[str]) -> Names:
        names = list(dict.fromkeys((*self.listed, *more)))
        hashed = self.hashed or len(names) > 4
        return Names(tuple(hash_order(names) if hashed else names), hashed)

    def __sub__(self, others: Collection[str] | Names) -> Names:
        return Names(tuple(name for name in self.listed if name not in others), self.hashed)


@dataclass(frozen=True)
class State3:
    """``v3.EstimatorContext``."""

    functions: dict[int | str, tuple[int, Names]]
    used: Names = Names()
    lets: dict[str, Callable[[State3], int]] = field(default_factory=dict)


@dataclass(frozen=True)
class Third:
    """``ScriptEstimatorV3``."""

    costs: Costs
    fix_overflow: bool
    overhead: int
    let_fixes: bool

    def estimate(self, expression: Expression) -> int:
        functions = {name: (cost, Names()) for name, cost in self.costs.items()}
        return self._aux(expression, State3(functions), frozenset())[0]

    def _sum(self, left: int, right: int) -> int:
        total = left + right
        if -(2**63) <= total < 2**63:
            return total
        if self.fix_overflow:
            raise Refused
        return (total + 2**63) % 2**64 - 2**63

    def _holding(
        self, node: Expression, state: State3, arguments: frozenset[str]
    ) -> tuple[int, State3]:
        cost, after = self._aux(node, state, arguments)
        return cost, replace(after, functions=state.functions)

    def _aux(
        self, node: Expression, state: State3, arguments: frozenset[str]
    ) -> tuple[int, State3]:
        match node:
            case Block(Let() as let, body):
                return self._let(let, body, state, arguments)
            case Block(Func() as function, body):
                return self._function(function, body, state, arguments)
            case Ref(name):
                if not (name in arguments and self.let_fixes):
                    state = replace(state, used=state.used | {name})
                return self.overhead, state
            case If(condition, then, otherwise):
                cost, state = self._holding(condition, state, arguments)
                right, state = self._holding(then, state, arguments)
                left, state = self._holding(otherwise, state, arguments)
                return self._sum(self._sum(cost, max(right, left)), self.overhead), state
            case GetField(inner):
                cost, state = self._aux(inner, state, arguments)
                return self._sum(cost, self.overhead), state
            case Call(name, values):
                return self._call(name, values, state, arguments)
            case _:
                return self.overhead, state

    def _let(
        self, let: Let, body: Expression, start: State3, arguments: frozenset[str]
    ) -> tuple[int, State3]:
        name = let.name

        def value(state: State3) -> tuple[int, State3]:
            cost, after = self._aux(let.value, replace(state, functions=start.functions), arguments)
            return cost, replace(after, functions=state.functions)

        inside = replace(
            start,
            used=start.used - {name},
            lets=start.lets | {name: lambda state: value(state)[0]},
        )
        total, after = self._aux(body, inside, arguments)
        lets = {key: item for key, item in after.lets.items() if key != name}
        if name in start.lets:
            lets[name] = start.lets[name]
        used = after.used | {name} if name in start.used else after.used - {name}
        state = replace(after, used=used, lets=lets)
        cost = 0
        if name in after.used:
            cost, state = value(state)
        return self._sum(total, cost), state

    def _function(
        self, function: Func, body: Expression, start: State3, arguments: frozenset[str]
    ) -> tuple[int, State3]:
        name = function.name
        if self.fix_overflow and name in start.functions:
            raise Refused
        inner = arguments | frozenset(function.parameters)
        cost, state = self._holding(function.body, start, inner)
        declared: dict[int | str, tuple[int, Names]]
        declared = {name: (cost, state.used - start.used)}
        state = replace(state, functions=state.functions | declared, used=start.used)
        return self._aux(body, state, arguments)

    def _call(
        self,
        name: int | str,
        values: tuple[Expression, ...],
        state: State3,
        arguments: frozenset[str],
    ) -> tuple[int, State3]:
        if name not in state.functions:
            raise Refused
        cost, used = state.functions[name]
        emptied = state.functions | {name: (cost, Names())}
        state = replace(state, functions=emptied, used=state.used | used)
        total = 0
        for value in values:
            more, state = self._holding(value, state, arguments)
            total = self._sum(total, more)
        if cost == 0 and not self.overhead:
            cost = 1
            if self.let_fixes and any(
                state.lets[ref](state) > 0 for ref in used if ref in state.lets
            ):
                cost = 0
        return self._sum(total, cost), state
