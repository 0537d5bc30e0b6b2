"""What library functions cost: a call over the function's own work, and the dearest per complexity.

Run ``.venv/bin/python benchmarks/ride_functions.py``. Prints µs of CPU: first of calls as the
evaluator makes them, beside the plain Python that they stand for; then of calls that are as heavy
as their limits allow, with µs per unit of complexity, which tells how long a script of 52,000 can
keep a node busy.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from soliton.ride.environment import CallContext, Switches
from soliton.ride.errors import EvaluationError
from soliton.ride.functions import catalogue
from soliton.ride.functions.library import implementations
from soliton.ride.values import BigInt, CaseObject, Value, ride_list, ride_tuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.ride.static_environment import StaticEnvironment

VERSION = 8
REPEATS = 7
SECONDS = 0.02
DOWN = CaseObject("Down", {}, 40)
SHA256 = CaseObject("Sha256", {}, 40)
CONTEXT = CallContext(StaticEnvironment(), VERSION, Switches())

BIG = BigInt(2**511 - 1)
TEXT = "冬" * 10_922
LATIN = "a" * 32_766
BYTES = bytes(32_767)
THOUSAND = ride_list(range(1000))
TUPLES = ride_list([ride_tuple(1, 2)] * 900)
ENTRIES = ride_list([CaseObject("StringEntry", {"key": "a", "value": "b"}, 102)] * 900)
WIDE = ride_tuple(*[ride_tuple(*[ride_tuple(*range(22))] * 10)] * 15)

SIMPLE: list[tuple[int, list[Value], Callable[[], object]]] = [
    (100, [1, 2], lambda: 1 + 2),
    (102, [1, 2], lambda: 2 > 1),
    (0, [1, 2], lambda: VERSION == 1),
    (300, ["ab", "cd"], lambda: "ab" + "cd"),
    (305, ["ab"], lambda: len("ab")),
    (401, [THOUSAND, 5], lambda: THOUSAND.items[5]),
    (311, [BigInt(1), BigInt(2)], lambda: BigInt(3)),
    (107, [5, 6, 7], lambda: 5 * 6 // 7),
    (1300, [1, 2], lambda: {"_1": 1, "_2": 2}),
    (1101, [ride_list([1]), 2], lambda: (1, 2)),
]

HEAVY: list[tuple[int, list[Value]]] = [
    (0, [bytes(13_000), bytes(13_000)]),
    (1, [WIDE, "(" * 30_000]),
    (3, [WIDE]),
    (107, [2**62, 2**62, 2**62]),
    (108, [198765432, 8, 6298765432, 8, 0, DOWN]),
    (109, [2**63 - 1, 8, 3, 0, 8, DOWN]),
    (118, [BIG, 18, BigInt(10**17 + 1), 18, 18, DOWN]),
    (118, [BigInt(10**18 + 1), 18, BIG, 0, 18, DOWN]),
    (119, [BIG, 18, BigInt(10**18 + 1), 18, 18, DOWN]),
    (catalogue.POW_BIG_INT_TO_HALF, [BIG, 17, 18, DOWN]),
    (313, [BigInt(2**255), BigInt(2**255)]),
    (314, [BIG, BigInt(3)]),
    (317, [BIG, BIG, BIG, DOWN]),
    (300, [TEXT[:5000], TEXT[:5000]]),
    (303, [TEXT, 10_000]),
    (306, [TEXT, 10_000]),
    (201, [BYTES * 5, 160_000]),
    (203, [BYTES[:16_000], BYTES[:16_000]]),
    (405, [THOUSAND]),
    (406, [THOUSAND]),
    (408, [ride_list([BIG] * 1000)]),
    (411, [TEXT]),
    (422, [BIG]),
    (424, [str(2**511 - 1)]),
    (500, [BYTES * 5, bytes(64), bytes(32)]),
    (501, [BYTES * 5]),
    (502, [BYTES * 5]),
    (503, [BYTES * 5]),
    (2900, [BYTES[:16_384]]),
    (2700, [BYTES[:16_384]]),
    (602, [BYTES[:24_000]]),
    (603, ["A" * 43_000]),
    (604, [BYTES[:8192]]),
    (701, [ride_list([bytes(32)] * 16), bytes(32), 0]),
    (1040, [ENTRIES, "b"]),
    (1100, [1, ride_list(range(999))]),
    (1102, [ride_list(range(500)), ride_list(range(500))]),
    (1103, [THOUSAND, 1000]),
    (1104, [TUPLES, ride_tuple(1, 3)]),
    (1105, [THOUSAND, 500]),
    (1203, [LATIN, "a" * 16_000 + "b"]),
    (1208, [LATIN, "b" + "a" * 16_000, 2**40]),
    (1205, ["," * 19, ","]),
    (1213, ["," * 999, ","]),
    (1211, [ride_list(["a" * 30] * 1000), ""]),
    (1206, ["0" * 32_000]),
    (1206, ["٠۰" * 8_000]),
    (900, [bytes(31) + b"\1", bytes(31) + b"\1" + bytes(31) + b"\1\0"]),
]


def micros(function: Callable[[], object]) -> float:
    """Median CPU time of a call."""
    start = time.process_time()
    function()
    once = max(time.process_time() - start, 1e-7)
    count = max(int(SECONDS / once), 1)
    times = []
    for _ in range(REPEATS):
        start = time.process_time()
        for _ in range(count):
            function()
        times.append((time.process_time() - start) / count)
    return statistics.median(times) * 1e6


def caller(key: int, arguments: Sequence[Value]) -> Callable[[], object]:
    """The call of a function, whether it ends in a value or an error."""
    implementation = implementations(VERSION)[key]

    def call() -> None:
        with suppress(EvaluationError):
            implementation(arguments, CONTEXT)

    return call


def main() -> None:
    """Print both tables."""
    names = {f.key: f.name for f in catalogue.FUNCTIONS}
    costs = catalogue.costs(VERSION)
    print(f"{'call':<28}{'µs':>10}{'Python':>10}{'over it':>10}")
    overheads = []
    for key, arguments, plain in SIMPLE:
        spent, base = micros(caller(key, arguments)), micros(plain)
        overheads.append(spent - base)
        print(f"{key:>5} {names[key]:<22}{spent:>10.2f}{base:>10.2f}{spent - base:>10.2f}")
    print(f"median over plain Python: {statistics.median(overheads):.2f} µs\n")
    print(f"{'heaviest calls':<28}{'µs':>10}{'cost':>10}{'µs/cost':>10}")
    for key, arguments in HEAVY:
        spent, cost = micros(caller(key, arguments)), costs[key]
        name = names.get(key, "sqrt of BigInt")
        print(f"{key:>5} {name:<22}{spent:>10.1f}{cost:>10}{spent / cost:>10.2f}")


if __name__ == "__main__":
    main()
