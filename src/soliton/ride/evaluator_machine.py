"""The exact evaluator: it runs a tree node by node and counts complexity as the reference does.

What lives here: evaluation with its own stack, so that nesting is not limited, including the
reference's state when the limit ends a run, older rules of scope, and traces. What does not: the
fast evaluator (``evaluator_compiler``), which must produce the same results, and uses this one for
every run that ends in an error or at the limit.

A node is evaluated to a value and the remaining complexity, or to a partially evaluated node. If
the limit does not suffice for a function, the reference continues with the function's siblings and
may return to the node. Nodes here are therefore mutable copies.

Source: wavesplatform/Waves
``lang/shared/src/main/scala/com/wavesplatform/lang/v1/evaluator/EvaluatorV2.scala``.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import Final, TypeAlias, TypeGuard, Union

from soliton.ride.environment import MAX_FREE_CALLS, WATCHED_COST, CallContext
from soliton.ride.errors import (
    ComplexityExceeded,
    EvaluationError,
    EvaluationEscaped,
    FailOrReject,
    InvocationFailed,
    NativeCrash,
    ThrownError,
)
from soliton.ride.evaluator_library import Library, Named
from soliton.ride.evaluator_scope import Scope, find
from soliton.ride.expressions import (
    AnnotatedFunction,
    Block,
    BoolConst,
    BytesConst,
    Call,
    Declaration,
    Expression,
    Func,
    GetField,
    If,
    Let,
    ListConst,
    LongConst,
    ObjectConst,
    Ref,
    StringConst,
)
from soliton.ride.functions.bodies import VALUE, missing_value_message
from soliton.ride.functions.catalogue import CALLS_OF_DAPPS
from soliton.ride.functions.printing import plain_text
from soliton.ride.trace import Trace
from soliton.ride.values import (
    UNIT,
    BigInt,
    CaseObject,
    RideList,
    Value,
    WeighedText,
    case_object,
    ride_list,
)

_VALUE_TYPES: Final = frozenset((int, bool, str, WeighedText, bytes, BigInt, RideList, CaseObject))
FIRST_OF_CHAIN, LAST_OF_CHAIN = 1000, 1099
WATCHED_STEPS: Final = 64
"""``watch`` is called once for so many steps, of which an expression takes some four: deep calls
return in steps that enter no other expression. It is called before each slow function, too.
"""


class GetNode:
    """A field access in evaluation."""

    __slots__ = ("expression", "field", "source")

    def __init__(self, expression: Node, field: str, source: GetField) -> None:
        self.expression = expression
        self.field = field
        self.source = source


class IfNode:
    """A choice in evaluation."""

    __slots__ = ("condition", "otherwise", "source", "then")

    def __init__(
        self, condition: Node, then: Expression, otherwise: Expression, source: If
    ) -> None:
        self.condition = condition
        self.then = then
        self.otherwise = otherwise
        self.source = source


class CallNode:
    """A call in evaluation; its arguments are replaced with values."""

    __slots__ = ("arguments", "function", "source")

    def __init__(self, function: int | str, arguments: list[Node], source: Call) -> None:
        self.function = function
        self.arguments = arguments
        self.source = source


class LetNode:
    """A named value, which is evaluated at its first use."""

    __slots__ = ("name", "noted", "value")

    def __init__(self, name: str, value: Node) -> None:
        self.name = name
        self.value = value
        self.noted = False


class BlockNode:
    """A declaration and the expression in its scope."""

    __slots__ = ("body", "declaration", "old", "source")

    def __init__(
        self,
        declaration: LetNode | Func,
        body: Node,
        old: bool = False,
        source: Block | None = None,
    ) -> None:
        self.declaration = declaration
        self.body = body
        self.old = old
        self.source = source


Node: TypeAlias = Union[Expression, Value, GetNode, IfNode, CallNode, BlockNode]  # noqa: UP007 - one of them is a string
MachineScope: TypeAlias = Scope[LetNode | Func] | None
State: TypeAlias = tuple[Node, int]
Steps: TypeAlias = "Generator[Steps, State, State]"


def _stopped(limit: int, remaining: int) -> ComplexityExceeded:
    # Created in a function of its own: as a local variable of the frame in its own traceback, it
    # would put the whole run in a reference cycle.
    stopped = ComplexityExceeded(f"complexity limit = {limit} is exceeded")
    stopped.remaining = remaining
    stopped.spent = limit - remaining
    return stopped


def constant_value(constant: Expression) -> Value:
    """Return the value of a constant."""
    match constant:
        case LongConst(value) | StringConst(value) | BytesConst(value) | BoolConst(value):
            return value
        case ListConst(items):
            return _list_value(items)
        case ObjectConst("Unit", ()):
            return UNIT
        case ObjectConst(type_name, fields):
            return case_object(type_name, {name: constant_value(each) for name, each in fields})
    raise EvaluationError(f"{type(constant).__name__} is no constant")


def _list_value(items: tuple[Expression, ...]) -> RideList:
    """Return the value of a list, which may have thousands of nested lists."""
    stack: list[tuple[tuple[Expression, ...], list[Value]]] = [(items, [])]
    while True:
        pending, done = stack[-1]
        while len(done) < len(pending):
            item = pending[len(done)]
            if isinstance(item, ListConst):
                stack.append((item.items, []))
                break
            done.append(constant_value(item))
        else:
            stack.pop()
            value = ride_list(done)
            if not stack:
                return value
            stack[-1][1].append(value)


class Machine:
    """A run of an expression."""

    __slots__ = (
        "_calls",
        "_context",
        "_journal",
        "_library",
        "_limit",
        "_new",
        "_open",
        "_overhead",
        "_trace",
        "_watch",
        "entered",
    )

    def __init__(
        self,
        library: Library,
        context: CallContext,
        limit: int,
        trace: Trace | None = None,
        watch: Callable[[], None] | None = None,
    ) -> None:
        """The context's journal has the results of functions that an earlier run has called."""
        self._library = library
        self._context = context
        self._limit = limit
        self._trace = trace
        self._watch = watch
        self._journal = context.journal[::-1]
        self._new = context.switches.new_complexity
        self._overhead = 0 if self._new else 1
        self._open: list[LetNode] = []
        self._calls = 0
        self.entered = 0
        """The number of expressions that were evaluated."""

    def run(self, expression: Expression) -> tuple[Value, int]:
        """Return the value of an expression and the remaining complexity.

        Raises ``EvaluationError`` with ``remaining`` and ``spent``.
        """
        return self._finish(self._enter(expression, self._limit, None))

    def run_function(
        self,
        declarations: Sequence[Declaration],
        annotated: AnnotatedFunction,
        invocation: Value,
        arguments: tuple[Value, ...],
    ) -> tuple[Value, int]:
        """Call a dApp's function; return and raise as ``run`` does."""
        scope: MachineScope = None
        for each in declarations:
            scope = _within(
                LetNode(each.name, each.value) if isinstance(each, Let) else each, scope
            )
        let = LetNode(annotated.invocation, invocation)
        function = annotated.function
        call = CallNode(function.name, list(arguments), Call(function.name, ()))
        return self._finish(self._call(call, self._limit, _within(function, _within(let, scope))))

    def _finish(self, steps: Steps) -> tuple[Value, int]:
        try:
            result, remaining = self._drive(steps)
        except EvaluationError as error:
            self._note_failure(error)
            if isinstance(error, EvaluationEscaped):
                error.remaining = self._limit
            error.spent = self._limit - error.remaining
            raise
        if is_value(result):
            return result, remaining
        raise _stopped(self._limit, remaining)

    def _drive(self, steps: Steps) -> State:
        """Run steps, which yield other steps and receive their results, without recursion."""
        callers: list[Steps] = []
        result: State | None = None
        watch, taken = self._watch, 0
        while True:
            taken += 1
            if watch is not None and taken % WATCHED_STEPS == 0:
                watch()
            try:
                inner = next(steps) if result is None else steps.send(result)
            except StopIteration as done:
                result = done.value
                if not callers:
                    return result
                steps = callers.pop()
            else:
                callers.append(steps)
                steps = inner
                result = None

    def _note_failure(self, error: EvaluationError) -> None:
        if self._trace is not None:
            for let in reversed(self._open):
                self._trace.note_error(let.name, error.message)

    def _enter(self, node: Node, limit: int, scope: MachineScope) -> Steps:
        self.entered += 1
        node = lifted_node(node)
        kind = type(node)
        if kind is CallNode:
            return self._call(node, limit, scope)  # type: ignore[arg-type]
        if kind is Ref:
            return self._ref(node, limit, scope)  # type: ignore[arg-type]
        if kind is BlockNode:
            return self._block(node, limit, scope)  # type: ignore[arg-type]
        if kind is IfNode:
            return self._if(node, limit, scope)  # type: ignore[arg-type]
        if kind is GetNode:
            return self._get(node, limit, scope)  # type: ignore[arg-type]
        return _done(node, limit)

    def _block(self, node: BlockNode, limit: int, scope: MachineScope) -> Steps:
        body, remaining = yield self._enter(node.body, limit, _within(node.declaration, scope))
        if is_value(body):
            return body, remaining
        node.body = body
        return node, remaining

    def _get(self, node: GetNode, limit: int, scope: MachineScope) -> Steps:
        node.expression, remaining = yield self._enter(node.expression, limit, scope)
        owner = node.expression
        if not is_value(owner):
            return node, remaining
        if not isinstance(owner, CaseObject):
            raise _failed(
                EvaluationError(
                    f"GETTER of non-case-object {plain_text(owner)} with field '{node.field}"
                ),
                remaining,
            )
        if remaining <= 0:
            return node, remaining
        if node.field not in owner.fields:
            raise EvaluationEscaped(f"key not found: {node.field}")
        return owner.fields[node.field], remaining - self._overhead

    def _if(self, node: IfNode, limit: int, scope: MachineScope) -> Steps:
        node.condition, remaining = yield self._enter(node.condition, limit, scope)
        condition = node.condition
        if not is_value(condition):
            return node, remaining
        if type(condition) is not bool:
            raise _failed(EvaluationError("Non-boolean result in cond"), remaining)
        if remaining <= 0:
            return node, remaining
        branch = node.then if condition else node.otherwise
        return (yield self._enter(branch, remaining - self._overhead, scope))

    def _ref(self, node: Ref, limit: int, scope: MachineScope) -> Steps:
        name = node.name
        found = find(scope, (False, name))
        if found is not None:
            let = found.declaration
            assert isinstance(let, LetNode)
            return (yield self._let(node, let, limit, found.outer))
        library = self._library
        if name in library.constants:
            return library.constants[name], limit - self._overhead
        if name not in library.variables:
            raise _failed(EvaluationError(f"A definition of '{name}' not found"), limit)
        known = self._context.variables
        if name not in known:
            try:
                known[name] = library.variables[name](self._context)
            except EvaluationError as error:
                raise _failed(error, limit) from None
        return known[name], limit - self._overhead

    def _let(self, node: Ref, let: LetNode, limit: int, scope: MachineScope) -> Steps:
        remaining = limit
        if not is_value(let.value):
            self._open.append(let)
            let.value, remaining = yield self._enter(let.value, limit, scope)
            self._open.pop()
        if not is_value(let.value):
            return node, remaining
        if self._trace is not None and not let.noted:
            let.noted = True
            self._trace.note(let.name, let.value)
        if remaining <= 0:
            return node, remaining
        return let.value, remaining - self._overhead

    def _call(self, node: CallNode, limit: int, scope: MachineScope) -> Steps:
        arguments = node.arguments
        started = arguments.copy()
        remaining = limit
        for index, argument in enumerate(arguments):
            if remaining <= 0:
                break
            # The copy is kept for the error message of ``value``.
            lifted = arguments[index] = started[index] = lifted_node(argument)
            if not is_value(lifted):
                arguments[index], remaining = yield self._enter(lifted, remaining, scope)
        if remaining <= 0 or not all(is_value(argument) for argument in arguments):
            return node, remaining
        result, left = yield self._apply(node, started, remaining, scope)
        if self._new and left == remaining:
            if self._trace is not None and left >= 1 and isinstance(node.function, str):
                self._trace.note_cost(node.function, 1, left - 1)
            left -= 1
        return result, left

    def _apply(self, node: CallNode, started: list[Node], limit: int, scope: MachineScope) -> Steps:
        """Call a function whose arguments are values."""
        function = node.function
        values: tuple[Value, ...] = tuple(node.arguments)  # type: ignore[arg-type]
        if isinstance(function, int):
            return self._native(node, function, values, limit)
        self._note_call(function, values, limit)
        named = self._library.named.get(function)
        if named is not None:
            if function == VALUE and values and values[0] is UNIT:
                named = _with_message(named, started[0])
            body = _with_arguments(named.parameters, named.body, values)
            reduced = limit - named.cost if self._new else limit
            result, left = yield self._enter(body, reduced, scope)
            return result, reduced if self._new else left
        found = find(scope, (True, function))
        if found is None:
            return self._construct(function, values, limit), limit
        declared = found.declaration
        assert isinstance(declared, Func)
        self._calls += not self._new
        if self._calls > MAX_FREE_CALLS:
            raise _failed(EvaluationError(f"more than {MAX_FREE_CALLS} calls"), limit)
        body = _with_arguments(declared.parameters, declared.body, values)
        inner = found.outer if self._context.switches.lexical_scope else scope
        return (yield self._enter(body, limit, inner))

    def _construct(self, name: str, values: tuple[Value, ...], limit: int) -> Value:
        fields = self._library.constructors.get(name)
        if fields is None:
            raise _failed(EvaluationError(f"Function or type '{name}' not found"), limit)
        if not fields and name == UNIT.type_name:
            return UNIT
        return case_object(name, dict(zip(fields, values, strict=False)))

    def _note_call(self, name: str, values: tuple[Value, ...], limit: int) -> None:
        if self._trace is not None:
            named = self._library.named.get(name)
            if named is None or limit >= named.cost:
                cost = None if named is None else named.cost
                self._trace.note_call(name if named is None else named.name, values, cost, limit)

    def _native(self, node: CallNode, number: int, values: tuple[Value, ...], limit: int) -> State:
        native = self._library.natives.get(number)
        if native is None:
            raise _failed(EvaluationError(f"function 'Native({number})' not found"), limit)
        if limit < native.cost:
            return node, limit
        if self._trace is not None:
            self._trace.note_call(native.name, values, native.cost, limit)
        if self._watch is not None and native.cost >= WATCHED_COST:
            self._watch()
        context = self._context
        context.left = limit - native.cost
        try:
            value = self._call_native(number, values)
        except (FailOrReject, InvocationFailed):
            raise
        except ThrownError as error:
            if context.switches.fixed_thrown_error:
                raise _failed(error, context.left) from None
            raise _failed(error, self._limit if number in CALLS_OF_DAPPS else 0) from None
        except (NativeCrash, EvaluationEscaped) as error:
            raise _failed(NativeCrash(error.message), 0) from None
        except EvaluationError as error:
            raise _failed(error, context.left) from None
        if self._trace is not None and number in CALLS_OF_DAPPS:
            spent = limit - native.cost - context.left
            self._trace.note_cost(str(values[1]), spent, context.left)
        return value, context.left

    def _call_native(self, number: int, values: tuple[Value, ...]) -> Value:
        """Return a result from the journal, or call a native function."""
        if self._journal and FIRST_OF_CHAIN <= number <= LAST_OF_CHAIN:
            result, self._context.left = self._journal.pop()
            if isinstance(result, EvaluationError):
                raise result
            return result
        return self._library.natives[number].implementation(values, self._context)


def is_value(node: Node) -> TypeGuard[Value]:
    """Whether a node has been evaluated."""
    return type(node) in _VALUE_TYPES


def _done(node: Node, limit: int) -> Steps:
    return node, limit
    yield


def lifted_node(node: Node) -> Node:
    """Return a mutable copy of a node, without its children; a constant becomes a value."""
    match node:
        case Call(function, arguments):
            return CallNode(function, list(arguments), node)
        case If(condition, then, otherwise):
            return IfNode(condition, then, otherwise, node)
        case GetField(expression, field):
            return GetNode(expression, field, node)
        case Block(Let(name, value), body, old):
            return BlockNode(LetNode(name, value), body, old, node)
        case Block(Func() as declared, body):
            return BlockNode(declared, body, False, node)
        case LongConst() | StringConst() | BytesConst() | BoolConst() | ListConst() | ObjectConst():
            return constant_value(node)
    return node


def _failed(error: EvaluationError, remaining: int) -> EvaluationError:
    error.remaining = remaining
    return error


def _within(declaration: LetNode | Func, scope: MachineScope) -> MachineScope:
    return Scope((type(declaration) is Func, declaration.name), declaration, scope)


def _with_arguments(
    parameters: tuple[str, ...], body: Expression, values: tuple[Value, ...]
) -> Node:
    """Return a body in the scope of parameters with values, the last one innermost."""
    node: Node = body
    for name, value in reversed(list(zip(parameters, values, strict=False))):
        node = BlockNode(LetNode(name, value), node)
    return node


def _with_message(named: Named, argument: Node) -> Named:
    """Return the function ``value`` with an error message that names the missing value."""
    inner: tuple[Value, ...] = ()
    source = argument
    if isinstance(argument, CallNode):
        source = argument.source
        inner = tuple(each for each in argument.arguments if is_value(each))
    elif isinstance(argument, GetNode):
        source = GetField(Ref(""), argument.field)
    elif isinstance(argument, IfNode):
        source = If(Ref(""), Ref(""), Ref(""))
    elif isinstance(argument, BlockNode):
        source = Block(Let("", Ref("")), Ref(""), argument.old)
    body = named.body
    if is_value(source) or not isinstance(body, If):
        return named
    message = missing_value_message(source, inner)  # type: ignore[arg-type]
    if not isinstance(body.then, Call):
        return named
    failure = Call(body.then.function, (StringConst(message),))
    return Named(
        named.name, named.cost, named.parameters, If(body.condition, failure, body.otherwise)
    )
