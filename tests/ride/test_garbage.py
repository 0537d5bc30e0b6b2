"""What a run of a script makes goes with its last reference: the search for cycles, which halts all
of a program, finds nothing after it.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from soliton.ride.compiler.compile import compile_value
from soliton.ride.errors import EvaluationError
from soliton.ride.evaluator import NO_LIMIT, Setting, evaluate
from soliton.ride.script import Script
from soliton.ride.values import UNIT
from tests.ride.static_environment import StaticEnvironment

SUM = "func f(a: Int, b: Int) = a + b\n"
NAMES = "".join(f"let a{n} = a{n - 1}\n" for n in range(1, 2_000))
MANY_NAMES = f"func f(x: Int) = {{ let a0 = x\n{NAMES}a1999 }}\nf(1) + f(2)"


@pytest.fixture
def no_collector() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("no_collector")
@pytest.mark.parametrize(
    ("source", "limit", "ends"),
    [
        pytest.param(MANY_NAMES, NO_LIMIT, "", id="more names than are compiled"),
        pytest.param(SUM + "f(f(1, 2), 3)", 1, "limit = 1 is exceeded", id="the limit"),
        pytest.param(SUM + "f(1, 2)", NO_LIMIT, "", id="a success"),
        pytest.param('if (1 == 1) then throw("no") else 1', NO_LIMIT, "no", id="an error"),
    ],
)
def test_a_run_leaves_no_cycles(source: str, limit: int, ends: str) -> None:
    script, _ = compile_value(source)
    # The first run also makes what is kept of the script.
    assert ends in _run(script, limit)
    # What others of this process leave meanwhile, they do not leave each time.
    assert min(_left(script, limit) for _ in range(5)) == 0


def _left(script: Script, limit: int) -> int:
    gc.collect()
    _run(script, limit)
    return gc.collect()


def _run(script: Script, limit: int) -> str:
    try:
        evaluate(script, StaticEnvironment(), lambda: UNIT, Setting(limit))
    except EvaluationError as error:
        return error.message
    return ""
