"""How quick the simulator is: ``python benchmarks/simulate.py``.

Prints how many seconds of an idle network of seven nodes pass in a second of CPU: all connected, a
block a minute, no transactions, nothing goes wrong.
"""

from __future__ import annotations

import time

from soliton.simulation.plan import Plan
from soliton.simulation.world import simulate

SECONDS = 4_000
BAR = 2_000


def main() -> None:
    """Simulate once."""
    started = time.process_time()
    summary, _ = simulate(Plan(nodes=7, seconds=SECONDS))
    spent = time.process_time() - started
    if summary.faults:
        raise SystemExit(f"the network does not work: {summary.faults}")
    rate = SECONDS / spent
    print(
        f"{rate:,.0f} simulated seconds for each second of CPU (bar: {BAR:,}); "
        f"{summary.blocks} blocks, {summary.messages:,} messages in {spent:.2f} s"
    )


if __name__ == "__main__":
    main()
