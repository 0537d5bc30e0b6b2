"""Estimating scripts: made-up dApps of growing size, by each estimator.

Run ``.venv/bin/python benchmarks/ride_estimate.py``. Prints ms per dApp; the first two estimators
run on the smallest only.
"""

from __future__ import annotations

import time

from soliton.ride.estimators import estimate, estimator
from soliton.ride.expressions import (
    AnnotatedFunction,
    Block,
    Call,
    DApp,
    Declaration,
    Expression,
    Func,
    If,
    Let,
    LongConst,
    Ref,
)
from soliton.ride.script import Script, make_script

ROUNDS = 5
SIZES = (20, 100, 500)
PLUS = 100
EQUAL = 0
GET_INTEGER = 1055


def _sum(left: Expression, right: Expression) -> Expression:
    return Call(PLUS, (left, right))


def _declarations(count: int) -> tuple[Declaration, ...]:
    """Values out of the data storage, and functions that use some of them."""
    declarations: list[Declaration] = []
    for place in range(count):
        former = Ref(f"value{place - 1}") if place % 5 else LongConst(1)
        declarations.append(Let(f"value{place}", _sum(Call(GET_INTEGER, (former,)), former)))
        choice = If(Call(EQUAL, (Ref("x"), former)), Ref("x"), _sum(Ref("x"), Ref(f"value{place}")))
        declarations.append(Func(f"function{place}", ("x",), Block(Let("y", choice), Ref("y"))))
    return tuple(declarations)


def _callables(count: int) -> tuple[AnnotatedFunction, ...]:
    functions = []
    for place in range(count):
        body: Expression = Ref("a")
        for step in range(5):
            body = Call(f"function{(place + 7 * step) % count}", (body,))
        functions.append(AnnotatedFunction("i", Func(f"call{place}", ("a",), body)))
    return tuple(functions)


def main() -> None:
    """Print one line per size."""
    print("declarations  callables   bytes  " + "  ".join(f"v{version:<6}" for version in "1234"))
    for size in SIZES:
        script = make_script(6, DApp(b"", _declarations(size), _callables(size)))
        figures = []
        for version in (1, 2, 3, 4):
            if version < 3 and size > SIZES[0]:
                figures.append("-      ")
                continue
            best = min(_seconds(script, version) for _ in range(ROUNDS))
            figures.append(f"{best * 1000:<7.2f}")
        print(f"{2 * size:>12}  {size:>9}  {len(script.source):>6}  " + "  ".join(figures))


def _seconds(script: Script, version: int) -> float:
    start = time.process_time()
    estimate(estimator(version), script)
    return time.process_time() - start


if __name__ == "__main__":
    main()
