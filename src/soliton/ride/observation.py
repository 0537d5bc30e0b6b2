"""What happens inside of runs, for those who ask: where a script broke off, and each step before.

What lives here: the observer, the machine that tells it, and where a run stood when it ended badly,
as numbers of expressions. What does not: what these numbers are in a text (``source_map``), and
traces in the reference's form (``trace``).

Who does not ask pays nothing: the fast evaluator knows nothing of this, and a run that is observed
takes a machine of its own. Runs within one another (a dApp that calls another) share an observer.
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
"""Steps of a recording; a run has 52,000 units of complexity, and most expressions cost none."""
MAX_SPOTS: Final = 50
"""Functions that are told of a fault, the innermost first."""
MAX_VALUES: Final = 20
"""Values that are told of each."""
MAX_LINKS: Final = 1_000
"""Declarations that are looked at for names with values."""
SAID_NO: Final = "the script said no"


class Spot(msgspec.Struct, frozen=True):
    """Where a run stands in one function of one script: ``node`` is the number of an expression,
    ``body`` that of the function around it (-1 for neither). ``values`` are those of expressions
    inside, ``parameters`` those of the function.
    """

    script: bytes
    owner: bytes
    """The address of the account, or the id of the asset, whose script it is."""
    node: int
    body: int
    values: tuple[tuple[int, Value], ...] = ()
    parameters: tuple[Value, ...] = ()


class RunFault(msgspec.Struct, frozen=True):
    """Why a run ended badly, and where: the innermost spot first, then who called."""

    words: str
    spots: tuple[Spot, ...]


class Event(msgspec.Struct, frozen=True):
    """An expression is entered, or left with a value (``None``: entered)."""

    run: ObservedRun
    depth: int
    """Calls of functions around it, those of other dApps included."""
    expression: Expression
    scope: MachineScope
    value: Value | None


class _Frame:
    """A function of the script that runs: from where it was called, and with what."""

    __slots__ = ("call", "caller_scope", "parameters")

    def __init__(
        self, call: Call, caller_scope: MachineScope, parameters: tuple[Value, ...]
    ) -> None:
        self.call = call
        self.caller_scope = caller_scope
        self.parameters = parameters


class ObservedRun:
    """One run of one script while it goes on."""

    __slots__ = ("_numbering", "deciding", "entered", "frames", "open", "owner", "script")

    def __init__(self, script: Script, owner: bytes) -> None:
        self.script: Final = script
        self.owner: Final = owner
        self.open: list[tuple[Expression, Node, MachineScope]] = []
        self.frames: list[_Frame] = []
        self.entered = 0
        self.deciding: tuple[Expression, MachineScope] | None = None
        """The last question that was answered with yes or no."""
        self._numbering: Numbering | None = None

    @property
    def numbering(self) -> Numbering:
        """The numbers of the script's expressions."""
        if self._numbering is None:
            self._numbering = numbered(self.script.content)
        return self._numbering


class Observer:
    """Is told of all runs of a transaction. ``fault`` is the first bad end; with ``record`` all
    steps are kept in ``events``.
    """

    def __init__(self, *, record: bool = False) -> None:
        self.fault: RunFault | None = None
        self.record: Final = record
        self.events: list[Event] = []
        self.known: dict[int, tuple[LetNode, int]] = {}
        """When a name got its value, by its identity: the number of events before it."""
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
        """What runs a script and tells of it."""
        run = ObservedRun(script, _owner_of(context))
        return ObservedMachine(self, run, library, context, limit, trace, watch)

    def begin(self, run: ObservedRun) -> None:
        """A run begins, inside of the last one that has not ended."""
        self._runs.append(run)

    def end(self) -> None:
        """The innermost run has ended."""
        self._runs.pop()

    def failed(self, words: str) -> None:
        """The innermost run ends badly; what that leads to further out counts no more."""
        if self.fault is None:
            spots = [spot for run in reversed(self._runs) for spot in _spots(run)]
            self.fault = RunFault(words, tuple(spots[:MAX_SPOTS]))

    def denied(self, run: ObservedRun) -> None:
        """A verifier or the script of an asset has said no."""
        if self.fault is None and run.deciding is not None:
            expression, scope = run.deciding
            spot = _spot(run, [(expression, expression, scope)], ())
            outer = [spot for run in reversed(self._runs) for spot in _spots(run)]
            self.fault = RunFault(SAID_NO, tuple([spot, *outer][:MAX_SPOTS]))

    def note(
        self, run: ObservedRun, expression: Expression, scope: MachineScope, value: Value | None
    ) -> None:
        """Keep a step where that is wanted."""
        if self.record and len(self.events) < MAX_EVENTS:
            depth = sum(len(each.frames) for each in self._runs)
            self.events.append(Event(run, depth, expression, scope, value))


class ObservedMachine(Machine):
    """The exact evaluator, which tells an observer what it does."""

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
            asks = isinstance(expression, Call) or run.entered == before
            if isinstance(value, bool) and asks and expression in run.numbering:
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
    """Whose script it is; nobody's where there is no chain."""
    try:
        this = context.environment.this()
    except EvaluationError:
        return b""
    return this.id if isinstance(this, AssetInfo) else this


def _expression_of(node: Node) -> Expression | None:
    """The expression of a script that a node was made of; constants tell nothing."""
    if isinstance(node, CallNode | IfNode | GetNode | BlockNode):
        return node.source
    if is_value(node) or isinstance(node, CONSTANTS):
        return None
    return node  # type: ignore[return-value]


def _spots(run: ObservedRun) -> list[Spot]:
    """Where a run stands: in its innermost function, then where that was called, and so on."""
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
    """What is known of the names in an expression, and of the arguments of a call."""
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
    """The value of a name, where it is known."""
    place = find(scope, (False, name))
    if place is None or not isinstance(place.declaration, LetNode):
        return None
    value = place.declaration.value
    return value if is_value(value) else None


def lets_at(observer: Observer, number: int) -> list[LetNode]:
    """What an event sees and what had a value by then, the innermost first."""
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
