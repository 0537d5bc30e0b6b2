"""Simulated networks by the thousand: ``python -m tests.simulation.seeds COUNT [FIRST]``.

Each seed is run with all that can go wrong at once, and with one of the kinds of faults alone; the
kinds take turns. With ``alone`` behind the numbers each seed is run with each kind alone instead,
with ``finality`` each once with generation periods, liars and partitions.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Iterator
from functools import partial
from typing import Any, Final

from soliton.simulation.links import LinkSettings
from soliton.simulation.plan import FINALITY_LIES, LIES, Plan
from soliton.simulation.world import simulate

quick = partial(Plan, nodes=3, seconds=100, block_time=10_000)
"""Some ten blocks."""

ALONE: Final[dict[str, dict[str, Any]]] = {
    "nothing": {},
    "loss": {"links": LinkSettings(loss=0.1)},
    "delay": {"links": LinkSettings(latency=400, jitter=1_500)},
    "partitions": {"partition": 40_000},
    "crashes": {"crashes": 3, "transactions": 20},
    "clocks": {"skew": 2_000},
    "duplicates": {"duplicates": True},
    "transactions": {"transactions": 60},
    **{lie: {"lies": (lie,), "transactions": 20} for lie in LIES},
    "light nodes": {"light": 2, "transactions": 60},
    "snapshots to light nodes": {"lies": ("snapshots",), "light": 2, "transactions": 60},
}
"""What goes wrong, each kind by itself."""


def mixed(seed: int) -> Plan:
    """All kinds of faults at once; every fourth seed has all liars, the others have two."""
    lies = LIES if seed % 4 == 0 else (LIES[seed % len(LIES)], LIES[(seed // 3) % len(LIES)])
    return quick(
        nodes=4,
        seed=seed,
        links=LinkSettings(loss=0.03, latency=40 + seed % 3 * 150, jitter=40 + seed % 5 * 200),
        partition=20_000,
        crashes=2,
        skew=50,
        duplicates=True,
        transactions=15,
        lies=lies,
        light=seed % 2,
    )


def finality(seed: int) -> Plan:
    """Generation periods of eight blocks, and one of four nodes lies, or two of seven; every fifth
    seed has three liars to five honest nodes: nothing need become final, and in every other of
    these some vote on both sides of a partition, so that two blocks of one height can.
    """
    one = FINALITY_LIES[seed % len(FINALITY_LIES)]
    two = (*FINALITY_LIES, *LIES)[seed // 5 % (len(FINALITY_LIES) + len(LIES))]
    many = seed % 5 == 4
    three = ("two-faced-endorsements", "withheld-endorsements")[seed // 5 % 2]
    lies = (one, two, three) if many else (one, two) if seed % 3 == 1 else (one,)
    return quick(
        # A crash can keep one of them from committing: a third of the others must not be two-faced.
        nodes=5 if len(lies) > 1 or "two-faced-endorsements" in lies else 3,
        seed=seed,
        seconds=200,
        links=LinkSettings(loss=0.03, latency=40 + seed % 3 * 150, jitter=40 + seed % 5 * 200),
        partition=(0, 20_000, 40_000)[seed % 3],
        crashes=seed % 4,
        transactions=20,
        light=seed % 2,
        lies=lies,
        generation_period=8,
    )


def plans(
    count: int, first: int, *, each_alone: bool, with_finality: bool
) -> Iterator[tuple[str, Plan]]:
    """What is run, and its name."""
    for seed in range(first, first + count):
        if with_finality:
            plan = finality(seed)
            yield f"finality, {plan.lies[0]}", plan
            continue
        if each_alone:
            for kind, faults in ALONE.items():
                yield kind, quick(seed=seed, **faults)
            continue
        yield "mixed", mixed(seed)
        kind = list(ALONE)[seed % len(ALONE)]
        yield kind, quick(seed=seed, **ALONE[kind])


def main() -> None:
    """Run as many as the command line says; each fault is printed when it is found."""
    count = int(sys.argv[1])
    first = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    since, done, failed = time.perf_counter(), Counter[str](), Counter[str]()
    for kind, plan in plans(
        count, first, each_alone="alone" in sys.argv, with_finality="finality" in sys.argv
    ):
        summary, _ = simulate(plan)
        done[kind] += 1
        if summary.faults:
            failed[kind] += 1
            print(f"{kind}, seed {plan.seed}: {summary.faults}", flush=True)
        if sum(done.values()) % 200 == 0:
            print(f"{sum(done.values())} in {time.perf_counter() - since:.0f} s", flush=True)
    print(f"runs {dict(done)}, failed {dict(failed)}, {time.perf_counter() - since:.0f} s")


if __name__ == "__main__":
    main()
