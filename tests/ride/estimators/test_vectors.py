"""Estimates of real scripts, by estimators 1 to 4 of the Go node and by the Scala compiler.

Where the Go node's numbers differ from the reference's rules, the row is left out here by name,
with the reason; ``DIFFERENT`` then has what these rules give.
"""

from __future__ import annotations

from typing import Any

import pytest

from soliton.ride.errors import RideError
from soliton.ride.estimators import estimate, estimate_compiled, estimator
from soliton.ride.expressions import DApp
from soliton.ride.script import Script, parse_script_text
from tests.vectors import load_vectors, report

_Numbers = tuple[int, int, dict[str, int]]

SHADOWS = "the Go node's third estimator allows a function to have the name of another"
OLD_COST = "the Go node takes 10 for getIntegerValue(list, index) in version 3, the reference 30"
CONTAINER = "the reference reads version 6 behind the older header in the newer encoding"
MENTIONS = "the Go node keeps what is mentioned in two branches apart, the Scala compiler does not"
SAME_NAME = "in the reference a callable function with the name of the verifier takes its place"

DIFFERENT: dict[str, dict[int, str]] = {
    "ride_estimate_tests": {341: SHADOWS},
    "ride_estimate": {
        550: MENTIONS,
        551: MENTIONS,
        698: SAME_NAME,
        855: SHADOWS,
        952: OLD_COST,
        953: OLD_COST,
        954: OLD_COST,
        1092: CONTAINER,
        1093: CONTAINER,
        1094: CONTAINER,
        1098: SHADOWS,
    },
}


def _numbers(script: Script, version: int, let_fixes: bool = False) -> _Numbers | None:
    try:
        result = estimate(script, version, let_fixes=let_fixes)
    except RideError:
        return None
    return result.max, result.verifier, result.callables


def _expected(row: dict[str, Any]) -> _Numbers | None:
    if row.get("error"):
        return None
    return row["max"], row["verifier"], row["functions"] or {}


@pytest.mark.parametrize("version", [1, 2, 3, 4])
def test_literals(version: int) -> None:
    rows = load_vectors("ride_estimate_literals")
    for row in rows:
        result = estimate(parse_script_text(row["script"]), version)
        assert result.max == row[f"v{version}"], row["comment"]
    if version == 1:
        report.ran("ride_estimate_literals", len(rows))


def test_calls_in_tests_of_the_go_node() -> None:
    ran = 0
    for place, row in enumerate(load_vectors("ride_estimate_tests")):
        same = _numbers(parse_script_text(row["script"]), row["estimator"]) == _expected(row)
        ran += _check("ride_estimate_tests", place, same)
    report.ran("ride_estimate_tests", ran)


def test_all_scripts() -> None:
    ran = 0
    for place, row in enumerate(load_vectors("ride_estimate")):
        script = parse_script_text(row["script"])
        same = all(
            _numbers(script, int(version)) == _expected(result)
            for version, result in row["estimate_gowaves"].items()
        )
        ran += _check("ride_estimate", place, same)
    report.ran("ride_estimate", ran)


def test_functions_with_one_name() -> None:
    """What the rows that are left out give instead, as far as it is a number."""
    rows = load_vectors("ride_estimate")
    assert _numbers(parse_script_text(rows[698]["script"]), 4) == (5, 5, {"sameName": 5})
    assert _numbers(parse_script_text(rows[855]["script"]), 3) is None
    script = parse_script_text(rows[855]["script"])
    assert estimate(script, 3, fix_overflow=False).max == 7


def test_the_scala_compiler() -> None:
    """Complexities that the Scala compiler gives, with the fixes of the light-node feature."""
    compared = 0
    for place, row in enumerate(load_vectors("ride_estimate")):
        expected = row.get("ridejs")
        if expected is None:
            continue
        script = parse_script_text(row["script"])
        for version in (1, 2):
            if f"ridejs_v{version}" in row:
                assert estimate(script, version).max == row[f"ridejs_v{version}"], place
        numbers, _ = estimate_compiled(estimator(4, let_fixes=True), script)
        assert numbers.max == expected["complexity"], place
        if isinstance(script.content, DApp):
            assert numbers.verifier == (expected["verifierComplexity"] or 0), place
            assert numbers.callables == (expected["callableComplexities"] or {}), place
        compared += 1
    report.compared("complexities of the Scala compiler", compared, compared)


def _check(name: str, place: int, same: bool) -> int:
    reason = DIFFERENT[name].get(place)
    if reason is None:
        assert same, f"row {place}"
        return 1
    assert not same, f"row {place} is no exception any more: {reason}"
    report.skipped(name, 1, reason)
    return 0
