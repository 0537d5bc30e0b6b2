"""Our compiler and the JavaScript build of the network's one, over the same programs:
scripts, complexities, refusals.

What lives here: the comparison and its counts. What does not: how programs are made
(``programs``).
"""

from __future__ import annotations

import base64
import json
import os
import re
import subprocess
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any, Final

import msgspec
import pytest

from soliton.ride.compiler import CompileError, compile_source
from tests.amounts import only_long, times
from tests.clients.scripts import HERE as CLIENTS
from tests.clients.scripts import NODE
from tests.ride.differential.programs import Program, program, programs
from tests.vectors import report

SEED: Final = int(os.environ.get("SOLITON_PROGRAMS_SEED", "7"))
COUNT: Final = int(os.environ.get("SOLITON_PROGRAMS", times(100, 2_000)))
SECONDS: Final = 600
MIN_ACCEPTED: Final = 0.5
MIN_REFUSED: Final = 0.1
COMMENTED: Final = times(15, 60)
"""Programs that get a comment at each of their borders of words, one at a time."""
BORDERS: Final = 20
"""Borders that are tried of each of them."""
_WORD: Final = re.compile(r'"[^"]*"|\{-#[^#]*#-\}|\w+|=>|::|[^\w\s]')

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(NODE is None, reason="node is not installed"),
    pytest.mark.skipif(
        not (CLIENTS / "node_modules" / "@waves" / "ride-js").is_dir(),
        reason="@waves/ride-js is missing in tests/clients/node_modules (`make clients`)",
    ),
]

_Outcome = dict[str, Any] | None
"""Script and complexities, ``None`` for what is refused."""


def _ours(each: Program) -> _Outcome:
    try:
        compiled = compile_source(
            each.source, compact=each.compact, remove_unused=each.remove_unused
        )
    except CompileError:
        return None
    numbers, parts = compiled.estimate, compiled.parts
    assert numbers is not None
    told = {
        "base64": base64.b64encode(compiled.script.source).decode(),
        "complexity": numbers.max,
    }
    if parts is None:
        return told
    return told | {
        "verifierComplexity": numbers.verifier,
        "callableComplexities": numbers.callables,
        "userFunctionComplexities": parts.functions,
        "globalVariableComplexities": parts.values,
    }


def _theirs(corpus: list[Program]) -> list[_Outcome]:
    assert NODE is not None
    done = subprocess.run(
        [NODE, str(Path(__file__).with_name("compile.js")), str(CLIENTS)],
        input=msgspec.json.encode(corpus),
        capture_output=True,
        timeout=SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    return [
        None if "error" in told else {key: told[key] for key in told if key != "size"}
        for told in json.loads(done.stdout)
    ]


def _compare(corpus: list[Program], name: str) -> Counter[str]:
    counts: Counter[str] = Counter()
    differences = []
    for number, (each, theirs) in enumerate(zip(corpus, _theirs(corpus), strict=True)):
        ours = _ours(each)
        if ours != theirs:
            differences.append(f"program {number}: {ours}, not {theirs}\n{each.source}")
        counts["accepted" if theirs else "refused"] += 1
    assert not differences, f"{len(differences)} differ\n" + "\n\n".join(differences[:3])
    for outcome, count in counts.items():
        report.ran(f"{name}: {outcome}", count)
    return counts


def test_the_same_seed_makes_the_same_program() -> None:
    assert program("3/14") == program("3/14") != program("3/15")


def test_both_compilers_make_the_same_scripts_and_estimate_them_the_same() -> None:
    counts = _compare(programs(SEED, COUNT), "programs compiled as ride-js does")
    assert counts["accepted"] >= MIN_ACCEPTED * COUNT
    assert counts["refused"] >= MIN_REFUSED * COUNT


@only_long
def test_comments_and_line_ends_between_any_two_words() -> None:
    chance = Random(SEED)
    corpus = []
    for each in programs(SEED, COMMENTED):
        borders = sorted({place for found in _WORD.finditer(each.source) for place in found.span()})
        for place in chance.sample(borders, min(BORDERS, len(borders))):
            between = chance.choice(("#c\n", " # c\n", " # c\n#d\n", "\n", " "))
            source = each.source[:place] + between + each.source[place:]
            corpus.append(msgspec.structs.replace(each, source=source))
    counts = _compare(corpus, "comments as ride-js takes them")
    assert counts["accepted"] and counts["refused"]
