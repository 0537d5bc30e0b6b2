"""Requests made up from our own OpenAPI document (Schemathesis), sent to a devnet.

What lives here: starting both, and what is checked. What does not: the program (``__main__``), the
short run of the test suite (``test_made_up``).

Schemathesis checks each answer for all that it knows, but for what the interface of these networks
decides otherwise:

- ``unsupported_method``: a method that a path has not is answered 404, as the reference does;
- ``positive_data_acceptance``: what fits the schema of a transaction is still no transaction that a
  chain accepts;
- ``negative_data_rejection``: members that nobody asked for are passed over, as the reference does;
- ``use_after_free``, ``ensure_resource_availability``: nothing here is made or deleted by a path.
"""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tests.e2e.programs import API_KEY, devnet

SCHEMATHESIS = Path(__file__).parent / ".venv" / "bin" / "schemathesis"
CONFIGURATION = Path(__file__).parent / "schemathesis.toml"
NOT_CHECKED = (
    "unsupported_method",
    "positive_data_acceptance",
    "negative_data_rejection",
    "use_after_free",
    "ensure_resource_availability",
)
NOT_CHECKED_OF_MATCHER = ("ignored_auth",)
"""What a signature may ask for, the operator's key may as well, and it is always sent."""
NOT_ASKED_OF_MATCHER = r"/delete$"
"""A deprecated route that is answered 501, as the specification has it."""
NOT_ASKED = r"^/(node/stop|readyz|events|transactions/wait|blocks/wait|debug/rollback|api-docs)"
"""What would end the devnet, take back its blocks or wait; what says by design that it is not
ready; and the document itself.
"""
FAULTS = ("Traceback", " failed\n")
"""What the log of the devnet has when something went wrong inside."""

_GENERATED = re.compile(r"(\d+) generated")


@dataclass(frozen=True)
class Outcome:
    """How many cases there were, whether all checks passed, what was printed, and the log."""

    cases: int
    passed: bool
    report: str
    log: str


def run(
    examples: int, seconds: int, *options: str, seed: int | None = None, matcher: bool = False
) -> Outcome:
    """So many examples for each operation and phase, but no longer than so many seconds; of the
    node, or of the matcher.
    """
    with devnet(*options) as program:
        checks = (*NOT_CHECKED, *(NOT_CHECKED_OF_MATCHER if matcher else ()))
        command = [
            str(SCHEMATHESIS),
            f"--config-file={CONFIGURATION}",
            "run",
            f"{program.matcher_url if matcher else program.node_url}/api-docs/openapi.json",
            "--checks=all",
            f"--exclude-checks={','.join(checks)}",
            f"--exclude-path-regex={NOT_ASKED_OF_MATCHER if matcher else NOT_ASKED}",
            f"--header=X-API-Key: {API_KEY}",
            f"--max-examples={examples}",
            f"--max-time={seconds}",
            "--request-timeout=30",
            "--continue-on-failure",
            "--suppress-health-check=all",
            "--generation-database=:memory:",
            "--no-color",
        ]
        if seed is not None:
            command.append(f"--seed={seed}")
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        # The server is still there, and still answers.
        assert program.process.poll() is None, program.output
        report = done.stdout + done.stderr
        found = _GENERATED.search(report)
        return Outcome(int(found[1]) if found else 0, done.returncode == 0, report, program.output)
