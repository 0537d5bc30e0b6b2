"""Traces: the steps of an evaluation.

What lives here: the record of steps and the names of the special ones. What does not: collecting
them (``evaluator_machine``), and their JSON (the shell).

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
"""The total weight of a trace. A script can pass on a heavy value tens of thousands of times."""
STEP_WEIGHT: Final = 40
"""The weight of a step without its value."""


class Step(msgspec.Struct, frozen=True):
    """The value of a ``let`` or a special name, or the error in its evaluation."""

    name: str
    value: Value | None
    error: str | None = None


class Trace:
    """The steps of a run in the order of completion."""

    __slots__ = ("_errors", "_left", "steps")

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self._errors: set[str] = set()
        self._left = MAX_WEIGHT

    def note(self, name: str, value: Value) -> None:
        """Record a value; drop it once the trace is full."""
        if self._left < 0:
            return
        self._left -= STEP_WEIGHT + weight(value)
        if self._left < 0:
            self.steps.append(Step(UNTOLD, None, "the trace is too long: the rest is left out"))
        else:
            self.steps.append(Step(name, value))

    def note_error(self, name: str, message: str) -> None:
        """Record an error; only the innermost name has it."""
        if message not in self._errors:
            self._errors.add(message)
            self.steps.append(Step(name, None, message))

    def note_call(
        self, name: str, arguments: tuple[Value, ...], cost: int | None, remaining: int
    ) -> None:
        """Record the start of a call; ``cost`` is ``None`` for a function of the script."""
        total = sum(map(weight, arguments))
        self.note(f"{name}.{ARGUMENTS}", RideList(arguments, total))
        if cost is not None:
            self.note_cost(name, cost, remaining - cost)

    def note_cost(self, name: str, cost: int, remaining: int) -> None:
        """Record the complexity of a call and the complexity left."""
        self.note(f"{name}.{COMPLEXITY}", cost)
        self.note(COMPLEXITY_LIMIT, remaining)
