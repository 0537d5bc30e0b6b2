"""Running scripts: expressions, verifiers and the callable functions of dApps.

What lives here: the way in (``evaluate``), the choice between the fast and the exact evaluator, and
the cache of compiled programs. What does not: what a result means (``soliton.ledger``).

A run first takes the fast way (``evaluator_compiler``). When that does not end in a plain success,
or where it cannot be taken - a trace is wanted, older rules of scope hold, the program is too deep,
the limit is zero - the exact machine (``evaluator_machine``) decides. After calls of other scripts
the repeated run gets the answers of the first one, so nothing happens twice.

No script can exhaust Python's stack: the depth of a program is known before it runs, runs that call
one another share an allowance of frames, and beyond it the machine takes over, which keeps its own
stack. Compiled code nests Python frames only, never frames of C.

Source of the rules: wavesplatform/Waves
``lang/shared/src/main/scala/com/wavesplatform/lang/v1/evaluator/{EvaluatorV2,ContractEvaluator}.scala``
and ``node/src/main/scala/com/wavesplatform/transaction/smart/script/ScriptRunner.scala``.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Final

import msgspec

from soliton.caching import cached_by_weight
from soliton.ride.environment import CURRENT_SWITCHES, CallContext, Environment, Switches
from soliton.ride.errors import EvaluationError, NotCallable
from soliton.ride.evaluator_compiler import Entry, Program, TooDeep
from soliton.ride.evaluator_library import Kind, Library, load_library
from soliton.ride.evaluator_machine import EXTENDED, Machine
from soliton.ride.expressions import (
    AnnotatedFunction,
    Block,
    Call,
    DApp,
    Expression,
    Func,
    GetField,
    If,
    Let,
)
from soliton.ride.observation import Observer
from soliton.ride.script import (
    TREE_FACTOR,
    TREE_OVERHEAD,
    Script,
    expressions,
    nodes,
    parse_script,
)
from soliton.ride.trace import INVOKED_FUNCTION, Trace
from soliton.ride.values import Value

NO_LIMIT: Final = 2**31 - 1
"""What the reference takes where nothing limits a run."""
MAX_KEPT_BYTES: Final = 192 * 1024**2
"""What programs that are kept take, with the trees that they are made of."""
PROGRAM_FACTOR: Final = 26
"""The program of a script takes so many times its bytes, at most, once all of it has run."""
MAX_FRAMES: Final = 6_000
"""Frames that runs within one another may take; each level of nested calls takes a few more."""
RECURSION_LIMIT: Final = 10_000
"""Python's own limit once a script has run. The frames of scripts live on the heap. But the limit
is that of the whole process, and up to Python 3.11 it is what stops C code that recurses as well:
decoders of JSON in other threads, which take up to 400 bytes of their stack a level. So it must fit
into the smallest stack: 8 MiB, or what programs ask for (``soliton.cli.process``).
"""
_TREE_DEPTH: Final = 400
"""Compilation itself recurses; what is nested deeper than this is not compiled."""
_UNIT: Final = "unit"


class Outcome(msgspec.Struct, frozen=True):
    """What a run came to: its value, and the complexity that it took."""

    value: Value
    spent: int


class Invocation(msgspec.Struct, frozen=True):
    """Which function of a dApp to call: with which arguments, and what its annotation is told."""

    function: str
    arguments: tuple[Value, ...]
    argument: Value


class Setting(msgspec.Struct, frozen=True):
    """Under which rules a script runs. ``kind`` is what it belongs to; ``trace`` collects steps.
    ``watch`` is called before functions that take long, and raises to stop the run
    (``Interrupted`` for one). An ``observer`` is told of every step.
    """

    limit: int = NO_LIMIT
    switches: Switches = CURRENT_SWITCHES
    kind: Kind = Kind.ACCOUNT
    trace: Trace | None = None
    watch: Callable[[], None] | None = None
    observer: Observer | None = None


def evaluate(
    script: Script,
    environment: Environment,
    subject: Callable[[], Value],
    setting: Setting = Setting(),  # noqa: B008 - it is frozen
) -> Outcome:
    """Ask an expression or the verifier of a dApp about a transaction or an order.

    ``subject`` makes the object that the script sees of it. Raises ``EvaluationError``, which tells
    the complexity spent. A dApp without a verifier cannot be asked.
    """
    content = script.content
    if not isinstance(content, DApp):
        context = _context(script, environment, setting, subject)
        library = _library(script, environment, setting.kind)
        return _run(script, None, library, context, setting)
    if content.verifier is None:
        raise EvaluationError("the dApp has no verifier")
    value = subject()
    call = Invocation(content.verifier.function.name, (value,), value)
    return _run_annotated(script, content.verifier, call, environment, setting)


def invoke(
    script: Script,
    environment: Environment,
    invocation: Invocation,
    setting: Setting = Setting(),  # noqa: B008 - it is frozen
) -> Outcome:
    """Call a callable function of a dApp: the value is its actions, as it returned them.

    Raises ``EvaluationError``, which tells the complexity spent.
    """
    annotated = _find_callable(script, invocation)
    return _run_annotated(script, annotated, invocation, environment, setting)


def watch_runs(observer: Observer | None) -> None:
    """Tell an observer of all runs in this process that nobody else observes, or nobody any more.

    For tools that measure what scripts do: no run takes the fast way meanwhile.
    """
    _watching.observer = observer


def check_callable(script: Script, invocation: Invocation) -> None:
    """Raise ``NotCallable`` for a function that a dApp does not have, as ``invoke`` would."""
    _find_callable(script, invocation)


def _find_callable(script: Script, invocation: Invocation) -> AnnotatedFunction:
    content = script.content
    name = invocation.function
    callables = content.callables if isinstance(content, DApp) else ()
    for each in callables:
        if each.function.name == name:
            wanted, given = len(each.function.parameters), len(invocation.arguments)
            if wanted == given:
                return each
            raise NotCallable(f"function '{name} takes {wanted} args but {given} were(was) given")
    if isinstance(content, DApp) and any(
        isinstance(each, Func) and each.name == name for each in content.declarations
    ):
        raise NotCallable(
            f"function '{name} exists in the script but is not marked as @Callable, "
            "therefore cannot not be invoked"
        )
    raise NotCallable(f"@Callable function '{name}' doesn't exist in the script")


def _run_annotated(
    script: Script,
    annotated: AnnotatedFunction,
    call: Invocation,
    environment: Environment,
    setting: Setting,
) -> Outcome:
    context = _context(script, environment, setting)
    library = _library(script, environment, Kind.DAPP)
    if setting.trace is not None:
        setting.trace.note(INVOKED_FUNCTION, call.function)
        setting.trace.note(annotated.invocation, call.argument)
    return _run(script, (annotated, call), library, context, setting)


def _run(
    script: Script,
    called: tuple[AnnotatedFunction, Invocation] | None,
    library: Library,
    context: CallContext,
    setting: Setting,
) -> Outcome:
    _let_the_stack_grow()
    if _watching.observer is not None and setting.observer is None:
        setting = msgspec.structs.replace(setting, observer=_watching.observer)
    entry = _entry(script, called, library, setting)
    if entry is not None and _allowance.used + entry.depth <= MAX_FRAMES:
        outcome = _run_quickly(entry, called, context, setting)
        if outcome is not None:
            return outcome
    return _run_exactly(script, called, library, context, setting)


def _run_quickly(
    entry: Entry,
    called: tuple[AnnotatedFunction, Invocation] | None,
    context: CallContext,
    setting: Setting,
) -> Outcome | None:
    """The outcome of a plain success, ``None`` for anything else."""
    _allowance.used += entry.depth
    try:
        if called is None:
            value = entry.run(context)
        else:
            value = entry.run(context, called[1].argument, called[1].arguments)
    except EvaluationError:
        return None
    finally:
        _allowance.used -= entry.depth
    return Outcome(value, setting.limit - context.remaining)


def _run_exactly(
    script: Script,
    called: tuple[AnnotatedFunction, Invocation] | None,
    library: Library,
    context: CallContext,
    setting: Setting,
) -> Outcome:
    limit, trace, watch = setting.limit, setting.trace, setting.watch
    if setting.observer is None:
        machine = Machine(library, context, limit, trace, watch)
    else:
        machine = setting.observer.machine(script, library, context, limit, trace, watch)
    content = script.content
    if called is None:
        assert not isinstance(content, DApp)
        value, remaining = machine.run(content)
    else:
        assert isinstance(content, DApp)
        annotated, call = called
        value, remaining = machine.run_function(
            content.declarations, annotated, call.argument, call.arguments
        )
    return Outcome(value, setting.limit - remaining)


def _context(
    script: Script,
    environment: Environment,
    setting: Setting,
    subject: Callable[[], Value] | None = None,
) -> CallContext:
    return CallContext(
        environment,
        script.version,
        setting.switches,
        setting.limit,
        setting.kind is Kind.ASSET,
        subject,
        setting.watch,
    )


def _library(script: Script, environment: Environment, kind: Kind) -> Library:
    return load_library(script.version, kind, environment.chain_id)


# --- Python's stack -------------------------------------------------------------------------------


class _Allowance(threading.local):
    """How many frames the runs of this thread may take together at their deepest."""

    used = 0


def _let_the_stack_grow() -> None:
    """Raise Python's limit on recursion, for good.

    To lower it again would hit other threads that are deeper at that moment: Python ends the whole
    process where one of them is too deep to raise an error.
    """
    if sys.getrecursionlimit() < RECURSION_LIMIT:
        sys.setrecursionlimit(RECURSION_LIMIT)


_allowance: Final = _Allowance()


class _Watching:
    """Who is told of all runs."""

    observer: Observer | None = None


_watching: Final = _Watching()


# --- programs -------------------------------------------------------------------------------------


def _entry(
    script: Script,
    called: tuple[AnnotatedFunction, Invocation] | None,
    library: Library,
    setting: Setting,
) -> Entry | None:
    """The compiled program, ``None`` where only the machine will do."""
    switches = setting.switches
    if not script.source:
        # Made for one run: to compile it would take longer than the run.
        return None
    if setting.trace is not None or setting.observer is not None:
        return None
    if setting.limit <= 0 or not switches.lexical_scope:
        return None
    if called is not None and called[0].function.name in library.named:
        return None
    compiled = _compiled(script.source, library.key, switches.new_complexity)
    if called is None:
        return compiled.whole()
    content = script.content
    return compiled.function(called[0], isinstance(content, DApp) and called[0] is content.verifier)


class _Compiled:
    """A script's program, and which of its entries cannot be had."""

    __slots__ = ("_content", "_lock", "_missing", "_program", "_whole")

    def __init__(self, content: Expression | DApp, library: Library, new: bool) -> None:
        self._content = content
        self._lock = threading.RLock()
        self._missing: set[tuple[str, bool]] = set()
        self._whole: Entry | None = None
        self._program: Program | None = None
        survey = _Survey(content)
        if survey.depth <= _TREE_DEPTH and not survey.hides_unit:
            declarations = content.declarations if isinstance(content, DApp) else ()
            self._program = Program(library, new, survey.calls_scripts, declarations)

    def whole(self) -> Entry | None:
        """The entry of a plain expression."""
        if self._program is None or isinstance(self._content, DApp):
            return None
        with self._lock:
            if self._whole is None:
                try:
                    self._whole = self._program.expression(self._content)
                except TooDeep:
                    self._program = None
            return self._whole

    def function(self, annotated: AnnotatedFunction, verifies: bool) -> Entry | None:
        """The entry of a function of a dApp."""
        key = (annotated.function.name, verifies)
        if self._program is None or key in self._missing:
            return None
        with self._lock:
            try:
                return self._program.function(annotated, verifies)
            except TooDeep:
                self._missing.add(key)
                return None


def _weight(source: bytes, library_key: tuple[int, Kind, int], new: bool) -> int:
    del library_key, new  # they choose, and take no room
    return TREE_OVERHEAD + (TREE_FACTOR + PROGRAM_FACTOR) * len(source)


@cached_by_weight(MAX_KEPT_BYTES, _weight)
def _compiled(source: bytes, library_key: tuple[int, Kind, int], new: bool) -> _Compiled:
    return _Compiled(parse_script(source).content, load_library(*library_key), new)


class _Survey:
    """What has to be known of a tree before it is compiled: its depth (blocks do not count, they
    are taken one after the other), whether it calls other scripts, and whether it gives the name
    ``unit`` to something else, which bodies of library functions would have to see.
    """

    __slots__ = ("calls_scripts", "depth", "hides_unit")

    def __init__(self, content: Expression | DApp) -> None:
        self.depth = _depth(content)
        self.calls_scripts = False
        self.hides_unit = False
        if isinstance(content, DApp):
            for declaration in content.declarations:
                self._look_at(declaration)
            for each in (*content.callables, *filter(None, (content.verifier,))):
                self._look_at(each.function)
                self.hides_unit |= each.invocation == _UNIT
        for node in nodes(content):
            if isinstance(node, Block):
                self._look_at(node.declaration)
            elif isinstance(node, Call) and node.function in EXTENDED:
                self.calls_scripts = True

    def _look_at(self, declaration: Let | Func) -> None:
        if isinstance(declaration, Let):
            self.hides_unit |= declaration.name == _UNIT
        else:
            self.hides_unit |= _UNIT in declaration.parameters


def _depth(content: Expression | DApp) -> int:
    """How deep expressions nest; the body of a block is as deep as the block."""
    deepest = 0
    stack = [(each, 1) for each in expressions(content)]
    while stack:
        node, depth = stack.pop()
        deepest = max(deepest, depth)
        match node:
            case Block(declaration, body):
                stack.append((body, depth))
                inside = declaration.value if isinstance(declaration, Let) else declaration.body
                stack.append((inside, depth + 1))
            case If(condition, then, otherwise):
                stack += ((condition, depth + 1), (then, depth + 1), (otherwise, depth + 1))
            case GetField(inner):
                stack.append((inner, depth + 1))
            case Call(_, arguments):
                stack += ((argument, depth + 1) for argument in arguments)
            case _:
                pass
    return deepest
