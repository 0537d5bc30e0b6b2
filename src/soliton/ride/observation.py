"""Observation of runs: the position of a failure, and each step before it.

What lives here: the observer, the machine that notifies it, and the state of a failed run, with
numbers for expressions. What does not: the positions of these numbers in a text (``source_map``),
and traces in the reference's form (``trace``).

Runs without an observer have no overhead: the fast evaluator does not support observation, and an
observed run uses a machine of its own. Nested runs (a dApp that calls another) share an observer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec

from soliton.ride.environment import AssetInfo, CallContext
from soliton.ride.errors import EvaluationError
from soliton.ride.evaluator_library import Library
from soliton.ride.evaluator_machine import (
    BlockNode,
    CallNode,
    GetNode,
    IfNode,
    LetNode,
    Machine,
    MachineScope,
    Node,
    State,
    Steps,
    is_value,
    lifted_node,
)
from soliton.ride.evaluator_scope import Scope, find
from soliton.ride.expressions import CONSTANTS, Call, Expression, Func, Ref
from soliton.ride.numbering import Numbering, numbered
from soliton.ride.script import Script
from soliton.ride.trace import Trace
from soliton.ride.values import Value

MAX_EVENTS: Final = 200_000
"""The limit of recorded steps; a run has 52,000 units of complexity, and most steps cost none."""
MAX_SPOTS: Final = 50
"""The number of functions in a fault, innermost first."""
MAX_VALUES: Final = 20
"""The number of values for each of them."""
MAX_LINKS: Final = 1_000
"""The number of declarations that are searched for names with values."""
DENIED: Final = "the script said no"


class Spot(msgspec.Struct, frozen=True):
    """The position of a run in a function of a script. ``node`` is the number of an expression,
    ``body`` that of the function around it (-1 for none). ``values`` has the values of inner
    expressions, ``parameters`` those of the function.
    """

    script: bytes
    owner: bytes
    """The account's address or the asset's id."""
    node: int
    body: int
    values: tuple[tuple[int, Value], ...] = ()
    parameters: tuple[Value, ...] = ()


class RunFault(msgspec.Struct, frozen=True):
    """The error of a failed run, and its positions: the innermost first, then the callers."""

    message: str
    spots: tuple[Spot, ...]


class Event(msgspec.Struct, frozen=True):
    """The start of an expression (``value`` is ``None``), or its end with a value."""

    run: ObservedRun
    depth: int
    """The number of enclosing calls, including those in other dApps."""
    expression: Expression
    scope: MachineScope
    value: Value | None


class _Frame:
    """A running function of the script: its call and its parameters."""

    __slots__ = ("call", "caller_scope", "parameters")

    def __init__(
        self, call: Call, caller_scope: MachineScope, parameters: tuple[Value, ...]
    ) -> None:
        self.call = call
        self.caller_scope = caller_scope
        self.parameters = parameters


class ObservedRun:
    """The state of a run."""

    __slots__ = ("_numbering", "deciding", "entered", "frames", "open", "owner", "script")

    def __init__(self, script: Script, owner: bytes) -> None:
        self.script: Final = script
        self.owner: Final = owner
        self.open: list[tuple[Expression, Node, MachineScope]] = []
        self.frames: list[_Frame] = []
        self.entered = 0
        self.deciding: tuple[Expression, MachineScope] | None = None
        """The last expression with a Boolean result."""
        self._numbering: Numbering | None = None

    @property
    def numbering(self) -> Numbering:
        """The numbers of the script's expressions."""
        if self._numbering is None:
            self._numbering = numbered(self.script.content)
        return self._numbering


class Observer:
    """Observes all runs of a transaction. ``fault`` is the first failure; with ``record``,
    ``events`` has all steps.
    """

    def __init__(self, *, record: bool = False) -> None:
        self.fault: RunFault | None = None
        self.record: Final = record
        self.events: list[Event] = []
        self.known: dict[int, tuple[LetNode, int]] = {}
        """The number of events before the evaluation of each name, by ``id``."""
        self._runs: list[ObservedRun] = []

    def machine(
        self,
        script: Script,
        library: Library,
        context: CallContext,
        limit: int,
        trace: Trace | None,
        watch: Callable[[], None] | None,
    ) -> ObservedMachine:
        """Return the machine for an observed run."""
        run = ObservedRun(script, _owner_of(context))
        return ObservedMachine(self, run, library, context, limit, trace, watch)

    def begin(self, run: ObservedRun) -> None:
        """Handle the start of a run, nested in the current one."""
        self._runs.append(run)

    def end(self) -> None:
        """Handle the end of the innermost run."""
        self._runs.pop()

    def failed(self, message: str) -> None:
        """Handle an error in the innermost run; later errors in outer runs are ignored."""
        if self.fault is None:
            spots = [spot for run in reversed(self._runs) for spot in _spots(run)]
            self.fault = RunFault(message, tuple(spots[:MAX_SPOTS]))

    def denied(self, run: ObservedRun) -> None:
        """Handle the result ``false`` of a verifier or asset script."""
        if self.fault is None and run.deciding is not None:
            expression, scope = run.deciding
            spot = _spot(run, [(expression, expression, scope)], ())
            outer = [spot for run in reversed(self._runs) for spot in _spots(run)]
            self.fault = RunFault(DENIED, tuple([spot, *outer][:MAX_SPOTS]))

    def note(
        self, run: ObservedRun, expression: Expression, scope: MachineScope, value: Value | None
    ) -> None:
        """Record a step if recording is on."""
        if self.record and len(self.events) < MAX_EVENTS:
            depth = sum(len(each.frames) for each in self._runs)
            self.events.append(Event(run, depth, expression, scope, value))


class ObservedMachine(Machine):
    """The exact evaluator, notifying an observer."""

    __slots__ = ("_observer", "_run_observed")

    def __init__(
        self,
        observer: Observer,
        run: ObservedRun,
        library: Library,
        context: CallContext,
        limit: int,
        trace: Trace | None,
        watch: Callable[[], None] | None,
    ) -> None:
        super().__init__(library, context, limit, trace, watch)
        self._observer = observer
        self._run_observed = run

    def _finish(self, steps: Steps) -> tuple[Value, int]:
        observer, run = self._observer, self._run_observed
        observer.begin(run)
        try:
            result = super()._finish(steps)
        except EvaluationError as error:
            observer.failed(error.message)
            raise
        finally:
            observer.end()
        if result[0] is False:
            observer.denied(run)
        return result

    def _enter(self, node: Node, limit: int, scope: MachineScope) -> Steps:
        node = lifted_node(node)
        expression = _expression_of(node)
        steps = super()._enter(node, limit, scope)
        if expression is None:
            return steps
        return self._observed(expression, node, steps, scope)

    def _observed(
        self, expression: Expression, node: Node, steps: Steps, scope: MachineScope
    ) -> Steps:
        run, observer = self._run_observed, self._observer
        run.open.append((expression, node, scope))
        run.entered += 1
        before = run.entered
        observer.note(run, expression, scope, None)
        result: State = yield from steps
        run.open.pop()
        value = result[0]
        if is_value(value):
            observer.note(run, expression, scope, value)
            decides = isinstance(expression, Call) or run.entered == before
            if isinstance(value, bool) and decides and expression in run.numbering:
                run.deciding = expression, scope
        return result

    def _let(self, node: Ref, let: LetNode, limit: int, scope: MachineScope) -> Steps:
        is_new = not is_value(let.value)
        result = yield from super()._let(node, let, limit, scope)
        if is_new and self._observer.record and is_value(let.value):
            self._observer.known[id(let)] = let, len(self._observer.events)
        return result

    def _apply(self, node: CallNode, started: list[Node], limit: int, scope: MachineScope) -> Steps:
        frames = self._run_observed.frames
        of_script = (
            isinstance(node.function, str)
            and node.function not in self._library.named
            and find(scope, (True, node.function)) is not None
        )
        if of_script:
            values: tuple[Value, ...] = tuple(node.arguments)  # type: ignore[arg-type]
            frames.append(_Frame(node.source, scope, values))
        result = yield from super()._apply(node, started, limit, scope)
        if of_script:
            frames.pop()
        return result


def _owner_of(context: CallContext) -> bytes:
    """Return the owner of the script; empty without a chain."""
    try:
        this = context.environment.this()
    except EvaluationError:
        return b""
    return this.id if isinstance(this, AssetInfo) else this


def _expression_of(node: Node) -> Expression | None:
    """Return the expression of a node, or ``None`` for a constant."""
    if isinstance(node, CallNode | IfNode | GetNode | BlockNode):
        return node.source
    if is_value(node) or isinstance(node, CONSTANTS):
        return None
    return node  # type: ignore[return-value]


def _spots(run: ObservedRun) -> list[Spot]:
    """Return the positions of a run: in its innermost function, then at the call of that, etc."""
    spots = []
    stack = run.open
    for frame in reversed(run.frames):
        spots.append(_spot(run, stack, frame.parameters))
        stack = [(frame.call, frame.call, frame.caller_scope)]
        if frame.call not in run.numbering:
            return spots
    if not run.frames or stack is not run.open:
        spots.append(_spot(run, stack, ()))
    return spots


def _spot(
    run: ObservedRun,
    stack: list[tuple[Expression, Node, MachineScope]],
    parameters: tuple[Value, ...],
) -> Spot:
    numbering = run.numbering
    for expression, node, scope in reversed(stack):
        number = numbering.of(expression)
        if number is not None:
            values = _values(numbering, expression, node, scope)
            body = numbering.owners[number]
            return Spot(run.script.source, run.owner, number, body, values, parameters)
    return Spot(run.script.source, run.owner, -1, -1, (), parameters)


def _values(
    numbering: Numbering, expression: Expression, node: Node, scope: MachineScope
) -> tuple[tuple[int, Value], ...]:
    """Return the known values of the names in an expression, and of the arguments of a call."""
    found: dict[int, Value] = {}
    if isinstance(node, CallNode):
        for argument, source in zip(node.arguments, node.source.arguments, strict=False):
            number = numbering.of(source)
            if number is not None and is_value(argument) and not isinstance(source, CONSTANTS):
                found[number] = argument
    for inner in numbering.inside(expression):
        if len(found) >= MAX_VALUES:
            break
        number = numbering.of(inner)
        if isinstance(inner, Ref) and number is not None and number not in found:
            value = value_of(inner.name, scope)
            if value is not None:
                found[number] = value
    return tuple(sorted(found.items()))[:MAX_VALUES]


def value_of(name: str, scope: MachineScope) -> Value | None:
    """Return the value of a name, or ``None`` if it is not evaluated."""
    link = find(scope, (False, name))
    if link is None or not isinstance(link.declaration, LetNode):
        return None
    value = link.declaration.value
    return value if is_value(value) else None


def lets_at(observer: Observer, number: int) -> list[LetNode]:
    """Return the names in the scope of an event that had a value by then, innermost first."""
    event = observer.events[number]
    found: list[LetNode] = []
    hidden: set[str] = set()
    link: Scope[LetNode | Func] | None = event.scope
    for _ in range(MAX_LINKS):
        if link is None or len(found) >= MAX_VALUES:
            break
        let = link.declaration
        if isinstance(let, LetNode) and let.name not in hidden and let.name[:1] not in "$@":
            hidden.add(let.name)
            _, since = observer.known.get(id(let), (let, 0))
            if is_value(let.value) and since <= number:
                found.append(let)
        link = link.outer
    return found
