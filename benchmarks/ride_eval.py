"""Running scripts: what evaluation costs beside the work of the functions themselves.

Run ``.venv/bin/python benchmarks/ride_eval.py``. Prints µs of CPU for a call of a typical dApp
(parsed and compiled already), for a first call of it (nothing cached), and per function call over
the function's own work: in arithmetic, and the median over the scripts of the test vectors where
those are there (``SOLITON_SHARED``, else ``../shared``). The last column is the exact evaluator,
which decides every run that does not simply succeed.
"""

from __future__ import annotations

import base64
import gzip
import json
import os
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from soliton.ride import evaluator
from soliton.ride.compiler.compile import compile_source
from soliton.ride.environment import CallContext, Switches
from soliton.ride.errors import RideError
from soliton.ride.evaluator import Invocation, Setting, evaluate, invoke
from soliton.ride.evaluator_library import Implementation, Library, Native, load_library
from soliton.ride.evaluator_machine import Machine
from soliton.ride.expressions import DApp, Expression
from soliton.ride.script import Script, parse_script
from soliton.ride.values import UNIT, Value, case_object, ride_list

REPOSITORY = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(REPOSITORY))

from tests.ride.static_environment import ADDRESS, StaticEnvironment  # noqa: E402

RUNS = 5
LIMIT = 52_000
SECONDS_EACH = 0.002
OLDER = Switches(new_complexity=False)

EXCHANGE = """
{-# STDLIB_VERSION 6 #-}
{-# CONTENT_TYPE DAPP #-}
{-# SCRIPT_TYPE ACCOUNT #-}

let keyReserveA = "reserve_a"
let keyReserveB = "reserve_b"
let keyStatus = "status"
let feeScale = 10000
let fee = 30

func numberOf(key: String) = valueOrElse(getInteger(this, key), 0)
func assetText(asset: ByteVector|Unit) = match asset {
    case id: ByteVector => toBase58String(id)
    case _ => "WAVES"
}
func isActive() = valueOrElse(getBoolean(this, keyStatus), true)
func bought(paid: Int, from: Int, to: Int) = {
    let paidAfterFee = fraction(paid, feeScale - fee, feeScale)
    fraction(to, paidAfterFee, from + paidAfterFee)
}

@Callable(i)
func exchange(minimum: Int, wanted: String) = {
    let payment = i.payments[0]
    let name = assetText(payment.assetId)
    let forward = name == "WAVES"
    let reserveA = numberOf(keyReserveA)
    let reserveB = numberOf(keyReserveB)
    let amount = if (forward)
        then bought(payment.amount, reserveA, reserveB)
        else bought(payment.amount, reserveB, reserveA)
    let userKey = i.caller.toString() + "_" + wanted
    let newA = if (forward) then reserveA + payment.amount else reserveA - amount
    let newB = if (forward) then reserveB - amount else reserveB + payment.amount
    if (!isActive()) then throw("not active")
    else if (size(i.payments) != 1) then throw("one payment expected")
    else if (amount < minimum) then throw("too little: " + amount.toString())
    else if (amount <= 0) then throw("nothing")
    else [
        IntegerEntry(keyReserveA, newA),
        IntegerEntry(keyReserveB, newB),
        IntegerEntry(userKey, numberOf(userKey) + amount),
        StringEntry("last", userKey + ":" + amount.toString()),
        ScriptTransfer(i.caller, amount, unit)
    ]
}
"""
ARITHMETIC = (
    "{-# STDLIB_VERSION 6 #-}\n"
    + "".join(
        f"let a{n + 1} = a{n} * 3 % 1000 + {n} - 1\n" if n else "let a1 = height\n"
        for n in range(100)
    )
    + "a100 > 0"
)


def least_us(work: Callable[[], object]) -> float:
    """µs of CPU for one piece of work, the least of several runs."""
    work()
    started = time.process_time()
    work()
    count = max(1, int(SECONDS_EACH / max(time.process_time() - started, 1e-7)))
    least = float("inf")
    for _ in range(RUNS):
        started = time.process_time()
        for _ in range(count):
            work()
        least = min(least, time.process_time() - started)
    return least / count * 1e6


class Recorder:
    """Runs a script on the exact evaluator and keeps each call of a numbered function."""

    def __init__(self, library: Library) -> None:
        self.calls: list[tuple[Implementation, tuple[Value, ...]]] = []
        natives = {number: self._recorded(native) for number, native in library.natives.items()}
        self.library = Library(
            library.version,
            library.kind,
            library.chain_id,
            natives,
            library.named,
            library.constructors,
            library.constants,
            library.variables,
        )

    def _recorded(self, native: Native) -> Native:
        def call(arguments: Sequence[Value], context: CallContext) -> Value:
            self.calls.append((native.implementation, tuple(arguments)))
            return native.implementation(arguments, context)

        return Native(native.name, native.cost, call)


def overhead_us(script: Script, setting: Setting) -> tuple[float, float, int] | None:
    """µs per function call over the function's own work, of both evaluators, and how many calls;
    ``None`` for what does not succeed or calls nothing.
    """
    content = script.content
    if isinstance(content, DApp):
        return None
    environment = StaticEnvironment()
    library = load_library(script.version, setting.kind, environment.chain_id)

    def context() -> CallContext:
        return CallContext(
            environment, script.version, setting.switches, LIMIT, subject=lambda: UNIT
        )

    recorder = Recorder(library)
    try:
        Machine(recorder.library, context(), LIMIT).run(content)
        evaluate(script, environment, lambda: UNIT, setting)
    except RideError:
        return None
    if not recorder.calls:
        return None

    replayed = context()

    def replay() -> None:
        for implementation, arguments in recorder.calls:
            implementation(arguments, replayed)

    own = least_us(replay)
    quick = least_us(lambda: evaluate(script, environment, lambda: UNIT, setting))
    expression: Expression = content
    exact = least_us(lambda: Machine(library, context(), LIMIT).run(expression))
    count = len(recorder.calls)
    return (quick - own) / count, (exact - own) / count, count


def exchange() -> None:
    """A call of a dApp as they are."""
    script = compile_source(EXCHANGE).script
    environment = StaticEnvironment()
    environment.entries[ADDRESS, "reserve_a"] = 1_000_000_000
    environment.entries[ADDRESS, "reserve_b"] = 5_000_000_000
    payment = case_object("AttachedPayment", {"assetId": UNIT, "amount": 1_000_000})
    address = case_object("Address", {"bytes": ADDRESS})
    call = Invocation(
        "exchange",
        (1000, "test"),
        case_object("Invocation", {"payments": ride_list((payment,)), "caller": address}),
    )
    setting = Setting(LIMIT)
    outcome = invoke(script, environment, call, setting)
    warm = least_us(lambda: invoke(script, environment, call, setting))

    def cold() -> None:
        evaluator._compiled.cache_clear()
        parse_script.cache_clear()
        invoke(parse_script(script.source), environment, call, setting)

    print(f"call of a dApp, complexity {outcome.spent:<4} {warm:9.1f} µs")
    print(f"the same, nothing cached          {least_us(cold):9.1f} µs")


def arithmetic() -> None:
    """Small functions only."""
    measured = overhead_us(compile_source(ARITHMETIC).script, Setting(LIMIT))
    assert measured is not None
    quick, exact, count = measured
    print(f"arithmetic, {count} calls, each        {quick:9.2f} µs    exact {exact:9.2f} µs")


def vectors() -> None:
    """The scripts of the test vectors."""
    shared = os.environ.get("SOLITON_SHARED")
    root = Path(shared) if shared else REPOSITORY.parent / "shared"
    path = root / "vectors" / "ride_eval.json.gz"
    if not path.is_file():
        print(f"no vectors at {path}")
        return
    for name, switches in (("newer", Switches()), ("older", OLDER)):
        quick, exact = [], []
        for vector in json.loads(gzip.decompress(path.read_bytes()))["vectors"]:
            script = parse_script(base64.b64decode(vector["script"]))
            measured = overhead_us(script, Setting(LIMIT, switches))
            if measured is not None:
                quick.append(measured[0])
                exact.append(measured[1])
        print(
            f"{len(quick)} scripts, {name} way, median each {statistics.median(quick):9.2f} µs"
            f"    exact {statistics.median(exact):9.2f} µs"
        )


def main() -> None:
    """Print all figures."""
    exchange()
    arithmetic()
    vectors()


if __name__ == "__main__":
    main()
