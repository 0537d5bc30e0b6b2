"""A short run of made-up requests; the long one is ``make fuzz-rest``."""

from __future__ import annotations

import pytest

from tests.amounts import times
from tests.fuzzing.rest.made_up import FAULTS, SCHEMATHESIS, run

FEWEST = times(0, 200)
"""The time is what ends a run: how many there are then is a matter of the machine."""


@pytest.mark.slow
@pytest.mark.skipif(not SCHEMATHESIS.exists(), reason="no Schemathesis: make clients")
def test_made_up_requests_find_nothing() -> None:
    outcome = run(times(1, 2), times(4, 60), seed=1)
    print(f"made-up requests: {outcome.cases} cases")
    assert outcome.cases > FEWEST, outcome.report
    assert outcome.passed, outcome.report
    assert not any(word in outcome.log for word in FAULTS), outcome.log


@pytest.mark.slow
@pytest.mark.skipif(not SCHEMATHESIS.exists(), reason="no Schemathesis: make clients")
def test_made_up_requests_to_the_matcher_find_nothing() -> None:
    outcome = run(1, times(4, 30), seed=1, matcher=True)
    print(f"made-up requests to the matcher: {outcome.cases} cases")
    assert outcome.cases > FEWEST, outcome.report
    assert outcome.passed, outcome.report
    assert not any(word in outcome.log for word in FAULTS), outcome.log
