"""The third estimator: since the feature of blocks of version 5, in three editions.

What lives here: the costs of expressions and of a dApp's functions by its rules. What does not: the
expressions of a script (``scripts``), and the heights at which the rules apply (``choice``).

A named value is counted once, at its declaration, if an expression in its scope mentions its name.
The body of a function is counted at its declaration; the names that it mentions are recorded, and
count as mentioned from the first call on a path. The editions: ``overhead`` (constants, names,
fields and choices cost 1; without it, a call that would cost 0 costs 1), none, and ``let_fixes``
(arguments hide values of the same name; a call costs 0 itself if the values that the function
mentions have a cost). With ``fix_overflow``, a sum beyond 64 bits and a function with the name of
another one are errors.

The reference's oddities are reproduced exactly. The names that count as mentioned in a function's
body depend on those mentioned before it, function costs that one branch used up reappear in the
next branch, and a name that is also an argument further out is never counted.

Source: wavesplatform/Waves
``lang/shared/src/main/scala/com/wavesplatform/lang/v1/estimator/v3/ScriptEstimatorV3.scala``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

import msgspec

from soliton.chain.values import MAX_I64, MIN_I64, wrapped
from soliton.ride.estimators.machine import (
    MAX_STEPS,
    EstimationError,
    Steps,
    Walk,
    header,
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
_NO_NAMES: Final[dict[str, None]] = {}


CALL_FROM_VERIFIER: Final = "DApp-to-dApp invocations are not allowed from verifier"


class Edition(msgspec.Struct, frozen=True):
    """A variant of the rules of the third estimator."""

    fix_overflow: bool = True
    overhead: bool = False
    let_fixes: bool = True


class _Function(msgspec.Struct, frozen=True, gc=False):
    """A function of the script: the cost of its body, and the names that its first call mentions in
    the order of their first mention (do not modify). The reference's order is that of their hashes
    if they are ``hashed``.
    """

    name: str
    cost: int
    mentions: dict[str, None]
    hashed: bool = False

    def in_order(self) -> list[str]:
        """Return the names in the iteration order of the reference's sets."""
        names = list(self.mentions)
        return hash_order(names) if self.hashed else names


class _Version:
    """A version of the functions: the change since the version before it."""

    __slots__ = ("before", "depth", "new", "old")

    def __init__(self, before: _Version | None, new: _Function, old: _Function | None) -> None:
        self.before = before
        self.depth: int = 0 if before is None else before.depth + 1
        self.new = new
        self.old = old


class _Functions:
    """The current functions of the script, which can be set to any earlier or later version."""

    __slots__ = ("now", "version")

    def __init__(self) -> None:
        self.now: dict[str, _Function] = {}
        self.version = _Version(None, _Function("", 0, _NO_NAMES), None)

    def put(self, function: _Function) -> None:
        """Add or replace a function."""
        self.version = _Version(self.version, function, self.now.get(function.name))
        self.now[function.name] = function

    def go(self, target: _Version) -> None:
        """Restore a version."""
        version = self.version
        if version is target:
            return
        self.version, now = target, self.now
        ahead: list[_Function] = []
        while version is not target:
            if version.depth <= target.depth:
                ahead.append(target.new)
                assert target.before is not None, "the first version is before all others"
                target = target.before
                continue
            if version.old is None:
                del now[version.new.name]
            else:
                now[version.new.name] = version.old
            assert version.before is not None, "the first version is before all others"
            version = version.before
        for function in reversed(ahead):
            now[function.name] = function


class _Value:
    """A named value in scope, with the state on which its cost depends."""

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
        """Whether the name, of an outer value, was mentioned before."""
        self.hidden = hidden
        """The outer value of the same name."""


class _State(msgspec.Struct, frozen=True):
    """A snapshot of an estimation."""

    functions: _Version
    mentioned: dict[str, None]
    hashed: bool
    values: dict[str, _Value]
    arguments: frozenset[str]


class Estimation:
    """An estimation. ``costs`` has those of the library's functions, ``None`` for one that must not
    be called. The public methods raise ``EstimationError``.
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
        """The mentioned names in the order of their first mention."""
        self._hashed = False
        """Whether there were ever too many for the reference to keep in order."""
        self._values: dict[str, _Value] = {}
        self._arguments = _NO_ARGUMENTS
        self._walk = Walk(self._open, MAX_STEPS, watch)

    def cost(self, expression: Expression) -> int:
        """Return the complexity of an expression."""
        return self._walk.cost(expression)

    def after(self, declarations: tuple[Declaration, ...]) -> Declared:
        """Return the scope of declarations, in which expressions can be estimated separately."""
        values: list[_Value] = []
        self._walk.finish(self._declarations(declarations, values))
        return Declared(self, values)

    def each(self, declarations: tuple[Declaration, ...]) -> tuple[dict[str, int], dict[str, int]]:
        """Return the complexities of all values and of all functions, including the values that
        they mention, as compilers report them.

        Where several values mention the same value, a function's complexity depends on the order of
        its names.
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
        self._mention(function)
        cost = function.cost
        for mention in function.in_order():
            if mention in known:
                cost += self._with_values(known[mention], known)
        return cost

    def _with_values(self, value: Expression, known: Mapping[str, Expression]) -> int:
        """Return the cost of a value and of the values that it mentions first, recursively, each
        with the state before it. Only the names that the value itself mentions stay mentioned.
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
        """Return the complexity of an expression and of the values in scope that it mentions."""
        self._walk.spend(len(values))
        return self._walk.finish(self._inside(values, expression))

    def _inside(self, values: list[_Value], expression: Expression) -> Steps:
        cost = yield expression
        return (yield from self._leave(values, cost))

    def state(self) -> _State:
        """Take a snapshot."""
        return _State(
            self._functions.version,
            self._mentioned.copy(),
            self._hashed,
            self._values.copy(),
            self._arguments,
        )

    def restore(self, state: _State) -> None:
        """Restore a snapshot."""
        self._functions.go(state.functions)
        self._mentioned = state.mentioned.copy()
        self._hashed = state.hashed
        self._values = state.values.copy()
        # A failed estimate may have ended inside a function.
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
        if MIN_I64 <= total <= MAX_I64:
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
        """Bring a named value into scope."""
        name = let.name
        is_mentioned = name in self._mentioned
        value = _Value(
            let,
            self._functions.version,
            self._arguments,
            is_mentioned,
            self._values.get(name),
        )
        if is_mentioned:
            # It has a new meaning.
            self._hashed = self._hashed or len(self._mentioned) > IN_ORDER
            del self._mentioned[name]
        self._values[name] = value
        return value

    def _leave(self, values: list[_Value], cost: int) -> Steps:
        """End the scope of values, innermost first, and count those that were mentioned."""
        mentioned = self._mentioned
        for value in reversed(values):
            name = value.name
            counts = name in mentioned
            if value.mentioned:
                mentioned[name] = None
            elif counts:
                if len(mentioned) > IN_ORDER:
                    self._hashed = True
                del mentioned[name]
            if value.hidden is None:
                del self._values[name]
            else:
                self._values[name] = value.hidden
            if counts:
                # Functions declared since are out of scope: only outer values remain to be counted.
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
        is_hashed = self._hashed or len(self._mentioned) > IN_ORDER
        functions.put(_Function(name, cost, _since(before, self._mentioned), is_hashed))
        self._mentioned, self._hashed = before, hashed
        return cost

    def _mention(self, function: _Function) -> None:
        """Mark the names that a function mentions."""
        mentioned, names = self._mentioned, function.mentions
        if function.hashed and len(mentioned) + len(names.keys() - mentioned.keys()) <= IN_ORDER:
            names = dict.fromkeys(function.in_order())
        # Otherwise their order does not matter: that of more names is the order of their hashes.
        mentioned |= names

    def _call(self, node: Call) -> Steps:
        functions = self._functions
        function = node.function
        declared = functions.now.get(function) if isinstance(function, str) else None
        cost: int | None
        if declared is not None:
            cost, mentions = declared.cost, declared.mentions
            if mentions:
                functions.put(_Function(declared.name, cost, _NO_NAMES))
                self._mention(declared)
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
            names = declared.in_order() if mentions and declared is not None else ()
            free = self._let_fixes and (yield from self._first_cost(names)) > 0
            cost = 0 if free else 1
        return self._sum(total, cost)

    def _first_cost(self, names: Iterable[str]) -> Steps:
        """Return the cost of the first value with a cost above 0, without counting it."""
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


def _since(before: dict[str, None], mentioned: dict[str, None]) -> dict[str, None]:
    """Return the names mentioned since, in the order of their first mention."""
    known, latest = before.keys(), list(mentioned)[len(before) :]
    if known <= mentioned.keys() and known.isdisjoint(latest):
        return dict.fromkeys(latest)
    # Some of those before have been forgotten meanwhile.
    return dict.fromkeys(name for name in mentioned if name not in before)


class Declared:
    """The scope of a script's declarations."""

    def __init__(self, estimation: Estimation, inside: list[_Value]) -> None:
        self._estimation = estimation
        self._inside = inside
        self._state = estimation.state()

    def cost(self, expression: Expression) -> int:
        """Return the complexity of an expression in this scope; raise ``EstimationError`` if it
        cannot be estimated.
        """
        self._estimation.restore(self._state)
        return self._estimation.cost_inside(self._inside, expression)
