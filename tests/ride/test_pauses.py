"""Runs that are left and resumed: how often, and with the same outcome."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import TypeVar

import pytest

from soliton.ride.compiler.compile import compile_source
from soliton.ride.environment import PORTION, Switches
from soliton.ride.errors import ComplexityExceeded, EvaluationError
from soliton.ride.evaluator import Outcome, Setting, evaluate
from soliton.ride.evaluator_machine import WATCHED_STEPS
from soliton.ride.expressions import TRUE, DApp, Expression, If, Let
from soliton.ride.script import Script, has_lists, parse_script
from soliton.ride.serialization import NODES_IN_STEP, read_script, write_script
from soliton.ride.trace import Trace
from soliton.ride.values import UNIT
from soliton.steps import Steps, interruptible, pause
from tests.ride.static_environment import StaticEnvironment

T = TypeVar("T")

_HEAD = """{-# STDLIB_VERSION 6 #-}
{-# CONTENT_TYPE EXPRESSION #-}
{-# SCRIPT_TYPE ACCOUNT #-}
"""
_LIMIT = 52_000
_SUM = "+".join(["x"] * 1_000)
_FOLD = f"func f(x: Int, y: Int) = {_SUM}\nlet l = [1, 2, 3, 4, 5]\nFOLD<5>(l, 0, f) == 0"
_SLOW = "func one() = sigVerify(base58'', base58'', base58'')\n" + " || ".join(["one()"] * 20)
_NESTED = """
func a(x: Int) = [x, x].size()
func b(x: Int) = a(x) + a(x) + a(x) + a(x)
func c(x: Int) = b(x) + b(x) + b(x) + b(x)
func d(x: Int) = c(x) + c(x) + c(x) + c(x)
d(1) + d(2) == 0
"""


@pytest.mark.parametrize("text", [_FOLD, _SLOW, _NESTED], ids=["sums", "slow functions", "calls"])
@pytest.mark.parametrize("traced", [False, True])
@pytest.mark.parametrize("new", [True, False])
def test_a_run_is_left_after_each_portion(text: str, traced: bool, new: bool) -> None:
    script, switches = _script(text), Switches(new_complexity=new)

    def run(**watch: object) -> Outcome:
        trace = Trace() if traced else None
        setting = Setting(_LIMIT, switches, trace=trace, **watch)  # type: ignore[arg-type]
        return evaluate(script, StaticEnvironment(), lambda: UNIT, setting)

    at_once = run()
    count, outcome = _count(interruptible(lambda: run(watch=pause)))
    assert outcome == at_once
    assert count >= at_once.spent // (PORTION + 200)


def test_deep_calls_are_left_while_they_return() -> None:
    trace, lengths = Trace(), [0]
    script = _script(" + ".join(["1"] * 1_300) + " == 1300")
    setting = Setting(_LIMIT, trace=trace, watch=lambda: lengths.append(len(trace.steps)))
    evaluate(script, StaticEnvironment(), lambda: UNIT, setting)
    lengths.append(len(trace.steps))
    assert lengths[-1] > 3_000
    # A call returns in three steps, and has three notes.
    assert max(after - before for before, after in pairwise(lengths)) <= WATCHED_STEPS + 3


@pytest.mark.parametrize("limit", [PORTION - 1, PORTION, PORTION + 1, 2 * PORTION, 3_000, 5_009])
def test_the_limit_is_the_same_in_portions(limit: int) -> None:
    script = _script(_FOLD)

    def run(**watch: object) -> Outcome | tuple[type, int]:
        setting = Setting(limit, **watch)  # type: ignore[arg-type]
        try:
            return evaluate(script, StaticEnvironment(), lambda: UNIT, setting)
        except EvaluationError as error:
            return type(error), error.spent

    assert run(watch=pause) == run()


def test_runs_take_turns() -> None:
    script = _script(_FOLD)

    def run() -> Outcome:
        setting = Setting(_LIMIT, watch=pause)
        return evaluate(script, StaticEnvironment(), lambda: UNIT, setting)

    expected = run()
    running = [interruptible(run) for _ in range(3)]
    ended: list[object] = []
    while running:
        steps = running.pop(0)
        try:
            next(steps)
        except StopIteration as end:
            ended.append(end.value)
        else:
            running.append(steps)
    assert ended == [expected] * 3


def test_a_run_that_is_closed_leaves_nothing_behind() -> None:
    script = _script(_FOLD)
    for _ in range(1_000):
        steps = interruptible(
            lambda: evaluate(
                script, StaticEnvironment(), lambda: UNIT, Setting(_LIMIT, watch=pause)
            )
        )
        next(steps)
        steps.close()
    with pytest.raises(ComplexityExceeded):
        evaluate(script, StaticEnvironment(), lambda: UNIT, Setting(4_000))


@pytest.mark.parametrize("kind", ["deep", "many"])
def test_long_scripts_are_read_inspected_and_written_in_steps(kind: str) -> None:
    count = 4_000
    deep: Expression = TRUE
    for _ in range(count):
        deep = If(TRUE, TRUE, deep)
    declarations = [Let("a", deep)] if kind == "deep" else [Let("a", TRUE)] * count
    content = DApp(b"", tuple(declarations), ())
    written = write_script(6, content)
    nodes = 3 * count if kind == "deep" else count
    works: list[tuple[Callable[[], object], object]] = [
        (lambda: read_script(written), (6, content)),
        (lambda: has_lists(content), False),
        (lambda: write_script(6, content), written),
    ]
    for work, expected in works:
        found, result = _count(interruptible(work))
        assert result == expected
        assert found >= nodes // NODES_IN_STEP


def _script(text: str) -> Script:
    return parse_script(compile_source(_HEAD + text, check_complexity=False).script.source)


def _count(steps: Steps[T]) -> tuple[int, T]:
    count = 0
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return count, end.value
        count += 1
