"""A coverage-guided run over all decoders.

``pip install atheris`` and ``python -m tests.fuzzing.fuzz -max_total_time=600 [CORPUS]``. An input
that raises anything but our own errors, or that takes too long, ends the run and is written to a
file beside.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["soliton"]):
    from tests.fuzzing.decoders import one_input
from tests.fuzzing.seeds import seeds


def main() -> None:
    """Hand the seeds and the command line over to the fuzzer."""
    with tempfile.TemporaryDirectory() as name:
        for number, seed in enumerate(seeds()):
            (Path(name) / f"seed-{number}").write_bytes(seed)
        atheris.Setup([*sys.argv, name], one_input)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
