"""A trampoline: recursion of unlimited depth with generators.

A generator yields another generator where a function would call one, and receives its result.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TypeVar

_Part = TypeVar("_Part")
_Result = TypeVar("_Result")

Task = Generator["Task[_Part, _Part]", _Part, _Result]
"""A generator that yields subtasks, receives their results, and returns a result."""


def run(task: Task[_Part, _Result]) -> _Result:
    """Run a task with all its subtasks, and return its result."""
    parts: list[Task[_Part, _Part]] = []
    result: _Part | None = None
    while True:
        current: Task[_Part, _Part] | Task[_Part, _Result] = parts[-1] if parts else task
        try:
            part = next(current) if result is None else current.send(result)
        except StopIteration as ended:
            if not parts:
                final: _Result = ended.value
                return final
            parts.pop()
            result = ended.value
        else:
            parts.append(part)
            result = None
