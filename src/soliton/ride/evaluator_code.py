"""The closures to which scripts are compiled.

What lives here: a factory of code for each kind of node. What does not: their selection, and the
resolution of names (``evaluator_compiler``).

Code receives a frame and the context of the run. A frame is a list: the outer frame, then the
arguments and ``let`` values of a function call, ``None`` if not yet evaluated. Calls with one and
two arguments have code of their own where that saves time.

Source of the rules: wavesplatform/Waves
``lang/shared/src/main/scala/com/wavesplatform/lang/v1/evaluator/EvaluatorV2.scala``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeAlias, Union

from soliton.ride.environment import MAX_FREE_CALLS, CallContext
from soliton.ride.errors import EvaluationError, EvaluationEscaped
from soliton.ride.evaluator_library import Implementation, Variable
from soliton.ride.functions.printing import plain_text
from soliton.ride.values import UNIT, CaseObject, Value, case_object

Frame: TypeAlias = "list[Cell]"
Cell: TypeAlias = Union[Value, Frame, None]  # noqa: UP007 - it is recursive
Code: TypeAlias = Callable[[Frame, CallContext], Value]


WATCHED_CALLS: Final = 64
"""``watch`` is called once in so many calls that are free."""


class Undecided(EvaluationError):
    """The run is at its limit, or the result is not known here; the machine has to repeat it."""


class Escaped(EvaluationEscaped):
    """A failure outside of numbered functions that is unexpected in the reference."""


def undecided(_frame: Frame, _context: CallContext) -> Value:
    """The code of an expression that cannot succeed."""
    raise Undecided


def failing(message: str, codes: tuple[Code, ...] = ()) -> Code:
    """Return code that fails after the evaluation of some other code."""

    def fail(frame: Frame, context: CallContext) -> Value:
        for code in codes:
            code(frame, context)
        raise EvaluationError(message)

    return fail


def start_code(body: Code, count: int, size: int, new: bool) -> Code:
    """Return code that calls a function of a dApp, whose arguments are in the slot of the outer
    frame.
    """

    def start(frame: Frame, context: CallContext) -> Value:
        arguments: list[Cell] = frame[0]  # type: ignore[assignment]
        # A verifier receives the transaction as an argument too, but usually has no parameter.
        if len(arguments) < count:
            raise Undecided
        before = context.left
        inner: Frame = [frame, *arguments[:count]]
        inner += [None] * (size - len(inner))
        value = body(inner, context)
        if new and context.left == before:
            _charge(context, 1)
        return value

    return start


def _charge(context: CallContext, cost: int) -> None:
    remaining = context.remaining - cost
    if remaining <= 0:
        remaining = _next_portion(context, remaining)
    context.remaining = remaining


def _next_portion(context: CallContext, remaining: int) -> int:
    """Return the remaining complexity of the next portion, after the present one is used up.

    Between portions the run may be cancelled or left. Raises ``Undecided`` at the limit.
    """
    remaining += context.reserve
    if remaining <= 0:
        raise Undecided
    if context.watch is not None:
        context.watch()
    context.left = remaining
    return context.remaining


def constant_code(value: Value) -> Code:
    """Return code for a constant."""

    def constant(_frame: Frame, _context: CallContext) -> Value:
        return value

    return constant


def counted(code: Code) -> Code:
    """Return code that costs one more unit of complexity."""

    def counted(frame: Frame, context: CallContext) -> Value:
        value = code(frame, context)
        remaining = context.remaining - 1
        if remaining <= 0:
            remaining = _next_portion(context, remaining)
        context.remaining = remaining
        return value

    return counted


def variable_code(name: str, variable: Variable) -> Code:
    """Return code for a library variable, whose value depends on the run."""

    def of_run(_frame: Frame, context: CallContext) -> Value:
        known = context.variables
        if name not in known:
            try:
                known[name] = variable(context)
            except EvaluationEscaped as error:
                raise Escaped(error.message) from None
        return known[name]

    return of_run


def argument_code(slot: int, hops: int) -> Code:
    """Return code for an argument of the function ``hops`` levels further out."""

    def near(frame: Frame, _context: CallContext) -> Value:
        return frame[slot]  # type: ignore[return-value]

    def next_to(frame: Frame, _context: CallContext) -> Value:
        return frame[0][slot]  # type: ignore[index, return-value]

    def far(frame: Frame, _context: CallContext) -> Value:
        for _ in range(hops):
            frame = frame[0]  # type: ignore[assignment]
        return frame[slot]  # type: ignore[return-value]

    return (near, next_to, far)[min(hops, 2)]


def let_code(value: Code, slot: int, hops: int) -> Code:
    """Return code for a ``let`` value, which is evaluated at its first use."""

    def near(frame: Frame, context: CallContext) -> Value:
        known = frame[slot]
        if known is None:
            known = frame[slot] = value(frame, context)
        return known  # type: ignore[return-value]

    def far(frame: Frame, context: CallContext) -> Value:
        for _ in range(hops):
            frame = frame[0]  # type: ignore[assignment]
        known = frame[slot]
        if known is None:
            known = frame[slot] = value(frame, context)
        return known  # type: ignore[return-value]

    return far if hops else near


def get_code(owner: Code, field: str) -> Code:
    """Return code for a field of an object."""

    def get(frame: Frame, context: CallContext) -> Value:
        value = owner(frame, context)
        if type(value) is not CaseObject:
            raise EvaluationError(
                f"GETTER of non-case-object {plain_text(value)} with field '{field}"
            )
        if field not in value.fields:
            raise Escaped(f"key not found: {field}")
        return value.fields[field]

    return get


def counted_get_code(owner: Code, field: str) -> Code:
    """Return code for a field, by the older complexity rules."""
    return counted(get_code(owner, field))


def if_code(condition: Code, then: Code, otherwise: Code) -> Code:
    """Return code for a choice."""

    def choose(frame: Frame, context: CallContext) -> Value:
        truth = condition(frame, context)
        if truth is True:
            return then(frame, context)
        if truth is False:
            return otherwise(frame, context)
        raise EvaluationError("Non-boolean result in cond")

    return choose


def counted_if_code(condition: Code, then: Code, otherwise: Code) -> Code:
    """Return code for a choice, by the older complexity rules."""
    # The condition is charged, so that the branch starts with the reference's remaining complexity.
    return if_code(counted(condition), then, otherwise)


def native_code(codes: tuple[Code, ...], cost: int, implementation: Implementation) -> Code:
    """Return code for a call of a numbered function."""
    match codes:
        case (only,):
            return _native_1(only, cost, implementation)
        case (first, second):
            return _native_2(first, second, cost, implementation)

    def call(frame: Frame, context: CallContext) -> Value:
        values = [code(frame, context) for code in codes]
        remaining = context.remaining - cost
        if remaining <= 0:
            remaining = _next_portion(context, remaining)
        context.remaining = remaining
        return implementation(values, context)

    return call


def _native_1(only: Code, cost: int, implementation: Implementation) -> Code:
    def call(frame: Frame, context: CallContext) -> Value:
        value = only(frame, context)
        remaining = context.remaining - cost
        if remaining <= 0:
            remaining = _next_portion(context, remaining)
        context.remaining = remaining
        return implementation((value,), context)

    return call


def _native_2(first: Code, second: Code, cost: int, implementation: Implementation) -> Code:
    def call(frame: Frame, context: CallContext) -> Value:
        left = first(frame, context)
        right = second(frame, context)
        remaining = context.remaining - cost
        if remaining <= 0:
            remaining = _next_portion(context, remaining)
        context.remaining = remaining
        return implementation((left, right), context)

    return call


def with_something_left(code: Code) -> Code:
    """Return code that requires remaining complexity, for functions that run other scripts."""

    def call(frame: Frame, context: CallContext) -> Value:
        value = code(frame, context)
        if context.left <= 0:
            raise Undecided
        return value

    return call


def watched(implementation: Implementation) -> Implementation:
    """Return a function that calls ``watch`` first."""

    def run(arguments: Sequence[Value], context: CallContext) -> Value:
        if context.watch is not None:
            context.watch()
        return implementation(arguments, context)

    return run


def journaled(implementation: Implementation) -> Implementation:
    """Return a function that records its results, in case the run has to be repeated."""

    def call(arguments: Sequence[Value], context: CallContext) -> Value:
        try:
            value = implementation(arguments, context)
        except EvaluationError as error:
            context.journal.append((error, context.left))
            raise
        context.journal.append((value, context.left))
        return value

    return call


FrameMaker: TypeAlias = Callable[[Frame, CallContext], Frame]


def frame_maker(codes: tuple[Code, ...], size: int, hops: int) -> FrameMaker:
    """Return a function that evaluates arguments and creates the frame of the called function."""
    blanks = (None,) * (size - 1 - len(codes))

    def one(frame: Frame, context: CallContext) -> Frame:
        return [frame, codes[0](frame, context), *blanks]

    def two(frame: Frame, context: CallContext) -> Frame:
        return [frame, codes[0](frame, context), codes[1](frame, context), *blanks]

    def many(frame: Frame, context: CallContext) -> Frame:
        made: Frame = [frame]
        for code in codes:
            made.append(code(frame, context))
        made += blanks
        for _ in range(hops):
            made[0] = made[0][0]  # type: ignore[index]
        return made

    if hops == 0 and len(codes) in (1, 2):
        return one if len(codes) == 1 else two
    return many


def free_call(frames: FrameMaker, body: Code) -> Code:
    """Return code for a call by the older complexity rules, which are free. So they call ``watch``,
    as the limit of complexity does not bound the run.
    """

    def call(frame: Frame, context: CallContext) -> Value:
        inner = frames(frame, context)
        context.calls += 1
        if context.calls > MAX_FREE_CALLS:
            raise Undecided
        if context.watch is not None and context.calls % WATCHED_CALLS == 0:
            context.watch()
        return body(inner, context)

    return call


def script_call(frames: FrameMaker, body: Code) -> Code:
    """Return code for a call by the newer complexity rules: one that would be free costs 1."""

    def call(frame: Frame, context: CallContext) -> Value:
        inner = frames(frame, context)
        before = context.remaining + context.reserve
        value = body(inner, context)
        if context.remaining + context.reserve == before:
            _charge(context, 1)
        return value

    return call


def watched_call(call: Code, times: int) -> Code:
    """Return code that calls ``watch`` first, so often: for functions whose bodies have thousands
    of expressions that cost nothing.
    """

    def watched(frame: Frame, context: CallContext) -> Value:
        if context.watch is not None:
            for _ in range(times):
                context.watch()
        return call(frame, context)

    return watched


def fixed_cost_call(frames: FrameMaker, body: Code, cost: int) -> Code:
    """Return code for a call of a named library function by the newer complexity rules: its cost is
    fixed.
    """

    def call(frame: Frame, context: CallContext) -> Value:
        inner = frames(frame, context)
        remaining = context.remaining - cost
        if remaining <= 0:
            remaining = _next_portion(context, remaining)
        context.remaining = remaining
        reserve = context.reserve
        value = body(inner, context)
        context.remaining, context.reserve = remaining, reserve
        return value

    return call


def remembered(implementation: Implementation) -> Implementation:
    """Return a function that keeps its arguments when its result is missing, for the message of
    ``value``.
    """

    def call(arguments: Sequence[Value], context: CallContext) -> Value:
        value = implementation(arguments, context)
        if value is UNIT:
            context.missing = tuple(arguments)
        return value

    return call


def remembering(frames: FrameMaker, count: int) -> FrameMaker:
    """Return a function that keeps the arguments of a call, for the message of ``value``."""

    def make(frame: Frame, context: CallContext) -> Frame:
        made = frames(frame, context)
        context.missing = tuple(made[1 : count + 1])  # type: ignore[arg-type]
        return made

    return make


def with_message(body: Code, message: Callable[[Sequence[Value]], str]) -> Code:
    """Return the body of ``value`` with an error message that names the missing value. The argument
    is in the first slot.
    """

    def call(frame: Frame, context: CallContext) -> Value:
        if frame[1] is not UNIT:
            return body(frame, context)
        missing, context.missing = context.missing, ()
        try:
            return body(frame, context)
        except Undecided:
            raise
        except EvaluationError:
            raise EvaluationError(message(missing)) from None

    return call


def construct_code(name: str, fields: tuple[str, ...], codes: tuple[Code, ...]) -> Code:
    """Return code that creates an object."""
    pairs = tuple(zip(fields, codes, strict=False))
    others = codes[len(fields) :]

    def construct(frame: Frame, context: CallContext) -> Value:
        values = {}
        for field, code in pairs:
            values[field] = code(frame, context)
        for code in others:
            code(frame, context)
        try:
            return case_object(name, values)
        except EvaluationEscaped as error:
            raise Escaped(error.message) from None

    return construct


def unit_code(codes: tuple[Code, ...]) -> Code:
    """Return code for a call of ``Unit``."""

    def construct(frame: Frame, context: CallContext) -> Value:
        for code in codes:
            code(frame, context)
        return UNIT

    return construct
