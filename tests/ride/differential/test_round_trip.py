"""Every script that the outside material has: decompiled, compiled again, the same bytes?

What lives here: the search for scripts in vectors and recorded chains, and the reasons why some do
not come back. What does not: the decompiler's text (``tests/ride/test_decompiler.py``).
"""

from __future__ import annotations

import base64
import gzip
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Final
from zlib import crc32

import msgspec
import pytest

from soliton.ride.compiler import CompileError, compile_source
from soliton.ride.decompiler import NOT_A_SOURCE, decompile
from soliton.ride.errors import RideError
from soliton.ride.expressions import DApp
from soliton.ride.meta import read_meta
from soliton.ride.script import Script, make_script, parse_script
from tests.amounts import LONG, times
from tests.vectors import load_vectors, report

pytestmark = pytest.mark.slow

FILES: Final = (
    "ride_calls_with_env",
    "ride_compile",
    "ride_compile_disagree",
    "ride_compile_gowaves_literals",
    "ride_estimate",
    "ride_estimate_literals",
    "ride_estimate_tests",
    "ride_eval",
    "ride_parse",
    "ride_source_near_base64",
)
_SCRIPT_KEYS: Final = frozenset(
    {
        *("script", "compact", "no_unused", "compact_no_unused", "ridejs", "gowaves"),
        *("expected", "verifier_script"),
    }
)
_SET_SCRIPT, _ISSUE, _SET_ASSET_SCRIPT = 13, 3, 15

SAME: Final = "same"
OFFSETS: Final = "same but for offsets of the first source in the names of hidden variables"
OTHER_FORM: Final = "bytes that the reference does not write for this tree"
NO_SOURCE: Final = "functions or names that no source has"
REFUSED: Final = "types that scripts do not tell, or code that the reference does not make"
DESCRIPTION: Final = "a description of the functions that the reference does not write"
CAST: Final = "a cast names the type of a value, which scripts do not tell"
BY_NAME: Final = "a library function called as if it were the script's own"
HIDDEN_FUNCTION: Final = "hidden functions of folds numbered or named in another way"
OTHER_COMPILER: Final = "code of another compiler for the same source"
UNREADABLE: Final = "not a script"

MIN_SAME: Final = times(405, 2029)
MAX_OF_THE_REFERENCE: Final = 0

# How many scripts of each reason there may be: more is a regression, fewer is progress.
REMAINDER: Final = {
    REFUSED: 92,
    NO_SOURCE: 43,
    DESCRIPTION: 25,
    HIDDEN_FUNCTION: 12,
    OTHER_COMPILER: 10,
    OTHER_FORM: 9,
    CAST: 0,
    BY_NAME: 5,
}


SHARE: Final = 5
"""One script of so many is tried; which ones they are is a matter of each alone, so that tests that
share a script share its outcome.
"""


@cache
def _outcome_of(text: str) -> str:
    try:
        script = parse_script(base64.b64decode(text))
    except (RideError, ValueError):
        return UNREADABLE
    return _outcome(script)


def _outcome(script: Script) -> str:
    content = script.content
    if make_script(script.version, content).source != script.source:
        return OTHER_FORM
    meta = read_meta(content.meta) if isinstance(content, DApp) else None
    text = decompile(script)
    if NOT_A_SOURCE in text:
        return NO_SOURCE
    compact = meta is not None and bool(meta.original_names)
    try:
        again = compile_source(text, compact=compact, check_complexity=False).script
    except CompileError:
        return REFUSED
    if again.source == script.source:
        return SAME
    if _without_offsets(again) == _without_offsets(script):
        return OFFSETS
    return _difference(script, again)


def _without_offsets(script: Script) -> tuple[bytes, object]:
    """The code without the checksum, and the description; names in both without offsets."""
    content = script.content
    described: object = None
    if isinstance(content, DApp):
        meta = read_meta(content.meta)
        names = tuple(re.sub(r"\$t0[0-9]+", "$t0", name) for name in meta.original_names)
        described = msgspec.structs.replace(meta, original_names=names)
        content = msgspec.structs.replace(content, meta=b"")
    source = make_script(script.version, content).source
    # With the byte that tells the length of a name.
    return re.sub(rb".\$t0[0-9]+", b"$t0", source[:-4], flags=re.DOTALL), described


def _difference(script: Script, again: Script) -> str:
    before, after = script.content, again.content
    if isinstance(before, DApp) and isinstance(after, DApp) and before.meta != after.meta:
        return DESCRIPTION
    if b"Couldn't cast" in script.source:
        return CAST
    if b"\x04cons" in script.source:
        return BY_NAME
    if b"$acc0" in script.source:
        return HIDDEN_FUNCTION
    return OTHER_COMPILER


def _scripts_of(vector: object) -> Iterator[str]:
    """The texts of scripts anywhere inside of a vector."""
    if isinstance(vector, dict):
        for key, value in vector.items():
            if isinstance(value, str):
                if key in _SCRIPT_KEYS:
                    yield value.removeprefix("base64:")
            else:
                yield from _scripts_of(value)
    elif isinstance(vector, list):
        for value in vector:
            yield from _scripts_of(value)


def _chosen(texts: Iterable[str]) -> list[str]:
    return [text for text in texts if LONG or crc32(text.encode()) % SHARE == 0]


def _tell(name: str, counts: Counter[str]) -> None:
    report.ran(name, counts[SAME] + counts[OFFSETS])
    for reason, count in counts.items():
        if reason not in (SAME, OFFSETS):
            report.skipped(name, count, reason)


def test_scripts_of_all_vectors() -> None:
    texts = dict.fromkeys(
        text for file in FILES for vector in load_vectors(file) for text in _scripts_of(vector)
    )
    counts = Counter(map(_outcome_of, _chosen(texts)))
    _tell("round trip: scripts of vectors", counts)
    assert counts[SAME] >= MIN_SAME
    for reason, most in REMAINDER.items():
        assert counts[reason] <= most, reason


def test_scripts_of_the_reference_compiler() -> None:
    """What both public compilers make of a source."""
    texts = dict.fromkeys(
        text for vector in load_vectors("ride_compile") for text in _scripts_of(vector)
    )
    counts = Counter(map(_outcome_of, _chosen(texts)))
    _tell("round trip: outputs of the reference", counts)
    rest = sum(counts.values()) - counts[SAME] - counts[OFFSETS]
    assert rest <= MAX_OF_THE_REFERENCE


def test_scripts_of_the_recorded_chain(shared: Path) -> None:
    blocks = shared / "golden" / "waves-r" / "blocks.json.gz"
    if not blocks.is_file():
        pytest.skip(f"{blocks} is missing")
    counts = Counter(map(_outcome_of, dict.fromkeys(_chain_scripts(blocks))))
    _tell("round trip: scripts of the recorded chain", counts)
    assert set(counts) <= {SAME, OFFSETS}
    assert counts[SAME] > 0


def _chain_scripts(path: Path) -> Iterator[str]:
    for block in json.loads(gzip.decompress(path.read_bytes())):
        for transaction in block.get("transactions", ()):
            if transaction["type"] in (_SET_SCRIPT, _ISSUE, _SET_ASSET_SCRIPT):
                script = transaction.get("script")
                if script:
                    yield script.removeprefix("base64:")
