"""Our compiler and the JavaScript build of the network's one, over the same 1,000 programs.

What lives here: the comparison and its counts. What does not: how programs are made
(``programs``).
"""

from __future__ import annotations

import base64
import json
import os
import subprocess
from collections import Counter
from pathlib import Path
from typing import Final

import msgspec
import pytest

from soliton.ride.compiler import CompileError, compile_source
from tests.clients.scripts import HERE as CLIENTS
from tests.clients.scripts import NODE
from tests.ride.differential.programs import Program, program, programs
from tests.vectors import report

SEED: Final = int(os.environ.get("SOLITON_PROGRAMS_SEED", "7"))
COUNT: Final = int(os.environ.get("SOLITON_PROGRAMS", "1000"))
SECONDS: Final = 600
MIN_ACCEPTED: Final = 0.5
MIN_REFUSED: Final = 0.1

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(NODE is None, reason="node is not installed"),
    pytest.mark.skipif(
        not (CLIENTS / "node_modules" / "@waves" / "ride-js").is_dir(),
        reason="@waves/ride-js is missing in tests/clients/node_modules (`make clients`)",
    ),
]

_REFUSED: Final = "refused"
_TOO_COMPLEX: Final = "too complex"
"""The JavaScript build estimates all declarations in one go, which counts more than what a chain
counts: near the limits it refuses what chains take."""


def _ours(each: Program) -> str:
    try:
        compiled = compile_source(
            each.source, compact=each.compact, remove_unused=each.remove_unused
        )
    except CompileError:
        return _REFUSED
    return base64.b64encode(compiled.script.source).decode()


def _theirs(corpus: list[Program]) -> list[str]:
    assert NODE is not None
    done = subprocess.run(
        [NODE, str(Path(__file__).with_name("compile.js")), str(CLIENTS)],
        input=msgspec.json.encode(corpus),
        capture_output=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    return [told.get("base64") or _refusal(told["error"]) for told in json.loads(done.stdout)]


def _refusal(words: str) -> str:
    return _TOO_COMPLEX if _TOO_COMPLEX in words else _REFUSED


def test_the_same_seed_makes_the_same_program() -> None:
    assert program("3/14") == program("3/14") != program("3/15")


def test_both_compilers_make_the_same_scripts() -> None:
    corpus = programs(SEED, COUNT)
    counts: Counter[str] = Counter()
    differences = []
    for number, (each, theirs) in enumerate(zip(corpus, _theirs(corpus), strict=True)):
        ours = _ours(each)
        if theirs == _TOO_COMPLEX:
            counts["refused" if ours == _REFUSED else _TOO_COMPLEX] += 1
            continue
        if ours != theirs:
            differences.append(f"program {SEED}/{number}: {ours}, not {theirs}\n{each.source}")
        counts["refused" if theirs == _REFUSED else "accepted"] += 1
    assert not differences, f"{len(differences)} differ\n" + "\n\n".join(differences[:3])
    assert counts["accepted"] >= MIN_ACCEPTED * COUNT
    assert counts["refused"] >= MIN_REFUSED * COUNT
    beyond = counts.pop(_TOO_COMPLEX, 0)
    if beyond:
        report.skipped("programs compiled as ride-js does", beyond, "its estimate counts more")
    for outcome, count in counts.items():
        report.ran(f"programs compiled as ride-js does: {outcome}", count)
