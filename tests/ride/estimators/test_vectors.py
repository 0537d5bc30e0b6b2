"""Estimates of real scripts, by estimators 1 to 4 of the Go node and by the Scala compiler.

Where the Go node's numbers differ from the reference's rules, ``DIFFERENT`` has the reason, which
shows in the script itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from soliton.ride.errors import RideError
from soliton.ride.estimators import estimate_compiled, estimator
from soliton.ride.expressions import Call, DApp
from soliton.ride.script import Script, nodes, parse_script_text
from tests.amounts import LONG
from tests.ride.estimators import estimate
from tests.vectors import load_vectors, report

_Numbers = tuple[int, int, dict[str, int]]

DEAR = "the first estimator takes eight million steps for it: `make test-all` has it"
SHADOWS = "the Go node's third estimator allows a function to have the name of another"
OLD_COST = "the Go node takes 10 for getIntegerValue(list, index) in version 3, the reference 30"
CONTAINER = "the reference reads version 6 behind the older header in the newer encoding"
MENTIONS = "the Go node keeps what is mentioned in two branches apart, the Scala compiler does not"
SAME_NAME = "in the reference a callable function with the name of the verifier takes its place"

_BY_INDEX = {f"@extrUser(get{kind})" for kind in ("Integer", "Boolean", "Binary", "String")}


_DEAR_BYTES, _DEAR_ESTIMATOR = 11_294, 1
"""The one row of that kind; the script itself stays, by the other estimators."""


def _shadows(script: Script, _row: dict[str, Any]) -> bool:
    try:
        estimate(script, 3)
    except RideError as error:
        return "shadows preceding declaration" in str(error)
    return False


def _shares_the_name_of_the_verifier(script: Script, _row: dict[str, Any]) -> bool:
    dapp = script.content
    return (
        isinstance(dapp, DApp)
        and dapp.verifier is not None
        and any(each.function.name == dapp.verifier.function.name for each in dapp.callables)
    )


def _takes_entries_by_index(script: Script, _row: dict[str, Any]) -> bool:
    called = {node.function for node in nodes(script.content) if isinstance(node, Call)}
    return script.version == 3 and bool(called & _BY_INDEX)


def _has_another_container(script: Script, _row: dict[str, Any]) -> bool:
    return script.version == 6 and script.source[0] == 0


def _is_as_the_scala_compiler_says(script: Script, row: dict[str, Any]) -> bool:
    told = row.get("ridejs")
    return told is not None and estimate(script, 4).max == told["complexity"]


DIFFERENT: dict[str, Callable[[Script, dict[str, Any]], bool]] = {
    SHADOWS: _shadows,
    OLD_COST: _takes_entries_by_index,
    CONTAINER: _has_another_container,
    SAME_NAME: _shares_the_name_of_the_verifier,
    MENTIONS: _is_as_the_scala_compiler_says,
}
"""What has to be seen in a script whose numbers differ for a reason."""


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
    for row in load_vectors("ride_estimate_tests"):
        script = parse_script_text(row["script"])
        is_dear = (len(script.source), row["estimator"]) == (_DEAR_BYTES, _DEAR_ESTIMATOR)
        if is_dear and not LONG:
            report.skipped("ride_estimate_tests", 1, DEAR)
            continue
        same = _numbers(script, row["estimator"]) == _expected(row)
        ran += _check("ride_estimate_tests", script, row, same)
    report.ran("ride_estimate_tests", ran)


def test_all_scripts() -> None:
    ran, rows = 0, load_vectors("ride_estimate")
    for row in rows:
        script = parse_script_text(row["script"])
        same = all(
            _numbers(script, int(version)) == _expected(result)
            for version, result in row["estimate_gowaves"].items()
        )
        ran += _check("ride_estimate", script, row, same)
    assert len(rows) - ran < 20
    report.ran("ride_estimate", ran)


def test_functions_with_one_name() -> None:
    """What the rows that are left out give instead, as far as it is a number."""
    rows = load_vectors("ride_estimate")
    scripts = [parse_script_text(row["script"]) for row in rows]
    shared = [each for each in scripts if _shares_the_name_of_the_verifier(each, {})]
    assert shared
    for script in shared:
        numbers = estimate(script, 4)
        assert numbers.verifier == numbers.max == max(numbers.callables.values())
    hidden = [each for each in scripts if _shadows(each, {})]
    assert hidden
    for script in hidden:
        assert _numbers(script, 3) is None
        assert estimate(script, 3, fix_overflow=False).max > 0


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


def _check(name: str, script: Script, row: dict[str, Any], same: bool) -> int:
    if same:
        return 1
    reason = next((each for each, holds in DIFFERENT.items() if holds(script, row)), None)
    assert reason is not None, f"{row['script']}: {_numbers(script, 4)}"
    report.skipped(name, 1, reason)
    return 0
