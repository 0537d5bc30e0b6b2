"""The third estimator: since the feature of blocks of version 5, in three editions.

What lives here: the costs of expressions and of a dApp's functions by its rules. What does not:
which expressions are made of a script, and when these rules hold (``scripts``, ``choice``).

Named values are counted once, at their declaration, when something that is evaluated after it
mentions their name. The body of a function is counted where it is declared; the names that it
mentions are remembered, and the first call on a way makes them mentioned. The editions:
``overhead`` (constants, names, fields and choices cost 1; without it, a call that costs nothing
costs 1), none, and ``let_fixes`` (arguments hide values of the same name; a call costs nothing
itself if the values that the function mentions cost something). ``fix_overflow`` makes a sum
beyond 64 bits and a function with the name of another one errors.

All of this is exact to the oddities: which names count as mentioned in a function's body depends
on what was mentioned before it, costs of functions that a branch used up come back in the next
branch, a name that is also an argument outside is never counted.

Source: wavesplatform/Waves
``lang/shared/src/main/scala/com/wavesplatform/lang/v1/estimator/v3/ScriptEstimatorV3.scala``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from soliton.ride.estimators.machine import (
    MAX_LONG,
    MAX_STEPS,
    MIN_LONG,
    EstimationError,
    Steps,
    Walk,
    header,
    wrapped,
)
from soliton.ride.expressions import (
    Block,
    Call,
    Declaration,
    Expression,
    Func,
    GetField,
    If,
    Let,
    Ref,
)
from soliton.ride.hash_order import IN_ORDER, hash_order

_NO_ARGUMENTS: Final[frozenset[str]] = frozenset()
_NO_NAMES: Final = ()


CALL_FROM_VERIFIER: Final = "DApp-to-dApp invocations are not allowed from verifier"


class Edition(msgspec.Struct, frozen=True):
    """Which of the rules of the third estimator hold."""

    fix_overflow: bool = True
    overhead: bool = False
    let_fixes: bool = True


class _Function(msgspec.Struct, frozen=True, gc=False):
    """A script's function: the cost of its body, and the names that its first call mentions, in the
    order of the reference.
    """

    name: str
    cost: int
    mentions: tuple[str, ...]


class _Version:
    """One state of the functions: what was changed since the state before it."""

    __slots__ = ("before", "depth", "new", "old")

    def __init__(self, before: _Version | None, new: _Function, old: _Function | None) -> None:
        self.before = before
        self.depth: int = 0 if before is None else before.depth + 1
        self.new = new
        self.old = old


class _Functions:
    """The script's functions as they are now, with a way to every state that they ever had."""

    __slots__ = ("now", "version")

    def __init__(self) -> None:
        self.now: dict[str, _Function] = {}
        self.version = _Version(None, _Function("", 0, _NO_NAMES), None)

    def put(self, function: _Function) -> None:
        """Add a function, or change it."""
        self.version = _Version(self.version, function, self.now.get(function.name))
        self.now[function.name] = function

    def go(self, target: _Version) -> None:
        """Make them what they were at a version."""
        version = self.version
        if version is target:
            return
        self.version = target
        ahead: list[_Function] = []
        while version is not target:
            if version.depth > target.depth:
                version = self._back(version)
            else:
                ahead.append(target.new)
                assert target.before is not None, "the first version is before all others"
                target = target.before
        for function in reversed(ahead):
            self.now[function.name] = function

    def _back(self, version: _Version) -> _Version:
        if version.old is None:
            del self.now[version.new.name]
        else:
            self.now[version.new.name] = version.old
        assert version.before is not None, "the first version is before all others"
        return version.before


class _Value:
    """A named value that is in sight, with all that its cost depends on."""

    __slots__ = ("arguments", "expression", "functions", "hidden", "mentioned", "name")

    def __init__(
        self,
        let: Let,
        functions: _Version,
        arguments: frozenset[str],
        mentioned: bool,
        hidden: _Value | None,
    ) -> None:
        self.name = let.name
        self.expression = let.value
        self.functions = functions
        self.arguments = arguments
        self.mentioned = mentioned
        """Whether the same name, of a value further out, was mentioned before."""
        self.hidden = hidden
        """The value of the same name further out."""


class _State(msgspec.Struct, frozen=True):
    """What an estimation knows at some time."""

    functions: _Version
    mentioned: dict[str, None]
    hashed: bool
    values: dict[str, _Value]
    arguments: frozenset[str]


class Estimation:
    """One estimation with its state; ``costs`` are those of the library's functions, ``None`` for
    one that must not be called.
    """

    def __init__(
        self,
        edition: Edition,
        costs: Mapping[int | str, int | None],
        watch: Callable[[], None] | None = None,
    ) -> None:
        self._fix_overflow = edition.fix_overflow
        self._overhead = int(edition.overhead)
        self._let_fixes = edition.let_fixes
        self._costs = costs
        self._functions = _Functions()
        self._mentioned: dict[str, None] = {}
        """The names in the order in which they were mentioned first."""
        self._hashed = False
        """Whether there were more at a time than the reference keeps in order."""
        self._values: dict[str, _Value] = {}
        self._arguments = _NO_ARGUMENTS
        self._walk = Walk(self._open, MAX_STEPS, watch)

    def cost(self, expression: Expression) -> int:
        """The complexity of an expression; raises ``EstimationError``."""
        return self._walk.cost(expression)

    def after(self, declarations: tuple[Declaration, ...]) -> Declared:
        """The place behind declarations, where several expressions can be estimated one by one;
        raises ``EstimationError``.
        """
        values: list[_Value] = []
        self._walk.finish(self._declarations(declarations, values))
        return Declared(self, values)

    def each(self, declarations: tuple[Declaration, ...]) -> tuple[dict[str, int], dict[str, int]]:
        """What every named value and every function takes, with all values that they mention, as
        compilers show it; raises ``EstimationError``.

        Where several values mention the same further values, a function's number depends on the
        order in which its names are listed.
        """
        values: dict[str, int] = {}
        functions: dict[str, int] = {}
        known: dict[str, Expression] = {}
        for declaration in declarations:
            name = declaration.name
            before = self.state()
            if isinstance(declaration, Let):
                values[name] = wrapped(self._with_values(declaration.value, known))
                self.restore(before)
                known[name] = declaration.value
                self._declare(declaration)
            else:
                self._walk.finish(self._function(declaration))
                after = self.state()
                functions[name] = max(1, wrapped(self._function_with_values(name, before, known)))
                self.restore(after)
        return values, functions

    def _function_with_values(
        self, name: str, before: _State, known: Mapping[str, Expression]
    ) -> int:
        function = self._functions.now[name]
        self.restore(before)
        self._mentioned.update(dict.fromkeys(function.mentions))
        cost = function.cost
        for mention in function.mentions:
            if mention in known:
                cost += self._with_values(known[mention], known)
        return cost

    def _with_values(self, value: Expression, known: Mapping[str, Expression]) -> int:
        """The cost of a value and, each time anew, of the values that it is the first to mention;
        what is known afterwards is what it mentions itself.
        """
        functions = self._functions
        start = functions.version
        cost = 0
        after: _State | None = None
        pending = [(value, self._mentioned)]
        while pending:
            inner, before = pending.pop()
            functions.go(start)
            self._mentioned = before.copy()
            cost += self._walk.cost(inner)
            after = after or self.state()
            found = self._mentioned
            pending += (
                (known[name], found) for name in found if name not in before and name in known
            )
        assert after is not None, "there was the value itself"
        self.restore(after)
        return cost

    def cost_inside(self, values: list[_Value], expression: Expression) -> int:
        """The complexity of an expression and of the values before it that it mentions."""
        self._walk.spend(len(values))
        return self._walk.finish(self._inside(values, expression))

    def _inside(self, values: list[_Value], expression: Expression) -> Steps:
        cost = yield expression
        return (yield from self._leave(values, cost))

    def state(self) -> _State:
        """What is known now, to come back to it."""
        return _State(
            self._functions.version,
            self._mentioned.copy(),
            self._hashed,
            self._values.copy(),
            self._arguments,
        )

    def restore(self, state: _State) -> None:
        """Know no more than at another time."""
        self._functions.go(state.functions)
        self._mentioned = state.mentioned.copy()
        self._hashed = state.hashed
        self._values = state.values.copy()
        # An estimate that was refused may have ended inside a function.
        self._arguments = state.arguments

    def _declarations(self, declarations: tuple[Declaration, ...], values: list[_Value]) -> Steps:
        for declaration in declarations:
            if isinstance(declaration, Let):
                values.append(self._declare(declaration))
            else:
                yield from self._function(declaration)
        return 0

    def _open(self, node: Expression) -> int | Steps:
        kind = type(node)
        if kind is Ref:
            name = node.name  # type: ignore[union-attr]
            if not (self._let_fixes and name in self._arguments):
                self._mentioned[name] = None
            return self._overhead
        if kind is Call:
            return self._call(node)  # type: ignore[arg-type]
        if kind is GetField:
            return self._field(node.expression)  # type: ignore[union-attr]
        if kind is Block:
            return self._block(node)
        if kind is If:
            return self._choice(node)  # type: ignore[arg-type]
        return self._overhead

    def _sum(self, left: int, right: int) -> int:
        total = left + right
        if MIN_LONG <= total <= MAX_LONG:
            return total
        if self._fix_overflow:
            raise EstimationError("Illegal script")
        return wrapped(total)

    def _field(self, inner: Expression) -> Steps:
        return self._sum((yield inner), self._overhead)

    def _choice(self, node: If) -> Steps:
        functions = self._functions
        version = functions.version
        condition = yield node.condition
        functions.go(version)
        then = yield node.then
        functions.go(version)
        otherwise = yield node.otherwise
        functions.go(version)
        return self._sum(self._sum(condition, max(then, otherwise)), self._overhead)

    def _block(self, node: Expression) -> Steps:
        values: list[_Value] = []
        while isinstance(node, Block):
            declaration = node.declaration
            if isinstance(declaration, Let):
                values.append(self._declare(declaration))
            else:
                yield from self._function(declaration)
            node = node.body
        cost = yield node
        return (yield from self._leave(values, cost))

    def _declare(self, let: Let) -> _Value:
        """Bring a named value in sight."""
        name = let.name
        value = _Value(
            let,
            self._functions.version,
            self._arguments,
            name in self._mentioned,
            self._values.get(name),
        )
        self._forget(name)
        self._values[name] = value
        return value

    def _forget(self, name: str) -> None:
        """A name is not mentioned: it means something else from here on."""
        mentioned = self._mentioned
        if name in mentioned:
            self._hashed = self._hashed or len(mentioned) > IN_ORDER
            del mentioned[name]

    def _leave(self, values: list[_Value], cost: int) -> Steps:
        """Put named values out of sight, the latest first, and count those that were mentioned."""
        mentioned = self._mentioned
        for value in reversed(values):
            name = value.name
            counts = name in mentioned
            if value.mentioned:
                mentioned[name] = None
            else:
                self._forget(name)
            if value.hidden is None:
                del self._values[name]
            else:
                self._values[name] = value.hidden
            if counts:
                # Nobody sees the functions that were declared since: all that is left to count is
                # further out.
                cost = self._sum(cost, (yield from self._value(value)))
        return cost

    def _value(self, value: _Value) -> Steps:
        outer = self._arguments
        self._functions.go(value.functions)
        self._arguments = value.arguments
        cost = yield value.expression
        self._arguments = outer
        self._functions.go(value.functions)
        return cost

    def _function(self, function: Func) -> Steps:
        functions = self._functions
        name = function.name
        if self._fix_overflow and (name in functions.now or name in self._costs):
            parameters = ", ".join(function.parameters)
            raise EstimationError(f"Function '{name}({parameters})' shadows preceding declaration")
        version = functions.version
        outer = self._arguments
        before, hashed = self._mentioned, self._hashed
        self._mentioned = before.copy()
        self._arguments = outer.union(function.parameters)
        cost = yield function.body
        functions.go(version)
        self._arguments = outer
        functions.put(_Function(name, cost, self._mentioned_since(before)))
        self._mentioned, self._hashed = before, hashed
        return cost

    def _mentioned_since(self, before: Mapping[str, None]) -> tuple[str, ...]:
        """The names that were mentioned first since then, as the reference's sets list them."""
        mentioned = self._mentioned
        found = [name for name in mentioned if name not in before]
        if self._hashed or len(mentioned) > IN_ORDER:
            return tuple(hash_order(found))
        return tuple(found)

    def _call(self, node: Call) -> Steps:
        functions = self._functions
        function = node.function
        declared = functions.now.get(function) if isinstance(function, str) else None
        cost: int | None
        if declared is not None:
            cost, mentions = declared.cost, declared.mentions
            if mentions:
                functions.put(_Function(declared.name, cost, _NO_NAMES))
                self._mentioned.update(dict.fromkeys(mentions))
        elif function in self._costs:
            cost, mentions = self._costs[function], _NO_NAMES
        else:
            raise EstimationError(f"function '{header(function)}' not found")
        total = 0
        version = functions.version
        for argument in node.arguments:
            total = self._sum(total, (yield argument))
            functions.go(version)
        if cost is None:
            raise EstimationError(CALL_FROM_VERIFIER)
        if cost == 0 and not self._overhead:
            worth = (yield from self._worth(mentions)) if self._let_fixes else 0
            cost = 0 if worth > 0 else 1
        return self._sum(total, cost)

    def _worth(self, names: tuple[str, ...]) -> Steps:
        """The cost of the first of some values that costs anything at all; counts nothing."""
        functions = self._functions
        version = functions.version
        mentioned, hashed = self._mentioned, self._hashed
        cost = 0
        for name in names:
            value = self._values.get(name)
            if value is not None:
                self._mentioned = mentioned.copy()
                cost = yield from self._value(value)
                self._mentioned, self._hashed = mentioned, hashed
                functions.go(version)
                if cost > 0:
                    break
        return cost


class Declared:
    """The place behind a script's declarations."""

    def __init__(self, estimation: Estimation, inside: list[_Value]) -> None:
        self._estimation = estimation
        self._inside = inside
        self._state = estimation.state()

    def cost(self, expression: Expression) -> int:
        """The complexity of an expression with the declarations before it; raises
        ``EstimationError``.
        """
        self._estimation.restore(self._state)
        return self._estimation.cost_inside(self._inside, expression)
