"""``soliton simulate``: runs one seed or many, and prints the results.

What lives here: the order of runs, what is printed, the exit code. What does not: options
(``soliton.cli``), the simulation (``world``).
"""

from __future__ import annotations

import sys
from pathlib import Path

import click
import msgspec

from soliton.errors import EnvironmentProblem, InputError
from soliton.simulation.picture import picture
from soliton.simulation.plan import FINALITY_LIES, LIES, Plan
from soliton.simulation.summary import lines_of
from soliton.simulation.world import simulate


class UnknownLie(InputError):
    """There is no lie of this name."""


def lies_in(text: str, generation_period: int = 0) -> tuple[str, ...]:
    """Parse a list such as ``scores,eclipse``, or ``all``; raises ``UnknownLie``. Some lies need
    a ``generation_period``.
    """
    known = LIES + (FINALITY_LIES if generation_period else ())
    if text == "all":
        return known
    names = tuple(each.strip() for each in text.split(",") if each.strip())
    for each in names:
        if each in FINALITY_LIES and each not in known:
            raise UnknownLie(f"--lies: {each} needs --generation-period")
        if each not in known:
            raise UnknownLie(f"--lies: {each[:40]!r} is none of {', '.join(known)}")
    return names


class PartitionTooLong(InputError):
    """In a partition that is so long each side can have generators of its own."""


def _check_partition(plan: Plan) -> None:
    period = plan.generation_period * plan.block_time
    if period and 2 * plan.partition > period:
        raise PartitionTooLong(
            f"--partition: {plan.partition} ms are more than half a generation period of "
            f"{period} ms: each side would get generators of its own, who finalize its blocks"
        )


def run_simulate(plan: Plan, seeds: int, svg: Path | None) -> None:
    """Run ``seeds`` seeds, beginning with the plan's; exit with 1 if a check fails. Raises
    ``PartitionTooLong``.
    """
    _check_partition(plan)
    failed = []
    for seed in range(plan.seed, plan.seed + seeds):
        summary, marks = simulate(msgspec.structs.replace(plan, seed=seed))
        for line in lines_of(summary):
            click.echo(line)
        if summary.faults:
            failed.append(seed)
        if svg is not None and (summary.faults or seed == plan.seed):
            try:
                svg.write_text(picture(summary, marks, plan.nodes + len(plan.lies)), "utf-8")
            except OSError as error:
                raise EnvironmentProblem(f"cannot write {svg}: {error.strerror}") from error
    if failed:
        again = ", ".join(f"--seed {each}" for each in failed[:20])
        click.echo(f"{len(failed)} of {seeds} seeds failed; to repeat: {again}", err=True)
        sys.exit(1)
