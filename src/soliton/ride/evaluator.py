"""Evaluation of scripts: expressions, verifiers and the callable functions of dApps.

What lives here: the entry points, the choice between the fast and the exact evaluator, and the
cache of compiled programs. What does not: the interpretation of results (``soliton.ledger``).

A run first uses the fast evaluator (``evaluator_compiler``). If that reaches the limit, fails by
older rules, or cannot be used (for a trace, older rules of scope, a deep program or a limit of
zero), the exact machine (``evaluator_machine``), which is much slower, repeats the run. If the
first run has called other scripts, the second one reuses their results, so that nothing happens
twice.

No script can exhaust Python's stack. The depth of a program is known before it runs, nested runs
share a limit of frames, and beyond it the machine takes over, which has its own stack. Compiled
code nests Python frames only, never C frames.

Source of the rules: wavesplatform/Waves
``lang/shared/src/main/scala/com/wavesplatform/lang/v1/evaluator/{EvaluatorV2,ContractEvaluator}.scala``
and ``node/src/main/scala/com/wavesplatform/transaction/smart/script/ScriptRunner.scala``.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from contextvars import ContextVar
from typing import Final

import msgspec

from soliton.caching import cached_by_weight
from soliton.ride.compiler.library import ScriptKind
from soliton.ride.environment import CURRENT_SWITCHES, CallContext, Environment, Switches
from soliton.ride.errors import (
    EvaluationError,
    EvaluationEscaped,
    FailOrReject,
    InvocationFailed,
    NativeCrash,
    NotCallable,
    ThrownError,
)
from soliton.ride.evaluator_code import Escaped, Undecided
from soliton.ride.evaluator_compiler import Entry, Program, TooDeep
from soliton.ride.evaluator_library import Library, load_library
from soliton.ride.evaluator_machine import Machine
from soliton.ride.expressions import (
    AnnotatedFunction,
    Block,
    Call,
    DApp,
    Expression,
    Func,
    Let,
    children,
    declared_expression,
)
from soliton.ride.functions.catalogue import CALLS_OF_DAPPS
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
"""The reference's limit for runs without a limit."""
MAX_CACHED_BYTES: Final = 192 * 1024**2
"""The size of the cache of programs, including their trees."""
PROGRAM_FACTOR: Final = 26
"""The largest size of a program in memory, per byte of its script, once all of it has run."""
MAX_FRAMES: Final = 6_000
"""The limit of frames of nested runs; each level of nested calls takes a few more."""
RECURSION_LIMIT: Final = 10_000
"""Python's recursion limit once a script has run. Frames of scripts are on the heap. But the limit
applies to the whole process, and up to Python 3.11 also to recursive C code, such as JSON decoders
in other threads, which use up to 400 bytes of stack per level. So it must fit into the smallest
stack: 8 MiB, or the size that programs set (``soliton.cli.process``).
"""
_TREE_DEPTH: Final = 400
"""The limit of nesting for compilation, which recurses."""
_UNIT: Final = "unit"


class Outcome(msgspec.Struct, frozen=True):
    """The result of a run, and the complexity spent."""

    value: Value
    spent: int


class Invocation(msgspec.Struct, frozen=True):
    """A call of a dApp's function; ``argument`` is that of its annotation."""

    function: str
    arguments: tuple[Value, ...]
    argument: Value


class Setting(msgspec.Struct, frozen=True):
    """The options of a run. ``trace`` collects steps, and ``observer`` is notified of each.
    ``watch`` is called regularly (``environment.PORTION``): it may raise to cancel the run (such as
    with ``Interrupted``), or leave it for a while (``soliton.steps.pause``).
    """

    limit: int = NO_LIMIT
    switches: Switches = CURRENT_SWITCHES
    kind: ScriptKind = ScriptKind.ACCOUNT
    trace: Trace | None = None
    watch: Callable[[], None] | None = None
    observer: Observer | None = None


def evaluate(
    script: Script,
    environment: Environment,
    subject: Callable[[], Value],
    setting: Setting = Setting(),  # noqa: B008 - it is frozen
) -> Outcome:
    """Evaluate an expression or the verifier of a dApp for a transaction or an order.

    ``subject`` returns the object of that. Raises ``EvaluationError`` with the complexity spent,
    also for a dApp without a verifier.
    """
    content = script.content
    if not isinstance(content, DApp):
        context = _context(script, environment, setting, subject)
        library = load_library(script.version, setting.kind, environment.chain_id)
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
    """Call a callable function of a dApp; the value is the returned actions.

    Raises ``EvaluationError`` with the complexity spent.
    """
    annotated = _find_callable(script, invocation)
    return _run_annotated(script, annotated, invocation, environment, setting)


def observe_all_runs(observer: Observer | None) -> None:
    """Set the observer of all runs in this process that have none of their own; ``None`` ends it.

    For tools that measure scripts: no run uses the fast evaluator meanwhile.
    """
    _default.observer = observer


def check_callable(script: Script, invocation: Invocation) -> None:
    """Raise ``NotCallable`` if ``invoke`` would."""
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
    library = load_library(script.version, ScriptKind.DAPP, environment.chain_id)
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
    _raise_recursion_limit()
    if _default.observer is not None and setting.observer is None:
        setting = msgspec.structs.replace(setting, observer=_default.observer)
    entry = _entry(script, called, library, setting)
    if entry is not None and _frames.get() + entry.depth <= MAX_FRAMES:
        outcome = _run_program(entry, called, context, setting)
        if outcome is not None:
            return outcome
    return _run_machine(script, called, library, context, setting)


def _run_program(
    entry: Entry,
    called: tuple[AnnotatedFunction, Invocation] | None,
    context: CallContext,
    setting: Setting,
) -> Outcome | None:
    """Return the outcome, or raise its error; return ``None`` if the machine must decide."""
    outer = _frames.set(_frames.get() + entry.depth)
    try:
        if called is None:
            value = entry.run(context)
        else:
            value = entry.run(context, called[1].argument, called[1].arguments)
    except EvaluationError as error:
        failure = _settled(error, context, setting)
        if failure is None:
            return None
    else:
        return Outcome(value, setting.limit - context.left)
    finally:
        _frames.reset(outer)
    failure.spent = setting.limit - failure.remaining
    try:
        # Without the frames of the run, of which there may be thousands.
        raise failure.with_traceback(None)
    finally:
        del failure  # It would be in a cycle with this frame, which its traceback has.


def _settled(
    error: EvaluationError, context: CallContext, setting: Setting
) -> EvaluationError | None:
    """Return the error of a run as the machine would raise it, or ``None`` if that must decide."""
    switches = setting.switches
    if not switches.new_complexity or isinstance(error, Undecided):
        return None
    if isinstance(error, ThrownError) and not switches.fixed_thrown_error:
        return None
    if isinstance(error, FailOrReject | InvocationFailed):
        return error
    if isinstance(error, Escaped):
        error = EvaluationEscaped(error.message)
        error.remaining = setting.limit
    elif isinstance(error, NativeCrash | EvaluationEscaped):
        error = NativeCrash(error.message)
        error.remaining = 0
    else:
        error.remaining = context.left
    return error


def _run_machine(
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
        setting.kind is ScriptKind.ASSET,
        subject,
        setting.watch,
    )


# --- Python's stack -------------------------------------------------------------------------------


_frames: Final = ContextVar("frames", default=0)
"""The frames that the nested runs of a transaction may use at their deepest. Others may run while
this one is left.
"""


def _raise_recursion_limit() -> None:
    """Raise Python's recursion limit permanently.

    Lowering it again would affect other threads that are deeper at that moment: Python aborts the
    process if one of them is too deep to raise an error.
    """
    if sys.getrecursionlimit() < RECURSION_LIMIT:
        sys.setrecursionlimit(RECURSION_LIMIT)


class _Default:
    """The observer of runs that have none of their own."""

    observer: Observer | None = None


_default: Final = _Default()


# --- programs -------------------------------------------------------------------------------------


def _entry(
    script: Script,
    called: tuple[AnnotatedFunction, Invocation] | None,
    library: Library,
    setting: Setting,
) -> Entry | None:
    """Return the entry of the compiled program, or ``None`` if only the machine can be used."""
    switches = setting.switches
    if not script.source:
        # Made for a single run, which takes less time than compiling would.
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
    """A script's program, and the entries that are too deep to compile."""

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
        """Return the entry of an expression."""
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
        """Return the entry of a dApp's function."""
        key = (annotated.function.name, verifies)
        if self._program is None or key in self._missing:
            return None
        with self._lock:
            try:
                return self._program.function(annotated, verifies)
            except TooDeep:
                self._missing.add(key)
                return None


def _weight(source: bytes, library_key: tuple[int, ScriptKind, int], new: bool) -> int:
    del library_key, new  # They select the program, and do not affect its size.
    return TREE_OVERHEAD + (TREE_FACTOR + PROGRAM_FACTOR) * len(source)


@cached_by_weight(MAX_CACHED_BYTES, _weight)
def _compiled(source: bytes, library_key: tuple[int, ScriptKind, int], new: bool) -> _Compiled:
    return _Compiled(parse_script(source).content, load_library(*library_key), new)


class _Survey:
    """The properties of a tree that decide its compilation: its depth (not counting blocks, which
    do not recurse), whether it calls other scripts, and whether it redefines the name ``unit``,
    which would affect the bodies of library functions.
    """

    __slots__ = ("calls_scripts", "depth", "hides_unit")

    def __init__(self, content: Expression | DApp) -> None:
        self.depth = _depth(content)
        self.calls_scripts = False
        self.hides_unit = False
        if isinstance(content, DApp):
            for declaration in content.declarations:
                self._visit(declaration)
            for each in (*content.callables, *filter(None, (content.verifier,))):
                self._visit(each.function)
                self.hides_unit |= each.invocation == _UNIT
        for node in nodes(content):
            if isinstance(node, Block):
                self._visit(node.declaration)
            elif isinstance(node, Call) and node.function in CALLS_OF_DAPPS:
                self.calls_scripts = True

    def _visit(self, declaration: Let | Func) -> None:
        if isinstance(declaration, Let):
            self.hides_unit |= declaration.name == _UNIT
        else:
            self.hides_unit |= _UNIT in declaration.parameters


def _depth(content: Expression | DApp) -> int:
    """Return the depth of nesting; the body of a block has the depth of the block."""
    depth, level = 0, list(expressions(content))
    while level:
        depth += 1
        below: list[Expression] = []
        while level:
            node = level.pop()
            if isinstance(node, Block):
                level.append(node.body)
                below.append(declared_expression(node.declaration))
            else:
                below += children(node)
        level = below
    return depth
