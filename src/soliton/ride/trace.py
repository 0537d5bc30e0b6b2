"""What a run did, step by step, for those who ask.

What lives here: the record of steps and the names of the special ones. What does not: who collects
them (the evaluator's machine), and how they look in JSON (the shell).

Source: wavesplatform/Waves
``lang/shared/src/main/scala/com/wavesplatform/lang/v1/evaluator/EvaluatorV2.scala`` (``LogKeys``)
and ``ctx/EvaluationContext.scala`` (``EnabledLogEvaluationContext``).
"""

from __future__ import annotations

from typing import Final

import msgspec

from soliton.ride.values import RideList, Value, weight

INVOKED_DAPP: Final = "@invokedDApp"
INVOKED_FUNCTION: Final = "@invokedFuncName"
COMPLEXITY_LIMIT: Final = "@complexityLimit"
COMPLEXITY: Final = "@complexity"
ARGUMENTS: Final = "@args"
STATE_CHANGES: Final = "@stateChanges"
UNTOLD: Final = "@untold"

MAX_WEIGHT: Final = 4_000_000
"""Of all values in a trace. A script can hand a heavy value on ten thousands of times."""
STEP_WEIGHT: Final = 40
"""What a step counts besides its value."""


class Step(msgspec.Struct, frozen=True):
    """A name got a value (a ``let``, or one of the special names), or failed to."""

    name: str
    value: Value | None
    error: str | None = None


class Trace:
    """The steps of one run, in the order in which they were finished."""

    __slots__ = ("_errors", "_left", "steps")

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self._errors: set[str] = set()
        self._left = MAX_WEIGHT

    def note(self, name: str, value: Value) -> None:
        """A name got a value; once there are too many, what follows is left out."""
        if self._left < 0:
            return
        self._left -= STEP_WEIGHT + weight(value)
        if self._left < 0:
            self.steps.append(Step(UNTOLD, None, "the trace is too long: the rest is left out"))
        else:
            self.steps.append(Step(name, value))

    def note_error(self, name: str, message: str) -> None:
        """A name failed to get one; an error shows at the innermost name only."""
        if message not in self._errors:
            self._errors.add(message)
            self.steps.append(Step(name, None, message))

    def note_call(
        self, name: str, arguments: tuple[Value, ...], cost: int | None, remaining: int
    ) -> None:
        """A function is about to be called; ``cost`` is ``None`` for one of the script itself."""
        total = sum(map(weight, arguments))
        self.note(f"{name}.{ARGUMENTS}", RideList(arguments, total))
        if cost is not None:
            self.note_cost(name, cost, remaining - cost)

    def note_cost(self, name: str, cost: int, remaining: int) -> None:
        """What a call cost, and what is left."""
        self.note(f"{name}.{COMPLEXITY}", cost)
        self.note(COMPLEXITY_LIMIT, remaining)
