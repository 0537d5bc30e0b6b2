"""Work in steps: plain code that is left and resumed, its errors, and its end before its time."""

from __future__ import annotations

from contextvars import ContextVar

import pytest

from soliton.steps import Steps, interruptible, pause, run_steps

_variable: ContextVar[str] = ContextVar("of tests", default="")


def test_code_without_pauses_is_one_step() -> None:
    with pytest.raises(StopIteration) as end:
        next(interruptible(lambda: 7))
    assert end.value.value == 7


def test_a_pause_outside_of_steps_returns_at_once() -> None:
    pause()


def test_a_pause_below_native_code_ends_a_step() -> None:
    def key(number: int) -> int:
        pause()
        return -number

    steps = interruptible(lambda: sorted([1, 3, 2], key=key))
    assert _count(steps) == (3, [3, 2, 1])


def test_works_take_turns() -> None:
    seen: list[str] = []

    def work(name: str) -> None:
        for number in range(3):
            seen.append(f"{name}{number}")
            pause()

    one, other = interruptible(lambda: work("a")), interruptible(lambda: work("b"))
    for _ in range(3):
        next(one)
        next(other)
    assert seen == ["a0", "b0", "a1", "b1", "a2", "b2"]


def test_steps_within_steps_pause_the_inner_ones_only() -> None:
    def work() -> str:
        pause()
        return "in"

    def outer() -> str:
        inner = interruptible(work)
        next(inner)
        pause()
        return run_steps(inner)

    assert _count(interruptible(outer)) == (1, "in")


def test_steps_begun_by_one_work_may_be_ended_by_another() -> None:
    def work() -> int:
        pause()
        pause()
        return 5

    shared = interruptible(work)

    def first() -> None:
        next(shared)

    def second() -> int:
        return run_steps(shared)

    run_steps(interruptible(first))
    assert run_steps(interruptible(second)) == 5


def test_an_error_ends_the_steps() -> None:
    def work() -> None:
        pause()
        raise ValueError("no")

    steps = interruptible(work)
    next(steps)
    with pytest.raises(ValueError, match="no"):
        next(steps)


def test_closing_unwinds_the_code() -> None:
    seen: list[str] = []

    def work() -> None:
        try:
            pause()
        except ValueError:
            seen.append("caught")
        finally:
            seen.append("unwound")

    steps = interruptible(work)
    next(steps)
    steps.close()
    assert seen == ["unwound"]


def test_variables_of_the_context_belong_to_the_work() -> None:
    def work() -> str:
        before = _variable.get()
        _variable.set("inside")
        pause()
        return before + _variable.get()

    token = _variable.set("outside ")
    try:
        steps = interruptible(work)
        next(steps)
        assert _variable.get() == "outside "
        _variable.set("later")
        assert run_steps(steps) == "outside inside"
    finally:
        _variable.reset(token)


def _count(steps: Steps[object]) -> tuple[int, object]:
    count = 0
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return count, end.value
        count += 1
