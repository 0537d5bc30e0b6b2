"""Stepping through a recorded run, forward and backward.

What lives here: the position, the moves, breakpoints. What does not: output (``debugger``) and
recording (``soliton.ride.recording``).

A recording is a list of steps, so moves backward differ from moves forward only in the sign.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from soliton.ride.recording import Recording, Step

FORWARD: Final = 1
BACKWARD: Final = -1


class Walk:
    """A position in a recording: ``at`` is the index of a step, or their number at the end."""

    def __init__(self, record: Recording) -> None:
        self.record: Final = record
        self.at = 0
        self.lines: set[tuple[str, int]] = set()
        """Breakpoints by file and line."""
        self.functions: set[str] = set()
        """Breakpoints by function."""

    @property
    def step(self) -> Step | None:
        """The current step; ``None`` at the end."""
        steps = self.record.steps
        return steps[self.at] if self.at < len(steps) else None

    def expression(self, way: int) -> None:
        """Go to the next expression that is entered or left."""
        self._go(way, lambda _step: True)

    def line(self, way: int) -> None:
        """Go to another line, or into or out of a function."""
        here = self.step
        self._go(way, lambda step: here is None or _line(step) != _line(here))

    def over(self, way: int) -> None:
        """Go to another line, but not into functions."""
        here = self.step
        self._go(
            way,
            lambda step: here is None or (step.depth <= here.depth and _line(step) != _line(here)),
        )

    def out(self, way: int) -> None:
        """Go out of the function, to its caller."""
        here = self.step
        self._go(way, lambda step: here is None or step.depth < here.depth)

    def run(self, way: int) -> None:
        """Go to the next breakpoint, or to the end or the beginning."""
        before = self.step

        def stops(step: Step) -> bool:
            nonlocal before
            last, before = before, step
            new_line = last is None or _line(step) != _line(last)
            if new_line and (step.file, step.line) in self.lines:
                return True
            new_function = last is None or (step.function, step.depth) != (
                last.function,
                last.depth,
            )
            return new_function and step.function in self.functions

        self._go(way, stops)

    def to(self, number: int) -> None:
        """Go to a step by its index, or to the end."""
        self.at = max(0, min(number, len(self.record.steps)))

    def calls(self) -> list[Step]:
        """The calls of the enclosing functions, the innermost first."""
        here = self.step
        found: list[Step] = []
        if here is None:
            return found
        depth, parent = here.depth, here.parent
        while parent >= 0:
            step = self.record.steps[parent]
            if step.depth < depth:
                found.append(step)
                depth = step.depth
            parent = step.parent
        return found

    def names(self) -> list[tuple[str, str]]:
        """The visible names with their values, the innermost first."""
        here = self.step
        if here is None:
            return []
        known = self.record.names
        return [(known[number].name, known[number].value) for number in here.names]

    def _go(self, way: int, stops: Callable[[Step], bool]) -> None:
        steps = self.record.steps
        at = self.at + way
        while 0 <= at < len(steps):
            if stops(steps[at]):
                self.at = at
                return
            at += way
        self.at = len(steps) if way > 0 else 0


def _line(step: Step) -> tuple[int, str, int, int]:
    return step.script, step.file, step.line, step.depth
