"""A long run of made-up requests: ``make fuzz-rest``, or ``python -m tests.fuzzing.rest``.

Prints what Schemathesis says, how many cases there were, and what the devnet logged. ``--examples``
for each operation and phase, ``--seconds`` for all, ``--workers`` as ``rest-api.workers``,
``--matcher`` for the matcher's interface.
"""

from __future__ import annotations

import argparse
import sys

from tests.fuzzing.rest.made_up import FAULTS, SCHEMATHESIS, run


def main() -> int:
    """The exit code: 0 when nothing was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--examples", type=int, default=200)
    parser.add_argument("--seconds", type=int, default=1_200)
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--matcher", action="store_true", help="the matcher, not the node")
    arguments = parser.parse_args()
    if not SCHEMATHESIS.exists():
        print("Schemathesis is not there: make clients")
        return 2
    outcome = run(
        arguments.examples,
        arguments.seconds,
        *("--workers", str(arguments.workers)),
        matcher=arguments.matcher,
    )
    print(outcome.report)
    faults = [line for line in outcome.log.splitlines() if any(word in line for word in FAULTS)]
    print(f"{outcome.cases} cases; the devnet logged {len(faults)} faults")
    if faults:
        print(outcome.log)
    return 0 if outcome.passed and not faults else 1


if __name__ == "__main__":
    sys.exit(main())
