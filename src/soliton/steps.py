"""Long work in steps, between which other work can run.

Work that is written for it is a generator, which yields between its steps. Plain code becomes such
work by ``interruptible``: it is left and resumed wherever it calls ``pause``, however deep in calls
of functions, native ones included. So the evaluator of scripts need not be made of generators.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextvars import copy_context
from typing import Any, TypeVar

from greenlet import getcurrent, greenlet

T = TypeVar("T")

Steps = Generator[None, None, T]
"""Work that can be interrupted between its steps, and the type of its result."""


class _Plain(greenlet):
    """Plain code with a stack of its own."""


def run_steps(steps: Steps[T]) -> T:
    """Run all steps without interruption and return the result."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: T = end.value
            return result


def interruptible(work: Callable[[], T]) -> Steps[T]:
    """Run plain code in steps: each ends where the code calls ``pause``.

    All steps have to run in one thread. Closing the generator raises ``GreenletExit``, which is no
    ``Exception``, where the code is paused.
    """
    plain = _Plain(work)
    plain.gr_context = copy_context()
    try:
        while True:
            # The steps may be run by other plain code than the first one.
            plain.parent = getcurrent()
            result: Any = plain.switch()
            if plain.dead:
                return result  # type: ignore[no-any-return]
            yield
    finally:
        if not plain.dead:
            plain.parent = getcurrent()
            plain.throw()


def pause() -> None:
    """End the present step of the plain code that runs as ``interruptible``.

    Returns with its next step; at once where the code does not run in steps.
    """
    plain = getcurrent()
    if type(plain) is _Plain:
        assert plain.parent is not None
        plain.parent.switch()
